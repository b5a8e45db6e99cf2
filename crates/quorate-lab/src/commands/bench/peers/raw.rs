//! The raw limit: pairs of a request and an answer of 64 bytes each, and nothing decided. What
//! tokio and the kernel take for them, on both sides, is what no system of locks can do without.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Outcome;

/// About what a claim and its answer take on the client link.
const BYTES: usize = 64;

/// Serves until whoever started it is gone.
pub(in super::super) fn serve() -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let _ = std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new());
    Ok(Outcome::Good)
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; BYTES];
    loop {
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await?;
    }
}

/// A client of nothing.
pub(super) struct Raw(TcpStream);

impl Raw {
    pub(super) async fn connect(address: SocketAddr) -> anyhow::Result<Raw> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Raw(stream))
    }

    /// One pair.
    pub(super) async fn exchange(&mut self) -> anyhow::Result<()> {
        let mut bytes = [7; BYTES];
        self.0.write_all(&bytes).await?;
        self.0.read_exact(&mut bytes).await?;
        Ok(())
    }
}

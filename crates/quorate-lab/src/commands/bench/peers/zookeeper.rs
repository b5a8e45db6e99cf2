//! ZooKeeper, by its protocol: an ephemeral node is made and deleted, which is the least that
//! excludes (its recipe for locks takes a question more, and has a queue).

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CREATE: u32 = 1;
const DELETE: u32 = 2;
const EPHEMERAL: u32 = 1;
const ALL_RIGHTS: u32 = 31;
const ANY_VERSION: u32 = u32::MAX;
/// How long a session outlives its connection, in milliseconds.
const SESSION: u32 = 30_000;

/// One session with a lock of its own.
pub(super) struct ZooKeeper {
    stream: TcpStream,
    read: Vec<u8>,
    acquire: Vec<u8>,
    release: Vec<u8>,
}

impl ZooKeeper {
    pub(super) async fn connect(address: SocketAddr, number: usize) -> anyhow::Result<ZooKeeper> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = format!("/bench-own-{number}");
        let acquire = Packet::default().numbers(&[1, CREATE]).text(&name).text("").numbers(&[1]);
        let acquire = acquire.numbers(&[ALL_RIGHTS]).text("world").text("anyone");
        let acquire = acquire.numbers(&[EPHEMERAL]).framed();
        let release = Packet::default().numbers(&[2, DELETE]).text(&name).numbers(&[ANY_VERSION]);
        let (read, release) = (Vec::new(), release.framed());
        let mut it = ZooKeeper { stream, read, acquire, release };
        // Version, the last change seen, patience, session and its password: all new.
        let hello = Packet::default().numbers(&[0, 0, 0, SESSION, 0, 0, 16, 0, 0, 0, 0]);
        it.stream.write_all(&hello.framed()).await?;
        it.answer().await?;
        Ok(it)
    }

    pub(super) async fn acquire(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.acquire).await?;
        let error = self.reply().await?;
        ensure!(error == 0, "ZooKeeper did not make a node that is not there: error {error}");
        Ok(())
    }

    pub(super) async fn release(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.release).await?;
        let error = self.reply().await?;
        ensure!(error == 0, "ZooKeeper did not delete a node of ours: error {error}");
        Ok(())
    }

    /// What came of the last request: the number of an error, or 0.
    async fn reply(&mut self) -> anyhow::Result<i32> {
        let said = self.answer().await?;
        // After the request's number and the change's.
        let error = said.get(12..16).context("ZooKeeper said too little")?;
        Ok(i32::from_be_bytes(error.try_into()?))
    }

    async fn answer(&mut self) -> anyhow::Result<&[u8]> {
        self.read.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "ZooKeeper hung up");
            if let Some(head) = self.read.first_chunk::<4>()
                && self.read.len() >= 4 + u32::from_be_bytes(*head) as usize
            {
                return Ok(&self.read[4..]);
            }
        }
    }
}

#[derive(Default)]
struct Packet(Vec<u8>);

impl Packet {
    fn numbers(mut self, numbers: &[u32]) -> Packet {
        self.0.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        self
    }

    fn text(self, text: &str) -> Packet {
        let mut packet = self.numbers(&[text.len() as u32]);
        packet.0.extend(text.as_bytes());
        packet
    }

    fn framed(self) -> Vec<u8> {
        let mut bytes = (self.0.len() as u32).to_be_bytes().to_vec();
        bytes.extend(self.0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_begin_with_their_length() {
        let packet = Packet::default().numbers(&[2]).text("/a").framed();
        assert_eq!(packet, [0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2, b'/', b'a']);
    }
}

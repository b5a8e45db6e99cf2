//! Redis, by its protocol (RESP 2): `SET name token NX PX 30000` takes a lock, as its documentation
//! has it, and a script that compares the token gives it back; or a bare `DEL`, the least there is.

use std::net::SocketAddr;

use anyhow::{bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The script of the documentation: only who holds the lock gives it back.
const GIVE_BACK: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return \
                         redis.call('del',KEYS[1]) else return 0 end";

/// One connection with a lock of its own.
pub(super) struct Redis {
    stream: TcpStream,
    read: Vec<u8>,
    acquire: Vec<u8>,
    release: Vec<u8>,
}

impl Redis {
    pub(super) async fn connect(
        address: SocketAddr,
        number: usize,
        bare: bool,
    ) -> anyhow::Result<Redis> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (name, token) = (format!("bench-own-{number}"), format!("token-{number:010}"));
        let acquire = command(&["SET", &name, &token, "NX", "PX", "30000"]);
        let release = Vec::new();
        let mut redis = Redis { stream, read: Vec::with_capacity(256), acquire, release };
        redis.release = match bare {
            true => command(&["DEL", &name]),
            false => {
                let loaded = redis.call(&command(&["SCRIPT", "LOAD", GIVE_BACK])).await?;
                // A bulk string: its length on a line, then the hash of the script.
                let hash = loaded.split("\r\n").nth(1).unwrap_or_default().to_owned();
                command(&["EVALSHA", &hash, "1", &name, &token])
            }
        };
        Ok(redis)
    }

    pub(super) async fn acquire(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.acquire).await?;
        let said = self.answer().await?;
        ensure!(said == "+OK\r\n", "Redis did not grant a free lock: {said}");
        Ok(())
    }

    pub(super) async fn release(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.release).await?;
        let said = self.answer().await?;
        ensure!(said == ":1\r\n", "Redis did not take a lock back: {said}");
        Ok(())
    }

    async fn call(&mut self, command: &[u8]) -> anyhow::Result<String> {
        self.stream.write_all(command).await?;
        Ok(self.answer().await?.to_owned())
    }

    /// The next answer, whole.
    async fn answer(&mut self) -> anyhow::Result<&str> {
        self.read.clear();
        loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("Redis hung up");
            }
            // Bulk strings have a second line; nothing else here has.
            let lines = if self.read[0] == b'$' { 2 } else { 1 };
            if self.read.iter().filter(|&&byte| byte == b'\n').count() == lines {
                return Ok(std::str::from_utf8(&self.read)?);
            }
        }
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text += &format!("${}\r\n{word}\r\n", word.len());
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_strings() {
        assert_eq!(command(&["DEL", "a-1"]), b"*2\r\n$3\r\nDEL\r\n$3\r\na-1\r\n");
    }
}

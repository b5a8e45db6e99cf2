//! etcd, by gRPC: its own lock service, with a lease per client, as its clients use it; or the
//! least that excludes, a transaction that puts a key which is not there, and a delete.
//!
//! The little of HTTP/2 that this takes is written by hand: one request at a time on a connection,
//! headers that never change, and windows so large that they never fill. A crate would do more for
//! every request, on our side of the figure.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// A frame begins with its length, kind, flags and stream.
const HEAD: usize = 9;

/// One connection with a lock of its own.
pub(super) struct Etcd {
    grpc: Grpc,
    acquire: Call,
    release: Call,
    /// Whether locks are keys that transactions put.
    bare: bool,
}

/// What is called, as a block of headers, and with what, as a message in its envelope.
struct Call {
    headers: Vec<u8>,
    message: Vec<u8>,
}

impl Etcd {
    pub(super) async fn connect(
        address: SocketAddr,
        number: usize,
        bare: bool,
    ) -> anyhow::Result<Etcd> {
        let mut grpc = Grpc::connect(address).await?;
        let name = format!("bench-own-{number}");
        let wanted = Message::default().number(1, 60);
        let granted = grpc.call(&Call::new("etcdserverpb.Lease/LeaseGrant", wanted)).await?;
        let lease = number_in(&granted, 2).context("etcd granted no lease")?;
        let (acquire, release) = match bare {
            false => {
                let wanted = Message::default().bytes(1, name.as_bytes()).number(2, lease);
                // The key is known when the lock is.
                (Call::new("v3lockpb.Lock/Lock", wanted), unlock(&[]))
            }
            true => {
                let key = name.as_bytes();
                // Made at revision 0: there is none.
                let absent = Message::default().number(2, 1).bytes(3, key).number(5, 0);
                let put = Message::default().bytes(1, key).number(3, lease);
                let wanted = Message::default()
                    .bytes(1, &absent.0)
                    .bytes(2, &Message::default().bytes(2, &put.0).0);
                let delete = Message::default().bytes(1, key);
                (
                    Call::new("etcdserverpb.KV/Txn", wanted),
                    Call::new("etcdserverpb.KV/DeleteRange", delete),
                )
            }
        };
        Ok(Etcd { grpc, acquire, release, bare })
    }

    pub(super) async fn acquire(&mut self) -> anyhow::Result<()> {
        let said = self.grpc.call(&self.acquire).await?;
        if self.bare {
            ensure!(number_in(&said, 2) == Some(1), "etcd did not grant a free lock");
        } else {
            self.release = unlock(bytes_in(&said, 2).context("etcd named no key")?);
        }
        Ok(())
    }

    pub(super) async fn release(&mut self) -> anyhow::Result<()> {
        let said = self.grpc.call(&self.release).await?;
        // The lock service does not say how many keys it deleted.
        ensure!(!self.bare || number_in(&said, 2) == Some(1), "etcd did not take a lock back");
        Ok(())
    }
}

fn unlock(key: &[u8]) -> Call {
    Call::new("v3lockpb.Lock/Unlock", Message::default().bytes(1, key))
}

impl Call {
    fn new(method: &str, message: Message) -> Call {
        // POST and http are in the table that HTTP/2 brings; the rest is written out.
        let mut headers = vec![0x83, 0x86];
        literal(&mut headers, &[0x04], &format!("/{method}"));
        literal(&mut headers, &[0x01], "127.0.0.1");
        literal(&mut headers, &[0x0f, 0x10], "application/grpc");
        literal(&mut headers, b"\x00\x02te", "trailers");
        let mut envelope = vec![0];
        envelope.extend((message.0.len() as u32).to_be_bytes());
        envelope.extend(message.0);
        Call { headers, message: envelope }
    }
}

fn literal(headers: &mut Vec<u8>, name: &[u8], value: &str) {
    headers.extend(name);
    headers.push(u8::try_from(value.len()).expect("headers are short"));
    headers.extend(value.as_bytes());
}

/// A connection for one call at a time.
struct Grpc {
    stream: TcpStream,
    next: u32,
    read: Vec<u8>,
    write: Vec<u8>,
}

impl Grpc {
    async fn connect(address: SocketAddr) -> anyhow::Result<Grpc> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // The first window of a stream, and more for the connection.
        let mut window = vec![0, 4];
        window.extend(0x7fff_0000_u32.to_be_bytes());
        frame(&mut hello, SETTINGS, 0, 0, &window);
        frame(&mut hello, WINDOW, 0, 0, &0x7fff_0000_u32.to_be_bytes());
        stream.write_all(&hello).await?;
        let (read, write) = (Vec::with_capacity(4096), Vec::new());
        Ok(Grpc { stream, next: 1, read, write })
    }

    async fn call(&mut self, call: &Call) -> anyhow::Result<Vec<u8>> {
        let stream = self.next;
        self.next += 2;
        frame(&mut self.write, HEADERS, END_HEADERS, stream, &call.headers);
        frame(&mut self.write, DATA, END_STREAM, stream, &call.message);
        self.stream.write_all(&self.write).await?;
        self.write.clear();
        let mut message = Vec::new();
        loop {
            let mut used = 0;
            while let Some((kind, flags, of, body)) = first(&self.read[used..]) {
                used += HEAD + body.len();
                match kind {
                    SETTINGS if flags & ACK == 0 => frame(&mut self.write, SETTINGS, ACK, 0, &[]),
                    PING if flags & ACK == 0 => frame(&mut self.write, PING, ACK, 0, body),
                    GOAWAY | RESET => bail!("etcd ended the call"),
                    DATA if of == stream => message.extend(body),
                    _ => {}
                }
                if of == stream && flags & END_STREAM != 0 && matches!(kind, DATA | HEADERS) {
                    self.read.drain(..used);
                    // Without a message it was an error, whose words are in headers.
                    ensure!(message.len() >= 5, "etcd refused the call");
                    return Ok(message.split_off(5));
                }
            }
            self.read.drain(..used);
            // What it asked meanwhile goes with the next request, unless there is time now.
            if !self.write.is_empty() {
                self.stream.write_all(&self.write).await?;
                self.write.clear();
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("etcd hung up");
            }
        }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, body: &[u8]) {
    out.extend(&(body.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(body);
}

/// Kind, flags, stream and body of the frame that these bytes begin with, if it is whole.
fn first(bytes: &[u8]) -> Option<(u8, u8, u32, &[u8])> {
    let head = bytes.first_chunk::<HEAD>()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], head[4], stream, bytes.get(HEAD..HEAD + length)?))
}

/// A message as Protocol Buffers write it, field by field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u8, value: u64) -> Message {
        self.0.push(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u8, value: &[u8]) -> Message {
        self.0.push(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The number in this field of a message.
fn number_in(message: &[u8], field: u64) -> Option<u64> {
    fields(message).find(|(found, ..)| *found == field).map(|(_, number, _)| number)
}

/// The bytes in this field of a message.
fn bytes_in(message: &[u8], field: u64) -> Option<&[u8]> {
    fields(message).find(|(found, ..)| *found == field).map(|(.., bytes)| bytes)
}

/// Numbers and bytes of a message, which are all that those here have.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, u64, &[u8])> {
    std::iter::from_fn(move || {
        let tag = varint(&mut rest)?;
        let number = varint(&mut rest)?;
        if tag & 7 == 0 {
            return Some((tag >> 3, number, &rest[..0]));
        }
        let (bytes, after) = rest.split_at_checked(usize::try_from(number).ok()?)?;
        rest = after;
        Some((tag >> 3, number, bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_are_written() {
        let inner = Message::default().bytes(1, b"header");
        let message = Message::default().bytes(1, &inner.0).number(2, 300).bytes(3, b"key").0;
        assert_eq!(number_in(&message, 2), Some(300));
        assert_eq!(bytes_in(&message, 3), Some(&b"key"[..]));
        assert_eq!(number_in(&message, 4), None);
        assert_eq!(bytes_in(&message[..message.len() - 1], 3), None);
    }

    #[test]
    fn frames_are_read_as_they_are_written() {
        let mut bytes = Vec::new();
        frame(&mut bytes, PING, ACK, 7, b"12345678");
        assert_eq!(first(&bytes), Some((PING, ACK, 7, &b"12345678"[..])));
        assert_eq!(first(&bytes[..bytes.len() - 1]), None);
    }
}

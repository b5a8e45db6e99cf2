//! A wire that takes its time: whatever is said over it arrives so much later, in order.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::net::Outcome;

/// So many pieces may be under way, of so many bytes each; then the sender has to wait.
const UNDER_WAY: usize = 1024;
const PIECE: usize = 16 * 1024;

/// Carries connections from one address to another until the process is ended.
pub(crate) fn run(listen: &str, to: &str, delay: Duration) -> Outcome {
    let listener = TcpListener::bind(listen);
    let listener = listener.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    for caller in listener.incoming().flatten() {
        let to = to.to_owned();
        std::thread::spawn(move || {
            let Ok(called) = TcpStream::connect(&to) else { return };
            let _ = (caller.set_nodelay(true), called.set_nodelay(true));
            let (Ok(back), Ok(forth)) = (called.try_clone(), caller.try_clone()) else { return };
            std::thread::spawn(move || carry(&caller, &called, delay));
            carry(&back, &forth, delay);
        });
    }
    Ok(())
}

/// One direction. Its end, too, arrives later, and ends both.
fn carry(mut from: &TcpStream, to: &TcpStream, delay: Duration) {
    let (pieces, due) = mpsc::sync_channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut to = to;
            for (at, piece) in due {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                if to.write_all(&piece).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        let mut bytes = vec![0; PIECE];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if pieces.send((Instant::now() + delay, bytes[..read].to_vec())).is_err() {
                break;
            }
        }
        drop(pieces);
    });
    let _ = from.shutdown(Shutdown::Both);
}

//! Addresses for nodes of tests, which have to be known before the nodes listen at them.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address that nobody listens at, and that no connection gets by chance meanwhile: those are
/// given ports from 32768 on.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 61;
        let address = SocketAddr::from(([127, 0, 0, 1], 10_000 + (number % 20_000) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

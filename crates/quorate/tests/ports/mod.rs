//! Addresses for nodes of tests, which have to be known before the nodes listen at them.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address that nobody listens at, and that no connection gets by chance meanwhile: those are
/// given ports from 32768 on. Suites that run at once have ports of their own, since a node that is
/// down leaves its port free.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (first, many) = match env!("CARGO_CRATE_NAME") {
        "real" => (10_000, 20_000),
        "trust" => (30_000, 1_000),
        _ => (31_000, 1_500),
    };
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 61;
        let address = SocketAddr::from(([127, 0, 0, 1], first + (number % many) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

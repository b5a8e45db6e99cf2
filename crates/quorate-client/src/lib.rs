//! Acquire, renew and release units of a Quorate cluster, from async Rust with tokio's names.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = quorate_client::Client::connect(["127.0.0.1:7420"]).await?;
//! let pool = client.pool("licences").reason("nightly build");
//! // Waits for two units, works while it has them, and stops if they are lost.
//! pool.run(2, async |grant| work(grant.fences()).await).await?;
//! // The same by hand.
//! let grant = pool.acquire_many(2).await?;
//! tokio::select! {
//!     () = work(grant.fences()) => grant.release().await?,
//!     lost = grant.lost() => eprintln!("stopped: {lost}"),
//! }
//! # Ok(())
//! # }
//! # async fn work(_: Vec<u64>) {}
//! ```
//!
//! Programs without a runtime use [`blocking`]. `examples/` has both.
//!
//! * `session.rs` is the machine: what to send when, deadlines, retries. It does no IO.
//! * `driver.rs` gives it a clock, a socket and somebody to tell: one task per [`Client`].
//! * [`Client`], [`Pool`] and [`Grant`] are handles to that task.
//! * [`Views`] looks at pools, holders and queues over HTTP, for tools.
//!
//! Where one node decides over a pool, a client claims there, on a second connection, once it was
//! told which node that is: what it was given as a list stays what it may use.
//!
//! This crate knows what clients and nodes say to each other (`quorate-api`), and no protocol.
//!
//! # What is promised
//!
//! A deadline is this machine's own clock, read before the request was sent, plus the span the
//! node promised: no other clock is involved, and no answer can come so late that it matters. While
//! there is a grant it is renewed after a third of its lease, at any node of the list. A broken
//! connection ends nothing. What cannot be known is reported as *unknown*, with the claim's id to
//! ask again.
//!
//! The clock ([`Instant`]) goes on while the machine sleeps: a laptop that was suspended past a
//! deadline finds at its first look that the grant is lost. What it does before it looks, only
//! fences protect against.

pub mod blocking;
mod chance;
mod client;
mod clock;
mod desk;
#[cfg(test)]
mod desk_tests;
mod driver;
mod error;
mod grant;
mod http;
mod pool;
mod screen;
mod server;
mod session;
mod tls;

pub use client::{Client, Options};
pub use clock::{Instant, sleep_until};
pub use error::{AcquireError, ConnectError, Lost, ReleaseError, RunError, TryAcquireError};
pub use grant::Grant;
pub use http::{ViewError, Views};
pub use pool::Pool;
pub use quorate_api::link::{About, Move, Share, Token};
pub use quorate_api::{ClaimId, Want};
pub use screen::Screen;
pub use server::{DEFAULT_PORT, Server};
pub use tls::Tls;

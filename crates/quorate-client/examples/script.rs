//! The same without async: takes what is free now, or waits for at most ten seconds.
//!
//! Start a cluster with `cargo run --release -- dev`, then:
//! `cargo run -p quorate-client --example script`

use std::time::Duration;

use quorate_client::TryAcquireError;
use quorate_client::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(["127.0.0.1:7420"])?;
    let pool = client.pool("demo").reason("the script");
    let grant = match pool.try_acquire(1) {
        Err(TryAcquireError::NoUnits) => {
            println!("none is free; waiting");
            pool.acquire_timeout(1, Duration::from_secs(10))?
        }
        tried => tried?,
    };
    for step in 1..=3 {
        // Each step needs the unit: whether it is still there is asked before it begins.
        if let Some(lost) = grant.lost_within(Duration::from_millis(500)) {
            println!("stopped before step {step}: {lost}");
            return Ok(());
        }
        println!("step {step} with unit {:?}", grant.units());
    }
    grant.release()?;
    Ok(())
}

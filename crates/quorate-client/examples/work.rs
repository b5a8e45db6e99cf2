//! Works while it has two units, and stops if it loses them.
//!
//! Start a cluster with `cargo run --release -- dev`, then:
//! `cargo run -p quorate-client --example work`

use std::time::Duration;

use quorate_client::{Client, RunError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(["127.0.0.1:7420", "127.0.0.1:7421", "127.0.0.1:7422"]).await?;
    let pool = client.pool("demo").reason("the example");
    let done = pool.run(2, async |grant| {
        println!("working with units {:?}, fences {:?}", grant.units(), grant.fences());
        tokio::time::sleep(Duration::from_secs(2)).await;
        "done"
    });
    match done.await {
        Ok(result) => println!("{result}"),
        Err(RunError::Lost(how)) => println!("stopped in the middle: {how}"),
        Err(error) => println!("not started: {error}"),
    }
    Ok(())
}

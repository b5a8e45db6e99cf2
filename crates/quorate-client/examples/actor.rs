//! Does what another program tells it: how the scenarios of `clients/scenarios.json` are played
//! with this client (`clients/python/tests/test_scenarios.py`).
//!
//! Servers are the arguments. A line of the input is a number and an order, a line of the output
//! the same number and what came of it; several orders may be under way at once:
//!
//! ```text
//! 1 acquire demo 2 5000      1 granted 000000000000000000000000000000c1
//! 2 try demo 4               2 timeout
//! 3 state 1                  3 held
//! 4 release 1                4 released
//! ```

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_client::blocking::{Client, Grant};
use quorate_client::{AcquireError, ReleaseError, TryAcquireError};

type Grants = Mutex<BTreeMap<String, Grant>>;

fn main() {
    let servers: Vec<String> = std::env::args().skip(1).collect();
    let client = Client::connect(&servers).map(Arc::new);
    let grants = Arc::new(Grants::default());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (client, grants) = (client.clone(), Arc::clone(&grants));
        std::thread::spawn(move || {
            let (number, order) = line.split_once(' ').unwrap_or((&line, ""));
            let outcome = match client {
                Ok(client) => obey(&client, &grants, number, order),
                Err(_) => "unreachable".into(),
            };
            println!("{number} {outcome}");
        });
    }
}

fn obey(client: &Client, grants: &Grants, number: &str, order: &str) -> String {
    let inside = || grants.lock().unwrap_or_else(PoisonError::into_inner);
    let words: Vec<&str> = order.split(' ').collect();
    let count = |word: &str| word.parse::<u32>().unwrap_or(0);
    let granted = match words[..] {
        ["acquire", pool, units, millis] => client
            .pool(pool)
            .acquire_timeout(count(units), Duration::from_millis(count(millis).into())),
        ["try", pool, units] => match client.pool(pool).try_acquire(count(units)) {
            Err(TryAcquireError::NoUnits) => return "timeout".into(),
            Err(TryAcquireError::Acquire(error)) => Err(error),
            Err(_) => return "failed".into(),
            Ok(grant) => Ok(grant),
        },
        ["state", grant] => {
            return match inside().get(grant).map(|grant| grant.is_lost()) {
                Some(None) => "held".into(),
                _ => "lost".into(),
            };
        }
        ["release", grant] => {
            let Some(grant) = inside().remove(grant) else { return "lost".into() };
            return match grant.release() {
                Ok(()) => "released".into(),
                Err(ReleaseError::Lost(_)) => "lost".into(),
                Err(_) => "unacknowledged".into(),
            };
        }
        _ => return "failed".into(),
    };
    match granted {
        Ok(grant) => {
            let id = grant.id();
            inside().insert(number.to_owned(), grant);
            format!("granted {id}")
        }
        Err(AcquireError::TooLarge { .. }) => "too-large".into(),
        Err(AcquireError::UnknownPool { .. }) => "unknown-pool".into(),
        Err(AcquireError::Timeout { .. } | AcquireError::Unknown { .. }) => "timeout".into(),
        Err(AcquireError::Unreachable { .. }) => "unreachable".into(),
        Err(_) => "failed".into(),
    }
}

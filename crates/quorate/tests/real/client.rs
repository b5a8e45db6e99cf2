//! A process full of clients that claim, hold, release, change their minds, and write it all down.
//!
//! It is this test program again, started by the harness as `real client`, so that it can be killed
//! and paused like any process. It ends when its standard input does: then every client makes one
//! last claim, without a time limit, and the process exits once all of them were served.

use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_client::{AcquireError, ClaimId, Client, Grant, Lost, Options, Pool, Tls, Token};
use tokio::io::AsyncReadExt;

use crate::clock;
use crate::history::{Line, What};
use quorate_core::Dice;

/// Longest that units are held: longer than the renewals of any lease that is tried here.
const LONG_HOLD: Duration = Duration::from_secs(3);

/// What a client process is told on its command line.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) seed: u64,
    pub(crate) clients: u64,
    pub(crate) pools: Vec<String>,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) servers: Vec<String>,
    /// Files with the authority and the token, on the hosts of `cargo xtask campaign`.
    pub(crate) trust: Option<(String, String)>,
}

impl Orders {
    pub(crate) fn to_words(&self) -> Vec<String> {
        let words = [
            self.seed.to_string(),
            self.clients.to_string(),
            self.pools.join(","),
            self.units.to_string(),
            self.lease.as_millis().to_string(),
            self.servers.join(","),
        ];
        let trust = self.trust.iter().flat_map(|(ca, token)| [ca.clone(), token.clone()]);
        words.into_iter().chain(trust).collect()
    }

    fn from_words(words: &[String]) -> Option<Orders> {
        let [seed, clients, pools, units, lease, servers, trust @ ..] = words else { return None };
        let trust = match trust {
            [ca, token] => Some((ca.clone(), token.clone())),
            _ => None,
        };
        let list = |text: &str| text.split(',').map(String::from).collect();
        Some(Orders {
            seed: seed.parse().ok()?,
            clients: clients.parse().ok()?,
            pools: list(pools),
            units: units.parse().ok()?,
            lease: Duration::from_millis(lease.parse().ok()?),
            servers: list(servers),
            trust,
        })
    }

    /// What a client shows and whom it trusts.
    fn options(&self, name: String) -> Options {
        let Some((ca, token)) = &self.trust else {
            return Options { name, ..Options::default() };
        };
        let ca = std::fs::read(ca).expect("the harness names a file");
        let token = std::fs::read_to_string(token).expect("the harness names a file");
        let tls = Some(Tls::trusting(&ca).expect("an authority"));
        let token = Some(Token(token.trim().to_owned()));
        Options { name, tls, token, ..Options::default() }
    }
}

/// The process.
pub(crate) fn main(words: &[String]) {
    let orders = Arc::new(Orders::from_words(words).expect("the harness gives sensible orders"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let enough = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..orders.clients)
            .map(|number| tokio::spawn(live(Arc::clone(&orders), number, Arc::clone(&enough))))
            .collect();
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        enough.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.expect("clients do not panic");
        }
    });
}

/// One client and its claims.
struct Diary {
    origin: u64,
    serial: u64,
}

impl Diary {
    fn write(&self, pool: &str, claim: ClaimId, what: What) {
        self.write_at(clock::now(), pool, claim, what);
    }

    fn write_at(&self, at: u64, pool: &str, claim: ClaimId, what: What) {
        let line = Line { at, pool: pool.to_owned(), claim: claim.0, what };
        // In one piece: we may be killed at any moment.
        let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
    }

    fn next_id(&mut self) -> ClaimId {
        self.serial += 1;
        ClaimId::from_halves(self.origin, self.serial)
    }
}

async fn live(orders: Arc<Orders>, number: u64, enough: Arc<AtomicBool>) {
    let mut dice = Dice::new(orders.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    let mut diary = Diary { origin: dice.draw(), serial: 0 };
    let client = loop {
        let options = orders.options(format!("client {number}"));
        match Client::connect_with(&orders.servers, options).await {
            Ok(client) => break client,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    while !enough.load(Ordering::Relaxed) {
        let pool = &orders.pools[dice.below(orders.pools.len() as u64) as usize];
        let units = dice.below(u64::from(orders.units)) as u32 + 1;
        let id = diary.next_id();
        let acquire = client.pool(pool).named(id);
        diary.write(pool, id, What::Claimed { units });
        if let Some(grant) = claim(&diary, pool, acquire, units, &orders, &mut dice).await {
            let long = (orders.lease * 2).min(LONG_HOLD);
            let most = if dice.one_in(8) { long } else { orders.lease / 50 };
            hold(&diary, pool, grant, dice.span(most), dice.one_in(3)).await;
        }
    }
    for pool in &orders.pools {
        loop {
            let id = diary.next_id();
            diary.write(pool, id, What::Claimed { units: 1 });
            match client.pool(pool).named(id).acquire().await {
                Ok(grant) => {
                    note_grant(&diary, pool, &grant);
                    hold(&diary, pool, grant, Duration::ZERO, false).await;
                    break;
                }
                Err(error) => note_error(&diary, pool, id, &error),
            }
        }
    }
    client.settle().await;
}

/// Claims in one of three ways: patiently, with a time limit, or changing its mind.
async fn claim(
    diary: &Diary,
    pool: &str,
    acquire: Pool,
    units: u32,
    orders: &Orders,
    dice: &mut Dice,
) -> Option<Grant> {
    let patience = dice.span(orders.lease * 3);
    let outcome = match dice.below(4) {
        0 => acquire.acquire_timeout(units, patience).await,
        1 => match tokio::time::timeout(patience, acquire.acquire_many(units)).await {
            Ok(outcome) => outcome,
            // The future was dropped: nobody will ever see what becomes of the claim.
            Err(_) => {
                diary.write(pool, diary.last(), What::Abandoned);
                return None;
            }
        },
        _ => acquire.acquire_many(units).await,
    };
    match outcome {
        Ok(grant) => {
            note_grant(diary, pool, &grant);
            Some(grant)
        }
        Err(error) => {
            note_error(diary, pool, diary.last(), &error);
            None
        }
    }
}

impl Diary {
    fn last(&self) -> ClaimId {
        ClaimId::from_halves(self.origin, self.serial)
    }
}

fn note_grant(diary: &Diary, pool: &str, grant: &Grant) {
    // The deadline is read first: a later one would be believed too early.
    let deadline = clock::reading(grant.deadline());
    // Where units have no names they are numbered, so that the history has as many.
    let shares = match grant.shares() {
        [] => (0..grant.count() as u32).map(|unit| (unit, 0)).collect(),
        named => named.iter().map(|share| (share.unit, share.fence)).collect(),
    };
    diary.write(pool, grant.id(), What::Granted { deadline, shares });
}

fn note_error(diary: &Diary, pool: &str, id: ClaimId, error: &AcquireError) {
    let what = match error {
        AcquireError::Timeout { .. } => What::Cancelled,
        AcquireError::Unknown { .. }
        | AcquireError::Unreachable { .. }
        | AcquireError::Lost { .. }
        | AcquireError::Ended { .. } => What::Abandoned,
        unexpected => panic!("claim {id}: {unexpected}"),
    };
    diary.write(pool, id, what);
}

/// Uses the units for so long, writing down how the deadline moves, and gives them back.
async fn hold(diary: &Diary, pool: &str, mut grant: Grant, span: Duration, drop_it: bool) {
    let until = Instant::now() + span;
    let mut over = pin!(tokio::time::sleep_until(until.into()));
    loop {
        tokio::select! {
            () = &mut over => break,
            () = grant.changed() => {
                if let Some(lost) = grant.is_lost() {
                    let told = matches!(lost, Lost::Told { .. } | Lost::Revoked { .. });
                    diary.write(pool, grant.id(), What::Stopped { told });
                    return;
                }
                let deadline = clock::reading(grant.deadline());
                diary.write(pool, grant.id(), What::Extended { deadline });
            }
        }
    }
    diary.write(pool, grant.id(), What::Stopped { told: false });
    if !drop_it {
        // Whether it was acknowledged is not our matter: the units are not used any more.
        let _ = grant.release().await;
    }
}

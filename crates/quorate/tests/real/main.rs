//! Real nodes, real clients, real faults, and the laws.
//!
//! `quorate serve` processes on loopback serve processes full of clients, while nodes and clients
//! are killed and paused and connections are cut, slowed down, blocked and replayed. Clients write
//! down what they did and were told; the laws of `quorate-laws` judge it.
//!
//! | file | does |
//! |---|---|
//! | `cluster.rs` | node processes, their files and ports |
//! | `client.rs` | a process of clients (this program again) |
//! | `planted.rs` | a node that breaks a rule (this program again) |
//! | `proxy.rs` | the wire between them |
//! | `amended.rs` | a pool is changed under load, and while its node is killed |
//! | `broadcast.rs` | nodes that broadcast are killed, stand still and lose their connections |
//! | `fleet.rs` | nodes are restarted in turn under clients that hold, wait in line and work |
//! | `importing.rs` | a cluster of files gets its charter while it runs, and nodes are killed meanwhile |
//! | `joining.rs` | a cluster grows from nothing: machines are invited and join |
//! | `majority.rs` | most members are lost for good, or all, and one goes on; a cluster of files gets a charter |
//! | `named.rs` | what very many pools of the charter cost: measured, on request only |
//! | `members.rs` | members give away what they decide, are removed, and come again |
//! | `moving.rs` | the node that decides is killed and stopped, and another decides |
//! | `minority.rs` | as many nodes as quorums can do without are killed |
//! | `rolling.rs` | nodes are restarted one after the other, and no job notices |
//! | `sealed.rs` | nodes with certificates: the leader of the charter sleeps, is removed, and is cut off |
//! | `shadows.rs` | whoever decides and its shadow are killed, and nobody waits for a lease |
//! | `tokens.rs` | tokens are made, narrowed and taken away while nodes come and go |
//! | `ring.rs` | a node and then the root of a ring are killed |
//! | `trial.rs` | one seeded trial: faults, healing, judgement |
//! | `recovery.rs` | how long until a cluster grants again: measured, on request only |
//! | `etcd.rs` | how long etcd's lock is away when its leader is: measured beside `moves.rs` |
//! | `moves.rs` | how long a pool grants nothing when its seat moves: measured, on request only |
//! | `flood.rs` | how long renewals take while strangers knock: measured, on request only |
//! | `hardship.rs` | one hardship at a time, with what must follow from it |
//! | `lost.rs` | data directories are lost |
//! | `standing.rs` | holds without a lease, FleetLock, Terraform's lock |
//! | `history.rs` | what clients wrote down, and what the laws say to it |
//!
//! The harness is checked too: histories with planted bugs, nodes with planted bugs (they tell
//! their clients a later deadline; they forget their past), and a real node that is lied to about
//! its past (its disk is put back to before its first start), must be found.
//!
//! A seed decides which faults happen in which order, not how the machine schedules processes: it
//! may take a few runs to see a failure again.

mod amended;
mod broadcast;
mod client;
mod clock;
mod cluster;
mod etcd;
mod fleet;
mod flood;
mod hardship;
mod history;
mod importing;
mod joining;
mod lost;
mod majority;
mod members;
mod minority;
mod moves;
mod moving;
mod named;
mod planted;
#[path = "../ports/mod.rs"]
mod ports;
mod proxy;
mod recovery;
mod ring;
mod rolling;
mod sealed;
mod shadows;
mod standing;
mod tokens;
mod trial;

use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use cluster::Protocol;
use quorate_node::Bug;
use trial::{Harm, Plan};

const HELP: &str = "\
cargo test -p quorate --test real -- [NAME] [OPTIONS]

  --seed N       this seed instead of a few fixed ones, or other minorities
  --protocol P   central, moving (central with a seat that moves), named, count, naming or ticket
                 (arbiter), table, broadcast, leased (broadcast that counts nodes out) or ring,
                 instead of each in turn
  --seconds N    how long faults happen in each trial
  --minutes N    fresh seeds for so long
  --recovery N   instead of tests: N rounds of one node killed, paused and cut off, and how long it
                 took until all units could be had again
  --moves N      instead of tests: N rounds of the node that decides killed and stopped, and how
                 long nobody was granted anything; beside etcd, if it is installed
  --fleet        instead of tests: 5 nodes restarted in turn under 200 clients, and the longest
                 pause that caused
  --named N      instead of tests: what N pools by name in the charter cost three nodes
  --flood N      instead of tests: how long renewals take beside floods of N seconds each
  --nodes PATH   with --recovery or --named: the command that nodes run, to compare with another
                 build";

/// What was asked for.
#[derive(Default)]
struct Wish {
    name: Option<String>,
    seed: Option<u64>,
    seconds: Option<u64>,
    minutes: Option<u64>,
    protocol: Option<Protocol>,
    recovery: Option<u64>,
    fleet: bool,
    flood: Option<u64>,
    named: Option<u64>,
    moves: Option<u64>,
    nodes: Option<String>,
}

const NAMES: [&str; 24] = [
    "planted_bugs_in_histories_are_found",
    "a_node_that_is_lied_to_about_its_past_is_found",
    "broken_connections_alone_cost_nobody_a_grant",
    "the_laws_hold_whatever_happens_to_nodes_clients_and_wires",
    "a_ring_goes_on_without_a_node_and_says_that_its_root_is_gone",
    "nodes_with_planted_bugs_are_found",
    "whoever_stands_still_longer_than_the_lease_has_lost_its_grant",
    "a_node_whose_disk_fails_stops_and_says_why",
    "quorums_go_on_without_a_minority_and_holders_keep_theirs",
    "broadcast_goes_on_without_nodes_and_hands_out_no_unit_too_many",
    "a_lost_directory_is_never_taken_for_a_new_cluster",
    "no_job_is_lost_while_nodes_are_restarted_one_after_the_other",
    "another_node_decides_when_the_one_that_did_is_gone",
    "standing_holds_outlive_everything_and_tools_can_use_them",
    "members_drain_leave_and_come_again_and_jobs_go_on",
    "a_charter_goes_on_without_its_majority_and_from_a_backup",
    "a_leader_that_sleeps_is_removed_and_cut_off_over_tls",
    "a_pool_changes_under_load_and_while_its_node_is_killed",
    "a_cluster_grows_from_one_machine_while_it_is_used",
    "a_shadow_decides_at_once_whoever_dies_and_jobs_go_on",
    "every_grant_and_claim_outlives_a_restart_of_all_nodes_in_turn",
    "a_cluster_of_files_gets_a_charter_and_nothing_is_given_away_early",
    "a_cluster_of_files_gets_a_charter_while_it_runs",
    "every_node_obeys_what_became_of_a_token",
];

type Trial = Pin<Box<dyn Future<Output = ()> + Send>>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "client") {
        return client::main(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "node") {
        return planted::main(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "flooder") {
        return flood::flooder(&words[1..]);
    }
    if words.iter().any(|word| word == "--list") {
        NAMES.iter().for_each(|name| println!("{name}: test"));
        return;
    }
    let wish = read(&words);
    let wanted = |name: &str| wish.name.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if wish.fleet {
        return runtime.block_on(fleet::restarts("fleet", fleet::FULL));
    }
    let program = Path::new(wish.nodes.as_deref().unwrap_or(env!("CARGO_BIN_EXE_quorate")));
    if let Some(pools) = wish.named {
        return runtime.block_on(named::measure(pools.max(1), program));
    }
    if let Some(seconds) = wish.flood {
        return runtime.block_on(flood::measure(seconds));
    }
    if let Some(rounds) = wish.moves {
        return runtime.block_on(moves::measure(rounds as usize));
    }
    if let Some(rounds) = wish.recovery {
        let measured = recovery::measure(wish.protocol, rounds as usize, program);
        return runtime.block_on(measured);
    }
    if wanted(NAMES[0]) {
        history::check_the_checker();
        println!("{}: ok", NAMES[0]);
    }
    let seconds = |default: u64| Duration::from_secs(wish.seconds.unwrap_or(default));
    let mut lanes: [Vec<Trial>; 3] = Default::default();
    let mut add = |lane: usize, name: &'static str, trial: Trial| {
        if wanted(name) && wish.minutes.is_none() {
            lanes[lane].push(Box::pin(given_up(name, trial)));
        }
    };
    let plan = |seed, chaos, harm| {
        let (seed, protocol) = (wish.seed.unwrap_or(seed), Protocol::Central);
        Plan { seed, protocol, chaos: seconds(chaos), harm, bug: None }
    };
    add(0, NAMES[1], Box::pin(must_be_found(NAMES[1], plan(1, 6, Harm::Lie))));
    let cuts =
        Plan { protocol: wish.protocol.unwrap_or(Protocol::Central), ..plan(2, 4, Harm::Cuts) };
    add(0, NAMES[2], Box::pin(must_hold(NAMES[2], cuts)));
    for (bug, harm) in
        [(Bug::LateDeadline, Harm::DeadClients), (Bug::NothingBefore, Harm::Restarts)]
    {
        let plan = plan(3, 5, harm);
        add(0, NAMES[5], Box::pin(must_be_found(NAMES[5], Plan { bug: Some(bug), ..plan })));
        // The same faults, and no bug.
        add(0, NAMES[5], Box::pin(must_hold(NAMES[5], plan)));
    }
    add(1, NAMES[4], Box::pin(ring::killed_nodes(NAMES[4])));
    add(1, NAMES[7], Box::pin(hardship::failing_disk(NAMES[7])));
    let turn = wish.seed.unwrap_or(0) as usize;
    add(1, NAMES[8], Box::pin(minority::killed(NAMES[8], turn)));
    add(1, NAMES[9], Box::pin(broadcast::hardships(NAMES[9])));
    // Takes a minute, in which it does hardly anything.
    add(2, NAMES[10], Box::pin(lost::directories(NAMES[10])));
    add(1, NAMES[11], Box::pin(rolling::restarts(NAMES[11])));
    add(0, NAMES[12], Box::pin(moving::seats(NAMES[12])));
    add(2, NAMES[13], Box::pin(standing::holds(NAMES[13])));
    add(2, NAMES[14], Box::pin(members::members(NAMES[14])));
    add(2, NAMES[15], Box::pin(majority::lost(NAMES[15])));
    add(0, NAMES[16], Box::pin(sealed::leader(NAMES[16])));
    add(1, NAMES[17], Box::pin(amended::amended(NAMES[17])));
    add(1, NAMES[18], Box::pin(joining::joining(NAMES[18])));
    add(2, NAMES[19], Box::pin(shadows::deaths(NAMES[19])));
    add(0, NAMES[20], Box::pin(fleet::restarts(NAMES[20], fleet::SMALL)));
    add(0, NAMES[21], Box::pin(majority::imported(NAMES[21])));
    add(2, NAMES[22], Box::pin(importing::running(NAMES[22])));
    add(1, NAMES[23], Box::pin(tokens::tokens(NAMES[23])));
    // Most of a trial is waiting, so two go on at a time.
    let started = lanes.map(|lane| {
        runtime.spawn(async {
            for trial in lane {
                trial.await;
            }
        })
    });
    if wanted(NAMES[6]) && wish.minutes.is_none() {
        runtime.block_on(hardship::standing_still(NAMES[6]));
    }
    for lane in started {
        runtime.block_on(lane).expect("it says above what is wrong");
    }
    if wanted(NAMES[3]) {
        let name = NAMES[3];
        let everything = |protocol, seed, chaos| {
            let harm = Harm::Everything;
            let plan = Plan { seed, protocol, chaos, harm, bug: None };
            runtime.block_on(must_hold(name, plan));
        };
        let each = || Protocol::ALL.into_iter().filter(|p| wish.protocol.is_none_or(|q| *p == q));
        match (wish.minutes, wish.seed) {
            (Some(minutes), first) => {
                let until = Instant::now() + Duration::from_secs(60 * minutes);
                let first = first.unwrap_or_else(clock::now);
                let all = (first..).flat_map(|seed| each().map(move |protocol| (protocol, seed)));
                for (protocol, seed) in all.take_while(|_| Instant::now() < until) {
                    everything(protocol, seed, seconds(7));
                }
            }
            (None, Some(seed)) => each().for_each(|p| everything(p, seed, seconds(7))),
            (None, None) => {
                // Most of a trial is waiting.
                let trials: Vec<_> = each().map(|protocol| (protocol, seconds(4))).collect();
                for few in trials.chunks(4) {
                    let start = |&(protocol, chaos): &(Protocol, Duration)| {
                        let harm = Harm::Everything;
                        let plan = Plan { seed: 11, protocol, chaos, harm, bug: None };
                        runtime.spawn(must_hold(name, plan))
                    };
                    let started: Vec<_> = few.iter().map(start).collect();
                    for trial in started {
                        runtime.block_on(trial).expect("it says above what is wrong");
                    }
                }
            }
        }
    }
}

/// Many times what any trial takes. What waits for something that never comes says its name.
async fn given_up(name: &'static str, trial: Trial) {
    let limit = Duration::from_secs(300);
    tokio::time::timeout(limit, trial)
        .await
        .unwrap_or_else(|_| panic!("{name}: had not ended after {limit:.0?}"));
}

async fn must_hold(name: &'static str, plan: Plan) {
    let began = Instant::now();
    match trial::run(plan).await {
        Ok(report) => {
            let (protocol, seed) = (plan.protocol.name(), plan.seed);
            println!("{name}: ok, {protocol}, seed {seed}: {report}, {:.0?}", began.elapsed());
        }
        Err(why) => panic!("{why}\n{}", again(name, plan)),
    }
}

/// What is wrong can only be noticed if somebody holds units when it matters, as while a liar
/// restarts; in a few seconds with sixteen clients somebody does.
/// Processes are not scheduled by the seed, so a few seeds get a chance.
async fn must_be_found(name: &'static str, plan: Plan) {
    let mut missed = Vec::new();
    for seed in plan.seed..plan.seed + 6 {
        let plan = Plan { seed, ..plan };
        let why = match trial::run(plan).await {
            Ok(report) => {
                missed.push(format!("not found: {report}\n{}", again(name, plan)));
                continue;
            }
            Err(why) => why,
        };
        let law = ["capacity", "exclusivity", "fence order"];
        let found = law.iter().any(|law| why.contains(&format!("law broken: {law}")));
        assert!(found, "found something else: {why}\n{}", again(name, plan));
        let (bug, missed) = (plan.bug.map_or("a lie", planted::name), missed.len());
        let line = why.lines().next().unwrap_or_default();
        return println!("{name}: ok, {bug}, seed {seed}, {missed} missed it: {line}");
    }
    panic!("{}", missed.join("\n"));
}

fn again(name: &str, plan: Plan) -> String {
    let (seed, protocol, seconds) = (plan.seed, plan.protocol.name(), plan.chaos.as_secs());
    format!(
        "again: cargo test -p quorate --test real -- {name} --protocol {protocol} --seed {seed} \
         --seconds {seconds}"
    )
}

/// Options of ours, and those of the standard test runner that make no difference here.
fn read(words: &[String]) -> Wish {
    let mut wish = Wish::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|word| word.parse().ok());
            Some(number.unwrap_or_else(|| usage(&format!("{word} takes a number"))))
        };
        match word.as_str() {
            "--protocol" => wish.protocol = Some(protocol(words.next())),
            "--seed" => wish.seed = number(),
            "--seconds" => wish.seconds = number(),
            "--minutes" => wish.minutes = number(),
            "--recovery" => wish.recovery = number(),
            "--fleet" => wish.fleet = true,
            "--flood" => wish.flood = number(),
            "--moves" => wish.moves = number(),
            "--named" => wish.named = number(),
            "--nodes" => wish.nodes = words.next().cloned(),
            "--nocapture" | "--exact" | "--quiet" | "-q" | "--include-ignored" => {}
            "--ignored" => std::process::exit(0), // Nothing is.
            option if option.starts_with('-') => usage(&format!("not understood: {option}")),
            name => wish.name = Some(name.into()),
        }
    }
    wish
}

fn protocol(name: Option<&String>) -> Protocol {
    let found = name.and_then(|name| Protocol::ALL.into_iter().find(|p| p.name() == name));
    found.unwrap_or_else(|| usage("--protocol takes the name of one"))
}

fn usage(problem: &str) -> ! {
    eprintln!("{problem}\n\n{HELP}");
    std::process::exit(2)
}

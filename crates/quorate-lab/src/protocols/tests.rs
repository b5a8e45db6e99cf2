//! A protocol that nobody but this file has heard of is chosen, simulated and judged; and what the
//! list says of the others can be played.

use clap::{Args as _, FromArgMatches as _};

use super::*;
use toy::Toy;

#[path = "../../../quorate-sim/tests/toy/mod.rs"]
#[allow(dead_code, reason = "the simulator's own tests use the rest of it")]
mod toy;

const TOY: Registered = Registered {
    name: Toy::NAME,
    about: "Node 0 grants in order of arrival",
    does: Does::simulated::<Toy>(),
    variants: &[],
    options: &[],
    swarms: &[""],
};

impl Offered for Toy {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, _: &Options) -> anyhow::Result<toy::Pool> {
        let plan = &plan.pool;
        let lease = quorate_core::Lease::new(plan.lease.unwrap_or_default(), plan.drift_ppm);
        let (units, retry, durable) = (plan.units, plan.retry, plan.durable);
        Ok(toy::Pool { units, lease, retry, durable, mistake: None })
    }
}

fn seeds_of(words: &str) -> seeds::Args {
    let command = seeds::Args::augment_args(clap::Command::new("seeds"));
    let matches = command.try_get_matches_from(words.split(' ')).unwrap();
    seeds::Args::from_arg_matches(&matches).unwrap()
}

#[test]
fn seeds_of_a_registered_protocol_are_played() {
    let mut args = seeds_of("seeds --count 2 --faults none");
    args.swarm.chosen.protocol = TOY;
    assert_eq!(args.swarm.chosen.to_string(), "toy");
    assert_eq!(seeds::run(&args).unwrap(), Outcome::Good);
    assert!(args.swarm.chosen.does().unwrap().check.is_none());
    let mut args = seeds_of("seeds --count 1 --crashes-max 1");
    args.swarm.chosen.protocol = TOY;
    let refused = seeds::run(&args).unwrap_err().to_string();
    assert_eq!(refused, "only broadcast has --crashes-max 1");
}

#[test]
fn every_swarm_of_the_list_is_understood() {
    let swarms = seeds::swarms().unwrap();
    assert_eq!(swarms.len(), REGISTRY.iter().map(|one| one.swarms.len()).sum::<usize>());
    let shown: Vec<String> = swarms.iter().map(|swarm| swarm.chosen.to_string()).collect();
    assert!(shown.contains(&"central --variant labels".to_owned()), "{shown:?}");
    swarms.iter().for_each(|swarm| _ = swarm.chosen.does().unwrap());
}

#[test]
fn options_of_other_protocols_are_refused_by_name() {
    let refused = |words: &str| {
        let chosen = seeds_of(&format!("seeds --count 1 {words}")).swarm.chosen;
        chosen.does().unwrap_err().to_string()
    };
    for (words, says) in [
        ("--variant core", "--variant core is one of ring, not of central"),
        ("--hedge 1", "only arbiter, ticket and table have --hedge 1"),
        ("--protocol ring --reclaim lease", "only broadcast has --reclaim lease"),
    ] {
        assert_eq!(refused(words), says);
    }
}

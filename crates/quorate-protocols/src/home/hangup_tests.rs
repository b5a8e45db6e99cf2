//! Clients hang up while they wait, as their nodes notice, and go on at another node or nowhere:
//! everybody else is served, and nothing is lost.

use quorate_core::{Lease, Protocol};
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use crate::{arbiter, central, table, ticket};

/// Plays seeds of one protocol, among which there must be some in which a node gave up what nobody
/// was there for any more, some in which that had been granted by then, and some in which a node
/// that was started again was known for another.
fn play<P: Protocol>(pool: impl Fn(&Plan) -> P::Pool) {
    let (mut withdrawn, mut unheard, mut greetings) = (0, 0, 0);
    for seed in 0..60 {
        let plan = Plan::swarm(seed, Profile::Hangups, Needs::default());
        if plan.nodes > 10 {
            continue;
        }
        let watch = Watch { strict: true, ..Watch::default() };
        let report = run::<P>(&plan, &pool(&plan), watch);
        if let Verdict::Broken(breach) = &report.verdict {
            let line = report.replay_line(&swarm_command(P::NAME, seed, Profile::Hangups));
            panic!("{}: {breach}\n{line}", P::NAME);
        }
        withdrawn += report.measures.withdrawn;
        unheard += report.measures.unheard;
        greetings += report.measures.greetings;
    }
    let (name, often) = (P::NAME, withdrawn > 100 && unheard > 10 && greetings > 0);
    assert!(often, "{name}: {withdrawn}, {unheard}, {greetings}");
}

fn lease(plan: &Plan) -> Lease {
    Lease::new(plan.pool.lease.expect("the swarm has leases"), plan.pool.drift_ppm)
}

#[test]
fn central_serves_everybody_else() {
    play::<central::Central>(|plan| central::tests::seeds::pool(plan, None));
}

#[test]
fn so_does_table() {
    play::<table::Table>(|plan| {
        let goods = central::tests::seeds::pool(plan, None).goods;
        table::Pool::drawn(goods, plan.nodes, plan.seed)
    });
}

#[test]
fn so_do_arbiters_that_count() {
    play::<arbiter::Arbiter>(|plan| arbiter::Pool {
        lease: lease(plan),
        retry: plan.pool.retry,
        ..arbiter::Pool::new(plan.pool.units, plan.nodes)
    });
}

#[test]
fn so_do_arbiters_of_named_units() {
    play::<arbiter::Arbiter>(|plan| arbiter::Pool {
        lease: lease(plan),
        retry: plan.pool.retry,
        ..arbiter::Pool::named(plan.pool.units, plan.nodes)
    });
}

#[test]
fn so_do_tickets() {
    play::<ticket::Ticket>(|plan| ticket::Pool {
        lease: lease(plan),
        retry: plan.pool.retry,
        ..ticket::Pool::new(plan.pool.units, plan.nodes)
    });
}

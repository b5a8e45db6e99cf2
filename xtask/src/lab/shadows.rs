//! Whoever decides, and whoever shadows it, is cut off, killed, and cut off from the other alone.
//! The pool goes on each time, and no unit has two holders. Its lease is longer than anybody waits
//! here: what goes on had to wait for none.

use std::path::PathBuf;
use std::time::Instant;

use super::guide::{NODES, Rack};
use super::hold::Access;
use super::joining::{ask, begin, serve, until_voting};
use super::net::{self, Outcome, Process, say};

const POOL: &str = "ci";
const UNITS: u32 = 9;
/// Jobs that hold through everything, one on each machine.
const JOBS: usize = NODES.len();

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    /// The node that decides is cut off from all others.
    SeatCutOff,
    ShadowCutOff,
    /// The two do not reach each other, and the third node reaches both.
    Between,
    /// The shadow does not hear the node that decides, which hears it.
    DeafShadow,
    SeatKilled,
    ShadowKilled,
}

impl Harm {
    fn name(self) -> &'static str {
        match self {
            Harm::SeatCutOff => "the node that decides is cut off",
            Harm::ShadowCutOff => "its shadow is cut off",
            Harm::Between => "the two are cut off from each other",
            Harm::DeafShadow => "the shadow does not hear the node that decides",
            Harm::SeatKilled => "the node that decides is killed",
            Harm::ShadowKilled => "its shadow is killed",
        }
    }
}

/// Who decides over the pool, and who shadows it, when all nodes say the same, and that the shadow
/// knows all grants: one that has just come back may not have heard who does.
fn seat(rack: &Rack) -> Outcome<(String, String)> {
    let said = |name: &str| {
        let said = ask(rack, name, &format!("status {POOL}")).ok()?;
        let line = said.lines().find(|it| it.contains("is its shadow and knows all grants"))?;
        let seat = line.split(' ').next()?;
        let shadow = line.split_once("; ")?.1.split(' ').next()?;
        Some((seat.to_owned(), shadow.to_owned()))
    };
    let mut found = None;
    net::until("all say who decides and who shadows it", || {
        let all = NODES.map(said);
        found = all[0].clone().filter(|_| all.iter().all(|it| *it == all[0]));
        found.is_some()
    })?;
    found.ok_or_else(|| "nobody says who decides".into())
}

fn access(rack: &Rack, name: &str) -> Outcome<Access> {
    let locks = rack.lab.folder().join("locks");
    std::fs::create_dir_all(&locks).map_err(|error| error.to_string())?;
    let socket = rack.host(name).folder.join("quorate-data/quorate.sock");
    let words = vec!["--server".to_owned(), format!("unix:{}", socket.display())];
    Ok(Access { program: rack.program.clone(), words, locks })
}

struct Stage<'a> {
    rack: &'a mut Rack,
    nodes: Vec<Process>,
}

impl Stage<'_> {
    fn kill(&mut self, name: &str) -> Outcome {
        self.node(name).signal("KILL")
    }

    fn node(&mut self, name: &str) -> &mut Process {
        let place = NODES.iter().position(|node| *node == name).expect("one of the three");
        &mut self.nodes[place]
    }

    fn begin(&mut self, harm: Harm, seat: &str, shadow: &str) -> Outcome {
        match harm {
            Harm::SeatCutOff => self.rack.lab.isolate(seat),
            Harm::ShadowCutOff => self.rack.lab.isolate(shadow),
            Harm::Between => self.rack.lab.cut(seat, shadow),
            Harm::DeafShadow => self.rack.lab.one_way(shadow, seat),
            Harm::SeatKilled => self.kill(seat),
            Harm::ShadowKilled => self.kill(shadow),
        }
    }

    /// Everything is as it was before.
    fn end(&mut self, harm: Harm, seat: &str, shadow: &str) -> Outcome {
        self.rack.lab.heal()?;
        let killed = match harm {
            Harm::SeatKilled => Some(seat),
            Harm::ShadowKilled => Some(shadow),
            _ => None,
        };
        if let Some(name) = killed {
            let node = serve(self.rack, name, "")?;
            *self.node(name) = node;
        }
        NODES.iter().try_for_each(|name| until_voting(self.rack, name, NODES.len()))
    }
}

pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    let [.., c] = NODES;
    let nodes = begin(rack)?;
    ask(rack, c, &format!("pool create {POOL} --units {UNITS} --lease 20m"))?;
    let end: PathBuf = rack.lab.folder().join("enough");
    let mut jobs = Vec::new();
    for name in NODES {
        jobs.push(access(rack, name)?.hold(rack.host(name), POOL, &end)?);
    }
    let looks = access(rack, c)?;
    net::until("all jobs hold", || looks.begun() == JOBS)?;
    let mut stage = Stage { rack, nodes };
    let harms = [
        Harm::SeatCutOff,
        Harm::ShadowCutOff,
        Harm::Between,
        Harm::DeafShadow,
        Harm::SeatKilled,
        Harm::ShadowKilled,
    ];
    for harm in harms {
        let (seat, shadow) = seat(stage.rack)?;
        let third = NODES.into_iter().find(|name| *name != seat && *name != shadow);
        let third = third.ok_or("there are three")?;
        stage.begin(harm, &seat, &shadow)?;
        let began = Instant::now();
        // Who is left asks; whoever it goes through may be gone.
        net::until(harm.name(), || {
            let job =
                access(stage.rack, third).and_then(|it| it.passes(stage.rack.host(third), POOL));
            job.is_ok_and(|passed| passed)
        })?;
        let took = began.elapsed();
        stage.end(harm, &seat, &shadow)?;
        looks.judge()?;
        if jobs.iter_mut().any(Process::has_ended) {
            return Err(format!("a job lost its unit when {}", harm.name()));
        }
        say(&format!("    {}: granted again after {took:.1?}", harm.name()));
    }
    // As many as nobody holds can be had at once, and with the others all.
    seat(stage.rack)?;
    std::fs::write(&end, "").map_err(|error| error.to_string())?;
    for job in jobs {
        if job.end() != Some(0) {
            return Err("a job that held did not end well".into());
        }
    }
    looks.all_free(stage.rack.host(c), POOL, UNITS)?;
    Ok(format!(
        "{} harms, {JOBS} jobs held through all of them, and no lease was waited for",
        harms.len()
    ))
}

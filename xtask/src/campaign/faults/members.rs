//! Members that give away what they decide, are removed, replaced and let in again, and pools that
//! are made, while everything runs. Only with a charter: without one all of that stops all members.

use super::charter::seat;
use super::processes::lease;
use super::{Fault, spares};
use crate::campaign::draw::Protocol;
use crate::campaign::stage::Stage;
use crate::lab::net::Outcome;

/// A member, not the one that is asked about it.
fn member(stage: &mut Stage, beat: u32, which: fn(&mut Stage) -> usize) -> usize {
    if beat == 0 {
        stage.chosen = vec![which(stage)];
    }
    stage.some(1)[0]
}

fn any(stage: &mut Stage) -> usize {
    stage.dice.index(stage.nodes.len())
}

/// It drains, and for the last third of the fault it does not any more.
fn drain(stage: &mut Stage, beat: u32, which: fn(&mut Stage) -> usize) -> Outcome {
    let node = member(stage, beat, which);
    match beat {
        0 => stage.drain_member(node, true),
        over if over == lease(stage) * 2 => stage.drain_member(node, false),
        _ => Ok(()),
    }
}

/// A machine joins at once, and where there is another one a lease later.
fn join(stage: &mut Stage, beat: u32, machines: u32) -> Outcome {
    let place = beat.checked_sub(2).filter(|since| since.is_multiple_of(lease(stage)));
    match place.map(|since| since / lease(stage)) {
        Some(place) if place < machines => stage.arrive(),
        _ => stage.welcome(),
    }
}

/// Machines that join are killed a moment later, and start again as they did before.
fn join_and_die(stage: &mut Stage, beat: u32) -> Outcome {
    join(stage, beat, 2)?;
    let last = stage.nodes.len() - 1;
    // Not the members of the beginning.
    if last < stage.draw.hosts {
        return Ok(());
    }
    match (beat % lease(stage)) % 8 {
        3 | 4 if beat < lease(stage) * 2 => stage.restart(last),
        _ => stage.start(last),
    }
}

/// The leader is one, who decides may be another, and the third believes that it decides on.
fn of_five(protocol: Protocol, hosts: usize) -> bool {
    protocol.moves() && hosts >= 5
}

fn unheard(stage: &mut Stage, beat: u32) -> Outcome {
    match beat {
        0 => {
            let (leader, decides) = (stage.leader(), stage.decider());
            let others = 0..stage.nodes.len();
            let mut others = others.filter(|other| ![leader, decides].contains(other));
            let Some(third) = others.next() else { return Ok(()) };
            stage.chosen = vec![decides];
            stage.note(format!("n{third} and the leader, n{leader}, do not hear each other"));
            let [leader, third] = [leader, third].map(|node| stage.nodes[node].name.clone());
            stage.lab.cut(&leader, &third)
        }
        4 => {
            let decides = stage.some(1)[0];
            stage.drain_member(decides, true)
        }
        _ => Ok(()),
    }
}

pub(super) const ALL: &[Fault] = &[
    spares(seat("member-drains", "a member gives away what it decides, for a while", |s, beat| {
        drain(s, beat, any)
    })),
    spares(seat("decider-drains", "the member that decides gives that away", |s, beat| {
        drain(s, beat, Stage::decider)
    })),
    seat("member-removed", "a member is removed while it runs, and let in again", |stage, beat| {
        let node = member(stage, beat, any);
        if beat == 0 { stage.remove_member(node) } else { Ok(()) }
    }),
    seat("leader-removed", "the charter's leader is removed, and let in again", |stage, beat| {
        let node = member(stage, beat, Stage::leader);
        if beat == 0 { stage.remove_member(node) } else { Ok(()) }
    }),
    seat("member-replaced", "a member is lost with its disk, and replaced", |stage, beat| {
        let node = member(stage, beat, any);
        match beat {
            0 => stage.lose_member(node),
            over if over == lease(stage) => stage.replace_member(node),
            _ => Ok(()),
        }
    }),
    seat("removed-and-killed", "a member is removed, and another is killed", |stage, beat| {
        let node = member(stage, beat, any);
        let other = (node + 1) % stage.nodes.len();
        match beat {
            0 => stage.remove_member(node),
            6 if stage.nodes.len() > 3 => stage.kill(other),
            12 => stage.start(other),
            _ => Ok(()),
        }
    }),
    Fault {
        links: true,
        fits: of_five,
        ..seat("leader-unheard", "a node hears nothing of the charter while seats move", unheard)
    },
    Fault {
        joins: 2,
        ..spares(seat(
            "member-joins",
            "machines join under names that nobody had",
            |stage, beat| join(stage, beat, 2),
        ))
    },
    Fault {
        joins: 2,
        ..seat("joins-and-dies", "machines are killed while they join, and go on", join_and_die)
    },
    Fault {
        joins: 1,
        ..seat("joins-without-leader", "a machine joins while leaders are killed", |stage, beat| {
            if beat.is_multiple_of(12) {
                let leader = stage.leader();
                stage.restart(leader)?;
            }
            join(stage, beat, 1)
        })
    },
    Fault {
        joins: 1,
        ..seat("joins-without-decider", "a machine joins while deciders are killed", |s, beat| {
            if beat.is_multiple_of(12) {
                let decider = s.decider();
                s.restart(decider)?;
            }
            join(s, beat, 1)
        })
    },
    spares(seat("pools-made", "pools are made, used and changed under load", |stage, beat| {
        if beat > 0 {
            return Ok(());
        }
        let nodes: Vec<usize> = (0..stage.nodes.len()).collect();
        stage.strangers("makes", &nodes)
    })),
];

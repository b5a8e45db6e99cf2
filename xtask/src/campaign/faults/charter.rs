//! The node that leads the charter, the one that decides, the one that shadows it, and two of
//! them: killed, stopped, standing still, cut off. Only for pools of `central` with a seat that
//! moves; others lose the node that decides by the entries of `processes.rs`.

use super::processes::{lease, pause};
use super::{Fault, fault};
use crate::campaign::draw::Protocol;
use crate::campaign::stage::Stage;
use crate::lab::net::Outcome;

fn chartered(protocol: Protocol, _: usize) -> bool {
    protocol.moves()
}

pub(super) const fn seat(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { fits: chartered, ..fault(name, about, act) }
}

/// The leader, and another node that decides, if there is one.
fn both(stage: &mut Stage) -> Vec<usize> {
    let mut nodes = vec![stage.leader(), stage.decider()];
    nodes.dedup();
    nodes
}

/// What a fault does to nodes that it chose at its first beat.
fn chosen(stage: &mut Stage, beat: u32, who: fn(&mut Stage) -> Vec<usize>) -> Vec<usize> {
    if beat == 0 {
        stage.chosen = who(stage);
    }
    stage.chosen.clone()
}

/// Killed once, or killed and started again every three seconds, whoever it is by then.
fn kill(stage: &mut Stage, beat: u32, who: fn(&mut Stage) -> Vec<usize>, again: bool) -> Outcome {
    let now = if again { beat.is_multiple_of(12) } else { beat == 0 };
    let nodes = if now { who(stage) } else { Vec::new() };
    nodes.iter().try_for_each(|node| stage.kill(*node))?;
    if !again {
        return Ok(());
    }
    nodes.iter().try_for_each(|node| stage.start(*node))
}

fn stand_still(stage: &mut Stage, beat: u32, who: fn(&mut Stage) -> Vec<usize>) -> Outcome {
    let (nodes, beats) = (chosen(stage, beat, who), lease(stage) * 3 / 2);
    pause(stage, beat, &nodes, beats)
}

fn cut_off(stage: &mut Stage, beat: u32, who: fn(&mut Stage) -> Vec<usize>) -> Outcome {
    let nodes = if beat == 0 { who(stage) } else { Vec::new() };
    for node in nodes {
        let name = stage.nodes[node].name.clone();
        stage.note(format!("{name} is cut off"));
        stage.lab.isolate(&name)?;
    }
    Ok(())
}

fn leader(stage: &mut Stage) -> Vec<usize> {
    vec![stage.leader()]
}

/// Whoever would decide at once without the node that decides.
fn shadow(stage: &mut Stage) -> Vec<usize> {
    vec![stage.shadow()]
}

fn with_shadow(stage: &mut Stage) -> Vec<usize> {
    let mut nodes = vec![stage.decider(), stage.shadow()];
    nodes.dedup();
    nodes
}

fn majority(stage: &mut Stage) -> Vec<usize> {
    stage.some(stage.nodes.len() / 2 + 1)
}

pub(super) const ALL: &[Fault] = &[
    seat("kill-leader", "the charter's leader is killed", |stage, beat| {
        kill(stage, beat, leader, false)
    }),
    seat("kill-leaders", "whoever leads the charter is killed and returns", |stage, beat| {
        kill(stage, beat, leader, true)
    }),
    seat(
        "kill-both",
        "the charter's leader and the node that decides are killed",
        |stage, beat| kill(stage, beat, both, false),
    ),
    seat("kill-both-return", "the same, and they return, over and over", |stage, beat| {
        kill(stage, beat, both, true)
    }),
    seat("pause-leader", "the charter's leader stands still", |stage, beat| {
        stand_still(stage, beat, leader)
    }),
    seat("pause-both", "leader and the node that decides stand still", |stage, beat| {
        stand_still(stage, beat, both)
    }),
    Fault {
        links: true,
        ..seat("isolate-leader", "the charter's leader is cut off", |stage, beat| {
            cut_off(stage, beat, leader)
        })
    },
    Fault {
        links: true,
        ..seat("isolate-both", "leader and the node that decides are cut off", |stage, beat| {
            cut_off(stage, beat, both)
        })
    },
    seat("charter-lost", "a majority is killed and returns after a lease", |stage, beat| {
        let nodes = chosen(stage, beat, majority);
        match beat {
            0 => nodes.iter().try_for_each(|node| stage.kill(*node)),
            over if over == lease(stage) => nodes.iter().try_for_each(|node| stage.start(*node)),
            _ => Ok(()),
        }
    }),
    seat(
        "drain-decider",
        "whoever decides is stopped in good order, and returns",
        |stage, beat| {
            if !beat.is_multiple_of(12) {
                return Ok(());
            }
            let node = stage.decider();
            stage.stop(node)?;
            stage.start(node)
        },
    ),
    seat("drain-and-kill", "a seat moves by a stop, and its new node is killed", |stage, beat| {
        if !beat.is_multiple_of(16) {
            return Ok(());
        }
        let node = stage.decider();
        stage.stop(node)?;
        let next = stage.decider();
        if next != node {
            stage.restart(next)?;
        }
        stage.start(node)
    }),
    seat("kill-shadow", "whoever shadows is killed and returns", |stage, beat| {
        kill(stage, beat, shadow, true)
    }),
    seat("kill-with-shadow", "whoever decides is killed with its shadow", |stage, beat| {
        kill(stage, beat, with_shadow, true)
    }),
    seat("kill-then-shadow", "whoever decides is killed, and then who took over", |stage, beat| {
        // Sixteen beats are longer than it takes to miss a node.
        let phase = beat % 32;
        match phase {
            0 => {
                stage.chosen = vec![stage.decider()];
                stage.kill(stage.chosen[0])
            }
            16 => {
                let next = stage.decider();
                stage.restart(next)?;
                stage.start(stage.chosen[0])
            }
            _ => Ok(()),
        }
    }),
    seat("pause-shadow", "whoever shadows stands still", |stage, beat| {
        stand_still(stage, beat, shadow)
    }),
    seat("pause-with-shadow", "decider and shadow stand still", |stage, beat| {
        stand_still(stage, beat, with_shadow)
    }),
    Fault {
        links: true,
        ..seat("isolate-shadow", "whoever shadows is cut off", |stage, beat| {
            cut_off(stage, beat, shadow)
        })
    },
    Fault {
        links: true,
        ..seat("unheard-by-shadow", "decider and shadow do not hear each other", |stage, beat| {
            if beat > 0 {
                return Ok(());
            }
            let [one, other] = [stage.decider(), stage.shadow()];
            let name = |node: usize| stage.nodes[node].name.clone();
            let (one, other) = (name(one), name(other));
            if one == other { Ok(()) } else { stage.lab.cut(&one, &other) }
        })
    },
];

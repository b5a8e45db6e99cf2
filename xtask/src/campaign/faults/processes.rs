//! Nodes and clients that are killed, stopped and made to stand still.

use super::{BEAT, Fault, fault, spares};
use crate::campaign::stage::Stage;
use crate::lab::net::Outcome;

/// Beats in a lease, rounded up.
pub(super) fn lease(stage: &Stage) -> u32 {
    stage.draw.lease.as_millis().div_ceil(BEAT.as_millis()) as u32
}

fn each(stage: &mut Stage, nodes: &[usize], act: fn(&mut Stage, usize) -> Outcome) -> Outcome {
    nodes.iter().try_for_each(|node| act(stage, *node))
}

fn everybody(stage: &Stage) -> Vec<usize> {
    (0..stage.nodes.len()).collect()
}

/// So many nodes, once.
fn kill(stage: &mut Stage, beat: u32, count: usize) -> Outcome {
    let nodes = if beat == 0 { stage.some(count) } else { Vec::new() };
    each(stage, &nodes, Stage::kill)
}

pub(super) fn pause(stage: &mut Stage, beat: u32, nodes: &[usize], beats: u32) -> Outcome {
    match beat {
        0 => each(stage, nodes, Stage::pause),
        over if over == beats => each(stage, nodes, Stage::resume),
        _ => Ok(()),
    }
}

/// One node after the other, each for so many beats.
fn in_turns(stage: &mut Stage, beat: u32, end: fn(&mut Stage, usize) -> Outcome) -> Outcome {
    const BEATS: u32 = 4;
    let count = stage.nodes.len();
    let turn = (beat / BEATS) as usize;
    match beat % BEATS {
        0 => end(stage, turn % count),
        2 => stage.start(turn % count),
        _ => Ok(()),
    }
}

pub(super) const ALL: &[Fault] = &[
    spares(fault("none", "nothing goes wrong", |_, _| Ok(()))),
    fault("kill-one", "a node is killed and stays away", |stage, beat| kill(stage, beat, 1)),
    fault("kill-two", "two nodes are killed and stay away", |stage, beat| kill(stage, beat, 2)),
    fault("kill-minority", "the largest minority is killed", |stage, beat| {
        kill(stage, beat, (stage.nodes.len() - 1) / 2)
    }),
    fault("kill-majority", "the smallest majority is killed", |stage, beat| {
        kill(stage, beat, stage.nodes.len() / 2 + 1)
    }),
    fault("kill-all", "all nodes are killed at once", |stage, beat| {
        kill(stage, beat, stage.nodes.len())
    }),
    fault("kill-all-return", "all nodes are killed and started again at once", |stage, beat| {
        let nodes = if beat == 2 { everybody(stage) } else { Vec::new() };
        each(stage, &nodes, Stage::kill)?;
        each(stage, &nodes, Stage::start)
    }),
    fault("kill-return", "a node is killed and started again at once", |stage, beat| {
        let nodes = if beat.is_multiple_of(8) { stage.some(1) } else { Vec::new() };
        each(stage, &nodes, Stage::restart)
    }),
    fault("kill-in-turns", "one node after the other is killed and returns", |stage, beat| {
        in_turns(stage, beat, Stage::kill)
    }),
    fault("kill-decider", "the node that decides is killed", |stage, beat| {
        if beat > 0 {
            return Ok(());
        }
        let node = stage.decider();
        stage.kill(node)
    }),
    fault("kill-decider-return", "the node that decides is killed and returns", |stage, beat| {
        if !beat.is_multiple_of(12) {
            return Ok(());
        }
        let node = stage.decider();
        stage.restart(node)
    }),
    fault("kill-first", "the first member is killed: the root of a ring", |stage, beat| {
        if beat == 0 { stage.kill(0) } else { Ok(()) }
    }),
    fault("kill-starting", "a node is killed whenever it has just started", |stage, beat| {
        let node = stage.some(1)[0];
        if beat.is_multiple_of(2) { stage.restart(node) } else { Ok(()) }
    }),
    fault("stop-one", "a node is stopped in good order", |stage, beat| {
        let nodes = if beat == 0 { stage.some(1) } else { Vec::new() };
        each(stage, &nodes, Stage::stop)
    }),
    fault("stop-in-turns", "a rolling restart", |stage, beat| in_turns(stage, beat, Stage::stop)),
    fault("stop-all", "all nodes are stopped in good order", |stage, beat| {
        let nodes = if beat == 0 { everybody(stage) } else { Vec::new() };
        each(stage, &nodes, Stage::stop)
    }),
    fault("pause-short", "a node stands still for less than a lease", |stage, beat| {
        let (nodes, beats) = (stage.some(1), lease(stage) * 2 / 3);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-long", "a node stands still for longer than a lease", |stage, beat| {
        let (nodes, beats) = (stage.some(1), lease(stage) * 2);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-two", "two nodes stand still for longer than a lease", |stage, beat| {
        let (nodes, beats) = (stage.some(2), lease(stage) * 2);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-majority", "a majority stands still for longer than a lease", |stage, beat| {
        let (nodes, beats) = (stage.some(stage.nodes.len() / 2 + 1), lease(stage) * 2);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-all-short", "all nodes stand still for less than a lease", |stage, beat| {
        let (nodes, beats) = (everybody(stage), lease(stage) * 2 / 3);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-all-long", "all nodes stand still for longer than a lease", |stage, beat| {
        let (nodes, beats) = (everybody(stage), lease(stage) * 2);
        pause(stage, beat, &nodes, beats)
    }),
    fault("pause-in-turns", "one node after the other stands still", |stage, beat| {
        let (count, beats) = (stage.nodes.len(), lease(stage));
        if !beat.is_multiple_of(beats) {
            return Ok(());
        }
        let turn = (beat / beats) as usize;
        stage.resume((turn + count - 1) % count)?;
        stage.pause(turn % count)
    }),
    fault("pause-decider", "the node that decides stands still for two leases", |stage, beat| {
        if beat == 0 {
            stage.chosen = vec![stage.decider()];
        }
        let (nodes, beats) = (stage.some(1), lease(stage) * 2);
        pause(stage, beat, &nodes, beats)
    }),
    Fault {
        blurs: true,
        ..fault("stutter", "a node stands still for every other quarter second", |stage, beat| {
            let node = stage.some(1)[0];
            if beat.is_multiple_of(2) { stage.pause(node) } else { stage.resume(node) }
        })
    },
    fault(
        "pause-and-kill",
        "a node stands still, and is killed before it goes on",
        |stage, beat| {
            let node = stage.some(1)[0];
            match beat {
                0 => stage.pause(node),
                over if over == lease(stage) * 3 / 2 => stage.restart(node),
                _ => Ok(()),
            }
        },
    ),
    spares(fault(
        "clients-killed",
        "processes of clients are killed with what they hold",
        |stage, beat| {
            if !beat.is_multiple_of(6) || stage.workers.is_empty() {
                return Ok(());
            }
            let worker = stage.dice.index(stage.workers.len());
            stage.replace_worker(worker)
        },
    )),
    spares(fault(
        "clients-paused",
        "clients stand still for longer than a lease",
        |stage, beat| {
            if stage.workers.is_empty() {
                return Ok(());
            }
            let worker = stage.draw.seed as usize % stage.workers.len();
            match beat {
                0 => stage.pause_worker(worker, true),
                over if over == lease(stage) * 3 / 2 => stage.pause_worker(worker, false),
                _ => Ok(()),
            }
        },
    )),
];

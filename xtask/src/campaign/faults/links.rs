//! Links that are cut in every shape, reset, lossy and slow.

use std::time::Duration;

use super::{Fault, fault, spares};
use crate::campaign::stage::Stage;
use crate::lab::net::Outcome;

/// The hosts of clients.
const CLIENTS: [&str; 2] = ["c1", "c2"];

fn name(stage: &Stage, node: usize) -> String {
    stage.nodes[node].name.clone()
}

/// All pairs of nodes for which this is true, cut.
fn cut_where(stage: &mut Stage, apart: impl Fn(usize, usize) -> bool) -> Outcome {
    for a in 0..stage.nodes.len() {
        for b in 0..a {
            if apart(a, b) {
                let (a, b) = (name(stage, a), name(stage, b));
                stage.lab.cut(&a, &b)?;
            }
        }
    }
    stage.note("links between nodes are cut".into());
    Ok(())
}

/// Two nodes, the same on every beat.
fn pair(stage: &mut Stage) -> (String, String) {
    let two = stage.some(2);
    (name(stage, two[0]), name(stage, two[1]))
}

fn once(beat: u32, act: impl FnOnce() -> Outcome) -> Outcome {
    if beat == 0 { act() } else { Ok(()) }
}

/// Cut and healed, in turn.
fn flap(stage: &mut Stage, beat: u32, cut: fn(&mut Stage) -> Outcome) -> Outcome {
    match beat % 6 {
        0 => cut(stage),
        3 => stage.lab.heal(),
        _ => Ok(()),
    }
}

fn all_pairs(stage: &Stage) -> Vec<(String, String)> {
    let count = stage.nodes.len();
    (0..count)
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .map(|(a, b)| (name(stage, a), name(stage, b)))
        .collect()
}

const fn link(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { links: true, ..fault(name, about, act) }
}

const fn blurred(fault: Fault) -> Fault {
    Fault { blurs: true, ..fault }
}

/// Of links that only clients use.
const fn clients(fault: Fault) -> Fault {
    spares(blurred(fault))
}

pub(super) const ALL: &[Fault] = &[
    link("cut-link", "two nodes do not hear each other", |stage, beat| {
        once(beat, || {
            let (a, b) = pair(stage);
            stage.lab.cut(&a, &b)
        })
    }),
    link("cut-one-way", "a node does not hear another, which hears it", |stage, beat| {
        once(beat, || {
            let (a, b) = pair(stage);
            stage.lab.one_way(&a, &b)
        })
    }),
    link("isolate-one", "a node is cut off from everybody", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            let node = name(stage, node);
            stage.lab.isolate(&node)
        })
    }),
    link("isolate-decider", "the node that decides is cut off from everybody", |stage, beat| {
        once(beat, || {
            let node = stage.decider();
            let node = name(stage, node);
            stage.lab.isolate(&node)
        })
    }),
    link("isolate-deaf", "a node hears nobody, and is heard", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            let deaf = name(stage, node);
            let others: Vec<String> =
                stage.lab.hosts().iter().map(|host| host.name.clone()).collect();
            others
                .iter()
                .filter(|other| **other != deaf)
                .try_for_each(|other| stage.lab.one_way(&deaf, other))
        })
    }),
    link("isolate-mute", "a node hears everybody, and is not heard", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            let mute = name(stage, node);
            let others: Vec<String> =
                stage.lab.hosts().iter().map(|host| host.name.clone()).collect();
            others
                .iter()
                .filter(|other| **other != mute)
                .try_for_each(|other| stage.lab.one_way(other, &mute))
        })
    }),
    link("peers-away", "a node is cut off from nodes, and clients reach it", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            cut_where(stage, |a, b| a == node || b == node)
        })
    }),
    link("halves", "a majority and a minority do not hear each other", |stage, beat| {
        once(beat, || {
            let half = stage.nodes.len() / 2;
            cut_where(stage, |a, b| (a <= half) != (b <= half))
        })
    }),
    link("shattered", "no node hears another", |stage, beat| {
        once(beat, || cut_where(stage, |_, _| true))
    }),
    link("neighbours", "nodes hear only the next and the one before", |stage, beat| {
        once(beat, || {
            let count = stage.nodes.len();
            // Of three, all are neighbours: the ring is opened.
            let apart = move |a: usize, b: usize| {
                let far = (a + count - b) % count;
                if count == 3 { (a, b) == (2, 0) } else { far != 1 && far != count - 1 }
            };
            cut_where(stage, apart)
        })
    }),
    link("bridge", "two halves hear each other through one node only", |stage, beat| {
        once(beat, || {
            let middle = stage.nodes.len() / 2;
            cut_where(stage, |a, b| a > middle && b < middle)
        })
    }),
    link("moving-cut", "another node is cut off from the others every second", |stage, beat| {
        if !beat.is_multiple_of(4) {
            return Ok(());
        }
        stage.lab.heal()?;
        let node = (beat / 4) as usize % stage.nodes.len();
        cut_where(stage, |a, b| a == node || b == node)
    }),
    blurred(link("flapping-link", "a link comes and goes", |stage, beat| {
        flap(stage, beat, |stage| {
            let (a, b) = pair(stage);
            stage.lab.cut(&a, &b)
        })
    })),
    blurred(link("flapping-node", "a node's links come and go", |stage, beat| {
        flap(stage, beat, |stage| {
            let node = stage.some(1)[0];
            let node = name(stage, node);
            stage.lab.isolate(&node)
        })
    })),
    blurred(link("flapping-halves", "a partition comes and goes", |stage, beat| {
        flap(stage, beat, |stage| {
            let half = stage.nodes.len() / 2;
            cut_where(stage, |a, b| (a <= half) != (b <= half))
        })
    })),
    link("reset-link", "connections of two nodes are reset, and refused", |stage, beat| {
        once(beat, || {
            let (a, b) = pair(stage);
            stage.lab.reset(&a, &b)
        })
    }),
    blurred(link("reset-links", "connections of nodes are reset over and over", |stage, beat| {
        flap(stage, beat, |stage| {
            all_pairs(stage).iter().try_for_each(|(a, b)| stage.lab.reset(a, b))
        })
    })),
    clients(link(
        "reset-clients",
        "connections of clients are reset over and over",
        |stage, beat| match beat % 4 {
            0 => {
                for node in 0..stage.nodes.len() {
                    let node = name(stage, node);
                    CLIENTS.iter().try_for_each(|host| stage.lab.reset(host, &node))?;
                }
                Ok(())
            }
            1 => stage.lab.heal(),
            _ => Ok(()),
        },
    )),
    blurred(link("lossy-links", "a tenth of the packets between nodes is lost", |stage, beat| {
        once(beat, || all_pairs(stage).iter().try_for_each(|(a, b)| stage.lab.lossy(a, b, 0.1)))
    })),
    blurred(link("lossy-node", "a third of what a node hears and says is lost", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            let node = name(stage, node);
            let others: Vec<String> =
                stage.lab.hosts().iter().map(|host| host.name.clone()).collect();
            others
                .iter()
                .filter(|other| **other != node)
                .try_for_each(|other| stage.lab.lossy(&node, other, 0.3))
        })
    })),
    clients(link(
        "lossy-clients",
        "a fifth of what clients hear and say is lost",
        |stage, beat| {
            once(beat, || {
                for node in 0..stage.nodes.len() {
                    let node = name(stage, node);
                    CLIENTS.iter().try_for_each(|host| stage.lab.lossy(&node, host, 0.2))?;
                }
                Ok(())
            })
        },
    )),
    blurred(link("slow-link", "two nodes are 80 ms apart", |stage, beat| {
        once(beat, || {
            let (a, b) = pair(stage);
            stage.lab.slow(&a, &b, Duration::from_millis(80))
        })
    })),
    blurred(link("very-slow-link", "two nodes are 600 ms apart", |stage, beat| {
        once(beat, || {
            let (a, b) = pair(stage);
            stage.lab.slow(&a, &b, Duration::from_millis(600))
        })
    })),
    blurred(link("narrow", "a node can send 64 kbit/s", |stage, beat| {
        once(beat, || {
            let node = stage.some(1)[0];
            let node = name(stage, node);
            stage.lab.narrow(&node, 64)
        })
    })),
    spares(link("clients-cut", "a host of clients is cut off", |stage, beat| {
        once(beat, || {
            stage.note("c1 is cut off".into());
            stage.lab.isolate(CLIENTS[0])
        })
    })),
    link("half-open", "a node is killed while nobody hears it, and returns", |stage, beat| {
        // Its peers keep connections of which it knows nothing.
        let node = stage.some(1)[0];
        let host = name(stage, node);
        match beat {
            0 => stage.lab.isolate(&host),
            1 => stage.kill(node),
            5 => {
                stage.lab.heal()?;
                stage.start(node)
            }
            _ => Ok(()),
        }
    }),
    link("cut-and-restart", "nodes are restarted on both sides of a partition", |stage, beat| {
        let half = stage.nodes.len() / 2;
        match beat {
            0 => cut_where(stage, |a, b| (a <= half) != (b <= half)),
            4 => stage.restart(0),
            8 => stage.restart(stage.nodes.len() - 1),
            _ => Ok(()),
        }
    }),
];

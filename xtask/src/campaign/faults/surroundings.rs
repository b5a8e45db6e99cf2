//! Disks, clocks, limits, strangers, files that change, other builds.

use std::process::Command;

use super::processes::lease;
use super::{Fault, fault};
use crate::campaign::draw::Protocol;
use crate::campaign::json::Json;
use crate::campaign::stage::{POOL, Stage};
use crate::lab::net::{self, Outcome};

const fn disk(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { disk: true, blurs: true, ..fault(name, about, act) }
}

/// For pools, or a charter, that are written down.
const fn written(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { fits: is_written, ..disk(name, about, act) }
}

fn is_written(protocol: Protocol, _: usize) -> bool {
    protocol.can_be_durable() || protocol.moves()
}

/// By libfaketime, which changes timers and the day. The clock of leases is read from the kernel,
/// past it: where that is to change too, the node is one of the test program, which can do it.
const fn clock(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { clock: true, ..fault(name, about, act) }
}

/// All clocks of a node, by more than is declared: what is said of units is not promised then.
const fn beyond(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { beyond: true, real: true, ..fault(name, about, act) }
}

const fn robs(fault: Fault) -> Fault {
    Fault { robs: true, files: true, ..fault }
}

/// Processors and sockets are somebody else's.
const fn crowd(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { blurs: true, spares: true, ..fault(name, about, act) }
}

fn strangers(stage: &mut Stage, beat: u32, kind: &str) -> Outcome {
    if beat > 0 {
        return Ok(());
    }
    let nodes: Vec<usize> = (0..stage.nodes.len()).collect();
    stage.strangers(kind, &nodes)
}

fn voting(protocol: Protocol, _: usize) -> bool {
    protocol.votes()
}

/// A member that lost its part of the charter does not come back under its name: docs/charter.md.
fn unchartered(protocol: Protocol, _: usize) -> bool {
    !protocol.moves()
}

/// One node speaks another version from the beginning to the end, of a charter perhaps the one that
/// leads it or decides. The others say so by its name, and go on (docs/operations.md).
fn other_wire(stage: &mut Stage, beat: u32) -> Outcome {
    if beat == 0 {
        let odd = match stage.dice.index(3) {
            0 => stage.leader(),
            1 => stage.decider(),
            _ => stage.dice.index(stage.nodes.len()),
        };
        stage.chosen = vec![odd];
        stage.note(format!("n{odd} speaks the next version from now on"));
        return stage.restart_as(odd, "next-wire", &[]);
    }
    // Where nothing else happens, they have known it for a lease by now.
    if beat != lease(stage) * 2 || stage.draw.faults.len() > 1 {
        return Ok(());
    }
    let odd = stage.chosen[0];
    let name = stage.nodes[odd].member.clone();
    let others = (0..stage.nodes.len()).filter(|other| *other != odd);
    let said = |node: usize| -> Outcome<String> {
        let shown = Json::parse(&stage.ask(node, "/v1/node")?).ok_or("no JSON")?;
        let mut peers = shown.get("peers").list().iter();
        let row = peers.find(|row| row.get("name").text() == name);
        Ok(row.map(|row| row.get("problem").text().to_owned()).unwrap_or_default())
    };
    let goes_on = stage.draw.protocol.moves() || stage.draw.protocol.outlives_one();
    for node in others {
        let problem = said(node)?;
        if !problem.contains("of the wire") {
            return Err(format!("n{node} does not say what is wrong with {name}: {problem:?}"));
        }
        if goes_on {
            let path = format!("/readyz/pools/{POOL}");
            let why = format!("n{node} goes on without {name}");
            net::until(&why, || stage.ask(node, &path).is_ok())?;
        }
    }
    Ok(())
}

pub(super) const ALL: &[Fault] = &[
    disk("disk-full", "a node's disk is full", |stage, beat| {
        if beat > 0 {
            return Ok(());
        }
        let node = stage.some(1)[0];
        stage.nodes[node].may_end = true;
        let filler = stage.host(node).folder.join("data/filler");
        // It ends when there is no more room.
        let _ = net::output(
            Command::new("dd")
                .args(["if=/dev/zero", "bs=64k"])
                .arg(format!("of={}", filler.display())),
        );
        stage.note("a disk is full".into());
        Ok(())
    }),
    disk("disk-read-only", "a node's disk can only be read", |stage, beat| {
        let node = stage.some(1)[0];
        if beat > 0 {
            return Ok(());
        }
        stage.nodes[node].may_end = true;
        let data = stage.host(node).folder.join("data");
        // The kernel refuses while a file is open for writing: the node is restarted onto it.
        stage.kill(node)?;
        net::done(Command::new("mount").args(["-o", "remount,ro"]).arg(&data))?;
        stage.start(node)
    }),
    disk("disk-full-start", "a node starts on a full disk", |stage, beat| {
        if beat > 0 {
            return Ok(());
        }
        let node = stage.some(1)[0];
        stage.nodes[node].may_end = true;
        stage.kill(node)?;
        let filler = stage.host(node).folder.join("data/filler");
        let _ = net::output(
            Command::new("dd")
                .args(["if=/dev/zero", "bs=64k"])
                .arg(format!("of={}", filler.display())),
        );
        stage.start(node)
    }),
    written("disk-slow", "whatever a node writes down takes 150 ms longer", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.restart_on_slow_disk(node, 150, 0) } else { Ok(()) }
    }),
    written("disks-slow", "whatever is written down takes 60 ms longer", |stage, beat| {
        let nodes = if beat == 0 { 0..stage.nodes.len() } else { 0..0 };
        for node in nodes {
            stage.restart_on_slow_disk(node, 60, 0)?;
        }
        Ok(())
    }),
    written(
        "disk-stalls",
        "a node's disk stands still, now and then, for over a lease",
        |stage, beat| {
            let node = stage.decider();
            let stall = stage.draw.lease.as_millis() as u64 * 5 / 4;
            if beat == 0 { stage.restart_on_slow_disk(node, 5, stall) } else { Ok(()) }
        },
    ),
    fault("disk-nth-write", "a node's files must not grow any more", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.limit(node, "--fsize=70000") } else { Ok(()) }
    }),
    Fault {
        forgets: true,
        fits: unchartered,
        ..fault("data-wiped", "a node is killed and its directory emptied", |stage, beat| {
            let node = stage.some(1)[0];
            if beat > 0 {
                return Ok(());
            }
            stage.kill(node)?;
            stage.empty(node)?;
            stage.start(node)
        })
    },
    Fault {
        forgets: true,
        robs: true,
        fits: unchartered,
        ..fault("data-wiped-all", "all directories are emptied", |stage, beat| {
            let nodes = if beat == 0 { 0..stage.nodes.len() } else { 0..0 };
            for node in nodes.clone() {
                stage.kill(node)?;
                stage.empty(node)?;
            }
            nodes.into_iter().try_for_each(|node| stage.start(node))
        })
    },
    Fault {
        forgets: true,
        robs: true,
        // One node alone would go on from there: docs/configuration.md says so.
        fits: voting,
        ..fault("old-copy", "an old copy of a directory is put back", |stage, beat| {
            let node = stage.some(1)[0];
            let folder = stage.host(node).folder.clone();
            match beat {
                0 => {
                    stage.restart(node)?;
                    let (data, copy) = (folder.join("data"), folder.join("copy"));
                    net::done(Command::new("cp").arg("-a").arg(data).arg(copy))
                }
                6 => stage.restart(node),
                10 => {
                    stage.kill(node)?;
                    stage.empty(node)?;
                    let (data, copy) = (folder.join("data"), folder.join("copy/."));
                    net::done(Command::new("cp").arg("-a").arg(copy).arg(data))?;
                    stage.start(node)
                }
                // As docs/configuration.md advises.
                16 => {
                    stage.kill(node)?;
                    stage.empty(node)?;
                    stage.start(node)
                }
                _ => Ok(()),
            }
        })
    },
    clock("clock-fast", "a node's timers run 4 % fast", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.restart_with_clock(node, "+0 x1.04", true) } else { Ok(()) }
    }),
    clock("clock-slow", "a node's timers run 4 % slow", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.restart_with_clock(node, "+0 x0.96", true) } else { Ok(()) }
    }),
    clock("clocks-apart", "timers of two nodes run fast and slow", |stage, beat| {
        let two = stage.some(2);
        if beat > 0 {
            return Ok(());
        }
        stage.restart_with_clock(two[0], "+0 x1.04", true)?;
        stage.restart_with_clock(two[1], "+0 x0.96", true)
    }),
    Fault {
        real: true,
        ..clock("lease-clock-fast", "all clocks of a node run 4 % fast", |stage, beat| {
            let node = stage.some(1)[0];
            if beat == 0 { stage.restart_at_rate(node, "clock-fast", "1.04") } else { Ok(()) }
        })
    },
    Fault {
        real: true,
        ..clock("lease-clock-slow", "all clocks of a node run 4 % slow", |stage, beat| {
            let node = stage.some(1)[0];
            if beat == 0 { stage.restart_at_rate(node, "clock-slow", "0.96") } else { Ok(()) }
        })
    },
    Fault {
        real: true,
        ..clock("lease-clocks-apart", "all clocks of two nodes run fast and slow", |stage, beat| {
            let two = stage.some(2);
            if beat > 0 {
                return Ok(());
            }
            stage.restart_at_rate(two[0], "clock-fast", "1.04")?;
            stage.restart_at_rate(two[1], "clock-slow", "0.96")
        })
    },
    beyond("drift-slow", "a node's clocks run 4 % slow, and pools do not know", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.restart_at_rate(node, "clock-slow", "0.96") } else { Ok(()) }
    }),
    beyond("drift-double", "the clocks of who decides run twice as fast", |stage, beat| {
        if beat > 0 {
            return Ok(());
        }
        let node = stage.decider();
        stage.restart_at_rate(node, "clock-double", "2.0")
    }),
    clock("day-later", "a node is restarted, and its day is tomorrow", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.restart_with_clock(node, "+1d", false) } else { Ok(()) }
    }),
    fault("other-boot", "a node is restarted, and counts from another boot", |stage, beat| {
        let node = stage.some(1)[0];
        let before = ["unshare", "--time", "--boottime", "90000", "--monotonic", "90000"];
        if beat == 0 { stage.restart_oddly(node, &before, &[]) } else { Ok(()) }
    }),
    fault("few-descriptors", "a node may open hardly any files", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.limit(node, "--nofile=40") } else { Ok(()) }
    }),
    fault("little-memory", "a node is given no more memory", |stage, beat| {
        let node = stage.some(1)[0];
        if beat == 0 { stage.limit(node, "--as=150000000") } else { Ok(()) }
    }),
    crowd("busy-machine", "others use all processors", |stage, beat| {
        if beat == 0 { stage.hog().and_then(|()| stage.hog()) } else { Ok(()) }
    }),
    crowd("silent-crowd", "hundreds connect and say nothing", |stage, beat| {
        strangers(stage, beat, "silent")
    }),
    crowd("slow-crowd", "hundreds connect and say a byte at a time", |stage, beat| {
        strangers(stage, beat, "slow")
    }),
    crowd("noise", "malformed bytes on every port", |stage, beat| strangers(stage, beat, "noise")),
    crowd("nonsense", "requests that make no sense", |stage, beat| {
        strangers(stage, beat, "nonsense")
    }),
    crowd("handshakes", "handshakes without end", |stage, beat| {
        strangers(stage, beat, "handshakes")
    }),
    crowd("wrong-tokens", "requests with wrong tokens without end", |stage, beat| {
        strangers(stage, beat, "tokens")
    }),
    crowd("claims-flood", "claims in another pool, which nobody waits for", |stage, beat| {
        strangers(stage, beat, "claims")
    }),
    robs(fault(
        "new-epoch",
        "all nodes are stopped and start under the next epoch",
        |stage, beat| {
            if beat != 2 {
                return Ok(());
            }
            let nodes = 0..stage.nodes.len();
            nodes.clone().try_for_each(|node| stage.stop(node))?;
            stage.epoch += 1;
            nodes.clone().try_for_each(|node| stage.configure(node))?;
            nodes.into_iter().try_for_each(|node| stage.start(node))
        },
    )),
    fault("upgrade", "nodes are replaced by another build, one by one (--other)", |stage, beat| {
        let node = (beat / 6) as usize;
        if !beat.is_multiple_of(6) || node >= stage.nodes.len() {
            return Ok(());
        }
        stage.stop(node)?;
        stage.nodes[node].program = stage.tools.other.clone();
        stage.start(node)
    }),
    Fault {
        real: true,
        ..fault("other-wire", "a node speaks another version all the time", other_wire)
    },
    Fault {
        real: true,
        ..fault(
            "next-wire-in-turns",
            "nodes begin to speak another version, one by one",
            |stage, beat| {
                let node = (beat / 6) as usize;
                if !beat.is_multiple_of(6) || node >= stage.nodes.len() {
                    return Ok(());
                }
                stage.note(format!("n{node} speaks the next version from now on"));
                stage.restart_as(node, "next-wire", &[])
            },
        )
    },
    Fault {
        real: true,
        // As docs/operations.md has it.
        ..fault(
            "next-wire",
            "all stop, and start with another version of the wire",
            |stage, beat| {
                if beat != 2 {
                    return Ok(());
                }
                let nodes = 0..stage.nodes.len();
                nodes.clone().try_for_each(|node| stage.stop(node))?;
                nodes.into_iter().try_for_each(|node| stage.restart_as(node, "next-wire", &[]))
            },
        )
    },
];

//! Disks, clocks, limits, strangers, files that change, other builds.

use std::fs;
use std::process::Command;

use super::{Fault, fault};
use crate::campaign::draw::Protocol;
use crate::campaign::stage::Stage;
use crate::lab::net::{self, Outcome};

const fn disk(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { disk: true, ..fault(name, about, act) }
}

/// By libfaketime, which changes timers and the day. The clock of leases is read from the kernel,
/// past it, unless the program was built with `RUSTFLAGS=--cfg=rustix_use_libc`.
const fn clock(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { clock: true, ..fault(name, about, act) }
}

/// Processors and sockets are somebody else's.
const fn crowd(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault { blurs: true, ..fault(name, about, act) }
}

fn empty(stage: &mut Stage, node: usize) -> Outcome {
    let data = stage.host(node).folder.join("data");
    let entries = fs::read_dir(&data).map_err(|error| error.to_string())?;
    for entry in entries.flatten() {
        let path = entry.path();
        let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        gone.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn strangers(stage: &mut Stage, beat: u32, kind: &str) -> Outcome {
    if beat > 0 {
        return Ok(());
    }
    let nodes: Vec<usize> = (0..stage.nodes.len()).collect();
    stage.strangers(kind, &nodes)
}

/// Each node in turn has its file changed so, and reads it again.
fn reload(stage: &mut Stage, beat: u32, change: fn(&mut Stage, usize) -> Outcome) -> Outcome {
    if !beat.is_multiple_of(2) {
        return Ok(());
    }
    let node = (beat / 2) as usize % stage.nodes.len();
    // Started at this very moment, it has nothing to fall back on.
    stage.nodes[node].may_end = true;
    change(stage, node)?;
    stage.note("a node reads its files anew".into());
    stage.signal(node, "HUP")
}

fn voting(protocol: Protocol, _: usize) -> bool {
    protocol.votes()
}

/// A member that lost its part of the charter does not come back under its name: docs/charter.md.
fn unchartered(protocol: Protocol, _: usize) -> bool {
    protocol != Protocol::Moving
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
            empty(stage, node)?;
            stage.start(node)
        })
    },
    Fault {
        forgets: true,
        fits: unchartered,
        ..fault("data-wiped-all", "all directories are emptied", |stage, beat| {
            let nodes = if beat == 0 { 0..stage.nodes.len() } else { 0..0 };
            for node in nodes.clone() {
                stage.kill(node)?;
                empty(stage, node)?;
            }
            nodes.into_iter().try_for_each(|node| stage.start(node))
        })
    },
    Fault {
        forgets: true,
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
                    empty(stage, node)?;
                    let (data, copy) = (folder.join("data"), folder.join("copy/."));
                    net::done(Command::new("cp").arg("-a").arg(copy).arg(data))?;
                    stage.start(node)
                }
                // As docs/configuration.md advises.
                16 => {
                    stage.kill(node)?;
                    empty(stage, node)?;
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
    fault("reloads", "nodes read their files anew over and over", |stage, beat| {
        reload(stage, beat, |_, _| Ok(()))
    }),
    fault("broken-files", "nodes are told to read files with mistakes", |stage, beat| {
        reload(stage, beat, |stage, node| {
            stage.host(node).write("etc/node.toml", "cluster = \"camp")?;
            stage.signal(node, "HUP")?;
            std::thread::sleep(std::time::Duration::from_millis(100));
            stage.configure(node)
        })
    }),
    fault("wrong-certificate", "nodes are told to take another's certificate", |stage, beat| {
        reload(stage, beat, |stage, node| {
            let (own, other) = (stage.certificate(node, "crt"), (node + 1) % stage.nodes.len());
            let eye = stage.lab.host("eye");
            let wrong = eye.read(&format!("certs/{}", stage.certificate(other, "crt")))?;
            let right = eye.read(&format!("certs/{own}"))?;
            stage.host(node).write(&format!("etc/{own}"), wrong)?;
            stage.signal(node, "HUP")?;
            std::thread::sleep(std::time::Duration::from_millis(100));
            stage.host(node).write(&format!("etc/{own}"), right)
        })
    }),
    fault("new-authority", "certificates of a new authority, in the guide's steps", new_authority),
    fault("new-epoch", "all nodes are stopped and started under the next epoch", |stage, beat| {
        if beat != 2 {
            return Ok(());
        }
        let nodes = 0..stage.nodes.len();
        nodes.clone().try_for_each(|node| stage.stop(node))?;
        stage.epoch += 1;
        nodes.clone().try_for_each(|node| stage.configure(node))?;
        nodes.into_iter().try_for_each(|node| stage.start(node))
    }),
    fault("upgrade", "nodes are replaced by another build, one by one (--other)", |stage, beat| {
        let node = (beat / 6) as usize;
        if !beat.is_multiple_of(6) || node >= stage.nodes.len() {
            return Ok(());
        }
        stage.stop(node)?;
        stage.nodes[node].program = stage.tools.other.clone();
        stage.start(node)
    }),
];

/// docs/security.md: both roots everywhere, then new certificates, then the old root goes.
fn new_authority(stage: &mut Stage, beat: u32) -> Outcome {
    let nodes = 0..stage.nodes.len();
    let eye = stage.lab.host("eye").clone();
    match beat {
        0 => {
            let program = stage.tools.program.display().to_string();
            let mut script = format!("{program} cert new-ca campaign --dir new\n");
            for node in nodes.clone() {
                let host = stage.host(node);
                script += &format!(
                    "{program} cert node {} --address {} --dir new\n",
                    host.name, host.address
                );
            }
            net::done(&mut eye.shell(&script))?;
            let both = format!("{}{}", eye.read("certs/ca.crt")?, eye.read("new/ca.crt")?);
            eye.write("ca.crt.new", &both)?;
            let moved = fs::rename(eye.folder.join("ca.crt.new"), eye.folder.join("ca.crt"));
            moved.map_err(|error| error.to_string())?;
            nodes.clone().try_for_each(|node| stage.host(node).write("etc/ca.crt", &both))?;
        }
        6 => {
            for node in nodes.clone() {
                for end in ["crt", "key"] {
                    let file = stage.certificate(node, end);
                    let text = eye.read(&format!("new/{file}"))?;
                    stage.host(node).write(&format!("etc/{file}"), text)?;
                }
            }
        }
        12 => {
            let new = eye.read("new/ca.crt")?;
            nodes.clone().try_for_each(|node| stage.host(node).write("etc/ca.crt", &new))?;
        }
        _ => return Ok(()),
    }
    stage.note(format!("a step to a new authority, {beat}"));
    nodes.into_iter().try_for_each(|node| stage.signal(node, "HUP"))
}

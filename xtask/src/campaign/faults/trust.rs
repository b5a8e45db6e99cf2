//! What nodes and clients trust: files that are read anew, certificates that are wrong or expire,
//! a new authority.

use std::fs;

use super::{BEAT, Fault, fault, of_files, spares};
use crate::campaign::stage::Stage;
use crate::lab::net::{self, Outcome};

/// Each node in turn has its file changed so, and reads it again.
fn reload(stage: &mut Stage, beat: u32, change: fn(&mut Stage, usize) -> Outcome) -> Outcome {
    if !beat.is_multiple_of(2) {
        return Ok(());
    }
    let node = (beat / 2) as usize % stage.nodes.len();
    // Started at this very moment, it has nothing to fall back on.
    stage.files_change = true;
    change(stage, node)?;
    stage.note("a node reads its files anew".into());
    stage.signal(node, "HUP")
}

/// For so long a certificate is worth something that is renewed too late.
const SHORT: u64 = 3;

/// These nodes get certificates of a few seconds. When they are worth nothing any more all
/// connections of the nodes are reset, so that everybody looks at them again; and late in the fault
/// they are renewed.
fn expire(stage: &mut Stage, beat: u32, count: usize) -> Outcome {
    let nodes = stage.some(count);
    let beats = |millis: u128| millis.div_ceil(BEAT.as_millis()) as u32;
    let worthless = beats(u128::from(SHORT) * 1000) + 3;
    let renewed = (beats(stage.draw.span.as_millis()) * 3 / 4).max(worthless + 3);
    match beat {
        0 => nodes.iter().try_for_each(|node| stage.certify_briefly(*node, SHORT)),
        now if now == worthless => {
            stage.note("certificates have expired; connections are reset".into());
            let others: Vec<String> =
                stage.lab.hosts().iter().map(|host| host.name.clone()).collect();
            for node in nodes {
                let name = stage.nodes[node].name.clone();
                let others = others.iter().filter(|other| **other != name);
                others.into_iter().try_for_each(|other| stage.lab.reset(&name, other))?;
            }
            Ok(())
        }
        now if now == worthless + 2 => stage.lab.heal(),
        now if now == renewed => nodes.iter().try_for_each(|node| stage.certify(*node)),
        _ => Ok(()),
    }
}

pub(super) const ALL: &[Fault] = &[
    spares(fault("reloads", "nodes read their files anew over and over", |stage, beat| {
        reload(stage, beat, |_, _| Ok(()))
    })),
    of_files(spares(fault("broken-files", "nodes are told to read wrong files", |stage, beat| {
        reload(stage, beat, |stage, node| {
            stage.host(node).write("etc/node.toml", "cluster = \"camp")?;
            stage.signal(node, "HUP")?;
            std::thread::sleep(std::time::Duration::from_millis(100));
            stage.configure(node)
        })
    }))),
    of_files(spares(fault(
        "wrong-certificate",
        "nodes are told to take another's certificate",
        |stage, beat| {
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
        },
    ))),
    Fault {
        links: true,
        files: true,
        ..fault("certificate-expires", "a node's certificate is renewed too late", |stage, beat| {
            expire(stage, beat, 1)
        })
    },
    Fault {
        links: true,
        files: true,
        ..fault("certificates-expire", "all certificates are renewed too late", |stage, beat| {
            expire(stage, beat, stage.nodes.len())
        })
    },
    of_files(spares(fault(
        "new-authority",
        "certificates of a new authority, in the guide's steps",
        new_authority,
    ))),
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
            stage.authority = "new";
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

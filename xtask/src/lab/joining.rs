//! Three machines in four commands: one makes a cluster, the others are invited and join it over
//! the network, and a job runs on while the first machine is cut off.

use std::process::Stdio;

use super::guide::{NODES, Rack};
use super::net::{self, Outcome, Process};

/// `quorate serve` with these words, in the machine's own directory.
pub(super) fn serve(rack: &Rack, name: &str, words: &str) -> Outcome<Process> {
    let host = rack.host(name);
    let mut command = rack.quorate(name, &format!("serve {words}"));
    let log = std::fs::File::create(host.folder.join("node.log"));
    let log = log.map_err(|error| error.to_string())?;
    net::start(command.current_dir(&host.folder).stdout(Stdio::null()).stderr(log))
}

/// `quorate` with these words, to the node of this machine, by its socket.
pub(super) fn ask(rack: &Rack, name: &str, words: &str) -> Outcome<String> {
    let socket = rack.host(name).folder.join("quorate-data/quorate.sock");
    net::fine(rack.quorate(name, words).env("QUORATE_SERVER", format!("unix:{}", socket.display())))
}

/// Waits until a node says that it is connected to so many members, itself too, that vote.
pub(super) fn until_voting(rack: &Rack, name: &str, voters: usize) -> Outcome {
    net::until(&format!("{name} sees {voters} members that vote"), || {
        ask(rack, name, "member list").is_ok_and(|list| {
            list.lines().filter(|line| line.contains(" votes ") && line.contains(" yes")).count()
                == voters
        })
    })
}

/// Three machines in four commands: the first begins, and invites the others. Their processes, in
/// order, once all vote.
pub(super) fn begin(rack: &Rack) -> Outcome<Vec<Process>> {
    let [a, b, c] = NODES;
    let first = rack.host(a).address;
    let mut nodes = vec![serve(rack, a, &format!("--new --name {a} --address {first}"))?];
    until_voting(rack, a, 1)?;
    let invited = ask(rack, a, &format!("member invite {b} {c}"))?;
    for (name, line) in [b, c].into_iter().zip(invited.lines()) {
        let words = line.strip_prefix("quorate serve ").ok_or("an invitation is a command")?;
        nodes.push(serve(rack, name, &words.replace('\'', ""))?);
    }
    NODES.iter().try_for_each(|name| until_voting(rack, name, NODES.len()))?;
    Ok(nodes)
}

pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    let [a, b, c] = NODES;
    let mut nodes = begin(rack)?;
    ask(rack, c, "pool create ci --units 2")?;
    let socket = rack.host(b).folder.join("quorate-data/quorate.sock");
    let job = format!("run ci --server unix:{} -- sleep 1000", socket.display());
    let mut job = net::start(rack.quorate(b, &job).stdout(Stdio::null()).stderr(Stdio::null()))?;
    net::until("a job runs", || ask(rack, c, "holders ci").is_ok_and(|it| it.lines().count() > 1))?;
    // The first machine is gone, for all that the others can see.
    rack.lab.isolate(a)?;
    net::until("the pool goes on without the first machine", || {
        ask(rack, c, "run ci -- true").is_ok()
    })?;
    rack.lab.heal()?;
    NODES.iter().try_for_each(|name| until_voting(rack, name, NODES.len()))?;
    if job.has_ended() {
        return Err("a job lost its unit when the first machine was cut off".into());
    }
    drop(job);
    // Each starts again from the file that it wrote.
    for (name, node) in NODES.into_iter().zip(&mut nodes) {
        node.signal("TERM")?;
        net::until(&format!("{name} ends"), || node.has_ended())?;
        *node = serve(rack, name, "")?;
        until_voting(rack, name, NODES.len())?;
    }
    ask(rack, a, "run ci -- true")?;
    Ok("4 commands; the first machine cut off and back, each started again, a job went on".into())
}

//! A new authority for a running cluster, in the steps of docs/security.md, while jobs come and go
//! and others hold what they have from before the first step until after the last.

use std::fs;

use super::guide::{LAPTOP, NODES, Rack};
use super::hold::Load;
use super::net::{self, Host, Outcome};

/// Jobs that hold through all of it.
const STEADY: usize = 4;
/// Jobs that come one after the other, beside them.
const BUSY: usize = 3;

pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    rack.install("lease = \"4s\"\n", "")?;
    rack.start()?;
    let (access, end) = (rack.access()?, rack.lab.folder().join("end"));
    let laptop = rack.host(LAPTOP).clone();
    let mut steady = Vec::new();
    for number in 0..STEADY {
        steady.push(access.hold(&laptop, &format!("ci-steady-{}", number % 2), &end)?);
    }
    net::until("the steady jobs hold", || access.begun() == STEADY)?;
    let load = Load::start(&access, &[&laptop], ("ci-busy", BUSY), &[300]);
    load.goes_on(4, "before anything changes")?;
    // Both roots everywhere, clients first.
    net::done(&mut rack.quorate(LAPTOP, "cert new-ca rack-7 --dir new"))?;
    for name in NODES {
        let words = format!("cert node {name} --address {} --dir new", rack.host(name).address);
        net::done(&mut rack.quorate(LAPTOP, &words))?;
    }
    let (old, new) = (laptop.read("certs/ca.crt")?, laptop.read("new/ca.crt")?);
    replace(&laptop, "ca.crt", &format!("{old}{new}"))?;
    for name in NODES {
        replace(rack.host(name), "etc/ca.crt", &format!("{old}{new}"))?;
    }
    rack.reload()?;
    load.goes_on(4, "with both roots")?;
    // A certificate of the new authority for each node.
    for name in NODES {
        for end in ["key", "crt"] {
            let file = format!("node-{name}.{end}");
            let text = laptop.read(&format!("new/{file}"))?;
            replace(rack.host(name), &format!("etc/{file}"), &text)?;
        }
    }
    rack.reload()?;
    load.goes_on(4, "with new certificates")?;
    // The old root is dropped; clients last.
    for name in NODES {
        replace(rack.host(name), "etc/ca.crt", &new)?;
    }
    rack.reload()?;
    replace(&laptop, "ca.crt", &new)?;
    load.goes_on(4, "without the old root")?;
    // Whoever connects from now on is known by the new one alone: nodes have to, if their
    // connections break.
    for (one, other) in [("a", "b"), ("b", "c"), ("a", "c")] {
        rack.lab.reset(one, other)?;
        net::until(&format!("the link between {one} and {other} is broken"), || {
            rack.connected(one) == Some(1) && rack.connected(other) == Some(1)
        })?;
        rack.lab.heal()?;
        rack.until_joined()?;
    }
    load.goes_on(4, "after all links were made anew")?;
    for (authority, good) in [("new", true), ("certs", false)] {
        let script = format!(
            "openssl s_client -connect 10.0.0.2:7420 -CAfile {authority}/ca.crt \
             -verify_return_error -verify_ip 10.0.0.2"
        );
        if net::output(&mut laptop.shell(&script))?.status.success() != good {
            return Err(format!("b is trusted by {authority}/ca.crt: that should be {good}"));
        }
    }
    let [held, lost, failed] = load.stop()?;
    fs::write(&end, "").map_err(|error| error.to_string())?;
    for job in steady {
        match job.end() {
            Some(0) => {}
            code => return Err(format!("a job that held through all of it ended with {code:?}")),
        }
    }
    access.judge()?;
    if lost > 0 || failed > 0 {
        return Err(format!("of {held} jobs, {lost} lost their grant and {failed} got none"));
    }
    Ok(format!("{STEADY} jobs held through 3 reloads, {held} more came and went, none lost"))
}

/// A file is replaced at once, as whoever deploys files does it: a node never reads half of one.
fn replace(host: &Host, file: &str, text: &str) -> Outcome {
    host.write(&format!("{file}.new"), text)?;
    let (from, to) = (host.folder.join(format!("{file}.new")), host.folder.join(file));
    fs::rename(from, to).map_err(|error| error.to_string())
}

//! What `quorate dev` is for: a node is killed, and it goes on; and it leaves nothing behind.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Dev, text};

#[test]
fn a_node_of_the_demo_is_killed_and_the_pool_goes_on() {
    let dev = Dev::start();
    let servers: Vec<&str> = dev.nodes.iter().map(|(.., at)| at.as_str()).collect();
    let everywhere = |words: &str| {
        let mut command = dev.command(words);
        command.env("QUORATE_SERVER", servers.join(","));
        command
    };
    let decider = || {
        let status = text(&everywhere("status demo").output().unwrap().stdout);
        let line = status.lines().find(|line| line.contains(" decides, in term "));
        line.and_then(|line| line.split_once(' ')).map(|(name, _)| name.to_owned())
    };
    let first = decider().expect("somebody decides over the demo pool");
    let mut job = everywhere("run demo -n 2 -- sh -c");
    let job = job.arg("echo runs; read word; echo $word");
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(job.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "runs");

    let (_, process, _) = dev.nodes.iter().find(|(name, ..)| *name == first).unwrap();
    let killed = Command::new("kill").args(["-9", process]).status().unwrap();
    assert!(killed.success());

    // Two units are held still, so all that can be had are the other two.
    assert!(everywhere("run demo -n 2 -- true").status().unwrap().success());
    assert_eq!(everywhere("acquire demo -n 3 --timeout 100ms").status().unwrap().code(), Some(124));
    assert_ne!(decider().expect("somebody decides again"), first);
    job.stdin.take().unwrap().write_all(b"kept\n").unwrap();
    assert_eq!(said.next().unwrap().unwrap(), "kept");
    assert!(job.wait().unwrap().success());
    // It is started again, and everybody sees it.
    let (.., at) = dev.nodes.iter().find(|(name, ..)| *name != first).unwrap();
    let other = at.clone();
    dev.until(&format!("status --server {other}"), |status| {
        let peers = status["peers"].as_array().expect("a list");
        peers.iter().all(|peer| peer["connected"] == true)
    });
    let back = dev.nodes.iter().find(|(name, ..)| *name == first).unwrap();
    dev.until(&format!("status --server {}", back.2), |status| status["name"] == first.as_str());
}

#[test]
fn a_cluster_to_try_leaves_nothing_behind() {
    let folders = || {
        let entries = std::fs::read_dir(std::env::temp_dir()).expect("a folder for what passes");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with("quorate-dev-")).collect::<Vec<_>>()
    };
    // An interruption is ignored by whatever a shell starts in the background.
    for signal in ["TERM", "KILL"] {
        let mut dev = Dev::start_with(&["--nodes", "2"]);
        let number = dev.process.id().to_string();
        let folder = format!("quorate-dev-{number}");
        assert!(folders().contains(&folder));
        let sent = Command::new("kill").args([&format!("-{signal}"), &number]).status().unwrap();
        assert!(sent.success());
        dev.process.wait().unwrap();
        let give_up = Instant::now() + Duration::from_secs(60);
        while folders().contains(&folder) {
            assert!(Instant::now() < give_up, "{signal}: {folder} is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        for (name, _, at) in &dev.nodes {
            // Whoever is killed ends a moment later.
            while std::net::TcpStream::connect(at).is_ok() {
                assert!(Instant::now() < give_up, "{signal}: {name} still listens");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

//! The commands of a client, as a shell sees them: output and exit codes, against `quorate dev`.

#[path = "commands/dev.rs"]
mod dev;
#[path = "commands/jobserver.rs"]
mod jobserver;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A cluster, which ends with this value.
struct Dev {
    process: Child,
    /// Its first node.
    server: String,
    /// Their processes, by name, and addresses.
    nodes: Vec<(String, String, String)>,
}

impl Dev {
    fn start() -> Dev {
        Dev::start_with(&[])
    }

    /// With the pools of a file.
    fn with_pools(test: &str, pools: &str) -> Dev {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.toml"));
        std::fs::write(&file, pools).expect("a folder to write to");
        Dev::start_with(&["--pools", file.to_str().expect("a path of letters")])
    }

    fn start_with(more: &[&str]) -> Dev {
        let mut process = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(["dev", "--port", "0"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let nodes: Vec<(String, String, String)> = lines
            .map_while(Result::ok)
            .skip(1)
            .map_while(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let &[name, "process", process, at] = words.as_slice() else { return None };
                Some((name.into(), process.into(), at.trim_start_matches("http://").into()))
            })
            .collect();
        let server = nodes.first().expect("it prints its addresses").2.clone();
        Dev { process, server, nodes }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(words.split_whitespace()).env("QUORATE_SERVER", &self.server);
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(words).output().expect("the command was built")
    }

    fn code(&self, words: &str) -> i32 {
        self.run(words).status.code().expect("it exits")
    }

    fn json(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} --json"));
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Asks until the answer is as it should be, for as long as any sane machine needs.
    fn until(&self, words: &str, good: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = self.json(words);
            if good(&answer) {
                return answer;
            }
            assert!(Instant::now() < give_up, "{words}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its nodes end a moment later.
        let give_up = Instant::now() + Duration::from_secs(60);
        let listens = |(.., at): &(_, _, String)| std::net::TcpStream::connect(at).is_ok();
        while self.nodes.iter().any(listens) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn run_exits_as_its_command_does_and_says_what_it_holds() {
    let dev = Dev::start();
    let output = dev.run("run demo -n 2 -- env");
    let environment = text(&output.stdout);
    for line in ["QUORATE_POOL=demo", "QUORATE_UNITS=0,1", "QUORATE_CLAIM=", "QUORATE_FENCES="] {
        assert!(environment.lines().any(|have| have.starts_with(line)), "{line}: {environment}");
    }
    assert_eq!(dev.code("run demo -- false"), 1);
    assert_eq!(dev.code("run demo -- no-such-command"), 127);
    assert_eq!(dev.code("run demo -- /"), 126);
    assert_eq!(dev.code("run demo -n 5 -- true"), 125, "the pool has four");
    assert_eq!(dev.code("run nil -- true"), 125);
    assert_eq!(dev.code("run demo"), 125, "no command");
    let mut killed = dev.command("run demo -- sh -c");
    let status = killed.arg("kill -TERM $$").status().expect("the command was built");
    assert_eq!(status.code(), Some(128 + 15));
    let seven = dev.command("run demo -- sh -c").arg("exit 7").status();
    assert_eq!(seven.expect("the command was built").code(), Some(7));
    dev.until("pools demo", |pool| pool["held"] == 0);
}

const GPUS: &str = r#"
[[pools]]
name = "gpus"
units = [
    { name = "h0", labels = { gpu = "h100", zone = "eu" } },
    { name = "h1", labels = { gpu = "h100", zone = "us" } },
    { name = "a0", labels = { gpu = "a100", zone = "eu" } },
    { name = "nic0", labels = { kind = "nic" } },
]
"#;

#[test]
fn units_are_chosen_by_their_labels_and_told_to_the_command() {
    let dev = Dev::with_pools("labels", GPUS);
    let output = dev.run("run gpus --where gpu=h100,zone=us --and kind=nic -- env");
    let environment = text(&output.stdout);
    for line in [
        "QUORATE_UNITS=h1,nic0",
        r#"QUORATE_LABELS={"h1":{"gpu":"h100","zone":"us"},"nic0":{"kind":"nic"}}"#,
    ] {
        assert!(environment.lines().any(|have| have == line), "{line}: {environment}");
    }
    let grant = dev.json("acquire gpus -n 2 --where gpu=h100 --id 1");
    assert_eq!((&grant["names"][1], &grant["labels"][1]["zone"]), (&"h1".into(), &"us".into()));
    let holders = text(&dev.run("holders gpus").stdout);
    assert!(holders.contains(" h0,h1 "), "{holders}");
    let mut waiting = dev.command("acquire gpus --where gpu=h100 --and 1:zone=eu --id 2");
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().expect("the command was built");
    dev.until("queue gpus", |queue| queue["waiting"][0]["id"].is_string());
    let queue = text(&dev.run("queue gpus").stdout);
    assert!(queue.contains("1 with gpu=h100 and 1 with zone=eu"), "{queue}");
    assert_eq!(dev.code("release gpus 1"), 0);
    assert!(waiting.wait().expect("it was started").success());

    let refused = dev.run("run gpus -n 3 --where gpu=h100 -- true");
    assert_eq!(refused.status.code(), Some(125));
    let said = text(&refused.stderr);
    assert!(said.contains("3 with gpu=h100: there are 2 such units"), "{said}");
    assert!(said.contains("The pool has gpu=a100 (1), h100 (2); kind=nic (1); zone"), "{said}");
    for nonsense in ["--where gpu", "--and 0:kind=nic", "--and x:kind=nic"] {
        assert_eq!(dev.code(&format!("run gpus {nonsense} -- true")), 125, "{nonsense}");
    }
}

#[test]
fn a_running_command_is_moved_by_its_hook_and_a_drained_unit_is_shown() {
    let dev = Dev::with_pools("moves", GPUS);
    let note = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("moved");
    let _ = std::fs::remove_file(&note);
    let hook = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("move-hook");
    let script = "#!/bin/sh\necho $1 $2 $QUORATE_FROM $QUORATE_TO > \"$NOTE\"\n";
    std::fs::write(&hook, script).expect("a file of our own");
    std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).expect("our own");
    // It gets one of the two h100s, and somebody else needs just that one.
    let mut moved = dev.command("run gpus --where gpu=h100");
    let mut moved = moved
        .arg("--on-move")
        .arg(&hook)
        .args(["--", "sleep", "600"])
        .env("NOTE", &note)
        .spawn()
        .expect("the command was built");
    // A node that is slow to answer leaves out what only it knows: the units, or their labels.
    let zone_of = |view: &Value| view["holders"][0]["units"][0]["labels"]["zone"].is_string();
    let held = dev.until("holders gpus", zone_of);
    let zone = held["holders"][0]["units"][0]["labels"]["zone"].as_str().expect("a zone");
    let other = dev.json(&format!("acquire gpus --where gpu=h100,zone={zone}"));
    assert_eq!(other["names"][0], held["holders"][0]["units"][0]["name"]);
    let said = std::fs::read_to_string(&note).expect("the hook ran");
    let (from, to) = if zone == "eu" { ("h0", "h1") } else { ("h1", "h0") };
    assert_eq!(said, format!("{from} {to} {from} {to}\n"));

    assert_eq!(dev.code("drain gpus a0"), 0);
    let status = text(&dev.run("status gpus").stdout);
    assert!(status.contains("drained: a0"), "{status}");
    assert_eq!(dev.code("run gpus --where gpu=a100 -- true"), 125);
    assert_eq!(dev.code("drain gpus a0 --undo"), 0);
    assert_eq!(dev.code("run gpus --where gpu=a100 -- true"), 0);
    assert_eq!(dev.code("drain gpus a9"), 2);
    moved.kill().expect("it runs");
    moved.wait().expect("it ends");
}

#[test]
fn a_claim_waits_says_why_times_out_and_is_served() {
    let dev = Dev::start();
    let grant = dev.json("acquire demo -n 3 --reason first");
    let id = grant["id"].as_str().expect("an id");
    assert_eq!(grant["units"].as_array().map(Vec::len), Some(3));
    assert_eq!(dev.code("run demo -n 2 --timeout 100ms -- true"), 124);
    assert_eq!(dev.code("acquire demo -n 2 --timeout 100ms"), 124);

    let mut waiting = dev.command("acquire demo -n 2 --id abc");
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().expect("the command was built");
    dev.until("queue demo", |queue| queue["waiting"][0]["id"].is_string());
    let status = dev.json("status demo abc");
    assert_eq!((&status["state"], &status["why"]["missing"]), (&"waiting".into(), &1.into()));
    assert_eq!(status["why"]["holders"][0]["reason"], "first");

    assert_eq!(dev.json(&format!("renew demo {id}"))["state"], "granted");
    assert_eq!(dev.json(&format!("release demo {id}"))["state"], "released");
    assert!(waiting.wait().expect("it ends").success());
    let holders = dev.json("holders demo");
    assert_eq!(holders["holders"][0]["count"], 2);
    assert_eq!(dev.code(&format!("renew demo {id}")), 2, "it is over");
}

#[test]
fn a_revoked_command_is_stopped() {
    let dev = Dev::start();
    let mut running = dev.command("run demo -- sleep 1000");
    let mut running = running.stderr(Stdio::piped()).spawn().expect("the command was built");
    let holders = dev.until("holders demo", |view| view["holders"][0]["id"].is_string());
    let id = holders["holders"][0]["id"].as_str().expect("an id").to_owned();
    dev.json(&format!("revoke demo {id} --reason maintenance"));
    assert_eq!(running.wait().expect("it ends").code(), Some(123));
    dev.until("pools demo", |pool| pool["held"] == 0);
}

/// A command whose parent ignores HUP and INT, as `nohup` and the background of a shell do.
struct Sheltered {
    shell: Child,
    lines: Box<dyn Iterator<Item = String>>,
    /// The command's process id.
    id: String,
}

impl Sheltered {
    fn start(command: &str, server: &str) -> Sheltered {
        let script = format!("trap '' HUP INT; \"$Q\" {command} & echo $!; wait $!");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .env("Q", env!("CARGO_BIN_EXE_quorate"))
            .env("QUORATE_SERVER", server)
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let lines = BufReader::new(shell.stdout.take().expect("piped")).lines();
        let mut lines = Box::new(lines.map_while(Result::ok));
        let id = lines.next().expect("the shell says what it started");
        Sheltered { shell, lines, id }
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.id]).status();
        assert!(kill.expect("it was sent").success(), "{signal}");
    }

    fn end(mut self) -> i32 {
        self.signal("-TERM");
        self.shell.wait().expect("it ends").code().expect("it exits")
    }
}

impl Drop for Sheltered {
    fn drop(&mut self) {
        if !matches!(self.shell.try_wait(), Ok(Some(_))) {
            let _ = Command::new("kill").args(["-KILL", &self.id]).status();
            let _ = self.shell.wait();
        }
    }
}

#[test]
fn signals_that_were_ignored_before_reach_nobody() {
    let dev = Dev::start();
    let mut run = Sheltered::start("run demo -- sh -c 'echo ready; exec sleep 1000'", &dev.server);
    assert_eq!(run.lines.next().as_deref(), Some("ready"));
    let acquire = Sheltered::start("acquire demo -n 4", &dev.server);
    dev.until("queue demo", |queue| queue["waiting"][0]["id"].is_string());
    // The last signal proves that the ones before it were heard by nobody.
    for sheltered in [acquire, run] {
        sheltered.signal("-HUP");
        sheltered.signal("-INT");
        assert_eq!(sheltered.end(), 128 + 15);
    }
}

#[test]
fn a_cluster_in_the_background_goes_on_when_its_terminal_is_gone() {
    let mut dev = Sheltered::start("dev --port 0", "");
    let address = |line: String| line.split("http://").nth(1).map(str::to_owned);
    let server = dev.lines.find_map(address).expect("it prints its addresses");
    let pools = || {
        let mut pools = Command::new(env!("CARGO_BIN_EXE_quorate"));
        pools.args(["pools", "--server", &server]).output().expect("the command was built")
    };
    assert!(pools().status.success());
    dev.signal("-HUP");
    dev.signal("-INT");
    for _ in 0..5 {
        let output = pools();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert_eq!(dev.end(), 0);
}

#[test]
fn a_claim_that_is_repeated_under_its_id_gets_what_it_got() {
    let dev = Dev::start();
    let first = dev.json("acquire demo -n 2 --id 99");
    let again = dev.json("acquire demo -n 2 --id 99");
    assert_eq!((&first["units"], &first["fences"]), (&again["units"], &again["fences"]));
    assert_eq!(dev.code("acquire demo -n 1 --id 99"), 2, "another claim");
}

/// What a terminal shows when commands of a shell run on it, and something is typed whenever it
/// shows something.
fn on_a_terminal(dev: &Dev, commands: &str, typed: &[(&str, &str)]) -> String {
    // Tests that are started in the background of a shell ignore what a terminal sends with ^C, and
    // so would all that they start.
    let mut script = Command::new("env")
        .args(["--default-signal=INT", "script", "-q", "-e", "-c", commands, "/dev/null"])
        .env("QUORATE_SERVER", &dev.server)
        .env("SHELL", "/bin/sh")
        .env("Q", env!("CARGO_BIN_EXE_quorate"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is there");
    let mut keyboard = script.stdin.take().expect("piped");
    let mut output = script.stdout.take().expect("piped");
    let (mut shown, mut typed) = (Vec::new(), typed.iter().peekable());
    loop {
        while let Some((_, keys)) = typed.next_if(|(seen, _)| text(&shown).contains(seen)) {
            keyboard.write_all(keys.as_bytes()).expect("it listens");
        }
        let mut some = [0; 1024];
        match output.read(&mut some).expect("it says something") {
            0 => break,
            read => shown.extend_from_slice(&some[..read]),
        }
    }
    assert!(script.wait().expect("it ends").success(), "{}", text(&shown));
    text(&shown)
}

#[test]
fn a_command_may_read_from_the_terminal_and_whoever_comes_after_it_too() {
    let dev = Dev::start();
    let commands = "\"$Q\" run demo -- sh -c 'read line; echo \"it reads $line\"' && \
                    read line && echo \"after it $line\"";
    let shown = on_a_terminal(&dev, commands, &[("", "one\ntwo\n")]);
    assert!(shown.contains("it reads one"), "{shown}");
    assert!(shown.contains("after it two"), "{shown}");
    // In the background of a terminal nothing is handed over.
    let commands = "set -m; \"$Q\" run demo -- echo behind & wait; read line; echo \"front $line\"";
    let shown = on_a_terminal(&dev, commands, &[("behind", "three\n")]);
    assert!(shown.contains("behind") && shown.contains("front three"), "{shown}");
    // Ctrl-Z, and then something to read.
    let commands = "\"$Q\" run demo -- sh -c 'echo ready; read line; echo \"it reads $line\"'";
    let shown = on_a_terminal(&dev, commands, &[("ready", "\x1a"), ("goes on", "four\n")]);
    assert!(shown.contains("it reads four"), "{shown}");
}

#[test]
fn a_killed_wrapper_takes_its_command_along_and_its_units_return_with_the_lease() {
    let dev = Dev::start();
    let mut running = dev.command("run demo -n 4 -- sleep 1000");
    let mut running = running.spawn().expect("the command was built");
    dev.until("pools demo", |pool| pool["held"] == 4);
    let children = format!("/proc/{}/task/{}/children", running.id(), running.id());
    let child = std::fs::read_to_string(children).expect("linux").trim().to_owned();
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    let give_up = Instant::now() + Duration::from_secs(60);
    while !gone() {
        assert!(Instant::now() < give_up, "the command outlives its wrapper");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(dev.code("run demo -n 4 -- true"), 0);
}

#[test]
fn bad_input_gets_one_clear_line() {
    for (words, code) in [
        ("acquire demo -n many", 2),
        ("release demo not-hex", 2),
        ("status demo", 2),
        ("pools --server http://a:b", 2),
        ("run demo --timeout 5 -- true", 125),
        ("run demo --server 127.0.0.1:1 -- true", 125),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(words.split_whitespace())
            .output()
            .expect("the command was built");
        assert_eq!(output.status.code(), Some(code), "{words}");
        let error = text(&output.stderr);
        assert_eq!(error.lines().count(), 1, "{words}: {error}");
        assert!(error.starts_with("quorate: "), "{words}: {error}");
        assert!(output.stdout.is_empty());
    }
}

/// What `quorate` answers to these words, and how it exits.
fn misunderstood(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_quorate")).args(words).output();
    let output = output.expect("the command was built");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn what_a_newcomer_mistypes_is_explained_in_their_words() {
    let (code, said) = misunderstood(&[]);
    assert!(code == Some(2) && said.contains("Usage:") && said.contains("acquire"), "{said}");
    for units in ["-1", "abc", "0"] {
        let (code, said) = misunderstood(&["run", "demo", "-n", units, "--", "true"]);
        assert_eq!(code, Some(125), "{said}");
        assert!(said.contains("ask for 1 unit or more"), "{said}");
    }
    for (words, wanted) in [
        ("dev --nodes abc", "write a whole number"),
        ("dev --nodes -1", "is negative"),
        ("dev --port 65536", "65536 is not in 0 to 65535"),
        ("acquire demo --timeout -1s", "is negative"),
        ("dev --nodes 99999999999999999999", "too large"),
    ] {
        let (code, said) = misunderstood(&words.split(' ').collect::<Vec<_>>());
        assert!(code == Some(2) && said.contains(wanted), "{words}: {said}");
    }
    let (code, said) = misunderstood(&["dev", "--port", "65535"]);
    assert!(code == Some(2) && said.contains("choose 65533 or less, or 0"), "{said}");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bad-pools.toml");
    std::fs::write(&file, "[[pools]]\nname = \"a\"\nunits = = 2\n").expect("ours");
    let file = file.to_str().expect("a path of letters");
    let (code, said) = misunderstood(&["dev", "--port", "0", "--pools", file]);
    assert!(code == Some(2) && said.contains("line 3"), "{said}");
}

#[test]
fn whoever_does_not_want_to_wait_is_told_at_once_and_pools_say_what_is_held() {
    let dev = Dev::start();
    assert_eq!(dev.code("run demo --try -n 3 -- true"), 0);
    dev.until("pools demo", |pool| pool["held"] == 0);
    dev.json("acquire demo -n 3");
    for words in ["acquire demo -n 2 --try", "run demo -n 2 --try -- true"] {
        let output = dev.run(words);
        assert_eq!(output.status.code(), Some(122), "{words}");
        assert!(text(&output.stderr).contains("not free now"), "{words}");
    }
    let pools = dev.json("pools");
    assert_eq!((&pools["pools"][0]["held"], &pools["pools"][0]["waiting"]), (&3.into(), &0.into()));
}

#[test]
fn releasing_says_what_it_released_and_an_unknown_id_has_its_own_code() {
    let dev = Dev::start();
    for _ in 0..2 {
        let output = dev.run("release demo 77");
        assert_eq!(output.status.code(), Some(121));
        let said = text(&output.stderr);
        assert!(
            said.contains("no node that answers knows a claim") && said.contains("77"),
            "{said}"
        );
        assert!(output.stdout.is_empty());
    }
    assert_eq!(dev.code("release demo 77 --json"), 121, "a program reads it in `unknown`");
    let id = dev.json("acquire demo -n 2")["id"].as_str().expect("a name").to_owned();
    for _ in 0..2 {
        let over = dev.json(&format!("release demo {id}"));
        assert_eq!((&over["state"], over.get("unknown")), (&"released".into(), None), "{over}");
    }
}

#[test]
fn whoever_waits_at_a_terminal_sees_its_place_and_an_interruption_says_what_is_known() {
    let dev = Dev::start();
    dev.json("acquire demo -n 3");
    let commands = "trap : INT; \"$Q\" acquire demo -n 2; echo \"code $?\"";
    let shown = on_a_terminal(&dev, commands, &[("place 1", "\x03")]);
    assert!(shown.contains("waiting for 2 units since"), "{shown}");
    assert!(shown.contains("is cancelled") && shown.contains("code 130"), "{shown}");
    dev.until("queue demo", |queue| queue["waiting"][0].is_null());

    let mut acquire = Sheltered::start("acquire demo -n 2 2>&1", &dev.server);
    dev.until("queue demo", |queue| queue["waiting"][0]["id"].is_string());
    drop(dev);
    acquire.signal("-TERM");
    let said = acquire.lines.next().unwrap_or_default();
    assert!(said.contains("no node acknowledged that claim"), "{said}");
    assert!(said.contains("quorate release demo"), "{said}");
}

#[test]
fn doctor_finds_what_is_wrong_and_what_to_do_about_it() {
    let dev = Dev::start();
    let found = dev.json("doctor");
    let about = |word: &str| {
        let findings = found["findings"].as_array().expect("a list");
        findings.iter().find(|it| it["about"] == word).map(|it| it["level"].clone())
    };
    for word in ["readiness", "peers", "clock", "version", "pool"] {
        assert_eq!(about(word), Some("fine".into()), "{word}: {found}");
    }
    assert_eq!(about("servers"), Some("warning".into()), "one of three was named: {found}");
    // Nobody listens there, and the file is none.
    let wrong = dev.run("doctor --server 127.0.0.1:1 --config /nonexistent.toml");
    assert_eq!(wrong.status.code(), Some(1));
    let said = text(&wrong.stdout);
    assert!(said.contains("BROKEN   reach") && said.contains("BROKEN   file"), "{said}");
    assert!(said.contains("-> start it there"), "{said}");
}

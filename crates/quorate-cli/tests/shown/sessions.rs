//! Sessions at the shell shown in the documentation are true.
//!
//! Every `console` block of these pages is run: lines after `$ ` are commands, what follows is
//! their standard output. `[..]` stands for anything within a line, a line `...` for any lines.
//! Each of the two commands has its own run, which leaves the other one's sessions out.
//!
//! The guides have a cluster of their own each, as `quorate dev` starts it, with the options that
//! the page shows. There, a command that ends with `&` goes on while the others run, and what
//! follows is asked again until it has come into effect.
//!
//! A `toml` block whose first line is a comment with a file's name is that file, and so is a `json`
//! block with a file's name beside it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Program, root};

pub(crate) fn every_session_is_true(program: Program) {
    let mut pages = vec![root().join("README.md")];
    collect(&root().join("docs"), &mut pages);
    let mut sessions = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page that was just listed");
        let is_guide = page.components().any(|c| c.as_os_str() == "guides");
        files(program, &text);
        let (ours, others): (Vec<_>, Vec<_>) = commands(&text)
            .into_iter()
            .partition(|(command, _)| command.split(' ').next() == Some(program.name));
        for (command, _) in others {
            assert!(command.starts_with("quorate"), "only our own commands: {command}");
        }
        // The laboratory needs no cluster.
        let runs_nodes = is_guide && program.name == "quorate";
        let mut cluster = runs_nodes.then(|| Cluster::start(program, &text));
        for (command, expected) in ours {
            sessions += 1;
            if let Some(command) = command.strip_suffix(" &") {
                let cluster = cluster.as_mut().expect("only guides have something going on");
                cluster.begin(command);
                continue;
            }
            let fits = |text: &str| matches(&expected, &text.lines().collect::<Vec<_>>());
            let server = cluster.as_ref().map(|cluster| &*cluster.server);
            let printed = run(program, &command, server, fits);
            assert!(
                fits(&printed),
                "{}: $ {command}\n--- shown\n{}\n--- printed\n{printed}",
                page.display(),
                expected.join("\n"),
            );
        }
    }
    assert!(sessions > 1, "the documentation shows sessions");
}

fn collect(folder: &Path, pages: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).expect("docs").flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The commands of a page, each with the lines shown under it.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_string(), Vec::new())),
                (None, Some((_, shown))) => shown.push(line),
                (None, None) => panic!("a session begins with a command: {line}"),
            },
        }
    }
    commands
}

/// Writes the files that a page shows.
fn files(program: Program, text: &str) {
    for block in text.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let name = block.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) = name.filter(|name| name.ends_with(".toml")) {
            std::fs::write(Path::new(program.folder).join(name), block)
                .expect("a folder of our own");
        }
    }
    for block in text.split("```json ").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let (name, file) = block.split_once('\n').expect("a name, and a file");
        std::fs::write(Path::new(program.folder).join(name), file).expect("a folder of our own");
    }
}

/// Runs a command; with a cluster, again and again until it prints what it should.
fn run(
    program: Program,
    command: &str,
    server: Option<&str>,
    fits: impl Fn(&str) -> bool,
) -> String {
    let began = Instant::now();
    loop {
        let output = prepare(program, command, server).output().expect("the command was built");
        let printed = String::from_utf8(output.stdout).expect("output is text");
        if server.is_none() || fits(&printed) || began.elapsed() > PATIENCE {
            return printed;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Longer than anything takes that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(30);

fn prepare(program: Program, command: &str, server: Option<&str>) -> Command {
    let mut prepared = Command::new(program.path);
    prepared.args(command.split_whitespace().skip(1)).current_dir(program.folder);
    if let Some(server) = server {
        prepared.env("QUORATE_SERVER", server);
    }
    prepared
}

/// What `quorate dev` starts, and commands that go on beside it.
struct Cluster {
    program: Program,
    server: String,
    running: Vec<Child>,
}

impl Cluster {
    fn start(program: Program, page: &str) -> Cluster {
        let shown = page.lines().find(|line| line.starts_with("quorate dev"));
        let shown = format!("{} --port 0", shown.unwrap_or("quorate dev"));
        let mut dev = prepare(program, &shown, None)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let mut lines = BufReader::new(dev.stdout.take().expect("piped")).lines();
        let server = loop {
            let line = lines.next().expect("dev says where it is").expect("text");
            if let Some((_, server)) = line.split_once("http://") {
                break server.trim().to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Cluster { program, server, running: vec![dev] }
    }

    fn begin(&mut self, command: &str) {
        let mut command = prepare(self.program, command, Some(&self.server));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.running.push(child.expect("the command was built"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The cluster last: whoever runs a command there ends it first.
        for child in self.running.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether the shown lines are the printed ones.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|first| line_matches(line, first))
                && matches(rest, &printed[1..])
        }
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split("[..]");
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

#[test]
fn wildcards_stand_for_anything_but_not_for_everything() {
    assert!(line_matches("a [..] c", "a b c"));
    assert!(line_matches("a [..]", "a b c"));
    assert!(!line_matches("a [..] d", "a b c"));
    assert!(!line_matches("a b", "a b c"));
    assert!(matches(&["x", "...", "y"], &["x", "1", "2", "y"]));
    assert!(!matches(&["x", "...", "y"], &["x", "1", "2"]));
}

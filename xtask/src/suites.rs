//! The tests as cargo built them, and lanes to run things in at the same time.
//!
//! Half of the tests reckon and want every core there is; the other half start processes and wait
//! for them. One after the other, a core is idle for a third of the time.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One program full of tests.
pub(crate) struct Suite {
    /// Its package and its name, for people.
    name: String,
    /// Where cargo would run it.
    folder: PathBuf,
    program: PathBuf,
}

/// Suites that start nodes and wait for them, of all packages. Whatever is not named here reckons.
const WAITING: &[&str] = &[
    "quorate commands",
    "quorate real",
    "quorate shown",
    "quorate trust",
    "quorate-client link",
    "quorate-client quorate_client",
    "quorate-node node",
];

impl Suite {
    /// Whether it mostly waits.
    pub(crate) fn waits(&self) -> bool {
        WAITING.contains(&self.name.as_str())
    }

    /// Its program, if it has this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Path> {
        (self.name == name).then_some(self.program.as_path())
    }

    pub(crate) fn job(&self) -> Job {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        Job { name: format!("tests: {}", self.name), command }
    }
}

/// Builds all tests; none if that fails, which the compiler has explained by then.
///
/// Cargo would run them one after the other, so it is only asked where they are: one object in a
/// line for each. Two fields of it are wanted, which is no reason for a parser.
pub(crate) fn build(root: &Path, environment: &[(&str, &str)]) -> Option<Vec<Suite>> {
    let words = "test --workspace --locked --no-run --message-format json-render-diagnostics";
    println!("\n--- tests, built: cargo {words}");
    let began = Instant::now();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(words.split_whitespace())
        .current_dir(root)
        .envs(environment.iter().copied())
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let suites: Vec<Suite> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(suite).collect();
    let good = output.status.success() && !suites.is_empty();
    let verdict = if good { "ok" } else { "FAILED" };
    println!("--- tests, built: {verdict} after {:.0?}, {} suites", began.elapsed(), suites.len());
    good.then_some(suites)
}

/// What one line of cargo's says of a program full of tests, if it is about one.
fn suite(line: &str) -> Option<Suite> {
    // What can be tested says so, too, outside its profile.
    let (_, profile) = line.split_once("\"profile\":{")?;
    if !profile.split_once('}')?.0.contains("\"test\":true") {
        return None;
    }
    let program = PathBuf::from(field(line, "executable")?);
    let folder = Path::new(&field(line, "manifest_path")?).parent()?.to_path_buf();
    let target = program.file_name()?.to_str()?;
    let target = target.rsplit_once('-').map_or(target, |(name, _)| name);
    let name = format!("{} {target}", folder.file_name()?.to_str()?);
    Some(Suite { name, folder, program })
}

/// The text of a field. Paths with quotes or backslashes in them are not understood.
fn field(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Something to run, by name.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// Several times what the longest job takes on a busy machine. Not a judgment of anything: a run
/// that never ends would show nobody what it waits for.
const GIVEN_UP: Duration = Duration::from_secs(15 * 60);

/// How many lanes there are for what waits. With one, it is what everything else waits for; a third
/// would wait for the same cores.
const WAITING_LANES: usize = 2;

/// Runs what reckons in one lane, from the first job to the last, and beside it what waits in
/// lanes of its own; a lane that has nothing left to wait for helps to reckon. What a job prints
/// is shown when it has ended: all of it if it failed, else what it counted. Says of every job
/// whether it succeeded.
pub(crate) fn run(reckoning: Vec<Job>, waiting: Vec<Job>) -> Vec<(String, bool)> {
    let reckoning = Mutex::new(VecDeque::from(reckoning));
    let waiting = Mutex::new(VecDeque::from(waiting));
    let done = Mutex::new(Vec::new());
    let next = |jobs: &Mutex<VecDeque<Job>>| jobs.lock().expect("lanes do not panic").pop_front();
    std::thread::scope(|scope| {
        for lane in 0..=WAITING_LANES {
            let (reckoning, waiting, done) = (&reckoning, &waiting, &done);
            scope.spawn(move || {
                let job = || {
                    let waits = if lane < WAITING_LANES { next(waiting) } else { None };
                    waits.or_else(|| next(reckoning))
                };
                while let Some(Job { name, mut command }) = job() {
                    let began = Instant::now();
                    let (good, text) = heard(&mut command, lane, GIVEN_UP);
                    let verdict = if good { "ok" } else { "FAILED" };
                    let shown = if good { counted(&text) } else { text };
                    let mut done = done.lock().expect("lanes do not panic");
                    println!("\n--- {name}: {verdict} after {:.0?}\n{shown}", began.elapsed());
                    done.push((name, good));
                }
            });
        }
    });
    done.into_inner().expect("lanes do not panic")
}

/// Whether the command succeeded in time, and all that it said.
///
/// It speaks into a file: a pipe ends only when the last process that has it is gone, so one that
/// a test left behind would hold up everything.
fn heard(command: &mut Command, lane: usize, limit: Duration) -> (bool, String) {
    let path = std::env::temp_dir().join(format!("xtask-{}-{lane}.txt", std::process::id()));
    let ended = wait(command, &path, limit);
    let text = std::fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    // Nothing depends on it: the next job writes over it.
    let _ = std::fs::remove_file(&path);
    match ended {
        Ok(Some(good)) => (good, text),
        Ok(None) => {
            let given_up = format!("had not ended after {limit:.0?} and was stopped");
            (false, format!("{text}\n{given_up}").trim_start().to_owned())
        }
        Err(error) => (false, format!("{text}\ncould not be run: {error}").trim_start().to_owned()),
    }
}

/// Whether it succeeded; none if it did not end.
fn wait(command: &mut Command, path: &Path, limit: Duration) -> std::io::Result<Option<bool>> {
    let file = File::create(path)?;
    let mut child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The same command, for a lane that gives way to the other.
pub(crate) fn yielding(job: Job) -> Job {
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(job.command.get_program()).args(job.command.get_args());
    if let Some(folder) = job.command.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in job.command.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Job { name: job.name, command }
}

/// The lines that say how much was tested; where there are none, the last few.
fn counted(text: &str) -> String {
    let results: Vec<&str> = text.lines().filter(|line| line.starts_with("test result")).collect();
    if !results.is_empty() {
        return results.join("\n");
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(4)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargos_tells_where_tests_are_and_belong() {
        let line = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/quorate-node/Cargo.toml","#,
            r#""target":{"kind":["test"],"name":"node","test":true},"profile":{"test":true},"#,
            r#""executable":"/r/target/debug/deps/node-0a1b"}"#,
        );
        let found = suite(line).unwrap();
        assert_eq!((found.name.as_str(), found.waits()), ("quorate-node node", true));
        assert_eq!(found.folder, Path::new("/r/crates/quorate-node"));
        assert_eq!(found.program, Path::new("/r/target/debug/deps/node-0a1b"));
        assert!(suite(&line.replace("{\"test\":true}", "{\"test\":false}")).is_none());
        assert!(suite(&line.replace("\"/r/target/debug/deps/node-0a1b\"", "null")).is_none());
    }

    #[test]
    fn every_lane_runs_and_each_failure_is_named() {
        let job = |name: &str, words: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", words]);
            Job { name: name.into(), command }
        };
        let reckoning = vec![job("a", "exit 0"), job("b", "exit 3")];
        let waiting = vec![yielding(job("c", ":"))];
        let mut done = run(reckoning, waiting);
        done.sort();
        assert_eq!(done, [("a".into(), true), ("b".into(), false), ("c".into(), true)]);
    }

    #[test]
    fn what_waits_is_not_alone_and_its_lanes_help_to_reckon() {
        // Three that each end only when the others have begun: two that wait, one that reckons;
        // then two of each kind that need a lane which has become free.
        let folder = std::env::temp_dir().join(format!("xtask-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let meet = |name: &str, others: [&str; 2]| {
            let [one, two] = others;
            let words =
                format!("touch {name}; until [ -e {one} ] && [ -e {two} ]; do sleep 0.01; done");
            let mut command = Command::new("sh");
            command.args(["-c", &words]).current_dir(&folder);
            Job { name: name.into(), command }
        };
        let reckoning = vec![
            meet("a", ["b", "c"]),
            meet("d", ["e", "f"]),
            meet("e", ["d", "f"]),
            meet("f", ["d", "e"]),
        ];
        let waiting = vec![meet("b", ["a", "c"]), meet("c", ["a", "b"])];
        let done = run(reckoning, waiting);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(done.len(), 6);
        assert!(done.iter().all(|(_, good)| *good), "{done:?}");
    }

    #[test]
    fn what_does_not_end_is_stopped_and_heard() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo waits; exec sleep 1000"]);
        let (good, text) = heard(&mut command, 12, Duration::from_millis(300));
        assert!(!good);
        assert!(text.ends_with("had not ended after 300ms and was stopped"), "{text}");
    }

    #[test]
    fn a_process_that_is_left_behind_holds_up_nothing() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!"]);
        let (good, left) = heard(&mut command, 13, GIVEN_UP);
        let stopped = Command::new("kill").arg(&left).status().unwrap();
        assert!(good && stopped.success(), "{left} was still running");
    }
}

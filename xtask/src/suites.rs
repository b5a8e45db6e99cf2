//! The tests as cargo built them, and two lanes to run things in at the same time.
//!
//! Half of the tests reckon and want every core there is; the other half start processes and wait
//! for them. One after the other, a core is idle for a third of the time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

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

/// Runs the jobs of each lane one after the other, and the lanes beside each other. What a job
/// prints is shown when it has ended: all of it if it failed, else what it counted. Says of every
/// job whether it succeeded.
pub(crate) fn run(lanes: [Vec<Job>; 2]) -> Vec<(String, bool)> {
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for lane in lanes {
            scope.spawn(|| {
                for Job { name, mut command } in lane {
                    let began = Instant::now();
                    let output = command.stdin(Stdio::null()).output();
                    let good = output.as_ref().is_ok_and(|output| output.status.success());
                    let verdict = if good { "ok" } else { "FAILED" };
                    let text = output.map_or_else(|error| error.to_string(), |out| said(&out));
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

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr)).trim_end().to_owned()
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
    fn both_lanes_run_and_each_failure_is_named() {
        let job = |name: &str, words: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", words]);
            Job { name: name.into(), command }
        };
        let lanes = [vec![job("a", "exit 0"), job("b", "exit 3")], vec![yielding(job("c", ":"))]];
        let mut done = run(lanes);
        done.sort();
        assert_eq!(done, [("a".into(), true), ("b".into(), false), ("c".into(), true)]);
    }
}

//! `cargo xtask recipes`: what guides tell people to do, done with the real thing. Not part of
//! `test`, since it installs a database server, an object store and a whole Debian.

mod ci;
mod objects;
mod reboots;
mod systemd;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::browser::apt;
use crate::steps;

/// Tries them one after the other, with `target/debug/quorate`.
pub(crate) fn check(root: &Path) -> bool {
    println!("\n--- recipes");
    let done = Dev::start(root).and_then(|dev| {
        fences(&dev, root)?;
        reboots::one_at_a_time(&dev, root)?;
        ci::jobs(&dev, root)?;
        systemd::units(root)
    });
    if let Err(why) = &done {
        println!("{why}");
    }
    println!("--- recipes: {}", if done.is_ok() { "ok" } else { "FAILED" });
    done.is_ok()
}

type Done<T = ()> = Result<T, String>;

/// docs/guides/fences.md: a writer that sleeps past its lease is refused, by PostgreSQL and by the
/// shell's own file.
fn fences(dev: &Dev, root: &Path) -> Done {
    let early = dev.acquire()?;
    // Nobody renews it: the second gets the unit when the lease of the first has ended.
    let late = dev.acquire()?;
    println!("fences {early} and {late}");
    ensure(late > early, "the next holder has a larger fence")?;
    file(&dev.folder, early, late)?;
    println!("a file refuses the late writer");
    objects::late_writers(dev, root, early, late)?;
    let server = Postgres::start(&dev.folder)?;
    let recipe = root.join("packaging/recipes/fences.sql");
    for _ in 0..2 {
        // Whoever loads it twice does no harm.
        let loaded = server.psql(&["-q", "-f", &recipe.display().to_string()])?;
        ensure(loaded.status.success(), &said(&loaded))?;
    }
    server.good("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")?;
    server.good("INSERT INTO accounts VALUES (1, 100)")?;
    let by_function = |fence: u64, balance: u64| {
        format!(
            "BEGIN; SELECT quorate_admit('db', {fence}); UPDATE accounts SET balance = {balance} \
             WHERE id = 1; COMMIT"
        )
    };
    let by_statement = |fence: u64, balance: u64| {
        format!(
            "WITH admitted AS (INSERT INTO quorate_fences AS seen VALUES ('db', {fence}) ON \
             CONFLICT (unit) DO UPDATE SET fence = EXCLUDED.fence WHERE seen.fence <= \
             EXCLUDED.fence RETURNING unit) UPDATE accounts SET balance = {balance} WHERE id = 1 \
             AND EXISTS (SELECT FROM admitted)"
        )
    };
    server.good(&by_function(early, 90))?;
    server.good(&by_function(late, 80))?;
    let refused = server.psql(&["-v", "VERBOSITY=verbose", "-c", &by_function(early, 1)])?;
    ensure(!refused.status.success() && said(&refused).contains("QF001"), &said(&refused))?;
    server.balance("80")?;
    let done = server.good(&by_statement(late, 70))?;
    ensure(done.contains("UPDATE 1"), &done)?;
    let done = server.good(&by_statement(early, 2))?;
    ensure(done.contains("UPDATE 0"), &done)?;
    server.balance("70")?;
    println!("PostgreSQL refuses the late writer");
    Ok(())
}

/// The shell's file, as the guide has it.
fn file(folder: &Path, early: u64, late: u64) -> Done {
    let script = r#"
        exec 9>>state.fence; flock 9
        seen=$(tail -n 1 state.fence)
        [ "${seen:-0}" -le "$QUORATE_FENCES" ] || exit 75
        echo "$QUORATE_FENCES" >&9
        echo "written by $QUORATE_FENCES" > state.new && mv state.new state"#;
    let write = |fence: u64| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder);
        let status = shell.env("QUORATE_FENCES", fence.to_string()).status();
        status.map_err(|error| error.to_string()).map(|status| status.code())
    };
    for (fence, code) in [(early, 0), (late, 0), (early, 75), (late, 0)] {
        let status = write(fence)?;
        ensure(status == Some(code), &format!("fence {fence}: {status:?}, not {code}"))?;
    }
    let text = std::fs::read_to_string(folder.join("state")).map_err(|error| error.to_string())?;
    ensure(text == format!("written by {late}\n"), &text)
}

fn ensure(good: bool, otherwise: &str) -> Done {
    if good { Ok(()) } else { Err(otherwise.to_owned()) }
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Waits for it, for as long as any sane machine needs.
fn until(so: impl Fn() -> bool) -> Done {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !so() {
        ensure(Instant::now() < give_up, "it never came to pass")?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A cluster with the pools of the guides, which ends with this value.
struct Dev {
    process: Child,
    command: PathBuf,
    server: String,
    folder: PathBuf,
}

impl Dev {
    fn start(root: &Path) -> Done<Dev> {
        let command = steps::target(root).join("debug/quorate");
        let folder = std::env::temp_dir().join(format!("quorate-recipes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let pools = folder.join("pools.toml");
        let text = "[[pools]]\nname = \"db\"\nunits = 1\nlease = \"2s\"\n\
                    [[pools]]\nname = \"staging\"\nunits = 1\nlease = \"2s\"\n\
                    [[pools]]\npattern = \"reboots-*\"\nunits = 1\nprotocol = \"table\"\n\
                    durable = true\nstanding = true\noverdue = \"30m\"\n";
        std::fs::write(&pools, text).map_err(|error| error.to_string())?;
        let mut process = Command::new(&command)
            .args(["dev", "--port", "0", "--pools"])
            .arg(pools)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}: build it first", command.display()))?;
        let lines = process.stdout.take().map(|out| BufReader::new(out).lines());
        let mut lines = lines.into_iter().flatten().map_while(Result::ok);
        let server = lines.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        let server = server.ok_or("quorate dev does not say where it listens")?;
        Ok(Dev { process, command, server, folder })
    }

    /// A program in the folder, which finds the command and the cluster.
    fn shell(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let ours = self.command.parent().map(|folder| folder.display().to_string());
        command.env("PATH", format!("{}:{path}", ours.unwrap_or_default()));
        command.env("QUORATE_SERVER", &self.server).current_dir(&self.folder);
        command
    }

    fn quorate(&self, words: &[&str]) -> Done<Output> {
        self.shell("quorate").args(words).output().map_err(|error| error.to_string())
    }

    fn write(&self, name: &str, text: &str) -> Done {
        std::fs::write(self.folder.join(name), text).map_err(|error| format!("{name}: {error}"))
    }

    /// The fence of a new holder.
    fn acquire(&self) -> Done<u64> {
        let text = said(&self.quorate(&["acquire", "db"])?);
        let mut words = text.split_whitespace().skip_while(|word| *word != "fence").skip(1);
        words.next().and_then(|word| word.parse().ok()).ok_or(text.clone())
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server of its own, without a network.
struct Postgres {
    tools: PathBuf,
    folder: PathBuf,
}

impl Postgres {
    fn start(parent: &Path) -> Done<Postgres> {
        let tools = match tools() {
            Some(tools) => tools,
            None => {
                println!("installing postgresql");
                let there = apt(&["postgresql"]).then(tools).flatten();
                there.ok_or("postgresql could not be installed")?
            }
        };
        let folder = parent.join("postgres");
        let server = Postgres { tools, folder };
        // Only the user of the package may run it.
        let folder = server.folder.display().to_string();
        let run = |words: &[&str]| {
            let output = Command::new(words[0]).args(&words[1..]).output();
            let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
            ensure(output.status.success(), &said(&output))
        };
        run(&["chmod", "755", &parent.display().to_string()])?;
        run(&["install", "-d", "-o", "postgres", &folder])?;
        let tool = |name: &str| server.tools.join(name).display().to_string();
        let user = ["runuser", "-u", "postgres", "--"];
        let initdb = tool("initdb");
        run(&[&user[..], &[&initdb, "-A", "trust", "-N", "-D", &folder]].concat())?;
        let options = format!("-k {folder} -c listen_addresses= -F");
        let log = format!("{folder}/log");
        let pg_ctl = tool("pg_ctl");
        let start = ["-D", &folder, "-o", &options, "-l", &log, "-w", "start"];
        run(&[&user[..], &[pg_ctl.as_str()], &start].concat())?;
        Ok(server)
    }

    fn psql(&self, words: &[&str]) -> Done<Output> {
        let mut command = Command::new(self.tools.join("psql"));
        command.args(["-X", "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-h"]).arg(&self.folder);
        command.args(words).output().map_err(|error| error.to_string())
    }

    fn good(&self, statement: &str) -> Done<String> {
        let output = self.psql(&["-c", statement])?;
        ensure(output.status.success(), &said(&output))?;
        Ok(said(&output))
    }

    fn balance(&self, expected: &str) -> Done {
        let output = self.psql(&["-At", "-c", "SELECT balance FROM accounts"])?;
        ensure(said(&output).trim() == expected, &said(&output))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = Command::new("runuser");
        stop.args(["-u", "postgres", "--"]).arg(self.tools.join("pg_ctl")).arg("-D");
        let _ = stop.arg(&self.folder).args(["-m", "immediate", "stop"]).output();
    }
}

/// Where Debian has the programs of a server.
fn tools() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut tools: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    tools.sort();
    tools.into_iter().rev().find(|tools| tools.join("initdb").exists())
}

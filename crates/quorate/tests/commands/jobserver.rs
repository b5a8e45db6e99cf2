//! `quorate jobserver` with the programs it is for: GNU make, cargo, ninja, gcc and ctest, as they
//! are installed here. Two builds at once never run more jobs than the pool has units, and both
//! finish.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Dev, text};

const POOL: &str = "[[pools]]\nname = \"builds\"\nunits = 3\nlease = \"2s\"\n";

/// A folder for builds, with a job that writes down when it begins and ends.
struct Yard {
    folder: PathBuf,
}

impl Yard {
    fn new(name: &str) -> Yard {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("jobserver-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder to write to");
        let yard = Yard { folder };
        yard.program("job", "echo + >> $LOG; sleep ${NAP:-0.1}; echo - >> $LOG");
        yard
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder to write to");
        std::fs::write(path, text).expect("a folder to write to");
    }

    fn program(&self, name: &str, script: &str) {
        self.write(name, &format!("#!/bin/sh\n{script}\n"));
        let path = self.folder.join(name);
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("our file");
    }

    /// A build in the background, in its own folder.
    fn start(&self, dev: &Dev, folder: &str, options: &str, command: &[&str]) -> Child {
        let mut build = dev.command(&format!("jobserver builds {options}"));
        // What the tests were started with is not what people start builds with.
        build.env_remove("MAKEFLAGS").env_remove("CARGO_MAKEFLAGS").env_remove("MFLAGS");
        build.arg("--").args(command).current_dir(self.folder.join(folder));
        build.env("LOG", self.log()).env("JOB", self.folder.join("job"));
        build.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command was built")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// How many jobs ended, and how many ran at once.
    fn jobs(&self) -> (usize, usize) {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let (mut running, mut ended, mut most) = (0_usize, 0, 0);
        for line in log.lines() {
            match line {
                "+" => running += 1,
                _ => (running, ended) = (running - 1, ended + 1),
            }
            most = most.max(running);
        }
        (ended, most)
    }

    /// Waits until the log says so, for as long as any sane machine needs.
    fn until(&self, good: impl Fn(usize, usize) -> bool) {
        let give_up = Instant::now() + Duration::from_secs(60);
        while !good(self.jobs().0, self.jobs().1) {
            assert!(Instant::now() < give_up, "{:?}", self.jobs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn makefile(&self, folder: &str, jobs: usize) {
        let names: Vec<String> = (0..jobs).map(|job| format!("j{job}")).collect();
        let names = names.join(" ");
        self.write(&format!("{folder}/Makefile"), &format!("all: {names}\n{names}:\n\t@$(JOB)\n"));
    }
}

fn finish(build: Child) {
    let output = build.wait_with_output().expect("it was started");
    assert!(output.status.success(), "{}", text(&output.stderr));
    // As make says it when it does not take our tokens.
    assert!(!text(&output.stderr).contains("warning"), "{}", text(&output.stderr));
}

#[test]
fn two_makes_share_the_units_and_both_finish() {
    let dev = Dev::with_pools("jobserver-make", POOL);
    let yard = Yard::new("make");
    yard.makefile("a", 10);
    yard.makefile("b", 10);
    let builds = ["a", "b"].map(|it| yard.start(&dev, it, "-n 8", &["make", "-j"]));
    builds.into_iter().for_each(finish);
    assert_eq!(yard.jobs(), (20, 3), "as many jobs as units, and never more");
    dev.until("pools builds", |pool| pool["held"] == 0 && pool["waiting"] == 0);
}

#[test]
fn a_make_inside_a_make_takes_from_the_same_slots() {
    let dev = Dev::with_pools("jobserver-nested", POOL);
    let yard = Yard::new("nested");
    yard.makefile("inner", 6);
    yard.write("outer/Makefile", "all: a b\na b:\n\t+@$(MAKE) -s -C ../inner\n");
    finish(yard.start(&dev, "outer", "-n 8", &["make", "-s"]));
    assert_eq!(yard.jobs(), (12, 3));
}

#[test]
fn cargo_takes_tokens_of_both_styles() {
    let dev = Dev::with_pools("jobserver-cargo", POOL);
    let yard = Yard::new("cargo");
    // In place of the compiler: the job, and then what cargo asked for.
    yard.program("rustc", "case \"$*\" in *--crate-name\\ c*) \"$JOB\";; esac; exec \"$@\"");
    let crates: Vec<String> = (0..4).map(|name| format!("c{name}")).collect();
    for folder in ["a", "b"] {
        let members = crates.join("\", \"");
        let root = format!("[workspace]\nresolver = \"2\"\nmembers = [\"{members}\"]\n");
        yard.write(&format!("{folder}/Cargo.toml"), &root);
        for name in &crates {
            let package = format!("[package]\nname = \"{name}\"\nedition = \"2021\"\n");
            yard.write(&format!("{folder}/{name}/Cargo.toml"), &package);
            yard.write(&format!("{folder}/{name}/src/lib.rs"), "");
        }
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let wrapper = yard.folder.join("rustc").display().to_string();
    let config = format!("build.rustc-wrapper='{wrapper}'");
    let words = [&cargo, "check", "--offline", "--target-dir", "target", "--config", &config];
    let builds = [("a", "-n 8"), ("b", "-n 8 --style fifo")]
        .map(|(folder, options)| yard.start(&dev, folder, options, &words));
    builds.into_iter().for_each(finish);
    let (ended, most) = yard.jobs();
    assert_eq!(ended, 8);
    assert!((2..=3).contains(&most), "{most} at once");
    dev.until("pools builds", |pool| pool["held"] == 0);
}

/// A program of at least this version, where Debian does not have it yet: `cargo xtask test`
/// installs it where this looks.
fn recent(program: &str, least: (u32, u32)) -> Option<String> {
    let named = std::env::var_os(format!("QUORATE_{}", program.to_uppercase())).map(PathBuf::from);
    let ours = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("python/bin").join(program);
    let program = named.unwrap_or(ours);
    let version = Command::new(&program).arg("--version").output().ok()?;
    let version = text(&version.stdout);
    let version = version.lines().next()?.split(' ').next_back()?;
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    ((numbers.next()?, numbers.next()?) >= least).then(|| program.display().to_string())
}

#[test]
fn two_ninjas_share_the_units_and_both_finish() {
    let Some(ninja) = recent("ninja", (1, 13)) else {
        eprintln!("skipped: no ninja from 1.13; `cargo xtask test` installs it");
        return;
    };
    let dev = Dev::with_pools("jobserver-ninja", POOL);
    let yard = Yard::new("ninja");
    let mut rules = "rule job\n  command = $$JOB\n".to_owned();
    (0..10).for_each(|job| rules.push_str(&format!("build j{job}: job\n")));
    yard.write("a/build.ninja", &rules);
    yard.write("b/build.ninja", &rules);
    let builds = ["a", "b"].map(|it| yard.start(&dev, it, "-n 8", &[&ninja, "-j8"]));
    builds.into_iter().for_each(finish);
    let (ended, most) = yard.jobs();
    assert_eq!(ended, 20);
    assert!((2..=3).contains(&most), "{most} at once");
    dev.until("pools builds", |pool| pool["held"] == 0);
}

#[test]
fn two_ctests_share_the_units_and_both_finish() {
    let Some(ctest) = recent("ctest", (3, 29)) else {
        eprintln!("skipped: no ctest from 3.29; `cargo xtask test` installs it");
        return;
    };
    let dev = Dev::with_pools("jobserver-ctest", POOL);
    let yard = Yard::new("ctest");
    let job = yard.folder.join("job");
    let tests: Vec<String> =
        (0..8).map(|test| format!("add_test(t{test} \"{}\")\n", job.display())).collect();
    yard.write("a/CTestTestfile.cmake", &tests.concat());
    yard.write("b/CTestTestfile.cmake", &tests.concat());
    let builds = [("a", "-n 8"), ("b", "-n 8 --style fifo")]
        .map(|(folder, options)| yard.start(&dev, folder, options, &[&ctest, "-j", "8"]));
    builds.into_iter().for_each(finish);
    let (ended, most) = yard.jobs();
    assert_eq!(ended, 16);
    assert!((2..=3).contains(&most), "{most} at once");
    dev.until("pools builds", |pool| pool["held"] == 0);
}

#[test]
fn two_links_of_gcc_share_the_units_and_both_finish() {
    let said = Command::new("gcc").arg("-print-prog-name=lto1").output();
    let lto1 = said.map(|said| text(&said.stdout).trim().to_owned()).unwrap_or_default();
    if !Path::new(&lto1).is_absolute() {
        eprintln!("skipped: no gcc with -flto");
        return;
    }
    let dev = Dev::with_pools("jobserver-gcc", POOL);
    let yard = Yard::new("gcc");
    // In place of the last step of the compiler, of which there is one for each function: the job
    // first.
    let step = format!("case \"$*\" in *-fltrans\\ *) \"$JOB\";; esac; exec {lto1} \"$@\"");
    yard.program("steps/lto1", &step);
    let names: Vec<String> = (0..6).map(|name| format!("f{name}")).collect();
    for folder in ["a", "b"] {
        let functions = names
            .iter()
            .map(|name| format!("__attribute__((noipa)) int {name}(int x) {{ return x + 1; }}\n"));
        let calls: Vec<String> = names.iter().map(|name| format!("{name}(c)")).collect();
        let main = format!("int main(int c, char **v) {{ return {} < 0; }}\n", calls.join(" + "));
        yard.write(&format!("{folder}/all.c"), &(functions.collect::<String>() + &main));
    }
    let words = ["gcc", "-O2", "-flto=jobserver", "-flto-partition=max", "-B../steps/", "all.c"];
    let builds = ["a", "b"].map(|it| yard.start(&dev, it, "-n 8", &words));
    builds.into_iter().for_each(finish);
    let (ended, most) = yard.jobs();
    assert!(ended >= 12, "{ended} steps of the compiler");
    assert!((2..=3).contains(&most), "{most} at once");
    dev.until("pools builds", |pool| pool["held"] == 0);
}

#[test]
fn lost_units_slow_a_build_down_and_do_not_stop_it() {
    let mut dev = Dev::with_pools("jobserver-lost", &POOL.replace("2s", "1s"));
    let yard = Yard::new("lost");
    yard.makefile("a", 24);
    let mut build = dev.command("jobserver builds -n 3 -- make");
    build.env_remove("MAKEFLAGS").env("LOG", yard.log()).env("JOB", yard.folder.join("job"));
    build.current_dir(yard.folder.join("a")).env("NAP", "0.2").stderr(Stdio::piped());
    let build = build.spawn().expect("the command was built");
    yard.until(|_, most| most == 3);
    // No node answers any more: the lease of one second ends, and nobody renews it.
    dev.process.kill().expect("it runs");
    let output = build.wait_with_output().expect("it was started");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("the build goes on with fewer jobs"), "{said}");
    assert_eq!(yard.jobs().0, 24, "every job was done");
}

#[test]
fn a_build_that_is_killed_leaves_no_unit_behind() {
    let dev = Dev::with_pools("jobserver-killed", POOL);
    let yard = Yard::new("killed");
    yard.makefile("a", 3);
    // The command is killed: the wrapper gives its units back.
    yard.program("job", "echo + >> $LOG; kill -9 $PPID; sleep 5");
    let killed = yard.start(&dev, "a", "-n 3", &["make"]).wait().expect("it was started");
    assert_eq!(killed.code(), Some(128 + 9));
    dev.until("pools builds", |pool| pool["held"] == 0 && pool["waiting"] == 0);
    // The wrapper is killed: its command with it, and the units are back after their lease.
    yard.program("job", "echo + >> $LOG; exec sleep 5");
    let _ = std::fs::remove_file(yard.log());
    let mut wrapper = yard.start(&dev, "a", "-n 3", &["make"]);
    yard.until(|_, most| most == 3);
    wrapper.kill().expect("it runs");
    wrapper.wait().expect("it was started");
    dev.until("pools builds", |pool| pool["held"] == 0 && pool["waiting"] == 0);
}

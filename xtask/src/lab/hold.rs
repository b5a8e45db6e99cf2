//! Jobs that hold units, and who sees that no unit has two of them.
//!
//! All machines of a laboratory share a kernel, which can judge: a job locks a file for each unit
//! it was given, for as long as it lives. Whoever finds one locked, or a fence there that is not
//! smaller than its own, has found the law broken.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::net::{self, Host, Outcome, Process};

/// What a job exits with that found a unit in use.
const BREACH: i32 = 99;
/// What `quorate run` exits with if a grant was lost.
const LOST: i32 = 123;

/// The job itself: `xtask lab hold FOLDER MILLIS|FILE`. Ends after so long, or when the file is
/// there.
pub(crate) fn job(folder: &str, ends: &str) -> i32 {
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let (units, fences, claim) = (of("QUORATE_UNITS"), of("QUORATE_FENCES"), of("QUORATE_CLAIM"));
    let pool = of("QUORATE_POOL");
    let folder = Path::new(folder);
    let mut held = Vec::new();
    for (unit, fence) in units.split(',').zip(fences.split(',')) {
        let taken = take(&folder.join(format!("{pool}.{unit}")), fence, &claim);
        match taken {
            Ok(file) => held.push(file),
            Err(why) => {
                let line = format!("unit {unit} of {pool}: {why}\n");
                let breach = folder.join("breach");
                let file = OpenOptions::new().create(true).append(true).open(breach);
                let mut file = file.expect("a folder of ours");
                file.write_all(line.as_bytes()).expect("a folder of ours");
                return BREACH;
            }
        }
    }
    assert!(!held.is_empty(), "a pool whose units have names");
    match ends.parse() {
        Ok(millis) => std::thread::sleep(Duration::from_millis(millis)),
        Err(_) => {
            let began = folder.join(format!("began-{claim}"));
            fs::write(began, "").expect("a folder of ours");
            while !Path::new(ends).exists() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    0
}

fn take(path: &Path, fence: &str, claim: &str) -> Outcome<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| error.to_string())?;
    let locked = file.try_lock();
    let mut before = String::new();
    file.read_to_string(&mut before).map_err(|error| error.to_string())?;
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(format!("claim {claim} has it with fence {fence}, and so has {before}"));
        }
        Err(TryLockError::Error(error)) => return Err(error.to_string()),
    }
    let number = |text: &str| text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    let ours = number(fence).ok_or_else(|| format!("fence {fence:?} is no number"))?;
    if let Some(last) = number(&before).filter(|last| *last >= ours) {
        return Err(format!("claim {claim} has fence {ours} after {last}"));
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(format!("{ours} claim {claim}").as_bytes()));
    written.map_err(|error| error.to_string())?;
    Ok(file)
}

/// How the hosts' jobs reach the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The command.
    pub(crate) program: PathBuf,
    /// Which cluster, and what to show: arguments of every command.
    pub(crate) words: Vec<String>,
    /// Where jobs keep their locks.
    pub(crate) locks: PathBuf,
}

impl Access {
    /// `quorate run` on a host, with a job that ends so.
    fn run(&self, host: &Host, pool: &str, units: u32, ends: &str) -> Outcome<Process> {
        let ours = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = host.command(&self.program.display().to_string());
        command.args(["run", pool, "-n", &units.to_string()]).args(&self.words).arg("--");
        command.arg(ours).args(["lab", "hold"]).arg(&self.locks).arg(ends);
        let log = OpenOptions::new().create(true).append(true).open(host.folder.join("jobs.log"));
        let log = log.map_err(|error| error.to_string())?;
        net::start(command.stdout(Stdio::null()).stderr(log))
    }

    /// A job that holds until it is told to end.
    pub(crate) fn hold(&self, host: &Host, pool: &str, end: &Path) -> Outcome<Process> {
        self.run(host, pool, 1, &end.display().to_string())
    }

    /// Whether a job gets a unit and is done in a while; it is ended if not.
    pub(crate) fn passes(&self, host: &Host, pool: &str) -> Outcome<bool> {
        let (mut job, began) = (self.run(host, pool, 1, "0")?, Instant::now());
        while !job.has_ended() {
            if began.elapsed() > net::PATIENCE {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.judge()?;
        Ok(job.end() == Some(0))
    }

    /// How many jobs of [`Access::hold`] have begun.
    pub(crate) fn begun(&self) -> usize {
        let entries = fs::read_dir(&self.locks).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("began-")).count()
    }

    /// What jobs found wrong.
    pub(crate) fn judge(&self) -> Outcome {
        match fs::read_to_string(self.locks.join("breach")) {
            Ok(found) => Err(format!("LAW BROKEN: {found}")),
            Err(_) => Ok(()),
        }
    }

    /// That all units of a pool can be had at once.
    pub(crate) fn all_free(&self, host: &Host, pool: &str, units: u32) -> Outcome {
        let began = Instant::now();
        loop {
            // A node that was cut off may not answer at once.
            let mut job = self.run(host, pool, units, "0")?;
            while !job.has_ended() && began.elapsed() < net::PATIENCE {
                std::thread::sleep(Duration::from_millis(20));
            }
            if !job.has_ended() {
                return Err(format!("waited in vain for all {units} units of {pool}"));
            }
            match job.end() {
                Some(0) => return Ok(()),
                Some(BREACH) => return self.judge(),
                other if began.elapsed() > net::PATIENCE => {
                    return Err(format!("no {units} units of {pool}: exit code {other:?}"));
                }
                _ => {}
            }
        }
    }
}

/// Jobs that come one after the other, until they are told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<Outcome>>,
}

/// What became of them.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    /// Held from begin to end.
    pub(crate) held: AtomicU64,
    /// Stopped, since their grant could not be renewed.
    pub(crate) lost: AtomicU64,
    /// Never begun: no node could be asked.
    pub(crate) failed: AtomicU64,
}

impl Load {
    /// So many at once, each on the next of these hosts, with one unit for the next of these spans.
    pub(crate) fn start(
        access: &Access,
        hosts: &[&Host],
        (pool, jobs): (&str, usize),
        millis: &[u64],
    ) -> Load {
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let one = |number: usize| {
            let host = hosts[number % hosts.len()].clone();
            let (access, stop, counts) = (access.clone(), Arc::clone(&stop), Arc::clone(&counts));
            let (pool, ends) = (pool.to_owned(), millis[number % millis.len()].to_string());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let count = match access.run(&host, &pool, 1, &ends)?.end() {
                        Some(0) => &counts.held,
                        Some(LOST) => &counts.lost,
                        Some(BREACH) => return access.judge(),
                        _ => &counts.failed,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        let threads = (0..jobs).map(one).collect();
        Load { stop, counts, threads }
    }

    pub(crate) fn held(&self) -> u64 {
        self.counts.held.load(Ordering::Relaxed)
    }

    /// Waits until so many more have been held from begin to end.
    pub(crate) fn goes_on(&self, more: u64, during: &str) -> Outcome {
        let enough = self.held() + more;
        net::until(&format!("{more} more jobs, {during}"), || self.held() >= enough)
    }

    /// Ends when those that run have ended: held, lost, failed.
    pub(crate) fn stop(self) -> Outcome<[u64; 3]> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| "a job could not be watched".to_owned())??;
        }
        let Counts { held, lost, failed } = &*self.counts;
        Ok([held, lost, failed].map(|count| count.load(Ordering::Relaxed)))
    }
}

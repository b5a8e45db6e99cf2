//! `--on-move`: a program that makes the running one leave a unit for another.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Stdio;

use quorate_client::{Grant, Move};
use tokio::process::{Child as Process, Command};

use super::child::Child;

/// Answers moves one by one.
pub(super) struct Mover {
    hook: Option<OsString>,
    /// What units are called.
    names: BTreeMap<u32, String>,
    running: Option<(Move, Process)>,
    /// What did not work is not tried again.
    failed: Vec<Move>,
}

impl Mover {
    pub(super) fn new(hook: Option<OsString>, grant: &Grant) -> Mover {
        let names = grant.units().into_iter().zip(grant.names()).collect();
        Mover { hook, names, running: None, failed: Vec::new() }
    }

    /// Starts what is asked for, if nothing runs already.
    pub(super) fn look(&mut self, grant: &Grant, child: &Child) {
        let Some(hook) = self.hook.as_ref().filter(|_| self.running.is_none()) else { return };
        let due = |it: &Move| !self.failed.contains(it);
        let Some(it) = grant.moves().into_iter().find(due) else { return };
        let name = |unit: u32| self.names.get(&unit).cloned().unwrap_or_else(|| unit.to_string());
        let to = match it.about.name.is_empty() {
            true => it.to.unit.to_string(),
            false => it.about.name.clone(),
        };
        let labels = serde_json::to_string(&it.about.labels).expect("texts are always JSON");
        let from = name(it.from.unit);
        let spawned = Command::new(hook)
            .args([&from, &to])
            .stdin(Stdio::null())
            .env("QUORATE_FROM", &from)
            .env("QUORATE_TO", &to)
            .env("QUORATE_TO_FENCE", it.to.fence.to_string())
            .env("QUORATE_TO_LABELS", labels)
            .env("QUORATE_PID", child.group().to_string())
            .kill_on_drop(true)
            .spawn();
        match spawned {
            Ok(process) => {
                self.names.insert(it.to.unit, to);
                self.running = Some((it, process));
            }
            Err(error) => {
                eprintln!("quorate: cannot run the program of --on-move: {error}");
                self.failed.push(it);
            }
        }
    }

    /// Waits for it; the move is done if it succeeded.
    pub(super) async fn done(&mut self) -> Option<Move> {
        let Some((_, process)) = &mut self.running else { return std::future::pending().await };
        let ended = process.wait().await;
        let (it, _) = self.running.take()?;
        match ended {
            Ok(status) if status.success() => return Some(it),
            Ok(status) => eprintln!("quorate: --on-move failed ({status}); the unit stays"),
            Err(error) => eprintln!("quorate: --on-move failed ({error}); the unit stays"),
        }
        self.failed.push(it);
        None
    }
}

//! Processes of clients on the hosts of a draw: crews, the onlooker, strangers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::draw::Draw;
use super::json::quoted;
use super::stage::{POOL, PROBE, RECOVERY, Stage, append};
use crate::lab::net::{self, Outcome};

/// A process of clients.
pub(crate) struct Worker {
    pub(crate) by: String,
    place: usize,
    child: Child,
    pub(crate) paused: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stage {
    pub(crate) fn orders(&self, by: &str, more: &str) -> Outcome<PathBuf> {
        let eye = self.lab.host("eye");
        let file = |name: &str| quoted(&eye.folder.join(name).display().to_string());
        let servers: Vec<String> = (0..self.nodes.len())
            .map(|number| format!("\"{}\"", self.host(number).address))
            .collect();
        let Draw { units, lease, workload, protocol, .. } = self.draw;
        let pool = match workload.pools {
            0 => format!("{{\"name\":\"{POOL}\",\"units\":{units}}}"),
            many => format!("{{\"name\":\"camp-\",\"units\":{units},\"many\":{many}}}"),
        };
        let text = format!(
            "{{\"by\":\"{by}\",\"servers\":[{}],\"ca\":{},\"token\":{},\"log\":{},\
             \"pools\":[{pool}],\"lease\":{},\"program\":{},\"probe\":\"{PROBE}\",\
             \"flood\":\"flood-1\",\"labelled\":{},\"wanders\":{},\
             \"moves\":{},{more}}}",
            servers.join(","),
            file("ca.crt"),
            file("token"),
            file(&format!("history-{by}.jsonl")),
            lease.as_secs_f64(),
            quoted(&self.tools.program.display().to_string()),
            workload.labelled,
            protocol.lets_wander(),
            protocol.moves(),
        );
        eye.write(&format!("orders-{by}"), text)?;
        Ok(eye.folder.join(format!("orders-{by}")))
    }

    fn python(&self, host: &str, mode: &str, orders: &Path) -> Command {
        let mut command = self.lab.host(host).command("python3");
        let eye = self.lab.host("eye");
        let script = if ["look", "strange"].contains(&mode) { "onlooker.py" } else { "client.py" };
        command.arg(eye.folder.join(script)).arg(mode).arg(orders);
        command.env("PYTHONPATH", self.tools.root.join("clients/python/src"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// The onlooker.
    pub(crate) fn look(&mut self) -> Outcome {
        let orders = self.orders("eye", "\"threads\":1")?;
        let command = self.python("eye", "look", &orders);
        self.looker = Some(self.worker(command, "eye".into(), 0)?);
        Ok(())
    }

    pub(crate) fn stop_looking(&mut self) -> Outcome {
        self.looker.take().map_or(Ok(()), |looker| finish(looker, Duration::from_secs(20)))
    }

    /// All crews of the workload.
    pub(crate) fn crews(&mut self) -> Outcome {
        (0..self.draw.workload.crews.len()).try_for_each(|place| self.crew(place))
    }

    pub(super) fn crew(&mut self, place: usize) -> Outcome {
        let crew = self.draw.workload.crews[place];
        self.count += 1;
        let by = format!("{}-{}", crew.kind, self.count);
        let host = ["c1", "c2"][place % 2];
        let seed = self.dice.draw() % 1_000_000;
        let bug = self.tools.client_bug.filter(|_| place == 0).map_or("null".into(), quoted);
        let command = if crew.kind == "rust" {
            let real = self.tools.real.clone().ok_or("the Rust client is in the program `real`")?;
            let eye = self.lab.host("eye").folder.clone();
            let mut command = self.lab.host(host).command(&real.display().to_string());
            let servers: Vec<String> = (0..self.nodes.len())
                .map(|number| format!("https://{}:7420", self.host(number).address))
                .collect();
            let log = append(&eye.join(format!("history-{by}.txt")))?;
            command.args(["client", &seed.to_string(), &crew.threads.to_string(), POOL]);
            command.arg(self.draw.units.to_string());
            command.arg(self.draw.lease.as_millis().to_string()).arg(servers.join(","));
            command.arg(eye.join("ca.crt")).arg(eye.join("token"));
            command.stdout(log);
            command
        } else {
            let dead: Vec<String> = self.killed.iter().map(|by| quoted(by)).collect();
            let more = format!(
                "\"dead\":[{}],\"seed\":{seed},\"manner\":\"{}\",\"threads\":{},\"bug\":{bug}",
                dead.join(","),
                crew.manner,
                crew.threads
            );
            let orders = self.orders(&by, &more)?;
            self.python(host, "live", &orders)
        };
        let worker = self.worker(command, by, place)?;
        self.workers.push(worker);
        Ok(())
    }

    fn worker(&self, mut command: Command, by: String, place: usize) -> Outcome<Worker> {
        let log = append(&self.lab.host("eye").folder.join("clients.log"))?;
        let spawned = command.stdin(Stdio::piped()).stderr(log).spawn();
        let child = spawned.map_err(|error| format!("cannot start clients: {error}"))?;
        Ok(Worker { by, place, child, paused: false })
    }

    /// kill -9 of a process of clients; another takes its place.
    pub(crate) fn replace_worker(&mut self, number: usize) -> Outcome {
        let worker = self.workers.remove(number);
        self.note(format!("clients {} are killed", worker.by));
        self.killed.push(worker.by.clone());
        let place = worker.place;
        drop(worker);
        self.crew(place)
    }

    pub(crate) fn pause_worker(&mut self, number: usize, pause: bool) -> Outcome {
        let worker = &mut self.workers[number];
        if worker.paused == pause {
            return Ok(());
        }
        worker.paused = pause;
        let (id, by) = (worker.child.id().to_string(), worker.by.clone());
        self.note(format!("clients {by} {}", if pause { "stand still" } else { "go on" }));
        net::done(Command::new("kill").args([if pause { "-STOP" } else { "-CONT" }, &id]))
    }

    /// Clients are told to end; each must be served once more first.
    pub(crate) fn finish_crews(&mut self) -> Outcome {
        for worker in &mut self.workers {
            drop(worker.child.stdin.take());
        }
        let give_up = Instant::now() + RECOVERY;
        for worker in std::mem::take(&mut self.workers) {
            let by = worker.by.clone();
            finish(worker, give_up.saturating_duration_since(Instant::now()))
                .map_err(|why| format!("EVERYBODY SERVED: clients {by}: {why}"))?;
        }
        Ok(())
    }

    /// All units of the pool at once.
    pub(crate) fn all_units(&mut self) -> Outcome {
        let orders = self.orders("all", "\"threads\":1")?;
        let command = self.python("c1", "all", &orders);
        let worker = self.worker(command, "all".into(), 0)?;
        finish(worker, RECOVERY).map_err(|why| format!("ALL UNITS RETURN: {why}"))
    }

    /// Strangers of a kind, at these nodes.
    pub(crate) fn strangers(&mut self, kind: &str, nodes: &[usize]) -> Outcome {
        self.note(format!("strangers: {kind}"));
        let seed = self.dice.draw() % 1_000_000;
        let more = format!("\"kind\":\"{kind}\",\"nodes\":{nodes:?},\"seed\":{seed}");
        // Each writes down its own, and is killed at the end.
        let by = format!("far-{}", self.strangers.len());
        self.killed.push(by.clone());
        let orders = self.orders(&by, &more)?;
        let mut command = self.python("far", "strange", &orders);
        self.strangers.push(net::start(command.stdout(Stdio::null()).stderr(Stdio::null()))?);
        Ok(())
    }

    /// Somebody else uses the processors.
    pub(crate) fn hog(&mut self) -> Outcome {
        let mut command = self.lab.host("far").command("sh");
        self.strangers.push(net::start(command.args(["-c", "while :; do :; done"]))?);
        Ok(())
    }
}

/// Waits until a process of clients that was told to end has done so in good order.
fn finish(mut worker: Worker, patience: Duration) -> Outcome {
    drop(worker.child.stdin.take());
    let give_up = Instant::now() + patience;
    loop {
        match worker.child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended badly: {status} (clients.log)")),
            Ok(None) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(None) => return Err(format!("not served within {} s", RECOVERY.as_secs())),
            Err(error) => return Err(error.to_string()),
        }
    }
}

//! A cluster that grows from nothing while it is used: `serve --new`, invitations, `serve --join`.
//! What must not join does not; then the first member is lost, and all are started again from the
//! files that they wrote; one is removed, and another takes no place of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorate_api::{MemberRole, MembersView};
use quorate_client::{Client, Options, Token};

use crate::cluster::Process;
use crate::members::keep;
use crate::ports::free_address;
use crate::ring::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_quorate");

/// A machine, and the process of its node.
pub(crate) struct Machine {
    name: String,
    pub(crate) data: PathBuf,
    pub(crate) clients: SocketAddr,
    peers: SocketAddr,
    pub(crate) process: Option<Process>,
}

impl Machine {
    pub(crate) fn new(folder: &Path, name: &str) -> Machine {
        let (clients, peers) = (free_address(), free_address());
        let (name, data) = (name.to_owned(), folder.join(name));
        Machine { name, data, clients, peers, process: None }
    }

    /// `quorate serve` with these words.
    pub(crate) fn serve(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").args(words).arg("--data").arg(&self.data);
        command
    }

    /// The same for a machine that is none of a member yet.
    pub(crate) fn begin(&self, words: &[&str]) -> Command {
        let mut command = self.serve(words);
        command.args(["--address", "127.0.0.1"]);
        command.args(["--clients-port", &self.clients.port().to_string()]);
        command.args(["--peers-port", &self.peers.port().to_string()]);
        command
    }

    pub(crate) fn run(&mut self, mut command: Command) {
        let log = self.data.with_extension("log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let log = log.expect("a log file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log file")).stderr(log);
        self.process = Some(Process::new(command.spawn().expect("the command was built")));
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
    }

    /// What `quorate` with these words says to this machine's socket.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        let socket = format!("unix:{}", self.data.join("quorate.sock").display());
        command.args(words).args(["--server", &socket]);
        tokio::task::block_in_place(|| command.output()).expect("the command was built")
    }

    pub(crate) fn fine(&self, words: &[&str]) -> String {
        let output = self.ask(words);
        assert!(output.status.success(), "{words:?}: {output:?}; {}", self.log());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn refused(&self, words: &[&str], why: &str) {
        said_no(&self.ask(words), why);
    }

    fn list(&self) -> Option<MembersView> {
        let output = self.ask(&["member", "list", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// The invitations of these names.
    pub(crate) fn invite(&self, names: &[&str]) -> Vec<String> {
        let said = self.fine(&[&["member", "invite"], names].concat());
        let line = |line: &str| {
            let line = line.strip_prefix("quorate serve --join '").expect("a command");
            line.strip_suffix('\'').expect("in quotes").to_owned()
        };
        said.lines().map(line).collect()
    }
}

fn said_no(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{why}: {output:?}");
}

/// A command that should end by itself, without having become a member.
fn no_member(mut command: Command, why: &str) {
    let output = tokio::task::block_in_place(|| command.output()).expect("the command was built");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    said_no(&output, why);
}

/// All of them see all of them, and so many vote.
pub(crate) async fn whole(machines: &[&Machine], voters: usize) {
    let sees = |machine: &&Machine| {
        machine.list().is_some_and(|view| {
            let is = |other: &&Machine| {
                view.members.iter().any(|it| it.name == other.name && it.connected)
            };
            let votes = view.members.iter().filter(|it| it.role == MemberRole::Voter);
            machines.iter().all(is) && votes.count() == voters && view.leader.is_some()
        })
    };
    until("all are there, and vote", || machines.iter().all(sees)).await;
}

pub(crate) async fn client(machines: &[&Machine], token: &str) -> Client {
    let addresses: Vec<String> = machines.iter().map(|it| it.clients.to_string()).collect();
    loop {
        let token = Some(Token(token.to_owned()));
        let options = Options { token, ..Options::default() };
        if let Ok(client) = Client::connect_with(addresses.clone(), options).await {
            return client;
        }
    }
}

/// Waits until somebody has had a unit from now on.
async fn used_again(rounds: &AtomicU32) {
    let before = rounds.load(Ordering::Relaxed);
    // The one that ends next may have begun before.
    until("the pool is in use", || rounds.load(Ordering::Relaxed) > before + 1).await;
}

pub(crate) async fn joining(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-joining");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let [mut n1, mut n2, mut n3, mut n4] =
        ["n1", "n2", "n3", "n4"].map(|name| Machine::new(&folder, name));
    n1.run(n1.begin(&["--new", "--cluster", "real", "--name", "n1"]));
    let pool = ["pool", "create", "p", "--units", "3"];
    until("the first member makes a pool", || n1.ask(&pool).status.success()).await;
    let token = std::fs::read_to_string(n1.data.join("admin.token")).expect("it was written");
    let token = token.trim();
    let mut jobs =
        vec![client(&[&n1], token).await.pool("p").acquire().await.expect("one of three")];

    // Somebody uses the pool all the time.
    let (over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let load = {
        let (over, rounds) = (Arc::clone(&over), Arc::clone(&rounds));
        let all = client(&[&n1, &n2, &n3], token).await;
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let Ok(grant) = all.pool("p").acquire().await else { continue };
                let _ = grant.release().await;
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        })
    };

    let [two, three]: [String; 2] = n1.invite(&["n2", "n3"]).try_into().expect("two");
    let stray = Machine::new(&folder, "stray");
    let join = |word: &str| stray.begin(&["--join", word]);
    // A machine joins the cluster that it was invited to, and no other.
    let fingerprint = two.split('/').nth(3).expect("a fingerprint");
    let other = two.replace(fingerprint, &"0".repeat(64));
    no_member(join(&other), "another cluster answers there");
    no_member(join(&two[..two.len() - 1]), "mistyped or cut off");
    n2.run(n2.begin(&["--join", &two]));
    whole(&[&n1, &n2], 1).await;
    std::fs::remove_dir_all(&stray.data).expect("what the refused ones left");
    no_member(join(&two), "this invitation was used");
    // Not with another's secret, and not from a directory that somebody used.
    std::fs::remove_dir_all(&stray.data).expect("what the refused one left");
    no_member(join(&three.replace("qj1/n3/", "qj1/n5/")), "nobody is invited under this name");
    no_member(n2.begin(&["--join", &three]), "is that of a member");
    no_member(n1.begin(&["--new"]), "is that of a member");
    std::fs::write(stray.data.join("something"), "of somebody").expect("a file");
    no_member(join(&three), "was in use before");
    n1.refused(&["member", "invite", "n2"], "the name n2 is taken");
    // One that has expired.
    let late = &n2.invite(&["n6", "--expires", "1s"])[0];
    let invited = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    assert!(now.as_secs() > invited.as_secs(), "the clock of this machine goes");
    std::fs::remove_dir_all(&stray.data).expect("ours");
    no_member(join(late), "this invitation has expired");
    n3.run(n3.begin(&["--join", &three]));
    whole(&[&n1, &n2, &n3], 3).await;
    jobs.push(client(&[&n3, &n2], token).await.pool("p").acquire().await.expect("two of three"));
    keep(&jobs);
    let joined = |name: &str| {
        let view = n2.list().expect("it answers");
        let row = view.members.into_iter().find(|it| it.name == name).expect("it is one");
        (row.address, row.joined.is_some())
    };
    assert_eq!(joined("n3"), (n3.peers.to_string(), true));
    assert!(!joined("n1").1);

    // The first member is lost, and the pool goes on: whoever held a unit by it does, too, if its
    // client knows another member.
    let first = client(&[&n1, &n2, &n3], token).await;
    let mine = first.pool("p").acquire().await.expect("the third, when nobody else has it");
    n1.process = None;
    drop(mine);
    keep(&jobs[1..]);
    let again = client(&[&n2, &n3], token).await.pool("p").acquire().await.expect("others decide");
    again.release().await.expect("it is held");
    keep(&jobs[1..]);
    // The only job that knew n1 alone is at its mercy.
    drop(jobs.remove(0));
    n1.run(n1.serve(&[]));
    whole(&[&n1, &n2, &n3], 3).await;
    keep(&jobs);

    // Each from its own file, one after the other: the next when the pool grants again, since who
    // loses its home and the node that decides at once has nobody left who knows of its grant.
    for turn in 0..2 {
        used_again(&rounds).await;
        keep(&jobs);
        let machine = if turn == 0 { &mut n2 } else { &mut n3 };
        machine.process = None;
        machine.run(machine.serve(&[]));
        whole(&[&n1, &n2, &n3], 3).await;
        keep(&jobs);
    }
    used_again(&rounds).await;
    keep(&jobs);

    // Removed, and its name and place are nobody's.
    n1.fine(&["member", "remove", "n2", "--force"]);
    let status = n2.process.as_mut().expect("it runs").end().await;
    assert_eq!(status.code(), Some(2), "{}", n2.log());
    n1.refused(&["member", "invite", "n2"], "the name n2 is taken");
    n1.refused(&["member", "readmit", "n2"], "names of members are used once");
    let four = &n3.invite(&["n4"])[0];
    n4.run(n4.begin(&["--join", four]));
    whole(&[&n1, &n3, &n4], 3).await;
    over.store(true, Ordering::Relaxed);
    load.await.expect("no panic");
    let last = client(&[&n4], token).await.pool("p").acquire().await.expect("n4 serves it");
    last.release().await.expect("it is held");
    keep(&jobs);
    for job in jobs {
        job.release().await.expect("it is still held");
    }
    println!("{name}: ok, {:.0?}, {} rounds", began.elapsed(), rounds.load(Ordering::Relaxed));
}

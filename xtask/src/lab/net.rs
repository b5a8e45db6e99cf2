//! Machines that are network namespaces, and the wires between them.
//!
//! Each host is a namespace with one interface, all of which end in a bridge that is in a namespace
//! of its own: nothing of it is in the network of whoever runs this, there is no route to anywhere
//! else, and no packet can leave. Names have the process id and a count, so that two laboratories
//! do not meet.
//!
//! A shell in a session of its own waits for the end of a pipe that this process holds, and then
//! takes everything down: at the end of a scenario, and as well after a panic, a Ctrl-C or a kill,
//! of which a destructor would know nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Why something did not work, for whoever reads the result.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The ports of nodes: clients and peers.
const PORTS: [u16; 2] = [7420, 7520];
/// Whoever belongs to this group is not sent through a relay.
const RELAY_GROUP: u32 = 47_420;
/// Longer than anything takes that is going to happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a condition, and says which if it is in vain.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) -> Outcome {
    let began = Instant::now();
    while !so() {
        if began.elapsed() > PATIENCE {
            return Err(format!("waited {} s in vain: {what}", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A few machines.
pub(crate) struct Lab {
    name: String,
    folder: PathBuf,
    hosts: Vec<Host>,
    /// Ends what is left when its input does.
    caretaker: Option<Child>,
    relays: BTreeMap<(String, String), Vec<Process>>,
}

/// One machine.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// Files of its own.
    pub(crate) folder: PathBuf,
    space: String,
}

/// What was started and ends with this value.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself, and says how.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.0.wait().ok().and_then(|status| status.code())
    }

    pub(crate) fn signal(&self, name: &str) -> Outcome {
        done(Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes down what has this name; `$1` is the name, `$2` the folder. The network first: what is
/// being started just now shows up in the next round.
const TAKE_DOWN: &str = "trap '' HUP INT TERM; cat >/dev/null; \
    for round in 1 2 3; do \
      for space in $(ip netns list | cut -d' ' -f1 | grep \"^$1-\"); do \
        ip netns pids $space | xargs -r kill -9; ip netns delete $space; \
      done; \
    done 2>/dev/null; umount -l \"$2\"/*/data 2>/dev/null; rm -rf \"$2\"";

impl Lab {
    /// These hosts, joined: 10.0.0.1 and so on, in this order.
    pub(crate) fn new(names: &[&str]) -> Outcome<Lab> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorate-lab-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let mut caretaker = Command::new("sh");
        caretaker.args(["-c", TAKE_DOWN, "sh", &name]).arg(&folder).stdin(Stdio::piped());
        // Out of the reach of a Ctrl-C at the terminal.
        let caretaker = caretaker.process_group(0).spawn();
        let caretaker = caretaker.map_err(|error| format!("cannot start sh: {error}"))?;
        let mut lab = Lab {
            name,
            folder,
            hosts: Vec::new(),
            caretaker: Some(caretaker),
            relays: BTreeMap::new(),
        };
        let bridge = lab.space("bridge");
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add br0 type bridge"))?;
        ip(&format!("-n {bridge} link set br0 up"))?;
        for (place, name) in (1..).zip(names) {
            let host = lab.join(&bridge, name, place)?;
            lab.hosts.push(host);
        }
        Ok(lab)
    }

    fn space(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    fn join(&self, bridge: &str, name: &str, place: u8) -> Outcome<Host> {
        let (space, folder) = (self.space(name), self.folder.join(name));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let address = Ipv4Addr::new(10, 0, 0, place);
        for words in [
            format!("netns add {space}"),
            format!("link add eth0 netns {space} type veth peer name port{place} netns {bridge}"),
            format!("-n {bridge} link set port{place} master br0 up"),
            format!("-n {space} address add {address}/24 dev eth0"),
            format!("-n {space} link set eth0 up"),
            format!("-n {space} link set lo up"),
        ] {
            ip(&words)?;
        }
        Ok(Host { name: name.into(), address, folder, space })
    }

    /// A host, by its name.
    pub(crate) fn host(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name == name).expect("a scenario names its own hosts")
    }

    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// A place for files of no host.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Packets between two hosts are dropped; nobody is told.
    pub(crate) fn cut(&self, a: &str, b: &str) -> Outcome {
        self.both(a, b, "-j DROP")
    }

    /// A host does not hear another, which hears it.
    pub(crate) fn one_way(&self, deaf: &str, unheard: &str) -> Outcome {
        let unheard = self.host(unheard).address;
        self.host(deaf).tool("iptables", &format!("-A INPUT -s {unheard} -j DROP"))
    }

    /// A host is cut off from all others.
    pub(crate) fn isolate(&self, one: &str) -> Outcome {
        let mut others = self.hosts.iter().filter(|host| host.name != one);
        others.try_for_each(|other| self.cut(one, &other.name))
    }

    /// Connections between two hosts are reset, and new ones refused.
    pub(crate) fn reset(&self, a: &str, b: &str) -> Outcome {
        let (a, b) = (self.host(a), self.host(b));
        for (here, there) in [(a, b), (b, a)] {
            // On the way out, so that whoever sends is told, and no rule stops the reset.
            let what = "-p tcp -j REJECT --reject-with tcp-reset";
            here.tool("iptables", &format!("-A OUTPUT -d {} {what}", there.address))?;
        }
        Ok(())
    }

    /// This share of the packets between two hosts is lost, each way.
    pub(crate) fn lossy(&self, a: &str, b: &str, share: f64) -> Outcome {
        self.both(a, b, &format!("-m statistic --mode random --probability {share} -j DROP"))
    }

    fn both(&self, a: &str, b: &str, what: &str) -> Outcome {
        let (a, b) = (self.host(a), self.host(b));
        for (here, there) in [(a, b), (b, a)] {
            here.tool("iptables", &format!("-A INPUT -s {} {what}", there.address))?;
        }
        Ok(())
    }

    /// What a host sends gets through a narrow pipe, which is a queue as well.
    pub(crate) fn narrow(&self, host: &str, kbit: u32) -> Outcome {
        let pipe = format!("rate {kbit}kbit burst 4kb latency 400ms");
        self.host(host).tool("tc", &format!("qdisc add dev eth0 root tbf {pipe}"))
    }

    /// Whatever is said between two hosts arrives so much later, each way. A relay in user space
    /// does it, since kernels may lack netem: connections that are there are reset once, so that
    /// they pass it when they are made again.
    pub(crate) fn slow(&mut self, a: &str, b: &str, delay: Duration) -> Outcome {
        let (a, b) = (self.host(a).clone(), self.host(b).clone());
        let mut relays = Vec::new();
        for (here, there) in [(&a, &b), (&b, &a)] {
            for (port, own) in PORTS.into_iter().zip(20_000..) {
                let at = own + u16::from(there.address.octets()[3]) * 2;
                let ours = std::env::current_exe().map_err(|error| error.to_string())?;
                let mut relay = here.command(&ours.display().to_string());
                relay.args(["lab", "relay", &format!("127.0.0.1:{at}")]);
                relay.arg(format!("{}:{port}", there.address));
                relay.arg(delay.as_millis().to_string()).gid(RELAY_GROUP);
                relays.push(start(&mut relay)?);
                here.tool(
                    "iptables",
                    &format!(
                        "-t nat -A OUTPUT -p tcp -d {} --dport {port} -m owner ! --gid-owner \
                         {RELAY_GROUP} -j REDIRECT --to-ports {at}",
                        there.address
                    ),
                )?;
            }
        }
        // Only what does not come from a relay has to be made anew.
        for (here, there) in [(&a, &b), (&b, &a)] {
            here.tool(
                "iptables",
                &format!(
                    "-A OUTPUT -p tcp -d {} -m owner ! --gid-owner {RELAY_GROUP} -m conntrack \
                     --ctdir ORIGINAL -j REJECT --reject-with tcp-reset",
                    there.address
                ),
            )?;
        }
        self.relays.insert((a.name, b.name), relays);
        Ok(())
    }

    /// All links are as they were.
    pub(crate) fn heal(&mut self) -> Outcome {
        for host in &self.hosts {
            host.tool("iptables", "-F")?;
            // Most never had any of these.
            let _ = host.tool("iptables", "-t nat -F");
            let _ = host.tool("tc", "qdisc del dev eth0 root");
        }
        self.relays.clear();
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.relays.clear();
        if let Some(mut caretaker) = self.caretaker.take() {
            drop(caretaker.stdin.take());
            let _ = caretaker.wait();
        }
    }
}

impl Host {
    /// A program on this machine: in its network and its folder, and with nothing in its
    /// environment that could mean another cluster.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space, program]).current_dir(&self.folder);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("QUORATE_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", &self.folder).env_remove("XDG_CONFIG_HOME");
        command
    }

    /// The same with a shell that stops at the first mistake.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-eu", "-c", script]);
        command
    }

    fn tool(&self, program: &str, words: &str) -> Outcome {
        done(self.command(program).args(words.split_whitespace()))
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, file: &str, text: impl AsRef<[u8]>) -> Outcome {
        let path = self.folder.join(file);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    pub(crate) fn read(&self, file: &str) -> Outcome<String> {
        let path = self.folder.join(file);
        fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

/// Starts a program that ends with the value.
pub(crate) fn start(command: &mut Command) -> Outcome<Process> {
    let spawned = command.stdin(Stdio::null()).spawn();
    spawned.map(Process).map_err(|error| format!("cannot start {}: {error}", shown(command)))
}

/// Runs a program to its end.
pub(crate) fn output(command: &mut Command) -> Outcome<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", shown(command)))
}

/// Its standard output, if it worked.
pub(crate) fn fine(command: &mut Command) -> Outcome<String> {
    let output = output(command)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!(
            "{}: {}\n{}{}",
            shown(command),
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        )),
    }
}

/// That it worked is all there is to know.
pub(crate) fn done(command: &mut Command) -> Outcome {
    fine(command).map(drop)
}

fn ip(words: &str) -> Outcome {
    done(Command::new("ip").args(words.split_whitespace()))
}

/// As one would type it, without what is the same everywhere.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if words.len() > 3 && words[..3] == ["ip", "netns", "exec"] {
        words.drain(..3);
    }
    words.join(" ")
}

/// Prints at once, also into a pipe.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    // Whoever reads it may have left; the scenario goes on.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

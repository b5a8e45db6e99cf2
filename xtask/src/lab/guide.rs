//! The guide "Three machines", done as it is written: its commands and its file are read from the
//! page, so that the page cannot say what does not work.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::hold::Access;
use super::net::{self, Host, Lab, Outcome, Process};

const PAGE: &str = "docs/guides/three-machines.md";
/// The members of the guide.
pub(crate) const NODES: [&str; 3] = ["a", "b", "c"];
/// Where clients are; and, of the guide's first part, the authority.
pub(crate) const LAPTOP: &str = "laptop";

/// The parts of the page, in their order.
struct Page {
    authority: String,
    file: String,
    node: String,
    client: String,
    curl: String,
}

impl Page {
    fn read(root: &Path) -> Outcome<Page> {
        let text = std::fs::read_to_string(root.join(PAGE));
        let text = text.map_err(|error| format!("cannot read {PAGE}: {error}"))?;
        let blocks = blocks(&text);
        let kinds: Vec<&str> = blocks.iter().map(|(kind, _)| *kind).collect();
        if kinds != ["sh", "toml", "sh", "sh", "sh"] {
            return Err(format!(
                "{PAGE} has blocks of {kinds:?}: xtask/src/lab/guide.rs knows commands of the \
                 authority, the file of a node, commands of a node, those of a client, and curl"
            ));
        }
        let [authority, file, node, client, curl] = [0, 1, 2, 3, 4].map(|n| blocks[n].1.clone());
        Ok(Page { authority, file, node, client, curl })
    }
}

/// The fenced blocks of a page, with what stands behind the fence.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(kind) if !inside => {
                blocks.push((kind, String::new()));
                inside = true;
            }
            Some(_) => inside = false,
            None if inside => {
                let (_, block) = blocks.last_mut().expect("one has begun");
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// The cluster of the guide.
pub(crate) struct Rack {
    pub(crate) lab: Lab,
    pub(crate) program: PathBuf,
    page: Page,
    nodes: Vec<(String, Option<Process>)>,
}

impl Rack {
    /// Machines a, b, c, a laptop, and others if more are named; and on the laptop the files that
    /// the guide's commands make. Nothing runs yet.
    pub(crate) fn new(root: &Path, program: &Path, others: &[&str]) -> Outcome<Rack> {
        let names: Vec<&str> = NODES.iter().chain([&LAPTOP]).chain(others).copied().collect();
        let lab = Lab::new(&names)?;
        let bin = lab.folder().join("bin");
        std::fs::create_dir_all(&bin).map_err(|error| error.to_string())?;
        let linked = std::os::unix::fs::symlink(program, bin.join("quorate"));
        linked.map_err(|error| error.to_string())?;
        let page = Page::read(root)?;
        let nodes = NODES.map(|name| (name.to_owned(), None)).into();
        let rack = Rack { lab, program: program.to_path_buf(), page, nodes };
        rack.on(LAPTOP, &rack.page.authority)?;
        Ok(rack)
    }

    /// Commands of the guide on a machine, as a shell understands them.
    fn on(&self, host: &str, script: &str) -> Outcome<String> {
        let mut shell = self.lab.host(host).shell(script);
        let bin = self.lab.folder().join("bin").display().to_string();
        shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap_or_default()));
        net::fine(&mut shell)
    }

    /// `quorate` with these words, on a machine.
    pub(crate) fn quorate(&self, host: &str, words: &str) -> std::process::Command {
        let mut command = self.lab.host(host).command(&self.program.display().to_string());
        command.args(words.split_whitespace());
        command
    }

    /// What the page says of `a`, for any of the nodes, with the machine's own directories.
    fn for_node(&self, text: &str, name: &str) -> String {
        let host = self.lab.host(name);
        let folder = host.folder.display();
        let mut here = String::new();
        let mut in_members = false;
        for line in text.lines() {
            in_members |= line == "[[members]]";
            let own = match in_members {
                true => line.to_owned(),
                false => line
                    .replace("node-a", &format!("node-{name}"))
                    .replace("10.0.0.1", &host.address.to_string())
                    .replace("node = \"a\"", &format!("node = \"{name}\""))
                    .replace("a.toml", &format!("{name}.toml"))
                    .replace("a.sock", &format!("{name}.sock")),
            };
            here.push_str(&own);
            here.push('\n');
        }
        here.replace("/etc/quorate", &format!("{folder}/etc"))
            .replace("/var/lib/quorate", &format!("{folder}/data"))
            .replace("/run/quorate", &format!("{folder}/run"))
    }

    /// Copies the files to the nodes, as the guide says. What belongs to the last pool of the file,
    /// and what follows it, may be added.
    pub(crate) fn install(&self, pool: &str, more: &str) -> Outcome {
        let laptop = self.lab.host(LAPTOP);
        let tokens = laptop.read("tokens.toml")?;
        for name in NODES {
            let host = self.lab.host(name);
            for file in
                ["ca.crt".to_owned(), format!("node-{name}.crt"), format!("node-{name}.key")]
            {
                host.write(&format!("etc/{file}"), laptop.read(&format!("certs/{file}"))?)?;
            }
            let made = std::fs::create_dir_all(host.folder.join("run"));
            made.map_err(|error| error.to_string())?;
            let file = self.for_node(&self.page.file, name);
            host.write(&format!("etc/{name}.toml"), format!("{file}{pool}{more}{tokens}"))?;
        }
        laptop.write("ca.crt", laptop.read("certs/ca.crt")?)
    }

    /// Starts the nodes as the guide says, and waits until they know each other.
    pub(crate) fn start(&mut self) -> Outcome {
        let commands = self.page.node.clone();
        let (init, serve) =
            commands.split_once('\n').ok_or("the guide starts a node in two lines")?;
        for name in NODES {
            self.on(name, &self.for_node(init, name))?;
        }
        for (place, name) in NODES.into_iter().enumerate() {
            let mut words: Vec<String> =
                self.for_node(serve, name).split_whitespace().map(String::from).collect();
            if words.remove(0) != "quorate" {
                return Err("the guide starts a node with `quorate serve`".into());
            }
            self.nodes[place].1 = Some(self.spawn(name, &words)?);
        }
        self.until_joined()
    }

    fn spawn(&self, host: &str, words: &[String]) -> Outcome<Process> {
        let host = self.lab.host(host);
        let mut serve = host.command(&self.program.display().to_string());
        let log = std::fs::File::create(host.folder.join("node.log"));
        let log = log.map_err(|error| error.to_string())?;
        net::start(serve.args(words).stdout(Stdio::null()).stderr(log))
    }

    /// Waits until every node says that it is ready and connected to all others.
    pub(crate) fn until_joined(&self) -> Outcome {
        NODES.iter().try_for_each(|name| {
            let what = format!("{name} is ready and connected to all others");
            net::until(&what, || {
                self.ask(name, "/readyz").is_ok() && self.connected(name) == Some(NODES.len() - 1)
            })
        })
    }

    /// How many other nodes a node is connected to.
    pub(crate) fn connected(&self, name: &str) -> Option<usize> {
        let shown = self.ask(name, "/v1/node").ok()?;
        let shown: String = shown.split_whitespace().collect();
        Some(shown.matches("\"connected\":true").count())
    }

    /// What a node answers to its own machine, whether or not it is cut off from all others.
    pub(crate) fn ask(&self, name: &str, path: &str) -> Outcome<String> {
        let host = self.lab.host(name);
        let header = self.lab.host(LAPTOP).folder.join("header");
        if !header.exists() {
            let secret = self.lab.host(LAPTOP).read("ci.token")?;
            let text = format!("Authorization: Bearer {}\n", secret.trim());
            self.lab.host(LAPTOP).write("header", text)?;
        }
        let mut curl = host.command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "20", "--cacert"]);
        curl.arg(host.folder.join("etc/ca.crt")).arg("-H").arg(format!("@{}", header.display()));
        net::fine(curl.arg(format!("https://{}:7420{path}", host.address)))
    }

    /// What a node counts.
    pub(crate) fn metric(&self, name: &str, line: &str) -> Outcome<u64> {
        let shown = self.ask(name, "/metrics")?;
        let found = shown.lines().find_map(|one| one.strip_prefix(line));
        Ok(found.and_then(|value| value.trim().parse().ok()).unwrap_or(0))
    }

    /// Tells every node to read its files anew, and waits until each has taken them up.
    pub(crate) fn reload(&self) -> Outcome {
        const TAKEN: &str = "quorate_reloads_total{outcome=\"taken\"}";
        for (name, process) in &self.nodes {
            let before = self.metric(name, TAKEN)?;
            process.as_ref().ok_or("it was started")?.signal("HUP")?;
            net::until(&format!("{name} takes up its files"), || {
                self.metric(name, TAKEN).is_ok_and(|now| now > before)
            })?;
        }
        Ok(())
    }

    /// How jobs on the laptop reach it.
    pub(crate) fn access(&self) -> Outcome<Access> {
        let (laptop, locks) = (self.lab.host(LAPTOP), self.lab.folder().join("locks"));
        std::fs::create_dir_all(&locks).map_err(|error| error.to_string())?;
        let file = |name: &str| laptop.folder.join(name).display().to_string();
        let servers = NODES.map(|name| format!("https://{}", self.lab.host(name).address));
        let words = ["--server", &servers.join(","), "--ca", &file("ca.crt")];
        let token = ["--token-file".to_owned(), file("ci.token")];
        let words = words.map(String::from).into_iter().chain(token).collect();
        Ok(Access { program: self.program.clone(), words, locks })
    }

    /// How to use it from a shell.
    pub(crate) fn by_hand(&self) -> String {
        let laptop = self.lab.host(LAPTOP);
        let folder = laptop.folder.display();
        let shell = laptop.shell("");
        let words: Vec<_> = shell.get_args().take(3).map(|word| word.to_string_lossy()).collect();
        let inside = words.join(" ");
        let servers =
            NODES.map(|name| format!("https://{}", self.lab.host(name).address)).join(",");
        format!(
            "  cd {folder} && export QUORATE_SERVER={servers} QUORATE_CA=ca.crt\n  \
             ip {inside} {} run ci-build --token-file ci.token -- true\n\
             Links are cut by iptables in a namespace:\n  \
             ip {inside} iptables -A INPUT -s 10.0.0.1 -j DROP",
            self.program.display()
        )
    }

    pub(crate) fn host(&self, name: &str) -> &Host {
        self.lab.host(name)
    }

    /// The last words of the nodes, for whoever looks for a reason.
    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for host in self.lab.hosts() {
            for file in ["node.log", "jobs.log"] {
                let Ok(log) = host.read(file) else { continue };
                let lines: Vec<&str> = log.lines().collect();
                let last = &lines[lines.len().saturating_sub(12)..];
                text.push_str(&format!("--- {file} of {}\n{}\n", host.name, last.join("\n")));
            }
        }
        text
    }
}

/// The whole page, from the first command to the last.
pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    rack.install("", "")?;
    rack.start()?;
    // Whatever the job of the guide would be.
    let job = rack.lab.folder().join("bin/make");
    let script = "#!/bin/sh\necho \"$QUORATE_UNITS\" > made\n";
    std::fs::write(&job, script).map_err(|error| error.to_string())?;
    net::done(std::process::Command::new("chmod").arg("755").arg(&job))?;
    rack.on(LAPTOP, &rack.page.client)?;
    let made = rack.host(LAPTOP).read("made")?;
    let pools = rack.on(LAPTOP, &rack.page.curl)?;
    if made.trim().is_empty() || !pools.contains("ci-") {
        return Err(format!("the job had the units {made:?}, and the pools are {pools}"));
    }
    // On a node's own machine, without a token.
    let socket = rack.host("b").folder.join("run/b.sock");
    let words = format!("pools --server unix:{}", socket.display());
    let seen = net::fine(&mut rack.quorate("b", &words))?;
    if !seen.contains("ci-") {
        return Err(format!("root at b sees no pool: {seen}"));
    }
    let commands = [&rack.page.authority, &rack.page.node, &rack.page.client, &rack.page.curl];
    let lines: usize = commands.iter().map(|block| block.lines().count()).sum();
    Ok(format!("{lines} lines of {PAGE}, as they are written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_machines_take_at_most_ten_commands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let Page { authority, node, client, curl, .. } = Page::read(&root).expect("a page");
        let parts = [authority, node, client, curl].concat();
        let commands: Vec<&str> =
            parts.lines().filter(|line| line.starts_with(['q', 'c'])).collect();
        assert!((1..=10).contains(&commands.len()), "{commands:#?}");
    }
}

//! A node as a service: what a service manager hears of it from its start to its end, and what
//! systemd's own tools, where they are installed, say of the files in `packaging`.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// As long as any sane machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty folder of one test.
fn folder(test: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder to write to");
    path
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// A service manager of the test's own, and the node that it started.
struct Managed {
    socket: UnixDatagram,
    path: PathBuf,
    process: Child,
    config: PathBuf,
}

impl Managed {
    fn start(test: &str, watchdog: Duration) -> Managed {
        let folder = folder(test);
        // Names of sockets are short, and those of folders may not be.
        let name = format!("quorate-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).expect("a folder to write to");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let data = folder.join("data");
        let config = folder.join("node.toml");
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = {data:?}\n\
             [listen]\nclients = \"127.0.0.1:0\"\npeers = \"127.0.0.1:0\"\n\
             [[members]]\nname = \"a\"\npeers = \"127.0.0.1:1\"\n\
             [[pools]]\nname = \"p\"\nunits = 1\n"
        );
        std::fs::write(&config, text).expect("a folder to write to");
        let quorate = || Command::new(env!("CARGO_BIN_EXE_quorate"));
        let new = quorate().arg("init").arg("--config").arg(&config).status();
        assert!(new.expect("the command was built").success());
        // Whoever runs this under `nohup` ignores the signal, and with it all that it starts.
        let process = Command::new("env")
            .arg("--default-signal=HUP")
            .arg(env!("CARGO_BIN_EXE_quorate"))
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .env_remove("WATCHDOG_PID")
            .spawn()
            .expect("the command was built");
        Managed { socket, path, process, config }
    }

    fn hear(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("it has something to say");
        String::from_utf8(bytes[..length].to_vec()).expect("text")
    }

    /// What it says until it says this.
    fn hear_until(&self, good: impl Fn(&str) -> bool) -> Vec<String> {
        let mut heard = Vec::new();
        let give_up = Instant::now() + PATIENCE;
        while !heard.last().is_some_and(|last: &String| good(last)) {
            assert!(Instant::now() < give_up, "it only says {:?}", heard.last());
            heard.push(self.hear());
        }
        heard
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).expect("it lives");
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn a_manager_hears_when_a_node_serves_lives_reloads_and_stops() {
    use rustix::process::Signal;
    // So short that many beats are heard; a manager would end it after this time, we do not.
    let mut node = Managed::start("service-told", Duration::from_millis(300));
    assert!(node.hear().starts_with("STATUS=reading"), "it begins");
    assert_eq!(node.hear(), "READY=1\nSTATUS=serving clients");
    for _ in 0..3 {
        node.hear_until(|said| said == "WATCHDOG=1");
    }
    node.signal(Signal::HUP);
    node.hear_until(|said| said.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(node.hear(), "READY=1", "it has read its files");
    // Files that are not good change nothing, and nobody waits for them.
    std::fs::write(&node.config, "nonsense").expect("it was written before");
    node.signal(Signal::HUP);
    node.hear_until(|said| said.starts_with("RELOADING=1\n"));
    assert_eq!(node.hear(), "READY=1", "it goes on with what it had");
    node.hear_until(|said| said == "WATCHDOG=1");
    node.signal(Signal::TERM);
    let heard = node.hear_until(|said| said.starts_with("STOPPING=1\n"));
    assert_eq!(heard.last().expect("heard"), "STOPPING=1\nSTATUS=stopping, as asked");
    assert!(node.process.wait().expect("a child").success());
    // The manager that is told of a stop is told of nothing else.
    node.socket.set_nonblocking(true).expect("a socket");
    assert!(node.socket.recv(&mut [0; 64]).is_err());
}

/// What systemd's tool says; nothing, with the reason, where it is not installed.
fn systemd_analyze(words: &[&str], unit: &Path) -> Option<Output> {
    let mut command = Command::new("systemd-analyze");
    match command.args(words).arg(unit).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: systemd-analyze is not to be had here ({error})");
            None
        }
    }
}

/// The unit as it is installed, but with the program that was built.
fn installed(test: &str) -> PathBuf {
    let (from, folder) = (packaging().join("systemd"), folder(test));
    let unit = std::fs::read_to_string(from.join("quorate.service")).expect("it is there");
    assert_eq!(unit.matches("/usr/bin/quorate serve --config /etc/quorate/node.toml").count(), 2);
    let unit = unit.replace("/usr/bin/quorate", env!("CARGO_BIN_EXE_quorate"));
    let path = folder.join("quorate.service");
    std::fs::write(&path, unit).expect("a folder to write to");
    let more = folder.join("quorate.service.d");
    std::fs::create_dir(&more).expect("a folder to write to");
    let credentials = "quorate.service.d/credentials.conf";
    std::fs::copy(from.join(credentials), folder.join(credentials)).expect("it is there");
    path
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let unit = installed("service-verify");
    let Some(output) = systemd_analyze(&["verify"], &unit) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    // It looks at all units of the machine; only ours matters.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("quorate")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

#[test]
fn the_unit_is_as_closed_as_the_guide_says() {
    let unit = installed("service-security");
    let Some(output) = systemd_analyze(&["security", "--offline=true"], &unit) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let level = said.lines().find_map(|line| line.split("quorate.service: ").nth(1));
    let level = level.and_then(|level| level.split(' ').next()?.parse::<f64>().ok());
    let level = level.unwrap_or_else(|| panic!("a figure, of 10 for wide open: {said} {output:?}"));
    assert!(level <= 1.5, "{said}");
}

#[test]
fn kubectl_renders_the_base_for_kubernetes() {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("kustomize").arg(packaging().join("kustomize"));
    // Where it is not installed, nobody needs it.
    let Ok(output) = kubectl.output() else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let kinds = ["ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget"];
    for kind in kinds.map(|kind| format!("kind: {kind}\n")) {
        assert!(said.contains(&kind), "{kind} is missing: {said}");
    }
    for file in ["quorate-0.toml: |", "quorate-1.toml: |", "quorate-2.toml: |"] {
        assert!(said.contains(file), "{file} is missing: {said}");
    }
}

//! What a service manager is told, if one started us: systemd's notifications, which are datagrams
//! with a few lines of text (sd_notify(3)). Everybody else sees nothing of this.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use quorate_api::Check;
use rustix::time::{ClockId, clock_gettime};

/// How often we tell how we are, where nobody expects it.
const LEISURE: Duration = Duration::from_secs(10);
/// How long a word may take. The manager's queue is long; if it is full, the manager has stopped.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a status says of, in this order. All may read it, so what names pools is not in it.
const TOLD: [&str; 3] = ["grace", "members", "journal"];

/// Who started us, and wants to know how we are.
pub(crate) struct Manager {
    socket: Option<UnixDatagram>,
    /// How long we may be silent before we are ended and started again.
    watchdog: Option<Duration>,
    status: String,
}

impl Manager {
    /// Whoever the environment names. A manager that cannot be reached is warned of: it would wait
    /// for us in vain, and a log is where people then look.
    pub(crate) fn of_this_process() -> Manager {
        let variable = |name: &str| std::env::var(name).ok();
        let watchdog = watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        Manager::new(name.as_ref(), watchdog).unwrap_or_else(|error| {
            tracing::warn!(?name, %error, "the service manager waits for us and cannot be told");
            Manager { socket: None, watchdog: None, status: String::new() }
        })
    }

    fn new(name: Option<&OsString>, watchdog: Option<Duration>) -> io::Result<Manager> {
        let connect = |name: &OsString| {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address(name)?)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, io::Error>(socket)
        };
        let socket = name.map(connect).transpose()?;
        Ok(Manager {
            watchdog: watchdog.filter(|_| socket.is_some()),
            socket,
            status: String::new(),
        })
    }

    /// How often to ask the engine how it is, to tell it: thrice in the time that we have, so that
    /// one slow answer ends nobody.
    pub(crate) fn every(&self) -> Duration {
        self.watchdog.map_or(LEISURE, |time| (time / 3).max(Duration::from_millis(1)))
    }

    /// The node is not there yet, which may take a minute (an empty directory).
    pub(crate) fn starting(&mut self) {
        self.tell_status("reading what earlier starts left".into(), "");
    }

    /// Clients are served from now on.
    pub(crate) fn ready(&mut self) {
        self.tell_status("serving clients".into(), "READY=1\n");
    }

    /// Files are read anew...
    pub(crate) fn reloading(&mut self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_micros()));
    }

    /// ...and have been, or were refused and all is as before.
    pub(crate) fn reloaded(&mut self) {
        self.tell("READY=1");
    }

    /// The engine has gone round, and said how it is.
    pub(crate) fn alive(&mut self, checks: &[Check]) {
        if self.watchdog.is_some() {
            self.tell("WATCHDOG=1");
        }
        let status = status(checks);
        if status != self.status {
            self.tell_status(status, "");
        }
    }

    /// We end: as asked, or for this reason.
    pub(crate) fn stopping(&mut self, failed: Option<&str>) {
        let status = failed.map_or("stopping, as asked".into(), |why| format!("stopping: {why}"));
        self.tell_status(status, "STOPPING=1\n");
    }

    fn tell_status(&mut self, status: String, more: &str) {
        // A line is a statement of its own.
        self.status = status.replace('\n', " ");
        self.tell(&format!("{more}STATUS={}", self.status));
    }

    fn tell(&self, words: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(words.as_bytes())
        {
            tracing::warn!(%error, words, "the service manager was not told");
        }
    }
}

/// Where a socket of this name is: a path, or a name in Linux's abstract space behind an `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(name)
        }
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "NOTIFY_SOCKET is neither a path nor a name that begins with @",
        )),
    }
}

/// How long the manager bears our silence, if it minds us and not our parent.
fn watchdog(micros: Option<String>, of: Option<String>) -> Option<Duration> {
    let mine = of.is_none_or(|of| of.parse() == Ok(std::process::id()));
    let micros: u64 = micros.filter(|_| mine)?.parse().ok()?;
    (micros > 0).then(|| Duration::from_micros(micros))
}

/// What is to be said of these checks in a line.
fn status(checks: &[Check]) -> String {
    let wrong: Vec<&Check> = checks.iter().filter(|check| !check.ok).collect();
    if wrong.is_empty() {
        let members = checks.iter().find(|check| check.name == "members");
        return members.map_or("ready".into(), |check| format!("ready; members: {}", check.detail));
    }
    let told = |check: &&Check| match TOLD.contains(&check.name.as_str()) {
        true => format!("{}: {}", check.name, check.detail),
        false => check.name.clone(),
    };
    let wrong: Vec<String> = wrong.iter().map(told).collect();
    format!("not ready (/readyz?verbose says more): {}", wrong.join("; "))
}

/// The manager's clock.
fn monotonic_micros() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    count(now.tv_sec) * 1_000_000 + count(now.tv_nsec) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, ok: bool, detail: &str) -> Check {
        Check { name: name.into(), ok, detail: detail.into() }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_manager_with_an_abstract_name_hears_of_every_step() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("quorate-service-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hears = UnixDatagram::bind_addr(&address).unwrap();
        let mut heard = [0; 512];
        let mut heard = || {
            let length = hears.recv(&mut heard).unwrap();
            String::from_utf8(heard[..length].to_vec()).unwrap()
        };
        let name = OsString::from(format!("@{name}"));
        let mut manager = Manager::new(Some(&name), Some(Duration::from_secs(30))).unwrap();
        assert_eq!(manager.every(), Duration::from_secs(10));
        manager.ready();
        assert_eq!(heard(), "READY=1\nSTATUS=serving clients");
        // What is the same is said once.
        for _ in 0..2 {
            manager.alive(&[check("members", true, "3 of 3 are connected")]);
        }
        let said = [heard(), heard(), heard()];
        let ready = "STATUS=ready; members: 3 of 3 are connected";
        assert_eq!(said, ["WATCHDOG=1", ready, "WATCHDOG=1"]);
        let before = monotonic_micros();
        manager.reloading();
        let said = heard();
        let since = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!((before..=monotonic_micros()).contains(&since.parse::<u64>().unwrap()), "{said}");
        manager.reloaded();
        assert_eq!(heard(), "READY=1");
        manager.stopping(Some("two\nlines"));
        assert_eq!(heard(), "STOPPING=1\nSTATUS=stopping: two lines");
    }

    #[test]
    fn a_name_that_is_none_is_refused_and_no_name_is_nobody() {
        for name in ["vsock:2:1", "relative", "/nowhere/at/all"] {
            assert!(Manager::new(Some(&name.into()), None).is_err(), "{name}");
        }
        let mut nobody = Manager::new(None, Some(Duration::from_secs(3))).unwrap();
        assert_eq!(nobody.every(), LEISURE, "nobody waits");
        nobody.ready();
    }

    #[test]
    fn only_whom_the_watchdog_means_feeds_it() {
        let (me, other) = (std::process::id().to_string(), u32::MAX.to_string());
        let second = || Some("1000000".to_owned());
        assert_eq!(watchdog(second(), None), Some(Duration::from_secs(1)));
        assert_eq!(watchdog(second(), Some(me)), Some(Duration::from_secs(1)));
        assert_eq!(watchdog(second(), Some(other)), None);
        assert_eq!(watchdog(None, None), None);
        assert_eq!(watchdog(Some("0".into()), None), None);
        assert_eq!(watchdog(Some("soon".into()), None), None);
    }

    #[test]
    fn a_status_says_what_is_missing_and_names_no_pool() {
        let checks = [
            check("members", true, "3 of 3 are connected"),
            check("grace", false, "waiting 4 s more"),
            check("pools", false, "1 of 1 grant nothing: payroll (why)"),
        ];
        let said = status(&checks);
        assert_eq!(said, "not ready (/readyz?verbose says more): grace: waiting 4 s more; pools");
    }
}

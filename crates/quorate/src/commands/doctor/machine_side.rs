//! What the file of a node says, and what this machine has to say to it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use quorate_node::{Config, Data, Files};
use quorate_trust::{Certificate, DAY, Date, Kind};
use rustix::process::{Resource, getrlimit};

use super::Findings;
use crate::commands::keep;

/// As the alerts of packaging/prometheus have it.
const SOON: Duration = DAY.saturating_mul(14);
/// An authority is replaced in steps, over weeks.
const AUTHORITY_SOON: Duration = DAY.saturating_mul(90);
/// A journal is small, but not nothing.
const ROOM: u64 = 256 << 20;
/// How long to wait for another member.
const PATIENCE: Duration = Duration::from_secs(2);
/// Beside clients: peers, the journal, listeners.
const DESCRIPTORS: u64 = 1_024;

/// Looks at a node's file and this machine; says where the node listens for clients of it.
pub(super) async fn look(file: &Path, findings: &mut Findings) -> Option<String> {
    let shown = file.display();
    let config = match Files::new(file).read() {
        Ok(config) => config,
        Err(error) => {
            findings.broken(
                "file",
                format!("{shown}: {error}"),
                "docs/configuration.md describes every field; run this as who runs the node if it \
                 cannot be read",
            );
            return None;
        }
    };
    let (name, cluster) = (config.name(), &config.cluster);
    findings.fine("file", format!("{shown} is good: node {name} of cluster {cluster}"));
    for warning in config.warnings() {
        let remedy = "make the lease three times as long as suspect_after, or that shorter";
        findings.warn("leases", warning, remedy);
    }
    for fragile in config.fragile() {
        let remedy = "choose a protocol that outlives a node, if that is not what you want";
        findings.warn("crashes", fragile, remedy);
    }
    keys(&config, findings);
    tokens(&config, findings);
    data(&config, findings);
    limits(&config, findings);
    members(&config, findings).await;
    Some(match &config.listen_local {
        Some(socket) if socket.exists() => format!("unix:{}", socket.display()),
        _ if config.tls.is_some() => format!("https://{}", config.listen_clients),
        _ => config.listen_clients.to_string(),
    })
}

fn keys(config: &Config, findings: &mut Findings) {
    let Some(tls) = &config.tls else { return };
    if let Err(error) = config.keys() {
        let remedy = "`quorate cert verify` says more; `quorate cert node` makes a new one";
        findings.broken("certificate", error.to_string(), remedy);
    }
    certificate(&tls.cert, findings);
    certificate(&tls.ca, findings);
    if let Ok(about) = std::fs::metadata(&tls.key) {
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let key = tls.key.display();
            findings.broken(
                "key",
                format!("{key} can be read by others (mode {mode:03o})"),
                format!(
                    "chmod 600 {key}; if others have read it, make a new one and stop trusting \
                     this (docs/security.md)"
                ),
            );
        }
    }
}

/// Entries of `[[tokens]]` and `[[certificates]]` that are worth nothing any more, or soon.
fn tokens(config: &Config, findings: &mut Findings) {
    let Ok(now) = keep::now() else { return };
    let remedy = "`quorate token new` makes another; put its entry into the file of every node, \
                  or say another day in `expires`";
    for (name, day) in config.guarded.expiries() {
        let what = |how: &str| format!("the token or certificate of {name} {how} {day}");
        if now >= day.since_1970() {
            findings.broken("tokens", what("expired on"), remedy);
        } else if day.since_1970() - now < SOON {
            findings.warn("tokens", what("expires on"), remedy);
        } else {
            findings.fine("tokens", what("is good until"));
        }
    }
}

/// Certificates of a file: until when they are good.
pub(super) fn certificate(file: &PathBuf, findings: &mut Findings) {
    let shown = file.display();
    let remedy = "`quorate cert show` says what is in a file";
    let read = std::fs::read(file).map_err(|error| error.to_string());
    let read = read.and_then(|pem| Certificate::from_pem(&pem).map_err(|error| error.to_string()));
    match (read, keep::now()) {
        (Err(error), _) => findings.broken("certificate", format!("{shown}: {error}"), remedy),
        (Ok(_), Err(error)) => findings.broken("clock", error.to_string(), "timedatectl set-time"),
        (Ok((first, rest)), Ok(now)) => {
            for one in [&first].into_iter().chain(&rest) {
                expiry(&shown.to_string(), one, now, findings);
            }
        }
    }
}

fn expiry(shown: &str, certificate: &Certificate, now: Duration, findings: &mut Findings) {
    // One that somebody brings has no name of ours.
    let whose = certificate.identity();
    let authority = whose.as_ref().map_or(true, |whose| whose.kind == Kind::Authority);
    let whose = whose.map_or_else(|_| "an authority".into(), ToString::to_string);
    let Some((from, until)) = certificate.validity() else { return };
    let (soon, renew) = if authority {
        (AUTHORITY_SOON, "docs/guides/three-machines.md: a new authority, step by step, in time")
    } else {
        (SOON, "`quorate cert node` or `quorate cert client` makes a new one; nodes take it up")
    };
    let day = Date::after(until);
    if now < from {
        let day = Date::after(from);
        let what = format!("{shown} ({whose}) is good from {day} on, which is not yet");
        findings.broken("certificate", what, "is the clock of this machine right?");
    } else if now >= until {
        findings.broken("certificate", format!("{shown} ({whose}) expired on {day}"), renew);
    } else if until - now < soon {
        let days = (until - now).as_secs() / DAY.as_secs();
        let what = format!("{shown} ({whose}) expires on {day}, in {days} days");
        findings.warn("certificate", what, renew);
    } else {
        findings.fine("certificate", format!("{shown} ({whose}) is good until {day}"));
    }
}

fn data(config: &Config, findings: &mut Findings) {
    let Data::Directory(folder) = &config.data else { return };
    let shown = folder.display();
    if !folder.is_dir() {
        // The node makes it, if it may.
        let parent = folder.parent().is_some_and(Path::is_dir);
        let what = format!("the data directory {shown} is not there");
        if parent {
            findings.warn("data", what, "the node makes it when it starts; has it ever?");
        } else {
            findings.broken("data", what, "make it, for the user that runs the node");
        }
        return;
    }
    match statvfs(folder) {
        Err(error) => findings.broken("data", format!("{shown}: {error}"), "see what mount says"),
        Ok(disk) => {
            let free = disk.blocks_available().saturating_mul(disk.fragment_size());
            if disk.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY) {
                let what = format!("the disk of {shown} takes no writes");
                findings.broken("data", what, "see dmesg: a disk with errors is mounted so");
            } else if free < ROOM {
                let what = format!("{} MB are free for {shown}", free >> 20);
                findings.warn("data", what, "make room: a node that cannot write stops");
            } else {
                findings.fine("data", format!("{shown} is there, with {} MB free", free >> 20));
            }
        }
    }
}

fn limits(config: &Config, findings: &mut Findings) {
    let wanted = config.limits.clients as u64 + DESCRIPTORS;
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < wanted => findings.warn(
            "limits",
            format!(
                "limits.clients = {}, but a process started from here may open {most} files",
                config.limits.clients
            ),
            format!("ulimit -Hn {wanted}, or LimitNOFILE={wanted} in the unit (ours has it)"),
        ),
        _ => findings.fine("limits", "there are descriptors for all clients"),
    }
}

/// Whether the other members can be called from here.
async fn members(config: &Config, findings: &mut Findings) {
    for member in config.members.iter().filter(|member| member.name != config.name()) {
        let call = async { tokio::net::TcpStream::connect(&*member.peers.find().await?).await };
        let (name, at) = (&member.name, &member.peers);
        let why = match tokio::time::timeout(PATIENCE, call).await {
            Ok(Ok(_)) => {
                findings.fine("members", format!("{name} can be called at {at}"));
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
        };
        findings.broken(
            "members",
            format!("{name} cannot be called at {at} from here: {why}"),
            "is it started, does it listen there (listen.peers), and does a firewall let this \
             machine through?",
        );
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

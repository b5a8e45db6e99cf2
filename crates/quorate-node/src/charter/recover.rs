//! Offline: a charter whose majority is lost goes on from one store, or one that is lost altogether
//! from a backup (charter spec 5); and a cluster that had none gets its first.
//!
//! It is a later incarnation, so that fences stay monotone (charter spec S10), and another cluster
//! by its id: no store of the life before belongs to it, and whoever starts from one and reaches
//! this member is told so, and ends. All seats count as decided for, so that the first grants wait
//! for a licence and a lease (charter spec S3, S4).
//!
//! That the majority is lost nobody can see from here. Whoever says so answers for it; what can be
//! looked at is: this node must not run, and no other member may answer.

use std::fs::{self, File};
use std::path::Path;

use quorate_charter::{
    About, Birth, Change, Charter, ClusterId, Newcomer, Reborn, Request, Store, StoreError,
    Survivor,
};
use quorate_core::Fence;

use super::begin::STORE;
use super::{Pins, TERMS_EACH, addresses, drawn, request_id};
use crate::boot;
use crate::config::{Config, Data};
use crate::peers;

/// The store that is being made, until it takes its place.
const BESIDE: &str = "charter.redb.new";
/// Incarnations stay below this, so that fences can be made of them: one is left for the terms.
const INCARNATIONS: u64 = Fence::BOOTS as u64 / TERMS_EACH - 1;

/// What the charter's store of a node has, while that does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtRest {
    /// The version of the charter.
    pub version: u64,
    /// Which life of the cluster it is.
    pub incarnation: u64,
    /// The term and the index of the last entry: of several survivors, the one with the largest
    /// term, and of those the one with the largest index, has everything that any of them has.
    pub last: (u64, u64),
    /// Its members, and whether each votes.
    pub members: Vec<(String, bool)>,
    /// How many pools it names.
    pub pools: usize,
}

/// How a charter goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// Which life of the cluster it is now.
    pub incarnation: u64,
    /// Who was a member and is none any more: they join again, with empty directories.
    pub gone: Vec<String>,
    /// How many pools it names.
    pub pools: usize,
    /// The file that the store of the life before is in now.
    pub kept: Option<String>,
}

fn directory(config: &Config) -> Result<&Path, String> {
    match &config.data {
        Data::Directory(directory) if config.charter.is_some() => Ok(directory),
        _ => Err("this node has no charter: there is no [charter] in its file, or no data \
                  directory; nothing changed"
            .into()),
    }
}

/// Keeps a node from starting here meanwhile.
fn hold(directory: &Path) -> Result<(File, bool), String> {
    if !directory.is_dir() {
        return Err(format!("{} is not there; nothing changed", directory.display()));
    }
    boot::hold(directory).map_err(|error| format!("{error}; nothing changed. Stop the node first"))
}

fn survivor(directory: &Path) -> Result<Survivor, String> {
    let path = directory.join(STORE);
    Store::survivor(&path).map_err(|error| match error {
        StoreError::Empty => format!(
            "there is no store of the charter in {}: this machine has nothing to go on from; \
             nothing changed. Recover at another survivor, or restore a backup",
            directory.display()
        ),
        error => format!("{}: {error}; nothing changed", path.display()),
    })
}

/// What this node's store has.
pub(crate) fn look(config: &Config) -> Result<AtRest, String> {
    let directory = directory(config)?;
    let (_lock, _) = hold(directory)?;
    let Survivor { last, charter, .. } = survivor(directory)?;
    let votes = |member: &quorate_charter::Member| member.role == quorate_charter::Role::Voter;
    let members = charter.members().values();
    let mut members: Vec<_> = members.map(|member| (member.name.clone(), votes(member))).collect();
    members.sort();
    Ok(AtRest {
        version: charter.version(),
        incarnation: charter.incarnation(),
        last,
        members,
        pools: charter.pools().len(),
    })
}

/// The charter goes on from this node's store.
pub(crate) async fn recover(config: &Config, after: Option<u64>) -> Result<Recovered, String> {
    let directory = directory(config)?;
    let (_lock, _) = hold(directory)?;
    let Survivor { identity, term, last, charter } = survivor(directory)?;
    // Whoever has given up may have missed that all have.
    has_begun(config, &charter, Pins::kept(directory)? == Some(Pins::Pinned))?;
    let name = config.name();
    match charter.members().get(&identity.member) {
        Some(member) if member.name == name => {}
        Some(member) => {
            let known = &member.name;
            return Err(format!("this store is that of {known}, not of {name}; nothing changed"));
        }
        None => {
            return Err(format!(
                "the charter in this store does not have {name} as a member: it was removed, or \
                 had hardly joined; nothing changed. Recover at another survivor, or restore a \
                 backup"
            ));
        }
    }
    nobody_answers(config).await?;
    let next = next(config, &charter, after, last.1)?;
    let kept = format!("charter.redb.before-{}", next.incarnation);
    let (old, aside) = (directory.join(STORE), directory.join(&kept));
    if aside.exists() {
        let shown = aside.display();
        return Err(format!("{shown} is there already; nothing changed. Move it away first"));
    }
    let (beside, reborn) = make(directory, term + 1, &charter, &next)?;
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    // The old store keeps its name until the new one takes its place at once.
    fs::hard_link(&old, &aside).map_err(wrong)?;
    fs::rename(&beside, &old).and_then(|()| File::open(directory)?.sync_all()).map_err(wrong)?;
    Ok(told(&reborn, &next, Some(kept)))
}

/// The charter goes on from a backup, at a node that was never started.
pub(crate) async fn restore(
    config: &Config,
    backup: &str,
    after: Option<u64>,
) -> Result<Recovered, String> {
    let directory = directory(config)?;
    let charter =
        Charter::from_text(backup).map_err(|error| format!("{error}; nothing changed"))?;
    has_begun(config, &charter, true)?;
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let (_lock, is_used) = hold(directory)?;
    if is_used || directory.join(STORE).exists() {
        return Err(format!(
            "{} was in use before; nothing changed. A backup is restored into an empty directory, \
             and only if no member has a store any more: otherwise `quorate cluster recover` \
             loses less",
            directory.display()
        ));
    }
    nobody_answers(config).await?;
    let next = next(config, &charter, after, charter.version())?;
    let (beside, reborn) = make(directory, 1, &charter, &next)?;
    let placed = fs::rename(&beside, directory.join(STORE));
    let placed = placed.and_then(|()| File::open(directory)?.sync_all());
    placed.map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(told(&reborn, &next, None))
}

/// A cluster of files, which had no charter, gets one at its first member.
///
/// To seats it is a later life, too: who decided before was in a file, and what that granted is
/// known to nobody here but may be in use.
pub(crate) async fn import(config: &Config) -> Result<Recovered, String> {
    let directory = directory(config)?;
    if config.charter.is_some_and(|charter| charter.import) {
        return Err(
            "import = true: this cluster gets its charter while it runs; nothing changed. \
                    Start all members with their new files, one after the other, and run `quorate \
                    cluster import` without --config"
                .into(),
        );
    }
    if !config.founds_charter() {
        let first = config.members.iter().next().map_or("it", |first| first.name.as_str());
        return Err(format!(
            "a charter begins at the first member of the file: run this there, on {first}; nothing \
             changed"
        ));
    }
    let (_lock, is_used) = hold(directory)?;
    if directory.join(STORE).exists() {
        return Err(format!(
            "{} has a charter already; nothing changed. Start this node as it is",
            directory.display()
        ));
    }
    if !is_used {
        return Err(format!(
            "nobody ever started from {}; nothing changed. If the cluster is new, `quorate init` \
             founds its charter; if this machine lost its disk, start it first without [charter], \
             as before",
            directory.display()
        ));
    }
    let keys = config.keys().map_err(|error| format!("{error}; nothing changed"))?;
    let there = peers::there(config, keys).await;
    if !there.is_empty() {
        return Err(format!(
            "members run ({}), and decide over pools as their files say; nothing changed. Stop all \
             members first, and start them again with the new file after this",
            there.join(", ")
        ));
    }
    let about = About { addresses: addresses(config), ..About::default() };
    let founder = Newcomer { name: config.name().to_owned(), birth: Birth(drawn()), about };
    let incarnation = super::begin::incarnation(0);
    let mut before = Charter::default();
    let found =
        Change::Found { cluster: ClusterId(drawn()), incarnation: incarnation - 1, founder };
    let founded = before.apply(1, &Request::one(request_id(), found));
    founded.map_err(|error| format!("{error}; nothing changed"))?;
    let next = next(config, &before, None, before.version())?;
    let (beside, reborn) = make(directory, 1, &before, &next)?;
    let placed = fs::rename(&beside, directory.join(STORE));
    let placed = placed.and_then(|()| File::open(directory)?.sync_all());
    placed.map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(told(&reborn, &next, None))
}

/// A life of the charter that goes on without others says who decides. That must not be while files
/// do: nodes would go on by them.
fn has_begun(config: &Config, charter: &Charter, is_pinned: bool) -> Result<(), String> {
    let imports = config.charter.is_some_and(|charter| charter.import);
    if imports && is_pinned && charter.seats().is_empty() {
        return Err(
            "who decides is as files say, and `quorate cluster import` was not done: this \
                    charter has nothing that anybody could miss; nothing changed. Pools go on \
                    without it. To begin anew, stop all members, remove what is called charter* \
                    from their data directories, and start them, the first of the list first"
                .into(),
        );
    }
    Ok(())
}

async fn nobody_answers(config: &Config) -> Result<(), String> {
    let keys = config.keys().map_err(|error| format!("{error}; nothing changed"))?;
    let there = peers::there(config, keys).await;
    if there.is_empty() {
        return Ok(());
    }
    Err(format!(
        "members run ({}), and would go on beside what is made here; nothing changed. If they and \
         this node are most of those who vote, start this node: nothing is lost. If not, stop \
         them, and empty their data directories before they start again",
        there.join(", ")
    ))
}

fn next(
    config: &Config,
    charter: &Charter,
    after: Option<u64>,
    last: u64,
) -> Result<Reborn, String> {
    let now = charter.incarnation();
    let incarnation = now.max(after.unwrap_or(0)).saturating_add(1);
    let highest = charter.seats().values().map(|seat| seat.term).max().unwrap_or(0);
    if incarnation.saturating_add(highest / TERMS_EACH) >= INCARNATIONS {
        return Err(format!(
            "incarnation {incarnation} would be too many: fences have room for {INCARNATIONS}; \
             nothing changed. Found a new cluster, with pools of other names"
        ));
    }
    let about = About { addresses: addresses(config), ..About::default() };
    let sole = Newcomer { name: config.name().to_owned(), birth: Birth(drawn()), about };
    let (cluster, index) = (ClusterId(drawn()), Reborn::index_after(last));
    Ok(Reborn { cluster, incarnation, index, sole })
}

/// Makes the store beside its place: whatever interrupts this, nothing has changed.
fn make(
    directory: &Path,
    term: u64,
    charter: &Charter,
    next: &Reborn,
) -> Result<(std::path::PathBuf, Charter), String> {
    let beside = directory.join(BESIDE);
    let wrong = |error: &dyn std::fmt::Display| format!("{error}; nothing changed");
    let reborn = charter.reborn(next).map_err(|why| wrong(&why))?;
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(wrong(&error)),
        _ => {} // What an earlier try left.
    }
    Store::reborn(&beside, term, &reborn, next).map_err(|error| wrong(&error))?;
    Ok((beside, reborn))
}

fn told(reborn: &Charter, next: &Reborn, kept: Option<String>) -> Recovered {
    let gone = reborn.gone().values().filter(|gone| gone.name != next.sole.name && !gone.barred);
    let mut gone: Vec<String> = gone.map(|gone| gone.name.clone()).collect();
    gone.sort();
    gone.dedup();
    Recovered { incarnation: next.incarnation, gone, pools: reborn.pools().len(), kept }
}

//! What goes wrong: one entry each, in six files. A fault acts on every beat (a quarter of a
//! second) while it lasts, so that any of them can go on beside any other; what it did is undone by
//! [`Stage::heal`] when all are over.

mod charter;
mod links;
mod members;
mod processes;
mod surroundings;
mod trust;

use super::draw::Protocol;
use super::stage::Stage;
use crate::lab::net::Outcome;

/// How often faults act.
pub(crate) const BEAT: std::time::Duration = std::time::Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) act: fn(&mut Stage, u32) -> Outcome,
    pub(crate) fits: fn(Protocol, usize) -> bool,
    /// It needs the links as the laboratory made them.
    pub(crate) links: bool,
    /// Answers may be slow without anybody being away, so that what a node says of itself is not
    /// held against it.
    pub(crate) blurs: bool,
    /// Nodes lose what they wrote down.
    pub(crate) forgets: bool,
    /// So many or so that no hold without a lease outlives it: a majority's disks, an old copy of
    /// one, or another configuration while somebody holds (docs/claims.md, *Without a lease*).
    pub(crate) robs: bool,
    /// It writes files anew that members who joined wrote themselves.
    pub(crate) files: bool,
    /// So many machines join, that were no members before.
    pub(crate) joins: usize,
    /// It plays with disks: each node has a small one of its own.
    pub(crate) disk: bool,
    /// It plays with clocks.
    pub(crate) clock: bool,
    /// It plays with them by more than pools are told.
    pub(crate) beyond: bool,
    /// It needs nodes of the test program.
    pub(crate) real: bool,
    /// All nodes stay where they are, go on as they are, and hear each other.
    pub(crate) spares: bool,
}

impl Fault {
    /// Whether it can happen to so many nodes of such a cluster.
    pub(crate) fn suits(&self, protocol: Protocol, hosts: usize) -> bool {
        let can = protocol == Protocol::Grown || self.joins == 0;
        (self.fits)(protocol, hosts) && can && !(self.files && protocol == Protocol::Grown)
    }

    /// Whether it takes a clock to make certificates that expire.
    pub(crate) fn expires(&self) -> bool {
        self.name.starts_with("certificate")
    }
}

const fn fault(
    name: &'static str,
    about: &'static str,
    act: fn(&mut Stage, u32) -> Outcome,
) -> Fault {
    Fault {
        name,
        about,
        act,
        fits: any,
        links: false,
        blurs: false,
        forgets: false,
        robs: false,
        files: false,
        joins: 0,
        disk: false,
        clock: false,
        beyond: false,
        real: false,
        spares: false,
    }
}

const fn spares(fault: Fault) -> Fault {
    Fault { spares: true, ..fault }
}

/// It needs a cluster of files.
const fn of_files(fault: Fault) -> Fault {
    Fault { files: true, ..fault }
}

fn any(_: Protocol, _: usize) -> bool {
    true
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Fault> {
    let files =
        [processes::ALL, charter::ALL, members::ALL, links::ALL, surroundings::ALL, trust::ALL];
    files.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_sixty_and_each_has_a_name_of_its_own() {
        let mut names: Vec<&str> = super::all().map(|fault| fault.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count >= 60, "{count}");
    }
}

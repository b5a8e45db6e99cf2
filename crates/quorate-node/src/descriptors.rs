//! File descriptors: every connection takes one, and those of clients must leave some to peers and
//! to the disk, or clients alone could cut a node off from its cluster.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{Config, MEMBERS_MAX};
use crate::door::{LOCAL_MAX, TURNED_AWAY_MAX};
use crate::peers::GREETINGS_MAX;

/// For the journal, listeners, the log, and whatever else the process has open.
const FILES: usize = 64;

/// Takes as many descriptors as the system allows, and says for how many clients there is room:
/// as many as the configuration wants, or fewer, and then it is logged.
pub(crate) fn clients(config: &Config) -> usize {
    let wanted = config.limits.clients;
    let Some(all) = raise() else { return wanted };
    let local = if config.listen_local.is_some() { LOCAL_MAX } else { 0 };
    // Those who join later too.
    let members = if config.joins { MEMBERS_MAX } else { config.members.len() };
    let kept = FILES + local + TURNED_AWAY_MAX + GREETINGS_MAX + members;
    let room = room(wanted, all, kept);
    if room < wanted {
        tracing::warn!(
            "limits.clients = {wanted}, but this process may open {all} files only, of which \
             {kept} are for peers and the disk: at most {room} clients; raise the hard limit \
             (ulimit -Hn, LimitNOFILE) to {} or more",
            wanted + kept
        );
    }
    room
}

/// At least one, since a node without clients is of no use.
fn room(wanted: usize, all: usize, kept: usize) -> usize {
    wanted.min(all.saturating_sub(kept)).max(1)
}

/// How many descriptors the process may have; nothing if there is no limit.
fn raise() -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If the system does not let us, the old limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    let allowed = getrlimit(Resource::Nofile).current?;
    Some(usize::try_from(allowed).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_to_others() {
        assert_eq!(room(4096, 1_048_576, 390), 4096);
        assert_eq!(room(4096, 1024, 390), 634);
        assert_eq!(room(4096, 100, 390), 1);
        assert_eq!(room(2, 1024, 390), 2);
    }

    #[test]
    fn the_process_takes_all_that_it_may_have() {
        let all = raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
        assert_eq!(all.map(|all| all as u64), current);
    }
}

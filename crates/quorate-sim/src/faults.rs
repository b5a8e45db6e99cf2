//! What goes wrong, how often, and for how long. Everything here is a number of a [`crate::Plan`];
//! `misfortune.rs` makes it happen.

use std::fmt;
use std::str::FromStr;

use crate::Span;

/// Everything that goes wrong in the safety phase of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Nodes crash and restart.
    pub crashes: Option<Recurring>,
    /// Nodes are restarted one after the other, each for so long, the next one when the one before
    /// promises again; their clients go on at others. Then holders keep what they have
    /// ([`quorate_laws::HoldersKeep`]).
    pub restarts: Option<Span>,
    /// Crashes that happen between two effects of a step, of a million.
    pub mid_step_ppm: u32,
    /// Restarts that remember nothing, of a million.
    pub amnesia_ppm: u32,
    /// Crashes that leave a prefix of the unsynced records on disk, of a million; the others lose
    /// all.
    pub torn_tail_ppm: u32,
    /// Nodes stand still and go on.
    pub pauses: Option<Recurring>,
    /// Links are cut and healed.
    pub cuts: Option<Recurring>,
    /// Links become many times slower.
    pub slow_links: Option<Recurring>,
    /// Clocks change their rate, within the drift the pool declares.
    pub clock_changes: Option<Recurring>,
    /// A node is suspected although it lives.
    pub slander: Option<Recurring>,
    /// A node that was started again is known for another by its first word, or when it is trusted
    /// again: whoever hears it is told that the one it knew is gone, and then that it is there, as
    /// seats of a daemon are. Known seeds of older profiles go on without.
    pub greetings: bool,
    /// How long the failure detector takes to change its mind; `None` if there is no detector.
    pub detection: Option<Span>,
    /// Grants whose client dies while using them, of a million.
    pub holder_death_ppm: u32,
    /// Claims whose client dies while waiting, of a million.
    pub waiter_death_ppm: u32,
    /// Grants whose client stands still until it is done, of a million: it does not renew.
    pub client_pause_ppm: u32,
    /// Deaths of clients that their node notices, of a million.
    pub noticed_ppm: u32,
    /// Claims whose client hangs up while it waits, of a million. Its node notices. Half of them
    /// are gone for good; the others go on at another node, with the same claim.
    pub hangup_ppm: u32,
    /// How long until a dead client is replaced, or its death noticed.
    pub respawn: Span,
}

/// A kind of fault that comes again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recurring {
    /// Mean time between two, in nanoseconds.
    pub every: u64,
    /// How long one lasts.
    pub lasts: Span,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Faults {
            crashes: None,
            restarts: None,
            mid_step_ppm: 0,
            amnesia_ppm: 0,
            torn_tail_ppm: 0,
            pauses: None,
            cuts: None,
            slow_links: None,
            clock_changes: None,
            slander: None,
            greetings: false,
            detection: None,
            holder_death_ppm: 0,
            waiter_death_ppm: 0,
            client_pause_ppm: 0,
            noticed_ppm: 0,
            hangup_ppm: 0,
            respawn: Span::ZERO,
        }
    }
}

/// A named choice of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Profile {
    /// Nothing goes wrong.
    None,
    /// Nodes crash and come back with what they persisted.
    Crashes,
    /// Nodes crash and come back remembering nothing.
    Amnesia,
    /// Loss, repetition, reordering, cuts and slow links.
    Network,
    /// Clients die while holding or waiting, stand still, and cancel.
    Clients,
    /// Clocks drift and nodes stand still.
    Clocks,
    /// Slow disks, lost and torn tails.
    Disk,
    /// All of it at once.
    Everything,
    /// Each of it or not, by the seed.
    Swarm,
    /// Nodes are restarted one after the other, while clients hold units for several leases. Apart
    /// from all others, since here nobody may lose anything.
    Restarts,
    /// Clients hang up while they wait, and go on elsewhere or nowhere; nodes crash, or not. Apart
    /// from the others, whose seeds are known by what happens in them.
    Hangups,
}

impl Profile {
    /// All of them in which holders may lose what they have.
    pub const ALL: [Profile; 9] = [
        Profile::None,
        Profile::Crashes,
        Profile::Amnesia,
        Profile::Network,
        Profile::Clients,
        Profile::Clocks,
        Profile::Disk,
        Profile::Everything,
        Profile::Swarm,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::None => "none",
            Profile::Crashes => "crashes",
            Profile::Amnesia => "amnesia",
            Profile::Network => "network",
            Profile::Clients => "clients",
            Profile::Clocks => "clocks",
            Profile::Disk => "disk",
            Profile::Everything => "everything",
            Profile::Swarm => "swarm",
            Profile::Restarts => "restarts",
            Profile::Hangups => "hangups",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        named().find(|profile| profile.name() == text).ok_or_else(|| ProfileError(text.into()))
    }
}

/// All that have a name on the command line.
fn named() -> impl Iterator<Item = Profile> {
    Profile::ALL.into_iter().chain([Profile::Restarts, Profile::Hangups])
}

/// There is no profile of this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileError(String);

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = named().map(Profile::name).collect();
        write!(f, "no fault profile '{}': choose {}", self.0, names.join(", "))
    }
}

impl std::error::Error for ProfileError {}

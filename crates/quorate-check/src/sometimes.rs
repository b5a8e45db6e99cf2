//! What must be reachable, so that no model is right only because nothing happens in it.

use std::fmt;

/// Something that should happen in some history of a scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sometimes {
    /// Somebody is granted units.
    Enter,
    /// All k units are in use at once.
    Full,
    /// A waiting claim is overtaken.
    Overtake,
    /// A client cancels while units are already set aside for it.
    CancelCrossesGrant,
    /// A client hangs up while units are already set aside for it.
    HangUpCrossesGrant,
    /// Somebody is granted units after a node crashed.
    CrashSurvived,
    /// An arbiter takes units back from a holder that did not renew.
    Reclaim,
    /// A holder leaves a unit for another.
    Move,
    /// Somebody is granted units by a seat that another had before.
    SeatMoved,
    /// A seat with holders in its books opens because of what it was told.
    OpenedByWord,
    /// A seat with holders in its books opens because time has passed.
    OpenedByTime,
    /// A shadow with holders in its books decides as soon as it is called.
    ShadowOpened,
    /// More units are in use than the pool has since it was changed.
    MoreThanThereAre,
    /// Somebody uses units by a longer lease than the pool has since it was changed.
    LongerThanNow,
    /// A pool that nobody used at the node that decides comes into use there after another node
    /// decided, and opens at once.
    OpenedUnused,
}

impl Sometimes {
    /// All of them.
    pub const ALL: [Sometimes; 15] = [
        Sometimes::Enter,
        Sometimes::Full,
        Sometimes::Overtake,
        Sometimes::CancelCrossesGrant,
        Sometimes::HangUpCrossesGrant,
        Sometimes::CrashSurvived,
        Sometimes::Reclaim,
        Sometimes::Move,
        Sometimes::SeatMoved,
        Sometimes::OpenedByWord,
        Sometimes::OpenedByTime,
        Sometimes::ShadowOpened,
        Sometimes::MoreThanThereAre,
        Sometimes::LongerThanNow,
        Sometimes::OpenedUnused,
    ];
}

impl fmt::Display for Sometimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sometimes::Enter => "somebody enters",
            Sometimes::Full => "all units in use at once",
            Sometimes::Overtake => "an overtake",
            Sometimes::CancelCrossesGrant => "a cancel crosses a grant",
            Sometimes::HangUpCrossesGrant => "a client hangs up while it is granted",
            Sometimes::CrashSurvived => "a crash is survived",
            Sometimes::Reclaim => "a unit is reclaimed",
            Sometimes::Move => "a holder moves",
            Sometimes::SeatMoved => "a seat that moved grants",
            Sometimes::OpenedByWord => "a seat with holders opens by word",
            Sometimes::OpenedByTime => "a seat with holders opens by time",
            Sometimes::ShadowOpened => "a shadow with holders takes over",
            Sometimes::MoreThanThereAre => "more units in use than there are",
            Sometimes::LongerThanNow => "a lease in force that is longer than the pool's",
            Sometimes::OpenedUnused => "a pool that comes into use opens at once",
        })
    }
}

/// Which of these were seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sightings(u16);

impl Sightings {
    /// Notes one.
    pub fn insert(&mut self, sometimes: Sometimes) {
        self.0 |= 1 << sometimes as u8;
    }

    /// Whether it was seen.
    pub fn contains(&self, sometimes: Sometimes) -> bool {
        self.0 & 1 << sometimes as u8 != 0
    }

    /// Notes all of another.
    pub fn extend(&mut self, other: Sightings) {
        self.0 |= other.0;
    }

    /// Those that were seen.
    pub fn iter(self) -> impl Iterator<Item = Sometimes> {
        Sometimes::ALL.into_iter().filter(move |sometimes| self.contains(*sometimes))
    }
}

//! A node's disk: one image, and what is not on it yet.
//!
//! A `Persist` starts a write. Everything that must not be seen before it is on disk waits behind
//! it, in order. One sync covers all records that wait when it starts, as a daemon's group commit
//! does. A crash loses the records that were not synced, or tears them: then a prefix of them
//! survives. Half a record does not, since a journal has checksums; and nothing behind a record was
//! ever seen, so each prefix is a state the disk may honestly be in.

use std::collections::VecDeque;

use quorate_core::{Effect, EffectOf, Protocol, Purpose};

/// One node's disk, and the effects that wait for it.
#[derive(Debug)]
pub(crate) struct Disk<P: Protocol> {
    image: Option<P::Durable>,
    /// Records not yet synced, each followed by the effects that wait for it, and what all of them
    /// are for.
    behind: VecDeque<(Purpose, EffectOf<P>)>,
    /// How many records of `behind` the sync under way covers.
    syncing: usize,
    /// Whether what was on it is gone and nothing was written since: the node has forgotten
    /// everything, and has not even written that down.
    lost: bool,
}

impl<P: Protocol> Default for Disk<P> {
    fn default() -> Self {
        Disk { image: None, behind: VecDeque::new(), syncing: 0, lost: false }
    }
}

impl<P: Protocol> Disk<P> {
    /// An empty disk in place of one that is gone.
    pub(crate) fn replaced() -> Self {
        Disk { lost: true, ..Disk::default() }
    }

    /// Whether a restart finds nothing because what there was is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    fn write(&mut self, record: P::Durable) {
        self.image = Some(record);
        self.lost = false;
    }

    /// What a restart would read.
    pub(crate) fn image(&self) -> Option<&P::Durable> {
        self.image.as_ref()
    }

    /// Whether an effect must wait.
    pub(crate) fn is_busy(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Writes a record that is on disk at once.
    pub(crate) fn write_now(&mut self, record: P::Durable) {
        assert!(!self.is_busy(), "a record may not pass those that wait");
        self.write(record);
    }

    /// Puts an effect behind the barrier.
    pub(crate) fn wait(&mut self, purpose: Purpose, effect: EffectOf<P>) {
        self.behind.push_back((purpose, effect));
    }

    /// Starts a sync of all records that wait; says whether there is one to start.
    pub(crate) fn start_sync(&mut self) -> bool {
        assert_eq!(self.syncing, 0, "one sync at a time");
        self.syncing = self.records();
        self.syncing > 0
    }

    /// The sync is done. Gives back the effects that may now happen, one by one, until `None`.
    pub(crate) fn next_released(&mut self) -> Option<(Purpose, EffectOf<P>)> {
        loop {
            match self.behind.front()? {
                (_, Effect::Persist(_)) if self.syncing == 0 => return None,
                _ => {}
            }
            match self.behind.pop_front()? {
                (_, Effect::Persist(record)) => {
                    self.write(record);
                    self.syncing -= 1;
                }
                effect => return Some(effect),
            }
        }
    }

    /// Records that are not synced.
    pub(crate) fn records(&self) -> usize {
        self.behind.iter().filter(|(_, effect)| matches!(effect, Effect::Persist(_))).count()
    }

    /// A crash: the first `survivors` of the records that were not synced are on disk, the rest is
    /// gone, and nothing that waited behind any of them happens.
    pub(crate) fn crash(&mut self, survivors: usize) {
        self.syncing = 0;
        let records = self.behind.drain(..).filter_map(|(_, effect)| match effect {
            Effect::Persist(record) => Some(record),
            _ => None,
        });
        let last = records.take(survivors).last();
        if let Some(record) = last {
            self.write(record);
        }
    }
}

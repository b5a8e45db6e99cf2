//! Who shadows whom, as time passes.

use super::*;

impl Stage {
    /// Time passes, and whatever should move or be shadowed is; seats vouch for what they told.
    /// Returns how much each entry named or struck.
    fn pass_shadowed(&mut self, span: Duration) -> Vec<usize> {
        let end = self.now + span;
        let mut entries = Vec::new();
        while self.now < end {
            self.pass(SECOND / 10);
            let changes = self.seating.shadows(self.now, &self.charter);
            if !changes.is_empty() {
                entries.push(changes.len());
                self.together(changes);
            }
            let seats = self.charter.seats().iter();
            let hears = |life: &Life| self.up.get(&life.member) == Some(&life.boot);
            let unwhole = seats.filter_map(|(group, seat)| {
                let shadow = seat.shadow.filter(|it| !it.whole && hears(&it.life))?;
                Some(Change::Whole { group: *group, term: seat.term, naming: shadow.naming })
            });
            let unwhole: Vec<_> = unwhole.collect();
            self.together(unwhole);
        }
        entries
    }

    fn together(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        self.index += 1;
        let id = RequestId(u128::from(self.index).to_be_bytes());
        self.charter.apply(self.index, &Request { id, changes }).expect("allowed");
    }

    /// Of how many groups of one member another is the whole shadow.
    fn shadows(&self, seat: MemberId, shadow: MemberId) -> usize {
        let whole = |it: &&Seat| {
            let shadows = it.shadow.is_some_and(|it| it.whole && it.life.member == shadow);
            it.life.member == seat && shadows
        };
        self.charter.seats().values().filter(whole).count()
    }

    /// The seat of every group that this member shadows strikes it.
    fn strike(&mut self, shadow: MemberId) {
        let seats = self.charter.seats().iter();
        let strike = seats.filter_map(|(group, seat)| {
            let seen = seat.shadow.filter(|it| it.life.member == shadow)?.naming;
            Some(Change::Shadow { group: *group, term: seat.term, seen, shadow: None })
        });
        let strike: Vec<_> = strike.collect();
        self.together(strike);
    }
}

#[test]
fn every_group_is_shadowed_in_one_entry_and_spread_over_all_others() {
    let mut stage = Stage::new(3);
    assert_eq!(stage.pass_shadowed(SECOND * 60), [256], "and then nothing is said");
    let ids = stage.ids();
    for seat in &ids {
        for shadow in ids.iter().filter(|shadow| *shadow != seat) {
            assert!((42..=43).contains(&stage.shadows(*seat, *shadow)), "{seat} {shadow}");
        }
    }
    let mut alone = Stage::new(1);
    assert_eq!(alone.pass_shadowed(SECOND * 60), [0; 0], "nobody can");
}

#[test]
fn who_falls_is_replaced_by_its_shadows_and_as_a_shadow_at_once() {
    let mut stage = Stage::new(3);
    stage.pass_shadowed(SECOND);
    let ids = stage.ids();
    let shadowed = stage.shadows(ids[0], ids[1]) + stage.shadows(ids[2], ids[1]);
    stage.up.remove(&ids[1]);
    // Whatever it decided has a new shadow, and so has whatever it shadowed.
    let entries = stage.pass_shadowed(SECOND * 4);
    assert_eq!(entries[0], 85 + shadowed);
    assert!(entries[1..].iter().all(|of| *of == 1), "one group is given back: {entries:?}");
    assert!(stage.loads().iter().all(|load| *load == 0 || load.abs_diff(128) <= 2));
    let taken = stage.charter.seats().values().filter(|seat| seat.by_shadow.is_some()).count();
    assert!(taken >= 85, "no group waits: {taken}");
    for (seat, shadow) in [(ids[0], ids[2]), (ids[2], ids[0])] {
        assert_eq!(stage.shadows(seat, shadow), stage.load(seat));
    }
    // It is back: it shadows nobody before it is trusted, gets groups, and then its share of
    // shadows.
    stage.up.insert(ids[1], 2);
    assert_eq!(stage.pass_shadowed(SECOND * 9), [0; 0]);
    stage.pass_shadowed(SECOND * 150);
    for (seat, shadow) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let shadows = stage.shadows(ids[seat], ids[shadow]);
        assert!((42..=43).contains(&shadows), "{seat} {shadow}: {shadows}");
    }
    assert_eq!(stage.pass_shadowed(SECOND * 60), [0; 0]);
}

#[test]
fn who_drains_is_no_shadow_and_who_restarted_is_another_life() {
    let mut stage = Stage::new(3);
    stage.pass_shadowed(SECOND);
    let ids = stage.ids();
    stage.drain(ids[1], true);
    stage.pass_shadowed(SECOND);
    assert_eq!((stage.shadows(ids[0], ids[1]), stage.shadows(ids[2], ids[1])), (0, 0));
    assert_eq!(stage.shadows(ids[0], ids[2]), stage.load(ids[0]));
    stage.drain(ids[1], false);
    stage.pass_shadowed(SECOND * 120);
    assert!(stage.shadows(ids[0], ids[1]) > 0);
    // Another life knows nothing: nobody is shadowed by the one before.
    stage.up.insert(ids[1], 2);
    stage.pass_shadowed(SECOND);
    let gone = Life { member: ids[1], boot: 1 };
    let by = |seat: &Seat| seat.shadow.map(|shadow| shadow.life);
    assert!(stage.charter.seats().values().all(|seat| by(seat).is_some_and(|it| it != gone)));
}

#[test]
fn a_shadow_that_its_seat_strikes_is_not_named_again_soon() {
    let mut stage = Stage::new(2);
    stage.pass_shadowed(SECOND);
    let ids = stage.ids();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        stage.pass_shadowed(SECOND / 10);
        stage.strike(ids[1]);
        let struck = stage.now;
        while stage.shadows(ids[0], ids[1]) == 0 {
            stage.pass_shadowed(SECOND / 10);
        }
        pauses.push((stage.now - struck).as_secs());
    }
    assert_eq!(pauses, [10, 20, 40]);
    assert_eq!(stage.shadows(ids[1], ids[0]), stage.load(ids[1]), "nobody said anything of that");
    // With a third, that one steps in at once.
    let mut stage = Stage::new(3);
    stage.pass_shadowed(SECOND);
    let ids = stage.ids();
    stage.strike(ids[1]);
    stage.pass_shadowed(SECOND / 10);
    assert_eq!(stage.shadows(ids[0], ids[2]), stage.load(ids[0]));
    assert_eq!(stage.pass_shadowed(SECOND * 8), [0; 0]);
}

#[test]
fn a_leader_that_begins_strikes_nobody_whom_it_has_not_heard_of_yet() {
    let mut stage = Stage::new(3);
    stage.pass_shadowed(SECOND);
    stage.seating = Seating::new(Patience::default(), stage.now);
    let heard = BTreeMap::new();
    assert_eq!(stage.seating.moves(stage.now, &stage.charter, &heard), []);
    assert_eq!(stage.seating.shadows(stage.now, &stage.charter), []);
}

/// Whoever took over a moment ago has no final books: what it gave away would wait out a lease.
#[test]
fn what_a_shadow_took_over_is_not_given_away_before_its_books_are_final() {
    let patience = Patience { rest: SECOND * 2, ..Patience::default() };
    let mut stage = Stage::with(3, patience);
    stage.pass_shadowed(SECOND);
    let ids = stage.ids();
    stage.up.remove(&ids[1]);
    while stage.load(ids[1]) > 0 {
        stage.pass(SECOND / 10);
    }
    let inherited = |stage: &Stage| {
        let its = |seat: &&crate::Seat| seat.life.member == ids[0] && seat.by_shadow.is_some();
        stage.charter.seats().values().filter(its).count()
    };
    let (took, all) = (inherited(&stage), stage.load(ids[0]));
    assert!(took > 40 && all > took);
    stage.drain(ids[0], true);
    stage.pass(SECOND);
    assert_eq!((stage.load(ids[0]), inherited(&stage)), (took, took), "the others go at once");
    stage.pass(SECOND * 2);
    assert_eq!(stage.load(ids[0]), 0);
}

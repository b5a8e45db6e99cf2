//! Algorithm 1 of the timer-free paper as a plain value: with all corrections of the errata
//! (broadcast spec 2.3), or with what is printed put back, one thing at a time.
//!
//! Sets of processes are bit masks.

/// What can be put back as it is printed, or broken to see what it is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Printed {
    /// Footnote 1: of two equal clocks neither goes first (broadcast spec E1).
    TieBreak,
    /// Line 10: the clock does not advance with a request (broadcast spec E2).
    SameClock,
    /// Lines 33 to 41: replies are not matched with what they answer (broadcast spec E3).
    Unmatched,
    /// Line 40: a permission counts whenever it arrives (broadcast spec E3c).
    CountTwice,
    /// A permission of somebody who is known to have crashed still counts.
    KeepDead,
    /// The proof of lemma 2: who has permitted is not taken for crashed (broadcast spec E15).
    SpareGenerous,
    /// Line 8: a new request gives up the query of the one before (broadcast spec E5).
    Abandon,
    /// Lines 17 to 20: the state changes last, requests may come in between (broadcast spec E6).
    LeaveInSteps,
    /// Section 4.1: permission unless inside *and* ahead (broadcast spec E17).
    Either,
    /// Section 4.1: replies are counted, whatever they say (broadcast spec E18).
    CountReplies,
    /// One permission fewer than line 15 wants.
    OneTooFew,
    /// Nobody is ever taken for crashed: Raymond's condition.
    Undetected,
    /// Line 14 without the crashes that are known.
    Mute,
    /// Replies do not name crashes: as printed, where only requests do.
    RepliesMute,
}

/// What all processes know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) units: u32,
    pub(super) crashes_max: u32,
    printed: u32,
}

impl Terms {
    pub(super) fn new(units: u32, crashes_max: u32) -> Self {
        Terms { units, crashes_max, printed: 0 }
    }

    /// With this put back.
    pub(super) fn with(self, printed: Printed) -> Self {
        Terms { printed: self.printed | 1 << printed as u32, ..self }
    }

    pub(super) fn has(self, printed: Printed) -> bool {
        self.printed >> printed as u32 & 1 == 1
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Message {
    Request { clock: u32, query: u32, crashed: u32, serial: u32 },
    Reply { clock: u32, query: u32, permits: bool, unheard: u32, crashed: u32, serial: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    Idle,
    Waiting,
    Inside,
    /// Between lines 19 and 20.
    Leaving,
}

/// What one step showed, for those who count.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen {
    /// Permissions, and how many had replied at all, when somebody entered.
    pub(super) entered: Option<(u32, u32)>,
    /// Whether it entered only because crashes are known.
    pub(super) reclaimed: bool,
    /// A request came while one waited: whether one's own was older, and whether one permitted.
    pub(super) while_waiting: Option<(bool, bool)>,
    /// Crashes learnt from one's own query, and from others.
    pub(super) own: u32,
    pub(super) told: u32,
    /// Among these, who had permitted the request that waits.
    pub(super) withdrawn: u32,
    /// The clock went back, or was not above what was heard.
    pub(super) clock_wrong: bool,
}

/// A process of the algorithm, among `N`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Process<const N: usize> {
    pub(super) phase: Phase,
    pub(super) clock: u32,
    pub(super) last: u32,
    pub(super) have: u32,
    replied: u32,
    extra: u8,
    pending: [(u32, u32, u32); N],
    pub(super) crashed: u32,
    /// The paper's not_rec_from.
    pub(super) unheard: u32,
    query: u32,
    missing: u32,
    sets: [u32; N],
    ended: bool,
    /// Which query this is, and who has not answered it, whatever the process believes: what the
    /// responsiveness property is about.
    serial: u32,
    pub(super) truly_missing: u32,
}

type Out<'a> = &'a mut Vec<(usize, Message)>;

impl<const N: usize> Process<N> {
    pub(super) fn new() -> Self {
        Process {
            phase: Phase::Idle,
            clock: 0,
            last: 0,
            have: 0,
            replied: 0,
            extra: 0,
            pending: [(0, 0, 0); N],
            crashed: 0,
            unheard: 0,
            query: 0,
            missing: 0,
            sets: [0; N],
            ended: true,
            serial: 0,
            truly_missing: 0,
        }
    }

    pub(super) fn owes_nobody(&self) -> bool {
        self.pending.iter().all(|pending| pending.0 == 0)
    }

    fn others(me: usize) -> impl Iterator<Item = usize> {
        (0..N).filter(move |other| *other != me)
    }

    /// Lines 7 to 16.
    pub(super) fn request(&mut self, terms: Terms, me: usize, out: Out<'_>) -> Seen {
        assert!(self.phase == Phase::Idle, "one request at a time");
        self.phase = Phase::Waiting;
        self.last = self.clock + 1;
        if !terms.has(Printed::SameClock) {
            self.clock = self.last;
        }
        (self.have, self.replied, self.extra) = (0, 0, 0);
        let mut query = 0;
        if self.ended || terms.has(Printed::Abandon) {
            query = self.last;
            self.start_query(terms, me, query);
        }
        self.tell(terms, me, query, out);
        let mut seen = Seen::default();
        self.check(terms, &mut seen);
        seen
    }

    fn start_query(&mut self, terms: Terms, me: usize, query: u32) {
        let others = ((1u64 << N) - 1) as u32 & !(1 << me);
        self.query = query;
        self.missing = others;
        self.sets = [0; N];
        self.sets[me] = self.unheard;
        self.ended = N as u32 - 1 <= terms.crashes_max;
        self.serial += 1;
        self.truly_missing = others;
    }

    fn tell(&mut self, terms: Terms, me: usize, query: u32, out: Out<'_>) {
        let crashed = if terms.has(Printed::Mute) { 0 } else { self.crashed };
        let serial = if query > 0 { self.serial } else { 0 };
        for other in Self::others(me).filter(|other| self.crashed >> other & 1 == 0) {
            out.push((other, Message::Request { clock: self.last, query, crashed, serial }));
        }
    }

    /// A question without a request, which changes nothing but what is known (broadcast spec 2.4).
    pub(super) fn probe(&mut self, terms: Terms, me: usize, out: Out<'_>) {
        if self.ended {
            self.clock += 1;
            let query = self.clock;
            self.start_query(terms, me, query);
            let (crashed, serial) = (self.crashed, self.serial);
            for other in Self::others(me).filter(|other| crashed >> other & 1 == 0) {
                out.push((other, Message::Request { clock: 0, query, crashed, serial }));
            }
        }
    }

    /// Lines 17 to 20, or only to 19.
    pub(super) fn leave(&mut self, terms: Terms, out: Out<'_>) {
        for other in 0..N {
            let (clock, query, serial) = self.pending[other];
            if clock > 0 && self.crashed >> other & 1 == 0 {
                out.push((other, self.reply(terms, clock, query, serial, true)));
            }
        }
        self.pending = [(0, 0, 0); N];
        let apart = terms.has(Printed::LeaveInSteps);
        self.phase = if apart { Phase::Leaving } else { Phase::Idle };
        (self.last, self.have, self.replied, self.extra) =
            if apart { (self.last, 0, 0, 0) } else { (0, 0, 0, 0) };
    }

    /// Line 20.
    pub(super) fn rest(&mut self) {
        (self.phase, self.last) = (Phase::Idle, 0);
    }

    fn reply(&self, terms: Terms, clock: u32, query: u32, serial: u32, permits: bool) -> Message {
        let crashed = if terms.has(Printed::RepliesMute) { 0 } else { self.crashed };
        Message::Reply { clock, query, permits, unheard: self.unheard, crashed, serial }
    }

    /// Lines 21 to 41.
    pub(super) fn hear(
        &mut self,
        terms: Terms,
        me: usize,
        from: usize,
        message: Message,
        out: Out<'_>,
    ) -> Seen {
        let mut seen = Seen::default();
        match message {
            Message::Request { clock, query, crashed, serial } => {
                let before = self.clock;
                self.clock = self.clock.max(clock) + 1;
                seen.clock_wrong = self.clock <= before || self.clock <= clock;
                self.learn(terms, crashed, false, &mut seen);
                let first = match terms.has(Printed::TieBreak) {
                    true => self.last < clock,
                    false => (self.last, me) < (clock, from),
                };
                let inside = matches!(self.phase, Phase::Inside | Phase::Leaving);
                let ahead = self.phase == Phase::Waiting && first;
                let defers = match terms.has(Printed::Either) {
                    true => inside && first,
                    false => inside || ahead,
                } && clock > 0;
                if defers && self.pending[from].0 < clock {
                    self.pending[from] = (clock, query, serial);
                }
                if self.phase == Phase::Waiting && clock > 0 {
                    seen.while_waiting = Some((first, !defers));
                }
                out.push((from, self.reply(terms, clock, query, serial, !defers)));
            }
            Message::Reply { clock, query, permits, unheard, crashed, serial } => {
                self.learn(terms, crashed, false, &mut seen);
                let any = terms.has(Printed::Unmatched);
                if serial > 0 && serial == self.serial {
                    self.truly_missing &= !(1 << from);
                }
                if any || query != 0 && query == self.query {
                    self.missing &= !(1 << from);
                    self.sets[from] = unheard;
                    if self.missing.count_ones() <= terms.crashes_max {
                        self.ended = true;
                        self.unheard = self.missing;
                        let heard = (0..N).filter(|other| self.missing >> other & 1 == 0);
                        let common = heard.fold(u32::MAX, |all, other| all & self.sets[other]);
                        if !terms.has(Printed::Undetected) {
                            self.learn(terms, common, true, &mut seen);
                        }
                    }
                }
                if (any || clock == self.last) && self.phase == Phase::Waiting {
                    self.replied |= 1 << from;
                    if permits {
                        self.extra += u8::from(self.have >> from & 1 == 1);
                        self.have |= 1 << from;
                    }
                }
            }
        }
        self.check(terms, &mut seen);
        seen
    }

    fn learn(&mut self, terms: Terms, crashed: u32, own: bool, seen: &mut Seen) {
        let mut new = crashed & !self.crashed;
        let waits = self.phase == Phase::Waiting;
        seen.withdrawn |= if waits { new & self.have } else { 0 };
        if terms.has(Printed::SpareGenerous) && waits {
            new &= !self.have;
        }
        self.crashed |= new;
        if own {
            seen.own |= new;
        } else {
            seen.told |= new;
        }
    }

    /// Line 15.
    fn check(&mut self, terms: Terms, seen: &mut Seen) {
        if self.phase != Phase::Waiting {
            return;
        }
        let kept = terms.has(Printed::KeepDead);
        let have = if kept { self.have } else { self.have & !self.crashed };
        let replied = self.replied.count_ones();
        let mut count = have.count_ones();
        if terms.has(Printed::CountTwice) {
            count += u32::from(self.extra);
        }
        if terms.has(Printed::CountReplies) {
            count = replied;
        }
        let needed = (N as u32).saturating_sub(self.crashed.count_ones() + terms.units);
        let needed = needed.saturating_sub(u32::from(terms.has(Printed::OneTooFew)));
        if count >= needed {
            self.phase = Phase::Inside;
            seen.entered = Some((have.count_ones(), replied));
            seen.reclaimed = have.count_ones() + terms.units < N as u32;
            (self.have, self.replied, self.extra) = (0, 0, 0);
        }
    }

    /// Whether a message would change nothing, now or later.
    pub(super) fn is_idle_talk(&self, terms: Terms, from: usize, message: Message) -> bool {
        let Message::Reply { clock, query, permits, crashed, .. } = message else { return false };
        let stale = query == 0 || query != self.query;
        let waits = self.phase == Phase::Waiting && clock == self.last && permits;
        let known = self.have >> from & 1 == 1 && !terms.has(Printed::CountTwice);
        let counts = terms.has(Printed::CountReplies) && self.phase == Phase::Waiting;
        let loose = terms.has(Printed::Unmatched) || terms.has(Printed::SameClock) || counts;
        !loose && stale && (!waits || known) && crashed & !self.crashed == 0
    }

    /// Whether hearing this is the true end of a query, and who had not answered it then.
    pub(super) fn truly_ends(&self, terms: Terms, from: usize, message: Message) -> Option<u32> {
        let Message::Reply { serial, .. } = message else { return None };
        let left = self.truly_missing & !(1 << from);
        let ends = serial > 0
            && serial == self.serial
            && self.truly_missing.count_ones() > terms.crashes_max
            && left.count_ones() <= terms.crashes_max;
        ends.then_some(left)
    }
}

//! What happened lately: a bounded record in memory, and the last minutes in buckets for charts.
//!
//! Nothing here is decided on, and nothing survives a restart. A busy pool forgets its own past
//! first, so that a quiet one keeps its few lines.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_wire::glance::{Bucket, Record, What};

/// Records of one pool...
const POOL_MAX: usize = 512;
/// ...of all pools together; beyond that, a pool keeps only its last few.
const TOTAL_MAX: usize = 65_536;
const FEW: usize = 8;
/// Records worth knowing without looking at their pool.
const NOTABLE_MAX: usize = 512;
/// Ten minutes.
const BUCKETS_MAX: usize = 60;
const BUCKET_MS: u64 = 10_000;
/// Most characters of a text.
const TEXT_MAX: usize = 120;

/// Most other pools that one record names.
const OTHERS_MAX: usize = 64;

/// What happened to a claim of a client, in words that are not kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief<'a> {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) what: What,
    pub(crate) pool: &'a str,
    pub(crate) claim: (u64, u64),
    pub(crate) units: u32,
    pub(crate) took_ms: u64,
    pub(crate) who: &'a str,
    pub(crate) text: &'a str,
}

impl Brief<'_> {
    /// As a record, in the room of one that is forgotten.
    fn write_over(&self, old: &mut Record) {
        let texts = [(&mut old.who, start(self.who)), (&mut old.text, start(self.text))];
        for (text, new) in texts.into_iter().chain([(&mut old.pool, self.pool)]) {
            text.clear();
            text.push_str(new);
        }
        old.others.clear();
        (old.at_ms, old.what, old.claim) = (self.at_ms, self.what, self.claim);
        (old.units, old.took_ms, old.times, old.more_pools) = (self.units, self.took_ms, 1, 0);
    }

    fn record(&self) -> Record {
        let mut record = Record {
            at_ms: 0,
            what: self.what,
            pool: String::new(),
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: String::new(),
            text: String::new(),
            times: 1,
            more_pools: 0,
            others: Vec::new(),
        };
        self.write_over(&mut record);
        record
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// By the number of the pool.
    pools: Vec<Past>,
    notable: VecDeque<Record>,
    total: usize,
}

#[derive(Debug, Default)]
struct Past {
    records: VecDeque<Record>,
    buckets: VecDeque<Bucket>,
}

impl History {
    /// Something happened in a pool.
    pub(crate) fn note(&mut self, seat: usize, mut record: Record) {
        shorten(&mut record);
        if record.what.is_notable() {
            self.keep_notable(record.clone());
        }
        self.keep(seat, record);
    }

    /// Something happened to a claim. There are three of these for every claim, so they take no
    /// room from the system once a pool has its share.
    pub(crate) fn note_brief(&mut self, seat: usize, brief: &Brief<'_>) {
        if brief.what.is_notable() {
            return self.note(seat, brief.record());
        }
        let room = if self.total >= TOTAL_MAX { self.few() } else { POOL_MAX };
        let past = self.past(seat);
        if past.records.len() < room {
            return self.keep(seat, brief.record());
        }
        past.records.rotate_left(1);
        if let Some(oldest) = past.records.back_mut() {
            brief.write_over(oldest);
            past.count(brief.at_ms, brief.what, brief.took_ms);
        }
        self.trim(seat);
    }

    /// The same happened in all of these pools at once: each remembers it, and it is worth knowing
    /// once.
    pub(crate) fn note_together(&mut self, mut records: Vec<(usize, Record)>) {
        let Some((_, mut all)) = records.first().cloned() else { return };
        all.more_pools = u32::try_from(records.len() - 1).unwrap_or(u32::MAX);
        let others = records.iter().skip(1).take(OTHERS_MAX);
        all.others = others.map(|(_, record)| record.pool.clone()).collect();
        shorten(&mut all);
        self.keep_notable(all);
        for (seat, mut record) in records.drain(..) {
            shorten(&mut record);
            self.keep(seat, record);
        }
    }

    /// Nothing happens in a pool for a while: gives back room that its past does not need.
    pub(crate) fn rest(&mut self, seat: usize) {
        if let Some(past) = self.pools.get_mut(seat) {
            past.records.shrink_to_fit();
            past.buckets.shrink_to_fit();
        }
    }

    /// Pools were made, which nobody uses yet: none of them has a past of its own.
    pub(crate) fn note_made(&mut self, first: &str, more: &[String]) {
        let brief = Brief {
            at_ms: now_ms(),
            what: What::Amended,
            pool: first,
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: "",
            text: "the pool was made",
        };
        let more_pools = u32::try_from(more.len()).unwrap_or(u32::MAX);
        let others = more.iter().take(OTHERS_MAX).cloned().collect();
        self.keep_notable(Record { more_pools, others, ..brief.record() });
    }

    /// How much a pool keeps that must be short: at least the last thing that happened.
    fn few(&self) -> usize {
        (TOTAL_MAX / self.pools.len().max(1)).clamp(1, FEW)
    }

    fn past(&mut self, seat: usize) -> &mut Past {
        if self.pools.len() <= seat {
            self.pools.resize_with(seat + 1, Past::default);
        }
        &mut self.pools[seat]
    }

    fn keep(&mut self, seat: usize, record: Record) {
        self.total += 1;
        let past = self.past(seat);
        past.count(record.at_ms, record.what, record.took_ms);
        past.records.push_back(record);
        self.trim(seat);
    }

    fn trim(&mut self, seat: usize) {
        let room = if self.total > TOTAL_MAX { self.few() } else { POOL_MAX };
        let past = self.past(seat);
        let before = past.records.len();
        while past.records.len() > room {
            past.records.pop_front();
        }
        self.total -= before - past.records.len();
    }

    /// Something happened to this node.
    pub(crate) fn note_node(&mut self, what: What, who: &str, text: &str) {
        let mut record = Record {
            at_ms: now_ms(),
            what,
            pool: String::new(),
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: who.to_owned(),
            text: text.to_owned(),
            times: 1,
            more_pools: 0,
            others: Vec::new(),
        };
        shorten(&mut record);
        self.keep_notable(record);
    }

    /// What happens again and again is one record, so that it displaces nothing else.
    fn keep_notable(&mut self, mut record: Record) {
        let like = self.notable.iter().rposition(|old| old.is_like(&record));
        if let Some(old) = like.and_then(|place| self.notable.remove(place)) {
            record.times = record.times.saturating_add(old.times);
        }
        if self.notable.len() >= NOTABLE_MAX {
            self.notable.pop_front();
        }
        self.notable.push_back(record);
    }

    /// The last records of a pool, the oldest first.
    pub(crate) fn records(&self, seat: usize, most: usize) -> Vec<Record> {
        self.pools.get(seat).map_or_else(Vec::new, |past| last(&past.records, most))
    }

    /// How many more records would fit where those of a pool are.
    #[cfg(test)]
    pub(crate) fn room(&self, seat: usize) -> usize {
        let records = &self.pools[seat].records;
        records.capacity() - records.len()
    }

    /// The last minutes of a pool.
    pub(crate) fn buckets(&self, seat: usize) -> Vec<Bucket> {
        let oldest = (now_ms() / BUCKET_MS).saturating_sub(BUCKETS_MAX as u64);
        let past = self.pools.get(seat).into_iter().flat_map(|past| &past.buckets);
        past.filter(|bucket| bucket.number > oldest).copied().collect()
    }

    /// What is worth knowing, the oldest first.
    pub(crate) fn notable(&self, most: usize) -> Vec<Record> {
        last(&self.notable, most)
    }
}

impl Past {
    fn count(&mut self, at_ms: u64, what: What, took_ms: u64) {
        let number = at_ms / BUCKET_MS;
        // A calendar that is set back counts into the last bucket there is.
        if self.buckets.back().is_none_or(|bucket| bucket.number < number) {
            if self.buckets.len() >= BUCKETS_MAX {
                self.buckets.pop_front();
            }
            self.buckets.push_back(Bucket { number, ..Bucket::default() });
        }
        let Some(bucket) = self.buckets.back_mut() else { return };
        match what {
            What::Granted => {
                bucket.granted += 1;
                bucket.waited_ms.0 += took_ms;
                bucket.waited_ms.1 = bucket.waited_ms.1.max(took_ms);
            }
            What::Released => bucket.released += 1,
            What::Expired | What::Revoked => bucket.lost += 1,
            _ => {}
        }
    }
}

fn last(records: &VecDeque<Record>, most: usize) -> Vec<Record> {
    records.iter().skip(records.len().saturating_sub(most)).cloned().collect()
}

fn shorten(record: &mut Record) {
    for text in [&mut record.who, &mut record.text] {
        text.truncate(start(text).len());
    }
}

/// As much of a text as is kept.
fn start(text: &str) -> &str {
    // No text has more characters than bytes.
    if text.len() <= TEXT_MAX {
        return text;
    }
    let end = text.char_indices().nth(TEXT_MAX).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// Milliseconds since 1970. A calendar, for people: it may jump.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_ms: u64, what: What) -> Record {
        let (pool, who, text) = ("p".into(), String::new(), "\u{e9}".repeat(500));
        let (claim, units, took_ms, times, more_pools) = ((1, 2), 1, 5, 1, 0);
        let others = Vec::new();
        Record { at_ms, what, pool, claim, units, took_ms, who, text, times, more_pools, others }
    }

    #[test]
    fn what_happens_to_many_pools_at_once_is_worth_knowing_once() {
        let mut history = History::default();
        history.note_node(What::Missed, "n2", "");
        let all = (0..1000).map(|seat| (seat, record(1, What::Warned))).collect();
        history.note_together(all);
        let told: Vec<_> = history.notable(100).iter().map(|r| (r.what, r.more_pools)).collect();
        assert_eq!(told, [(What::Missed, 0), (What::Warned, 999)], "it displaces nothing");
        assert_eq!(history.notable(1)[0].others.len(), OTHERS_MAX, "nor does it fill an answer");
        for seat in [0, 999] {
            assert_eq!(history.records(seat, 9)[0].more_pools, 0, "its own past tells of itself");
        }
    }

    #[test]
    fn a_busy_pool_forgets_its_own_past_and_not_that_of_others() {
        let mut history = History::default();
        history.note(0, record(1, What::Granted));
        history.note(0, record(2, What::Expired));
        for n in 0..200_000 {
            history.note(1 + n % 300, record(n as u64, What::Released));
        }
        assert_eq!(history.records(0, 100).len(), 2);
        assert!(history.total <= TOTAL_MAX + 301 * FEW, "{}", history.total);
        assert_eq!(history.records(0, 1)[0].what, What::Expired);
        assert_eq!(history.notable(10).len(), 1, "releases are not worth knowing");
        assert_eq!(history.records(0, 1)[0].text.chars().count(), TEXT_MAX);
    }

    #[test]
    fn what_happens_to_claims_is_written_over_what_is_forgotten() {
        let mut history = History::default();
        let long = "\u{e9}".repeat(500);
        for serial in 0..POOL_MAX as u64 + 3 {
            let (what, text) = match serial % 2 {
                0 => (What::Claimed, long.as_str()),
                _ => (What::Released, "short"),
            };
            let (claim, units, took_ms) = ((1, serial), 2, 7);
            let at_ms = now_ms();
            let brief = Brief { at_ms, what, pool: "p", claim, units, took_ms, who: "me", text };
            history.note_brief(0, &brief);
        }
        let kept = history.records(0, usize::MAX);
        assert_eq!((kept.len(), history.total), (POOL_MAX, POOL_MAX));
        assert_eq!(kept[0].claim, (1, 3), "the oldest are forgotten");
        let last = &kept[POOL_MAX - 2..];
        assert_eq!((last[0].what, last[0].text.as_str()), (What::Released, "short"));
        assert_eq!((last[1].what, last[1].text.chars().count()), (What::Claimed, TEXT_MAX));
        assert_eq!((last[1].who.as_str(), last[1].units, last[1].took_ms), ("me", 2, 7));
    }

    #[test]
    fn what_happens_again_and_again_is_told_once_and_displaces_nothing() {
        let mut history = History::default();
        history.note_node(What::Suspected, "n2", "silent for 3s");
        for n in 0..2000 {
            history.note(0, record(n, What::Expired));
        }
        let told: Vec<_> =
            history.notable(100).iter().map(|r| (r.what, r.times, r.at_ms)).collect();
        assert_eq!(told.len(), 2, "the rare one is still there");
        assert_eq!((told[0].0, told[0].1), (What::Suspected, 1));
        assert_eq!(told[1], (What::Expired, 2000, 1999));
        assert_eq!(history.records(0, 1)[0].times, 1, "the pool's own past has each by itself");
    }

    #[test]
    fn buckets_add_up_what_happened_in_ten_seconds() {
        let (mut history, now) = (History::default(), now_ms() / BUCKET_MS * BUCKET_MS);
        for at in [now - 1, now, now + 1] {
            history.note(0, record(at, What::Granted));
            history.note(0, record(at, What::Released));
        }
        history.note(0, record(now - BUCKET_MS, What::Expired));
        let buckets = history.buckets(0);
        assert_eq!(buckets.len(), 2);
        assert_eq!((buckets[0].granted, buckets[1].granted, buckets[1].lost), (1, 2, 1));
        assert_eq!(buckets[1].waited_ms, (10, 5));
    }
}

//! Who did or wanted what, and from where: one line of JSON for each administrative act, each
//! refusal, and the first use of a token from an address. Never a secret: only names go in.
//!
//! Whoever is refused can ask again and again, so refusals are bounded: some at once, then so many
//! a second, and the next line says how many were left out. Acts have a bound of their own, which
//! no stranger can use up. Lines go to a file that is rotated by size, or to standard error
//! (`writer`), and a bounded number stays in memory for `GET /v1/audit`.

mod writer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use quorate_api::{AuditEvent, AuditKind, AuditView};
use quorate_core::Moment;

use crate::caller::{Caller, Whence};
use crate::clock;
use crate::config::{Audited, Config, Guard};
use crate::metrics::Metrics;
use writer::Writer;

/// Lines that are remembered, of refusals and of everything else.
const REMEMBERED: usize = 1000;
/// Refusals at once, and how long until another one may be written.
const REFUSALS: Rate = Rate { most: 100, every: Duration::from_millis(100) };
/// The same for everything else.
const ACTS: Rate = Rate { most: 1000, every: Duration::from_millis(10) };
/// Pairs of a token and an address that are remembered. If there are more, all are forgotten: some
/// uses are then told as the first again.
const USES: usize = 4096;
/// Longest text of a result.
const RESULT_MAX: usize = 500;

/// Something to be written down.
#[derive(Debug)]
pub(crate) struct Note<'a> {
    pub(crate) who: &'a Caller,
    pub(crate) from: Whence,
    pub(crate) what: &'a str,
    pub(crate) pool: &'a str,
    pub(crate) about: String,
    pub(crate) result: String,
}

/// The memory, and the way out.
#[derive(Debug)]
pub(crate) struct Audit {
    node: String,
    metrics: Arc<Metrics>,
    writer: Writer,
    /// If nobody said where to write: what says whether to write at all.
    unsaid: Option<Guard>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    acts: VecDeque<AuditEvent>,
    refusals: VecDeque<AuditEvent>,
    may_act: Bucket,
    may_refuse: Bucket,
    /// Refusals that were left out since the last line, and in all.
    left_out: (u64, u64),
    uses: BTreeMap<String, BTreeSet<Whence>>,
}

impl Audit {
    /// Begins to write where the configuration says.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn open(config: &Config, metrics: Arc<Metrics>) -> Result<Audit, String> {
        let writer = match &config.audit {
            Audited::Unsaid | Audited::Stderr => Writer::to_stderr(Arc::clone(&metrics)),
            Audited::File { path, max_bytes } => {
                let opened = Writer::to_file(path, *max_bytes, Arc::clone(&metrics));
                let shown = path.display();
                opened.map_err(|error| format!("cannot write audit.file, {shown}: {error}"))?
            }
        };
        let unsaid = (config.audit == Audited::Unsaid).then(|| config.guarded.clone());
        let now = clock::now();
        let state = State {
            acts: VecDeque::new(),
            refusals: VecDeque::new(),
            may_act: Bucket::full(ACTS, now),
            may_refuse: Bucket::full(REFUSALS, now),
            left_out: (0, 0),
            uses: BTreeMap::new(),
        };
        let (node, state) = (config.name().to_owned(), Mutex::new(state));
        Ok(Audit { node, metrics, writer, unsaid, state })
    }

    /// An administrator did something, or tried to.
    pub(crate) fn act(&self, note: Note<'_>) {
        self.write(clock::now(), AuditKind::Act, note);
    }

    /// Somebody was refused.
    pub(crate) fn refusal(&self, note: Note<'_>) {
        self.write(clock::now(), AuditKind::Refusal, note);
    }

    /// Somebody showed a token that is known.
    pub(crate) fn used(&self, who: &Caller, from: Whence) {
        let name = match who {
            Caller::Holder(permit) => &*permit.name,
            Caller::Bearer(_) => "administrator",
            _ => return,
        };
        let mut state = self.state();
        if state.uses.get(name).is_some_and(|places| places.contains(&from)) {
            return;
        }
        if state.uses.values().map(BTreeSet::len).sum::<usize>() >= USES {
            state.uses.clear();
        }
        state.uses.entry(name.to_owned()).or_default().insert(from);
        drop(state);
        let (about, result) = (String::new(), "taken".to_owned());
        let note = Note { who, from, what: "show a token", pool: "", about, result };
        self.write(clock::now(), AuditKind::FirstUse, note);
    }

    /// All that is remembered.
    pub(crate) fn view(&self) -> AuditView {
        let state = self.state();
        let mut events: Vec<AuditEvent> =
            state.acts.iter().chain(&state.refusals).cloned().collect();
        events.sort_by_key(|event| event.at_ms);
        AuditView { events, left_out: state.left_out.1 }
    }

    /// Returns when everything is written, once nobody has anything more to say.
    pub(crate) fn close(&self) {
        self.writer.close();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nobody panics in the middle of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, now: Moment, kind: AuditKind, note: Note<'_>) {
        let mut state = self.state();
        let bucket = match kind {
            AuditKind::Refusal => &mut state.may_refuse,
            AuditKind::Act | AuditKind::FirstUse => &mut state.may_act,
        };
        if !bucket.take(now) {
            state.left_out = (state.left_out.0 + 1, state.left_out.1 + 1);
            self.metrics.trust.audit_left_out.inc();
            return;
        }
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let Note { who, from, what, pool, about, result } = note;
        let event = AuditEvent {
            at_ms: u64::try_from(since_1970.unwrap_or_default().as_millis()).unwrap_or(u64::MAX),
            node: self.node.clone(),
            kind,
            who: who.to_string(),
            from: from.to_string(),
            what: what.to_owned(),
            pool: pool.chars().take(crate::config::POOL_NAME_MAX).collect(),
            about,
            result: result.chars().take(RESULT_MAX).collect(),
            left_out: std::mem::take(&mut state.left_out.0),
        };
        let is_open = |guard: &Guard| guard.now().is_none() && guard.admin().is_none();
        if !self.unsaid.as_ref().is_some_and(is_open) {
            // Plain data with text for keys always serializes.
            self.writer.write(serde_json::to_string(&event).unwrap_or_default());
        }
        let kept = match kind {
            AuditKind::Refusal => &mut state.refusals,
            AuditKind::Act | AuditKind::FirstUse => &mut state.acts,
        };
        if kept.len() == REMEMBERED {
            kept.pop_front();
        }
        kept.push_back(event);
    }
}

/// How much is too much.
#[derive(Clone, Copy, Debug)]
struct Rate {
    most: u64,
    every: Duration,
}

/// So many at once, and then one from time to time.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    left: u64,
    since: Moment,
}

impl Bucket {
    fn full(rate: Rate, now: Moment) -> Bucket {
        Bucket { rate, left: rate.most, since: now }
    }

    fn take(&mut self, now: Moment) -> bool {
        let passed = now.since(self.since);
        let more = passed.as_nanos() / self.rate.every.as_nanos();
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        if self.left.saturating_add(more) >= self.rate.most {
            (self.left, self.since) = (self.rate.most, now);
        } else {
            self.left += more;
            // Both are far below what a number can be: fewer than `most` were added.
            let spent = self.rate.every * u32::try_from(more).unwrap_or(u32::MAX);
            self.since = self.since.after(spent);
        }
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit() -> Audit {
        let text = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
                    listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n\
                    members = [{ name = \"a\", peers = \"127.0.0.1:2\" }]\n";
        let config = Config::parse_in_memory(text).unwrap();
        Audit::open(&config, Arc::new(Metrics::new())).unwrap()
    }

    fn note(what: &str) -> Note<'_> {
        let (about, result) = (String::new(), String::new());
        Note { who: &Caller::Anonymous, from: Whence::Node, what, pool: "", about, result }
    }

    #[test]
    fn a_flood_of_refusals_is_bounded_and_counted_and_hides_no_act() {
        let audit = audit();
        let now = clock::now();
        audit.write(now, AuditKind::Act, note("drain"));
        for _ in 0..5000 {
            audit.write(now, AuditKind::Refusal, note("see"));
        }
        audit.write(now, AuditKind::Act, note("revoke"));
        let view = audit.view();
        assert_eq!(view.events.len(), 102);
        assert_eq!(view.left_out, 4900);
        let acts: Vec<_> = view.events.iter().filter(|it| it.kind == AuditKind::Act).collect();
        assert_eq!([acts[0].left_out, acts[1].left_out], [0, 4900], "the next line says it");
        assert_eq!(audit.metrics.trust.audit_left_out.get(), 4900);
        // A tenth of a second later there is room for one more.
        let later = now.after(Duration::from_millis(100));
        audit.write(later, AuditKind::Refusal, note("see"));
        audit.write(later, AuditKind::Refusal, note("see"));
        assert_eq!(audit.view().left_out, 4901);
        // And what is remembered is bounded as well.
        for second in 0..2000 {
            let then = now.after(Duration::from_secs(60 + second));
            audit.write(then, AuditKind::Refusal, note("see"));
        }
        assert_eq!(audit.view().events.len(), REMEMBERED + 2);
    }

    #[test]
    fn a_token_is_told_once_for_each_address() {
        let audit = audit();
        let permit = Arc::new(quorate_trust::Permit::everything("ci"));
        let (caller, other) = (Caller::Holder(permit), Caller::Anonymous);
        let at = |last| Whence::Address([10, 0, 0, last].into());
        for from in [at(1), at(1), at(2), at(1), Whence::Local { user: 7 }] {
            audit.used(&caller, from);
            audit.used(&other, from);
        }
        let told: Vec<String> =
            audit.view().events.iter().map(|it| format!("{} {}", it.who, it.from)).collect();
        assert_eq!(told, ["ci 10.0.0.1", "ci 10.0.0.2", "ci local user 7"]);
        for last in 0..=u8::MAX {
            for third in 0..20 {
                audit.used(&caller, Whence::Address([10, 1, third, last].into()));
            }
        }
        let remembered: usize = audit.state().uses.values().map(BTreeSet::len).sum();
        assert!(remembered <= USES, "{remembered}");
    }
}

//! Pools of the charter: read into definitions, and changed by whoever may.
//!
//! A change is looked at by the same code as a file before it is proposed, in the state that a
//! majority confirms. It is proposed on the condition that what it rests on is still so, and
//! answered when this node's engine knows of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{AmendRequest, AmendedView, DefinitionView, Problem, ProblemKind};
use quorate_charter::{
    Change, Charter, Council, Kept, Outcome, Reading, Refusal, Refused, Request, RequestId, Trouble,
};
use tokio::time::{Instant, timeout};

use super::{Hall, request_id};
use crate::admission;
use crate::config::{Difference, Past, Text, Written, is_pool_name};

/// How long a change, or a look at what there is, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where a client only wants to know whether a pool is there.
const GLANCE: Duration = Duration::from_millis(1500);

/// What changes while everything runs (charter spec 3): all that the checker was shown, or that
/// only nodes know.
const LIVE: [&str; 9] = [
    "units",
    "unit_names",
    "reserved",
    "lease",
    "claim_min",
    "claim_max",
    "fairness",
    "retry",
    "grace",
];
/// The same in words.
const LIVE_WORDS: &str = "units where they are a number, names and labels of units where they are \
                          a list, reserved, lease, claim_min, claim_max, fairness, retry, grace";

/// What is to be changed, and that in words.
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) words: Vec<String>,
}

/// What is new about the pools of a charter: all that it names, and which of them are others than
/// they were when that was last looked at.
#[derive(Clone, Debug)]
pub(crate) struct Amendments {
    pub(crate) written: Arc<Written>,
    /// Those that changed, and those that were made, in the order of names.
    pub(crate) changed: Vec<String>,
    pub(crate) made: Vec<String>,
}

impl Amendments {
    /// What was there before this start is no news.
    pub(crate) fn new(charter: &Charter, before: Option<&Charter>) -> Amendments {
        let (mut changed, mut made) = (Vec::new(), Vec::new());
        let differs = before.map(|before| charter.pools().changes(before.pools()));
        for it in differs.into_iter().flatten().filter(|it| it.is.is_some()) {
            if it.was.is_some() { &mut changed } else { &mut made }.push(it.name.to_owned());
        }
        Amendments { written: Arc::new(charter.pools().clone()), changed, made }
    }
}

impl Hall {
    /// Returns when this node's engine knows whatever was changed before this was called.
    ///
    /// # Errors
    /// Nobody can say now.
    pub(crate) async fn catch_up(&self) -> Result<(), Problem> {
        let asked = Instant::now();
        let mut last = self.caught_up.lock().await;
        // Whoever waited for another's round that began after it asked need not begin one.
        if last.is_some_and(|began| began > asked) {
            return Ok(());
        }
        let began = Instant::now();
        let known = timeout(GLANCE, async { self.told_up_to(self.reading().await?.applied).await });
        known.await.map_err(|_| slow())??;
        *last = Some(began);
        Ok(())
    }

    async fn reading(&self) -> Result<Reading, Problem> {
        let Some(part) = self.part() else {
            let why = self.standing().unwrap_or_else(|| "it has just started".into());
            let text =
                format!("this node takes no part in the charter yet: {why}; nothing changed");
            return Err(Problem::new(ProblemKind::Unavailable, text));
        };
        part.read().await.map_err(|trouble| problem(&trouble))
    }

    /// The engine has heard everything up to this entry.
    pub(crate) fn hears_up_to(&self, index: u64) {
        self.told.send_replace(index);
    }

    pub(super) async fn told_up_to(&self, index: u64) -> Result<(), Problem> {
        let mut told = self.told.subscribe();
        let known = told.wait_for(|told| *told >= index).await;
        known.map(drop).map_err(|_| crate::engine::stopping())
    }

    /// What a pool is.
    ///
    /// # Errors
    /// Nobody can say now.
    pub(crate) async fn definition(&self, name: &str) -> Result<Option<DefinitionView>, Problem> {
        let read = timeout(PATIENCE, self.reading()).await.map_err(|_| slow())??;
        let Some(kept) = read.charter.pools().get(name) else { return Ok(None) };
        let (text, past) = text(name, kept)?;
        if past.deleted {
            return Ok(None);
        }
        Ok(Some(DefinitionView {
            pool: name.to_owned(),
            source: "charter".into(),
            generation: kept.generation,
            definition: text.lines(),
        }))
    }

    /// Changes what there is, as planned in a state that a majority confirms. A request that was
    /// carried out before is answered as it was.
    ///
    /// # Errors
    /// It was refused, or nobody can say now.
    pub(crate) async fn amend(
        &self,
        id: Option<u128>,
        plan: impl FnOnce(&Charter) -> Result<Plan, Problem>,
    ) -> Result<AmendedView, Problem> {
        let id = id.map_or_else(request_id, |id| RequestId(id.to_be_bytes()));
        timeout(PATIENCE, self.try_to_amend(id, plan)).await.map_err(|_| unknown())?
    }

    async fn try_to_amend(
        &self,
        id: RequestId,
        plan: impl FnOnce(&Charter) -> Result<Plan, Problem>,
    ) -> Result<AmendedView, Problem> {
        let read = self.reading().await?;
        if let Some(outcome) = read.charter.remembered(id) {
            let words = vec!["this was asked for before, and is answered as it was then".into()];
            return self.answer(outcome.clone(), words).await;
        }
        let Plan { changes, words } = plan(&read.charter)?;
        if changes.is_empty() {
            return Ok(AmendedView { version: 0, changes: words });
        }
        let part = self.part().ok_or_else(slow)?;
        let outcome = part.propose(Request { id, changes }).await;
        self.answer(outcome.map_err(|trouble| problem(&trouble))?, words).await
    }

    async fn answer(&self, outcome: Outcome, changes: Vec<String>) -> Result<AmendedView, Problem> {
        let version = outcome.map_err(|refused| refusal(&refused))?.version;
        self.told_up_to(version).await?;
        Ok(AmendedView { version, changes })
    }

    /// The plan that makes a pool.
    ///
    /// # Errors
    /// It cannot be one, or there is one.
    pub(crate) fn creation(
        &self,
        charter: &Charter,
        name: &str,
        text: &Text,
    ) -> Result<Plan, Problem> {
        if let Some(kept) = charter.pools().get(name) {
            let (before, past) = self::text(name, kept)?;
            if past.deleted {
                return self.again(name, (kept, &before, past), text);
            }
            return Err(conflict(format!(
                "pool {name:?} is there already, of generation {}: `quorate pool show {name}` \
                 shows it",
                kept.generation
            )));
        }
        self.sound(name, text, Past::default())?;
        let definition = Some(text.lines());
        let change = Change::Pool { name: name.into(), definition, if_generation: Some(0) };
        Ok(Plan { changes: vec![change], words: vec![format!("pool {name} is made")] })
    }

    /// The plan that makes whatever of these is not there, and changes whatever is another.
    ///
    /// # Errors
    /// One of them cannot be, or not be changed like that.
    pub(crate) fn application(
        &self,
        charter: &Charter,
        wanted: &[(String, Text)],
        dry_run: bool,
    ) -> Result<Plan, Problem> {
        let mut plan = Plan { changes: Vec::new(), words: Vec::new() };
        for (name, text) in wanted {
            let kept = charter.pools().get(name);
            let past = kept.map(|kept| self::text(name, kept)).transpose()?;
            if let Some(kept) =
                kept.filter(|_| past.as_ref().is_some_and(|(_, past)| !past.deleted))
            {
                let mut change = self.change(name, kept, |_| text.clone())?;
                plan.changes.append(&mut change.changes);
                plan.words.append(&mut change.words);
                continue;
            }
            plan.changes.append(&mut self.creation(charter, name, text)?.changes);
            plan.words.push(format!("pool {name} is made: {}", text.line()));
        }
        let (number, most) = (plan.changes.len(), quorate_charter::TOGETHER_MAX);
        if number > most {
            return Err(wrong(format!(
                "{number} pools would be made or changed together, and {most} can: apply them in \
                 parts"
            )));
        }
        if dry_run {
            plan.changes.clear();
        }
        Ok(plan)
    }

    /// The plan that changes a pool that is there.
    ///
    /// # Errors
    /// It is not there, or not of the generation that the asker saw, or cannot be changed so.
    pub(crate) fn alteration(
        &self,
        charter: &Charter,
        name: &str,
        change: impl FnOnce(&Text) -> Text,
        AmendRequest { if_generation, dry_run, .. }: &AmendRequest,
    ) -> Result<Plan, Problem> {
        let (kept, _, _) = self.there(charter, name, *if_generation)?;
        let mut plan = self.change(name, kept, change)?;
        if *dry_run {
            plan.changes.clear();
        }
        Ok(plan)
    }

    /// The plan that deletes a pool: it has no units any more, and what is written of it stays.
    ///
    /// # Errors
    /// It is not there, or not of the generation that the asker saw.
    pub(crate) fn deletion(
        &self,
        charter: &Charter,
        name: &str,
        (if_generation, dry_run): (Option<u64>, bool),
    ) -> Result<Plan, Problem> {
        let (kept, text, past) = self.there(charter, name, if_generation)?;
        let is = self.sound(name, &text, past.clone())?;
        let next = past.after(&is, &is, true);
        let mut plan = Plan { changes: Vec::new(), words: vec![format!("pool {name} is deleted")] };
        if !dry_run {
            plan.changes.push(put(name, (&text, &next), kept));
        }
        Ok(plan)
    }

    /// The plan that takes a unit of a pool out of service, or brings it back.
    ///
    /// # Errors
    /// There is no such pool, or no such unit.
    pub(crate) fn draining(
        &self,
        charter: &Charter,
        name: &str,
        (unit, drains): (u32, bool),
    ) -> Result<Plan, Problem> {
        let (kept, text, past) = self.there(charter, name, None)?;
        let def = self.sound(name, &text, past.clone())?;
        if unit >= def.units {
            return Err(conflict(format!("pool {name:?} has {} units now", def.units)));
        }
        let word = if drains { "drained" } else { "in service again" };
        let Some(next) = past.draining(unit, drains) else {
            let words = vec![format!("unit {unit} of pool {name} is {word} already")];
            return Ok(Plan { changes: Vec::new(), words });
        };
        let words = vec![format!("unit {unit} of pool {name} is {word}")];
        Ok(Plan { changes: vec![put(name, (&text, &next), kept)], words })
    }

    /// The plan that gives a unit of a pool other labels.
    ///
    /// # Errors
    /// There is no such pool or unit, or units have no labels there.
    pub(crate) fn relabelling(
        &self,
        charter: &Charter,
        name: &str,
        (unit, labels): (u32, &BTreeMap<String, String>),
    ) -> Result<Plan, Problem> {
        let (kept, text, _) = self.there(charter, name, None)?;
        let labelled = text.labelled(unit as usize, labels).ok_or_else(|| {
            conflict(format!("pool {name:?} has no unit {unit} with labels, as it is now"))
        })?;
        self.change(name, kept, |_| labelled)
    }

    /// What the charter keeps of a pool that is there.
    fn there<'a>(
        &self,
        charter: &'a Charter,
        name: &str,
        if_generation: Option<u64>,
    ) -> Result<(&'a Kept<String>, Text, Past), Problem> {
        if let Some(def) = self.config.in_file(name) {
            return Err(of_files(&def.label(), name));
        }
        let kept = charter.pools().get(name).ok_or_else(|| admission::unknown_pool(name))?;
        let (text, past) = text(name, kept)?;
        if past.deleted {
            return Err(admission::deleted(name));
        }
        let now = kept.generation;
        if let Some(wanted) = if_generation.filter(|wanted| *wanted != now) {
            return Err(conflict(format!(
                "pool {name:?} is of generation {now}, not {wanted}: look at it again with \
                 `quorate pool show {name}`, then change it"
            )));
        }
        Ok((kept, text, past))
    }

    /// The plan that makes a pool whose name one had that was deleted. Somebody may still have
    /// units of that one: it is the same to those who decide, so nobody is given those, and fences
    /// go on.
    fn again(
        &self,
        name: &str,
        (kept, before, past): (&Kept<String>, &Text, Past),
        after: &Text,
    ) -> Result<Plan, Problem> {
        unchanged_but_live(before, after).map_err(|difference| {
            conflict(format!(
                "a pool {name:?} was deleted that was another ({difference}), and somebody may \
                 still have units of it: choose another name, or make it as it was but for \
                 {LIVE_WORDS}"
            ))
        })?;
        let next = self.next(name, (before, past), after)?;
        let changes = vec![put(name, (after, &next), kept)];
        Ok(Plan { changes, words: vec![format!("pool {name} is made again")] })
    }

    /// The same for a pool that the charter keeps like this.
    fn change(
        &self,
        name: &str,
        kept: &Kept<String>,
        change: impl FnOnce(&Text) -> Text,
    ) -> Result<Plan, Problem> {
        let (before, past) = text(name, kept)?;
        let after = change(&before);
        let differences = before.differences(&after);
        if differences.is_empty() {
            let words = vec![format!("pool {name} is there as it should be")];
            return Ok(Plan { changes: Vec::new(), words });
        }
        let next = self.next(name, (&before, past), &after)?;
        unchanged_but_live(&before, &after).map_err(|difference| {
            conflict(format!(
                "{} of pool {name:?} does not change while nodes run ({difference}): these do: \
                 {LIVE_WORDS}. Make another pool that is as you want it, and let its users go \
                 there",
                difference.key,
            ))
        })?;
        let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let words = vec![format!("pool {name} is changed: {}", words.join(", "))];
        Ok(Plan { changes: vec![put(name, (&after, &next), kept)], words })
    }

    /// What is to be kept of a pool's past when it is another, which it can be.
    fn next(
        &self,
        name: &str,
        (before, past): (&Text, Past),
        after: &Text,
    ) -> Result<Past, Problem> {
        let was = self.sound(name, before, past.clone())?;
        let is = self.sound(name, after, past.clone())?;
        if let Some((unit, owner)) = past.misnamed(&was, &is) {
            return Err(conflict(format!(
                "{unit:?} is or was the name of unit {owner} of pool {name:?}, and whoever holds \
                 that may go by it: choose a name that no other unit had"
            )));
        }
        Ok(past.after(&was, &is, false))
    }

    /// Whether a pool of this name can be this.
    pub(super) fn sound(
        &self,
        name: &str,
        text: &Text,
        past: Past,
    ) -> Result<crate::config::PoolDef, Problem> {
        if !is_pool_name(name) {
            let name: String = name.chars().take(crate::config::POOL_NAME_MAX).collect();
            return Err(wrong(format!(
                "{name:?} is no name of a pool: 1 to 128 letters, digits, and . _ - :"
            )));
        }
        if let Some(def) = self.config.in_file(name) {
            return Err(of_files(&def.label(), name));
        }
        self.config.define(name, text, past).map_err(|error| wrong(error.to_string()))
    }
}

/// The change that replaces what the charter keeps of a pool, if that is still so.
fn put(name: &str, (text, past): (&Text, &Past), kept: &Kept<String>) -> Change {
    let (definition, if_generation) = (Some(text.keep(past)), Some(kept.generation));
    Change::Pool { name: name.to_owned(), definition, if_generation }
}

/// Whether two definitions differ only where a pool changes while everything runs.
fn unchanged_but_live(before: &Text, after: &Text) -> Result<(), Difference> {
    // Units that go or come are numbers: which of several names would go, nobody could say.
    let listed = |key: &str| ["units", "unit_names"].contains(&key);
    let structural = |it: &Difference| {
        !LIVE.contains(&&*it.key) || listed(&it.key) && !before.lists_as_many(after, &it.key)
    };
    before.differences(after).into_iter().find(structural).map_or(Ok(()), Err)
}

fn of_files(label: &str, name: &str) -> Problem {
    conflict(format!(
        "the nodes' files have pool {label}, which is about {name:?}: it changes there, while no \
         node runs"
    ))
}

/// What the charter keeps of a pool.
pub(super) fn text(name: &str, kept: &Kept<String>) -> Result<(Text, Past), Problem> {
    Text::kept(&kept.value).map_err(|why| {
        let text = format!("pool {name:?} is written in a way that this node cannot read: {why}");
        Problem::new(ProblemKind::Conflict, text)
    })
}

pub(super) fn wrong(what: String) -> Problem {
    Problem::new(ProblemKind::BadRequest, format!("{what}; nothing changed"))
}

pub(super) fn conflict(what: String) -> Problem {
    Problem::new(ProblemKind::Conflict, format!("{what}; nothing changed"))
}

/// There is no charter to ask.
pub(crate) fn no_charter() -> Problem {
    wrong(
        "this cluster has no charter, so pools change in its files, while no node runs: switch it \
         on by [charter] enabled = true in every node's file, see docs/charter.md"
            .into(),
    )
}

fn slow() -> Problem {
    let text = "no majority of the members that vote answers in time; nothing changed. Pools go on \
                without it; try again when `quorate status` shows a leader";
    Problem::new(ProblemKind::Unavailable, text)
}

fn unknown() -> Problem {
    let text = "no majority answered in time: the change may have been made, or be made later. Ask \
                again under the same request id, or look how things stand";
    Problem::new(ProblemKind::Unknown, text)
}

fn problem(trouble: &Trouble) -> Problem {
    let kind = match trouble {
        Trouble::Unknown => ProblemKind::Unknown,
        Trouble::Refused(refused) => return refusal(refused),
        _ => ProblemKind::Unavailable,
    };
    Problem::new(kind, trouble.to_string())
}

fn refusal(refused: &Refused) -> Problem {
    let kind = match refused.why {
        Refusal::Changed { .. } | Refusal::Absent(_) | Refusal::IdReused(_) => {
            ProblemKind::Conflict
        }
        _ => ProblemKind::BadRequest,
    };
    Problem::new(kind, refused.to_string())
}

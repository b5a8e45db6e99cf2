//! Pools of the charter: read into definitions, and changed by whoever may.
//!
//! A change is looked at by the same code as a file before it is proposed, in the state that a
//! majority confirms. It is proposed on the condition that what it rests on is still so, and
//! answered when this node's engine knows of it.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{AmendedView, DefinitionView, Problem, ProblemKind};
use quorate_charter::{
    Change, Charter, Council, Kept, Outcome, Reading, Refusal, Refused, Request, RequestId, Trouble,
};
use tokio::time::{Instant, timeout};

use super::{Hall, request_id};
use crate::config::{Added, Config, Defined, Text, is_pool_name};

/// How long a change, or a look at what there is, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where a client only wants to know whether a pool is there.
const GLANCE: Duration = Duration::from_millis(1500);

/// What is to be changed, and that in words.
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) words: Vec<String>,
}

/// The pools of a charter. Those that did not change are taken from what was known before.
pub(super) fn defined(charter: &Charter, before: &Defined, config: &Config) -> Defined {
    let read = |(name, kept): (&String, &Kept<String>)| {
        if let Some(known) = before.get(name).filter(|it| it.generation == kept.generation) {
            return Some((name.clone(), known.clone()));
        }
        let def = match config.in_file(name) {
            Some(_) => Err("the files have a pool of this name, and that one counts".to_owned()),
            None => Text::read(&kept.value)
                .and_then(|text| config.define(name, &text).map_err(|error| error.to_string())),
        };
        match def {
            Ok(def) => {
                let added = Added { generation: kept.generation, def: Arc::new(def) };
                Some((name.clone(), added))
            }
            Err(why) => {
                tracing::error!(pool = name, why, "this node cannot have a pool of the charter");
                None
            }
        }
    };
    charter.pools().iter().filter_map(read).collect()
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
        let text = text(name, kept)?;
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
            return Err(conflict(format!(
                "pool {name:?} is there already, of generation {}: `quorate pool show {name}` \
                 shows it",
                kept.generation
            )));
        }
        self.sound(name, text)?;
        let definition = Some(text.lines());
        let change = Change::Pool { name: name.into(), definition, if_generation: Some(0) };
        Ok(Plan { changes: vec![change], words: vec![format!("pool {name} is made")] })
    }

    /// The plan that makes whatever of these is not there.
    ///
    /// # Errors
    /// One of them cannot be, or is there and is another.
    pub(crate) fn application(
        &self,
        charter: &Charter,
        wanted: &[(String, Text)],
        dry_run: bool,
    ) -> Result<Plan, Problem> {
        let mut plan = Plan { changes: Vec::new(), words: Vec::new() };
        for (name, text) in wanted {
            if let Some(kept) = charter.pools().get(name) {
                let known = self::text(name, kept)?;
                if known != *text {
                    return Err(conflict(format!(
                        "pool {name:?} is there and is another ({}; the file says {}): pools of \
                         the charter do not change yet",
                        known.line(),
                        text.line()
                    )));
                }
                plan.words.push(format!("pool {name} is there as it should be"));
                continue;
            }
            plan.changes.append(&mut self.creation(charter, name, text)?.changes);
            plan.words.push(format!("pool {name} is made: {}", text.line()));
        }
        let (number, most) = (plan.changes.len(), quorate_charter::TOGETHER_MAX);
        if number > most {
            return Err(wrong(format!(
                "{number} pools would be made together, and {most} can: apply them in parts"
            )));
        }
        if dry_run {
            plan.changes.clear();
        }
        Ok(plan)
    }

    /// Whether a pool of this name can be this.
    pub(super) fn sound(&self, name: &str, text: &Text) -> Result<crate::config::PoolDef, Problem> {
        if !is_pool_name(name) {
            let name: String = name.chars().take(crate::config::POOL_NAME_MAX).collect();
            return Err(wrong(format!(
                "{name:?} is no name of a pool: 1 to 128 letters, digits, and . _ - :"
            )));
        }
        if let Some(def) = self.config.in_file(name) {
            return Err(conflict(format!(
                "the nodes' files have pool {}, which is about {name:?}: it changes there, while \
                 no node runs",
                def.label()
            )));
        }
        self.config.define(name, text).map_err(|error| wrong(error.to_string()))
    }
}

/// What the charter keeps of a pool.
pub(super) fn text(name: &str, kept: &Kept<String>) -> Result<Text, Problem> {
    Text::read(&kept.value).map_err(|why| {
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

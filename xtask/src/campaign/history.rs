//! What clients wrote down: lines of JSON, and those of the Rust client, as one history.

use std::collections::BTreeMap;
use std::path::Path;

use super::json::Json;

/// One thing that a client did or was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// On the machine's clock.
    pub(crate) at: u64,
    pub(crate) by: String,
    pub(crate) pool: String,
    pub(crate) claim: String,
    pub(crate) what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Claimed {
        units: u32,
        /// For a hold without a lease.
        stands: bool,
    },
    /// Without a deadline where only the client's own words say for how long it used them.
    Granted {
        deadline: Option<u64>,
        shares: Vec<(u32, u64)>,
        /// At which node, where the client says so.
        home: String,
    },
    Extended {
        deadline: u64,
    },
    /// Its units are in use at this moment.
    Using,
    /// About to give back, or told by a node that it must stop.
    Stopped {
        told: bool,
        detail: String,
        deadline: u64,
    },
    /// The cancellation was acknowledged by all nodes.
    Cancelled,
    /// Gave up without knowing.
    Abandoned,
    /// The end was acknowledged; by all nodes, or not.
    Ended {
        everywhere: bool,
    },
    Refused {
        status: u64,
        kind: String,
        detail: String,
        tries: u64,
    },
    /// Told who holds, in an answer to a question of then.
    Why {
        asked: u64,
        holders: Vec<String>,
    },
    /// Whether all nodes together showed it among the holders.
    Shown {
        there: bool,
    },
    Probe(Probe),
    /// A pool was made: somebody said so.
    Made,
    /// All units were had at once.
    All {
        waited: u64,
    },
    Served {
        waited: u64,
    },
}

/// What the onlooker asked a node, and how it was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) node: u64,
    pub(crate) asked: u64,
    /// What `/readyz/pools/probe` said before and after; 0 if nothing.
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) status: u64,
    pub(crate) granted: bool,
    pub(crate) took: u64,
    /// What it named as being in the way.
    pub(crate) hindrance: String,
    /// The largest claim that can be granted, by the metrics of that node...
    pub(crate) metric: Option<u64>,
    /// ...and by what all nodes together say, and how many units are held; if all answered.
    pub(crate) largest: Option<u64>,
    pub(crate) held: Option<u64>,
    /// How many things were named for which the claim waits, if it waits and all answered.
    pub(crate) why: Option<u64>,
}

impl Line {
    /// A process that is killed may leave half a line behind, which is no line.
    pub(crate) fn parse(text: &str, by: &str) -> Option<Line> {
        if text.starts_with('{') {
            Line::of_json(&Json::parse(text)?)
        } else {
            Line::of_rust(text, by)
        }
    }

    fn of_json(line: &Json) -> Option<Line> {
        let number = |name: &str| line.get(name).number();
        let text = |name: &str| line.get(name).text().to_owned();
        let what = match line.get("what").text() {
            "claimed" => {
                What::Claimed { units: number("units")? as u32, stands: line.get("stands").truth() }
            }
            "granted" => {
                let share = |share: &Json| match share.list() {
                    [unit, fence] => Some((unit.number()? as u32, fence.number()?)),
                    _ => None,
                };
                let shares = line.get("shares").list().iter().map(share).collect::<Option<_>>()?;
                What::Granted { deadline: number("deadline"), shares, home: text("node") }
            }
            "extended" => What::Extended { deadline: number("deadline")? },
            "using" => What::Using,
            "stopped" => What::Stopped {
                told: line.get("told").truth(),
                detail: text("detail"),
                deadline: number("deadline").unwrap_or(0),
            },
            "cancelled" => What::Cancelled,
            "abandoned" => What::Abandoned,
            "ended" => What::Ended { everywhere: line.get("unheard").list().is_empty() },
            "refused" => What::Refused {
                status: number("status")?,
                kind: text("kind"),
                detail: text("detail"),
                tries: number("tries")?,
            },
            "why" => {
                let ids = line.get("holders").list().iter().map(|id| id.text().to_owned());
                What::Why { asked: number("asked")?, holders: ids.collect() }
            }
            "shown" => What::Shown { there: line.get("there").truth() },
            "probe" => What::Probe(Probe {
                node: number("node")?,
                asked: number("asked")?,
                before: number("before")?,
                after: number("after")?,
                status: number("status")?,
                granted: line.get("granted").truth(),
                took: number("took")?,
                hindrance: text("hindrance"),
                metric: number("metric"),
                largest: number("largest"),
                held: number("held"),
                why: number("why"),
            }),
            "made" => What::Made,
            "all" => What::All { waited: number("waited")? },
            "served" => What::Served { waited: number("waited")? },
            _ => return None,
        };
        let (by, pool, claim) = (text("by"), text("pool"), text("claim"));
        Some(Line { at: number("at")?, by, pool, claim, what })
    }

    /// As crates/quorate/tests/real/history.rs writes it.
    fn of_rust(text: &str, by: &str) -> Option<Line> {
        let mut words = text.split(' ');
        let at = words.next()?.parse().ok()?;
        let pool = words.next()?.to_owned();
        let claim = format!("{:0>32}", words.next()?);
        let what = match words.next()? {
            "claimed" => What::Claimed { units: words.next()?.parse().ok()?, stands: false },
            "granted" => {
                let deadline = words.next()?.parse().ok()?;
                let share = |word: &str| {
                    let (unit, fence) = word.split_once(':')?;
                    Some((unit.parse().ok()?, fence.parse().ok()?))
                };
                let shares = words.map(share).collect::<Option<_>>()?;
                What::Granted { deadline: Some(deadline), shares, home: String::new() }
            }
            "extended" => What::Extended { deadline: words.next()?.parse().ok()? },
            "stopped" => {
                What::Stopped { told: words.next()? == "1", detail: String::new(), deadline: 0 }
            }
            "cancelled" => What::Cancelled,
            "abandoned" => What::Abandoned,
            _ => return None,
        };
        Some(Line { at, by: by.to_owned(), pool, claim, what })
    }
}

/// All histories in a folder.
pub(crate) fn read(folder: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some((by, _)) = name.strip_prefix("history-").and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        lines.extend(text.lines().filter_map(|line| Line::parse(line, by)));
    }
    lines
}

/// One claim's story.
#[derive(Clone, Default, Debug)]
pub(crate) struct Story {
    pub(crate) by: String,
    pub(crate) claimed: Option<(u64, u32)>,
    /// It asked for a hold without a lease, which lasts until it is given back.
    pub(crate) stands: bool,
    /// When nobody knew of it any more.
    pub(crate) missed: Option<u64>,
    pub(crate) granted: Option<(u64, Vec<(u32, u64)>)>,
    /// The node that granted it, if that was said.
    pub(crate) home: String,
    /// The last that it knew of; none where only what it said of its use counts.
    pub(crate) deadline: Option<u64>,
    pub(crate) used: u64,
    pub(crate) stopped: Option<(u64, bool)>,
    /// When it last heard how long it has it.
    pub(crate) renewed: u64,
    /// Told so before the deadline that it knew of.
    pub(crate) told_early: Option<String>,
    /// Over without a grant, certainly or perhaps.
    pub(crate) over: Option<(u64, bool)>,
    pub(crate) ended: Option<(u64, bool)>,
}

impl Story {
    /// From when to when its units were certainly in use.
    pub(crate) fn held(&self) -> Option<(u64, u64)> {
        let (from, _) = self.granted.as_ref()?;
        let stopped = self.stopped.map_or(u64::MAX, |(at, _)| at);
        let until = match self.deadline {
            Some(deadline) => stopped.min(deadline),
            None if stopped < u64::MAX || self.stands => stopped,
            None => self.used,
        };
        (until > *from).then_some((*from, until))
    }
}

/// The stories of one pool, by claim.
pub(crate) fn stories<'a>(
    lines: impl IntoIterator<Item = &'a Line>,
) -> BTreeMap<(String, String), Story> {
    let mut stories: BTreeMap<(String, String), Story> = BTreeMap::new();
    for Line { at, by, pool, claim, what } in lines {
        if claim.is_empty() {
            continue;
        }
        let story = stories.entry((pool.clone(), claim.clone())).or_default();
        if story.by.is_empty() {
            story.by.clone_from(by);
        }
        match what {
            What::Claimed { units, stands } => {
                story.claimed = Some((*at, *units));
                story.stands |= stands;
            }
            What::Granted { deadline, shares, home } => {
                story.granted = Some((*at, shares.clone()));
                story.home.clone_from(home);
                story.deadline = story.deadline.max(*deadline);
                story.used = story.used.max(*at);
                story.renewed = story.renewed.max(*at);
            }
            What::Extended { deadline } => {
                story.deadline = story.deadline.max(Some(*deadline));
                story.renewed = story.renewed.max(*at);
            }
            What::Using => story.used = story.used.max(*at),
            What::Stopped { told, detail, deadline } => {
                if story.stopped.is_none_or(|(before, _)| *at < before) {
                    story.stopped = Some((*at, *told));
                    if *told && at < deadline {
                        story.told_early = Some(detail.clone());
                    }
                }
            }
            What::Cancelled => story.over = Some((*at, true)),
            What::Abandoned | What::Refused { .. } => story.over = Some((*at, false)),
            What::Ended { everywhere } => story.ended = Some((*at, *everywhere)),
            What::Shown { there: false } => story.missed = story.missed.or(Some(*at)),
            What::Shown { .. } => {}
            What::Why { .. } | What::Probe(_) | What::Made => {}
            What::All { .. } | What::Served { .. } => {}
        }
    }
    stories
}

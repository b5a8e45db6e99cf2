//! What the laws say of a history.
//!
//! A *definite hold* runs from the moment a client was told of its grant to the moment it stopped,
//! and no further than its own deadline; of jobs, to the last moment at which they said that they
//! run. What became of a claim that its client left is unknown, and is not held against anybody.
//!
//! Beside the laws of `quorate-laws`:
//!
//! | law | broken if |
//! |---|---|
//! | kept promises | a client that renewed in time was told before its deadline that its grant is over |
//! | true refusals | a claim was refused that the pool could have granted, or that nobody had ended |
//! | true answers | `why` named a holder that had given back, all nodes knowing, longer than a lease ago |
//! | operator's law | a node said for seconds that it can grant, and did not; or that it cannot, and did |
//! | everyone served | a client that waited when the faults were over was not served |

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{ClaimId, Fence, Refusal, Share, Shares, Unit, Units};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use super::draw::Draw;
use super::history::{Line, Probe, Story, What, stories};

/// What the judge has to know beside the lines.
pub(crate) struct Case<'a> {
    pub(crate) draw: &'a Draw,
    /// Clients of whose last claims nobody knows anything.
    pub(crate) killed: &'a [String],
    /// When faults began, and when all was healed.
    pub(crate) faults: (u64, u64),
    /// Every moment at which something happened to hosts.
    pub(crate) events: Vec<u64>,
    /// When which node was started.
    pub(crate) starts: Vec<(u64, String)>,
}

impl Case<'_> {
    /// Whether the voters of a pool without records on disk forgot a grant: most of them began anew
    /// since. Nothing promises that it outlives that (docs/configuration.md, `durable`).
    fn forgotten(&self, from: u64, to: u64) -> bool {
        let anew: BTreeSet<&str> = self
            .starts
            .iter()
            .filter(|(at, _)| (from..=to).contains(at))
            .map(|(_, node)| node.as_str())
            .collect();
        // The next epoch begins without records.
        let records =
            self.draw.durable && !self.draw.faults.iter().any(|it| it.name == "new-epoch");
        self.draw.protocol.votes() && !records && anew.len() * 2 > self.draw.hosts
    }

    /// The last start of a node between two moments, or the first of these.
    fn last_start(&self, from: u64, to: u64) -> u64 {
        let starts = self.starts.iter().map(|(at, _)| *at);
        starts.filter(|at| (from..=to).contains(at)).max().unwrap_or(from)
    }
}

/// What a history amounts to.
#[derive(Clone, Default, Debug)]
pub(crate) struct Summary {
    pub(crate) claims: usize,
    pub(crate) holds: usize,
    /// Holds that ended at a deadline or because their client was told so.
    pub(crate) lost: usize,
    /// Probes during the faults, and those that were granted.
    pub(crate) probes: usize,
    pub(crate) granted: usize,
    /// Seconds from the end of the faults until each node granted.
    pub(crate) recovery: Vec<f64>,
    /// The longest wait for all units, at the end.
    pub(crate) all_units: f64,
    pub(crate) breaches: Vec<String>,
}

impl Summary {
    pub(crate) fn breach(&mut self, law: &str, what: String) {
        if self.breaches.len() < 20 {
            self.breaches.push(format!("{law}: {what}"));
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Everything that can be judged from histories.
pub(crate) fn judge(lines: &[Line], case: &Case<'_>) -> Summary {
    let mut summary = Summary::default();
    let stories = stories(lines);
    summary.claims = stories.len();
    let mut pools: BTreeMap<&str, Vec<(&str, &Story)>> = BTreeMap::new();
    for ((pool, claim), story) in &stories {
        pools.entry(pool).or_default().push((claim, story));
        if let Some((_, until)) = story.held() {
            summary.holds += 1;
            let at_deadline = story.deadline.is_some_and(|deadline| deadline <= until);
            summary.lost += usize::from(at_deadline || story.stopped.is_none_or(|(_, told)| told));
        }
        let from = story.granted.as_ref().map_or(0, |(at, _)| *at);
        let told = story.stopped.map_or(0, |(at, _)| at);
        if let Some(detail) = &story.told_early
            && !case.forgotten(from, told)
        {
            let what = format!("{claim} in {pool}, of {}: {detail}", story.by);
            summary.breach("kept promises", what);
        }
    }
    for (pool, claims) in &pools {
        if let Err(breach) = judge_pool(claims, case) {
            summary.breach(breach.law, format!("pool {pool}: {}", breach.what));
        }
    }
    for line in lines {
        said(line, &stories, case, &mut summary);
    }
    probes(lines, case, &mut summary);
    summary
}

/// The laws of quorate-laws, on one pool.
fn judge_pool(claims: &[(&str, &Story)], case: &Case<'_>) -> Result<(), Breach> {
    let shares: Vec<Shares> = claims
        .iter()
        .map(|(_, story)| to_shares(story.granted.as_ref().map_or(&[], |(_, shares)| shares)))
        .collect();
    // At one moment, ends come before grants.
    let mut seen: Vec<(u64, u8, Observation<'_>)> = Vec::new();
    for (number, (_, story)) in claims.iter().enumerate() {
        let claim = ClaimId { origin: 0, serial: number as u64 };
        let Some((at, units)) = story.claimed else { continue };
        let Ok(units) = Units::new(units, units) else { continue };
        seen.push((at, 1, Observation::Claimed { claim, units }));
        if let Some((at, known)) = story.over {
            let over = match known {
                true => Observation::Refused { claim, why: Refusal::Cancelled },
                false => Observation::Abandoned { claim },
            };
            seen.push((at, 1, over));
        }
        let Some((from, until)) = story.held() else {
            if story.granted.is_some() {
                // Read too late to be used, and not used.
                seen.push((at, 1, Observation::Abandoned { claim }));
            } else if story.over.is_none() && case.killed.iter().any(|by| story.by.starts_with(by))
            {
                seen.push((u64::MAX, 1, Observation::Abandoned { claim }));
            }
            continue;
        };
        let how = if story.stopped.is_some() { End::Released } else { End::Deadline };
        seen.push((from, 2, Observation::Granted { claim, shares: &shares[number] }));
        seen.push((until, 0, Observation::Ended { claim, shares: &shares[number], how }));
    }
    seen.sort_by_key(|(at, rank, _)| (*at, *rank));
    let book = StatuteBook::new(case.draw.units, None);
    let mut book = if case.draw.protocol.names_units() { book } else { book.anonymous() };
    for (at, _, observation) in seen {
        book.see(observation).map_err(|breach| named(breach, claims, at))?;
    }
    book.at_rest(std::iter::empty()).map_err(|breach| named(breach, claims, 0))
}

/// Claims by the names that clients gave them.
fn named(mut breach: Breach, claims: &[(&str, &Story)], at: u64) -> Breach {
    for (number, (name, story)) in claims.iter().enumerate().rev() {
        let known = ClaimId { origin: 0, serial: number as u64 }.to_string();
        let whole = |at: usize| {
            !breach.what[at + known.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        let found = breach.what.match_indices(&known).map(|(at, _)| at).find(|at| whole(*at));
        if let Some(place) = found {
            let shown = format!("{name} ({})", story.by);
            breach.what.replace_range(place..place + known.len(), &shown);
        }
    }
    breach.what += &format!(", at {:.3} s", at as f64 / 1e9);
    breach
}

fn to_shares(shares: &[(u32, u64)]) -> Shares {
    let share = |&(unit, fence): &(u32, u64)| Share { unit: Unit(unit), fence: Fence(fence) };
    Shares::new(&shares.iter().map(share).collect::<Vec<_>>())
}

/// What clients were told about claims.
fn said(
    line: &Line,
    stories: &BTreeMap<(String, String), Story>,
    case: &Case<'_>,
    summary: &mut Summary,
) {
    let Line { pool, claim, by, .. } = line;
    match &line.what {
        What::Refused { status, kind, detail, tries } => {
            // A claim that was asked for before may have been granted unheard, and be over.
            let over = matches!(status, 409 | 410) && *tries > 1;
            // While its units have other labels, a claim may really ask for what there is not.
            let relabelled = *status == 422 && case.draw.workload.name == "relabels";
            if !over && !relabelled {
                let what = format!("{claim} in {pool}, of {by}: {status} {kind}: {detail}");
                summary.breach("true refusals", what);
            }
        }
        What::Why { asked, holders } => {
            let lease = case.draw.lease.as_nanos() as u64;
            for holder in holders {
                let Some(story) = stories.get(&(pool.clone(), holder.clone())) else { continue };
                // What is on a disk may be older than the end: who starts with it knows better
                // after a lease. While those who decide are away, nobody does.
                let away = (case.faults.0..case.faults.1).contains(asked);
                if let Some((ended, true)) = story.ended
                    && !(away && case.draw.faults.iter().any(|fault| fault.name != "none"))
                    && case.last_start(ended, *asked) + 2 * lease + SECOND < *asked
                {
                    let ago = (*asked - ended) as f64 / 1e9;
                    let what = format!("{holder} in {pool} was given back {ago:.1} s before");
                    summary.breach("true answers", what);
                }
            }
        }
        What::All { waited } => {
            summary.all_units = summary.all_units.max(*waited as f64 / 1e9);
        }
        _ => {}
    }
}

/// For so long a node may be wrong about itself after something happened: `suspect_after` (2 s),
/// twice, and what a busy machine adds.
const BLIND: u64 = 6 * SECOND;

/// What nodes said of themselves, and what came of it.
fn probes(lines: &[Line], case: &Case<'_>, summary: &mut Summary) {
    let mut last: BTreeMap<u64, &Probe> = BTreeMap::new();
    let mut recovered: BTreeMap<u64, f64> = BTreeMap::new();
    let (began, healed) = case.faults;
    let blurred = case.draw.faults.iter().any(|fault| fault.blurs) || case.draw.apart.is_some();
    let waits = |line: &Line| match &line.what {
        What::Probe(probe) if probe.hindrance == "joining" => Some((probe.node, line.at)),
        _ => None,
    };
    let joining: Vec<(u64, u64)> = lines.iter().filter_map(waits).collect();
    for line in lines {
        let What::Probe(probe) = &line.what else { continue };
        if probe.asked >= began && probe.asked < healed {
            summary.probes += 1;
            summary.granted += usize::from(probe.granted);
        }
        if probe.granted && line.at > healed {
            let after = (line.at - healed) as f64 / 1e9;
            recovered.entry(probe.node).or_insert(after);
        }
        let before = last.insert(probe.node, probe);
        let Some(before) = before else { continue };
        // Two probes in a row, and nothing happened since long before the first.
        let calm = |from: u64, to: u64| !case.events.iter().any(|at| (from..=to).contains(at));
        if blurred || !calm(before.asked.saturating_sub(BLIND), line.at) {
            continue;
        }
        // A node knows of others whether they are there and whether they are in grace, not whether
        // they take part already (docs/readiness.md): while one says that it does not, the word of
        // others is not judged.
        let from = before.asked.saturating_sub(BLIND);
        if joining.iter().any(|(node, at)| *node != probe.node && (from..=line.at).contains(at)) {
            continue;
        }
        let says = |probe: &Probe, status| probe.before == status && probe.after == status;
        if [before, probe].into_iter().all(|p| says(p, 200) && p.status == 202) {
            let what = format!(
                "n{} says that it can grant, and twice in a row a claim waited in vain, at {:.3} s",
                probe.node,
                line.at as f64 / 1e9
            );
            summary.breach("operator's law", what);
        }
        if [before, probe].into_iter().all(|p| says(p, 503) && p.granted && p.took < SECOND) {
            let what = format!(
                "n{} says that it cannot grant, and does, twice in a row, at {:.3} s",
                probe.node,
                line.at as f64 / 1e9
            );
            summary.breach("operator's law", what);
        }
    }
    summary.recovery = recovered.into_values().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::draw::{Means, Only};

    fn judged(text: &str, units: u32) -> Vec<String> {
        let only = Only(["small", "none", "central"].map(String::from).to_vec());
        let mut draw = Draw::new(1, &only, Means::default());
        draw.units = units;
        let lines: Vec<Line> =
            text.lines().map(|line| Line::parse(line, "r").expect(line)).collect();
        let events = Vec::new();
        let killed = ["dead".to_owned()];
        let case =
            Case { draw: &draw, killed: &killed, faults: (0, 1), events, starts: Vec::new() };
        judge(&lines, &case).breaches
    }

    const GOOD: &str = r#"{"at":10,"by":"a","what":"claimed","pool":"p","claim":"1","units":2}
{"at":20,"by":"a","what":"granted","pool":"p","claim":"1","deadline":100,"shares":[[0,1],[1,1]]}
{"at":30,"by":"b","what":"claimed","pool":"p","claim":"2","units":1}
{"at":40,"by":"a","what":"stopped","pool":"p","claim":"1","told":false}
{"at":50,"by":"b","what":"granted","pool":"p","claim":"2","deadline":300,"shares":[[1,2]]}
400 p 3 claimed 1
410 p 3 granted 500 0:7"#;

    #[test]
    fn histories_with_something_wrong_in_them_are_found() {
        assert_eq!(judged(GOOD, 2), Vec::<String>::new());
        for (from, to, law) in [
            (r#""at":40,"#, r#""at":60,"#, "capacity"),
            // Never heard of again: until its deadline.
            (r#""what":"stopped""#, r#""what":"using""#, "capacity"),
            ("[[1,2]]", "[[1,1]]", "fence order"),
            // Without a deadline, its word counts.
            (
                r#""claim":"1","deadline":100,"shares":[[0,1],[1,1]]}"#,
                "\"claim\":\"1\",\"shares\":[[0,1],[1,1]]}\n\
                 {\"at\":55,\"by\":\"a\",\"what\":\"using\",\"pool\":\"p\",\"claim\":\"1\"}",
                "",
            ),
            ("400 p 3 claimed 1", "400 p 3 claimed 1\n401 p 4 claimed 1", "everyone served"),
            (
                r#""told":false"#,
                r#""told":true,"detail":"over","deadline":90"#,
                "kept promises: 1 in p, of a: over",
            ),
            (
                r#"{"at":30,"by":"b""#,
                "{\"at\":25,\"by\":\"c\",\"what\":\"claimed\",\"pool\":\"p\",\"claim\":\"5\",\
                 \"units\":1}\n{\"at\":26,\"by\":\"c\",\"what\":\"refused\",\"pool\":\"p\",\
                 \"claim\":\"5\",\"status\":410,\"kind\":\"claim-over\",\"detail\":\"\",\
                 \"tries\":1}\n\
                 {\"at\":30,\"by\":\"b\"",
                "true refusals",
            ),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert_ne!(bad, GOOD);
            let found = judged(&bad, 2);
            let right = if law.is_empty() { found.is_empty() } else { found[0].starts_with(law) };
            assert!(right, "{law}: {found:?}");
        }
        // Three of three, but one of them twice.
        let twice = GOOD.replacen(r#""at":40,"#, r#""at":60,"#, 1);
        assert!(judged(&twice, 3)[0].starts_with("exclusivity"), "{:?}", judged(&twice, 3));
    }

    #[test]
    fn what_a_node_says_of_itself_is_compared_with_what_it_does() {
        let probe = |at: u64, said: u64, status: u64, granted: bool| {
            let (at, asked) = (at * SECOND, (at - 2) * SECOND);
            format!(
                "{{\"at\":{at},\"by\":\"probe.0\",\"what\":\"probe\",\"node\":0,\"asked\":{asked},\
                 \"before\":{said},\"after\":{said},\"status\":{status},\"granted\":{granted},\
                 \"took\":1}}\n"
            )
        };
        let two = |said, status, granted| {
            judged(&(probe(20, said, status, granted) + &probe(23, said, status, granted)), 2)
        };
        assert!(two(200, 202, false)[0].starts_with("operator's law"));
        assert!(two(503, 200, true)[0].starts_with("operator's law"));
        for (said, status, granted) in [(200, 200, true), (503, 202, false), (0, 0, false)] {
            assert!(two(said, status, granted).is_empty());
        }
        assert!(judged(&probe(20, 200, 202, false), 2).is_empty(), "once is no rule");
    }
}

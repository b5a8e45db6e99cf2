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
use quorate_laws::{Breach, End, FenceOrder, Observation, StatuteBook};

use super::draw::{Draw, Protocol};
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
    /// Whether those forgot a grant who have to know of it: nothing promises that it outlives that
    /// (docs/operations.md, *What survives what*).
    ///
    /// Of voters without records on disk, more than the pool survives began anew since it was
    /// renewed last, or so shortly before that they did not vote yet; whoever has renewed since
    /// keeps it. A grant of `broadcast` is known at its own node alone. The next epoch begins
    /// without records.
    fn forgotten(&self, story: &Story, to: u64) -> bool {
        let granted = story.granted.as_ref().map_or(0, |(at, _)| *at);
        let voted = granted.max(story.renewed.saturating_sub(self.lease() + BLIND / 3));
        let anew = |from: u64| -> BTreeSet<&str> {
            let starts = self.starts.iter().filter(|(at, _)| (from..=to).contains(at));
            starts.map(|(_, node)| node.as_str()).collect()
        };
        let records =
            self.draw.durable && !self.draw.faults.iter().any(|it| it.name == "new-epoch");
        match self.draw.protocol {
            Protocol::Broadcast => story.home.is_empty() || anew(granted).contains(&*story.home),
            _ if records => false,
            // `survive = 0`.
            Protocol::Count => !anew(voted).is_empty(),
            protocol => protocol.votes() && anew(voted).len() * 2 > self.draw.hosts,
        }
    }

    /// The last start of a node between two moments, or the first of these.
    fn last_start(&self, from: u64, to: u64) -> u64 {
        let starts = self.starts.iter().map(|(at, _)| *at);
        starts.filter(|at| (from..=to).contains(at)).max().unwrap_or(from)
    }

    fn lease(&self) -> u64 {
        self.draw.lease.as_nanos() as u64
    }

    /// Whether clocks differ by more than is declared. What is safe rests on leases, and leases on
    /// that (docs/operations.md): units may have two holders then, and a holder may be told too
    /// early that it is none. All else is promised as ever: fences grow, every claim is decided
    /// once, whoever waits is served.
    fn beyond_drift(&self) -> bool {
        self.draw.faults.iter().any(|fault| fault.beyond)
    }

    /// From when on nobody may show a hold that ended then, all nodes knowing.
    ///
    /// Whoever heard that it is over shows it no more; those who decide need not have been told by
    /// its own node yet, and give it up with its lease, which begins again where books are taken
    /// over: of a disk that is older than the end, or by another node that decides. So two leases
    /// and a moment after the end; after the last start of a node too, where there are books to
    /// take over. While those who decide are away or do not hear each other nobody ends a lease:
    /// unless the fault leaves all nodes where they are, it is not judged before it is over.
    fn forgotten_by_all(&self, ended: u64, asked: u64) -> bool {
        let kept = self.draw.durable || self.draw.protocol.moves();
        let from = if kept { self.last_start(ended, asked) } else { ended };
        let apart = self.draw.faults.iter().any(|fault| !fault.spares);
        let during = (self.faults.0..self.faults.1).contains(&asked);
        let since = if apart && ended < self.faults.1 { from.max(self.faults.1) } else { from };
        !(apart && during) && since + 2 * self.lease() + SECOND < asked
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
    /// Pools in which a unit had two holders, or more were in use than there are, where clocks
    /// differed by more than is declared: nothing else was promised there.
    pub(crate) overlaps: usize,
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
        let told = story.stopped.map_or(0, |(at, _)| at);
        if let Some(detail) = &story.told_early
            && !case.forgotten(story, told)
            && !case.beyond_drift()
        {
            let what = format!("{claim} in {pool}, of {}: {detail}", story.by);
            summary.breach("kept promises", what);
        }
    }
    for (pool, claims) in &pools {
        let judged = judge_pool(claims, case, false);
        let of_units = |breach: &Breach| ["capacity", "exclusivity"].contains(&breach.law);
        let judged = match judged {
            Err(breach) if case.beyond_drift() && of_units(&breach) => {
                summary.overlaps += 1;
                judge_pool(claims, case, true)
            }
            judged => judged,
        };
        if let Err(breach) = judged {
            summary.breach(breach.law, format!("pool {pool}: {}", breach.what));
        }
    }
    for line in lines {
        said(line, &stories, case, &mut summary);
    }
    probes(lines, case, &mut summary);
    summary
}

/// The laws of quorate-laws, on one pool; all, or but those that say how many use units.
fn judge_pool(claims: &[(&str, &Story)], case: &Case<'_>, loose: bool) -> Result<(), Breach> {
    let shares: Vec<Shares> = claims
        .iter()
        .map(|(_, story)| to_shares(story.granted.as_ref().map_or(&[], |(_, shares)| shares)))
        .collect();
    let names_units = case.draw.protocol.names_units();
    let book = StatuteBook::new(case.draw.units * if loose { 1000 } else { 1 }, None);
    let mut book = if names_units && !loose { book } else { book.anonymous() };
    let mut fences = FenceOrder::new(case.draw.units);
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
        if story.stands {
            book.stands(claim);
        }
        let (until, how) = match story.missed {
            // Nodes say that nobody has it.
            Some(missed) if story.stands && missed < until => (missed, End::Told),
            _ if story.stopped.is_some() || story.stands => (until, End::Released),
            _ => (until, End::Deadline),
        };
        seen.push((from, 2, Observation::Granted { claim, shares: &shares[number] }));
        seen.push((until, 0, Observation::Ended { claim, shares: &shares[number], how }));
    }
    seen.sort_by_key(|(at, rank, _)| (*at, *rank));
    for (at, _, observation) in seen {
        book.see(observation).map_err(|breach| named(breach, claims, at))?;
        if loose && names_units {
            fences.see(observation).map_err(|breach| named(breach, claims, at))?;
        }
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
            for holder in holders {
                let Some(story) = stories.get(&(pool.clone(), holder.clone())) else { continue };
                if let Some((ended, true)) = story.ended
                    && case.forgotten_by_all(ended, *asked)
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
        // A licence lasts half a second: where a machine is busy it comes and goes, and what was
        // denied at one moment is granted at the next.
        let flickers = case.draw.protocol.moves();
        for (what, wrong) in CONTRADICTIONS {
            if wrong(before)
                && wrong(probe)
                && !(flickers && grants(probe) && probe.held != Some(0))
            {
                let (node, at) = (probe.node, line.at as f64 / 1e9);
                let what = format!("n{node} {what}, twice in a row, at {at:.3} s");
                summary.breach("operator's law", what);
            }
        }
    }
    summary.recovery = recovered.into_values().collect();
}

fn says(probe: &Probe, status: u64) -> bool {
    probe.before == status && probe.after == status
}

fn grants(probe: &Probe) -> bool {
    probe.granted && probe.took < SECOND
}

fn waits(probe: &Probe) -> bool {
    probe.status == 202
}

type Contradiction = (&'static str, fn(&Probe) -> bool);

/// What is said, and is not so: by `/readyz/pools/..`; by what `quorate status` and `quorate why`
/// show, if all nodes answered; by the metrics, which know no more than the node itself, so that
/// only what they deny is held against them (docs/readiness.md).
const CONTRADICTIONS: [Contradiction; 7] = [
    ("says that it can grant, and a claim waited in vain", |it| says(it, 200) && waits(it)),
    ("says that it cannot grant, and does", |it| says(it, 503) && grants(it)),
    ("counts that it can grant nothing, and does", |it| it.metric == Some(0) && grants(it)),
    ("shows that nothing can be granted, and grants", |it| it.largest == Some(0) && grants(it)),
    ("shows that all can be granted, and a claim waited in vain", |it| {
        it.largest.is_some_and(|largest| largest > 0) && waits(it)
    }),
    ("shows that nobody holds anything, and granted a claim just now", |it| {
        it.held == Some(0) && grants(it)
    }),
    ("names nothing for which a claim waits, that does", |it| it.why == Some(0) && waits(it)),
];

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
        // Without a lease it lasts until it is given back, and is shown until then.
        let stands = |more: &str| {
            let text = GOOD.replacen(r#""units":2}"#, r#""units":2,"stands":true}"#, 1);
            judged(&text.replacen(r#""deadline":100,"#, "", 1).replacen("\n", more, 1), 2)
        };
        assert_eq!(stands("\n"), Vec::<String>::new());
        let shown = |there: bool| {
            let told = r#"{"at":25,"by":"c","what":"shown","pool":"p","claim":"1","there":"#;
            format!("\n{told}{there}}}\n")
        };
        assert_eq!(stands(&shown(true)), Vec::<String>::new());
        assert!(stands(&shown(false))[0].starts_with("standing stays"), "{:?}", stands("\n"));
        let gone = GOOD.replacen(r#""units":2}"#, r#""units":2,"stands":true}"#, 1).replacen(
            r#""what":"stopped""#,
            r#""what":"using""#,
            1,
        );
        let gone =
            gone.replacen(r#""deadline":100,"#, "", 1).replace(r#""at":50,"#, r#""at":500,"#);
        let gone = gone.replace(r#""deadline":300,"#, r#""deadline":900,"#);
        assert!(judged(&gone, 2)[0].starts_with("capacity"), "{:?}", judged(&gone, 2));
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
        let both = |said: u64, status: u64, granted: bool, more: &str| {
            let of = |at| probe(at, said, status, granted).replace("\"took\":1", more);
            judged(&(of(20) + &of(23)), 2)
        };
        for (said, status, granted, more, what) in [
            (200, 200, true, "\"took\":1,\"metric\":0", "counts that it can grant nothing"),
            (200, 200, true, "\"took\":1,\"largest\":0", "shows that nothing can be granted"),
            (503, 202, false, "\"took\":1,\"largest\":2", "shows that all can be granted"),
            (200, 200, true, "\"took\":1,\"held\":0", "shows that nobody holds anything"),
            (503, 202, false, "\"took\":1,\"why\":0", "names nothing for which a claim waits"),
        ] {
            let found = both(said, status, granted, more);
            assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
        }
        let fine = "\"took\":1,\"metric\":2,\"largest\":2,\"held\":1,\"why\":null";
        assert!(both(200, 200, true, fine).is_empty());
        assert!(
            both(503, 202, false, "\"took\":1,\"metric\":2,\"largest\":0,\"why\":1").is_empty()
        );
    }

    #[test]
    fn what_clocks_beyond_the_drift_do_to_units_is_counted_and_the_rest_is_judged() {
        let only = Only(["small", "drift-double", "central"].map(String::from).to_vec());
        let means = Means { real: true, clocks: true, ..Means::default() };
        let mut draw = Draw::new(1, &only, means);
        draw.units = 2;
        let judged = |text: &str| {
            let lines: Vec<Line> =
                text.lines().map(|line| Line::parse(line, "r").expect(line)).collect();
            let (events, starts) = Default::default();
            let case = Case { draw: &draw, killed: &[], faults: (0, 1), events, starts };
            judge(&lines, &case)
        };
        let both = GOOD.replacen(r#""at":40,"#, r#""at":60,"#, 1);
        let found = judged(&both);
        assert_eq!((found.overlaps, found.breaches), (1, Vec::new()));
        let found = judged(&both.replacen("[[1,2]]", "[[1,1]]", 1)).breaches;
        assert!(found[0].starts_with("fence order"), "{found:?}");
    }

    #[test]
    fn most_voters_that_began_anew_forget_what_was_not_renewed_since() {
        let only = Only(["small", "none", "table", "3"].map(String::from).to_vec());
        let mut draw = Draw::new(1, &only, Means::default());
        (draw.durable, draw.lease) = (false, std::time::Duration::from_secs(3));
        let seconds = |list: &[u64]| list.iter().map(|at| at * SECOND).collect::<Vec<_>>();
        let starts = seconds(&[20, 21]).into_iter().zip(["n0", "n1"].map(String::from)).collect();
        let (killed, events) = (&[], Vec::new());
        let case = Case { draw: &draw, killed, faults: (0, 1), events, starts };
        let forgotten = |granted: u64, renewed: u64| {
            let story = Story {
                granted: Some((granted * SECOND, Vec::new())),
                renewed: renewed * SECOND,
                ..Story::default()
            };
            case.forgotten(&story, 40 * SECOND)
        };
        assert!(forgotten(10, 19) && forgotten(10, 25), "before, and before they voted again");
        assert!(!forgotten(10, 27) && !forgotten(22, 23), "since, and given since");
    }
}

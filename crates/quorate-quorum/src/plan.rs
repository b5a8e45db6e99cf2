//! Which family, and why.
//!
//! The planner tries what fits the nodes and units (letting fewer nodes vote where that is better:
//! extra voters only hurt), drops what does not survive the crashes asked for, keeps what is nearly
//! as available as the best, and of these prefers the quickest (if delays are given) or the one
//! with the fewest messages per grant. It knows the price of tolerance: n >= (k+1)f + 1 for any
//! k-arbiter, whatever the family.

use crate::requests;
use crate::{
    Answers, Domination, Effort, Family, Findings, Formula, Method, Rule, bounds, build, latency,
};

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// Nodes there are.
    pub nodes: usize,
    /// Units to share.
    pub units: usize,
    /// Crashes to be survived.
    pub survive: Option<usize>,
    /// Sizes of claims and how often each occurs; empty means one unit at a time.
    pub claims: Vec<(usize, f64)>,
    /// How likely each node is alive.
    pub up: Vec<f64>,
    /// Delays between nodes.
    pub delays: Option<Vec<Vec<f64>>>,
}

/// A family weighed.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name, as `report --family` takes it.
    pub name: String,
    /// How many of the nodes vote.
    pub voters: usize,
    /// Members of a quorum, on average over quorums and claims.
    pub size: f64,
    /// Messages per grant, on average over claims.
    pub messages: f64,
    /// Crashes always survived.
    pub survives: usize,
    /// The probability that a quorum is alive, on average over claims.
    pub availability: f64,
    /// The probability that none is, with digits that one minus the other has not.
    pub missing: f64,
    /// The load of the busiest node.
    pub load: f64,
    /// Mean wait for the nearest quorum.
    pub latency: Option<f64>,
    /// Whether a better family of the same kind exists.
    pub dominated: Option<bool>,
    /// Why it was not chosen, or why it was.
    pub reason: String,
}

/// What is recommended.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The best first, then the runners-up, then what was ruled out. Empty if nothing can do it.
    pub candidates: Vec<Candidate>,
    /// How many of them meet the wish.
    pub good: usize,
    /// Units that conflicts really need: fewer than there are if all claims are large.
    pub effective_units: usize,
    /// No family survives more crashes than this.
    pub survives_max: usize,
    /// What would change the answer, or what to do instead.
    pub advice: Vec<String>,
}

/// Largest plane or space tried: beyond it building takes longer than it is worth.
const POINTS_MAX: usize = 1000;
/// Numbers that differ by less than one part in this many are nearly the same.
const ALIKE: usize = 20;
/// Unavailability may be this many times that of the best candidate …
const NEARLY: f64 = 2.0;
/// … or this small: below one in a million other things than independent crashes decide.
const PLENTY: f64 = 1e-6;

/// Finds the best family for a wish.
pub fn plan(wish: &Requirements, effort: &mut Effort<'_>) -> Advice {
    let smallest_claim = wish.claims.iter().map(|(claim, _)| *claim).min().unwrap_or(1).max(1);
    // Conflicts of claims of at least g units have at most k/g + 1 members.
    let effective_units = (wish.units / smallest_claim).max(1);
    let survives_max = bounds::survives_max(wish.nodes, effective_units);
    let mut plan =
        Advice { candidates: vec![], good: 0, effective_units, survives_max, advice: vec![] };
    if wish.survive.is_some_and(|crashes| crashes > survives_max) {
        plan.advice = instead(wish, effective_units, survives_max);
        return plan;
    }
    let mut candidates: Vec<Candidate> = specs(wish.nodes, effective_units)
        .into_iter()
        .filter_map(|(spec, voters)| weigh(wish, effective_units, &spec, voters, effort))
        .collect();
    candidates.extend(by_claim(wish));
    rank(wish, &mut plan, candidates);
    plan.advice = changes(wish, &plan);
    plan
}

/// Families that fit, with how many nodes would vote.
fn specs(nodes: usize, units: usize) -> Vec<(String, usize)> {
    let voters = (nodes - 1) / (units + 1) * (units + 1) + 1;
    let mut specs = vec![("uniform".to_owned(), voters)];
    // More voters survive no more crashes; they are worth a row where they change the numbers.
    if !alike(nodes, voters) {
        specs.push(("uniform".to_owned(), nodes));
    }
    specs.push(("singleton".to_owned(), 1));
    specs.push(("wall".to_owned(), nodes));
    specs.extend(
        hierarchies(nodes, units)
            .into_iter()
            .map(|(outer, inner)| (format!("hierarchy:{outer},{inner}"), outer * inner)),
    );
    let mut largest = |name: String, sizes: &mut dyn Iterator<Item = usize>| {
        if let Some(size) = sizes.take_while(|size| *size <= nodes.min(POINTS_MAX)).last() {
            specs.push((name, size));
        }
    };
    let mut tree = std::iter::successors(Some(units + 2), |size| Some(size * (units + 1) + 1));
    largest("tree".to_owned(), &mut tree);
    let orders = [2usize, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31];
    let dimension = units as u32 + 1;
    let points =
        |q: usize| (0..=dimension).map(|i| q.saturating_pow(i)).fold(0, usize::saturating_add);
    let name = if units == 1 { "plane" } else { "space" };
    if dimension <= 9 {
        largest(name.to_owned(), &mut orders.iter().map(|q| points(*q)));
    }
    let mut cubes = (2..64usize).map(|a| a.saturating_pow(dimension));
    largest("cube".to_owned(), &mut cubes);
    specs
}

/// Hierarchies of two levels, each of which spares someone. Of those with nearly as many members in
/// a quorum and nearly as many crashes survived only the one with the smallest quorums is taken:
/// of 100,000 nodes there are hundreds, and nobody can choose among them.
fn hierarchies(nodes: usize, units: usize) -> Vec<(usize, usize)> {
    let least = units + 2;
    // A threshold of (k+1)f + 1 parts spares f of them.
    let spared = |parts: usize| (parts - 1) / (units + 1);
    let size =
        |(outer, inner): &(usize, usize)| (outer - spared(*outer)) * (inner - spared(*inner));
    let survives =
        |(outer, inner): &(usize, usize)| (spared(*outer) + 1) * (spared(*inner) + 1) - 1;
    let mut all: Vec<(usize, usize)> = (least..=nodes / least)
        .step_by(units + 1)
        .map(|outer| (outer, spared(nodes / outer) * (units + 1) + 1))
        .filter(|(outer, inner)| *inner >= least && outer <= inner)
        .collect();
    all.sort_by_key(|shape| (size(shape), std::cmp::Reverse((survives(shape), shape.0 * shape.1))));
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for shape in &all {
        let known = |other: &(usize, usize)| {
            alike(size(shape), size(other)) && alike(survives(shape), survives(other))
        };
        if !taken.iter().any(known) {
            taken.push(*shape);
        }
    }
    taken
}

fn alike(a: usize, b: usize) -> bool {
    a.abs_diff(b) <= b / ALIKE
}

fn weigh(
    wish: &Requirements,
    units: usize,
    spec: &str,
    voters: usize,
    effort: &mut Effort<'_>,
) -> Option<Candidate> {
    let Family { name, rule } = build(spec, Some(voters), units).ok()?;
    let answers = Answers::of(rule.as_ref());
    let found = Findings::from_answers(&answers, units, &wish.up[..voters], effort);
    if found.arbiter() != Some(true) {
        return None;
    }
    let size = found.mean_size()?;
    let dominated = found.domination.flatten().map(|decided| decided != Domination::Nondominated);
    Some(Candidate {
        voters,
        size,
        messages: bounds::messages(1) as f64 * size,
        survives: found.survives.low,
        availability: found.availability.low,
        missing: match found.availability.method {
            Method::Sampling => 1.0 - found.availability.low,
            _ => found.availability.missing,
        },
        load: found.load.high,
        latency: mean_wait(rule.as_ref(), wish),
        dominated,
        reason: String::new(),
        name,
    })
}

fn mean_wait(rule: &dyn Rule, wish: &Requirements) -> Option<f64> {
    let delays = wish.delays.as_ref()?;
    // Those who do not vote ask as well.
    latency::mean_nearest(rule, delays)
}

/// A family per claim size: worth it when claims differ.
fn by_claim(wish: &Requirements) -> Option<Candidate> {
    let total: f64 = wish.claims.iter().map(|(_, weight)| weight).sum();
    if wish.claims.iter().all(|(claim, _)| *claim == 1) || total <= 0.0 {
        return None;
    }
    let mut candidate = Candidate {
        name: "threshold".to_owned(),
        voters: wish.nodes,
        size: 0.0,
        messages: 0.0,
        survives: wish.nodes,
        availability: 0.0,
        missing: 0.0,
        load: 0.0,
        latency: wish.delays.as_ref().map(|_| 0.0),
        dominated: None,
        reason: String::new(),
    };
    for (claim, weight) in &wish.claims {
        let share = weight / total;
        let size = requests::quorum_size(wish.nodes, wish.units, *claim);
        let nodes: Vec<crate::Expr> = (0..wish.nodes).map(crate::Expr::node).collect();
        let rule = Formula::new(wish.nodes, crate::Expr::choose(size, nodes).ok()?);
        candidate.size += share * size as f64;
        candidate.messages += share * bounds::messages(size) as f64;
        candidate.survives = candidate.survives.min(wish.nodes - size);
        let chances = rule.chances(&wish.up)?;
        candidate.availability += share * chances.alive;
        candidate.missing += share * chances.dead;
        candidate.load += share * size as f64 / wish.nodes as f64;
        if let Some(latency) = &mut candidate.latency {
            *latency += share * mean_wait(&rule, wish)?;
        }
    }
    Some(candidate)
}

fn rank(wish: &Requirements, plan: &mut Advice, mut candidates: Vec<Candidate>) {
    // Without a wish, survive one crash if anything can: a configuration that tolerates nothing
    // must be asked for.
    let survive = wish.survive.unwrap_or(plan.survives_max.min(1));
    let strong = |c: &Candidate| c.survives >= survive;
    let best = |pick: fn(&Candidate) -> f64, of: fn(f64, f64) -> f64, none| {
        candidates.iter().filter(|c| strong(c)).map(pick).fold(none, of)
    };
    // Near one what is missing counts, and near zero what there is.
    let missing_max = (best(|c| c.missing, f64::min, f64::INFINITY) * NEARLY).max(PLENTY);
    let available_min = best(|c| c.availability, f64::max, 0.0) / NEARLY;
    let nearly = |c: &Candidate| c.missing <= missing_max && c.availability >= available_min;
    let cost = |c: &Candidate| (c.latency.unwrap_or(0.0), c.messages, c.load, c.voters);
    let class = |c: &Candidate| match (strong(c), nearly(c)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => 2,
    };
    candidates.sort_by(|a, b| {
        class(a).cmp(&class(b)).then_with(|| cost(a).partial_cmp(&cost(b)).expect("no NaN"))
    });
    plan.good = candidates.iter().filter(|c| class(c) == 0).count();
    let by = if wish.delays.is_some() { "the shortest wait" } else { "the fewest messages" };
    let price = |c: &Candidate| c.latency.unwrap_or(c.messages);
    let lowest = candidates.first().map_or(0.0, price);
    for (position, candidate) in candidates.iter_mut().enumerate() {
        candidate.reason = match (class(candidate), position) {
            (0, 0) => format!("{by} among families nearly as available as the best"),
            (0, _) if price(candidate) <= lowest * (1.0 + 1e-9) => {
                "as cheap, and in nothing better".to_owned()
            }
            (0, _) => format!("as safe and nearly as available, but not {by}"),
            (1, _) => "clearly less available than the best".to_owned(),
            _ => format!("survives {} of the {survive} crashes wanted", candidate.survives),
        };
    }
    plan.candidates = candidates;
}

/// What to do when no family can survive that many crashes.
fn instead(wish: &Requirements, units: usize, most: usize) -> Vec<String> {
    let crashes = wish.survive.unwrap_or(0);
    let mut advice = vec![
        format!(
            "no family can survive {crashes} crashes with {} nodes and {} units: k+1 = {} sets of \
             {crashes} nodes must not cover all of them, so at most {most}",
            wish.nodes,
            units,
            units + 1
        ),
        format!("with {} nodes it works (any uniform family)", bounds::nodes_for(crashes, units)),
    ];
    let holders = (wish.nodes - 1).checked_div(crashes).unwrap_or(0);
    if holders >= 2 {
        advice.push(format!(
            "with at most {} holders at a time, whatever they hold: a family for {} units on \
             these nodes",
            holders - 1,
            holders - 1
        ));
    }
    if wish.nodes > 2 * crashes {
        advice.push(format!(
            "with protocol modes that need majorities only, for any number of units: ticket \
             (two rounds) or named units; {} nodes survive {} crashes",
            wish.nodes,
            (wish.nodes - 1) / 2
        ));
    }
    advice.push("or split the units into pools of their own, each with fewer units".to_owned());
    advice
}

/// What would change the answer.
fn changes(wish: &Requirements, plan: &Advice) -> Vec<String> {
    let mut advice = Vec::new();
    let Some((first, others)) = plan.candidates.split_first() else { return advice };
    if plan.effective_units < wish.units {
        advice.push(format!(
            "all claims are large, so conflicts have at most {} members and a family for {} \
             units is enough",
            plan.effective_units + 1,
            plan.effective_units
        ));
    }
    let usable = || others.iter().filter(|c| c.survives >= wish.survive.unwrap_or(1));
    let better = |pick: &dyn Fn(&Candidate) -> f64| {
        let best = usable().min_by(|a, b| pick(a).total_cmp(&pick(b)))?;
        (pick(best) < pick(first) * (1.0 - 1e-9)).then_some(best)
    };
    if let Some(best) = better(&|c| c.load) {
        advice.push(format!(
            "if the busiest node is the limit: {} (load {:.3} instead of {:.3})",
            best.name, best.load, first.load
        ));
    }
    if let Some(best) = better(&|c| c.messages) {
        advice.push(format!(
            "if messages count more than availability: {} ({:.0} instead of {:.0})",
            best.name, best.messages, first.messages
        ));
    }
    if let Some(best) = better(&|c| c.missing) {
        advice.push(format!(
            "if availability is everything: {} ({:.2e} unavailable instead of {:.2e})",
            best.name, best.missing, first.missing
        ));
    }
    if let Some(best) =
        others.iter().max_by_key(|c| c.survives).filter(|c| c.survives > first.survives)
    {
        advice.push(format!(
            "if more crashes must be survived: {} ({} instead of {})",
            best.name, best.survives, first.survives
        ));
    }
    let more = plan.survives_max + 1;
    let next = bounds::nodes_for(more, plan.effective_units);
    let crashes = if more == 1 { "crash" } else { "crashes" };
    advice.push(format!("from {next} nodes on, {more} {crashes} can be survived"));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_hierarchies_that_are_nearly_the_same_one_is_weighed() {
        for units in 1..=4 {
            let specs = specs(100_000, units);
            assert!(specs.len() <= 16, "{units} units: {specs:?}");
            assert!(specs.iter().any(|(name, _)| name.starts_with("hierarchy")), "{specs:?}");
        }
        // 3,15 has quorums as large as 7,7, survives as much and spreads it over fewer nodes.
        assert_eq!(hierarchies(49, 1), [(5, 9), (7, 7)]);
    }
}

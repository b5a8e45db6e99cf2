//! From a name on a command line or in a configuration to quorums that are safe, and what they are
//! worth: the laboratory's families, checked before there is a pool.

use std::fmt;

use quorate_core::NodeSet;
use quorate_quorum::plan::{Requirements, plan};
use quorate_quorum::{
    Answers, Effort, Expr, Family, Findings, Formula, Rule, bounds, build, fewest_apart, requests,
};

use super::Quorums;

/// Steps of the laboratory that one question may cost before it is given up.
const EFFORT: u64 = 50_000_000;

/// Quorums, and what they are worth.
#[derive(Clone, PartialEq, Debug)]
pub struct Chosen {
    /// The family, as the laboratory names it; `threshold` means one for each size of claim.
    pub name: String,
    /// Whose permissions suffice.
    pub quorums: Quorums,
    /// What start-up prints.
    pub summary: Summary,
}

/// What a family is worth in a pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// How many nodes vote.
    pub voters: usize,
    /// Members of a quorum, from the smallest to the largest.
    pub quorum: (usize, usize),
    /// Crashes always survived.
    pub survives: usize,
    /// How likely a quorum is alive, every node being so with the probability given.
    pub availability: f64,
    /// The share of all claims that the busiest node takes part in, at best.
    pub load: f64,
    /// Messages for one grant when nobody else wants anything and nobody is in its own quorum.
    pub messages: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { voters, quorum: (small, large), survives, .. } = self;
        match small == large {
            true => write!(f, "quorums of {small} of {voters}")?,
            false => write!(f, "quorums of {small} to {large} of {voters}")?,
        }
        let crashes = if *survives == 1 { "crash" } else { "crashes" };
        write!(f, ", {survives} {crashes} survived, {} available", Nines(self.availability))?;
        write!(f, ", load {:.3}, {:.1} messages per quiet grant", self.load, self.messages)
    }
}

/// An availability: percent, with as many digits as tell it from 100.
struct Nines(f64);

impl fmt::Display for Nines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = (1.0 - self.0).max(1e-12);
        let digits = (-missing.log10()).ceil().clamp(2.0, 12.0) as usize;
        write!(f, "{:.*} %", digits, 100.0 * self.0)
    }
}

/// Why there are no quorums.
#[derive(Clone, PartialEq, Debug)]
pub enum FamilyError {
    /// The laboratory cannot build it.
    Unbuilt(quorate_quorum::FamilyError),
    /// Claims that exceed the pool need not meet: these quorums have no common node.
    Apart(Vec<NodeSet>),
    /// It has too many quorums to be examined or used.
    TooLarge,
    /// It has more voters than there are nodes.
    TooMany {
        /// Nodes that vote.
        voters: usize,
        /// Nodes that there are.
        nodes: usize,
    },
    /// It does not survive the crashes it must, and nobody said that this is all right.
    Fragile {
        /// Crashes survived.
        survives: usize,
        /// Crashes to be survived.
        wanted: usize,
        /// What to do instead.
        advice: String,
    },
}

impl fmt::Display for FamilyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FamilyError::Unbuilt(error) => error.fmt(f),
            FamilyError::Apart(quorums) => {
                write!(f, "not safe here: no node is in all of ")?;
                for (place, quorum) in quorums.iter().enumerate() {
                    write!(f, "{}{quorum:?}", if place > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
            FamilyError::TooLarge => f.write_str("too many quorums to list or to examine"),
            FamilyError::TooMany { voters, nodes } => {
                write!(f, "it has {voters} voters and there are {nodes} nodes")
            }
            FamilyError::Fragile { survives, wanted, advice } => {
                write!(f, "it survives {survives} crashes and {wanted} are wanted: {advice}")
            }
        }
    }
}

impl std::error::Error for FamilyError {}

/// What a pool asks of a family.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Need {
    /// Nodes there are.
    pub nodes: usize,
    /// Units of the pool.
    pub units: usize,
    /// Any so many quorums, and one more, must share a node: most holders at once where arbiters
    /// count, 1 where any two must meet.
    pub meet: usize,
    /// Crashes to be survived. Nobody gets 0 without asking for it.
    pub survive: usize,
    /// How likely a node is alive, for the availability.
    pub up: f64,
    /// Messages per member of a quorum and quiet grant: 3 for permissions, 5 for tickets.
    pub rounds: usize,
}

impl Need {
    /// Arbiters that count, with at most `holders` grants at once; one crash to be survived.
    pub fn counting(nodes: usize, units: usize, holders: usize) -> Need {
        Need { nodes, units, meet: holders.min(units), survive: 1, up: 0.99, rounds: 3 }
    }

    /// Any two quorums must meet.
    pub fn coterie(nodes: usize, units: usize) -> Need {
        Need { meet: 1, ..Need::counting(nodes, units, units) }
    }

    /// The family of this name, as the laboratory writes it (`uniform`, `hierarchy:4,4`, `plane`,
    /// `expr:...`), or `threshold`: one for each size of claim.
    ///
    /// # Errors
    /// It cannot be built, is not safe, or does not survive what it must.
    pub fn family(&self, spec: &str) -> Result<Chosen, FamilyError> {
        if spec == "threshold" {
            return self.by_size();
        }
        let Family { name, rule } = self.built(spec)?;
        self.examined(name, rule.as_ref())
    }

    /// The quorums of [`Need::family`], safe, without asking what they are worth.
    ///
    /// # Errors
    /// It cannot be built, or is not safe.
    pub fn quorums(&self, spec: &str) -> Result<Quorums, FamilyError> {
        if spec == "threshold" {
            return Ok(Quorums::by_size(self.nodes as u32, self.units as u32));
        }
        let family = self.built(spec)?;
        self.safe(&Answers::new(&family), &mut Effort::new(EFFORT))
    }

    /// Quorums any two of which meet, of a family drawn by lot if it fits, else majorities.
    pub fn drawn(&self, draw: u64) -> Quorums {
        let spec = ["majority", "grid", "hierarchy", "wall"][(draw % 4) as usize];
        self.quorums(spec).unwrap_or_else(|_| Quorums::majority(self.nodes as u32))
    }

    fn built(&self, spec: &str) -> Result<Family, FamilyError> {
        build(spec, Some(self.nodes), self.meet)
            .or_else(|error| build(spec, None, self.meet).map_err(|_| error))
            .map_err(FamilyError::Unbuilt)
    }

    /// What the laboratory's planner prefers: the fewest messages among families nearly as
    /// available as the best that survive enough.
    ///
    /// # Errors
    /// Nothing survives enough crashes.
    pub fn best(&self) -> Result<Chosen, FamilyError> {
        let wish = Requirements {
            nodes: self.nodes,
            units: self.meet,
            survive: Some(self.survive),
            claims: Vec::new(),
            up: vec![self.up; self.nodes],
            delays: None,
        };
        let found = plan(&wish, &mut Effort::new(EFFORT));
        let (Some(best), true) = (found.candidates.first(), found.good > 0) else {
            return Err(self.fragile(found.survives_max, found.advice.join("; ")));
        };
        let family =
            build(&best.name, Some(best.voters), self.meet).map_err(FamilyError::Unbuilt)?;
        self.examined(family.name, family.rule.as_ref())
    }

    fn safe(&self, answers: &Answers<'_>, effort: &mut Effort<'_>) -> Result<Quorums, FamilyError> {
        let voters = answers.rule().nodes();
        if voters > self.nodes {
            return Err(FamilyError::TooMany { voters, nodes: self.nodes });
        }
        if !answers.intersecting(self.meet, effort).map_err(|_| FamilyError::TooLarge)? {
            effort.renew();
            let apart = answers.minimal().map(|family| fewest_apart(family, self.meet + 1, effort));
            let apart = apart.and_then(Result::ok).flatten().unwrap_or_default();
            return Err(FamilyError::Apart(apart));
        }
        Quorums::of(answers.rule()).ok_or(FamilyError::TooLarge)
    }

    fn examined(&self, name: String, rule: &dyn Rule) -> Result<Chosen, FamilyError> {
        let (answers, voters) = (Answers::of(rule), rule.nodes());
        let mut effort = Effort::new(EFFORT);
        let quorums = self.safe(&answers, &mut effort)?;
        let up = vec![self.up; voters];
        let found = Findings::from_answers(&answers, self.meet, &up, &mut effort);
        let quorum = found.size_range().unwrap_or((1, voters));
        let summary = Summary {
            voters,
            quorum,
            survives: found.survives.low,
            availability: found.availability.value,
            load: found.load.high,
            messages: self.rounds as f64 * found.mean_size().unwrap_or(quorum.1 as f64),
        };
        self.survived(Chosen { name, quorums, summary })
    }

    /// A family for each size of claim (arbiter spec R1); what it is worth is said of the smallest
    /// claims, whose quorums are the largest, and of the largest.
    fn by_size(&self) -> Result<Chosen, FamilyError> {
        let (n, k) = (self.nodes, self.units);
        let sizes = requests::quorum_sizes(n, k);
        if requests::unsafe_conflict(n, &sizes).is_some() {
            return Err(FamilyError::Apart(Vec::new()));
        }
        let (large, small) = (sizes[0], sizes[k - 1]);
        let nodes = (0..n).map(Expr::node).collect();
        let ones = Formula::new(n, Expr::choose(large, nodes).expect("from 1 to n nodes"));
        let summary = Summary {
            voters: n,
            quorum: (small, large),
            survives: n - large,
            availability: ones.availability(&vec![self.up; n]).unwrap_or(0.0),
            load: large as f64 / n as f64,
            messages: bounds::messages(large) as f64,
        };
        let quorums = Quorums::by_size(n as u32, k as u32);
        self.survived(Chosen { name: "threshold".to_owned(), quorums, summary })
    }

    fn survived(&self, chosen: Chosen) -> Result<Chosen, FamilyError> {
        let survives = chosen.summary.survives;
        if survives >= self.survive {
            return Ok(chosen);
        }
        let needed = bounds::nodes_for(self.survive, self.meet);
        let advice = format!(
            "any family for this needs {needed} nodes; fewer holders at once, names for units or \
             tickets need fewer"
        );
        Err(self.fragile(survives, advice))
    }

    fn fragile(&self, survives: usize, advice: String) -> FamilyError {
        FamilyError::Fragile { survives, wanted: self.survive, advice }
    }
}

/// A protocol and its quorums, chosen by what must be survived.
#[derive(Clone, PartialEq, Debug)]
pub enum Way {
    /// Permissions: one round trip.
    Arbiter(Chosen),
    /// Tickets ([`crate::ticket`]): two round trips, and any two quorums need only meet.
    Ticket(Chosen),
}

/// Permissions if any family can survive `survive` crashes with at most `holders` grants at once,
/// else tickets (arbiter spec 6). `survive` is 0 only for whoever asked for that.
///
/// # Errors
/// There are too few nodes even for majorities.
pub fn auto(
    nodes: usize,
    units: usize,
    holders: usize,
    survive: usize,
) -> Result<Way, FamilyError> {
    let counting = Need { survive, ..Need::counting(nodes, units, holders) };
    if nodes >= bounds::nodes_for(survive, counting.meet) {
        return counting.best().map(Way::Arbiter);
    }
    let tickets = Need { survive, rounds: 5, ..Need::coterie(nodes, units) };
    tickets.best().map(Way::Ticket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_laboratory_builds_can_be_used_if_it_is_safe() {
        let need = Need::counting(16, 2, 2);
        let hierarchy = need.family("hierarchy:4,4").unwrap();
        assert_eq!(hierarchy.summary.quorum, (9, 9));
        assert_eq!(hierarchy.summary.survives, 3);
        assert!(matches!(hierarchy.quorums, Quorums::Nested(_)));
        let uniform = need.family("uniform").unwrap();
        assert_eq!(uniform.quorums, Quorums::uniform(16, 2));
        let space = Need::counting(16, 2, 2).family("space:3,2").unwrap();
        assert_eq!((space.summary.voters, space.summary.quorum), (15, (7, 7)));
        assert!(matches!(need.family("majority"), Err(FamilyError::Apart(_))));
        assert!(matches!(need.family("space:4,2"), Err(FamilyError::TooMany { .. })));
        assert!(matches!(need.family("nonsense"), Err(FamilyError::Unbuilt(_))));
        assert!(Need::coterie(16, 2).family("majority").is_ok());
        let sizes = Need::counting(7, 3, 3).family("threshold").unwrap();
        assert_eq!(sizes.quorums, Quorums::by_size(7, 3));
        assert_eq!((sizes.summary.quorum, sizes.summary.survives), ((4, 6), 1));
    }

    /// Arbiter spec G-1 and 6: 9 nodes and 8 units survive nothing, whatever the family.
    #[test]
    fn what_survives_no_crash_is_refused_unless_asked_for() {
        let need = Need::counting(9, 8, 8);
        assert!(matches!(need.best(), Err(FamilyError::Fragile { .. })));
        assert!(matches!(need.family("uniform"), Err(FamilyError::Fragile { .. })));
        let cube = Need::counting(12, 2, 2).family("cube");
        assert!(matches!(cube, Err(FamilyError::Fragile { survives: 0, .. })));
        assert!(Need { survive: 0, ..need }.family("uniform").is_ok());
        assert_eq!(Need::counting(9, 8, 2).best().unwrap().summary.survives, 2);
    }

    #[test]
    fn the_way_is_chosen_by_what_must_be_survived() {
        let way = |nodes, units, holders, survive| match auto(nodes, units, holders, survive) {
            Ok(Way::Arbiter(chosen)) => format!("arbiter {}", chosen.summary.survives),
            Ok(Way::Ticket(chosen)) => format!("ticket {}", chosen.summary.survives),
            Err(_) => "none".to_owned(),
        };
        assert_eq!(way(7, 2, 2, 2), "arbiter 2");
        assert_eq!(way(5, 2, 2, 2), "ticket 2");
        assert!(way(9, 8, 8, 1).starts_with("ticket"));
        assert_eq!(way(9, 8, 2, 2), "arbiter 2");
        assert_eq!(way(2, 1, 1, 1), "none");
        assert_eq!(way(1, 1, 1, 0), "arbiter 0");
        for nodes in 1..14 {
            for units in 1..6 {
                for survive in 1..4 {
                    let chosen = auto(nodes, units, units, survive);
                    assert_eq!(chosen.is_ok(), nodes > 2 * survive, "{nodes} {units} {survive}");
                }
            }
        }
    }

    #[test]
    fn a_summary_says_what_matters() {
        let summary = Need::counting(7, 2, 2).best().unwrap().summary;
        let said = "quorums of 5 of 7, 2 crashes survived, 99.99660 % available, load 0.714, \
                    15.0 messages per quiet grant";
        assert_eq!(summary.to_string(), said);
    }
}

//! A pool that quorums decide, from what people say of it on a command line or in a configuration:
//! which protocol, which family of quorums, and what that is worth.

use std::fmt;
use std::str::FromStr;

use crate::quorums::family::{self, Chosen, FamilyError, Need, Summary, Way};
use crate::{arbiter, table, ticket};

/// Messages per member that is asked for a ticket, if nobody else wants one.
const TICKET_ROUNDS: usize = 5;
/// Messages per arbiter where a claim picks its units once it has permissions.
const NAMING_ROUNDS: usize = 5;
/// Messages per member that keeps a table, for one use of units: two sections.
const TABLE_ROUNDS: usize = 8;
/// Most nodes that keep a table unless it is said: every section visits a quorum of them, one after
/// the other, and all sections of a pool take turns.
const TABLE_MEMBERS: u32 = 5;

/// What is said of a pool. Nothing said means what most people want.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// What quorums do.
    pub mode: Mode,
    /// A family as the laboratory writes it, `threshold` (one for each size of claim), or `auto`
    /// (what the planner prefers); uniform where units are counted by permissions, else majorities.
    pub family: Option<String>,
    /// Most grants at once, whatever their size; then an M-arbiter will do.
    pub max_holders: Option<u32>,
    /// How many nodes vote; the others only ask. If not said all, or five for a table.
    pub voters: Option<u32>,
    /// Crashes that must be survived. Nobody gets 0 without asking for it, except a node alone.
    pub survive: Option<u32>,
    /// Whether grants name their units although permissions only count, in one more round.
    pub naming: bool,
}

/// What quorums do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// Permissions for units that are counted: any k+1 quorums meet (k-arbiters).
    #[default]
    Arbiter,
    /// Permissions for units that have names, each a lock: any two quorums meet.
    Named,
    /// Tickets, in two round trips: any two quorums meet, units are counted.
    Ticket,
    /// A table of all claims that quorums keep: any two meet, units have names and may differ.
    Table,
    /// Permissions if a family of them survives what it must, else tickets.
    Auto,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "arbiter" | "count" => Ok(Mode::Arbiter),
            "named" => Ok(Mode::Named),
            "ticket" => Ok(Mode::Ticket),
            "auto" => Ok(Mode::Auto),
            _ => {
                Err(format!("mode {text:?}: choose \"named\", \"arbiter\", \"ticket\" or \"auto\""))
            }
        }
    }
}

/// A pool that was chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// The pool, in which only its quorums and its mode were decided.
    pub pool: Pool,
    /// What its quorums are worth.
    pub worth: Worth,
}

impl Settled {
    /// Where tickets decide: so many members beyond a quorum are asked, and what that costs.
    pub fn with_spares(mut self, spares: u32) -> Settled {
        if let Pool::Ticket(pool) = &mut self.pool {
            pool.spares = spares;
            let summary = &mut self.worth.summary;
            let quorum = summary.messages / TICKET_ROUNDS as f64;
            let asked = (quorum + f64::from(spares)).min(summary.voters as f64);
            summary.messages *= asked / quorum;
            summary.load = (summary.load * asked / quorum).min(1.0);
        }
        self
    }
}

/// A pool of a protocol that quorums decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pool {
    /// Permissions.
    Arbiter(arbiter::Pool),
    /// Tickets.
    Ticket(ticket::Pool),
    /// A table.
    Table(table::Pool),
}

/// What the quorums of a pool are, and what they are worth.
#[derive(Clone, PartialEq, Debug)]
pub struct Worth {
    /// What they do: `arbiter`, `named`, `ticket` or `table`.
    pub mode: &'static str,
    /// The family, as the laboratory names it, or `threshold`.
    pub family: String,
    /// Whether grants name their units although quorums only count.
    pub naming: bool,
    /// The numbers.
    pub summary: Summary,
}

impl fmt::Display for Worth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Worth { mode, family, naming, summary } = self;
        let naming = if *naming { " with naming" } else { "" };
        write!(f, "{mode}{naming}, {family}: {summary}")
    }
}

/// Why there is no such pool.
#[derive(Clone, PartialEq, Debug)]
pub enum TermsError {
    /// Nobody could hold anything.
    NoHolders,
    /// More voters than nodes, or none.
    Voters {
        /// So many were wanted.
        voters: u32,
        /// There are so many.
        nodes: u32,
    },
    /// A limit on holders, where that changes nothing.
    HoldersUncounted,
    /// Quorums by size of claim, where that would be wrong or pointless.
    SizesUncounted,
    /// A round to name units, where they have names anyway or nobody could.
    NamedAlready,
    /// A family, where the mode chooses one itself.
    ChosenTwice,
    /// The family will not do.
    Family {
        /// Which one.
        family: String,
        /// Why.
        error: FamilyError,
    },
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermsError::NoHolders => f.write_str("at least one grant must be possible at a time"),
            TermsError::Voters { voters, nodes } => {
                write!(f, "{voters} voters: there are {nodes} nodes")
            }
            TermsError::HoldersUncounted => {
                f.write_str("a limit on holders makes quorums smaller only where arbiters count")
            }
            TermsError::SizesUncounted => f.write_str(
                "quorums by size of claim count units: for neither names, tickets nor a limit on \
                 holders",
            ),
            TermsError::NamedAlready => f.write_str(
                "naming is for mode arbiter: units have names in mode named, and tickets only \
                 count",
            ),
            TermsError::ChosenTwice => {
                f.write_str("mode auto chooses the family: give a mode or leave the family out")
            }
            TermsError::Family { family, error } => {
                write!(f, "family {family}: {error}")?;
                if matches!(error, FamilyError::Fragile { wanted: 1, .. }) {
                    f.write_str(" (survive 0 accepts what survives no crash)")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for TermsError {}

impl Terms {
    /// The pool of so many units among so many nodes, with the defaults of its protocol for all
    /// that is not said here.
    ///
    /// # Errors
    /// The terms contradict each other, or no family satisfies them.
    pub fn settle(&self, nodes: u32, units: u32) -> Result<Settled, TermsError> {
        let usual = if self.mode == Mode::Table { nodes.min(TABLE_MEMBERS) } else { nodes };
        let voters = self.voters.unwrap_or(usual);
        if !(1..=nodes).contains(&voters) {
            return Err(TermsError::Voters { voters, nodes });
        }
        let holders_max = self.max_holders.unwrap_or(units).min(units);
        if holders_max == 0 {
            return Err(TermsError::NoHolders);
        }
        let counts = matches!(self.mode, Mode::Arbiter | Mode::Auto);
        if self.max_holders.is_some() && !counts {
            return Err(TermsError::HoldersUncounted);
        }
        let by_size = self.family.as_deref() == Some("threshold");
        if by_size && (self.mode != Mode::Arbiter || self.max_holders.is_some()) {
            return Err(TermsError::SizesUncounted);
        }
        if self.naming && self.mode != Mode::Arbiter {
            return Err(TermsError::NamedAlready);
        }
        // A single node survives nothing, and nobody expects it to.
        let survive = self.survive.unwrap_or(u32::from(nodes > 1)) as usize;
        let (n, k) = (voters as usize, units as usize);
        let pairs = Need { survive, ..Need::coterie(n, k) };
        let count = arbiter::Mode::Count { holders_max, backfill: 0 };
        Ok(match self.mode {
            Mode::Arbiter => {
                let mut need = Need { survive, ..Need::counting(n, k, holders_max as usize) };
                // The only unit need not be picked.
                if self.naming && units > 1 {
                    need.rounds = NAMING_ROUNDS;
                }
                permissions(nodes, units, (count, self.naming), self.chosen(need, "uniform")?)
            }
            Mode::Named => {
                let locks = (arbiter::Mode::Named, false);
                permissions(nodes, units, locks, self.chosen(pairs, "majority")?)
            }
            Mode::Ticket => tickets(
                nodes,
                units,
                self.chosen(Need { rounds: TICKET_ROUNDS, ..pairs }, "majority")?,
            ),
            Mode::Table => tables(
                nodes,
                units,
                self.chosen(Need { rounds: TABLE_ROUNDS, ..pairs }, "majority")?,
            ),
            Mode::Auto if self.family.as_deref().is_some_and(|family| family != "auto") => {
                return Err(TermsError::ChosenTwice);
            }
            Mode::Auto => match family::auto(n, k, holders_max as usize, survive) {
                Ok(Way::Arbiter(chosen)) => permissions(nodes, units, (count, false), chosen),
                Ok(Way::Ticket(chosen)) => tickets(nodes, units, chosen),
                Err(error) => return Err(TermsError::Family { family: "auto".into(), error }),
            },
        })
    }

    fn chosen(&self, need: Need, usual: &str) -> Result<Chosen, TermsError> {
        let spec = self.family.as_deref().unwrap_or(usual);
        let chosen = if spec == "auto" { need.best() } else { need.family(spec) };
        chosen.map_err(|error| TermsError::Family { family: spec.to_owned(), error })
    }
}

fn permissions(
    nodes: u32,
    units: u32,
    (mode, naming): (arbiter::Mode, bool),
    chosen: Chosen,
) -> Settled {
    let Chosen { name: family, quorums, summary } = chosen;
    let word = if mode == arbiter::Mode::Named { "named" } else { "arbiter" };
    let pool = arbiter::Pool { quorums, mode, naming, ..arbiter::Pool::new(units, nodes) };
    Settled { pool: Pool::Arbiter(pool), worth: Worth { mode: word, family, naming, summary } }
}

fn tickets(nodes: u32, units: u32, chosen: Chosen) -> Settled {
    let Chosen { name: family, quorums, summary } = chosen;
    let pool = ticket::Pool { quorums, ..ticket::Pool::new(units, nodes) };
    let worth = Worth { mode: "ticket", family, naming: false, summary };
    Settled { pool: Pool::Ticket(pool), worth }
}

fn tables(nodes: u32, units: u32, chosen: Chosen) -> Settled {
    let Chosen { name: family, quorums, summary } = chosen;
    let pool = table::Pool { quorums, ..table::Pool::new(units, nodes) };
    Settled {
        pool: Pool::Table(pool),
        worth: Worth { mode: "table", family, naming: false, summary },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(mode: Mode, family: &str, (nodes, units): (u32, u32), more: Terms) -> String {
        let family = (!family.is_empty()).then(|| family.to_owned());
        match (Terms { mode, family, ..more }).settle(nodes, units) {
            Ok(settled) => settled.worth.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_said_becomes_a_pool_or_a_clear_error() {
        use Mode::*;
        let none = Terms::default;
        let any = Terms { survive: Some(0), ..none() };
        let two = Terms { survive: Some(2), ..none() };
        let holders = Terms { max_holders: Some(1), ..none() };
        for (mode, family, size, more, says) in [
            (Arbiter, "", (7, 2), none(), "arbiter, uniform: quorums of 5 of 7, 2 crashes"),
            (Arbiter, "", (3, 2), none(), "wanted: any family for this needs 4 nodes; fewer"),
            (Arbiter, "", (3, 2), none(), "(survive 0 accepts what survives no crash)"),
            (Arbiter, "", (3, 2), any.clone(), "quorums of 3 of 3, 0 crashes survived"),
            (Arbiter, "", (3, 2), holders.clone(), "arbiter, uniform: quorums of 2 of 3, 1 crash"),
            (Arbiter, "threshold", (7, 3), none(), "arbiter, threshold: quorums of 4 to 6 of 7"),
            (Arbiter, "threshold", (7, 3), holders.clone(), "count units"),
            (Arbiter, "auto", (9, 2), two.clone(), "arbiter, uniform: quorums of 5 of 7"),
            (Arbiter, "majority", (5, 2), none(), "family majority: not safe here: no node is in"),
            (Arbiter, "nonsense", (5, 2), none(), "family nonsense: "),
            (Named, "", (3, 9), none(), "named, majority: quorums of 2 of 3, 1 crash survived"),
            (Named, "grid", (9, 4), any.clone(), "named, grid"),
            (Named, "threshold", (5, 2), none(), "count units"),
            (Named, "", (3, 9), holders.clone(), "only where arbiters count"),
            (Ticket, "", (5, 8), none(), "ticket, majority: quorums of 3 of 5, 2 crashes"),
            (Ticket, "threshold", (5, 8), none(), "count units"),
            (Table, "", (3, 2), none(), "table, majority: quorums of 2 of 3, 1 crash survived"),
            (Table, "", (9, 2), none(), "table, majority: quorums of 3 of 5, 2 crashes"),
            (Table, "grid", (4, 2), any.clone(), "table, grid"),
            (Table, "", (3, 9), holders.clone(), "only where arbiters count"),
            (Table, "threshold", (5, 2), none(), "count units"),
            (Auto, "", (7, 2), two.clone(), "arbiter, uniform: quorums of 5 of 7, 2 crashes"),
            (Auto, "", (5, 2), two.clone(), "ticket, uniform: quorums of 3 of 5, 2 crashes"),
            (Auto, "", (3, 2), two, "family auto: it survives 1 crashes and 2 are wanted"),
            (Auto, "grid", (9, 2), none(), "mode auto chooses the family"),
            (Arbiter, "", (1, 3), none(), "quorums of 1 of 1, 0 crashes survived"),
        ] {
            let told = said(mode, family, size, more);
            assert!(told.contains(says), "{mode:?} {family:?} {size:?}: {told}");
        }
        let voters = |voters| Terms { voters: Some(voters), ..none() };
        assert!(said(Named, "", (5, 2), voters(3)).contains("quorums of 2 of 3"));
        assert_eq!(said(Named, "", (5, 2), voters(6)), "6 voters: there are 5 nodes");
        assert_eq!(said(Named, "", (5, 2), voters(0)), "0 voters: there are 5 nodes");
        let naming = || Terms { naming: true, ..none() };
        assert!(said(Arbiter, "", (7, 2), naming()).contains("arbiter with naming, uniform: "));
        assert!(said(Arbiter, "", (7, 2), naming()).contains("25.0 messages per quiet grant"));
        assert!(said(Arbiter, "", (7, 1), naming()).contains("12.0 messages per quiet grant"));
        for mode in [Named, Ticket, Auto] {
            assert!(said(mode, "", (7, 2), naming()).contains("naming is for mode arbiter"));
        }
        let settled = Terms { mode: Ticket, ..none() }.settle(5, 8).unwrap();
        let spared = settled.clone().with_spares(1).worth.summary;
        assert_eq!((settled.worth.summary.messages, spared.messages), (15.0, 20.0));
        assert!((spared.load - 0.8).abs() < 1e-9, "{}", spared.load);
        assert_eq!(settled.with_spares(9).worth.summary.messages, 25.0);
        let nobody = Terms { max_holders: Some(0), ..none() };
        assert!(said(Arbiter, "", (5, 2), nobody).contains("at least one grant"));
    }
}

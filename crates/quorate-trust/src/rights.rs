//! What somebody may do: four words on pools, some bounds, and the table that decides.
//!
//! | right in a pool | what it is for |
//! |---|---|
//! | `see` | reads the pool, its claims and its history |
//! | `claim` | makes claims; renews, ends and reads those it made itself |
//! | `revoke` | ends the claims of others |
//! | `admin` | changes what the pool is; may do all of the above |
//!
//! A pool on which a permit has no right at all does not exist for it. Every bound (expiry, most
//! units, names of clients) only ever takes away.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Date, Pattern};

/// One of the four words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Right {
    /// To look.
    See,
    /// To make claims, to renew them and to end them.
    Claim,
    /// To end the claims of others.
    Revoke,
    /// To change what a pool is, and all the rest.
    Admin,
}

impl Right {
    /// All of them, the least first.
    pub const ALL: [Right; 4] = [Right::See, Right::Claim, Right::Revoke, Right::Admin];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Right::See => "see",
            Right::Claim => "claim",
            Right::Revoke => "revoke",
            Right::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a text is no right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no right: choose see, claim, revoke or admin")]
pub struct RightsError(String);

impl FromStr for Right {
    type Err = RightsError;

    fn from_str(text: &str) -> Result<Right, RightsError> {
        let found = Right::ALL.into_iter().find(|right| right.word() == text);
        found.ok_or_else(|| RightsError(text.chars().take(40).collect()))
    }
}

/// Some of the four words.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rights([bool; 4]);

impl Rights {
    /// None at all.
    pub const NONE: Rights = Rights([false; 4]);

    /// Whether this one is among them, or in `admin`, which has all.
    pub fn has(self, right: Right) -> bool {
        self.0[right as usize] || self.0[Right::Admin as usize]
    }

    /// Those that were named, the least first.
    pub fn named(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.0[*right as usize])
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Rights {
        let mut some = Rights::NONE;
        rights.into_iter().for_each(|right| some.0[right as usize] = true);
        some
    }
}

/// What a token or a certificate stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permit {
    /// Whose it is: shown, logged, and the owner of the claims made with it.
    pub name: String,
    /// What it may do...
    pub may: Rights,
    /// ...in which pools; in none if there is no pattern.
    pub pools: Vec<Pattern>,
    /// Most units of one claim.
    pub most_units: Option<u32>,
    /// What the client may call itself. Without any it is called as the permit is.
    pub clients: Vec<Pattern>,
    /// The day from which it is worth nothing.
    pub expires: Option<Date>,
}

/// What somebody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand<'a> {
    /// Which right it takes.
    pub right: Right,
    /// In which pool. Without one: `see` what there is to see, the others everywhere.
    pub pool: Option<&'a str>,
    /// How many units, if it is a claim.
    pub units: Option<u32>,
}

impl<'a> Demand<'a> {
    /// A right in a pool.
    pub fn of(right: Right, pool: &'a str) -> Demand<'a> {
        Demand { right, pool: Some(pool), units: None }
    }
}

/// Why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is worth nothing any more.
    Expired {
        /// Since when.
        on: Date,
    },
    /// For this caller there is no such pool: it has no right there.
    Hidden,
    /// It has other rights there.
    Lacks(Right),
    /// It may claim, but not so much.
    TooMany {
        /// How much it may.
        most: u32,
    },
}

impl Permit {
    /// Everything, everywhere, for ever.
    pub fn everything(name: &str) -> Permit {
        Permit {
            name: name.to_owned(),
            may: Rights::from_iter([Right::Admin]),
            pools: vec![Pattern::all()],
            most_units: None,
            clients: vec![Pattern::all()],
            expires: None,
        }
    }

    /// Whether that is allowed now.
    ///
    /// # Errors
    /// It is not; the reason.
    pub fn decide(&self, demand: Demand<'_>, since_1970: Duration) -> Result<(), Refusal> {
        match self.expires {
            Some(on) if since_1970 >= on.since_1970() => return Err(Refusal::Expired { on }),
            _ => {}
        }
        let reaches = match (demand.pool, demand.right) {
            (Some(pool), _) => self.knows(pool),
            (None, Right::See) => !self.pools.is_empty() && self.may != Rights::NONE,
            (None, _) => self.pools.iter().any(Pattern::is_all),
        };
        match (reaches, self.may.has(demand.right)) {
            (false, _) if demand.pool.is_some() => return Err(Refusal::Hidden),
            (true, true) => {}
            _ => return Err(Refusal::Lacks(demand.right)),
        }
        match (self.most_units, demand.units) {
            (Some(most), Some(units)) if units > most => Err(Refusal::TooMany { most }),
            _ => Ok(()),
        }
    }

    /// Whether the pool exists for it.
    pub fn knows(&self, pool: &str) -> bool {
        self.may != Rights::NONE && self.pools.iter().any(|pattern| pattern.covers(pool))
    }

    /// What a client is called that calls itself so: an authenticated name.
    ///
    /// # Errors
    /// It may not call itself that.
    pub fn client<'a>(&'a self, said: Option<&'a str>) -> Result<&'a str, &'a str> {
        match said {
            Some(said) if said == self.name => Ok(said),
            Some(said) if self.clients.iter().any(|pattern| pattern.covers(said)) => Ok(said),
            Some(said) if !self.clients.is_empty() => Err(said),
            _ => Ok(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permit(may: &[Right], pools: &[&str]) -> Permit {
        Permit {
            may: may.iter().copied().collect(),
            pools: pools.iter().map(|pool| pool.parse().unwrap()).collect(),
            clients: Vec::new(),
            ..Permit::everything("ci")
        }
    }

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    #[test]
    fn the_decision_table() {
        use Refusal::{Hidden, Lacks};
        use Right::{Admin, Claim, Revoke, See};
        let rows = [
            (
                permit(&[See], &["ci-*"]),
                [Ok(()), Err(Lacks(Claim)), Err(Lacks(Revoke)), Err(Lacks(Admin))],
            ),
            (
                permit(&[Claim], &["ci-*"]),
                [Err(Lacks(See)), Ok(()), Err(Lacks(Revoke)), Err(Lacks(Admin))],
            ),
            (
                permit(&[Revoke], &["ci-*"]),
                [Err(Lacks(See)), Err(Lacks(Claim)), Ok(()), Err(Lacks(Admin))],
            ),
            (permit(&[Admin], &["ci-*"]), [Ok(()); 4]),
            (
                permit(&[See, Claim], &["a", "ci-*"]),
                [Ok(()), Ok(()), Err(Lacks(Revoke)), Err(Lacks(Admin))],
            ),
            (permit(&[], &["ci-*"]), [Err(Hidden); 4]),
            (permit(&[Admin], &["cd-*"]), [Err(Hidden); 4]),
            (permit(&[Admin], &[]), [Err(Hidden); 4]),
        ];
        for (permit, expected) in rows {
            for (right, expected) in Right::ALL.into_iter().zip(expected) {
                let decided = permit.decide(Demand::of(right, "ci-build"), NOW);
                assert_eq!(decided, expected, "{permit:?} {right}");
            }
        }
    }

    #[test]
    fn where_no_pool_is_named_everything_takes_every_pool_but_looking() {
        let demand = |right| Demand { right, pool: None, units: None };
        let narrow = permit(&[Right::Admin], &["ci-*"]);
        assert_eq!(narrow.decide(demand(Right::See), NOW), Ok(()));
        assert_eq!(narrow.decide(demand(Right::Admin), NOW), Err(Refusal::Lacks(Right::Admin)));
        assert_eq!(Permit::everything("root").decide(demand(Right::Admin), NOW), Ok(()));
        let none = permit(&[], &["*"]);
        assert_eq!(none.decide(demand(Right::See), NOW), Err(Refusal::Lacks(Right::See)));
    }

    #[test]
    fn bounds_take_away() {
        let mut permit = permit(&[Right::Admin], &["*"]);
        permit.most_units = Some(4);
        let claim = |units| Demand { units: Some(units), ..Demand::of(Right::Claim, "p") };
        assert_eq!(permit.decide(claim(4), NOW), Ok(()));
        assert_eq!(permit.decide(claim(5), NOW), Err(Refusal::TooMany { most: 4 }));
        let on: Date = "2027-02-14".parse().unwrap();
        permit.expires = Some(on);
        let second = Duration::from_secs(1);
        assert_eq!(permit.decide(claim(1), on.since_1970() - second), Ok(()));
        assert_eq!(permit.decide(claim(1), on.since_1970()), Err(Refusal::Expired { on }));
    }

    #[test]
    fn a_client_has_a_name_that_its_permit_allows() {
        let mut permit = permit(&[Right::Claim], &["*"]);
        assert_eq!(permit.client(None), Ok("ci"));
        assert_eq!(permit.client(Some("ops")), Ok("ci"), "what it says counts for nothing");
        permit.clients = vec!["ci-*".parse().unwrap()];
        assert_eq!(permit.client(None), Ok("ci"));
        assert_eq!(permit.client(Some("ci")), Ok("ci"));
        assert_eq!(permit.client(Some("ci-7")), Ok("ci-7"));
        assert_eq!(permit.client(Some("ops")), Err("ops"));
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for right in Right::ALL {
            assert_eq!(right.word().parse(), Ok(right));
        }
        for wrong in ["", "See", "all", "see,claim"] {
            assert!(wrong.parse::<Right>().is_err());
        }
    }

    fn any_permit() -> impl Strategy<Value = Permit> {
        let rights = prop::collection::vec(0..4usize, 0..4);
        let pools = prop::collection::vec("[ab]{0,2}\\*?[ab]{0,1}", 0..3);
        (rights, pools, prop::option::of(0..4u32)).prop_map(|(rights, pools, most_units)| Permit {
            may: rights.into_iter().map(|right| Right::ALL[right]).collect(),
            pools: pools.iter().filter_map(|pool| pool.parse().ok()).collect(),
            most_units,
            ..Permit::everything("x")
        })
    }

    proptest! {
        #[test]
        fn a_permit_that_lacks_something_allows_nothing_that_the_whole_one_refuses(
            permit in any_permit(),
            pool in "[ab]{1,3}",
            right in 0..4usize,
            units in 0..5u32,
            lost in 0..4usize,
        ) {
            let demand = Demand { units: Some(units), ..Demand::of(Right::ALL[right], &pool) };
            let may = permit.may.named().filter(|right| *right != Right::ALL[lost]).collect();
            let pools: Vec<Pattern> = permit.pools.iter().skip(1).cloned().collect();
            let less = [
                Permit { may, ..permit.clone() },
                Permit { pools, ..permit.clone() },
                Permit { most_units: Some(0), ..permit.clone() },
                Permit { expires: Some(Date::after(NOW)), ..permit.clone() },
            ];
            let allowed = permit.decide(demand, NOW).is_ok();
            for less in less {
                prop_assert!(allowed || less.decide(demand, NOW).is_err(), "{:?}", less);
            }
        }

        #[test]
        fn a_pool_that_is_not_known_is_hidden_whatever_is_wanted(
            permit in any_permit(),
            pool in "[ab]{1,3}",
            right in 0..4usize,
        ) {
            let decided = permit.decide(Demand::of(Right::ALL[right], &pool), NOW);
            prop_assert_eq!(decided == Err(Refusal::Hidden), !permit.knows(&pool));
        }
    }
}

//! The scenarios of `scenarios.txt`, read.

use std::fmt;

/// One scenario.
#[derive(Default, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) lease: Option<String>,
    pub(crate) durable: bool,
    pub(crate) labels: bool,
    /// Protocols that have no such option.
    pub(crate) cannot: Vec<String>,
    pub(crate) only_nodes: bool,
    pub(crate) steps: Vec<Step>,
}

/// How long leases last that do not end within a scenario.
const LONG_LEASE: &str = "1h";

/// Two units that differ.
const LABELLED: &str = r#"[
    { name = "left", labels = { kind = "a", place = "here" } },
    { name = "right", labels = { kind = "b", place = "here" } },
]"#;

impl Scenario {
    /// The pool of this scenario, as a node's configuration has it.
    pub(crate) fn pool(&self, options: &str) -> String {
        let lease = self.lease.as_deref().unwrap_or(LONG_LEASE);
        let durable = if self.durable { "durable = true\n" } else { "" };
        let units = if self.labels { LABELLED } else { "2" };
        format!(
            "[[pools]]\nname = \"p\"\nunits = {units}\nlease = \"{lease}\"\n{durable}{options}\n"
        )
    }

    /// What is expected of a protocol, in the order of the scenario.
    pub(crate) fn expected(&self, protocol: &str) -> Vec<(String, String)> {
        let expected = self.steps.iter().filter_map(|step| match step {
            Step::Expect { client, state, others } => {
                let other = others.iter().find(|(names, _)| names.iter().any(|n| n == protocol));
                let state = other.map_or(state, |(_, state)| state);
                Some((format!("c{client}"), state.clone()))
            }
            Step::Differ { .. } => Some(("differ".into(), "conflict".into())),
            _ => None,
        });
        expected.collect()
    }

    pub(crate) fn crashes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Crash(_)))
    }
}

/// One line of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// One unit for each selector, if there are any.
    Claim {
        client: u32,
        node: usize,
        units: u32,
        selectors: Vec<String>,
    },
    Again {
        client: u32,
        node: usize,
    },
    Renew {
        client: u32,
        node: usize,
    },
    Release(u32),
    Cancel(u32),
    Differ {
        client: u32,
        units: u32,
    },
    Cut,
    Heal,
    Crash(usize),
    Restart {
        node: usize,
        forgot: bool,
    },
    Pass,
    Expect {
        client: u32,
        state: String,
        others: Vec<(Vec<String>, String)>,
    },
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A state in the word that was asked for, if it is meant by that word.
pub(crate) fn as_asked<'a>(seen: &'a str, asked: &'a str) -> &'a str {
    match (asked, seen) {
        ("served", "granted" | "lost") | ("over", "cancelled" | "released") => asked,
        _ => seen,
    }
}

/// All of them.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = Vec::new();
    for line in include_str!("scenarios.txt").lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with(' ') {
            all.push(Scenario { name: line.into(), ..Scenario::default() });
            continue;
        }
        let scenario = all.last_mut().expect("a name comes first");
        read(scenario, line.trim()).unwrap_or_else(|| panic!("{scenario}: '{line}'"));
    }
    all
}

fn read(scenario: &mut Scenario, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match words[..] {
        ["with", "lease", lease] => scenario.lease = Some(lease.into()),
        ["with", "durable"] => scenario.durable = true,
        ["with", "labels"] => scenario.labels = true,
        ["cannot", ref who @ ..] => scenario.cannot = names(who),
        ["only", "nodes:", ..] => scenario.only_nodes = true,
        _ => scenario.steps.push(step(&words, line)?),
    }
    Some(())
}

fn step(words: &[&str], line: &str) -> Option<Step> {
    Some(match *words {
        ["claim", who, at, units, ref selectors @ ..] => Step::Claim {
            client: client(who)?,
            node: node(at)?,
            units: units.parse().ok()?,
            selectors: selectors.iter().map(|word| (*word).to_owned()).collect(),
        },
        ["again", who, at] => Step::Again { client: client(who)?, node: node(at)? },
        ["renew", who, at] => Step::Renew { client: client(who)?, node: node(at)? },
        ["release", who] => Step::Release(client(who)?),
        ["cancel", who] => Step::Cancel(client(who)?),
        ["differ", who, units] => Step::Differ { client: client(who)?, units: units.parse().ok()? },
        // The road between these two is the one that can be cut.
        ["cut", "n0", "n1"] => Step::Cut,
        ["heal", "n0", "n1"] => Step::Heal,
        ["crash", at] => Step::Crash(node(at)?),
        ["restart", at, how] => {
            let forgot = how == "forgot";
            (forgot || how == "kept").then(|| node(at)).flatten()?;
            Step::Restart { node: node(at)?, forgot }
        }
        ["pass"] => Step::Pass,
        _ => expectation(line)?,
    })
}

/// `c2 granted; ring broadcast: waiting`.
fn expectation(line: &str) -> Option<Step> {
    let mut parts = line.split(';');
    let (who, state) = parts.next()?.split_once(' ')?;
    let others = parts.map(|part| {
        let (names, state) = part.split_once(':')?;
        let names = names.split_whitespace().map(String::from).collect();
        Some((names, state.trim().to_owned()))
    });
    let others = others.collect::<Option<_>>()?;
    Some(Step::Expect { client: client(who)?, state: state.into(), others })
}

fn client(word: &str) -> Option<u32> {
    word.strip_prefix('c')?.parse().ok()
}

fn node(word: &str) -> Option<usize> {
    word.strip_prefix('n')?.parse().ok().filter(|node| *node < crate::NODES)
}

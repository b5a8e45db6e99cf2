//! Options that only some protocols have. One that the chosen protocol does not have is refused.

use std::fmt;

use anyhow::{Context, bail, ensure};
use quorate_core::NodeId;

use super::broadcast::CrashOptions;
use super::quorums::QuorumOptions;
use super::sharing::SharingOptions;
use super::{Registered, Variant, registry};

/// Options of protocols, as chosen on the command line.
#[derive(clap::Args, Clone, Default, Debug)]
pub(crate) struct Options {
    /// broadcast, ring: which variant [default: weighted, train]; central: labels, moving
    #[arg(long, value_enum)]
    pub(super) variant: Option<Variant>,
    #[command(flatten)]
    pub(crate) crashes: CrashOptions,
    /// ring: run on this network, a file with two node numbers per line for each link
    #[arg(long, value_name = "FILE", value_parser = Graph::read)]
    pub(crate) graph: Option<Graph>,
    #[command(flatten)]
    pub(crate) quorums: QuorumOptions,
    #[command(flatten)]
    pub(crate) sharing: SharingOptions,
}

/// Options that some protocols share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    /// What is known of crashes.
    Crashes,
    /// Which quorums decide.
    Quorums,
    /// Who may use what.
    Sharing,
    /// Which links there are.
    Graph,
}

impl Options {
    /// The variant's name, if one was chosen.
    pub(crate) fn variant(&self) -> Option<&'static str> {
        self.variant.map(|variant| variant.name)
    }

    /// What was given of each group, as words of a command.
    fn given(&self) -> [(Group, String); 4] {
        let graph = self.graph.as_ref().map(|graph| format!(" --graph {}", graph.path));
        [
            (Group::Crashes, self.crashes.to_string()),
            (Group::Quorums, self.quorums.words()),
            (Group::Sharing, self.sharing.words()),
            (Group::Graph, graph.unwrap_or_default()),
        ]
    }

    /// Refuses what this protocol does not have.
    pub(crate) fn fit(&self, protocol: &Registered) -> anyhow::Result<()> {
        if let Some(name) = self.variant() {
            let has = |one: &&Registered| one.variants.iter().any(|variant| variant.name == name);
            let of = registry().iter().find(has).map_or("no protocol", |one| one.name);
            ensure!(has(&protocol), "--variant {name} is one of {of}, not of {}", protocol.name);
        }
        for (group, words) in self.given() {
            if words.is_empty() || protocol.options.contains(&group) {
                continue;
            }
            let owners = registry().iter().filter(|one| one.options.contains(&group));
            match &owners.map(|one| one.name).collect::<Vec<_>>()[..] {
                [firsts @ .., last] if !firsts.is_empty() => {
                    bail!("only {} and {last} have{words}", firsts.join(", "))
                }
                owner => bail!("only {} has{words}", owner.concat()),
            }
        }
        Ok(())
    }
}

/// What has to be said on a command line to get the same again.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(variant) = self.variant() {
            write!(f, " --variant {variant}")?;
        }
        self.given().iter().try_for_each(|(_, words)| f.write_str(words))
    }
}

/// A network, by its links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Graph {
    path: String,
    pub(crate) edges: Vec<(NodeId, NodeId)>,
}

impl Graph {
    fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let edges = parse_edges(&text).map_err(|error| format!("{error:#}"))?;
        Ok(Graph { path: path.to_string(), edges })
    }

    /// How many nodes it has.
    pub(crate) fn nodes(&self) -> u32 {
        let ends = self.edges.iter().map(|(a, b)| a.0.max(b.0));
        ends.max().map_or(0, |last| last.saturating_add(1))
    }
}

/// Two numbers of nodes per line; `#` begins a comment.
fn parse_edges(text: &str) -> anyhow::Result<Vec<(NodeId, NodeId)>> {
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [a, b] => {
                let node = |word: &str| -> anyhow::Result<NodeId> {
                    let index = word.parse().with_context(|| format!("line {number}: '{word}'"))?;
                    Ok(NodeId(index))
                };
                edges.push((node(a)?, node(b)?));
            }
            _ => bail!("line {number}: a link has two nodes, as in '0 3'"),
        }
    }
    Ok(edges)
}

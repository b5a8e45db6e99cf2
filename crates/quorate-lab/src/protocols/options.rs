//! Options that only some protocols have. One that the chosen protocol does not have is refused.

use std::fmt;

use anyhow::{Context, bail, ensure};
use quorate_core::NodeId;

use super::Name;
use super::broadcast::CrashOptions;
use super::quorums::QuorumOptions;
use super::sharing::SharingOptions;

/// Options of protocols, as chosen on the command line.
#[derive(clap::Args, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Options {
    /// broadcast, ring: which variant [default: weighted, train]; central: labels or none
    #[arg(long, value_enum)]
    pub(crate) variant: Option<Variant>,
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

/// The variants of all protocols, by name.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    /// broadcast: h units at a time, crashes found: what the daemon runs
    Weighted,
    /// broadcast: Bouillaguet, Arantes and Sens 2009, corrected
    TimerFree,
    /// broadcast: Raymond 1989
    Raymond,
    /// broadcast: Raynal 1991
    Raynal,
    /// central, drawn plans: labels, moves, an operator; every theorem is judged
    Labels,
    /// ring: all messages in one frame: what the daemon runs
    Train,
    /// ring: the paper's messages
    Core,
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Weighted => "weighted",
            Variant::TimerFree => "timer-free",
            Variant::Raymond => "raymond",
            Variant::Raynal => "raynal",
            Variant::Labels => "labels",
            Variant::Train => "train",
            Variant::Core => "core",
        }
    }

    fn of(self) -> Name {
        match self {
            Variant::Weighted | Variant::TimerFree | Variant::Raymond | Variant::Raynal => {
                Name::Broadcast
            }
            Variant::Labels => Name::Central,
            Variant::Train | Variant::Core => Name::Ring,
        }
    }
}

impl Options {
    /// Refuses what this protocol does not have.
    pub(crate) fn fit(&self, protocol: Name) -> anyhow::Result<()> {
        if let Some(variant) = self.variant {
            let (of, name) = (variant.of(), variant.name());
            ensure!(of == protocol, "--variant {name} is one of {of}, not of {protocol}");
        }
        let broadcast = protocol == Name::Broadcast || self.crashes == CrashOptions::default();
        ensure!(broadcast, "only broadcast has{}", self.crashes);
        ensure!(protocol == Name::Ring || self.graph.is_none(), "only ring has --graph");
        let by_quorums = matches!(protocol, Name::Arbiter | Name::Ticket | Name::Table);
        let words = self.quorums.words();
        ensure!(by_quorums || words.is_empty(), "only arbiter, ticket and table have{words}");
        let words = self.sharing.words();
        ensure!(protocol == Name::Sharing || words.is_empty(), "only sharing has{words}");
        Ok(())
    }
}

/// What has to be said on a command line to get the same again.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(variant) = self.variant {
            write!(f, " --variant {}", variant.name())?;
        }
        write!(f, "{}{}{}", self.crashes, self.quorums.words(), self.sharing.words())?;
        match &self.graph {
            Some(graph) => write!(f, " --graph {}", graph.path),
            None => Ok(()),
        }
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

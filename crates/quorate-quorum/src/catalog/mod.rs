//! The catalogue: one construction, one paper, one file.
//!
//! [`build`] turns what is written on a command line (`wall:3,4,5`) into a [`Family`]. Numbers
//! after the colon are what the numbers of nodes and units do not fix; [`NAMES`] says what they
//! mean.

mod brick;
mod cohorts;
mod cube;
mod field;
mod grid;
mod hierarchy;
mod k_majority;
mod k_singleton;
mod layers;
mod majority;
mod plane;
mod singleton;
mod space;
mod threshold;
mod tree;
mod uniform;
mod universe;
mod wall;
mod weighted;

use crate::rule::Rule;
use crate::{Expr, Formula, ParseError};

pub use brick::Brick;
pub use cohorts::{cohort_widths, cohorts};
pub use cube::{Cube, base as cube_base, cube, cube_as_printed};
pub use field::{Field, prime_power};
pub use grid::grid;
pub use hierarchy::hierarchy;
pub use k_majority::{k_majority, k_majority_is_k_coterie};
pub use k_singleton::k_singleton;
pub use layers::Layers;
pub use majority::majority;
pub use plane::plane;
pub use singleton::singleton;
pub use space::Space;
pub use threshold::threshold;
pub use tree::tree;
pub use uniform::{uniform, uniform_size};
pub use universe::universe;
pub use wall::{wall, wall_widths};
pub use weighted::weighted;

/// A family with the name it was asked for.
#[derive(Debug)]
pub struct Family {
    /// As asked for, parameters included.
    pub name: String,
    /// What it is.
    pub rule: Box<dyn Rule>,
}

/// Most nodes a family of the catalogue may have: beyond it exact counts take longer than they are
/// worth.
pub const NODES_MAX: usize = 100_000;

/// Why a family cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FamilyError {
    /// No such name.
    #[error("no family is called '{0}'; there are {names}", names = known())]
    Unknown(String),
    /// The number of nodes does not fit the construction.
    #[error("{family}: {problem}")]
    Fit {
        /// The construction.
        family: &'static str,
        /// What does not fit, and what would.
        problem: String,
    },
    /// The parameters cannot be read.
    #[error("'{0}' is not a list of numbers from 1 to {NODES_MAX} separated by commas")]
    Parameters(String),
    /// The expression cannot be read.
    #[error(transparent)]
    Expression(#[from] ParseError),
}

impl FamilyError {
    fn fit(family: &'static str, problem: impl Into<String>) -> Self {
        FamilyError::Fit { family, problem: problem.into() }
    }
}

/// Every name, what may follow the colon, and what it is.
pub const NAMES: &[(&str, &str, &str)] = &[
    ("singleton", "", "one node decides"),
    ("universe", "", "all nodes decide"),
    ("majority", "", "more than half of the nodes"),
    ("weighted", ":votes,...", "more than k/(k+1) of the votes; one number per node"),
    ("grid", "[:rows,columns]", "a row and a column; a square unless said otherwise"),
    ("plane", "[:order]", "lines of a projective plane; nodes = q^2+q+1, q a prime power"),
    ("uniform", "", "any n - floor((n-1)/(k+1)) nodes"),
    ("cube", "[:sides,...]", "k+1 hyperplanes of a cube, minimal, for every number of nodes"),
    ("cube-as-printed", "", "the paper's construction for every n: one quorum per node"),
    ("space", "[:dimension,order]", "hyperplanes of PG(k+1,q); nodes = (q^(k+2)-1)/(q-1)"),
    ("tree", "[:depth]", "root and k of k+1 subtrees, or all of them; nodes = ((k+1)^(d+1)-1)/k"),
    ("wall", "[:rows,...]", "a full row and a (k-1)-arbiter of every lower row"),
    ("hierarchy", "[:outer,...,inner]", "uniform of uniform; nodes = product of the numbers"),
    ("threshold", "[:h]", "quorums of a request for h units (1 unless said otherwise)"),
    ("k-singleton", "", "k nodes, each a quorum (a k-coterie)"),
    ("k-majority", "", "any ceil((n+1)/(k+1)) nodes (a k-coterie for some n)"),
    ("cohorts", "[:sizes,...]", "cohorts, the first of k nodes (a k-coterie)"),
    ("expr", ":EXPRESSION", "any, all, choose, majority, weighted and dual over node numbers"),
];

fn known() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _, _)| *name).collect();
    names.join(", ")
}

/// Builds a family. `nodes` may be left out where the parameters fix it. On error nothing is built.
pub fn build(spec: &str, nodes: Option<usize>, units: usize) -> Result<Family, FamilyError> {
    let (name, text) = spec.split_once(':').unwrap_or((spec, ""));
    if units == 0 {
        return Err(FamilyError::fit("every family", "a pool has at least one unit"));
    }
    let limit = NODES_MAX;
    if nodes.is_some_and(|nodes| nodes == 0 || nodes > limit) {
        return Err(FamilyError::fit("every family", format!("nodes must be from 1 to {limit}")));
    }
    let params = if name == "expr" { Vec::new() } else { numbers(text)? };
    let exactly =
        || nodes.ok_or_else(|| FamilyError::fit("every family", "say how many nodes there are"));
    let rule: Box<dyn Rule> = match name {
        "singleton" => Box::new(singleton(exactly()?)),
        "universe" => Box::new(universe(exactly()?)),
        "majority" => Box::new(majority(exactly()?)),
        "weighted" => Box::new(weighted(&params, nodes, units)?),
        "grid" => grid(&params, nodes)?,
        "plane" => Box::new(plane(&params, nodes)?),
        "uniform" => Box::new(uniform(exactly()?, units)),
        "cube" | "box" => cube(&params, nodes, units)?,
        "cube-as-printed" => Box::new(cube_as_printed(exactly()?, units)),
        "space" => Box::new(space::space(&params, nodes, units)?),
        "tree" => Box::new(tree(&params, nodes, units)?),
        "wall" => Box::new(wall(&params, nodes, units)?),
        "hierarchy" => Box::new(hierarchy(&params, nodes, units)?),
        "threshold" => Box::new(threshold(&params, exactly()?, units)?),
        "k-singleton" => Box::new(k_singleton(exactly()?, units)?),
        "k-majority" => Box::new(k_majority(exactly()?, units)),
        "cohorts" => Box::new(cohorts(&params, nodes, units)?),
        "expr" => Box::new(expression(text, nodes)?),
        _ => return Err(FamilyError::Unknown(name.to_owned())),
    };
    const PARAMETERLESS: &[&str] = &[
        "singleton",
        "universe",
        "majority",
        "uniform",
        "cube-as-printed",
        "k-singleton",
        "k-majority",
    ];
    if PARAMETERLESS.contains(&name) && !params.is_empty() {
        return Err(FamilyError::fit("parameters", format!("{name} takes none")));
    }
    Ok(Family { name: spec.to_owned(), rule })
}

fn expression(text: &str, nodes: Option<usize>) -> Result<Formula, FamilyError> {
    let expr: Expr = text.parse()?;
    let formula = Formula::new(nodes.unwrap_or(1), expr);
    match nodes {
        Some(nodes) if formula.nodes() > nodes => {
            let last = formula.nodes() - 1;
            let problem = format!("it names node {last}, but the nodes are 0 to {}", nodes - 1);
            Err(FamilyError::fit("expr", problem))
        }
        _ => Ok(formula),
    }
}

fn numbers(text: &str) -> Result<Vec<usize>, FamilyError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let limit = NODES_MAX;
    text.split(',')
        .map(|part| part.trim().parse().ok().filter(|number| (1..=limit).contains(number)))
        .collect::<Option<_>>()
        .ok_or_else(|| FamilyError::Parameters(text.to_owned()))
}

/// The number of nodes the parameters give, which must be what was asked for.
fn agree(family: &'static str, nodes: Option<usize>, built: usize) -> Result<(), FamilyError> {
    match nodes {
        Some(nodes) if nodes != built => {
            Err(FamilyError::fit(family, format!("its parameters give {built} nodes, not {nodes}")))
        }
        _ => Ok(()),
    }
}

//! What `arbiter`, `ticket` and `table` are told about the quorums that decide.

use quorate_protocols::quorums::Quorums;
use quorate_protocols::voting::{Mode, Settled, Terms};

use crate::config::{Basis, Options};

/// The pool of this mode, in which only its quorums are decided, and what these are worth.
pub(super) fn settle(
    mode: Mode,
    basis: &Basis<'_>,
    options: &mut Options,
) -> Result<Settled, String> {
    let (units, nodes) = (basis.units, basis.nodes());
    let terms = Terms {
        mode,
        family: options.take("family")?,
        max_holders: match mode {
            Mode::Table => None,
            _ => options.number("max_holders", (1, units))?,
        },
        voters: options.number("voters", (1, nodes))?,
        survive: options.number("survive", (0, nodes))?,
        naming: options.take("naming")?.unwrap_or(false),
    };
    terms.settle(nodes, units).map_err(|error| error.to_string())
}

/// After how many tries a node asks others beside those that do not answer, if it is said.
pub(super) fn patience(options: &mut Options) -> Result<Option<u32>, String> {
    options.number("patience", (1, 1000))
}

/// Quorums as every member must know them.
pub(super) fn agreed(quorums: &Quorums) -> String {
    match quorums {
        Quorums::Threshold { members, size } => format!("{size} of {members}"),
        Quorums::BySize { members, sizes } => format!("{sizes:?} of {members}"),
        Quorums::Explicit(sets) => format!("{sets:?}"),
        Quorums::Nested(family) => format!("{family:?}"),
    }
}

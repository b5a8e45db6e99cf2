//! What the control plane does in worlds in which the seat moves.

use quorate_check::Council;
use quorate_core::NodeId;

/// Options of `central --variant moving`. Node 0 decides first.
#[derive(clap::Args, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chair {
    /// moving: how often the seat goes to another node although its own is there
    #[arg(long, default_value_t = 0)]
    moves: u8,
    /// moving: how often a client goes to another node
    #[arg(long, default_value_t = 0)]
    rehomes: u8,
    /// moving: n1 shadows the seat from the beginning
    #[arg(long)]
    shadow: bool,
    /// moving: how often a shadow is named where there is none
    #[arg(long, default_value_t = 0)]
    namings: u8,
    /// moving: how often a shadow is struck although its node is there
    #[arg(long, default_value_t = 0)]
    strikes: u8,
}

impl Chair {
    /// Whether anything was asked for.
    pub(crate) fn any(self) -> bool {
        let Chair { moves, rehomes, shadow, namings, strikes } = self;
        shadow || [moves, rehomes, namings, strikes] != [0; 4]
    }

    /// The control plane that does this.
    pub(crate) fn council(self) -> Council {
        let Chair { moves, rehomes, shadow, namings, strikes } = self;
        let shadow = shadow.then_some(NodeId(1));
        Council { moves, rehomes, shadow, namings, strikes, ..Council::of(NodeId(0)) }
    }
}

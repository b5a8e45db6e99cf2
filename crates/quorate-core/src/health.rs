//! How a participant is: what drivers tell clients and operators rests on it.

use crate::NodeSet;

/// How a participant is, see [`Protocol::health`](crate::Protocol::health). A protocol fills in
/// what it knows; the rest says that nothing is the matter.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Health {
    /// How new its copy of the books is, where every participant keeps one: the newest counts.
    pub edition: (u64, u64),
    /// If it does not take part yet: those whose answers it waits for, which may be none.
    pub joining: Option<NodeSet>,
    /// Those that it believes to have crashed.
    pub crashed: NodeSet,
    /// Those that do not answer and are counted as using all that a node may...
    pub silent: NodeSet,
    /// ...and so many units nobody can have because of that.
    pub units_lost: u32,
    /// Those that are not counted any more, so that others may have what they had. None where
    /// nobody is ever counted out.
    pub counted_out: Option<NodeSet>,
    /// Whether it is taken for crashed while it runs.
    pub falsely_suspected: bool,
    /// Whether more nodes are away than the pool allows for.
    pub too_many_crashed: bool,
}

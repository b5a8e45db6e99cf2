//! Every limit of the vocabulary, by name.

/// Most units a pool may have. Unit indices and fences stay small numbers everywhere.
pub const UNITS_MAX: u32 = 1 << 20;

/// Most nodes a pool may have: room for the simulator's million with some to spare.
pub const NODES_MAX: u32 = 1 << 24;

/// Most lines (selector and count) one claim may carry.
pub const LINES_MAX: usize = 64;

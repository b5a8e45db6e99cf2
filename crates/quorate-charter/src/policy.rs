//! What the leader of a control plane wants: who should vote, and who should decide for which
//! groups. Plain values and functions without IO: whoever drives them brings the time and what it
//! heard, and proposes what comes out. A proposal may fail; then the same is wanted again.

pub mod seating;
pub mod votes;

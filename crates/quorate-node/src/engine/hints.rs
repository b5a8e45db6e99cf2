//! Which other node decides over a pool, said to clients, so that their next claims go there and
//! take a message less each way. A hint and nothing more: this node takes every claim all the same,
//! what was asked for here stays here, and who does not know the other node, or cannot reach it,
//! asks on here.

use std::sync::Arc;

use quorate_api::link::FromNode;
use quorate_core::NodeId;

use super::Engine;
use crate::answers::Answers;

impl Engine {
    /// Who alone decides over a pool in use here, as far as this node knows.
    pub(super) fn decider(&self, seat: usize) -> Option<NodeId> {
        let pool = &self.pools[seat];
        match pool.def.protocol.about.seat_moves {
            true => self.decides_now(pool),
            false => pool.def.protocol.decides(&pool.name, self.config.members.len()),
        }
    }

    /// A pool came into use, was changed, or another node decides over it.
    pub(super) fn learn_decider(&mut self, seat: usize) {
        let other = self.decider(seat).filter(|node| *node != self.config.me);
        let decides = other.map(|node| (node, Arc::from(self.name_of(node))));
        self.pools[seat].terms.decides = decides;
    }

    /// Somebody claims on this connection: it hears who decides, unless it has, if that node is
    /// well as far as this one knows.
    pub(super) fn hint(&self, seat: usize, connection: &Answers) {
        let pool = &self.pools[seat];
        match &pool.terms.decides {
            None => connection.forget_hint(seat),
            Some((node, name)) if self.answers_soon(*node) && connection.is_news(seat, *node) => {
                let (pool, node) = (pool.name.to_string(), name.to_string());
                connection.send(&FromNode::Decides { pool, node });
            }
            Some(_) => {}
        }
    }
}

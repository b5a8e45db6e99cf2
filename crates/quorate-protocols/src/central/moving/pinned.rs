//! A pool that was decided by the node that files name, until the charter says who decides (charter
//! spec S18).
//!
//! Until then that node needs no licence, and its homes speak to it as in a pool that is pinned:
//! all know who it is, and nobody else decides. Then it gives that up (*unpinned*): from that step
//! on it grants and renews nothing, its driver writes that down, and only after this does the
//! charter get its first entry. So at the commit of that entry nobody decides, and what was granted
//! before is in the books of a seat that has stopped. They open the seat of the first term as the
//! books of any term open that of the next (charter spec S11). If they are lost, or that life of
//! the node is, the first term waits as after a crash.
//!
//! A life that the node's driver does not call has given it up, or does not know: it decides
//! nothing until the charter says that it does.

use quorate_core::{Outbox, Tenure};

use super::reign::{Reign, Stage};
use super::{Alarm, Desk, Moving, Pool, Seat, judge};
use crate::central::pool::broken;

/// Who decides before the charter says who does.
pub(super) fn tenure(pool: &Pool) -> Option<Tenure> {
    let (term, after, boot) = (Tenure::PINNED, None, 0);
    pool.pinned.map(|node| Tenure { term, after, node, boot })
}

impl Moving {
    /// This life of the node that files name decides.
    pub(super) fn pin(&mut self, seat: &Seat<'_>, tenure: Tenure, desk: &mut Desk<'_>) {
        let stands = self.applied.is_some_and(|it| it.term == tenure.term && it.node == seat.me);
        let called = (tenure.node, tenure.boot) == (seat.me, seat.boot);
        if !stands || !called || self.reign.is_some() {
            return;
        }
        self.applied = Some(tenure);
        let at = judge(seat, tenure.term);
        let mut reign = Reign::new(&at, tenure, &mut Outbox::new());
        reign.arbiter.longest = self.leases.longest;
        reign.pinned = true;
        // Nobody else has a licence: it need not wait for that.
        reign.stage = Stage::Grace;
        self.reign = Some(Box::new(reign));
        match self.is_first {
            true => self.as_seat(seat, desk, Reign::open),
            false => desk.out.arm(Alarm::Grace, self.leases.longest),
        }
    }

    /// It decides no more: what it granted is final.
    pub(super) fn unpin(&mut self, seat: &Seat<'_>) {
        if broken!(judge(seat, Tenure::PINNED), GoOnUnpinned) {
            return;
        }
        if let Some(reign) = &mut self.reign {
            reign.pinned = false;
        }
    }
}

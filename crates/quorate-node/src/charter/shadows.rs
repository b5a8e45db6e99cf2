//! What this node's seats want said of their shadows: that one is whole, or is to be struck
//! (charter spec S15, S16). Whoever leads names them ([`quorate_charter::policy`]).
//!
//! Of all groups in one entry, and each on the condition that the naming stands which it is about.
//! What was refused is looked at anew in a state that a majority confirms: nothing is proposed
//! twice in vain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_charter::{Change, Charter, Council, Group, Life, Request, Trouble};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{Hall, Part, locked, request_id, term_of};

/// Others may want something in a moment: then it is said in the same entry.
const GATHER: Duration = Duration::from_millis(30);
/// How long to wait before it is said again when nobody led.
const AGAIN: Duration = Duration::from_millis(200);

/// What a seat wants said of its shadow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// It knows all that is in force in all pools of the group.
    Whole,
    /// It does not answer.
    Strike,
}

/// What is to be said of the shadow of each group: in which term it was named, and as whom.
#[derive(Debug, Default)]
pub(super) struct Wants {
    all: Mutex<BTreeMap<Group, (u32, u64, Want)>>,
    more: Notify,
}

impl Hall {
    /// Something is to be said of the shadow of a group.
    pub(crate) fn wants(&self, group: Group, (term, naming): (u32, u64), want: Want) {
        let before = locked(&self.wants.all).insert(group, (term, naming, want));
        if before != Some((term, naming, want)) {
            self.wants.more.notify_one();
        }
    }

    /// What is to be said of the shadow of a group: of which term and naming.
    #[cfg(test)]
    pub(crate) fn wanted(&self, group: Group) -> Option<(u32, u64, Want)> {
        locked(&self.wants.all).get(&group).copied()
    }

    /// What of that can be said now. What cannot any more is forgotten.
    fn sayable(&self, charter: &Charter, me: Life) -> Vec<Change> {
        let mut changes = Vec::new();
        locked(&self.wants.all).retain(|group, (term, naming, want)| {
            let change = change(charter, me, *group, (*term, *naming, *want));
            let is_one = change.is_some();
            changes.extend(change);
            is_one
        });
        changes
    }
}

/// What there is to say of one group, if that is still so.
fn change(
    charter: &Charter,
    me: Life,
    group: Group,
    (term, naming, want): (u32, u64, Want),
) -> Option<Change> {
    let seat = charter.seats().get(&group).filter(|seat| seat.life == me)?;
    let shadow = seat.shadow.filter(|shadow| shadow.naming == naming)?;
    let is_now = term_of(charter, seat.term) == term;
    match want {
        _ if !is_now => None,
        Want::Whole if shadow.whole => None,
        Want::Whole => Some(Change::Whole { group, term: seat.term, naming }),
        Want::Strike => Some(Change::Shadow { group, term: seat.term, seen: naming, shadow: None }),
    }
}

/// Says what is to be said, for ever.
pub(super) async fn run(hall: Arc<Hall>, part: Part) {
    let me = Life { member: part.identity().member, boot: hall.boot.into() };
    loop {
        hall.wants.more.notified().await;
        sleep(GATHER).await;
        loop {
            let charter = Arc::clone(&part.watch().borrow().charter);
            let changes = hall.sayable(&charter, me);
            if changes.is_empty() {
                break;
            }
            match part.propose(Request { id: request_id(), changes }).await {
                Ok(Ok(_)) => {}
                Ok(Err(refused)) => tracing::debug!(%refused, "what is said of shadows"),
                Err(Trouble::Stopped(_)) => return,
                Err(trouble) => {
                    tracing::debug!(%trouble, "what is said of shadows");
                    sleep(AGAIN).await;
                }
            }
            // This member has then applied whatever that came to, or what stood against it.
            while part.read().await.is_err() {
                sleep(AGAIN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_charter::{About, Birth, ClusterId, MemberId, Move, Newcomer};

    use super::*;

    /// A word about a shadow is for one naming in one term of one life, and once.
    #[test]
    fn what_is_no_longer_so_is_not_said() {
        let mut charter = Charter::default();
        let mut index = 0;
        let mut done = |change| {
            index += 1;
            let request = Request::one(request_id(), change);
            charter.apply(index, &request).expect("allowed");
            charter.clone()
        };
        let newcomer = |number: u8| Newcomer {
            name: format!("n{number}"),
            birth: Birth([number; 16]),
            about: About { addresses: vec!["there".into()], ..About::default() },
        };
        let (cluster, group) = (ClusterId([1; 16]), Group(7));
        done(Change::Found { cluster, incarnation: 1, founder: newcomer(0) });
        done(Change::Join(newcomer(1)));
        let me = Life { member: MemberId::FOUNDER, boot: 4 };
        done(Change::Seats { moves: vec![Move { group, term: 0, to: me }] });
        let shadow = Life { member: MemberId(2), boot: 9 };
        let name = |seen, shadow| Change::Shadow { group, term: 1, seen, shadow };
        let term = 65_536 + 1;
        let named = done(name(0, Some(shadow)));
        let says = |charter: &Charter, me, term, naming, want| {
            change(charter, me, group, (term, naming, want))
        };
        let whole = Some(Change::Whole { group, term: 1, naming: 4 });
        assert_eq!(says(&named, me, term, 4, Want::Whole), whole);
        assert_eq!(says(&named, me, term, 4, Want::Strike), Some(name(4, None)));
        assert_eq!(says(&named, me, term, 3, Want::Strike), None);
        assert_eq!(says(&named, me, term + 1, 4, Want::Whole), None);
        assert_eq!(says(&named, Life { boot: 5, ..me }, term, 4, Want::Whole), None);
        let said = done(Change::Whole { group, term: 1, naming: 4 });
        assert_eq!(says(&said, me, term, 4, Want::Whole), None, "it was said");
        let again = {
            done(name(4, None));
            done(name(0, Some(shadow)))
        };
        assert_eq!(says(&again, me, term, 4, Want::Whole), None, "that was of another naming");
        assert_eq!(says(&again, me, term, 4, Want::Strike), None);
    }
}

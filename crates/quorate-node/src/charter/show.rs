//! What people see of the charter.

use quorate_api::{CharterMember, CharterView};
use quorate_charter::Council;

use super::{Hall, locked, node_of};

impl Hall {
    /// How the charter stands, as far as this node knows.
    pub(crate) fn view(&self) -> CharterView {
        let Some(part) = self.part() else {
            return CharterView { problem: self.standing(), ..CharterView::default() };
        };
        let (status, reading) = (part.status(), part.watch().borrow().clone());
        let (charter, now) = (reading.charter, self.now());
        let heard = locked(&self.heard).clone();
        let name_of = |id| charter.members().get(&id).map(|member| member.name.clone());
        let member = |(id, member): (&quorate_charter::MemberId, &quorate_charter::Member)| {
            let node = node_of(&self.config, &member.name);
            let at = node.and_then(|node| heard.get(&node)).map(|seen| seen.at);
            let ago = at.map(|at| now.saturating_sub(at).as_millis());
            let groups = charter.seats().values().filter(|seat| seat.life.member == *id).count();
            CharterMember {
                name: member.name.clone(),
                votes: status.voters.contains(id),
                draining: member.draining,
                groups: u32::try_from(groups).unwrap_or(u32::MAX),
                heard_ms: ago.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
            }
        };
        CharterView {
            version: charter.version(),
            leader: status.leader.and_then(name_of),
            members: charter.members().iter().map(member).collect(),
            problem: match (&status.stopped, status.leader) {
                (Some(why), _) => Some(format!("this node's part has stopped: {why}")),
                (None, None) => Some("nobody leads it now: who decides stays as it is".into()),
                (None, Some(_)) => None,
            },
        }
    }
}

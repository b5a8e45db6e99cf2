//! What operators ask about members: who there is, that one gives away what it decides, that one
//! is removed, that one of a removed name may come again.
//!
//! An answer says how things stand: whoever asks twice asks once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{MemberRole, MemberRow, Problem, ProblemKind, RemoveRequest};
use quorate_charter::policy::votes::{self, Candidate, VOTERS_WANTED};
use quorate_charter::{Change, Charter, Council, Done, Member, MemberId, Request, Role, Trouble};
use quorate_core::{NodeId, NodeSet};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::words::{Said, Word};
use super::{Hall, Part, request_id};

/// How long what was asked for may take before whoever asked is told how far it is: less than
/// clients wait for an answer.
pub(super) const TO_DO: Duration = Duration::from_secs(6);
/// The label that says when a member joined by invitation.
pub(super) const JOINED: &str = "joined";
/// How long to wait before a change that may not have arrived is sent again, under its id.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

impl Hall {
    /// Who was removed, of the members of the file: they are cut off.
    pub(crate) fn removed(&self) -> NodeSet {
        self.removed.borrow().clone()
    }

    /// What the charter says of each member of the file.
    pub(crate) fn members(&self) -> (Option<u64>, Vec<MemberRow>) {
        let charter = self.part().map(|part| Arc::clone(&part.watch().borrow().charter));
        let view = |(place, listed): (usize, &crate::config::Member)| {
            let known = charter.as_ref().and_then(|charter| named(charter, &listed.name));
            let removed = self.removed.borrow().contains(NodeId::from(place));
            let groups = |id: MemberId| {
                let seats = charter.iter().flat_map(|charter| charter.seats().values());
                u32::try_from(seats.filter(|seat| seat.life.member == id).count())
            };
            MemberRow {
                name: listed.name.clone(),
                address: listed.peers.to_string(),
                role: match &known {
                    Some((_, Member { role: Role::Voter, .. })) => MemberRole::Voter,
                    Some(_) => MemberRole::Learner,
                    None if removed => MemberRole::Removed,
                    None => MemberRole::Absent,
                },
                id: known.as_ref().map(|(id, _)| id.0),
                draining: known.as_ref().is_some_and(|(_, member)| member.draining),
                leaving: known.as_ref().is_some_and(|(_, member)| member.leaving),
                groups: known.as_ref().map_or(0, |(id, _)| groups(*id).unwrap_or(u32::MAX)),
                connected: false,
                joined: known.and_then(|(_, member)| member.about.labels.get(JOINED).cloned()),
            }
        };
        let members = self.config.members.iter().enumerate().map(view).collect();
        (charter.map(|charter| charter.version()), members)
    }

    /// Has a member give away what it decides, or lets it decide again.
    ///
    /// # Errors
    /// Says what was left unchanged, or what is not known.
    pub(crate) async fn drain(&self, name: &str, draining: bool) -> Result<(), Problem> {
        let until = Instant::now() + TO_DO;
        let (part, charter) = self.look(until).await?;
        let (member, about) = named(&charter, name).ok_or_else(|| self.unknown(name))?;
        let others = || charter.members().iter().filter(|(id, it)| **id != member && !it.draining);
        if draining && others().next().is_none() {
            return Err(refused(format!(
                "all other members drain too, or there is none: nobody could decide instead of \
                 {name}; nothing changed"
            )));
        }
        if !draining && about.leaving {
            return Err(refused(format!(
                "{name} is being removed, and decides nothing meanwhile; nothing changed"
            )));
        }
        if about.draining != draining {
            let change = Change::DrainMember { member, draining, if_generation: None };
            self.ask_for(&part, change, until).await?;
        }
        if draining {
            let decides =
                |charter: &Charter| charter.seats().values().any(|seat| seat.life.member == member);
            let what = format!("{name} drains, and others take over what it decides");
            self.until(&part, until, |charter| !decides(charter), &what).await?;
        }
        Ok(())
    }

    /// Removes a member; `needed` are pools that would grant nothing without it.
    ///
    /// # Errors
    /// Says what was left unchanged, or what is not known.
    pub(crate) async fn remove(
        &self,
        name: &str,
        RemoveRequest { dead, force }: RemoveRequest,
        needed: &[String],
    ) -> Result<(), Problem> {
        let until = Instant::now() + TO_DO;
        let (part, charter) = self.look(until).await?;
        if charter.is_removed(name) {
            return Ok(());
        }
        let (member, about) = named(&charter, name).ok_or_else(|| self.unknown(name))?;
        if self.chartered.import && charter.seats().is_empty() && !dead {
            return Err(refused(format!(
                "{name} decides over pools of \"central\" as files say; nothing changed. Run \
                 `quorate cluster import` first: then it can hand them over"
            )));
        }
        if !about.leaving {
            let alive = self.alive(&part, &charter).await;
            match alive.contains(&member) {
                true if dead => {
                    return Err(refused(format!(
                        "{name} answers, so it is not gone; nothing changed. Leave --dead out: it \
                         then hands over what it decides"
                    )));
                }
                false if !dead => {
                    return Err(refused(format!(
                        "{name} does not answer, so it cannot hand anything over; nothing \
                         changed. Start it, or, if it is gone for good, say so with --dead"
                    )));
                }
                _ => {}
            }
            let costs = costs(&charter, member, &alive, needed);
            if !costs.is_empty() && !force {
                return Err(refused(format!(
                    "without {name} {}; nothing changed. Add a member first, or say --force if \
                     that is meant",
                    costs.join(", and ")
                )));
            }
            let change = Change::Retire { member, leaving: true, if_generation: None };
            self.ask_for(&part, change, until).await?;
        }
        let what = format!("{name} is being removed");
        let left = |charter: &Charter| !charter.members().contains_key(&member);
        self.until(&part, until, left, &what).await
    }

    /// A machine may join under the name of a member that was removed.
    ///
    /// # Errors
    /// Says what was left unchanged, or what is not known.
    pub(crate) async fn readmit(&self, name: &str) -> Result<(), Problem> {
        let until = Instant::now() + TO_DO;
        let (part, charter) = self.look(until).await?;
        if named(&charter, name).is_some() {
            return Err(conflict(format!("{name} is a member; nothing changed")));
        }
        if self.config.joins {
            return Err(refused(format!(
                "names of members are used once in this cluster, so no machine joins as {name} \
                 again; that did not change. Run `quorate member invite NAME` with a name that \
                 nobody had"
            )));
        }
        let gone = barred(&charter, name);
        if gone.is_empty() {
            return Err(self.unknown(name));
        }
        if !gone.contains(&true) {
            return Ok(());
        }
        self.ask_for(&part, Change::Readmit { name: name.to_owned() }, until).await
    }

    /// This node's part, and the charter as it is now.
    pub(super) async fn look(&self, until: Instant) -> Result<(Part, Arc<Charter>), Problem> {
        let Some(part) = self.part() else {
            let why = self.standing().unwrap_or_else(|| "it has just started".into());
            let text = format!("this node is no member of the charter yet: {why}; nothing changed");
            return Err(Problem::new(ProblemKind::Unavailable, text));
        };
        loop {
            match part.read().await {
                Ok(reading) => return Ok((part, reading.charter)),
                Err(trouble) if Instant::now() >= until => return Err(in_trouble(&trouble)),
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// Proposes until there is an answer: under one id it is done once.
    pub(super) async fn ask_for(
        &self,
        part: &Part,
        change: Change,
        until: Instant,
    ) -> Result<(), Problem> {
        let request = Request::one(request_id(), change);
        loop {
            match part.propose(request.clone()).await {
                Ok(Ok(Done { .. })) => return Ok(()),
                Ok(Err(why)) => return Err(conflict(why.to_string())),
                Err(trouble) if Instant::now() >= until => return Err(in_trouble(&trouble)),
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    pub(super) async fn until(
        &self,
        part: &Part,
        until: Instant,
        done: impl Fn(&Charter) -> bool,
        what: &str,
    ) -> Result<(), Problem> {
        let mut readings = part.watch();
        let done = readings.wait_for(|reading| done(&reading.charter));
        let waits = until.saturating_duration_since(Instant::now()).max(AGAIN);
        match timeout(waits, done).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Problem::new(
                ProblemKind::Unknown,
                format!("{what}, and that is not over yet: look with `quorate member list`"),
            )),
        }
    }

    /// Who answers now.
    async fn alive(&self, part: &Part, charter: &Charter) -> BTreeSet<MemberId> {
        let me = part.identity().member;
        let mut asked = JoinSet::new();
        for (id, member) in charter.members().iter().filter(|(id, _)| **id != me) {
            let Some(node) = self.config.members.place(&member.name) else { continue };
            let (id, lines) = (*id, Arc::clone(&self.lines));
            let patience = self.chartered.suspect_after;
            asked.spawn(async move {
                let said = timeout(patience, super::ask(&lines, node, &Word::Life)).await;
                matches!(said, Ok(Ok(Said::Life { member, .. })) if member == Some(id))
                    .then_some(id)
            });
        }
        let mut alive = BTreeSet::from([me]);
        while let Some(answer) = asked.join_next().await {
            alive.extend(answer.ok().flatten());
        }
        alive
    }

    fn unknown(&self, name: &str) -> Problem {
        let shown: String = name.chars().take(64).collect();
        let (_, members) = self.members();
        let there: Vec<String> = members.into_iter().map(|member| member.name).collect();
        let text = format!(
            "the charter has no member {shown:?}, and the file has {}; nothing changed",
            there.join(", ")
        );
        Problem::new(ProblemKind::BadRequest, text)
    }
}

/// What the removal of a member costs those who stay, in words.
fn costs(
    charter: &Charter,
    member: MemberId,
    alive: &BTreeSet<MemberId>,
    needed: &[String],
) -> Vec<String> {
    let mut costs = Vec::new();
    let candidate = |(id, it): (&MemberId, &Member)| Candidate {
        member: *id,
        zone: it.about.labels.get("zone").cloned(),
        votes: it.role == Role::Voter,
        heard: alive.contains(id),
        ready: true,
        leaving: *id == member || it.leaving,
    };
    let candidates: Vec<Candidate> = charter.members().iter().map(candidate).collect();
    let voters = |candidates: &[Candidate]| -> BTreeSet<MemberId> {
        candidates.iter().filter(|it| it.votes).map(|it| it.member).collect()
    };
    let now = voters(&candidates);
    let spare = |voters: &BTreeSet<MemberId>| {
        (voters.intersection(alive).count()).checked_sub(voters.len() / 2 + 1)
    };
    let after = votes::wanted(&candidates, VOTERS_WANTED);
    if now.contains(&member) && alive.contains(&member) {
        match after.as_ref().and_then(spare) {
            Some(0) => costs.push(
                "the charter has no vote to spare: if one more of those who vote is lost, nobody \
                 decides over pools whose seat moves until it is back"
                    .to_owned(),
            ),
            None => costs.push("no majority of those who vote is left".to_owned()),
            Some(_) => {}
        }
    }
    if !needed.is_empty() {
        let pools = needed.join(", ");
        costs.push(format!("nothing is granted any more in pools that need it ({pools})"));
    }
    costs
}

fn named(charter: &Charter, name: &str) -> Option<(MemberId, Member)> {
    let known = charter.members().iter().find(|(_, member)| member.name == name);
    known.map(|(id, member)| (*id, member.clone()))
}

/// Of each member of this name that is gone: whether nobody may join under it.
fn barred(charter: &Charter, name: &str) -> Vec<bool> {
    charter.gone().values().filter(|gone| gone.name == name).map(|gone| gone.barred).collect()
}

/// Not done by the cluster's own rules: nobody has seen anything wrongly.
pub(super) fn refused(text: String) -> Problem {
    Problem::new(ProblemKind::Refused, text)
}

fn conflict(text: String) -> Problem {
    Problem::new(ProblemKind::Conflict, text)
}

pub(super) fn in_trouble(trouble: &Trouble) -> Problem {
    let kind = match trouble {
        Trouble::Unknown => ProblemKind::Unknown,
        _ => ProblemKind::Unavailable,
    };
    Problem::new(kind, trouble.to_string())
}

/// What changed about members from one charter to the next, by name.
pub(super) fn news(before: &Charter, now: &Charter) -> Vec<(String, String)> {
    let mut news = Vec::new();
    let old: &BTreeMap<MemberId, Member> = before.members();
    for (id, member) in now.members() {
        let name = member.name.clone();
        let Some(was) = old.get(id) else {
            news.push((name, format!("joined as {id}")));
            continue;
        };
        if member.leaving && !was.leaving {
            news.push((name, "is being removed".into()));
        } else if member.draining != was.draining {
            let text = if member.draining { "drains" } else { "drains no more" };
            news.push((name, text.into()));
        } else if member.role != was.role {
            let text = if member.role == Role::Voter { "votes" } else { "votes no more" };
            news.push((name, text.into()));
        }
    }
    for (id, member) in old.iter().filter(|(id, _)| !now.members().contains_key(id)) {
        news.push((member.name.clone(), format!("left, and was {id}")));
    }
    news
}

#[cfg(test)]
mod tests {
    use quorate_charter::{About, Birth, ClusterId, Newcomer};

    use super::*;

    /// So many members that all vote.
    fn charter(members: u8) -> Charter {
        let mut charter = Charter::default();
        for number in 0..members {
            let newcomer = Newcomer {
                name: format!("n{number}"),
                birth: Birth([number; 16]),
                about: About { addresses: vec!["there".into()], ..About::default() },
            };
            let change = match number {
                0 => {
                    let cluster = ClusterId([1; 16]);
                    Change::Found { cluster, incarnation: 1, founder: newcomer }
                }
                _ => Change::Join(newcomer),
            };
            let request = Request::one(request_id(), change);
            charter.apply(u64::from(number) + 1, &request).expect("allowed");
        }
        let voters = charter.members().keys().copied().collect();
        charter.votes(u64::from(members) + 1, &voters);
        charter
    }

    #[test]
    fn a_removal_says_what_it_costs() {
        let ids = |charter: &Charter| charter.members().keys().copied().collect::<BTreeSet<_>>();
        let three = charter(3);
        let all = ids(&three);
        let last = *all.last().expect("three");
        let said = costs(&three, last, &all, &[]).join("; ");
        assert!(said.contains("no vote to spare"), "{said}");
        // One that is gone takes nothing along that is not lost already.
        let without: BTreeSet<MemberId> = all.iter().copied().filter(|id| *id != last).collect();
        assert_eq!(costs(&three, last, &without, &[]), Vec::<String>::new());
        let said = costs(&three, last, &without, &["ring".into(), "gpus".into()]).join("; ");
        assert!(said.contains("pools that need it (ring, gpus)"), "{said}");
        let five = charter(5);
        let all = ids(&five);
        assert_eq!(costs(&five, *all.last().expect("five"), &all, &[]), Vec::<String>::new());
    }

    #[test]
    fn what_changed_about_members_is_told_by_name() {
        let before = charter(3);
        let mut now = before.clone();
        let ids: Vec<MemberId> = before.members().keys().copied().collect();
        let mut index = 10;
        for change in [
            Change::DrainMember { member: ids[1], draining: true, if_generation: None },
            Change::Retire { member: ids[2], leaving: true, if_generation: None },
        ] {
            index += 1;
            now.apply(index, &Request::one(request_id(), change)).expect("allowed");
        }
        let said = |news: Vec<(String, String)>| {
            let said = news.into_iter().map(|(name, text)| format!("{name} {text}"));
            said.collect::<Vec<_>>()
        };
        assert_eq!(said(news(&before, &now)), ["n1 drains", "n2 is being removed"]);
        now.votes(20, &BTreeSet::from([ids[0]]));
        let mut after = now.clone();
        let leave = Change::Leave { member: ids[2], if_generation: None };
        after.apply(21, &Request::one(request_id(), leave)).expect("it has no vote");
        assert_eq!(said(news(&now, &after)), [format!("n2 left, and was {}", ids[2])]);
        assert_eq!(news(&after, &after), Vec::new());
    }
}

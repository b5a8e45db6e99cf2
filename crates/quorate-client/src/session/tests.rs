//! Short stories about one client and the nodes it talks to.

use std::time::Duration;

use quorate_api::link::{About, Answer, Ask, FromNode, Move, Reply, Request, Share, Token};
use quorate_api::{ClaimId, ClaimState, Problem, ProblemKind};

mod hints;

use super::words::Greeting;
use super::{Action, News, Pace, Session};
use crate::clock::Instant;
use crate::error::{AcquireError, Lost, ReleaseError};

const ID: ClaimId = ClaimId(7);
const LEASE: Duration = Duration::from_secs(6);

/// A session, its clock, and what it wanted.
struct Story {
    session: Session,
    start: Instant,
    now: Instant,
    sent: Vec<Request>,
    /// To which server each of them went.
    sent_to: Vec<usize>,
    news: Vec<News>,
    dials: Vec<usize>,
    hung_up: Vec<usize>,
}

impl Story {
    /// With two servers, connected to one of them.
    fn begin() -> Story {
        let mut story = Story::alone();
        story.connect();
        story
    }

    fn alone() -> Story {
        let now = Instant::now();
        let session = Session::new(nameless(), 2, Pace::default(), 1, now);
        Story {
            session,
            start: now,
            now,
            sent: Vec::new(),
            sent_to: Vec::new(),
            news: Vec::new(),
            dials: Vec::new(),
            hung_up: Vec::new(),
        }
    }

    /// With so many servers, called n0 and so on, connected to one of them.
    fn among(servers: usize) -> Story {
        let mut story = Story::alone();
        story.session = Session::new(nameless(), servers, Pace::default(), 1, story.now);
        story.connect();
        story
    }

    /// The server that was dialed last answers.
    fn connect(&mut self) {
        self.wake();
        let server = *self.dials.last().expect("it dials");
        self.session.dialed(self.now, server);
        self.collect();
        let hello = self.sent.pop().expect("it says hello first");
        self.sent_to.pop();
        assert!(matches!(hello.ask, Ask::Hello { .. }));
        let node = format!("n{server}");
        let welcome = Reply::Welcome { node, cluster: "c".into(), boot: 1 };
        self.answer_from(server, hello.number, welcome);
    }

    /// The server that was dialed last is gone, or does not answer.
    fn cut(&mut self, why: &str) {
        let server = *self.dials.last().expect("it dialed");
        self.session.disconnected(self.now, server, why.into());
        self.collect();
    }

    fn hear(&mut self, server: usize, said: FromNode) {
        self.session.wake(self.now);
        self.session.heard(self.now, server, said);
        self.collect();
    }

    fn claim(&mut self, units: u32, within: Option<Duration>) {
        let give_up_at = within.map(|within| self.now + within);
        self.session.claim(self.now, ("p".into(), ID), units.into(), give_up_at);
        self.collect();
    }

    /// Another claim of the same pool: where it is asked for.
    fn claims(&mut self, id: u128) -> usize {
        self.session.claim(self.now, ("p".into(), ClaimId(id)), 1.into(), None);
        self.collect();
        let Ask::Claim { id: asked, .. } = self.last().ask else { panic!("it is asked for") };
        assert_eq!(asked, ClaimId(id));
        *self.sent_to.last().expect("it is sent")
    }

    /// An answer from where the request went.
    fn answer(&mut self, number: u64, reply: Reply) {
        let place = self.sent.iter().position(|request| request.number == number);
        self.answer_from(self.sent_to[place.expect("it was sent")], number, reply);
    }

    fn answer_from(&mut self, server: usize, number: u64, reply: Reply) {
        self.hear(server, FromNode::Answer(Answer { number, reply }));
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.wake();
    }

    fn wake(&mut self) {
        self.session.wake(self.now);
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Send { server, request: Request { ask: Ask::Ping, number } } => {
                    let pong = FromNode::Answer(Answer { number, reply: Reply::Pong });
                    self.session.heard(self.now, server, pong);
                }
                Action::Send { server, request } => {
                    self.sent.push(request);
                    self.sent_to.push(server);
                }
                Action::Tell { news, .. } => self.news.push(news),
                Action::Dial { server } => self.dials.push(server),
                Action::HangUp { server } => self.hung_up.push(server),
                Action::Online { .. } | Action::Offline { .. } => {}
            }
        }
    }

    fn last(&self) -> &Request {
        self.sent.last().expect("something was sent")
    }

    fn grant(&mut self, number: u64, valid: Duration) {
        self.answer(number, granted(valid));
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.start)
    }

    fn deadlines(&self) -> Vec<Duration> {
        self.news
            .iter()
            .filter_map(|news| match news {
                News::Granted { deadline, .. } | News::Extended { deadline } => Some(*deadline),
                _ => None,
            })
            .map(|at| self.since_start(at))
            .collect()
    }
}

fn granted(valid: Duration) -> Reply {
    Reply::Granted {
        units: vec![Share { unit: 0, fence: 5 }],
        valid_for_micros: valid.as_micros() as u64,
        lease_micros: LEASE.as_micros() as u64,
        counted: false,
        about: Vec::new(),
        moves: Vec::new(),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_deadline_counts_from_before_the_request_that_was_answered() {
    let mut story = Story::begin();
    story.claim(1, None);
    let first = story.last().number;
    story.pass(secs(1));
    story.grant(first, LEASE);
    assert_eq!(story.deadlines(), [secs(6)]);

    // Two renewals; the answer to the first one counts from the first one.
    story.pass(secs(2));
    let early = story.last().number;
    story.pass(secs(1));
    let late = story.last().number;
    assert_ne!(early, late);
    story.grant(early, LEASE);
    story.grant(late, LEASE);
    assert_eq!(story.deadlines()[1..], [secs(9), secs(10)]);
    assert!(story.sent.iter().all(|r| matches!(&r.ask,
        Ask::Claim { id, .. } | Ask::Renew { id, .. } if *id == ID)));
}

#[test]
fn a_long_wait_is_part_of_the_span_in_the_answer() {
    let mut story = Story::begin();
    story.claim(1, None);
    let number = story.last().number;
    for _ in 0..100 {
        story.pass(secs(1));
    }
    assert_eq!(story.last().number, number, "waiting is not a reason to repeat");
    story.grant(number, secs(100) + LEASE);
    assert_eq!(story.deadlines(), [secs(106)]);
}

#[test]
fn a_deadline_that_passed_is_final() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    story.pass(secs(3));
    let renewal = story.last().number;
    story.now = story.now + secs(10); // The machine slept; nobody called.
    story.grant(renewal, secs(60));
    assert_eq!(story.news.last(), Some(&News::Lost(Lost::Deadline)));
    assert_eq!(story.deadlines().len(), 1);
    story.session.release(story.now, ID);
    story.collect();
    let lost = Err(ReleaseError::Lost(Lost::Deadline));
    assert_eq!(story.news.last(), Some(&News::Left(lost)));
}

#[test]
fn a_grant_that_comes_after_its_deadline_is_renewed_before_its_client_hears_of_it() {
    let mut story = Story::begin();
    story.claim(1, None);
    let claim = story.last().number;
    story.pass(secs(1));
    story.grant(claim, Duration::from_millis(500));
    assert!(story.news.is_empty());
    assert!(matches!(story.last().ask, Ask::Renew { .. }));
    story.grant(story.last().number, LEASE);
    assert_eq!(story.deadlines(), [secs(7)]);
    assert!(matches!(story.news[0], News::Granted { .. }));
}

#[test]
fn a_broken_connection_ends_nothing_and_its_node_is_asked_once_more_before_another() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.cut("cut");
    story.wake();
    story.cut("refused");
    story.pass(secs(1));
    let [first, again, other] = story.dials[..] else { panic!("{:?}", story.dials) };
    assert_eq!(first, again);
    assert_ne!(again, other);
    let before = story.sent.len();
    story.connect();
    let Ask::Claim { id, .. } = story.last().ask else { panic!("the claim is repeated") };
    assert_eq!((id, story.sent.len()), (ID, before + 1));
    story.grant(story.last().number, LEASE);
    story.cut("cut");
    story.pass(secs(1));
    story.connect();
    assert!(matches!(&story.last().ask, Ask::Renew { units, .. } if units[0].fence == 5));
    story.grant(story.last().number, LEASE);
    assert_eq!(story.deadlines(), [secs(7), secs(8)]);
}

#[test]
fn renewals_that_go_unanswered_are_taken_to_another_node() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    while story.dials.len() < 2 {
        story.pass(Duration::from_millis(100));
    }
    assert!(story.since_start(story.now) <= LEASE * 3 / 5, "{:?}", story.sent);
    story.connect();
    story.grant(story.last().number, LEASE);
    assert!(matches!(story.news.last(), Some(News::Extended { .. })));
}

/// The node that decides stands still. The client's own node is well and cannot renew, and the next
/// of the list is the one that stands still: it takes connections and says nothing. The third one
/// is asked while `quorate run` would not have stopped its command yet.
#[test]
fn one_node_that_stands_still_costs_no_holder_its_command() {
    let mut story = Story::alone();
    story.session = Session::new(nameless(), 3, Pace::default(), 1, story.now);
    story.connect();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    while story.dials.len() < 3 {
        story.pass(Duration::from_millis(10));
        let dialing = story.dials.len() == 2 && story.session.due().is_some();
        if dialing && !matches!(story.last().ask, Ask::Hello { .. }) {
            story.session.dialed(story.now, story.dials[1]); // Its kernel answers.
            story.collect();
        }
    }
    let [home, silent, other] = story.dials[..] else { panic!("{:?}", story.dials) };
    assert!(home != silent && silent != other && other != home, "{:?}", story.dials);
    assert!(story.since_start(story.now) < LEASE * 7 / 10, "{:?}", story.since_start(story.now));
    story.connect();
    story.grant(story.last().number, LEASE);
    assert!(matches!(story.news.last(), Some(News::Extended { .. })));
}

#[test]
fn a_node_that_lost_sight_of_a_grant_is_left_for_one_that_has_not() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    story.pass(secs(2));
    let unknown = Problem::new(ProblemKind::Unknown, "its deadline has passed here");
    story.answer(story.last().number, Reply::Problem(unknown));
    story.wake();
    assert_eq!(story.dials.len(), 2);
    story.connect();
    story.grant(story.last().number, LEASE);
    assert_eq!(story.deadlines(), [secs(6), secs(8)]);
}

#[test]
fn a_timeout_says_what_is_known() {
    // Nothing was ever sent.
    let mut story = Story::alone();
    story.claim(1, Some(secs(2)));
    story.pass(secs(2));
    assert!(matches!(story.news[..], [News::Refused(AcquireError::Unreachable { .. })]));
    assert!(story.session.is_idle());

    // The cancellation was acknowledged.
    let mut story = Story::begin();
    story.claim(1, Some(secs(2)));
    story.pass(secs(2));
    assert!(story.news.is_empty(), "not known yet");
    let Ask::Release { id: ID, .. } = story.last().ask else { panic!("it is cancelled") };
    let over = Reply::Over { state: ClaimState::Cancelled, why: String::new() };
    story.answer(story.last().number, over);
    assert_eq!(story.news, [News::Refused(AcquireError::Timeout { claim: ID })]);
    assert!(story.session.is_idle());

    // A grant that crosses the cancellation is not used, and nobody ever answers.
    let mut story = Story::begin();
    story.claim(1, Some(secs(2)));
    let claim = story.last().number;
    story.pass(secs(2));
    story.grant(claim, LEASE);
    story.pass(secs(3));
    assert_eq!(story.news, [News::Refused(AcquireError::Unknown { claim: ID })]);
    story.cut("cut");
    story.connect();
    assert!(matches!(story.last().ask, Ask::Release { .. }), "it goes on cancelling");
    story.pass(secs(60));
    assert!(story.session.is_idle());
    assert_eq!(story.news.len(), 1);
}

#[test]
fn an_abandoned_claim_is_cancelled_wherever_the_client_gets_through() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.cut("cut");
    story.session.abandon(story.now, ID);
    story.connect();
    assert!(matches!(story.last().ask, Ask::Release { id: ID, .. }));
    let over = Reply::Over { state: ClaimState::Cancelled, why: String::new() };
    story.answer(story.last().number, over);
    assert!(story.session.is_idle());
    assert!(story.news.is_empty(), "nobody listens");
}

#[test]
fn a_revoked_grant_is_not_renewed_and_is_released_when_its_holder_stopped() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    let over = FromNode::Over {
        pool: "p".into(),
        id: ID,
        state: ClaimState::Revoked,
        why: "maintenance".into(),
    };
    story.hear(story.dials[0], over);
    let before = story.sent.len();
    story.pass(secs(4));
    assert_eq!(story.sent.len(), before);
    let reason = "maintenance".into();
    assert_eq!(story.news.last(), Some(&News::Lost(Lost::Revoked { reason })));
    story.session.release(story.now, ID);
    story.collect();
    assert!(matches!(story.last().ask, Ask::Release { .. }));
}

/// A node that it left may have a copy: only an end that is said twice is told to all.
#[test]
fn whoever_was_at_another_node_before_says_the_end_twice() {
    for moves in [false, true] {
        let mut story = Story::begin();
        story.claim(1, None);
        if moves {
            story.cut("gone");
            story.connect();
        }
        story.grant(story.last().number, LEASE);
        let before = story.sent.len();
        story.session.release(story.now, ID);
        story.collect();
        let ends = story.sent[before..].iter().filter(|it| matches!(it.ask, Ask::Release { .. }));
        assert_eq!(ends.count(), if moves { 2 } else { 1 });
    }
}

#[test]
fn what_a_node_refuses_is_told_in_narrow_errors() {
    let problem = |kind| Reply::Problem(Problem::new(kind, "detail"));
    for (reply, error) in [
        (Reply::TooLarge { units: 2 }, Some(AcquireError::TooLarge { h: 3, k: 2 })),
        (problem(ProblemKind::UnknownPool), Some(AcquireError::UnknownPool { pool: "p".into() })),
        (
            problem(ProblemKind::Limit),
            Some(AcquireError::Rejected(Problem::new(ProblemKind::Limit, "detail"))),
        ),
        (problem(ProblemKind::Unknown), None),
    ] {
        let mut story = Story::begin();
        story.claim(3, None);
        let number = story.last().number;
        story.answer(number, reply);
        match error {
            Some(error) => assert_eq!(story.news, [News::Refused(error)]),
            None => {
                story.pass(secs(1));
                assert_ne!(story.last().number, number, "asked again, later");
            }
        }
    }
}

#[test]
fn a_silent_node_is_left_and_a_node_of_another_cluster_is_not_used() {
    let mut story = Story::begin();
    story.claim(1, None);
    // A ping goes out and is not answered.
    for _ in 0..4 {
        story.now = story.now + secs(1);
        story.session.wake(story.now);
        while let Some(action) = story.session.next_action() {
            if let Action::Dial { server } = action {
                story.dials.push(server);
            }
        }
    }
    assert_eq!(story.dials.len(), 2);
    story.session.dialed(story.now, story.dials[1]);
    story.collect();
    let hello = story.last().number;
    let before = story.sent.len();
    let stranger = Reply::Welcome { node: "x".into(), cluster: "other".into(), boot: 1 };
    story.answer(hello, stranger);
    assert_eq!(story.sent.len(), before, "nothing is asked of it");
}

#[test]
fn a_holder_that_is_asked_to_move_has_both_units_until_it_says_that_it_left_one() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE);
    let (from, to) = (Share { unit: 0, fence: 5 }, Share { unit: 3, fence: 6 });
    let it = Move { from, to, about: About { name: "g3".into(), labels: Default::default() } };
    let asked = FromNode::Move { pool: "p".into(), id: ID, it: it.clone() };
    for _ in 0..2 {
        story.hear(story.dials[0], asked.clone());
    }
    let told =
        |story: &Story| story.news.iter().filter(|news| matches!(news, News::Move(_))).count();
    assert_eq!(told(&story), 1, "what is known is not news");
    story.pass(secs(3));
    let Ask::Renew { units, .. } = &story.last().ask else { panic!("it renews") };
    assert_eq!(units[..], [from, to]);
    story.session.left(story.now, ID, from);
    story.collect();
    let Ask::Renew { units, .. } = &story.last().ask else { panic!("it says so at once") };
    assert_eq!(units[..], [to]);
    // The same again, late: it does not have what it should leave.
    story.hear(story.dials[0], asked);
    assert_eq!(told(&story), 1, "nor what is over");
}

pub(super) fn nameless() -> Greeting {
    Greeting { client: "test".into(), token: None }
}

#[test]
fn whoever_has_a_token_shows_it_to_every_node_and_to_nobody_else() {
    let mut now = Instant::now();
    let greeting = Greeting { client: "ci".into(), token: Some(Token("qt1_secret".into())) };
    let mut session = Session::new(greeting, 2, Pace::default(), 1, now);
    for _ in 0..3 {
        session.wake(now);
        let dialed = std::iter::from_fn(|| session.next_action()).find_map(|action| match action {
            Action::Dial { server } => Some(server),
            _ => None,
        });
        let server = dialed.expect("it dials");
        session.dialed(now, server);
        let said = std::iter::from_fn(|| session.next_action()).find_map(|action| match action {
            Action::Send { request: Request { ask: Ask::Introduce { token, .. }, .. }, .. } => {
                Some(token)
            }
            _ => None,
        });
        assert_eq!(said, Some(Token("qt1_secret".into())));
        session.disconnected(now, server, "gone".into());
        now = now + secs(5);
    }
    assert!(!format!("{session:?}").contains("secret"));
}

/// It may have waited in a queue of messages: whoever hears of it should have time to use it.
#[test]
fn a_grant_with_little_time_left_is_renewed_first_but_only_once() {
    let mut story = Story::begin();
    story.claim(1, None);
    story.grant(story.last().number, LEASE / 3);
    assert!(story.news.is_empty());
    let Ask::Renew { .. } = story.last().ask else { panic!("it is renewed first") };
    story.grant(story.last().number, LEASE / 3);
    assert_eq!(story.deadlines(), [secs(2)], "more cannot be had");
}

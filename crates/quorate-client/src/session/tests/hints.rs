//! Stories of nodes that say which other node decides, or where to go on.

use super::*;

fn decides(node: usize) -> FromNode {
    FromNode::Decides { pool: "p".into(), node: format!("n{node}") }
}

/// It is found among the servers of which it is not known what their nodes are called.
#[test]
fn claims_go_where_the_pool_is_decided_and_what_was_asked_for_before_stays() {
    let mut story = Story::among(3);
    let home = story.dials[0];
    let [wrong, right] = [(home + 1) % 3, (home + 2) % 3];
    assert_eq!(story.claims(1), home);
    story.hear(home, decides(right));
    assert_eq!(story.dials.len(), 1, "nobody needs a connection there yet");
    assert_eq!(story.claims(2), home, "while there is none, all goes home");
    // The first one that is asked who it is, is not the one.
    let [first, other] = if story.dials[1] == wrong { [wrong, right] } else { [right, wrong] };
    assert_eq!(story.dials, [home, first]);
    story.connect();
    if first == wrong {
        assert_eq!(story.hung_up, [wrong]);
        assert_eq!(story.dials.last(), Some(&other));
        story.connect();
    }
    assert_eq!(story.claims(3), right);
    assert_eq!(story.sent_to, [home, home, right], "what waits at home stays there");
    story.grant(story.last().number, LEASE);
    story.pass(LEASE / 3);
    assert_eq!(story.sent_to.last(), Some(&right), "renewed where it was granted");
    assert!(matches!(&story.last().ask, Ask::Renew { id: ClaimId(3), .. }));
    // Another node decides now, and it is home.
    story.hear(right, decides(home));
    assert_eq!(story.claims(4), home);
}

#[test]
fn what_was_asked_for_where_a_pool_is_decided_is_asked_for_at_home_when_that_is_gone() {
    let mut story = Story::among(2);
    let (home, other) = (story.dials[0], 1 - story.dials[0]);
    story.hear(home, decides(other));
    assert_eq!(story.claims(1), home);
    story.connect();
    assert_eq!(story.claims(2), other);
    story.grant(story.last().number, LEASE);
    assert_eq!(story.claims(3), other);
    let before = story.sent.len();
    story.cut("gone");
    assert_eq!(story.sent_to[before..], [home, home]);
    let asks: Vec<&Ask> = story.sent[before..].iter().map(|request| &request.ask).collect();
    assert!(matches!(
        asks[..],
        [Ask::Renew { id: ClaimId(2), .. }, Ask::Claim { id: ClaimId(3), .. }]
    ));
    story.grant(story.sent[before].number, LEASE);
    assert_eq!(story.claims(4), home, "and it is left alone for a while");
    assert_eq!(story.dials.len(), 2);
    story.pass(secs(1));
    assert_eq!(story.claims(5), home);
    assert_eq!(story.dials.len(), 3, "then it is tried again");
}

#[test]
fn a_second_connection_is_at_once_a_home_to_whoever_loses_its_own() {
    let mut story = Story::among(3);
    let home = story.dials[0];
    let other = (home + 2) % 3;
    story.hear(home, decides(other));
    assert_eq!(story.claims(1), home);
    while !story.session.is_up(other) {
        story.connect();
    }
    let (before, dials) = (story.sent.len(), story.dials.len());
    story.hear(home, FromNode::Goodbye { go_on: Some("n9".into()) });
    assert_eq!(story.sent_to[before..], [other]);
    assert_eq!(story.dials.len(), dials, "nobody is dialed");
    assert_eq!(story.claims(2), other);
}

#[test]
fn a_node_that_stops_says_where_to_go_on() {
    let mut story = Story::among(4);
    let home = story.dials[0];
    let [next, named] = [(home + 1) % 4, (home + 3) % 4];
    // Both have been met, and only home is connected.
    story.hear(home, decides(9));
    for id in 1..4 {
        story.claims(id);
    }
    while story.dials.len() > story.hung_up.len() + 1 {
        story.connect();
    }
    assert!(![next, named].iter().any(|server| story.session.is_up(*server)));
    story.hear(home, FromNode::Goodbye { go_on: Some(format!("n{named}")) });
    story.wake();
    assert_eq!(story.dials.last(), Some(&named));
}

#[test]
fn a_node_that_nobody_knows_is_looked_for_once_and_all_stays_at_home() {
    let mut story = Story::among(3);
    let home = story.dials[0];
    story.hear(home, decides(9));
    for id in 1..20 {
        assert_eq!(story.claims(id), home);
        if story.dials.len() > story.hung_up.len() + 1 {
            story.connect();
        }
    }
    assert_eq!(story.dials.len(), 3, "each once: {:?}", story.dials);
    assert_eq!(story.hung_up.len(), 2);
}

#[test]
fn a_second_connection_that_nobody_uses_is_closed() {
    let mut story = Story::among(2);
    let (home, other) = (story.dials[0], 1 - story.dials[0]);
    story.hear(home, decides(other));
    story.claims(1);
    story.connect();
    assert_eq!(story.claims(2), other);
    let claim = story.last().number;
    story.pass(secs(60));
    assert!(story.session.is_up(other), "a claim waits there");
    let over = Reply::Over { state: ClaimState::Cancelled, why: String::new() };
    story.answer(claim, over);
    story.pass(secs(60));
    assert_eq!(story.hung_up, [other]);
    assert!(story.session.is_up(home));
}

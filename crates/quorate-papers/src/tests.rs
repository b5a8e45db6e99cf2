use std::collections::BTreeSet;

use super::*;

#[test]
fn every_statement_is_named_once_and_tells_what_is_needed() {
    let mut seen = BTreeSet::new();
    for paper in papers() {
        assert!(paper.statements.len() > 50, "{}", paper.name);
        for one in &paper.statements {
            assert!(seen.insert(&one.id), "{} is there twice", one.id);
            assert!(one.statement.len() > 15 && !one.place.is_empty(), "{}", one.id);
            assert!(!one.evidence.is_empty() && !one.kind.is_empty(), "{}", one.id);
        }
    }
}

/// A function that no statement uses is a statement that was lost.
#[test]
fn every_function_is_some_statements_evidence() {
    let used: BTreeSet<&str> =
        papers().iter().flat_map(|paper| &paper.statements).map(|s| s.evidence.as_str()).collect();
    let unused: Vec<&str> = names().into_iter().filter(|name| !used.contains(name)).collect();
    assert_eq!(unused, [""; 0]);
    let all: BTreeSet<&str> = names().into_iter().collect();
    assert_eq!(all.len(), names().len(), "a name is there twice");
}

/// A verdict that changed, in either direction, is a complaint; so is one that is missing.
#[test]
fn what_is_not_as_expected_is_a_complaint() {
    let statement = &papers()[0].statements[0];
    let found = |verdict| Some(Found::new(verdict, "because"));
    let other = Verdict::ALL.into_iter().find(|verdict| *verdict != statement.verdict);
    let judged = |found| Judged { statement, found };
    assert_eq!(judged(found(statement.verdict)).complaint(), None);
    assert!(judged(found(other.expect("there are five"))).complaint().is_some());
    assert!(judged(None).complaint().is_some_and(|text| text.contains("no evidence")));
}

#[test]
fn a_page_has_every_statement_and_escapes_what_it_shows() {
    let paper = &papers()[0];
    let judge = |statement| Judged { statement, found: Some(Found::new(Verdict::Holds, "a < b")) };
    let judged = paper.statements.iter().map(judge).collect();
    let report = Report { pace: Pace::Quick, papers: vec![(paper, judged)] };
    let (html, text) = (report.html(), report.markdown(paper.name).expect("it is there"));
    for one in &paper.statements {
        assert!(
            html.contains(&format!("id=\"{}\"", one.id)) && text.contains(&one.id),
            "{}",
            one.id
        );
    }
    assert!(html.contains("a &lt; b") && !html.contains("a < b"));
    assert!(!html.contains("http"), "a page that needs nothing else");
}

//! What a terminal of 80 columns and 24 lines shows, and what keys do.

use expect_test::{Expect, expect};
use quorate_api::{Check, NodeView, Overview};
use serde_json::{Value, json};

use super::canvas::Canvas;
use super::draw::draw;
use super::model::{Do, Model};
use super::terminal::Key;

fn id(n: u32) -> String {
    format!("{n:032x}")
}

fn overview(pool: Option<Value>) -> Overview {
    let checks: Vec<Check> = Vec::new();
    let node = NodeView {
        name: "n1".into(),
        cluster: "fleet".into(),
        epoch: 1,
        boot: 2,
        version: "0.1.0".into(),
        ready: true,
        checks,
        peers: Vec::new(),
        claims: 3,
        clients: 1,
        charter: None,
    };
    let member = |name: &str, answers: bool, grace: u64| {
        json!({"name": name, "answers": answers, "ready": answers && grace == 0, "boot": 1,
               "grace_ms": grace, "claims": 3, "clients": 0, "sees": []})
    };
    let row = |name: &str, units: u32, held: u64, waiting: u64| {
        json!({"name": name, "units": units, "held": held, "waiting": waiting,
               "protocol": "central", "grants": {"smallest": 1, "largest": 4}})
    };
    let mut view = json!({
        "node": node,
        "nodes": [member("n1", true, 0), member("n2", true, 4200), member("n3", false, 0)],
        "pools": [row("builds", 8, 2, 0), row("gpus", 4, 3, 2), row("reboots", 2, 2, 1)],
        "pools_found": 3,
        "notable": [],
        "guarded": false,
    });
    if let Some(pool) = pool {
        view["pool"] = pool;
    }
    serde_json::from_value(view).expect("an overview")
}

fn gpus() -> Value {
    json!({
        "view": {"name": "gpus", "units": 4, "protocol": "central", "lease_ms": 60000,
                 "drift_ppm": 200, "overtakes_max": 0,
                 "durable": false, "survives": 0, "names_units": true,
                 "held": 3, "waiting": 2, "facts": []},
        "holders": [
            {"id": id(1), "count": 2, "units": [{"unit": 0, "fence": 7}, {"unit": 1, "fence": 7}],
             "node": "n2", "client": "ann@lab-3", "reason": "train resnet", "held_ms": 61000,
             "expires_in_ms": 58000},
            {"id": id(2), "count": 1, "units": [], "node": "", "client": "", "reason": ""},
        ],
        "holders_found": 2,
        "queue": [
            {"id": id(3), "position": 1, "count": 2, "node": "n1", "client": "bob@lab-1",
             "reason": "evaluate checkpoint 40", "waiting_ms": 9000},
            {"id": id(4), "position": 2, "count": 1, "node": "n3", "client": "carol",
             "reason": "sweep", "waiting_ms": 2500},
        ],
        "queue_found": 2,
        "unlisted": 0,
        "shares": [],
        "cells": [],
        "chart": [],
        "events": [],
    })
}

fn shows(model: &Model, expected: &Expect) {
    let mut canvas = Canvas::new(80, 24);
    draw(&mut canvas, model);
    expected.assert_eq(&canvas.text());
}

fn press(model: &mut Model, keys: &[Key]) -> Do {
    let mut last = Do::Nothing;
    for key in keys {
        last = model.key(*key);
    }
    last
}

fn text(words: &str) -> Vec<Key> {
    words.chars().map(Key::Char).collect()
}

#[test]
fn pools_on_a_small_terminal() {
    let mut model = Model::default();
    model.update(Ok(overview(None)));
    press(&mut model, &[Key::Down]);
    shows(
        &model,
        &expect![[r#"
            quorate fleet · seen from n1 · 2 of 3 nodes answer
            ● n2 grace 4.2 s   ● n3 DOWN   ● n1 3 claims
            ┌ 3 of 3 pools ────────────────────────────────────────────────────────────────┐
            │pool                             held                     waiting  protocol   │
            │builds                           ███░░░░░░░░░ 2/8                  central    │
            │gpus                             █████████░░░ 3/4         2        central    │
            │reboots                          ████████████ 2/2         1        central    │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            └──────────────────────────────────────────────────────────────────────────────┘
            ↑↓  enter looks in  / filter  s sort: name  q quit
        "#]],
    );
    press(&mut model, &text("s"));
    let names: Vec<&str> = model.pools().iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["gpus", "reboots", "builds"], "sorted by who waits");
    assert_eq!(press(&mut model, &text("/re")), Do::Reload);
    assert_eq!(model.screen().search, "re");
    model.update(Err("no node answers".into()));
    assert_eq!(press(&mut model, &[Key::Enter, Key::Char('q')]), Do::Quit);
}

#[test]
fn pools_that_grant_nothing_come_first_and_say_why() {
    let mut model = Model::default();
    let mut view = overview(None);
    let away = |nodes: &str| {
        json!({"smallest": 0, "largest": 0, "hindrance": {"kind": "no_quorum", "nodes": [],
            "summary": format!("no quorum answers: {nodes} are away, and 3 of 5 are needed")}})
    };
    let nodes = "n2, n3, n4-with-a-rather-long-name";
    for place in [1, 2] {
        view.pools[place].grants = serde_json::from_value(away(nodes)).expect("an outlook");
    }
    view.pools_unavailable = 7;
    let mut pool = gpus();
    pool["view"]["grants"] = away(nodes);
    model.update(Ok(view.clone()));
    assert!(model.screen().unavailable_first);
    shows(
        &model,
        &expect![[r#"
        quorate fleet · seen from n1 · 2 of 3 nodes answer
        ● n2 grace 4.2 s   ● n3 DOWN   ● n1 3 claims
        gpus and 1 more grant nothing: no quorum answers: n2, n3,
        n4-with-a-rather-long-name are away, and 3 of 5 are needed
        5 other pools grant nothing
        ┌ 3 of 3 pools ────────────────────────────────────────────────────────────────┐
        │pool                             held                     waiting  protocol   │
        │gpus                             █████████░░░ 3/4         2        UNAVAILABLE│
        │reboots                          ████████████ 2/2         1        UNAVAILABLE│
        │builds                           ███░░░░░░░░░ 2/8                  central    │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        ↑↓  enter looks in  / filter  s sort: name  q quit
    "#]],
    );
    press(&mut model, &[Key::Enter]);
    view.pool = serde_json::from_value(pool).expect("a pool");
    model.update(Ok(view));
    shows(
        &model,
        &expect![[r#"
        quorate fleet · seen from n1 · 2 of 3 nodes answer
        ● n2 grace 4.2 s   ● n3 DOWN   ● n1 3 claims
        gpus grants nothing: no quorum answers: n2, n3, n4-with-a-rather-long-name are
        away, and 3 of 5 are needed
        gpus: 3 of 4 units held, 2 waiting, central, lease 1m
        ┌ holding: 2 ──────────────────────────────────────────────────────────────────┐
        │who             what for             units      held        lease       node  │
        │ann@lab-3       train resnet         0,1        1 min 1 s   58 s        n2    │
        │-               -                    1          -           -           -     │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        ┌ waiting: 2 ──────────────────────────────────────────────────────────────────┐
        │place  who                   what for                     units waits   node  │
        │1      bob@lab-1             evaluate checkpoint 40       2     9.0 s   n1    │
        │2      carol                 sweep                        1     2.5 s   n3    │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        │                                                                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        ↑↓  tab list  w why  r revoke  esc back  / filter  s sort: order  q quit
    "#]],
    );
}

#[test]
fn a_pool_on_a_small_terminal_and_how_to_revoke() {
    let mut model = Model::default();
    model.update(Ok(overview(None)));
    assert_eq!(press(&mut model, &[Key::Down, Key::Enter]), Do::Reload);
    assert_eq!(model.screen().pool.as_deref(), Some("gpus"));
    model.update(Ok(overview(Some(gpus()))));
    shows(
        &model,
        &expect![[r#"
            quorate fleet · seen from n1 · 2 of 3 nodes answer
            ● n2 grace 4.2 s   ● n3 DOWN   ● n1 3 claims
            gpus: 3 of 4 units held, 2 waiting, central, lease 1m
            ┌ holding: 2 ──────────────────────────────────────────────────────────────────┐
            │who             what for             units      held        lease       node  │
            │ann@lab-3       train resnet         0,1        1 min 1 s   58 s        n2    │
            │-               -                    1          -           -           -     │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            └──────────────────────────────────────────────────────────────────────────────┘
            ┌ waiting: 2 ──────────────────────────────────────────────────────────────────┐
            │place  who                   what for                     units waits   node  │
            │1      bob@lab-1             evaluate checkpoint 40       2     9.0 s   n1    │
            │2      carol                 sweep                        1     2.5 s   n3    │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            │                                                                              │
            └──────────────────────────────────────────────────────────────────────────────┘
            ↑↓  tab list  w why  r revoke  esc back  / filter  s sort: order  q quit
        "#]],
    );
    let claim = |n: u32| id(n).parse().expect("an id");
    // Without a reason nothing is revoked, and escape keeps the claim.
    assert_eq!(press(&mut model, &[Key::Char('r'), Key::Enter]), Do::Nothing);
    assert!(model.said.contains("reason"));
    press(&mut model, &[Key::Esc]);
    press(&mut model, &text("renough"));
    let revoked = press(&mut model, &[Key::Enter]);
    assert_eq!(revoked, Do::Revoke("gpus".into(), claim(1), "enough".into()));
    // In the queue: why does the second wait?
    press(&mut model, &[Key::Tab, Key::Down]);
    assert_eq!(press(&mut model, &text("w")), Do::Why("gpus".into(), claim(4)));
    model.show("1 of 2 units are missing".into());
    shows(
        &model,
        &expect![[r#"
            quorate fleet · seen from n1 · 2 of 3 nodes answer
            ● n2 grace 4.2 s   ● n3 DOWN   ● n1 3 claims
            gpu┌ any key closes ────────────────────────────────────────────────────────┐
            ┌ h│1 of 2 units are missing                                                │──┐
            │wh│                                                                        │  │
            │an│                                                                        │  │
            │- │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            └──│                                                                        │──┘
            ┌ w│                                                                        │──┐
            │pl│                                                                        │  │
            │1 │                                                                        │  │
            │2 │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  │                                                                        │  │
            │  └────────────────────────────────────────────────────────────────────────┘  │
            └──────────────────────────────────────────────────────────────────────────────┘
            ↑↓  tab list  w why  r revoke  esc back  / filter  s sort: order  q quit
        "#]],
    );
    press(&mut model, &text("x/carol"));
    press(&mut model, &[Key::Enter]);
    assert_eq!(model.queue().len(), 1);
    assert_eq!(press(&mut model, &[Key::Esc]), Do::Reload);
    assert_eq!(model.screen().pool, None);
}

/// A list that shrinks under the cursor, and a list with nothing in it.
#[test]
fn keys_on_nothing_do_nothing() {
    let mut model = Model::default();
    let all = [Key::Up, Key::Down, Key::Enter, Key::End, Key::Home];
    assert_eq!(press(&mut model, &all), Do::Nothing);
    assert_eq!(press(&mut model, &text("wr")), Do::Nothing);
    model.update(Ok(overview(None)));
    press(&mut model, &[Key::End]);
    let mut fewer = overview(None);
    fewer.pools.truncate(1);
    model.update(Ok(fewer));
    assert_eq!(model.cursor, 0);
}

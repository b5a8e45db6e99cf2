//! What people see, in a real browser: the dashboard of a running cluster, and a replay page.
//!
//! Needs chromium and chromedriver, which `cargo xtask test` installs; it also writes screenshots
//! to target/screenshots, for people to look at.

mod cluster;
mod crowd;
mod driver;
mod play;
#[path = "../../../quorate/tests/ports/mod.rs"]
mod ports;

use std::process::Command;

use cluster::Cluster;
use driver::Browser;
use serde_json::json;

const POOLS: &str = r#"
    [[pools]]
    name = "gpus"
    unit_names = ["a100-0", "a100-1", "h100-0", "h100-1"]
    arbiter = "n1"
    lease = "1m"
    grace = "1m"
    [[pools]]
    name = "reboots"
    units = 2
    lease = "1m"
    [[pools]]
    pattern = "ci-*"
    units = 3
    lease = "1m"
"#;

const HOLDERS: &str = "document.querySelector('#holders').innerText";
const QUEUE: &str = "document.querySelector('#queue').innerText";

fn quiet(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<String>::new(), "nothing on the console");
}

#[test]
fn a_claim_appears_and_leaves_and_says_why_it_waits() {
    let cluster = Cluster::start("claims", 3, "", POOLS);
    let browser = Browser::open("claims", 1400, 950);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    browser.until("document.querySelector('#link').textContent === 'live'");
    // At another node than the one that is looked at.
    cluster.claim(1, "gpus", 1, 3, "ann", "training <b>run</b> 7");
    browser.until(&format!("{HOLDERS}.includes('training <b>run</b> 7')"));
    assert!(
        browser.text("#holders").contains("a100-0, a100-1, h100-0"),
        "{}",
        browser.text("#holders")
    );
    cluster.claim(2, "gpus", 2, 2, "bob", "evaluation");
    browser.until(&format!("{QUEUE}.includes('evaluation') && {QUEUE}.includes('1 unit')"));
    browser.click("#queue button");
    browser.until("document.querySelector('#why-text').innerText.includes('In the way')");
    let why = browser.text("#why-text");
    for part in ["1 of 2 units are missing", "ann: 3 units", "start now if", "released: ann"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    browser.click("#why-close");
    cluster.release(1, "gpus", 1);
    browser.until(&format!("!{HOLDERS}.includes('ann') && {HOLDERS}.includes('bob')"));
    browser.until("document.querySelector('#events').innerText.includes('ann released 3 units')");
    cluster.release(2, "gpus", 2);
    browser.until(&format!("!{HOLDERS}.includes('bob')"));
    quiet(&browser);
}

#[test]
fn a_killed_node_turns_red_and_comes_back_and_the_page_outlives_its_own_node() {
    let mut cluster = Cluster::start("killed", 3, "", POOLS);
    let browser = Browser::open("killed", 1400, 950);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    let state = |node: &str, is: &str| {
        let item = format!("document.querySelector('#members [data-key={node}]')");
        browser.until(&format!("{item}?.className === {is:?}"));
    };
    state("n3", "up");
    browser.until("document.querySelectorAll('.nodes .node.up').length === 3");
    cluster.kill(2);
    state("n3", "down");
    browser.until("document.querySelectorAll('.nodes .node.down').length === 1");
    browser.until("document.querySelector('#warnings').innerText.includes('No answer from n3')");
    browser.until("document.querySelector('#notable').innerText.includes('lost n3')");
    browser.screenshot("node-down");
    cluster.revive(2);
    // It has forgotten what it promised, and says how long it waits.
    state("n3", "grace");
    quiet(&browser);

    // The node that serves the page goes, and is there again.
    browser.eval("window.sameDocument = true");
    cluster.kill(0);
    browser.until("document.querySelector('#link').textContent === 'no answer'");
    cluster.revive(0);
    browser.until("document.querySelector('#link').textContent === 'live'");
    browser.until("document.querySelector('#notable').innerText.includes('n1 started (start 2)')");
    assert_eq!(browser.eval("return window.sameDocument"), true, "it was not loaded again");
    let refused = |line: &String| line.contains("ERR_") && line.contains("/v1/overview/watch");
    let other: Vec<String> = browser.complaints().into_iter().filter(|l| !refused(l)).collect();
    assert_eq!(other, Vec::<String>::new(), "only the broken stream is complained about");
}

/// A node that lost its directory counts its starts in minutes since 2026, and its fences go beyond
/// what a browser takes for a number.
#[test]
fn a_fence_is_shown_to_its_last_digit() {
    let pools = "[[pools]]\nname = \"gpus\"\nunits = 2\nlease = \"1m\"\ndurable = true\n";
    let mut cluster = Cluster::start("fences", 1, "", pools);
    cluster.kill(0);
    cluster.count_starts(0, 500_000);
    cluster.revive(0);
    cluster.claim(0, "gpus", 1, 1, "ann", "");
    let browser = Browser::open("fences", 1400, 950);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    let fence = (500_001u64 << 40) + 1;
    browser.until(&format!("{HOLDERS}.includes('ann')"));
    assert!(browser.text("#holders").contains(&fence.to_string()), "{}", browser.text("#holders"));
    quiet(&browser);
}

#[test]
fn revoking_needs_rights_a_reason_and_a_confirmation() {
    let token = "correct horse battery";
    let top = format!("admin_token = {token:?}");
    let cluster = Cluster::start("rights", 3, &top, POOLS);
    cluster.claim(1, "gpus", 1, 1, "ann", "forgotten");
    let browser = Browser::open("rights", 1400, 950);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    browser.until(&format!("{HOLDERS}.includes('forgotten')"));
    browser.click("#holders button");
    browser.until("document.querySelector('#revoke').open");
    browser.click("#revoke-yes");
    assert_eq!(browser.eval("return document.querySelector('#revoke').open"), true, "no reason");
    browser.keys("the machine is gone");
    browser.click("#revoke-yes");
    browser.until("document.querySelector('#revoke-problem').innerText.includes('token')");
    assert!(browser.text("#holders").contains("forgotten"), "refused: nothing changed");
    browser.screenshot("revoke");
    browser.click("#revoke-no");
    browser.until("!document.querySelector('#revoke').open");

    browser.click("#holders button");
    browser.click("#revoke-reason");
    browser.keys("the machine is gone");
    browser.click("#revoke-token");
    browser.keys(token);
    browser.click("#revoke-yes");
    browser.until("!document.querySelector('#revoke').open");
    let said = "revoked 1 unit";
    browser.until(&format!("document.querySelector('#notable').innerText.includes({said:?})"));
    let told = browser.text("#notable");
    assert!(told.contains("the machine is gone"), "{told}");
    // The browser tells of every answer that is no success; this one was wanted.
    let wanted = |line: &String| line.contains("403 (Forbidden)");
    let other: Vec<String> = browser.complaints().into_iter().filter(|l| !wanted(l)).collect();
    assert_eq!(other, Vec::<String>::new());
}

#[test]
fn five_thousand_claims_and_a_thousand_pools_stay_on_one_small_page() {
    let cluster = Cluster::start("many", 3, "", POOLS);
    cluster.claim(1, "gpus", 1, 4, "ann", "all of it");
    // 5,000 wait in one queue, more than a node lists, and a thousand pools are in use.
    std::thread::scope(|scope| {
        for node in 0..3 {
            let cluster = &cluster;
            scope.spawn(move || {
                for id in (0..6000).filter(|id| id % 3 == node) {
                    let pool = match id {
                        0..5000 => "gpus".to_owned(),
                        id => format!("ci-{:04}", id % 1000),
                    };
                    let body = json!({"client": format!("worker-{id}"), "reason": "batch"});
                    let path = format!("/v1/pools/{pool}/claims/{}?wait=0", 100 + id);
                    let (status, answer) = cluster.ask(node, "PUT", &path, &body);
                    assert!(status == 200 || status == 202, "{answer}");
                }
            });
        }
    });
    let browser = Browser::open("many", 1400, 950);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    browser.until("document.querySelector('#queue-count').innerText.startsWith('5000')");
    browser.until("document.querySelector('#pools-count').innerText === '1002'");
    let size = || browser.eval("return document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(size() < 3000, "{} elements", size());
    // A page on, and a search, while it is all live.
    browser.click("#queue-pages button:last-child");
    browser.until("document.querySelector('#queue td').innerText === '11'");
    browser.click("#claims");
    browser.keys("worker-77");
    let rows = "[...document.querySelectorAll('#queue tr')]";
    let all = "every((row) => row.innerText.includes('worker-77'))";
    browser.until(&format!("{rows}.length > 0 && {rows}.{all}"));
    browser.click("#search");
    browser.keys("ci-0777");
    browser.until("document.querySelector('#pools-count').innerText === '1'");
    browser.click("#rows button");
    browser.until("document.querySelector('#pool-title').innerText === 'ci-0777'");
    assert!(size() < 3000, "{} elements", size());
    quiet(&browser);
}

/// Every protocol has its picture, and says in a sentence what it shows.
#[test]
fn quorums_permissions_and_tokens_are_drawn() {
    let pools = r#"
    [[pools]]
    name = "quorums"
    units = 2
    protocol = "arbiter"
    mode = "count"
    survive = 0
    lease = "1m"
    [[pools]]
    name = "permissions"
    units = 2
    protocol = "broadcast"
    lease = "1m"
    [[pools]]
    name = "tokens"
    units = 2
    protocol = "ring"
    lease = "1m"
    [[pools]]
    name = "tickets"
    units = 2
    protocol = "arbiter"
    mode = "ticket"
    lease = "1m"
    [[pools]]
    name = "tables"
    units = 2
    protocol = "table"
    lease = "1m"
    "#;
    let cluster = Cluster::start("pictures", 5, "", pools);
    let browser = Browser::open("pictures", 1400, 950);
    browser.visit(&cluster.url(0));
    let pictures = [
        ("quorums", "Quorums in use:", ".node .lit", "1 unit"),
        ("permissions", "permission", ".links .strong", "permission of the other nodes"),
        ("tokens", "As many tokens as units", ".node .lit", "1 free token to come round"),
        ("tickets", "Quorums in use:", ".node .lit", "older tickets to leave room"),
        ("tables", "the newest table, with 3 claims in it", ".node .lit", "1 unit"),
    ];
    for (pool, caption, sign, awaited) in pictures {
        browser.visit(&format!("{}#pool={pool}", cluster.url(0)));
        browser.until(&format!("document.querySelector('#pool-title').innerText === {pool:?}"));
        // Messages of what happens while it is looked at; a still picture of the rest.
        cluster.claim(1, pool, 1, 1, "ann", "first");
        cluster.claim(3, pool, 3, 1, "carol", "second");
        browser.until(&format!("{HOLDERS}.includes('ann') && {HOLDERS}.includes('carol')"));
        cluster.claim(2, pool, 2, 1, "bob", "waits");
        browser.until(&format!("{QUEUE}.includes('waits') && {QUEUE}.includes({awaited:?})"));
        browser.until("document.querySelectorAll('#legend li').length > 3");
        browser.until(&format!("document.querySelectorAll('#stage {sign}').length > 0"));
        browser.until("document.querySelectorAll('#kinds .chip.full').length === 2");
        browser
            .until(&format!("document.querySelector('#caption').innerText.includes({caption:?})"));
        browser.eval("document.querySelector('.pair').scrollIntoView()");
        browser.screenshot(&format!("picture-{pool}"));
    }
    quiet(&browser);
}

#[test]
fn units_that_differ_are_shown_by_their_labels() {
    let pools = r#"
    [[pools]]
    name = "gpus"
    units = [
        { name = "eu-0", labels = { gpu = "h100", zone = "eu" } },
        { name = "eu-1", labels = { gpu = "h100", zone = "eu" } },
        { name = "us-0", labels = { gpu = "h100", zone = "us" } },
        { name = "old-0", labels = { gpu = "a100", zone = "eu" } },
        { name = "old-1", labels = { gpu = "a100", zone = "us" } },
        { name = "old-2", labels = { gpu = "a100", zone = "us" } },
    ]
    lease = "1m"
    "#;
    let cluster = Cluster::start("labels", 3, "", pools);
    let claim = |node: usize, id: u64, who: &str, lines: serde_json::Value| {
        let body = json!({"lines": lines, "client": who, "reason": "training"});
        let path = format!("/v1/pools/gpus/claims/{id}?wait=200ms");
        let (status, answer) = cluster.ask(node, "PUT", &path, &body);
        assert!(status == 200 || status == 202, "{answer}");
    };
    let eu = json!({"gpu": "h100", "zone": "eu"});
    claim(0, 1, "ann", json!([{"where": eu, "units": 2}]));
    claim(1, 2, "bob", json!([{"where": {"gpu": "a100"}, "units": 1}]));
    let browser = Browser::open("labels", 1400, 1300);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    browser.until("document.querySelectorAll('#kinds > li').length === 4");
    browser.until("document.querySelectorAll('#kinds .chip.full').length === 3");
    claim(2, 3, "carol", json!([{"where": eu, "units": 1}, {"where": {"zone": "us"}, "units": 1}]));
    browser.until(&format!("{QUEUE}.includes('1 with gpu=h100,zone=eu and 1 with zone=us')"));
    let full = "document.querySelector('#kinds [data-key=\"gpu=h100 zone=eu\"]').innerText";
    browser.until(&format!("{full}.includes('2 of 2 held, 1 waiting claim could use them')"));
    browser.until("document.querySelector('#shortages').innerText.includes('gpu=h100,zone=eu')");
    browser.until("document.querySelectorAll('#kinds .chip.short').length === 2");
    browser.screenshot("labels");
    browser.click("#queue button");
    browser.until("document.querySelectorAll('#why-text .chip.short').length === 2");
    browser.click("#why-close");
    // A unit leaves service and comes back, each time after a question.
    let chip = "document.querySelector('#kinds [data-key=\"2\"]')";
    browser.click("#kinds [data-key='2'] button");
    browser.click("#drain-no");
    assert_eq!(browser.eval(&format!("return {chip}.className")), "chip");
    browser.click("#kinds [data-key='2'] button");
    browser.click("#drain-yes");
    browser.until(&format!("{chip}.className === 'chip drained'"));
    cluster.until(1, "/v1/pools/gpus", |pool| pool["drained"] == json!(["us-0"]));
    browser.click("#kinds [data-key='2'] button");
    browser.until("document.querySelector('#drain-title').innerText.includes('back')");
    browser.click("#drain-yes");
    browser.until(&format!("{chip}.className === 'chip'"));
    quiet(&browser);
}

/// A busy fleet in light, dark and on a phone: for people to look at, and nothing may be wider than
/// the phone.
#[test]
fn it_looks_as_it_should() {
    let pools = format!(
        "{POOLS}\n{}",
        r#"
    [[pools]]
    name = "migrations"
    units = 6
    lease = "1m"
    "#
    );
    let cluster = Cluster::start("looks", 5, "", &pools);
    let jobs = ["train resnet", "evaluate", "nightly build", "reindex", "render", "backup"];
    for round in 0..12 {
        for (node, job) in jobs.iter().enumerate().take(3) {
            let id = 1000 + round * 10 + node as u64;
            cluster.claim(node, "gpus", id, 1, &format!("ci-{node}"), job);
            cluster.release(node, "gpus", id);
        }
    }
    cluster.claim(1, "gpus", 1, 2, "ann@lab-3", "train resnet");
    cluster.claim(2, "gpus", 2, 1, "bob@lab-1", "evaluate checkpoint 40");
    cluster.claim(3, "gpus", 3, 2, "nightly", "benchmark suite");
    cluster.claim(4, "gpus", 4, 4, "carol@lab-2", "sweep over learning rates");
    cluster.claim(0, "gpus", 5, 1, "dave@lab-9", "smoke test");
    cluster.claim(0, "reboots", 6, 1, "rack-7", "kernel update");
    for (node, job) in jobs.iter().enumerate().take(4) {
        cluster.claim(node, "migrations", 20 + node as u64, 1, "scheduler", job);
    }
    for id in 0..6 {
        cluster.claim(id % 3, &format!("ci-main-{id}"), 1, 1, "runner", "integration tests");
    }
    let browser = Browser::open("looks", 1440, 1560);
    browser.visit(&format!("{}#pool=gpus", cluster.url(0)));
    browser.until(&format!("{QUEUE}.includes('sweep') && {HOLDERS}.includes('bob@lab-1')"));
    browser.until("document.querySelector('#members').innerText.includes('ms')");
    browser.screenshot("dashboard-light");
    browser.prefer("dark");
    browser.screenshot("dashboard-dark");
    browser.click("#queue tr:nth-child(2) button");
    browser.until("document.querySelector('#why-text').innerText.includes('start now if')");
    browser.screenshot("why-dark");
    browser.click("#why-close");
    browser.prefer("light");
    browser.phone();
    browser.until("document.documentElement.scrollWidth <= 390");
    browser.screenshot("dashboard-phone");
    // Everything that can be pressed has a name.
    let nameless = browser.eval(
        "return [...document.querySelectorAll('button, input, select')].filter((e) => \
         !e.closest('dialog:not([open])') && \
         !(e.innerText || e.getAttribute('aria-label') || e.labels?.length)).length",
    );
    assert_eq!(nameless, 0);
    quiet(&browser);
}

#[test]
fn a_replay_plays_steps_scrubs_and_can_be_linked_to() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay.html");
    let made = Command::new(env!("CARGO_BIN_EXE_quorate-lab"))
        .args("sim run --nodes 5 --units 3 --want 1,2 --faults crashes --duration 3s".split(' '))
        .args("--lease 100ms --retry 20ms --html".split(' '))
        .arg(&file)
        .output()
        .expect("the command was built");
    assert!(made.status.success(), "{made:?}");
    let browser = Browser::open("replay", 1400, 900);
    let url = format!("file://{}", file.display());
    browser.visit(&url);
    let clock = || browser.text("#clock");
    let here =
        || browser.eval("return document.querySelector('#lines .here')?.dataset.index ?? -1");
    assert_eq!(clock(), "0.000000 s");
    browser.click("#next");
    browser.click("#next");
    assert_eq!(here(), "1");
    browser.click("#back");
    assert_eq!(here(), "0");
    // Plays, and stops where it is told to.
    browser.click("#play");
    browser.until("Number(document.querySelector('#lines .here')?.dataset.index) > 10");
    browser.until("document.querySelectorAll('.flight[visibility=visible]').length > 0");
    browser.until("document.querySelectorAll('.cell.full').length > 0");
    browser.keys(" ");
    let stopped = clock();
    assert_eq!(clock(), stopped);
    // To where something goes wrong: the node is crossed out.
    browser.click("#fault");
    assert!(browser.text("#lines .here").contains("CRASH"), "{}", browser.text("#lines .here"));
    assert_eq!(browser.eval("return document.querySelectorAll('.node.down').length"), 1);
    let link = browser.eval("return location.href");
    let at = clock();
    browser.screenshot("replay-light");
    browser.prefer("dark");
    browser.screenshot("replay-dark");
    browser.eval(
        "const s = document.querySelector('#scrub'); s.value = 900000; \
                  s.dispatchEvent(new Event('input'))",
    );
    assert_ne!(clock(), at);
    // The link leads back, in a window of its own.
    browser.visit("about:blank");
    browser.visit(link.as_str().expect("an address"));
    assert_eq!(clock(), at);
    assert!(browser.text("#lines .here").contains("CRASH"));
    // Back and forth gives the same picture.
    let picture = || browser.eval("return document.querySelector('#stage .cells').innerHTML");
    let before = picture();
    browser.keys("\u{e014}\u{e014}\u{e014}\u{e012}\u{e012}\u{e012}");
    assert_eq!(picture(), before);
    browser.phone();
    browser.until("document.documentElement.scrollWidth <= 390");
    browser.screenshot("replay-phone");
    quiet(&browser);
}

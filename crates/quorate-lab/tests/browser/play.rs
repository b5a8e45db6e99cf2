//! The playground: what is clicked on happens, and the command that is copied prints the same run.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::driver::{Browser, http};
use crate::quiet;

const LAB: &str = env!("CARGO_BIN_EXE_quorate-lab");

/// The command, as long as the test lasts.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start() -> Served {
        let mut child = Command::new(LAB)
            .args(["play", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut url = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut url).expect("it says where it is");
        Served { child, url: url.trim().to_owned() }
    }

    fn port(&self) -> u16 {
        let port = self.url.trim_end_matches('/').rsplit(':').next();
        port.and_then(|port| port.parse().ok()).expect("a port")
    }

    fn page(&self, browser: &Browser, words: &str) {
        browser.visit("about:blank");
        browser.visit(&format!("{}#{}", self.url, words.replace(' ', "+")));
        browser.until("window.playground && playground.film.nodes > 0");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(browser: &Browser, expression: &str) -> u64 {
    browser.eval(&format!("return {expression}")).as_u64().expect(expression)
}

/// Opens the menu of a node and does something to it.
fn act(browser: &Browser, node: usize, what: &str) {
    // Who is down is crossed out.
    let part = if what.starts_with("restart") { ".cross" } else { ".name" };
    browser.click(&format!("#stage .node:nth-child({}) {part}", node + 1));
    browser.click(&format!("#menu [data-act='{what}']"));
    browser.until(&format!("playground.run.acts.at(-1)?.act === '{what}'"));
}

/// The command on the page prints what the page shows, line by line.
fn same_in_the_terminal(browser: &Browser) {
    let command = browser.text("#command");
    let words = command.split('\'').nth(1).expect("words in quotes").to_owned();
    let out = Command::new(LAB).args(["play", "--show", &words]).output().expect("it runs");
    let text = String::from_utf8(out.stdout).expect("text");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let shown = browser.eval(
        "return playground.film.frames.filter((frame) => frame[4] <= playground.step)
            .map((frame) => frame[2])",
    );
    let shown: Vec<&str> =
        shown.as_array().expect("lines").iter().filter_map(Value::as_str).collect();
    assert_eq!(lines.len(), shown.len(), "{command}\n{text}");
    for (line, shown) in lines.iter().zip(shown) {
        assert!(line.ends_with(shown), "{command}\n{line}\n{shown}");
    }
}

#[test]
fn nodes_links_and_messages_are_hurt_by_clicks_and_the_command_prints_the_same_run() {
    let served = Served::start();
    let browser = Browser::open("play", 1500, 950);
    served.page(&browser, "--protocol central --nodes 5 --units 2 --seed 7 --steps 40");
    assert_eq!(number(&browser, "playground.step"), 40);
    act(&browser, 2, "crash:2");
    browser.until("document.querySelector('#stage .node:nth-child(3)').classList.contains('down')");
    assert!(browser.text("#deeds").contains("n2 crashes"));
    act(&browser, 0, "cut:0-1");
    browser.until("document.querySelectorAll('#stage .links .cut').length === 2");
    act(&browser, 3, "pause:3");
    browser
        .until("document.querySelector('#stage .node:nth-child(4)').classList.contains('paused')");
    browser.click("#next");
    browser.click("#next");
    same_in_the_terminal(&browser);
    // A message in the middle of its way is clicked on, and lost.
    browser.eval(
        "const film = playground.film;
         const flight = film.flights.find(([from, to, sent, ends, lost]) =>
            sent > playground.time && !lost && ends > sent && from !== 3 && to !== 3);
         playground.seek((flight[2] + flight[3]) / 2);",
    );
    let message = number(&browser, "playground.flights.find((one) => !one.lost).number");
    browser.click(&format!("#stage [data-number='{message}'] circle:not(.hit)"));
    browser.screenshot("play-message");
    browser.click(&format!("#menu [data-act='drop:{message}']"));
    browser.until("document.querySelector('#deeds').innerText.includes('lost')");
    browser.until("document.querySelectorAll('#stage .flight.lost').length > 0");
    same_in_the_terminal(&browser);
    browser.screenshot("play-light");

    // Back to the crash, and another way from there: the first is kept as a branch.
    browser.click("#deeds .deed:nth-child(1) button");
    browser.until("playground.step === 41");
    act(&browser, 2, "restart:2");
    assert_eq!(number(&browser, "playground.run.acts.length"), 2);
    browser.click("[data-tab=branches]");
    browser.until("document.querySelectorAll('#branches button').length === 1");
    assert!(browser.text("#branches").contains("n0–n1 cut"));
    same_in_the_terminal(&browser);
    browser.click("#branches button");
    browser.until("playground.run.acts.length === 4");
    quiet(&browser);
}

#[test]
fn a_misprint_is_broken_by_hand_and_the_law_turns_red() {
    let served = Served::start();
    let browser = Browser::open("challenge", 1500, 950);
    served.page(&browser, "--challenge tie-break");
    browser.until("document.querySelector('#brief').innerText.includes('Footnote 1')");
    for node in 0..3 {
        act(&browser, node, &format!("claim:{node}"));
    }
    browser.until("document.querySelectorAll('#stage [data-number]').length === 6");
    browser.screenshot("play-challenge");
    for message in [3, 6, 7, 9, 10, 11] {
        browser.click(&format!("#stage [data-number='{message}'] circle:not(.hit)"));
        browser.click(&format!("#menu [data-act='deliver:{message}']"));
        browser.until(&format!("playground.run.acts.at(-1).act === 'deliver:{message}'"));
    }
    browser.until("document.querySelector('#brief').innerText.includes('Broken in 9 steps')");
    browser.until("document.querySelector('#verdict').innerText.includes('BROKEN capacity')");
    browser.click("[data-tab=laws]");
    browser.until("document.querySelector('#laws .bad').innerText.includes('capacity')");
    browser.screenshot("play-broken");
    same_in_the_terminal(&browser);
    quiet(&browser);
}

/// It plays on, and asks for more of the run when it comes to an end; a corrupted ring heals.
#[test]
fn it_plays_on_and_nonsense_is_said_and_changes_nothing() {
    let served = Served::start();
    let browser = Browser::open("playing", 1500, 950);
    served.page(&browser, "--protocol ring --nodes 5 --units 3 --steps 30");
    browser.click("#corrupt");
    browser.until("document.querySelector('#deeds').innerText.includes('ring corrupted')");
    browser.eval("document.querySelector('#speed').value = '10'; playground.speed = 400");
    let before = number(&browser, "playground.film.steps");
    browser.click("#play");
    browser.until(&format!("playground.film.steps > {before} && playground.step > 300"));
    browser.click("#play");
    same_in_the_terminal(&browser);
    browser.eval(
        "const units = document.querySelector('#units'); units.value = 0;
         units.value = 65; units.dispatchEvent(new Event('change'))",
    );
    browser.until("document.querySelector('#problem').innerText.includes('--units 65')");
    assert_eq!(browser.eval("return document.querySelector('#units').value"), "3");
    let refused = |line: &String| line.contains("400 (Bad Request)");
    let other: Vec<String> = browser.complaints().into_iter().filter(|l| !refused(l)).collect();
    assert_eq!(other, Vec::<String>::new());
    // Whatever is asked is answered, and files are nobody's business.
    for words in ["--graph%20/etc/passwd", "--nodes%20x", "--steps%2099999999", "%27%00"] {
        let (status, answer) = http(served.port(), "GET", &format!("/run?words={words}"), "");
        assert_eq!(status, 400, "{words}: {answer}");
    }
}

/// In light, dark and on a phone, for people to look at; nothing is wider than the phone.
#[test]
fn the_playground_looks_as_it_should() {
    let served = Served::start();
    let browser = Browser::open("play-looks", 1500, 950);
    let words = "--protocol arbiter --nodes 7 --units 3 --seed 3 --steps 180 \
                 --intervene 60:crash:5,90:cut:1-2,120:pause:3";
    served.page(&browser, words);
    browser.screenshot("play");
    browser.prefer("dark");
    browser.click("#stage .node:nth-child(2) .name");
    browser.until("!document.querySelector('#menu').hidden");
    browser.screenshot("play-dark");
    browser.prefer("light");
    browser.phone();
    browser.visit("about:blank");
    served.page(&browser, words);
    browser.screenshot("play-phone");
    browser.click("#stage .node:nth-child(4) .name");
    browser.until("!document.querySelector('#menu').hidden");
    browser.screenshot("play-phone-menu");
    let wide = number(&browser, "document.documentElement.scrollWidth");
    assert!(wide <= 390, "{wide} pixels on a phone");
    served.page(&browser, "--challenge stale-permission");
    browser.screenshot("play-phone-challenge");
    assert_eq!(browser.eval("return document.title.length > 0"), json!(true));
    quiet(&browser);
}

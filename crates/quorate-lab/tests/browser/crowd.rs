//! A crowd: 200 units, 131 that wait, pools by the hundred. Nothing is cut without a word, and what
//! can be done is within reach on a wide screen and on a phone.

use serde_json::json;

use crate::cluster::Cluster;
use crate::driver::Browser;
use crate::quiet;

const POOLS: &str = r#"
    [[pools]]
    name = "fleet"
    units = 200
    lease = "5m"
    [[pools]]
    pattern = "ci-*"
    units = 2
    lease = "5m"
"#;

/// Everything that can be pressed in the tables is inside the window, and so is what it stands on.
const UNREACHED: &str = "const all = document.querySelectorAll('#holders button, #queue button'); \
    return [...all].filter((one) => { const box = one.getBoundingClientRect(); \
    const card = one.closest('.card').getBoundingClientRect(); \
    return box.width === 0 || box.left < card.left || box.right > card.right \
    || box.right > innerWidth; }).length";

/// Texts on the page that are smaller than the page's own, in pixels of the screen.
const SMALL: &str = "const least = parseFloat(getComputedStyle(document.body).fontSize); \
    const shown = (e) => e.getClientRects().length && getComputedStyle(e).clipPath === 'none'; \
    const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()); \
    const scale = (e) => { const svg = e.ownerSVGElement; \
    return svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1; }; \
    return [...document.body.querySelectorAll('*')].filter((e) => shown(e) && own(e) \
    && e.tagName !== 'title' && parseFloat(getComputedStyle(e).fontSize) * scale(e) < least - 0.2) \
    .map((e) => `${e.tagName} ${e.className} ${e.textContent}`)";

fn crowded() -> Cluster {
    let cluster = Cluster::start("crowd", 5, "", POOLS);
    let put = |node: usize, pool: &str, id: usize, units: u32, who: &str| {
        let body = json!({"units": units, "client": who, "reason": "train on the new corpus"});
        let path = format!("/v1/pools/{pool}/claims/{id}?wait=0");
        let (status, answer) = cluster.ask(node, "PUT", &path, &body);
        assert!(status == 200 || status == 202, "{answer}");
    };
    put(0, "fleet", 1, 100, "sweeper");
    for id in 0..100 {
        put(id % 5, "fleet", 1000 + id, 1, &format!("worker-{id:03}@lab"));
    }
    for id in 0..131 {
        put(id % 5, "fleet", 3000 + id, 1, &format!("later-{id:03}@lab"));
    }
    for id in 0..60 {
        put(id % 5, &format!("ci-{id:04}"), 1, 1, "runner");
    }
    for id in 0..4 {
        put(id, "ci-0042", 5 + id, 1, "runner");
    }
    cluster
}

#[test]
fn a_crowd_is_shown_in_full_and_within_reach() {
    let cluster = crowded();
    let browser = Browser::open("crowd", 1440, 960);
    browser.visit(&format!("{}#pool=fleet", cluster.url(0)));
    browser.until("document.querySelectorAll('#kinds .chip.full').length === 200");
    let units = "document.querySelector('#kinds').innerText";
    browser.until(&format!("{units}.includes('200 of 200 held, 131 waiting claims could use')"));
    browser.until("document.querySelector('#queue-count').innerText === '131'");
    // Who has got nothing yet has waited all the same.
    let waits = "document.querySelector('#waits-now').innerText";
    browser.until(&format!("{waits}.includes('counting 131 who still wait')"));
    // HTTP needs no connection; its clients are clients.
    browser.until(
        "/[1-9][0-9]* claims of [1-9][0-9]* clients/.test( \
                   document.querySelector('#members [data-key=n2]').innerText)",
    );
    assert_eq!(browser.eval(UNREACHED), 0, "at 1440 pixels");
    assert_eq!(browser.eval(SMALL), json!([]));
    browser.screenshot("crowd-light");
    browser.prefer("dark");
    browser.screenshot("crowd-dark");
    browser.prefer("light");

    // By pressure: most waiting first; then those alone where somebody waits; patterns stand below.
    let choose = |field: &str, value: &str| {
        browser.eval(&format!(
            "const f = document.querySelector({field:?}); f.value = {value:?}; \
             f.dispatchEvent(new Event('change'))"
        ));
    };
    let row =
        |place: usize| format!("document.querySelectorAll('#rows .name')[{place}]?.innerText");
    browser.until(&format!("{} === 'ci-0000'", row(0)));
    choose("#sort", "waiting");
    browser.until(&format!("{} === 'fleet' && {} === 'ci-0042'", row(0), row(1)));
    choose("#sort", "held");
    browser.until(&format!("{} === 'ci-0042' && {} === 'fleet'", row(0), row(1)));
    choose("#sort", "oldest");
    browser.until(&format!("{} === 'fleet'", row(0)));
    choose("#only", "waiting");
    browser.until("document.querySelector('#pools-count').innerText === '2'");
    browser.until("document.querySelector('#patterns').innerText.includes('ci-*')");
    let address = browser.eval("return location.hash");
    assert_eq!(address, "#pool=fleet&sort=oldest&only=waiting");

    browser.phone();
    browser.visit("about:blank");
    browser.visit(&format!("{}#pool=fleet", cluster.url(0)));
    browser.until("document.querySelectorAll('#queue button').length > 0");
    browser.until("document.documentElement.scrollWidth <= 390");
    assert_eq!(browser.eval(UNREACHED), 0, "on a phone");
    assert_eq!(browser.eval(SMALL), json!([]));
    browser.screenshot("crowd-phone");
    browser.click("#queue tr button");
    browser.until("document.querySelector('#why-text').innerText.includes('In the way')");
    browser.screenshot("crowd-phone-why");
    quiet(&browser);
}

#[test]
fn an_unknown_pool_is_said_to_be_unknown_and_the_rest_is_there() {
    let cluster = Cluster::start("unknown", 1, "", POOLS);
    let browser = Browser::open("unknown", 1400, 950);
    browser.visit(&format!("{}#pool=flet", cluster.url(0)));
    browser.until("document.querySelector('#none.bad')?.innerText.includes('flet')");
    browser.until("document.querySelector('#members').innerText.includes('ready')");
    browser.until("document.querySelector('#rows').innerText.includes('fleet')");
    browser.screenshot("unknown-pool");
    // Nobody holds, nobody waits, nothing happened: said, with what will appear.
    browser.click("#rows button");
    browser.until("document.querySelector('#pool-title').innerText === 'fleet'");
    for part in ["holders", "queue", "events"] {
        let none = format!("document.querySelector('#{part}-none').innerText");
        browser.until(&format!("{none}.includes('will appear here')"));
    }
    browser.screenshot("empty-pool");
    quiet(&browser);
}

/// What the page says is a function of what a node told.
#[test]
fn the_words_of_the_page() {
    let cluster = Cluster::start("words", 1, "", POOLS);
    let browser = Browser::open("words", 1400, 950);
    browser.visit(&cluster.url(0));
    let says = |expression: &str| {
        browser.eval(&format!("return import('/assets/words.js').then((w) => {expression})"))
    };
    let events = "[{what:'expired',who:'ann',units:1,pool:'p',at_ms:9,times:60},\
                   {what:'expired',who:'ann',units:1,pool:'p',at_ms:8,times:8},\
                   {what:'expired',who:'bob',units:1,pool:'p',at_ms:7},\
                   {what:'expired',who:'ann',units:1,pool:'p',at_ms:6}]";
    let told = says(&format!("w.grouped({events}).map((g) => [g.event.at_ms, g.times])"));
    assert_eq!(told, json!([[9, 69], [7, 1]]));
    // A place in a queue is told where there is one; else what the protocol waits for.
    let awaited = |waiter: &str, view: &str| says(&format!("w.awaited({waiter}, {view})"));
    let full = "{units:4,held:4,protocol:'central',awaits:'x'}";
    assert_eq!(awaited("{count:2,position:3}", full), "2 units, 2 ahead");
    let ring = "{units:4,held:4,protocol:'ring',awaits:'x'}";
    assert_eq!(awaited("{count:2}", ring), "2 free tokens to come round");
    let ticket = "{units:4,held:4,protocol:'ticket',awaits:'older tickets'}";
    assert_eq!(awaited("{count:2}", ticket), "older tickets");
    let room = "{units:4,held:2,drained:['3'],protocol:'central'}";
    assert_eq!(awaited("{count:2,position:1}", room), "1 unit");
    // A pool that grants nothing says so first; one that grants some, up to what.
    let hindered = |grants: &str| says(&format!("w.hindered({grants})"));
    let none = "{smallest:0,largest:0,hindrance:{summary:'n1 is away'}}";
    assert_eq!(hindered(none), json!([true, "This pool grants nothing now: n1 is away."]));
    let some = "{smallest:1,largest:2,hindrance:{summary:'2 of 4 are lost'}}";
    let expected = "Only claims of at most 2 units can be granted now: 2 of 4 are lost.";
    assert_eq!(hindered(some), json!([false, expected]));
    assert_eq!(hindered("{smallest:1,largest:4}"), json!([false, ""]));
    // One grant at once, and one that has waited 9 s and still does.
    let waited = "w.waitedLately([{granted:1,waited_ms:0}], \
                  {waiting:1,waited_ms:9000,waited_max_ms:9000})";
    let expected = "4.5s on average lately, counting 1 who still waits, the oldest 9.0s";
    assert_eq!(says(waited), expected);
    for (ms, top) in [(0, 2), (3, 4), (999, 1000), (31_000, 60_000), (61_000, 120_000)] {
        assert_eq!(says(&format!("w.spanCeiling({ms})")), top, "{ms}");
    }
}

/// Two of three nodes go: what stands still says so before anything else, whether one looks at it
/// or not, and is found among pools that go on.
#[test]
fn an_outage_is_said_in_red_before_anything_else() {
    let pools = "[[pools]]\nname = \"votes\"\nunits = 4\nprotocol = \"arbiter\"\nlease = \"5m\"\n\
                 [[pools]]\npattern = \"far-*\"\nunits = 1\narbiter = \"n3\"\nlease = \"5m\"\n\
                 [[pools]]\npattern = \"near-*\"\nunits = 1\narbiter = \"n1\"\nlease = \"5m\"\n";
    let mut cluster = Cluster::start("outage", 3, "", pools);
    for n in 0..30 {
        cluster.claim(0, &format!("far-{n}"), 1, 1, "ann", "");
        cluster.claim(0, &format!("near-{n}"), 1, 1, "ann", "");
    }
    cluster.claim(1, "votes", 1, 3, "bob", "");
    let browser = Browser::open("outage", 1400, 950);
    browser.visit(&format!("{}#pool=votes", cluster.url(0)));
    browser.until("document.querySelector('#holders').innerText.includes('bob')");
    assert_eq!(browser.text("#stalled"), "");
    cluster.kill(1);
    cluster.kill(2);
    let why = "no quorum answers: n2, n3 are away, and 2 of 3 are needed";
    browser.until(&format!("document.querySelector('#stalled').innerText.includes({why:?})"));
    let first = "const top = (id) => document.querySelector(id).getBoundingClientRect(); \
        return top('#stalled').bottom <= top('#pool-title').top && top('#stalled').height > 0";
    assert_eq!(browser.eval(first), true, "it comes before the pool's own name");
    let red = "const style = getComputedStyle(document.querySelector('#stalled')); \
        const [r, g, b] = style.backgroundColor.match(/[0-9]+/g).map(Number); \
        return r > 2 * g && r > 2 * b";
    assert_eq!(browser.eval(red), true);
    browser.until("document.querySelector('#notable').innerText.includes('and 29 more pools')");
    browser.screenshot("outage");
    browser
        .until("document.querySelector('#pools-stalled').innerText === '31 pools grant nothing'");
    browser.click("#pools-stalled");
    browser.until("document.querySelector('#pools-count').innerText === '31'");
    browser.until("!document.querySelector('#rows').innerText.includes('near-')");
    cluster.revive(1);
    cluster.revive(2);
    browser.until(
        "document.querySelector('#stalled').innerText === '' \
        || document.querySelector('#stalled').innerText.includes('restarted')",
    );
}

//! A browser that tests drive: Debian's chromium through chromedriver (W3C WebDriver), spoken over
//! a plain socket. `cargo xtask test` installs both.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than anything takes that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open browser window; closed when dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: PathBuf,
}

/// A driver, and where it listens; nothing if it ended before it said so.
fn start() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver: `cargo xtask test` installs it (chromium-driver)");
    let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
    for line in lines.by_ref() {
        let line = line.expect("text");
        let port = line.split("successfully on port ").nth(1);
        if let Some(port) = port.and_then(|port| port.trim_end_matches('.').parse().ok()) {
            // Somebody must read what it says further on.
            std::thread::spawn(move || lines.for_each(drop));
            return Some((driver, port));
        }
    }
    driver.wait().expect("it is our child");
    None
}

impl Browser {
    /// Opens a window of this size.
    pub(crate) fn open(test: &str, width: u32, height: u32) -> Browser {
        // It finds a free port and then binds it twice, for both kinds of addresses; if somebody
        // took it meanwhile, it ends.
        let (driver, port) = (0..5)
            .find_map(|_| start())
            .expect("chromedriver says its port, in one of five starts");
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{test}"));
        let _ = std::fs::remove_dir_all(&profile);
        let size = format!("--window-size={width},{height}");
        let data = format!("--user-data-dir={}", profile.display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            &size,
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let mut browser = Browser { driver, port, session: String::new(), profile };
        let session = browser.ask("POST", "/session", &wanted);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    pub(crate) fn visit(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Runs a script in the page and returns what it returns.
    pub(crate) fn eval(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn until(&self, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("return Boolean({expression})")) != true {
            let page = || self.eval("return document.body.innerText");
            assert!(began.elapsed() < PATIENCE, "in vain: {expression}\n{}", page());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The text of an element.
    pub(crate) fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?}).innerText");
        self.eval(&script).as_str().unwrap_or_default().to_owned()
    }

    /// Clicks an element as a person would: it must be there, visible and in nobody's shade.
    pub(crate) fn click(&self, selector: &str) {
        let wanted = json!({"using": "css selector", "value": selector});
        let element = self.post("/element", &wanted);
        let id = element.as_object().and_then(|o| o.values().next()).and_then(Value::as_str);
        self.post(&format!("/element/{}/click", id.expect("an element")), &json!({}));
    }

    /// Types into whatever has the focus.
    pub(crate) fn keys(&self, text: &str) {
        let press = |key: char| {
            ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
        };
        let actions: Vec<Value> = text.chars().flat_map(press).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("/actions", &json!({"actions": [keyboard]}));
    }

    /// Light or dark, as the reader's system has it.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// A phone in somebody's hand.
    pub(crate) fn phone(&self) {
        let size = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }

    /// Writes what is seen to target/screenshots.
    pub(crate) fn screenshot(&self, name: &str) {
        let coded = self.ask("GET", &self.path("/screenshot"), &Value::Null);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
        std::fs::create_dir_all(&folder).expect("a folder for screenshots");
        let image = base64(coded.as_str().expect("a picture"));
        std::fs::write(folder.join(format!("{name}.png")), image).expect("written");
    }

    /// What the page complained about since the last time this was asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let serious = entries.iter().filter(|entry| entry["level"] != "INFO");
        serious.map(|entry| entry["message"].to_string()).collect()
    }

    fn path(&self, rest: &str) -> String {
        format!("/session/{}{rest}", self.session)
    }

    fn post(&self, rest: &str, body: &Value) -> Value {
        self.ask("POST", &self.path(rest), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = http(self.port, method, path, &body);
        let answer: Value = serde_json::from_str(&text).expect("the driver answers JSON");
        assert_eq!(status, 200, "{method} {path}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = std::panic::catch_unwind(|| http(self.port, "DELETE", &self.path(""), ""));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// One request to this machine: status and body.
pub(crate) fn http(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("sent");
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).expect("a status");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (status, String::from_utf8(body).expect("text"))
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0u32, |sum, digit| sum << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

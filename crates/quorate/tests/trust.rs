//! Certificates and tokens, as a shell sees their files: who may read them, what is never written
//! over, and what independent programs (openssl and curl, where they are installed) make of them
//! and of nodes that have them.

mod ports;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ports::free_address;
use serde_json::Value;

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder to write to");
        Folder(path)
    }

    fn run(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(words.split_whitespace()).current_dir(&self.0);
        // Nothing of whoever runs the tests.
        command.env("XDG_CONFIG_HOME", self.0.join("config"));
        for name in ["CA", "CERT", "KEY", "TOKEN", "SERVER", "CLIENT"] {
            command.env_remove(format!("QUORATE_{name}"));
        }
        command.output().expect("the command was built")
    }

    /// Its standard output, if it worked.
    fn fine(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {output:?}");
        text(&output.stdout)
    }

    /// What it says if it does not work.
    fn wrong(&self, words: &str) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert!(output.stdout.is_empty(), "{words}: {output:?}");
        text(&output.stderr)
    }

    fn mode(&self, file: &str) -> u32 {
        std::fs::metadata(self.0.join(file)).expect("it is there").permissions().mode() & 0o777
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it is there").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn keys_are_for_their_owner_and_nothing_is_written_over() {
    let folder = Folder::new("trust-files");
    folder.fine("cert new-ca rack-7 --dir certs");
    folder.fine("cert node a --address 10.0.0.1,a.example --dir certs");
    folder.fine("cert client ci --dir certs");
    assert_eq!(folder.mode("certs"), 0o700);
    for stem in ["ca", "node-a", "client-ci"] {
        assert_eq!(folder.mode(&format!("certs/{stem}.key")), 0o600, "{stem}");
        assert_eq!(folder.mode(&format!("certs/{stem}.crt")) & 0o600, 0o600, "{stem}");
    }
    let key = || std::fs::read(folder.0.join("certs/node-a.key")).expect("it is there");
    let before = key();
    for again in ["cert new-ca rack-7", "cert node a --address ::1", "cert client ci"] {
        let said = folder.wrong(&format!("{again} --dir certs"));
        assert!(said.contains("left as it is") && said.contains("nothing was written"), "{said}");
    }
    assert_eq!(key(), before);
    // Half of a pair is not written either.
    std::fs::remove_file(folder.0.join("certs/node-a.key")).expect("it is there");
    folder.wrong("cert node a --address ::1 --dir certs");
    assert!(!folder.0.join("certs/node-a.key").exists());
}

#[test]
fn certificates_say_whose_they_are_and_are_good_for_that() {
    let folder = Folder::new("trust-verify");
    folder.fine("cert new-ca rack-7");
    folder.fine("cert node a --address 10.0.0.1,a.example");
    folder.fine("cert client ci --days 1");
    let shown: Value = serde_json::from_str(&folder.fine("cert show node-a.crt --json")).unwrap();
    assert_eq!(shown[0]["identity"], "quorate://rack-7/node/a");
    assert_eq!(shown[0]["addresses"], serde_json::json!(["a.example", "10.0.0.1"]));
    assert_eq!(shown[0]["days_left"], 90);
    assert!(folder.fine("cert show client-ci.crt").contains("1 days left"));
    let good = folder.fine("cert verify node-a.crt --address 10.0.0.1");
    assert_eq!(good, "node-a.crt is good: quorate://rack-7/node/a\n");
    folder.fine("cert verify client-ci.crt");
    let elsewhere = folder.run("cert verify node-a.crt --address 10.0.0.2");
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(text(&elsewhere.stdout).contains("is not good"), "{elsewhere:?}");
    folder.fine("cert new-ca rack-7 --dir other");
    let stranger = folder.run("cert verify node-a.crt --ca other/ca.crt");
    assert_eq!(stranger.status.code(), Some(1), "{stranger:?}");
    assert!(folder.wrong("cert node b --address ::1 --ca nowhere").contains("cert new-ca"));
    for words in ["cert node a/b --address ::1", "cert node b --address 10.0.0.1:7420", "cert show"]
    {
        folder.wrong(words);
    }
    assert!(!folder.files().iter().any(|file| file.starts_with("node-b")), "nothing was written");
}

#[test]
fn openssl_takes_them_for_what_they_are() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: openssl is not installed");
        return;
    }
    let folder = Folder::new("trust-openssl");
    folder.fine("cert new-ca rack-7");
    folder.fine("cert node a --address 10.0.0.1,a.example");
    folder.fine("cert client ci");
    let verify = |more: &str| {
        let words = format!("verify -x509_strict -CAfile ca.crt {more}");
        let mut command = Command::new("openssl");
        command.args(words.split_whitespace()).current_dir(&folder.0);
        command.output().expect("it was there a moment ago").status.success()
    };
    assert!(verify("-purpose sslserver -verify_ip 10.0.0.1 node-a.crt"));
    assert!(verify("-purpose sslserver -verify_hostname a.example node-a.crt"));
    assert!(verify("-purpose sslclient node-a.crt"));
    assert!(verify("-purpose sslclient client-ci.crt"));
    assert!(!verify("-purpose sslserver client-ci.crt"));
    assert!(!verify("-purpose sslserver -verify_ip 10.0.0.2 node-a.crt"));
}

#[test]
fn a_token_is_shown_once_and_its_entry_has_only_a_hash() {
    let folder = Folder::new("trust-tokens");
    let printed = folder.fine("token new ci --may claim,see --pools ci-* --most-units 4");
    let (token, entry) = printed.split_once('\n').expect("lines");
    assert!(token.starts_with("qt1_"), "{printed}");
    assert!(!entry.contains(token), "{printed}");
    for line in ["[[tokens]]", "name = \"ci\"", "may = [\"see\", \"claim\"]", "most_units = 4"] {
        assert!(entry.contains(line), "{printed}");
    }
    let entry = folder.fine("token new ops --may admin --forever --secret-file ops.token");
    assert_eq!(folder.mode("ops.token"), 0o600);
    let secret = std::fs::read_to_string(folder.0.join("ops.token")).expect("it is there");
    assert!(!entry.contains("qt1_") && !entry.contains("expires"), "{entry}");
    let said = folder.wrong("token new ops --may admin --secret-file ops.token");
    assert!(said.contains("left as it is"), "{said}");
    let kept = std::fs::read_to_string(folder.0.join("ops.token")).expect("it is there");
    assert_eq!(kept, secret);
    for words in ["token new ci", "token new ci --may rule", "token new ci --may see --pools a**"] {
        folder.wrong(words);
    }
}

/// Longer than anything takes that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// `quorate serve`, which ends with this value.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The cluster of the guide, on one machine.
fn three(folder: &Folder) -> (Vec<Served>, [u16; 6]) {
    folder.fine("cert new-ca rack-7");
    let ports = [(); 6].map(|()| free_address().port());
    let token = folder.fine("token new ci --may see,claim --pools ci-* --secret-file ci.token");
    let names = ["a", "b", "c"];
    let member = |(name, port): (&str, u16)| {
        format!("[[members]]\nname = \"{name}\"\npeers = \"127.0.0.1:{port}\"\n")
    };
    let members: String = names.into_iter().zip(ports[3..].iter().copied()).map(member).collect();
    let nodes = names.into_iter().enumerate().map(|(place, name)| {
        folder.fine(&format!("cert node {name} --address 127.0.0.1,localhost"));
        let file = format!(
            "cluster = \"rack-7\"\nepoch = 1\nnode = \"{name}\"\ndata_dir = \"{name}\"\n\
             [listen]\nclients = \"127.0.0.1:{}\"\npeers = \"127.0.0.1:{}\"\n\
             local = \"{name}.sock\"\n\
             [tls]\nca = \"ca.crt\"\ncert = \"node-{name}.crt\"\nkey = \"node-{name}.key\"\n\
             {members}[[pools]]\npattern = \"ci-*\"\nunits = 4\nprotocol = \"table\"\n\
             [[certificates]]\nname = \"builder\"\nmay = [\"see\", \"claim\"]\npools = [\"ci-*\"]\n\
             {token}",
            ports[place],
            ports[3 + place]
        );
        std::fs::write(folder.0.join(format!("{name}.toml")), file).expect("a folder of our own");
        let checked = folder.fine(&format!("serve --config {name}.toml --check-config"));
        assert!(checked.contains("its certificate is good until"), "{checked}");
        folder.fine(&format!("init --config {name}.toml"));
        let mut serve = Command::new(env!("CARGO_BIN_EXE_quorate"));
        serve.args(["serve", "--config", &format!("{name}.toml")]).current_dir(&folder.0);
        Served(serve.stderr(Stdio::null()).spawn().expect("the command was built"))
    });
    (nodes.collect(), ports)
}

#[test]
fn three_nodes_with_certificates_serve_whoever_has_a_token() {
    let folder = Folder::new("trust-cluster");
    let (nodes, ports) = three(&folder);
    let server = format!("https://127.0.0.1:{},https://localhost:{}", ports[0], ports[1]);
    let with = format!("--server {server} --ca ca.crt");
    let began = Instant::now();
    while !folder
        .run(&format!("run ci-build {with} --token-file ci.token -- true"))
        .status
        .success()
    {
        assert!(began.elapsed() < PATIENCE, "nobody is served");
        std::thread::sleep(Duration::from_millis(200));
    }
    let pools = folder.fine(&format!("pools {with} --token-file ci.token"));
    assert!(pools.contains("ci-"), "{pools}");
    let anonymous = folder.run(&format!("pools {with}"));
    assert!(text(&anonymous.stderr).contains("asks for a token"), "{anonymous:?}");
    let untrusted = folder.run(&format!("pools --server {server} --token-file ci.token"));
    assert!(text(&untrusted.stderr).contains("ca.crt"), "{untrusted:?}");
    folder.fine("cert new-ca rack-7 --dir other");
    let other = text(&folder.run(&format!("pools --server {server} --ca other/ca.crt")).stderr);
    assert!(other.contains("an authority that we do not trust"), "{other}");
    assert!(other.contains("quorate cert verify"), "{other}");
    // A typing error is told from a token that is not known.
    let secret = std::fs::read_to_string(folder.0.join("ci.token")).expect("it is there");
    let (rest, last) = secret.trim().split_at(secret.trim().len() - 1);
    let mistyped = format!("{rest}{}", if last == "x" { "y" } else { "x" });
    std::fs::write(folder.0.join("mistyped"), &mistyped).expect("a folder of our own");
    let said = text(&folder.run(&format!("pools {with} --token-file mistyped")).stderr);
    assert!(said.contains("mistyped") && !said.contains(&mistyped), "{said}");
    shown_certificates(&folder, &server);
    independent_clients(&folder, ports[2], secret.trim());
    way_back_in(&folder);
    changed_files(&folder, &nodes[0], ports[0]);
    // A socket goes with its node, if that has time for it; after a crash it is replaced.
    let mut nodes = nodes;
    let mut stopped = nodes.remove(1);
    let kill = Command::new("kill").args(["-TERM", &stopped.0.id().to_string()]).status();
    assert!(kill.expect("it was sent").success());
    assert!(stopped.0.wait().expect("it was started").success());
    assert!(!folder.0.join("b.sock").exists());
    drop(nodes.remove(0));
    assert!(folder.0.join("a.sock").exists(), "it was killed");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_quorate"));
    serve.args(["serve", "--config", "a.toml"]).current_dir(&folder.0);
    let _again = Served(serve.stderr(Stdio::null()).spawn().expect("the command was built"));
    let began = Instant::now();
    while !folder.run("status --server unix:a.sock").status.success() {
        assert!(began.elapsed() < PATIENCE, "the socket is still the dead one's");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Who runs the node needs no token, on its Unix socket: neither for HTTP nor for the client link,
/// nor does one that nobody knows stand in the way.
fn way_back_in(folder: &Folder) {
    assert_eq!(folder.mode("b.sock"), 0o660);
    std::fs::write(folder.0.join("lost"), "qt1_nonsense").expect("a folder of our own");
    for with in ["--server unix:b.sock", "--server unix:b.sock --token-file lost"] {
        assert!(folder.fine(&format!("pools {with}")).contains("ci-"));
        folder.fine(&format!("run ci-build {with} -- true"));
    }
    let dead = folder.run("pools --server unix:nobody.sock");
    assert!(text(&dead.stderr).contains("unix:nobody.sock"), "{dead:?}");
    if has_curl() {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-f", "--unix-socket", "b.sock", "http://quorate/v1/pools"]);
        let seen = curl.current_dir(&folder.0).output().expect("it was there a moment ago");
        assert!(text(&seen.stdout).contains("ci-"), "{seen:?}");
    }
}

/// A certificate of one's own instead of a token: from arguments and from the user's directory.
fn shown_certificates(folder: &Folder, server: &str) {
    for words in ["cert client builder", "cert client nobody", "cert new-ca rack-7 --dir strange"] {
        folder.fine(words);
    }
    folder.fine("cert client builder --dir strange");
    let ask = |more: &str| folder.run(&format!("pools --server {server} {more}"));
    let shows = |stem: &str| format!("--ca ca.crt --cert {stem}.crt --key {stem}.key");
    let said = |output: Output| {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    };
    let seen = ask(&shows("client-builder"));
    assert!(text(&seen.stdout).contains("ci-"), "{seen:?}");
    let run = format!("run ci-build --server {server} {} -- true", shows("client-builder"));
    folder.fine(&run);
    // One that the configuration does not name, that of a node, and one of another authority.
    for stem in ["client-nobody", "node-a"] {
        let stranger = said(ask(&shows(stem)));
        assert!(stranger.contains("or a certificate that"), "{stranger}");
    }
    let refused = said(ask(&shows("strange/client-builder")));
    assert!(refused.contains("it refuses the certificate that we show"), "{refused}");
    let run = format!("run ci-build --server {server} {} -- true", shows("strange/client-builder"));
    let refused = text(&folder.run(&run).stderr);
    assert!(refused.contains("it refuses the certificate that we show"), "{refused}");
    // What is incomplete is refused before anything is asked.
    for (more, expected) in [
        ("--ca ca.crt --cert client-builder.crt", "name it with --key"),
        ("--ca ca.crt --key client-builder.key", "name it with --cert"),
        ("--cert client-builder.crt --key client-builder.key", "with --ca or QUORATE_CA"),
        ("--ca ca.crt --cert client-builder.crt --key ca.key", "cannot be shown with the key"),
        ("--ca ca.crt --cert client-builder.key --key client-builder.key", "cannot be shown"),
        ("--ca ca.crt --cert nothing.crt --key client-builder.key", "cannot read nothing.crt"),
    ] {
        let output = said(ask(more));
        assert!(output.contains(expected) && output.contains("nothing was asked"), "{output}");
    }
    let clear = format!("pools --server 127.0.0.1:9 {}", shows("client-builder"));
    assert!(folder.wrong(&clear).contains("--server https://"));
    // The user's own directory: the same files under fixed names, and nothing on the command line.
    let own = folder.0.join("config/quorate");
    std::fs::create_dir_all(&own).expect("a folder of our own");
    for (from, to) in [
        ("ca.crt", "ca.crt"),
        ("client-builder.crt", "client.crt"),
        ("client-builder.key", "client.key"),
    ] {
        std::fs::copy(folder.0.join(from), own.join(to)).expect("a folder of our own");
    }
    let seen = ask("");
    assert!(text(&seen.stdout).contains("ci-"), "{seen:?}");
    // A token that is named counts; and a certificate that is named, before a token that is not.
    std::fs::write(own.join("token"), "qt1_nonsense").expect("a folder of our own");
    said(ask(""));
    assert!(ask("--token-file ci.token").status.success());
    let named = ask(&shows("client-builder"));
    assert!(named.status.success(), "{named:?}");
    std::fs::remove_dir_all(folder.0.join("config")).expect("a folder of our own");
}

/// What a node takes up of a changed file, and what it does not.
fn changed_files(folder: &Folder, node: &Served, port: u16) {
    let hang_up = || {
        let kill = Command::new("kill").args(["-HUP", &node.0.id().to_string()]).status();
        assert!(kill.expect("it was sent").success());
    };
    let path = folder.0.join("a.toml");
    let file = std::fs::read_to_string(&path).expect("it is there");
    let ask = |token: &str| {
        let with = format!("--server https://127.0.0.1:{port} --ca ca.crt --token-file {token}");
        folder.run(&format!("pools {with}"))
    };
    let until = |what: &str, so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !so() {
            assert!(began.elapsed() < PATIENCE, "in vain: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let refused = |token: &str| {
        let output = ask(token);
        !output.status.success() && text(&output.stderr).contains("does not know the token")
    };
    let before = file.split("[[tokens]]").next().expect("a file begins").to_owned();
    let other = folder.fine("token new other --may see --secret-file other.token");
    std::fs::write(&path, format!("{before}{other}")).expect("a folder of our own");
    assert!(refused("other.token"), "nobody told the node to read it");
    hang_up();
    until("the new token is good", &|| ask("other.token").status.success());
    until("the old one is not", &|| refused("ci.token"));
    // A file that cannot be read changes nothing, and neither does one with other pools.
    for wrong in ["nonsense".to_owned(), format!("{file}[[pools]]\nname = \"x\"\nunits = 1\n")] {
        std::fs::write(&path, wrong).expect("a folder of our own");
        hang_up();
        assert!(ask("other.token").status.success());
        assert!(refused("ci.token"));
    }
    // A certificate of another authority is not taken up, and one that is renewed is.
    std::fs::write(&path, file).expect("a folder of our own");
    folder.fine("cert node a --address 127.0.0.1,renewed.example --ca . --dir renewed");
    for name in ["node-a.crt", "node-a.key"] {
        let (from, to) = (folder.0.join("renewed").join(name), folder.0.join(name));
        std::fs::rename(from, to).expect("a folder of our own");
    }
    hang_up();
    until("the first file holds again", &|| ask("ci.token").status.success());
    until("its certificate is the new one", &|| {
        let mut curl = Command::new("curl");
        let place = format!("renewed.example:{port}:127.0.0.1");
        curl.args(["-s", "--cacert", "ca.crt", "--resolve", &place]).current_dir(&folder.0);
        curl.arg(format!("https://renewed.example:{port}/livez"));
        curl.output().is_ok_and(|output| output.status.success()) || !has_curl()
    });
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

/// What curl and openssl make of a node.
fn independent_clients(folder: &Folder, port: u16, secret: &str) {
    let run = |program: &str, words: &str| {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).stdin(Stdio::null()).current_dir(&folder.0);
        command.output()
    };
    if run("curl", "--version").is_err() || run("openssl", "version").is_err() {
        eprintln!("skipped: curl or openssl is not installed");
        return;
    }
    let pools = format!("https://127.0.0.1:{port}/v1/pools");
    // Where others could not read it in a list of processes.
    let header = format!("Authorization: Bearer {secret}\n");
    std::fs::write(folder.0.join("header"), header).expect("a folder of our own");
    let curl = |words: &str| {
        let output = run("curl", &format!("-s -o /dev/null -w %{{http_code}} {words}"));
        text(&output.expect("it was there a moment ago").stdout)
    };
    assert_eq!(curl(&format!("--cacert ca.crt -H @header {pools}")), "200");
    assert_eq!(curl(&format!("--cacert ca.crt {pools}")), "401");
    assert_eq!(curl(&format!("--cacert ca.crt https://localhost:{port}/livez")), "200");
    assert_eq!(curl(&format!("-H @header {pools}")), "000", "nobody vouches for it");
    // In the clear, on this machine alone.
    assert_eq!(curl(&format!("-H @header http://127.0.0.1:{port}/v1/pools")), "200");
    let shake = |words: &str| {
        let words = format!(
            "s_client -connect 127.0.0.1:{port} -CAfile ca.crt -verify_return_error {words}"
        );
        run("openssl", &words).expect("it was there a moment ago").status.success()
    };
    assert!(shake("-verify_ip 127.0.0.1"));
    assert!(!shake("-verify_ip 10.0.0.1"));
    assert!(!shake("-tls1_2"), "1.3 only");
}

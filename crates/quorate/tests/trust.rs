//! Certificates and tokens, as a shell sees their files: who may read them, what is never written
//! over, and what an independent reader (openssl, where it is installed) makes of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

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

//! Files and machines with something wrong, one thing at a time.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use quorate_trust::{Authority, Issued, Lifetime};

use super::super::Level;
use super::*;

/// A node's file in a folder of its own, with certificates that begin so many days ago.
struct Place {
    folder: PathBuf,
    /// Where the other members listen.
    others: [TcpListener; 2],
}

impl Place {
    fn new(test: &str) -> Place {
        let folder =
            std::env::temp_dir().join(format!("quorate-doctor-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Place { folder, others: [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap()) }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// As the file has it, with this at its end.
    fn file(&self, rest: &str) -> PathBuf {
        let folder = self.folder.display();
        let [b, d] = [0, 1].map(|place: usize| self.others[place].local_addr().unwrap());
        let text = format!(
            "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = \"{folder}\"\n\
             suspect_after = \"2s\"\n\
             [listen]\nclients = \"127.0.0.1:1\"\npeers = \"127.0.0.1:2\"\n\
             [[members]]\nname = \"a\"\npeers = \"127.0.0.1:2\"\n\
             [[members]]\nname = \"b\"\npeers = \"{b}\"\n\
             [[members]]\nname = \"d\"\npeers = \"{d}\"\n{rest}"
        );
        self.write("a.toml", &text);
        self.folder.join("a.toml")
    }

    /// Certificates that have been good for so many days, and are for so many more.
    fn certificates(&self, age: u32, left: u32) -> String {
        let now = keep::now().unwrap();
        let since = |age: u32| now - DAY * age;
        let authority = Authority::create("c", Lifetime { since_1970: since(age), days: 3650 });
        let Issued { certificate, key } = authority.unwrap();
        self.write("ca.crt", &certificate);
        let authority = Authority::from_pem(certificate.as_bytes(), &key).unwrap();
        let lifetime = Lifetime { since_1970: since(age), days: age + left };
        let node = authority.node("a", &["127.0.0.1".into()], lifetime).unwrap();
        self.write("a.crt", &node.certificate);
        self.write("a.key", &node.key);
        self.mode("a.key", 0o600);
        let folder = self.folder.display();
        format!(
            "[tls]\nca = \"{folder}/ca.crt\"\ncert = \"{folder}/a.crt\"\nkey = \"{folder}/a.key\"\n"
        )
    }

    fn mode(&self, name: &str, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.folder.join(name), permissions).unwrap();
    }

    /// What is not fine about this file, each with what to do.
    async fn wrong(&self, rest: &str) -> Vec<(Level, &'static str, String)> {
        let mut findings = Findings::default();
        look(&self.file(rest), &mut findings).await;
        let bad = findings.findings.into_iter().filter(|it| it.level != Level::Fine);
        bad.map(|it| (it.level, it.about, format!("{} -> {}", it.what, it.remedy.unwrap())))
            .collect()
    }

    /// The one thing that is wrong.
    async fn only(&self, rest: &str, level: Level, about: &str, words: &str) {
        let wrong = self.wrong(rest).await;
        let [(found, at, said)] = &wrong[..] else { panic!("{about}: {wrong:?}") };
        assert_eq!((*found, *at), (level, about), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const GOOD: &str = "[[pools]]\nname = \"p\"\nunits = 2\nprotocol = \"table\"\nlease = \"10s\"\n";

#[tokio::test]
async fn a_good_file_on_a_good_machine_is_fine() {
    let place = Place::new("good");
    assert_eq!(place.wrong(GOOD).await, []);
    let tls = place.certificates(1, 89);
    assert_eq!(place.wrong(&format!("{tls}{GOOD}")).await, []);
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_found() {
    let place = Place::new("file");
    place.only("nonsense", Level::Broken, "file", "docs/configuration.md").await;
    let short = GOOD.replace("10s", "5s").replace("table", "arbiter");
    place.only(&short, Level::Warning, "leases", "three times").await;
    let fragile = GOOD.replace("table", "central");
    place.only(&fragile, Level::Warning, "crashes", "choose a protocol").await;
}

#[tokio::test]
async fn members_that_cannot_be_called_are_found() {
    let place = Place::new("members");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lonely = format!("[[members]]\nname = \"x\"\npeers = \"{gone}\"\n{GOOD}");
    place.only(&lonely, Level::Broken, "members", "firewall").await;
}

#[tokio::test]
async fn a_data_directory_that_is_not_there_is_found() {
    let place = Place::new("data");
    let config = std::fs::read_to_string(place.file(GOOD)).unwrap();
    for (folder, level) in [("new", Level::Warning), ("neither/nor", Level::Broken)] {
        let there = format!("data_dir = \"{}", place.folder.display());
        place.write("a.toml", &config.replace(&there, &format!("{there}/{folder}")));
        let mut findings = Findings::default();
        look(&place.folder.join("a.toml"), &mut findings).await;
        let data = findings.findings.iter().find(|it| it.about == "data").unwrap();
        assert_eq!(data.level, level, "{}", data.what);
        assert!(data.remedy.is_some());
    }
}

#[tokio::test]
async fn certificates_are_told_by_their_days_and_keys_by_who_may_read_them() {
    let place = Place::new("certificates");
    let tls = place.certificates(80, 10);
    place.only(&format!("{tls}{GOOD}"), Level::Warning, "certificate", "expires on").await;
    let tls = place.certificates(1, 89);
    place.mode("a.key", 0o644);
    place.only(&format!("{tls}{GOOD}"), Level::Broken, "key", "chmod 600").await;
    let tls = place.certificates(100, 0);
    let wrong = place.wrong(&format!("{tls}{GOOD}")).await;
    let expired = |(level, about, said): &(Level, &str, String)| {
        (*level, *about) == (Level::Broken, "certificate") && said.contains("expired on")
    };
    assert!(wrong.iter().any(expired), "{wrong:?}");
}

#[test]
fn a_certificate_of_tomorrow_asks_whether_the_clock_is_right() {
    let now = keep::now().unwrap();
    let made = Authority::create("c", Lifetime { since_1970: now, days: 3650 }).unwrap();
    let (certificate, _) = Certificate::from_pem(made.certificate.as_bytes()).unwrap();
    for (then, words) in [(now - DAY * 2, "clock"), (now + DAY * 3600, "expires on")] {
        let mut findings = Findings::default();
        expiry("ca.crt", &certificate, then, &mut findings);
        let found = &findings.findings[0];
        let said = format!("{} {:?}", found.what, found.remedy);
        assert!(found.level != Level::Fine && said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn tokens_that_expire_are_found_before_their_users_find_out() {
    let place = Place::new("tokens");
    let today = Date::after(keep::now().unwrap());
    let soon = Date::after(keep::now().unwrap() + DAY * 5);
    let token = |day: Date| {
        format!(
            "{GOOD}[[tokens]]\nname = \"ci\"\nsha256 = \"{}\"\nmay = [\"see\"]\npools = [\"*\"]\n\
             expires = \"{day}\"\n",
            "ab".repeat(32)
        )
    };
    place.only(&token(today), Level::Broken, "tokens", "expired on").await;
    place.only(&token(soon), Level::Warning, "tokens", "quorate token new").await;
    assert_eq!(place.wrong(&token(Date::new(2999, 1, 1).unwrap())).await, []);
}

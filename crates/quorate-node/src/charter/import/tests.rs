use quorate_charter::{About, Birth, ClusterId, Life, Move, Newcomer, Request};
use quorate_core::Tenure;
use quorate_protocols::central::Central;
use quorate_protocols::central::moving::Moving;

use super::*;
use crate::charter::{Seats, declare_new};

const BEFORE: &str = "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = \"unused\"\n\
    listen = { clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }\n\
    members = [{ name = \"a\", peers = \"127.0.0.1:2\" }, \
    { name = \"b\", peers = \"127.0.0.1:3\" }]\n\
    [[pools]]\nname = \"p\"\nunits = 1\nlease = \"1m\"\n\
    [[pools]]\nname = \"kept\"\nunits = 1\ndurable = true\n";

const BOOT: &str = "boot 3\ndigest none\nlease_ms 60000\ncomplete true\n";

fn with(charter: &str) -> Config {
    Config::parse(&format!("{BEFORE}[charter]\nenabled = true\n{charter}")).expect("it is sound")
}

/// A folder that is gone when the test is.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("quorate-import-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn config(&self, mut config: Config) -> Config {
        config.data = Data::Directory(self.0.clone());
        config
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whose files know of no charter goes together with whose do, and those agree on more.
#[test]
fn files_with_import_go_together_with_those_of_before() {
    let before = Config::parse(BEFORE).unwrap();
    let (import, slower) = (with("import = true"), with("import = true\nlicence = \"2s\""));
    assert_eq!((import.digest, slower.digest), (before.digest, before.digest));
    assert_ne!(import.council, slower.council);
    let pool = |config: &Config| config.pool("p").unwrap().protocol.clone();
    let arbiter = pool(&before).pool::<Central>("p", 2).expect("it was decided by one").arbiter;
    assert_eq!(pool(&import).pool::<Moving>("p", 2).unwrap().pinned, Some(arbiter));
    let kept = import.pool("kept").unwrap();
    assert!(kept.protocol.pool::<Central>("kept", 2).is_some(), "what is on a disk stays");
    let wrong = |lease: &str, enabled: bool| {
        let pools = BEFORE.replace("lease = \"1m\"", lease);
        let text = format!("{pools}[charter]\nenabled = {enabled}\nimport = true\n");
        Config::parse(&text).unwrap_err().to_string()
    };
    let off = wrong("", false);
    assert!(off.contains("enabled = true"), "{off}");
    let shadow = wrong("shadow = false", true);
    assert!(shadow.contains("leave it"), "{shadow}");
}

#[test]
fn only_a_directory_that_was_in_use_before_lets_a_node_decide_and_never_again_when_it_gave_up() {
    let (empty, used) = (Folder::new("empty"), Folder::new("used"));
    assert_eq!(Pins::look(&empty.config(with("import = true"))), Ok(Pins::Unknown));
    fs::write(used.0.join("boot"), BOOT).unwrap();
    let (import, before) = (used.config(with("import = true")), Config::parse(BEFORE).unwrap());
    for _ in 0..2 {
        assert_eq!(Pins::look(&import), Ok(Pins::Pinned));
        assert!(used.0.join(FOUNDS).exists(), "the first member founds the charter");
    }
    let before = used.config(before);
    assert_eq!(Pins::look(&before), Ok(Pins::Unknown), "files go back");
    Pins::Unpinned.keep(&used.0).unwrap();
    assert_eq!(Pins::look(&import), Ok(Pins::Unpinned));
    let refused = Pins::look(&before).unwrap_err();
    assert!(refused.contains("does not decide as files say any more"), "{refused}");
    assert!(declare_new(&import).is_err(), "it is not new");
    // The first start of one that lost its disk was counted, and then it crashed.
    fs::write(empty.0.join("boot"), BOOT).unwrap();
    assert_eq!(Pins::look(&empty.config(with("import = true"))), Ok(Pins::Unknown));
}

/// The first term of the charter is opened by the books of whoever decided before.
#[test]
fn somebody_decided_before_the_first_term() {
    let mut charter = Charter::default();
    let about = About { addresses: vec!["there".into()], ..About::default() };
    let founder = Newcomer { name: "a".into(), birth: Birth([1; 16]), about };
    let found = Change::Found { cluster: ClusterId([1; 16]), incarnation: 2, founder };
    charter.apply(1, &Request::one(request_id(), found)).unwrap();
    let (group, to) = (quorate_charter::Group(0), Life { member: MemberId::FOUNDER, boot: 7 });
    let seats = Change::Seats { moves: vec![Move { group, term: 0, to }] };
    charter.apply(2, &Request::one(request_id(), seats)).unwrap();
    let after = |config: &Config| Seats::of(&charter, config).get(group).unwrap().tenure.after;
    assert_eq!(after(&with("import = true")), Some(Tenure::PINNED));
    let alone = BEFORE.replace("durable = true\n", "");
    let alone = Config::parse(&format!("{alone}[charter]\nenabled = true\n")).unwrap();
    assert_eq!(after(&alone), None);
}

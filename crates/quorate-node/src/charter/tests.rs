use quorate_charter::{About, Birth, Change, Life, Move, Newcomer, Request};

use super::*;
use crate::config::Data;

fn text(node: &str) -> String {
    format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"{node}\"\ndata_dir = \"unused\"\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}, \
         {{ name = \"b\", peers = \"127.0.0.1:3\" }}]\n[charter]\nenabled = true\n"
    )
}

/// A folder that is gone when the test is.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("quorate-hall-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn config(&self, node: &str) -> Config {
        let mut config = Config::parse(&text(node)).unwrap();
        config.data = Data::Directory(self.0.clone());
        config
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_charter_is_founded_once_and_by_the_first_member_only() {
    let folder = Folder::new("founder");
    let config = folder.config("a");
    assert!(matches!(Begin::open(&config), Ok(Begin::Joins(_))), "nobody said that it is new");
    declare_new(&config).unwrap();
    let identity = |begin| match begin {
        Ok(Begin::Member(store)) => Some(store.identity()),
        _ => None,
    };
    let founded = identity(Begin::open(&config)).expect("it founds");
    assert_eq!(founded.member, MemberId::FOUNDER);
    assert_eq!(identity(Begin::open(&config)), Some(founded), "the same at the next start");
    // The store is lost: what is left of the directory founds nothing again.
    std::fs::remove_file(folder.0.join("charter.redb")).unwrap();
    assert!(matches!(Begin::open(&config), Ok(Begin::Joins(_))));
}

#[test]
fn whoever_is_not_first_asks_to_be_let_in_and_always_with_one_store() {
    let folder = Folder::new("other");
    let config = folder.config("b");
    declare_new(&config).unwrap();
    let birth = || match Begin::open(&config) {
        Ok(Begin::Joins(birth)) => birth,
        other => panic!("{other:?}"),
    };
    assert_eq!(birth(), birth());
}

#[test]
fn seats_are_told_as_this_nodes_file_names_members_and_terms_grow_with_the_incarnation() {
    let mut charter = Charter::default();
    let mut index = 0;
    let mut done = |charter: &mut Charter, change| {
        index += 1;
        let request = Request::one(RequestId(drawn()), change);
        charter.apply(index, &request).expect("allowed");
        MemberId(index)
    };
    let newcomer = |name: &str, number| Newcomer {
        name: name.into(),
        birth: Birth([number; 16]),
        about: About { addresses: vec!["there".into()], ..About::default() },
    };
    let (cluster, founder) = (quorate_charter::ClusterId([1; 16]), newcomer("a", 1));
    done(&mut charter, Change::Found { cluster, incarnation: 2, founder });
    let b = done(&mut charter, Change::Join(newcomer("b", 2)));
    let gone = done(&mut charter, Change::Join(newcomer("gone", 3)));
    let seat = |group, term, member| {
        let to = Life { member, boot: 7 };
        Change::Seats { moves: vec![Move { group: Group(group), term, to }] }
    };
    done(&mut charter, seat(0, 0, MemberId::FOUNDER));
    done(&mut charter, seat(0, 1, b));
    done(&mut charter, seat(1, 0, gone));
    let seats = Seats::of(&charter, &Config::parse_in_memory(&text("a")).unwrap());
    let term = 2 * 65_536 + 2;
    let tenure = Tenure { term, after: Some(term - 1), node: NodeId(1), boot: 7 };
    assert_eq!(seats.get(Group(0)), Some(tenure));
    assert_eq!(seats.get(Group(1)), None, "nobody here knows whom that means");
}

#[test]
fn pools_that_a_move_would_harm_are_refused() {
    let with = |pool: &str| {
        let pool = format!("[[pools]]\nname = \"p\"\nunits = 1\n{pool}\n");
        Config::parse_in_memory(&(text("a") + &pool))
    };
    let wrong = |pool: &str| with(pool).expect_err("refused").to_string();
    assert!(wrong("lease = \"9s\"").contains("too short for a seat that moves"));
    assert!(wrong("durable = true").contains("writes nothing down"));
    let moving = with("lease = \"10s\"").unwrap();
    assert_eq!(moving.pool("p").unwrap().promises.survives, 0, "two members have one vote");
    let pinned = with("lease = \"1s\"\ndurable = true\narbiter = \"b\"").unwrap();
    assert_eq!(pinned.pool("p").unwrap().promises.survives, 0);
    assert_ne!(moving.digest, with("arbiter = \"spread\"\nlease = \"11s\"").unwrap().digest);
    let off = text("a").replace("enabled = true", "enabled = false");
    assert_eq!(Config::parse_in_memory(&off).unwrap().charter, None);
    let quick = text("a") + "licence = \"100ms\"\n";
    let quick = Config::parse_in_memory(&quick).expect_err("too quick").to_string();
    assert!(quick.contains("licence = \"100ms\": choose 500ms or more"), "{quick}");
}

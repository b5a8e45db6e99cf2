use quorate_api::{AmendRequest, ApplyRequest, DefineRequest, ProblemKind};
use quorate_charter::{About, Birth, Change, Kept, Life, Move, Newcomer, Request};
use quorate_client::{Client, ViewError, Views};
use quorate_core::{Effect, Event};

use super::*;
use crate::config::{Data, Past, PoolDef, Text};
use crate::seat::{Origin, Place};

pub(super) fn text(node: &str) -> String {
    format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"{node}\"\ndata_dir = \"unused\"\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}, \
         {{ name = \"b\", peers = \"127.0.0.1:3\" }}]\n[charter]\nenabled = true\n"
    )
}

/// A folder that is gone when the test is.
pub(super) struct Folder(pub(super) std::path::PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
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
    assert_eq!(seats.get(Group(0)).map(|seated| seated.tenure), Some(tenure));
    assert_eq!(
        seats.get(Group(0)).map(|seated| seated.said()),
        Some(quorate_core::Charter::Applied(tenure))
    );
    assert_eq!(seats.get(Group(1)), None, "nobody here knows whom that means");
    // Who shadows it, and as whom whoever decides was the shadow of the term before.
    let name = |life| Change::Shadow { group: Group(0), term: 2, seen: 0, shadow: Some(life) };
    let naming = done(&mut charter, name(Life { member: MemberId::FOUNDER, boot: 3 })).0;
    let shadow = |charter: &Charter| {
        let config = Config::parse_in_memory(&text("a")).unwrap();
        Seats::of(charter, &config).get(Group(0)).expect("somebody decides")
    };
    let named = Shadow { node: NodeId(0), boot: 3, naming, whole: false };
    assert_eq!(shadow(&charter).shadow, Some(named));
    done(&mut charter, Change::Whole { group: Group(0), term: 2, naming });
    let to = Life { member: MemberId::FOUNDER, boot: 3 };
    done(&mut charter, Change::Seats { moves: vec![Move { group: Group(0), term: 2, to }] });
    let tenure = Tenure { term: term + 1, after: Some(term), node: NodeId(0), boot: 3 };
    let seated = shadow(&charter);
    assert_eq!(
        (seated.said(), seated.shadow),
        (quorate_core::Charter::Inherited(tenure, naming), None)
    );
    // A shadow that this file does not name shadows nobody here.
    let gone = Life { member: gone, boot: 7 };
    done(&mut charter, Change::Shadow { group: Group(0), term: 3, seen: 0, shadow: Some(gone) });
    assert_eq!(shadow(&charter).shadow, None);
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

#[test]
fn a_pool_of_the_charter_is_read_by_the_code_that_reads_files_and_kept_as_it_was_written() {
    let file = "[[pools]]\nname = \"old\"\nunits = 1\n[[pools]]\npattern = \"ci-*\"\nunits = 1\n";
    let config = Config::parse_in_memory(&(text("a") + file)).unwrap();
    let written = |text: &str| Text::read(text).expect("TOML");
    let text = written("units = [{ name = \"a\", labels = { \"k.v\" = \"1\" } }]\nretry = \"2s\"");
    assert_eq!(Text::read(&text.lines()), Ok(text.clone()));
    assert_eq!(config.define("new", &text, Past::default()).unwrap().unit_names, ["a"]);
    let wrong = |text: &str| {
        config.define("new", &written(text), Past::default()).expect_err("refused").to_string()
    };
    assert!(wrong("units = 0").contains("choose 1 to"));
    assert!(wrong("units = 1\nunitz = 2").contains("unitz"), "{}", wrong("units = 1\nunitz = 2"));
    assert!(wrong("units = 1\nlease = \"1s\"").contains("too short for a seat that moves"));
    for pinned in ["protocol = \"table\"", "protocol = \"arbiter\"", "arbiter = \"a\""] {
        let why = wrong(&format!("units = 1\n{pinned}"));
        assert!(why.contains("written into every node's file"), "{why}");
    }
    assert!(Text::read("name = \"x\"\nunits = 1").is_err());
    let leased = |lease: &str| config.define("new", &written(lease), Past::default()).unwrap();
    let (short, long) = (leased("units = 1\nlease = \"10s\""), leased("units = 1\nlease = \"1m\""));
    let after = |past: Past, was: &PoolDef, is: &PoolDef| past.after(was, is, false);
    let same = after(Past::default(), &short, &short);
    assert_eq!((same.leases, same.lease_ever()), (None, None));
    let longer = after(same, &short, &long);
    let again = after(longer.clone(), &long, &short);
    assert_eq!((longer.leases, again.leases), (Some((10_000, 60_000)), Some((10_000, 60_000))));
    let drained = again.draining(3, true).unwrap().draining(1, true).unwrap();
    assert_eq!(drained.drained, [1, 3]);
    assert_eq!(drained.clone().draining(1, true), None);
    let named = |names| leased(&format!("unit_names = {names}"));
    let (before, renamed) = (named("[\"a\", \"b\"]"), named("[\"a\", \"c\"]"));
    assert_eq!(drained.misnamed(&before, &renamed), None);
    let after = drained.after(&before, &renamed, false);
    assert_eq!(after.named, [("b".to_owned(), 1)].into());
    for (names, why) in [
        ("[\"b\", \"c\"]", Some(("b", 1))),
        ("[\"c\", \"a\"]", Some(("c", 1))),
        ("[\"a\", \"b\"]", None),
        ("[\"d\", \"e\"]", None),
    ] {
        let why = why.map(|(name, unit): (&str, u32)| (name.to_owned(), unit));
        assert_eq!(after.misnamed(&renamed, &named(names)), why);
    }
    assert_eq!(Text::kept(&text.keep(&after)), Ok((text.clone(), after)));
    assert!(config.in_file("old").is_some() && config.in_file("ci-1").is_some());
    assert!(config.in_file("new").is_none());
    let put = |generation, text: &str| {
        let kept = Kept { generation, value: text.to_owned() };
        config.added.replace(Arc::new([("new".to_owned(), kept)].into_iter().collect()));
    };
    put(7, "units = 4");
    assert_eq!(config.pool("new").unwrap().units, 4);
    let known = config.added("new").unwrap().def;
    assert!(Arc::ptr_eq(&known, &config.pool("new").unwrap()), "it is read once");
    put(8, &text_of(5).keep(&Past { changes: 3, units: 9, ..Past::default() }));
    let changed = config.added("new").unwrap();
    assert_eq!((changed.generation, changed.edition), (8, 3));
    assert_eq!((changed.def.units, changed.def.ever), (5, Some(9)));
    put(9, "unitz = 4");
    assert!(config.names("new") && config.pool("new").is_none(), "nobody can read it");
}

#[test]
fn a_file_of_many_pools_is_applied_in_parts_that_say_the_same() {
    let pool = |number| {
        format!(
            "[[pools]] # {number}\nname = \"p:{number}\"\nunits = [{{ name = \"u\", labels = \
             {{ zone = \"{number}\" }} }}]\nlease = \"30s\"\n"
        )
    };
    let file: String = (0..2500).map(pool).collect();
    let parts = crate::config::parts(&file).unwrap();
    assert_eq!(parts.iter().map(|(_, pools)| *pools).collect::<Vec<_>>(), [1000, 1000, 500]);
    let all = parts.iter().flat_map(|(part, _)| Text::read_all(part).unwrap());
    assert!(all.eq(Text::read_all(&file).unwrap()));
    let large = format!("reason = \"{}\"\n", "x".repeat(60_000));
    let file: String = (0..20).map(|number| pool(number) + &large).collect();
    let parts = crate::config::parts(&file).unwrap();
    assert!(parts.len() > 1 && parts.iter().all(|(part, _)| part.len() < 600_000));
    assert!(crate::config::parts(&(pool(1) + &pool(1))).unwrap_err().contains("two pools"));
}

fn text_of(units: u32) -> Text {
    Text::read(&format!("units = {units}")).expect("TOML")
}

/// One member: its charter is its own, and everything comes at once.
#[tokio::test]
async fn a_pool_that_was_made_while_a_node_ran_is_granted_and_known_after_a_restart() {
    let folder = Folder::new("made");
    let alone = text("a").replace(", { name = \"b\", peers = \"127.0.0.1:3\" }", "");
    let start = async || {
        let mut config = Config::parse(&alone).unwrap();
        config.data = Data::Directory(folder.0.clone());
        let listen = || tokio::net::TcpListener::bind("127.0.0.1:0");
        let (clients, peers) = (listen().await.unwrap(), listen().await.unwrap());
        crate::Node::start_on(config, clients, peers).await.unwrap()
    };
    let mut config = Config::parse(&alone).unwrap();
    config.data = Data::Directory(folder.0.clone());
    crate::Node::init(&config).unwrap();
    let node = start().await;
    let first = views(&node);
    let request = |definition: &str| DefineRequest { definition: definition.into() };
    let made = loop {
        // It has just started, and founds its charter.
        match first.create_pool("new", &request("units = 2")).await {
            Ok(made) => break made,
            Err(ViewError::Problem(why)) if why.kind == ProblemKind::Unavailable => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(made.changes, ["pool new is made"]);
    let refused = |error: Result<_, ViewError>| match error.expect_err("refused") {
        ViewError::Problem(problem) => (problem.kind, problem.detail),
        other => panic!("{other}"),
    };
    let (kind, why) = refused(first.create_pool("new", &request("units = 3")).await);
    assert_eq!(kind, ProblemKind::Conflict);
    assert!(why.contains("is there already"), "{why}");
    let (kind, why) = refused(first.create_pool("x", &request("units = 0")).await);
    assert_eq!(kind, ProblemKind::BadRequest);
    assert!(why.contains("choose 1 to"), "{why}");
    let id = Some(Views::new_id());
    let once = first.clone().with_request_id(id);
    let done = once.create_pool("again", &request("units = 1")).await.unwrap();
    let again = once.create_pool("again", &request("units = 1")).await.unwrap();
    assert_eq!(again.version, done.version, "the same request is answered as it was");
    let apply = |pools: &str, dry_run| ApplyRequest { pools: pools.into(), dry_run };
    let file = "[[pools]]\nname = \"new\"\nunits = 2\n[[pools]]\nname = \"more\"\nunits = 3\n";
    let lines = ["pool new is there as it should be", "pool more is made: units = 3"];
    let dry = first.apply_pools(&apply(file, true)).await.unwrap();
    assert_eq!((dry.version, dry.changes), (0, lines.map(str::to_owned).to_vec()));
    for wrong in [
        file.replace("units = 2", "units = 2\ndrift_ppm = 9"),
        file.replace("units = 3", "unitz = 3"),
        file.replace("\"more\"", "\"new\""),
        "[members]\n".to_owned(),
    ] {
        refused(first.apply_pools(&apply(&wrong, false)).await);
        assert!(first.definition("more").await.is_err(), "all or nothing");
    }
    assert!(first.apply_pools(&apply(file, false)).await.unwrap().version > made.version);
    assert_eq!(first.apply_pools(&apply(file, false)).await.unwrap().version, 0, "it is so");
    let client = Client::connect(&[node.clients_address().to_string()]).await.unwrap();
    client.pool("new").acquire_many(2).await.unwrap().release().await.unwrap();
    let absent = client.pool("nobody").acquire().await.expect_err("there is none");
    assert!(absent.to_string().contains("nobody"), "{absent}");
    changes(&first, &client).await;
    units_with_names(&first, &client).await;
    drop(client);
    node.stop().await;
    let node = start().await;
    let shown = loop {
        match views(&node).definition("new").await {
            Ok(shown) => break shown,
            Err(ViewError::Problem(why)) if why.kind == ProblemKind::Unavailable => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((shown.generation, shown.definition.as_str()), (made.version, "units = 2\n"));
    let pools = views(&node).pools().await.unwrap().pools;
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["again", "gpus", "more", "new"]);
    assert_eq!(views(&node).pool("gpus").await.unwrap().drained, ["g0"], "also where it is unused");
    node.stop().await;
}

/// Units are drained, get other labels and other names, and are reserved, while one is held.
async fn units_with_names(views: &Views, client: &Client) {
    let refused = |error: Result<_, ViewError>| match error.expect_err("refused") {
        ViewError::Problem(problem) => problem.detail,
        other => panic!("{other}"),
    };
    let units = |names: [&str; 2]| {
        let [one, two] =
            names.map(|name| format!("{{ name = \"{name}\", labels = {{ gpu = \"a\" }} }}"));
        format!("units = [{one}, {two}]")
    };
    let define = |definition: String| DefineRequest { definition };
    views.create_pool("gpus", &define(units(["g0", "g1"]))).await.unwrap();
    let pool = client.pool("gpus");
    let kept = pool.acquire().await.unwrap();
    assert_eq!(kept.units(), [0]);
    assert_eq!(views.drain("gpus", "g0", false).await.unwrap().drained, ["g0"]);
    views.drain("gpus", "0", false).await.unwrap();
    let labels = [("gpu".to_owned(), "b".to_owned())].into();
    views.relabel("gpus", "g1", Some(labels)).await.unwrap();
    let shown = views.definition("gpus").await.unwrap().definition;
    assert!(shown.contains("labels = { gpu = \"b\" }, name = \"g1\""), "{shown}");
    let why = views.relabel("gpus", "g1", None).await.map(drop);
    assert!(refused(why).contains("knows no earlier ones"));
    let why = pool.acquire_many(2).await.expect_err("one is drained").to_string();
    assert!(why.contains("so many units that will do"), "{why}");

    let set = |definition: String| AmendRequest { definition, ..Default::default() };
    views.amend_pool("gpus", &set(units(["g0", "h1"]))).await.unwrap();
    let renamed = views.pool("gpus").await.unwrap();
    assert_eq!(
        (renamed.unit_names, renamed.drained),
        (vec!["g0".into(), "h1".into()], vec!["g0".to_owned()])
    );
    for other in [["h1", "g0"], ["g1", "h1"]] {
        let why = refused(views.amend_pool("gpus", &set(units(other))).await.map(drop));
        assert!(why.contains("choose a name that no other unit had"), "{why}");
    }
    let mine = "reserved = [{ units = [\"h1\"], clients = [\"nobody\"] }]";
    views.amend_pool("gpus", &set(mine.into())).await.unwrap();
    let why = pool.acquire().await.expect_err("it is not for us").to_string();
    assert!(why.contains("so many units that will do"), "{why}");
    assert_eq!(kept.is_lost(), None);
    kept.release().await.unwrap();
}

/// A pool of three units is changed, deleted while somebody holds one, and made again.
async fn changes(views: &Views, client: &Client) {
    let refused = |error: Result<_, ViewError>| match error.expect_err("refused") {
        ViewError::Problem(problem) => problem.detail,
        other => panic!("{other}"),
    };
    let set =
        |definition: &str| AmendRequest { definition: definition.into(), ..Default::default() };
    let define = |definition: &str| DefineRequest { definition: definition.into() };
    let pool = client.pool("more");
    let kept = pool.acquire_many(3).await.unwrap();
    let dry = AmendRequest { dry_run: true, ..set("units = 1") };
    assert_eq!(views.amend_pool("more", &dry).await.unwrap().version, 0);
    let lowered = views.amend_pool("more", &set("units = 2\nclaim_max = 2")).await.unwrap();
    let words = "pool more is changed: units = 2 (it was 3), claim_max = 2 (it was not said)";
    assert_eq!(lowered.changes, [words]);
    let why = pool.acquire_many(3).await.expect_err("there are two").to_string();
    assert!(why.contains("3 units asked of a pool of 2"), "{why}");
    let stale = AmendRequest { if_generation: Some(lowered.version - 1), ..set("units = 9") };
    assert!(refused(views.amend_pool("more", &stale).await).contains("look at it again"));
    for wrong in [
        "lease = \"1s\"",
        "shadow = false",
        "drift_ppm = 9",
        "units = [{ name = \"a\" }]",
        "units = 0",
    ] {
        refused(views.amend_pool("more", &set(wrong)).await);
    }
    refused(views.amend_pool("nobody", &set("units = 1")).await);
    assert_eq!(kept.is_lost(), None);
    // Longer, then shorter than it was: what is held is held.
    for lease in ["lease = \"30s\"", "lease = \"20s\""] {
        views.amend_pool("more", &set(lease)).await.unwrap();
        let shown = views.definition("more").await.unwrap().definition;
        assert!(shown.contains(lease), "{shown}");
    }
    assert_eq!(kept.is_lost(), None);

    let why = refused(views.delete_pool("more", None, None, false).await);
    assert!(why.contains("1 claim holds units of it"), "{why}");
    let waits = tokio::spawn({
        let pool = client.pool("more");
        async move { pool.acquire().await }
    });
    while views.queue("more").await.unwrap().waiting.is_empty() {}
    let deleted = views.delete_pool("more", Some("drain"), None, false).await.unwrap();
    assert_eq!(deleted.changes, ["pool more is deleted"]);
    let why = waits.await.unwrap().expect_err("it is gone").to_string();
    assert!(why.contains("the pool was deleted"), "{why}");
    let why = pool.acquire().await.expect_err("it is gone").to_string();
    assert!(why.contains("more"), "{why}");
    assert!(views.definition("more").await.is_err());
    refused(views.delete_pool("more", None, None, false).await);
    assert_eq!(kept.is_lost(), None);

    // Made again: whoever kept something keeps it, nobody else has that, and fences go on.
    let why = refused(views.create_pool("more", &define("units = 5\nshadow = false")).await);
    assert!(why.contains("was deleted that was another"), "{why}");
    let again = views.create_pool("more", &define("units = 4")).await.unwrap();
    assert_eq!(again.changes, ["pool more is made again"]);
    let fourth = pool.acquire().await.unwrap();
    assert_eq!(fourth.units(), [3]);
    let last = *kept.fences().iter().max().unwrap();
    kept.release().await.unwrap();
    let first = pool.acquire().await.unwrap();
    assert!(first.units() == [0] && first.fences()[0] > last, "fences go on");
    let deleted = views.delete_pool("more", Some("revoke"), None, false).await.unwrap();
    assert_eq!(deleted.changes, ["pool more is deleted", "what 2 claims held is revoked"]);
    for grant in [fourth, first] {
        let lost = grant.lost().await;
        assert!(lost.to_string().contains("the pool was deleted"), "{lost}");
        grant.release().await.unwrap();
    }
    assert!(views.pools().await.unwrap().pools.iter().all(|pool| pool.name != "more"));
    views.create_pool("more", &define("units = 3")).await.unwrap();
}

fn views(node: &crate::Node) -> Views {
    Views::new([node.clients_address().to_string()]).unwrap()
}

/// A node of a cluster that members join, with these names in its file.
fn joins(names: &[&str]) -> Config {
    let listed = |(place, name): (usize, &&str)| {
        format!("[[members]]\nname = \"{name}\"\npeers = \"127.0.0.1:{}\"\n", 7000 + place)
    };
    let members: String = names.iter().enumerate().map(listed).collect();
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"{}\"\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         tls = {{ ca = \"ca\", cert = \"cert\", key = \"key\" }}\n\
         [charter]\nenabled = true\njoins = true\n{members}",
        names[names.len() - 1]
    );
    Config::parse_in_memory(&text).unwrap()
}

/// A charter of these, of whom the second has left.
fn grown() -> Charter {
    let about = |number: u8| About {
        addresses: vec![format!("127.0.0.1:{}", 7000 + u16::from(number))],
        ..About::default()
    };
    let newcomer = |name: &str, number: u8| Newcomer {
        name: name.into(),
        birth: Birth([number; 16]),
        about: about(number),
    };
    let cluster = quorate_charter::ClusterId([1; 16]);
    let changes = [
        Change::Found { cluster, incarnation: 1, founder: newcomer("a", 0) },
        Change::Join(newcomer("b", 1)),
        Change::Join(newcomer("c", 2)),
        Change::Leave { member: MemberId(2), if_generation: None },
        Change::Seats {
            moves: vec![Move {
                group: Group(7),
                term: 0,
                to: Life { member: MemberId(3), boot: 1 },
            }],
        },
    ];
    let mut charter = Charter::default();
    for (change, index) in changes.into_iter().zip(1..) {
        charter.apply(index, &Request::one(request_id(), change)).expect("allowed");
    }
    charter
}

#[test]
fn who_joined_has_the_same_place_everywhere_and_nobody_after_it() {
    let charter = grown();
    for listed in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let config = joins(listed);
        let fresh = not_listed(&charter, &config).unwrap();
        let names: Vec<&str> = fresh.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["a", "b", "c"][listed.len()..]);
        // Also before they are in the list of members.
        let seats = Seats::of(&charter, &config);
        assert_eq!(seats.get(Group(7)).map(|it| it.tenure.node), Some(NodeId(2)));
    }
    let fresh = not_listed(&charter, &joins(&["a"])).unwrap();
    let peers: Vec<String> = fresh.iter().map(|it| it.peers.to_string()).collect();
    assert_eq!(peers, ["1.gone.invalid:1", "127.0.0.1:7002"], "nobody calls who is gone");
    // A file that was changed, or is of another cluster, would have others in their places.
    let why = not_listed(&charter, &joins(&["a", "c"])).unwrap_err();
    assert!(why.contains("the charter has b there"), "{why}");
    // Elsewhere the file says who is a member.
    let config = Config::parse(&text("a")).unwrap();
    assert!(not_listed(&charter, &config).unwrap().is_empty());
    assert_eq!(places(&charter, &config).len(), 2);
}

/// Charter spec S6: whoever was a member before a move is called, also if this node hears of both
/// at once.
#[test]
fn a_member_that_joined_before_a_move_is_called() {
    let config = joins(&["a"]);
    let def = config.define("p", &text_of(2), Past::default()).unwrap();
    let called = |members: Option<usize>| {
        let (name, since) = (Arc::from("p"), crate::clock::now());
        let place = Place { name, me: NodeId(0), boot: 2, since, grace: def.grace };
        let mut effects = Vec::new();
        let rules = &def.protocol.rules;
        let mut seat = rules.take_seat(place, 1, Origin::Amnesia, &mut effects).unwrap();
        members.into_iter().for_each(|members| seat.grow(members));
        let tenure = Tenure { term: 2, after: Some(1), node: NodeId(0), boot: 2 };
        let applied = Event::Charter(quorate_core::Charter::Applied(tenure));
        seat.step(since, applied, &mut effects).unwrap();
        let told = effects.iter().filter_map(|effect| match effect {
            Effect::Tell { to, .. } => Some(*to),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(called(None), []);
    assert_eq!(called(Some(3)), [NodeId(1), NodeId(2)]);
}

#[test]
fn files_of_members_that_join_have_no_pools_and_agree_whoever_is_in_them() {
    let (one, three) = (joins(&["a"]), joins(&["a", "b", "c"]));
    assert_eq!(one.digest, three.digest);
    assert_eq!(addresses(&three), ["127.0.0.1:7002", "127.0.0.1:1"]);
    let lacks = |words: &str, more: &str| {
        let text = text("a").replace("enabled = true\n", &format!("{words}\n{more}"));
        Config::parse(&text).unwrap_err().to_string()
    };
    let (tls, pool) = (
        "[tls]\nca = \"ca\"\ncert = \"cert\"\nkey = \"key\"\n",
        "[[pools]]\nname = \"p\"\nunits = 1\n",
    );
    for (words, more, why) in [
        ("enabled = false\njoins = true", tls.to_owned(), "write enabled = true"),
        ("enabled = true\njoins = true", String::new(), "that takes [tls]"),
        ("enabled = true\njoins = true", format!("{tls}{pool}"), "take [[pools]] out"),
    ] {
        let said = lacks(words, &more);
        assert!(said.contains(why), "{said}");
    }
}

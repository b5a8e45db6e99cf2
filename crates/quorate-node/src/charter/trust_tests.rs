//! Tokens of the charter at one node: what is refused, what a file hides, who is left in charge.

use quorate_api::{AmendRequest, ProblemKind, TokenRequest};
use quorate_client::{Token, ViewError, Views};
use quorate_trust::Secret;

use super::tests::{Folder, text};
use crate::config::{Config, Data};
use crate::node::Node;

/// The file of a cluster of one.
fn alone(rights: &str) -> String {
    let text = text("a").replace(", { name = \"b\", peers = \"127.0.0.1:3\" }", "");
    format!("{rights}\n{text}")
}

fn entry(name: &str, secret: &Secret) -> String {
    format!(
        "tokens = [{{ name = \"{name}\", sha256 = \"{}\", may = [\"admin\"], pools = [\"*\"] }}]",
        secret.digest()
    )
}

async fn start(folder: &Folder, rights: &str) -> Node {
    let mut config = Config::parse(&alone(rights)).unwrap();
    config.data = Data::Directory(folder.0.clone());
    let listen = || tokio::net::TcpListener::bind("127.0.0.1:0");
    Node::start_on(config, listen().await.unwrap(), listen().await.unwrap()).await.unwrap()
}

async fn new(folder: &Folder, rights: &str) -> Node {
    let mut config = Config::parse(&alone(rights)).unwrap();
    config.data = Data::Directory(folder.0.clone());
    Node::init(&config).unwrap();
    start(folder, rights).await
}

fn views(node: &Node, secret: &Secret) -> Views {
    let views = Views::new([node.clients_address().to_string()]).unwrap();
    views.with_token(Some(Token(secret.reveal().to_owned())))
}

fn request(secret: &Secret, may: &str) -> TokenRequest {
    TokenRequest {
        sha256: secret.digest().to_string(),
        definition: Some(format!("may = [\"{may}\"]\npools = [\"*\"]\n")),
        ..TokenRequest::default()
    }
}

/// It has just started, and founds its charter or makes sure of it.
async fn made(views: &Views, name: &str, request: &TokenRequest) -> u64 {
    loop {
        match views.put_token(name, request).await {
            Ok(made) => return made.version,
            Err(ViewError::Problem(why)) if why.kind == ProblemKind::Unavailable => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn refused<T: std::fmt::Debug>(said: Result<T, ViewError>, why: &str) -> ProblemKind {
    match said.expect_err("refused") {
        ViewError::Problem(problem) => {
            assert!(problem.detail.contains(why), "{why}: {}", problem.detail);
            assert!(problem.detail.contains("nothing changed"), "{}", problem.detail);
            problem.kind
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_no_file_could_say_is_refused_and_names_are_somebodys() {
    let folder = Folder::new("tokens");
    let [root, ci, other] = [(); 3].map(|()| Secret::random().unwrap());
    let node = new(&folder, &entry("root", &root)).await;
    let admin = views(&node, &root);
    let version = made(&admin, "ci", &request(&ci, "see")).await;
    views(&node, &ci).pools().await.expect("it is let in");
    let token = admin.token("ci").await.unwrap();
    assert_eq!((token.generation, token.right.as_deref()), (version, Some("ci")));
    assert_eq!((&*token.source, &token.may[..]), ("charter", &["see".to_owned()][..]));
    let put = async |name: &str, request: TokenRequest| admin.put_token(name, &request).await;
    let good = |secret| request(secret, "see");
    let late = TokenRequest { expires: Some("2020-01-01".into()), ..good(&other) };
    let short = TokenRequest { sha256: "77".into(), ..good(&other) };
    let both = TokenRequest { right: Some("ci".into()), ..good(&other) };
    let secret = TokenRequest { sha256: other.reveal().into(), ..good(&other) };
    let bad = ProblemKind::BadRequest;
    assert_eq!(refused(put("x", late).await, "expired"), bad);
    assert_eq!(refused(put("x", short).await, "64 hexadecimal digits"), bad);
    assert_eq!(refused(put("x", secret).await, "this is a token"), bad);
    assert_eq!(refused(put("x", both).await, "either"), bad);
    assert_eq!(refused(put("x", request(&other, "rule")).await, "is no right"), bad);
    assert_eq!(refused(put("a b", good(&other)).await, "is no name"), bad);
    let clash = ProblemKind::Conflict;
    assert_eq!(refused(put("root", good(&other)).await, "has a token"), clash);
    assert_eq!(refused(put("ci", good(&other)).await, "there already"), clash);
    assert_eq!(refused(put("x", good(&ci)).await, "are the same"), clash);
    assert_eq!(refused(put("x", good(&root)).await, "are the same"), clash);
    let stale = TokenRequest { if_generation: Some(1), ..good(&other) };
    assert_eq!(refused(put("ci", stale).await, "look at it again"), clash);
    let names = |view: quorate_api::TokensView| -> Vec<String> {
        view.tokens.into_iter().map(|token| token.name).collect()
    };
    assert_eq!(names(admin.tokens().await.unwrap()), ["root", "ci"], "nothing of it was done");

    // A right that has no pools yet, words that none has, and one that is in use.
    let set = |definition: &str, without: &[&str]| AmendRequest {
        definition: definition.into(),
        without: without.iter().map(|field| (*field).to_owned()).collect(),
        ..AmendRequest::default()
    };
    for wrong in ["may = [\"see\"]", "name = \"x\"", "sha256 = \"x\"", "expires = \"2999-01-01\""] {
        assert_eq!(refused(admin.set_right("new", &set(wrong, &[])).await, ""), bad, "{wrong}");
    }
    assert_eq!(refused(admin.set_right("ci", &set("", &["may"])).await, "may"), bad);
    assert_eq!(refused(admin.delete_right("ci", None, false).await, "is that of ci"), clash);
    let same = admin.set_right("ci", &set("may = [\"see\"]", &[])).await.unwrap();
    assert_eq!(same.version, 0, "it is so");
    let dry = AmendRequest { dry_run: true, ..set("most_units = 2", &[]) };
    let dry = admin.set_right("ci", &dry).await.unwrap();
    assert!(dry.version == 0 && dry.changes[0].contains("most_units = 2 (it was not said)"));
    assert_eq!(admin.token("ci").await.unwrap().most_units, None);

    // Repeated under its id.
    let once = admin.clone().with_request_id(Some(Views::new_id()));
    let first = once.put_token("twice", &good(&other)).await.unwrap().version;
    assert_eq!(once.put_token("twice", &good(&other)).await.unwrap().version, first);
    let another = good(&Secret::random().unwrap());
    assert_eq!(refused(once.put_token("twice", &another).await, "worth nothing"), clash);
    views(&node, &other).pools().await.expect("the first is what counts");
    assert_eq!(refused(admin.revoke_token("nobody", None, false).await, "no token"), bad);
    assert_eq!(refused(admin.revoke_token("root", None, false).await, "taken away there"), clash);
    node.stop().await;
}

#[tokio::test]
async fn a_file_counts_at_its_machine_and_somebody_stays_in_charge() {
    let folder = Folder::new("hidden");
    let [root, boss, own] = [(); 3].map(|()| Secret::random().unwrap());
    let node = new(&folder, &entry("root", &root)).await;
    made(&views(&node, &root), "boss", &request(&boss, "admin")).await;
    node.stop().await;

    // The name is that of somebody else in the file.
    let node = start(&folder, &entry("boss", &own)).await;
    let admin = views(&node, &own);
    let hidden = loop {
        let view = admin.tokens().await.expect("the file's own is good at once");
        if let Some(of_charter) = view.tokens.iter().find(|token| token.source == "charter") {
            break of_charter.hidden;
        }
    };
    assert!(hidden);
    let said = views(&node, &boss).pools().await.map(drop);
    assert!(matches!(said, Err(ViewError::Problem(why)) if why.kind == ProblemKind::Unauthorized));
    let ready = node.pulse().await.unwrap();
    let check = ready.iter().find(|check| check.name == "tokens").expect("it has a charter");
    assert!(check.ok && check.detail.contains("worth nothing here"), "{}", check.detail);
    node.stop().await;

    // Nobody else may administer: neither is it taken away, nor made less.
    let node = start(&folder, "rights = {}").await;
    let admin = views(&node, &boss);
    admin.pools().await.expect("good from the first request");
    let alone = "nobody could administer this node any more";
    refused(admin.revoke_token("boss", None, false).await, alone);
    let less = AmendRequest { definition: "may = [\"see\"]".into(), ..AmendRequest::default() };
    refused(admin.set_right("boss", &less).await, alone);
    made(&admin, "second", &request(&own, "admin")).await;
    admin.revoke_token("boss", None, false).await.expect("another is there");
    let said = admin.pools().await.map(drop);
    assert!(matches!(said, Err(ViewError::Problem(why)) if why.kind == ProblemKind::Unauthorized));
    node.stop().await;

    // Where everybody is let in, a token would say nothing.
    let node = start(&folder, "").await;
    let said = views(&node, &own).put_token("x", &request(&boss, "see")).await;
    refused(said, "open to whoever reaches it");
    node.stop().await;
}

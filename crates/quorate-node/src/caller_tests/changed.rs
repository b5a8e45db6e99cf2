//! What becomes of callers when the rules change while the node runs.

use std::time::Duration;

use quorate_api::link::Token;
use tokio::time::timeout;

use super::*;
use crate::caller::{LATER, let_in};

#[test]
fn whoever_was_let_in_with_a_token_that_is_gone_may_do_nothing_more() {
    let (secret, another) = (Secret::random().unwrap(), Secret::random().unwrap());
    let file_of = |secret: &Secret, may: &str| {
        let name = format!("name = \"ci\", sha256 = \"{}\"", secret.digest());
        config(&format!("tokens = [{{ {name}, may = [\"{may}\"], pools = [\"*\"] }}]")).unwrap()
    };
    let file = |may: &str| file_of(&secret, may);
    let running = file("see");
    let caller = Caller::Anonymous.shows(&running, Some(secret.reveal()));
    let see = || authorize(&running, &caller, Some("p"), Action::See).map_err(|why| why.kind);
    assert_eq!(see(), Ok(()));
    running.guarded.replace(&file("see").guarded);
    assert_eq!(see(), Ok(()), "nothing changed for it");
    running.guarded.replace(&file_of(&another, "see").guarded);
    assert_eq!(see(), Err(ProblemKind::Unauthorized), "a new secret under the old name");
    running.guarded.replace(&file("see").guarded);
    let caller = Caller::Anonymous.shows(&running, Some(secret.reveal()));
    let see = || authorize(&running, &caller, Some("p"), Action::See).map_err(|why| why.kind);
    assert_eq!(see(), Ok(()));
    running.guarded.replace(&file("claim").guarded);
    assert_eq!(see(), Err(ProblemKind::Unauthorized));
    running.guarded.replace(&config("rights = {}").unwrap().guarded);
    assert_eq!(see(), Err(ProblemKind::Unauthorized));
}

#[test]
fn who_was_let_in_is_cut_off_when_its_token_is_gone_and_when_it_expires() {
    let secret = Secret::random().unwrap();
    let file = |name: &str, rest: &str| {
        let token = format!("name = \"{name}\", sha256 = \"{}\"", secret.digest());
        config(&format!("tokens = [{{ {token}, may = [\"see\"], pools = [\"*\"] {rest} }}]"))
            .unwrap()
    };
    let running = file("ci", "");
    let caller = Caller::Anonymous.shows(&running, Some(secret.reveal()));
    assert_eq!(let_in(&running, &caller), Ok(()));
    let replaced = |other: &Config| {
        running.guarded.replace(&other.guarded);
        let_in(&running, &caller).map_err(|why| why.reason())
    };
    assert_eq!(replaced(&file("ci", "")), Ok(()), "nothing changed for it");
    assert_eq!(replaced(&file("other", "")), Err("unknown token"));
    assert_eq!(replaced(&config("").unwrap()), Ok(()), "all is open to everybody");
    let past = file("ci", ", expires = \"2020-01-01\"");
    let caller = Caller::Anonymous.shows(&past, Some(secret.reveal()));
    assert_eq!(let_in(&past, &caller).map_err(|why| why.reason()), Err("expired"));
    for caller in [Caller::Anonymous, Caller::Stranger(None), Caller::Administrator] {
        assert_eq!(let_in(&past, &caller), Ok(()), "it was not let in by anything");
    }
}

/// From a connection to its end, in a thread whose day comes early.
#[tokio::test]
async fn whoever_is_connected_hears_that_its_token_has_expired_and_is_cut_off() {
    let secret = Secret::random().unwrap();
    let token = format!("name = \"ci\", sha256 = \"{}\"", secret.digest());
    let rest = "may = [\"see\", \"claim\"], pools = [\"*\"], expires = \"2999-01-01\"";
    let file = config(&format!("tokens = [{{ {token}, {rest} }}]")).unwrap();
    let bind = || TcpListener::bind("127.0.0.1:0");
    let node = Node::start_on(file, bind().await.unwrap(), bind().await.unwrap()).await.unwrap();
    let app = node.app().serving(Caller::Anonymous);
    let mut stream = linked(app.clone()).await;
    let say = async |stream: &mut TcpStream, number, ask| {
        let mut bytes = Vec::new();
        link::encode(&FromClient::Request(Request { number, ask }), &mut bytes);
        stream.write_all(&bytes).await.unwrap();
    };
    let token = Token(secret.reveal().to_owned());
    say(&mut stream, 1, Ask::Introduce { client: String::new(), token }).await;
    assert!(matches!(answer(&mut stream, 1).await, Reply::Welcome { .. }));
    let claim = |serial: &str| {
        let id: ClaimId = serial.parse().unwrap();
        Ask::Claim { pool: "p".into(), id, want: 1.into() }
    };
    say(&mut stream, 2, claim("1")).await;
    assert!(matches!(answer(&mut stream, 2).await, Reply::Granted { .. }));
    // A second claim waits, on the link and over HTTP, when the day comes.
    say(&mut stream, 3, claim("2")).await;
    let waits = call(&app, "PUT", "/v1/pools/p/claims/3?wait=5m", Some(secret.reveal()));
    let watches = call(&app, "GET", "/v1/watch", Some(secret.reveal())).await;
    assert_eq!(watches.status(), StatusCode::OK);
    let tomorrow = async {
        tokio::task::yield_now().await;
        LATER.set(Duration::from_secs(400_000 * 24 * 3600));
    };
    // What docs/security.md promises, and many times what it takes.
    let minute = Duration::from_secs(60);
    let (waited, ()) = tokio::join!(timeout(minute, waits), tomorrow);
    let waited = waited.expect("whoever waits over HTTP is cut off");
    assert_eq!(waited.status(), StatusCode::UNAUTHORIZED);
    let reply = timeout(minute, answer(&mut stream, 3)).await.expect("so is the link");
    let Reply::Problem(said) = reply else { panic!("it waited on") };
    assert_eq!(said.kind, ProblemKind::Unauthorized);
    assert!(said.detail.contains("expired"), "{}", said.detail);
    let mut rest = Vec::new();
    let closed = timeout(minute, stream.read_to_end(&mut rest)).await;
    closed.expect("its connection is closed").unwrap();
    let ended = timeout(minute, to_bytes(watches.into_body(), 1 << 20)).await;
    ended.expect("who watches is cut off").expect("the stream ends");
    LATER.set(Duration::ZERO);
}

#[test]
fn an_administrators_token_that_was_replaced_is_worth_nothing_more() {
    let other = config("admin_token = \"another secret of all\"").unwrap();
    for running in [guarded(), config(&format!("admin_token = {TOKEN:?}\nrights = {{}}")).unwrap()]
    {
        let rights = running.guarded.now().is_some();
        let caller = Caller::Anonymous.shows(&running, Some(TOKEN));
        let may = |caller: &Caller| authorize(&running, caller, Some("p"), Action::Revoke).is_ok();
        assert!(may(&caller));
        running.guarded.replace(&running.clone().guarded);
        assert!(may(&caller), "nothing changed for it");
        assert_eq!(let_in(&running, &caller), Ok(()));
        running.guarded.replace(&other.guarded);
        assert!(!may(&caller), "with rights: {rights}");
        assert!(let_in(&running, &caller).is_err());
        assert!(may(&Caller::Anonymous.shows(&running, Some("another secret of all"))));
        assert!(may(&Caller::Administrator), "who runs it needs none");
    }
}

#[test]
fn what_a_running_node_cannot_take_up_is_named() {
    let slower = config(&format!("admin_token = {TOKEN:?}\nsuspect_after = \"9s\"")).unwrap();
    assert_eq!(guarded().differs(&slower), Some("suspect_after"));
    assert_eq!(guarded().differs(&guarded()), None);
}

#[test]
fn tokens_of_the_charter_are_good_beside_those_of_a_file_which_counts() {
    let (secret, own) = (Secret::random().unwrap(), Secret::random().unwrap());
    let permit = |name: &str, may| quorate_trust::Permit {
        may: [may].into_iter().collect(),
        ..quorate_trust::Permit::everything(name)
    };
    let running = config("rights = {}").unwrap();
    let guard = &running.guarded;
    let shows = |secret: &Secret| Caller::Anonymous.shows(&running, Some(secret.reveal()));
    assert_eq!(shows(&secret), Caller::Stranger(None));
    guard.add(vec![(secret.digest(), permit("ci", Right::See))]);
    let caller = shows(&secret);
    let may = |action| authorize(&running, &caller, Some("p"), action).map_err(|why| why.kind);
    assert_eq!(may(Action::See), Ok(()));
    assert_eq!(may(Action::Claim), Err(ProblemKind::Forbidden));
    guard.replace(&config("rights = { open_metrics = true }").unwrap().guarded);
    assert_eq!(may(Action::See), Ok(()), "another file, and the charter as it was");
    guard.add(vec![
        (own.digest(), permit("b", Right::See)),
        (secret.digest(), permit("ci", Right::See)),
    ]);
    assert_eq!(may(Action::See), Ok(()), "others came");
    // Narrowed, and another secret under the name.
    guard.add(vec![(secret.digest(), permit("ci", Right::Claim))]);
    assert!(let_in(&running, &caller).is_err(), "whoever comes again may do that");
    assert!(authorize(&running, &shows(&secret), Some("p"), Action::Claim).is_ok());
    guard.add(vec![(own.digest(), permit("ci", Right::Claim))]);
    assert_eq!(shows(&secret), Caller::Stranger(None));
    assert!(matches!(shows(&own), Caller::Holder(_)));
    // The file has that name, or that token.
    let entry = |name: &str, secret: &Secret| {
        let digest = secret.digest();
        let token = format!("name = \"{name}\", sha256 = \"{digest}\", may = [], pools = []");
        config(&format!("tokens = [{{ {token} }}]")).unwrap()
    };
    guard.replace(&entry("ci", &secret).guarded);
    assert_eq!((shows(&own), guard.hidden()), (Caller::Stranger(None), vec!["ci".to_owned()]));
    let Caller::Holder(file) = shows(&secret) else { panic!("the file's is good") };
    assert_eq!(file.may, quorate_trust::Rights::NONE);
    guard.replace(&entry("other", &own).guarded);
    let Caller::Holder(file) = shows(&own) else { panic!("the file's is good") };
    assert_eq!((&*file.name, guard.hidden()), ("other", vec!["ci".to_owned()]));
    // Whether anybody is asked the file says.
    guard.replace(&config("").unwrap().guarded);
    assert_eq!((shows(&own), guard.hidden().len()), (Caller::Anonymous, 0));
    assert!(authorize(&running, &Caller::Anonymous, Some("p"), Action::Claim).is_ok());
}

#[test]
fn who_cannot_be_looked_up_is_told_so_and_not_that_its_token_is_wrong() {
    let running = config("rights = {}").unwrap();
    let said = authorize(&running, &Caller::Unheard, Some("p"), Action::See).unwrap_err();
    assert_eq!(said.kind, ProblemKind::Unavailable);
    assert!(said.detail.contains("no majority") && said.detail.contains("nothing changed"));
    assert!(let_in(&running, &Caller::Unheard).is_err(), "its connection ends");
    assert!(authorize(&running, &Caller::Unheard, None, Action::Health).is_ok());
}

//! Every endpoint and every request of the client link, asked by every kind of caller: what each
//! needs is in one table here, and whatever is added must be added to it.

use std::collections::BTreeSet;
use std::pin::Pin;

use axum::body::{Body, to_bytes};
use axum::http::{Request as HttpRequest, StatusCode, header};
use axum::response::Response;
use futures_core::Stream as _;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request};
use quorate_api::{AuditKind, ClaimId, Problem, ProblemKind};
use quorate_trust::{Right, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::app::App;
use crate::caller::{Action, Caller, Guest, Whence, authorize, token_of};
use crate::config::{Config, ConfigError};
use crate::{Node, api, session};
use endpoints::ENDPOINTS;
use heard::said_in;

mod changed;
mod documented;
mod endpoints;
mod heard;

const TOKEN: &str = "0123456789abcdef";

fn config(top: &str) -> Result<Config, ConfigError> {
    let text = format!(
        "{top}\ncluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
         gateways = {{ fleetlock = \"*\", terraform = \"*\" }}\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
         [[pools]]\nname = \"p\"\nunits = 1\n"
    );
    Config::parse_in_memory(&text)
}

fn guarded() -> Config {
    config(&format!("admin_token = {TOKEN:?}")).unwrap()
}

async fn node() -> Node {
    let bind = || TcpListener::bind("127.0.0.1:0");
    Node::start_on(guarded(), bind().await.unwrap(), bind().await.unwrap()).await.unwrap()
}

/// Asks for something of the pool.
async fn call(app: &App, method: &str, path: &str, token: Option<&str>) -> Response {
    let id = ClaimId::from_halves(1, 2).to_string();
    let names = [("{pool}", "p"), ("{unit}", "0"), ("{node}", "a"), ("{check}", "grace")];
    let named = names.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let path = named.replace("{id}", &id);
    let body = match path.rsplit('/').next() {
        Some("labels") => r#"{"labels":{}}"#,
        Some("revoke") => r#"{"reason":"x"}"#,
        Some("pre-reboot" | "steady-state") => r#"{"client_params":{"id":"m","group":"p"}}"#,
        _ if path.contains("terraform") => r#"{"ID":"0f9a4bbb-2f1e-7d7a-6e39-5a5a7ad0a7b1"}"#,
        _ => "{}",
    };
    let mut request = HttpRequest::builder().method(method).uri(&path);
    request = request.header("fleet-lock-protocol", "true");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let service = TowerToHyperService::new(api::router(app.clone()));
    service.call(request.body(Body::from(body)).unwrap()).await.unwrap()
}

/// Says whether rights are missing.
async fn is_refused(app: &App, method: &str, path: &str, token: Option<&str>) -> bool {
    let answer = call(app, method, path, token).await;
    if answer.status() != StatusCode::FORBIDDEN {
        return false;
    }
    let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
    // A seat may be protected against everybody; that says nothing of rights.
    String::from_utf8_lossy(&body).contains("QUORATE_TOKEN")
}

#[tokio::test]
async fn every_endpoint_asks_for_the_right_that_it_needs() {
    let node = node().await;
    for (method, path, needs) in ENDPOINTS {
        let of_all = matches!(needs, Some(Action::Audit | Action::Members | Action::Tokens));
        let guarded = of_all || matches!(needs, Some(Action::Revoke | Action::Admin));
        let open = matches!(needs, None | Some(Action::Health));
        let anonymous = node.app().serving(Caller::Anonymous);
        assert!(!is_refused(&anonymous, method, path, Some(TOKEN)).await, "{method} {path}");
        for wrong in [None, Some("0123456789abcdee"), Some("")] {
            let refused = is_refused(&anonymous, method, path, wrong).await;
            assert_eq!(refused, guarded, "{method} {path} with {wrong:?}");
        }
        let nobody = node.app().serving(Caller::Nobody);
        assert_eq!(is_refused(&nobody, method, path, None).await, !open, "{method} {path}");
    }
    node.stop().await;
}

#[test]
fn no_endpoint_is_missing_in_the_table() {
    let listed: BTreeSet<&str> = ENDPOINTS.iter().map(|(_, path, _)| *path).collect();
    let source = include_str!("api/mod.rs");
    let routes = source.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
    assert_eq!(listed, routes.collect());
    let document: serde_json::Value = serde_json::from_str(crate::openapi()).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let is_it = |row: &&(&str, &str, _)| (row.0, row.1) == (method.as_str(), path.as_str());
            assert!(ENDPOINTS.iter().any(|row| is_it(&row)), "{method} {path}");
        }
    }
}

/// What a request of the client link takes.
fn needs(ask: &Ask) -> Option<Action> {
    match ask {
        Ask::Hello { .. } | Ask::Introduce { .. } | Ask::Ping => None,
        Ask::Claim { .. } | Ask::Renew { .. } | Ask::Release { .. } => Some(Action::Claim),
        Ask::Status { .. } => Some(Action::Read),
    }
}

fn all_asks() -> Vec<Ask> {
    let (pool, id) = (String::from("p"), ClaimId::from_halves(1, 2));
    let units = vec![link::Share { unit: 0, fence: 1 }];
    vec![
        Ask::Hello { client: String::new() },
        Ask::Ping,
        Ask::Claim { pool: pool.clone(), id, want: 1.into() },
        Ask::Renew { pool: pool.clone(), id, units },
        Ask::Status { pool: pool.clone(), id },
        Ask::Release { pool, id },
    ]
}

#[tokio::test]
async fn every_request_of_the_client_link_asks_for_the_right_that_it_needs() {
    let asks = all_asks();
    let node = node().await;
    for caller in [Caller::Anonymous, Caller::Stranger(None), Caller::Nobody] {
        let mut stream = linked(node.app().serving(caller.clone())).await;
        for (number, ask) in (1..).zip(&asks) {
            let request = FromClient::Request(Request { number, ask: ask.clone() });
            let mut bytes = Vec::new();
            link::encode(&request, &mut bytes);
            stream.write_all(&bytes).await.unwrap();
            let reply = answer(&mut stream, number).await;
            let refused = matches!(reply, Reply::Problem(p) if p.kind == ProblemKind::Forbidden);
            assert_eq!(refused, caller == Caller::Nobody && needs(ask).is_some(), "{ask:?}");
        }
    }
    node.stop().await;
}

/// A client's end of a link, on which this caller is served.
async fn linked(app: App) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (served, _) = listener.accept().await.unwrap();
    tokio::spawn(session::run(served.into(), app));
    stream.write_all(&PREFACE).await.unwrap();
    stream
}

async fn answer(stream: &mut TcpStream, wanted: u64) -> Reply {
    let mut bytes = Vec::new();
    loop {
        if let Some((said, used)) = link::decode::<FromNode>(&bytes).unwrap() {
            bytes.drain(..used);
            match said {
                FromNode::Answer(Answer { number, reply }) if number == wanted => return reply,
                _ => continue,
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the node hung up");
    }
}

#[test]
fn only_the_token_gives_rights_and_without_one_everybody_has_them() {
    let may =
        |config: &Config, caller: Caller| authorize(config, &caller, Some("p"), Action::Revoke);
    let (open, guarded) = (config("").unwrap(), guarded());
    let shown = |config, token| Caller::Anonymous.shows(config, token);
    assert!(may(&open, shown(&open, None)).is_ok());
    assert!(may(&open, shown(&open, Some("anything"))).is_ok());
    assert!(may(&guarded, shown(&guarded, Some(TOKEN))).is_ok());
    for wrong in [None, Some("0123456789abcdee"), Some(""), Some("0123")] {
        let problem = may(&guarded, shown(&guarded, wrong)).unwrap_err();
        assert_eq!((problem.kind, problem.status), (ProblemKind::Forbidden, 403));
    }
    assert!(!format!("{guarded:?}").contains(TOKEN), "secrets are not shown");
    assert!(config("admin_token = \"0123abcdef\"").is_err(), "too short");
}

/// What a caller of a guarded node is, in one word for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answered {
    /// It is served, whatever comes of that.
    Served,
    /// It must say who it is.
    Unknown,
    /// It is known, and may not.
    Forbidden,
    /// There is no such pool for it.
    NoPool,
}

impl Answered {
    fn of(problem: Option<(ProblemKind, &str)>) -> Answered {
        match problem {
            Some((ProblemKind::Unauthorized, _)) => Answered::Unknown,
            // A seat may be protected against everybody; that says nothing of rights.
            Some((ProblemKind::Forbidden, text)) if text.contains("lacks the right") => {
                Answered::Forbidden
            }
            Some((ProblemKind::UnknownPool, _)) => Answered::NoPool,
            _ => Answered::Served,
        }
    }
}

/// Tokens of a guarded node: for each right one in this pool, one in another and one that expired.
struct Tokens {
    file: String,
    secrets: Vec<(Right, [Secret; 3])>,
}

impl Tokens {
    fn new() -> Tokens {
        let (mut file, mut secrets) = (String::new(), Vec::new());
        for right in Right::ALL {
            let three = [(); 3].map(|()| Secret::random().unwrap());
            let kinds = [("here", "p", ""), ("there", "q", ""), ("old", "p", "2020-01-01")];
            for (secret, (kind, pool, expires)) in three.iter().zip(kinds) {
                let expires = match expires {
                    "" => String::new(),
                    date => format!("expires = {date:?}"),
                };
                file.push_str(&format!(
                    "[[tokens]]\nname = \"{kind}-{right}\"\nsha256 = \"{}\"\n\
                     may = [\"{right}\"]\npools = [\"{pool}\"]\n{expires}\n",
                    secret.digest()
                ));
            }
            secrets.push((right, three));
        }
        Tokens { file, secrets }
    }

    fn secret(&self, right: Right) -> &str {
        let found = self.secrets.iter().find(|(known, _)| *known == right).unwrap();
        found.1[0].reveal()
    }

    async fn node(&self, top: &str) -> Node {
        let text = format!(
            "{top}cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
             gateways = {{ fleetlock = \"*\", terraform = \"*\" }}\n\
             listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
             members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
             [[pools]]\nname = \"p\"\nunits = 1\n[[pools]]\nname = \"q\"\nunits = 1\n\
             [[pools]]\nname = \"hushed\"\nunits = 1\n{}",
            self.file
        );
        let bind = || TcpListener::bind("127.0.0.1:0");
        let config = Config::parse_in_memory(&text).unwrap();
        Node::start_on(config, bind().await.unwrap(), bind().await.unwrap()).await.unwrap()
    }

    /// Every credential there is, and what it should be answered where this is needed.
    fn walk(&self, needs: Option<Action>, of_a_pool: bool) -> Vec<(Option<String>, Answered)> {
        let open = matches!(needs, None | Some(Action::Health));
        let rights: &[Right] = match needs {
            None | Some(Action::Health) => &[],
            Some(Action::Admin | Action::Audit | Action::Members | Action::Tokens) => &[],
            Some(Action::See | Action::Measure) => &[Right::See],
            Some(Action::Read) => &[Right::See, Right::Claim, Right::Revoke],
            Some(Action::Claim) => &[Right::Claim],
            Some(Action::Revoke) => &[Right::Revoke],
        };
        let or = |answered| if open { Answered::Served } else { answered };
        let mut walk = vec![(None, or(Answered::Unknown))];
        let unknown = Secret::random().unwrap();
        let mistyped = format!("{}0", &unknown.reveal()[..Secret::LEN - 1]);
        for wrong in [String::new(), "hunter2".into(), mistyped, unknown.reveal().to_owned()] {
            walk.push((Some(wrong), or(Answered::Unknown)));
        }
        for (right, [here, there, old]) in &self.secrets {
            // The audit is of all pools, and these are for one.
            let enough = *right == Right::Admin
                && !matches!(needs, Some(Action::Audit | Action::Members | Action::Tokens))
                || rights.contains(right);
            let answered = if enough { Answered::Served } else { Answered::Forbidden };
            walk.push((Some(here.reveal().to_owned()), or(answered)));
            // Of what belongs to no pool it sees its part.
            let elsewhere = if of_a_pool { Answered::NoPool } else { answered };
            walk.push((Some(there.reveal().to_owned()), or(elsewhere)));
            walk.push((Some(old.reveal().to_owned()), or(Answered::Unknown)));
        }
        walk
    }
}

#[tokio::test]
async fn a_guarded_node_gives_every_token_what_it_may_have_and_nothing_else() {
    let tokens = Tokens::new();
    let node = tokens.node("").await;
    let app = node.app().serving(Caller::Anonymous);
    for (method, path, needs) in ENDPOINTS {
        let of_a_pool = path.contains("{pool}") || *needs == Some(Action::Claim);
        for (token, expected) in tokens.walk(*needs, of_a_pool) {
            let answer = call(&app, method, path, token.as_deref()).await;
            let status = answer.status();
            let asks = answer.headers().contains_key(header::WWW_AUTHENTICATE);
            let problem: Option<Problem> = match status.is_client_error() {
                true => {
                    let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
                    let text = String::from_utf8_lossy(&body);
                    let shown = token.as_ref().is_some_and(|t| t.len() > 9 && text.contains(t));
                    assert!(!shown, "a token is in the answer: {text}");
                    said_in(&body)
                }
                false => None,
            };
            let said = problem.as_ref().map(|problem| (problem.kind, &*problem.detail));
            let answered = Answered::of(said);
            assert_eq!(answered, expected, "{method} {path} {needs:?}: {said:?}");
            assert_eq!(asks, answered == Answered::Unknown, "{method} {path}");
        }
    }
    // All of it went past the audit, which tells names and nothing that could be used.
    let view = node.app().audit.view();
    let told = serde_json::to_string(&view).unwrap();
    let secrets = tokens.secrets.iter().flat_map(|(_, three)| three);
    for secret in secrets.map(Secret::reveal).chain(["hunter2"]) {
        assert!(!told.contains(secret), "a token is in the audit");
    }
    assert!(view.left_out > 0, "so many refusals are not all written down");
    let known =
        |kind, who: &str| view.events.iter().any(|event| event.kind == kind && event.who == who);
    assert!(known(AuditKind::Refusal, "anonymous") && known(AuditKind::Refusal, "stranger"));
    assert!(known(AuditKind::FirstUse, "here-see") && known(AuditKind::FirstUse, "there-claim"));
    let acts = view.events.iter().filter(|event| event.kind == AuditKind::Act);
    let mut acts: Vec<String> =
        acts.map(|it| format!("{} {} {} {}", it.who, it.what, it.pool, it.about)).collect();
    acts.sort();
    acts.dedup();
    let claim = ClaimId::from_halves(1, 2);
    let expected = [
        "here-admin corrupt p ".to_owned(),
        "here-admin drain p unit 0".to_owned(),
        "here-admin fence p node a".to_owned(),
        "here-admin relabel p unit 0".to_owned(),
        format!("here-admin release p claim {claim} of here-claim"),
        "here-admin restore p unit 0".to_owned(),
        format!("here-admin revoke p claim {claim}"),
        "here-admin unlabel p unit 0".to_owned(),
        format!("here-revoke revoke p claim {claim}"),
    ];
    assert_eq!(acts, expected);
    node.stop().await;
}

/// The way back in when all tokens are lost: neither none nor a wrong one stands in it.
#[tokio::test]
async fn whoever_runs_the_node_may_do_everything_on_its_unix_socket() {
    let tokens = Tokens::new();
    let node = tokens.node("").await;
    let guest =
        |caller| Guest { caller, whence: Whence::Local { user: 0 }, private: true, seat: None };
    let served = |problem: Option<Problem>| {
        let said = problem.as_ref().map(|problem| (problem.kind, &*problem.detail));
        Answered::of(said) == Answered::Served
    };
    let unknown = Secret::random().unwrap();
    for (caller, all) in [(Caller::Administrator, true), (Caller::Anonymous, false)] {
        let app = node.app().receiving(guest(caller));
        for (method, path, needs) in ENDPOINTS {
            let open = matches!(needs, None | Some(Action::Health));
            for token in [None, Some("hunter2"), Some(unknown.reveal())] {
                let answer = call(&app, method, path, token).await;
                let problem = match answer.status().is_client_error() {
                    true => {
                        let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
                        said_in(&body)
                    }
                    false => None,
                };
                assert_eq!(served(problem), all || open, "{method} {path} with {token:?}");
            }
            // A token is worth the same as anywhere, for those who are nobody without it.
            let admin = Some(tokens.secret(Right::Admin));
            assert!(call(&app, method, path, admin).await.status() != StatusCode::UNAUTHORIZED);
        }
        let mut stream = linked(app).await;
        let token = link::Token(unknown.reveal().to_owned());
        let introduce = Ask::Introduce { client: String::new(), token };
        for (number, ask) in (1..).zip([introduce].into_iter().chain(all_asks())) {
            let open = needs(&ask).is_none();
            let mut bytes = Vec::new();
            link::encode(&FromClient::Request(Request { number, ask }), &mut bytes);
            stream.write_all(&bytes).await.unwrap();
            let problem = match answer(&mut stream, number).await {
                Reply::Problem(problem) => Some(problem),
                _ => None,
            };
            assert_eq!(served(problem), all || open);
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn a_guarded_node_does_so_on_the_client_link() {
    let tokens = Tokens::new();
    let node = tokens.node("").await;
    for ask in all_asks() {
        for (token, expected) in tokens.walk(needs(&ask), true) {
            let mut stream = linked(node.app().serving(Caller::Anonymous)).await;
            let hello = match token {
                Some(token) => Ask::Introduce { client: String::new(), token: link::Token(token) },
                None => Ask::Hello { client: String::new() },
            };
            let mut replies = Vec::new();
            for (number, ask) in [(1, hello), (2, ask.clone())] {
                let mut bytes = Vec::new();
                link::encode(&FromClient::Request(Request { number, ask }), &mut bytes);
                stream.write_all(&bytes).await.unwrap();
                replies.push(answer(&mut stream, number).await);
            }
            let [welcome, reply] = &replies[..] else { unreachable!("two were asked") };
            assert!(matches!(welcome, Reply::Welcome { .. }), "{welcome:?}");
            let said = match reply {
                Reply::Problem(problem) => Some((problem.kind, &*problem.detail)),
                _ => None,
            };
            assert_eq!(Answered::of(said), expected, "{ask:?}: {reply:?}");
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn what_a_token_may_not_see_is_not_there() {
    let tokens = Tokens::new();
    let node = tokens.node("").await;
    let app = node.app().serving(Caller::Anonymous);
    // As the node itself, which may do everything.
    let claim = |pool: &str| format!("/v1/pools/{pool}/claims/{{id}}");
    assert_eq!(call(node.app(), "PUT", &claim("hushed"), None).await.status(), StatusCode::OK);
    assert_eq!(call(node.app(), "PUT", &claim("p"), None).await.status(), StatusCode::OK);
    let see = Some(tokens.secret(Right::See));
    for (method, path, _) in ENDPOINTS.iter().filter(|(method, ..)| *method == "GET") {
        if path.ends_with("watch") || path.starts_with("/assets") {
            continue; // Looked at below; and files.
        }
        for token in [see, None] {
            let answer = call(&app, method, path, token).await;
            let body = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
            let text = String::from_utf8_lossy(&body);
            assert!(!text.contains("hushed"), "{method} {path}: {text}");
        }
    }
    let text = |answer: Response| async {
        String::from_utf8_lossy(&to_bytes(answer.into_body(), 1 << 20).await.unwrap()).into_owned()
    };
    // A pool that is hidden and one that does not exist are told in the same words.
    let hidden = text(call(&app, "GET", "/v1/pools/hushed", see).await).await;
    let none = text(call(&app, "GET", "/v1/pools/nobody", see).await).await;
    assert_eq!(hidden.replace("hushed", "?"), none.replace("nobody", "?"));
    let pools = text(call(&app, "GET", "/v1/pools", see).await).await;
    assert!(pools.contains("\"p\""), "{pools}");
    let counted = text(call(&app, "GET", "/metrics", see).await).await;
    assert!(counted.contains("pool=\"p\""), "{counted}");
    let mut events = call(&app, "GET", "/v1/watch", see).await.into_body().into_data_stream();
    for pool in ["hushed", "p"] {
        let ended = call(node.app(), "DELETE", &claim(pool), None).await;
        assert_eq!(ended.status(), StatusCode::OK);
    }
    let mut seen = String::new();
    while !seen.contains("\"p\"") {
        let next = std::future::poll_fn(|cx| Pin::new(&mut events).poll_next(cx)).await;
        seen.push_str(&String::from_utf8_lossy(&next.unwrap().unwrap()));
    }
    assert!(!seen.contains("hushed"), "{seen}");
    node.stop().await;
}

#[tokio::test]
async fn metrics_are_open_if_the_file_says_so_and_nothing_else_is() {
    let tokens = Tokens::new();
    let node = tokens.node("rights = { open_metrics = true }\n").await;
    let app = node.app().serving(Caller::Anonymous);
    assert_eq!(call(&app, "GET", "/metrics", None).await.status(), StatusCode::OK);
    let refused = call(&app, "GET", "/v1/pools", None).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    node.stop().await;
    // Rights without any token close everything.
    let nobody = config("rights = {}").unwrap();
    let see = authorize(&nobody, &Caller::Anonymous, Some("p"), Action::See).unwrap_err();
    assert_eq!((see.kind, see.status), (ProblemKind::Unauthorized, 401));
}

#[test]
fn tokens_are_taken_as_bearer_and_as_the_password_of_basic() {
    assert_eq!(token_of("Bearer abc"), "abc");
    assert_eq!(token_of("bearer  abc "), "abc");
    // printf 'ci:qt1_x:y' | base64
    assert_eq!(token_of("Basic Y2k6cXQxX3g6eQ=="), "qt1_x:y");
    assert_eq!(token_of("basic Y2k6cXQxX3g6eQ"), "qt1_x:y");
    for strange in ["", "Basic", "Basic !", "Basic Y2k=", "Digest x", "abc", "Basic /w=="] {
        assert_eq!(token_of(strange), "", "{strange}");
    }
}

#[test]
fn entries_that_make_no_sense_are_refused_with_the_tokens_name() {
    let secret = Secret::random().unwrap();
    let hash = secret.digest().to_string();
    let entry = |hash: &str, rest: &str| {
        config(&format!("tokens = [{{ name = \"ci\", sha256 = \"{hash}\", {rest} }}]"))
    };
    let fine = "may = [\"see\"], pools = [\"*\"]";
    assert!(entry(&hash, fine).is_ok());
    let wrong = [
        entry("abc", fine),
        entry(secret.reveal(), fine),
        entry(&hash, "may = [\"all\"], pools = [\"*\"]"),
        entry(&hash, "may = [\"see\"], pools = [\"a**\"]"),
        entry(&hash, &format!("{fine}, most_units = 0")),
        entry(&hash, &format!("{fine}, expires = \"soon\"")),
    ];
    for wrong in wrong {
        let said = wrong.unwrap_err().to_string();
        assert!(said.contains("token \"ci\""), "{said}");
        assert!(!said.contains(secret.reveal()), "{said}");
    }
    let twice = format!("{{ name = \"ci\", sha256 = \"{hash}\", {fine} }}");
    assert!(config(&format!("tokens = [{twice}, {twice}]")).is_err());
}

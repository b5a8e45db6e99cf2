//! Every endpoint and every request of the client link, asked by every kind of caller: what each
//! needs is in one table here, and whatever is added must be added to it.

use std::collections::BTreeSet;

use axum::body::{Body, to_bytes};
use axum::http::{Request as HttpRequest, StatusCode, header};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use quorate_api::link::{self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request};
use quorate_api::{ClaimId, ProblemKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::app::App;
use crate::caller::{Action, Caller, authorize};
use crate::config::{Config, ConfigError};
use crate::{Node, api, session};

const TOKEN: &str = "0123456789abcdef";

/// Everything there is over HTTP, and what it takes; nothing, if it tells nothing about the node.
const ENDPOINTS: &[(&str, &str, Option<Action>)] = &[
    ("GET", "/", None),
    ("GET", "/docs", None),
    ("GET", "/assets/{name}", None),
    ("GET", "/livez", None),
    ("GET", "/v1/openapi.json", None),
    ("GET", "/readyz", Some(Action::Health)),
    ("GET", "/readyz/{check}", Some(Action::Health)),
    ("GET", "/metrics", Some(Action::See)),
    ("GET", "/v1/node", Some(Action::See)),
    ("GET", "/v1/watch", Some(Action::See)),
    ("GET", "/v1/overview", Some(Action::See)),
    ("GET", "/v1/overview/watch", Some(Action::See)),
    ("GET", "/v1/claims/{id}", Some(Action::See)),
    ("GET", "/v1/pools", Some(Action::See)),
    ("GET", "/v1/pools/{pool}", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/holders", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/queue", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/history", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/watch", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/claims/{id}", Some(Action::See)),
    ("GET", "/v1/pools/{pool}/claims/{id}/why", Some(Action::See)),
    ("PUT", "/v1/pools/{pool}/claims/{id}", Some(Action::Claim)),
    ("POST", "/v1/pools/{pool}/claims/{id}/renew", Some(Action::Claim)),
    ("DELETE", "/v1/pools/{pool}/claims/{id}", Some(Action::Claim)),
    ("POST", "/v1/pools/{pool}/claims/{id}/revoke", Some(Action::Revoke)),
    ("PUT", "/v1/pools/{pool}/units/{unit}/drain", Some(Action::Admin)),
    ("DELETE", "/v1/pools/{pool}/units/{unit}/drain", Some(Action::Admin)),
    ("PUT", "/v1/pools/{pool}/units/{unit}/labels", Some(Action::Admin)),
    ("DELETE", "/v1/pools/{pool}/units/{unit}/labels", Some(Action::Admin)),
    ("POST", "/v1/admin/pools/{pool}/corrupt", Some(Action::Admin)),
    ("POST", "/v1/admin/pools/{pool}/nodes/{node}/fence", Some(Action::Admin)),
];

fn config(top: &str) -> Result<Config, ConfigError> {
    let text = format!(
        "{top}\ncluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
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

/// Asks for something of the pool; says whether rights are missing.
async fn is_refused(app: &App, method: &str, path: &str, token: Option<&str>) -> bool {
    let names = [("{pool}", "p"), ("{unit}", "0"), ("{node}", "a"), ("{check}", "grace")];
    let mut path = path.replace("{id}", &ClaimId::from_halves(1, 2).to_string());
    for (name, value) in names {
        path = path.replace(name, value);
    }
    let body = match path.rsplit('/').next() {
        Some("labels") => r#"{"labels":{}}"#,
        Some("revoke") => r#"{"reason":"x"}"#,
        _ => "{}",
    };
    let mut request = HttpRequest::builder().method(method).uri(&path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let service = TowerToHyperService::new(api::router(app.clone()));
    let answer = service.call(request.body(Body::from(body)).unwrap()).await.unwrap();
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
        let guarded = matches!(needs, Some(Action::Revoke | Action::Admin));
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
    let document: serde_json::Value = serde_json::from_str(&crate::openapi()).unwrap();
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
        Ask::Hello { .. } | Ask::Ping => None,
        Ask::Claim { .. } | Ask::Renew { .. } | Ask::Release { .. } => Some(Action::Claim),
        Ask::Status { .. } => Some(Action::See),
    }
}

#[tokio::test]
async fn every_request_of_the_client_link_asks_for_the_right_that_it_needs() {
    let (pool, id) = (String::from("p"), ClaimId::from_halves(1, 2));
    let units = vec![link::Share { unit: 0, fence: 1 }];
    let asks = [
        Ask::Hello { client: String::new() },
        Ask::Ping,
        Ask::Claim { pool: pool.clone(), id, want: 1.into() },
        Ask::Renew { pool: pool.clone(), id, units },
        Ask::Status { pool: pool.clone(), id },
        Ask::Release { pool, id },
    ];
    let node = node().await;
    for caller in [Caller::Anonymous, Caller::Stranger, Caller::Nobody] {
        let mut stream = linked(node.app().serving(caller)).await;
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
    tokio::spawn(session::run(served, app));
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
    let may = |config: &Config, caller| authorize(config, caller, Some("p"), Action::Revoke);
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

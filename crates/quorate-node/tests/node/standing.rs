//! Holds without a lease, at nodes inside the test: what a change of the file must not forget, and
//! what tokens may do through gateways. Crashes, lost disks and the tools themselves are tried on
//! real processes (`crates/quorate/tests/real/standing.rs`).

use std::time::Duration;

use crate::common::Cluster;
use quorate_node::{Config, Node};
use quorate_trust::Secret;
use serde_json::json;

const POOL: &str = "[[pools]]\nname = \"p\"\nunits = 1\nprotocol = \"table\"\nlease = \"1s\"\n\
                    durable = true\nstanding = true\n";

/// Why a node does not start. A port that was just closed may take a moment to be free.
async fn refused(config: &Config) -> String {
    for _ in 0..600 {
        let Err(error) = Node::start(config.clone()).await else { panic!("it started") };
        let error = error.to_string();
        if !error.contains("cannot listen") {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the port does not become free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_does_not_make_a_node_forget_what_has_no_lease() {
    let mut cluster = Cluster::on_disk("standing_file", 1, POOL).await;
    let put = "PUT /v1/pools/p/claims/1?wait=1m";
    let (status, held) =
        cluster.request(0, put, r#"{"standing": true, "client": "ada", "reason": "x"}"#).await;
    assert_eq!((status, &held["standing"]), (200, &true.into()), "{held}");
    assert_eq!(held.get("expires_in_ms"), None, "{held}");
    cluster.stop(0).await;
    // With other units, and without any journal.
    let central = "[[pools]]\nname = \"p\"\nunits = 1\n".to_owned();
    for other in [POOL.replace("units = 1", "units = 2"), central] {
        let error = refused(&cluster.config(0, &other)).await;
        assert!(error.contains("holds without a lease (1 in pool p)"), "{error}");
        assert!(error.contains("nothing changed"), "{error}");
    }
    // Nothing did: with the former file all is as it was.
    cluster.restart(0, None).await;
    let (_, view) = cluster.request(0, "GET /v1/pools/p/holders", "").await;
    let holder = &view["holders"][0];
    assert_eq!((&holder["client"], &holder["standing"]), (&"ada".into(), &true.into()), "{view}");
    let (status, over) = cluster.request(0, "DELETE /v1/pools/p/claims/1", "").await;
    assert_eq!(status, 200, "{over}");
    cluster.stop(0).await;
    cluster.restart(0, Some(&POOL.replace("units = 1", "units = 2"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pools_that_say_so_have_holds_without_a_lease() {
    let leased = "[[pools]]\nname = \"q\"\nunits = 1\n";
    let cluster = Cluster::start(1, &format!("{POOL}{leased}")).await;
    let put = |pool: &str, wait: &str| format!("PUT /v1/pools/{pool}/claims/1?wait={wait}");
    let standing = r#"{"standing": true}"#;
    let (status, refused) = cluster.request(0, &put("q", "1m"), standing).await;
    assert_eq!((status, &refused["type"]), (422, &"impossible".into()), "{refused}");
    let (status, _) = cluster.request(0, &put("p", "1m"), standing).await;
    assert_eq!(status, 200);
    // The same name for a claim with a lease is another claim.
    let (status, other) = cluster.request(0, &put("p", "0"), "{}").await;
    assert_eq!((status, &other["type"]), (409, &"different-claim".into()), "{other}");
    // Renewed by a client that cannot know better: nothing changes, and nothing is counted down.
    let (status, renewed) = cluster.request(0, "POST /v1/pools/p/claims/1/renew", "").await;
    assert_eq!((status, &renewed["standing"]), (200, &true.into()), "{renewed}");
}

/// The end of a file with both gateways, and who may come.
fn guarded(guests: &[(&str, &Secret, &str)]) -> String {
    let mut file = format!("[gateways]\nfleetlock = \"*\"\nterraform = \"*\"\n{POOL}");
    for (name, secret, may) in guests {
        file.push_str(&format!(
            "[[tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\nmay = [{may}]\npools = [\"p\"]\n",
            secret.digest()
        ));
    }
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_gateway_a_caller_has_the_rights_of_its_token() {
    let [ann, bob, eve, boss] = [(); 4].map(|()| Secret::random().unwrap());
    let file = guarded(&[
        ("ann", &ann, "\"claim\""),
        ("bob", &bob, "\"claim\""),
        ("eve", &eve, "\"see\""),
        ("boss", &boss, "\"claim\", \"revoke\""),
    ]);
    let cluster = Cluster::start(1, &file).await;
    let call = async |guest: Option<&Secret>, what: &str, body: &str| {
        let token = guest.map(|guest| format!("authorization: Bearer {}\r\n", guest.reveal()));
        let token = token.unwrap_or_default();
        let head = format!("{what} HTTP/1.1\r\n{token}fleet-lock-protocol: true\r\nx-rest:");
        cluster.request(0, &head, body).await
    };
    let machine = json!({"client_params": {"id": "m1", "group": "p"}}).to_string();
    let lock = |id: u32| json!({"ID": format!("{id:08}-2222-3333-4444-555555555555")}).to_string();
    let (pre, steady) = ("POST /v1/pre-reboot", "POST /v1/steady-state");
    // Who may not claim may not come through either gateway, and is told so in the tool's words.
    for (guest, status, kind) in [(None, 401, "unauthorized"), (Some(&eve), 403, "forbidden")] {
        for what in [pre, steady] {
            let (code, said) = call(guest, what, &machine).await;
            assert_eq!((code, &said["kind"]), (status, &kind.into()), "{what}: {said}");
        }
        for what in ["LOCK /v1/terraform/p", "UNLOCK /v1/terraform/p"] {
            assert_eq!(call(guest, what, &lock(1)).await.0, status, "{what}");
        }
    }
    // A machine is called what its token is, and another token does not end its hold.
    assert_eq!(call(Some(&ann), pre, &machine).await.0, 200);
    let (_, view) = call(Some(&eve), "GET /v1/pools/p/holders", "").await;
    assert_eq!(view["holders"][0]["client"], "ann", "{view}");
    let (status, said) = call(Some(&bob), steady, &machine).await;
    assert_eq!((status, &said["kind"]), (404, &"refused".into()), "{said}");
    assert_eq!(call(Some(&ann), steady, &machine).await.0, 200);
    // Terraform: forcing somebody else's lock is to revoke, with its ID or, as older ones do,
    // without any.
    assert_eq!(call(Some(&ann), "LOCK /v1/terraform/p", &lock(1)).await.0, 200);
    assert_eq!(call(Some(&bob), "UNLOCK /v1/terraform/p", &lock(1)).await.0, 404);
    assert_eq!(call(Some(&ann), "UNLOCK /v1/terraform/p", "").await.0, 403, "not even its own");
    assert_eq!(call(Some(&boss), "UNLOCK /v1/terraform/p", &lock(1)).await.0, 200);
    assert_eq!(call(Some(&bob), "LOCK /v1/terraform/p", &lock(2)).await.0, 200);
    let token = format!("authorization: Bearer {}\r\nx-rest:", boss.reveal());
    let (status, said) =
        cluster.text(0, &format!("UNLOCK /v1/terraform/p HTTP/1.1\r\n{token}")).await;
    assert_eq!((status, said.as_str()), (200, ""));
    let (_, view) = call(Some(&eve), "GET /v1/pools/p/holders", "").await;
    assert_eq!(view["holders"], json!([]), "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_the_file_does_not_name_is_not_there() {
    let cluster = Cluster::start(1, POOL).await;
    let machine = json!({"client_params": {"id": "m1", "group": "p"}}).to_string();
    let head = "POST /v1/pre-reboot HTTP/1.1\r\nfleet-lock-protocol: true\r\nx-rest:";
    let (status, said) = cluster.request(0, head, &machine).await;
    assert_eq!(status, 404, "{said}");
    let (status, said) = cluster.request(0, "LOCK /v1/terraform/p", "{}").await;
    assert_eq!(status, 404, "{said}");
    assert!(said["detail"].as_str().is_some_and(|text| text.contains("[gateways]")), "{said}");
}

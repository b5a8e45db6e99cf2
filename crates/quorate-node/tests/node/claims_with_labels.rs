//! Pools whose units differ: claims that choose, bundles, reservations, and why they wait.

use crate::common::Cluster;
use serde_json::Value;

/// Two kinds of GPU in two zones, and a network card; the h100 in the us is for the trainers.
const POOLS: &str = r#"
    [[pools]]
    name = "gpus"
    arbiter = "n0"
    lease = "1m"
    units = [
        { name = "g0", labels = { gpu = "h100", zone = "eu" } },
        { name = "g1", labels = { gpu = "h100", zone = "us" } },
        { name = "g2", labels = { gpu = "a100", zone = "eu" } },
        { name = "g3", labels = { gpu = "a100", zone = "us" } },
        { name = "nic", labels = { kind = "nic" } },
    ]
    [[pools.reserved]]
    units = ["g1"]
    clients = ["train-*"]
    [[pools.reserved]]
    where = { kind = "nic" }
    members = ["n1"]
    [[pools]]
    name = "plain"
    units = 2
"#;

/// The same pool, decided by one node and by quorums that keep a table.
fn both() -> [String; 2] {
    let table = POOLS.replace("arbiter = \"n0\"", "protocol = \"table\"\nsurvive = 0");
    [POOLS.to_owned(), table]
}

async fn put(cluster: &Cluster, node: usize, id: u32, body: &str) -> (u16, Value) {
    cluster.request(node, &format!("PUT /v1/pools/gpus/claims/{id}?wait=30s&why=true"), body).await
}

/// The same without waiting for the grant.
async fn ask(cluster: &Cluster, node: usize, id: u32, body: &str) -> (u16, Value) {
    cluster.request(node, &format!("PUT /v1/pools/gpus/claims/{id}?wait=0s"), body).await
}

fn names(claim: &Value) -> Vec<&str> {
    let units = claim["units"].as_array().unwrap();
    units.iter().map(|unit| unit["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_gets_units_with_the_labels_it_asks_for() {
    for pools in both() {
        let cluster = Cluster::start(2, &pools).await;
        let body = r#"{"lines": [{"where": {"gpu": "a100"}, "units": 2}]}"#;
        let (status, claim) = put(&cluster, 1, 1, body).await;
        assert_eq!((status, names(&claim)), (200, vec!["g2", "g3"]), "{claim}");
        assert_eq!(claim["units"][1]["labels"]["zone"], "us");
        assert_eq!((&claim["asked"], &claim["lines"][0]["units"]), (&2.into(), &2.into()));
        // Repeating is harmless, and another selector is another claim.
        let (status, again) = put(&cluster, 1, 1, body).await;
        assert_eq!((status, &again["units"]), (200, &claim["units"]));
        let other = r#"{"lines": [{"where": {"zone": "eu"}, "units": 2}]}"#;
        let (status, problem) = put(&cluster, 1, 1, other).await;
        assert_eq!((status, &problem["type"]), (409, &"different-claim".into()));
        let (_, holders) = cluster.request(0, "GET /v1/pools/gpus/holders", "").await;
        assert_eq!(names(&holders["holders"][0]), ["g2", "g3"]);
        let (_, pool) = cluster.request(0, "GET /v1/pools/gpus", "").await;
        assert_eq!(pool["unit_labels"][0]["gpu"], "h100");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_granted_together_and_delays_nobody_who_wants_other_units() {
    for pools in both() {
        let cluster = Cluster::start(2, &pools).await;
        let (status, first) =
            put(&cluster, 0, 1, r#"{"lines": [{"where": {"gpu": "h100"}}]}"#).await;
        assert_eq!((status, names(&first)), (200, vec!["g0"]));
        let bundle = r#"{"lines": [{"where": {"gpu": "h100"}}, {"where": {"kind": "nic"}}]}"#;
        let (status, bundle) = ask(&cluster, 1, 2, bundle).await;
        assert_eq!((status, &bundle["state"]), (202, &"waiting".into()), "{bundle}");
        let (status, third) =
            put(&cluster, 1, 3, r#"{"lines": [{"where": {"gpu": "a100"}}]}"#).await;
        assert_eq!((status, &third["units"][0]["labels"]["gpu"]), (200, &"a100".into()), "{third}");
        let (_, queue) = cluster.request(0, "GET /v1/pools/gpus/queue", "").await;
        assert_eq!(queue["waiting"][0]["lines"][1]["where"]["kind"], "nic", "{queue}");
        cluster.request(1, "DELETE /v1/pools/gpus/claims/1", "").await;
        let (status, granted) =
            cluster.request(1, "GET /v1/pools/gpus/claims/2?wait=30s", "").await;
        assert_eq!((status, names(&granted)), (200, vec!["g0", "nic"]), "{granted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_unit_can_satisfy_is_refused_at_once_and_says_which_selector() {
    for pools in both() {
        let cluster = Cluster::start(2, &pools).await;
        for (id, (body, says)) in (1..).zip([
            (
                r#"{"lines": [{"where": {"gpu": "b200"}}]}"#,
                "1 with gpu=b200: there are 0 such units. Of the pool's units this client may use, \
                 at this node, gpu=a100 (2), h100 (1); kind=nic (1); zone=eu (2), us (1)",
            ),
            (
                r#"{"lines": [{"where": {"zone": "us"}}, {"where": {"gpu": "h100"}},
                              {"where": {"gpu": "h100", "zone": "eu"}}]}"#,
                "1 with gpu=h100, 1 with gpu=h100,zone=eu: together these ask for 2 units, and \
                 there are 1 that will do",
            ),
            (
                r#"{"units": 5}"#,
                "5 units asked, and this client may use 4 of the pool's 5 at this node",
            ),
        ]) {
            let (status, problem) = put(&cluster, 1, id, body).await;
            assert_eq!((status, &problem["type"]), (422, &"impossible".into()), "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
        }
        for body in [
            r#"{"units": 1, "lines": [{"where": {"zone": "us"}, "units": 2}]}"#,
            r#"{"lines": [{"where": {"zone": ""}}]}"#,
            r#"{"lines": [{"were": {"zone": "us"}}]}"#,
        ] {
            let (status, problem) = put(&cluster, 1, 9, body).await;
            assert_eq!((status, &problem["type"]), (400, &"bad-request".into()), "{problem}");
        }
        let what = "PUT /v1/pools/plain/claims/1";
        let (status, problem) =
            cluster.request(0, what, r#"{"lines": [{"where": {"zone": "us"}}]}"#).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("have no labels"), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_units_are_for_those_they_are_reserved_for() {
    for pools in both() {
        let cluster = Cluster::start(2, &pools).await;
        let nic = r#"{"lines": [{"where": {"kind": "nic"}}]}"#;
        assert_eq!(put(&cluster, 0, 1, nic).await.0, 422, "not at this member");
        assert_eq!(put(&cluster, 1, 2, nic).await.0, 200);
        let trainer = r#"{"client": "train-7", "lines": [{"where": {"gpu": "h100"}, "units": 2}]}"#;
        let (status, claim) = put(&cluster, 0, 3, trainer).await;
        assert_eq!((status, names(&claim)), (200, vec!["g0", "g1"]), "{claim}");
        // Nobody else waits for what is not for him.
        let (status, claim) = put(&cluster, 0, 4, r#"{"units": 2}"#).await;
        assert_eq!((status, names(&claim)), (200, vec!["g2", "g3"]), "{claim}");
        cluster.request(0, "DELETE /v1/pools/gpus/claims/3", "").await;
        let (status, claim) = put(&cluster, 0, 5, "{}").await;
        assert_eq!((status, names(&claim)), (200, vec!["g0"]), "{claim}");
        let (status, claim) = ask(&cluster, 0, 6, "{}").await;
        assert_eq!(
            (status, &claim["state"]),
            (202, &"waiting".into()),
            "g1 is not for it: {claim}"
        );
    }
}

/// A rule that names members and clients lets in who is both, and two rules about a unit let in
/// whom either does.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_names_members_and_clients_asks_for_both() {
    let both_named =
        "[[pools.reserved]]\nunits = [\"g2\"]\nmembers = [\"n1\"]\nclients = [\"train-*\"]";
    let either =
        "[[pools.reserved]]\nunits = [\"g2\"]\nclients = [\"root\"]\n[[pools]]\nname = \"plain\"";
    for pools in both() {
        let pools =
            pools.replace("[[pools]]\n    name = \"plain\"", &format!("{both_named}\n{either}"));
        let cluster = Cluster::start(2, &pools).await;
        let ask = |client: &str| {
            let lines = r#"[{"where": {"gpu": "a100", "zone": "eu"}}]"#;
            format!(r#"{{"client": "{client}", "lines": {lines}}}"#)
        };
        let mut id = 0;
        for (node, client, status) in [
            (0, "train-7", 422),
            (1, "eval-7", 422),
            (0, "eval-7", 422),
            (1, "train-7", 200),
            (0, "root", 200),
        ] {
            id += 1;
            let (got, claim) = put(&cluster, node, id, &ask(client)).await;
            assert_eq!(got, status, "{client} at n{node}: {claim}");
            cluster.request(node, &format!("DELETE /v1/pools/gpus/claims/{id}"), "").await;
        }
    }
}

/// More units than a list in an answer has room for.
#[tokio::test(flavor = "multi_thread")]
async fn a_shortage_of_thousands_of_units_is_described_as_it_is() {
    let unit = |at: usize| {
        let gpu = if at < 2500 { "h100" } else { "a100" };
        format!("{{ name = \"g{at}\", labels = {{ gpu = \"{gpu}\" }} }}")
    };
    let units: Vec<String> = (0..2600).map(unit).collect();
    let pools =
        format!("[[pools]]\nname = \"gpus\"\narbiter = \"n0\"\nunits = [{}]", units.join(", "));
    let cluster = Cluster::start(2, &pools).await;
    let all = r#"{"lines": [{"where": {"gpu": "h100"}, "units": 2500}]}"#;
    assert_eq!(put(&cluster, 0, 1, all).await.0, 200);
    let one = r#"{"lines": [{"where": {"gpu": "h100"}}]}"#;
    assert_eq!(ask(&cluster, 0, 2, one).await.0, 202);
    // Node n1 is told by n0, which decides.
    for node in 0..2 {
        let (_, why) = cluster.request(node, "GET /v1/pools/gpus/claims/2/why", "").await;
        assert_eq!(why["why"]["summary"], "2 claims want 2500 units with gpu=h100");
        assert_eq!(why["why"]["shortage"]["units"].as_array().map(Vec::len), Some(1000));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_claim_waits_says_which_units_are_short_and_how_many_want_them() {
    for pools in both() {
        let cluster = Cluster::start(2, &pools).await;
        let a100 = r#"{"lines": [{"where": {"gpu": "a100"}}]}"#;
        for id in 1..=2 {
            assert_eq!(put(&cluster, 0, id, a100).await.0, 200);
        }
        let h100 = r#"{"lines": [{"where": {"gpu": "h100"}}]}"#;
        assert_eq!(put(&cluster, 0, 9, h100).await.0, 200);
        ask(&cluster, 1, 3, a100).await;
        ask(&cluster, 1, 4, a100).await;
        let sentence = "4 claims want 2 units with gpu=a100";
        crate::common::until("both are in the books", || async {
            let (_, why) = cluster.request(0, "GET /v1/pools/gpus/claims/4/why", "").await;
            why["why"]["summary"] == sentence
        })
        .await;
        let (status, claim) = cluster.request(1, "GET /v1/pools/gpus/claims/4/why", "").await;
        let short = &claim["why"]["shortage"];
        assert_eq!((status, &short["units"]), (202, &serde_json::json!(["g2", "g3"])), "{claim}");
        assert_eq!((&short["holders"], &short["waiting"]), (&2.into(), &2.into()), "{claim}");
        // What would help: both holders of such units, and not whoever holds others.
        let release = claim["why"]["remedy"]["release"].as_array().unwrap();
        let ends: Vec<&str> = release.iter().map(|id| &id.as_str().unwrap()[31..]).collect();
        assert_eq!(ends, ["1", "2"], "{claim}");
        assert_eq!(claim["why"]["remedy"]["cancel"], serde_json::json!([]), "{claim}");
        // Nor is whoever holds others in the way.
        let named = |list: &Value| -> std::collections::BTreeSet<String> {
            let ids = list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
            ids.map(|id| id[31..].to_owned()).collect()
        };
        assert_eq!(named(&claim["why"]["holders"]), ["1", "2"].map(String::from).into(), "{claim}");
        assert_eq!(named(&claim["why"]["ahead"]), ["3"].map(String::from).into(), "{claim}");
        let (_, pool) = cluster.request(0, "GET /v1/pools/gpus", "").await;
        assert_eq!(pool["shortages"][0]["summary"], sentence, "{pool}");
        assert_eq!(pool["shortages"].as_array().map(Vec::len), Some(1), "{pool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_unit_is_granted_no_more_until_it_is_back() {
    let cluster = Cluster::start(2, POOLS).await;
    let a100 =
        |units: u32| format!(r#"{{"lines": [{{"where": {{"gpu": "a100"}}, "units": {units}}}]}}"#);
    assert_eq!(put(&cluster, 1, 1, &a100(1)).await.0, 200);
    ask(&cluster, 1, 2, &a100(2)).await;
    let (status, pool) = cluster.request(1, "PUT /v1/pools/gpus/units/g3/drain", "").await;
    assert_eq!((status, &pool["drained"]), (200, &serde_json::json!(["g3"])), "{pool}");
    // Who waits for what can never be is told so, and whoever asks for it is refused.
    let (status, over) = cluster.request(1, "GET /v1/pools/gpus/claims/2?wait=30s", "").await;
    assert_eq!((status, &over["state"]), (200, &"refused".into()), "{over}");
    let (status, problem) = put(&cluster, 1, 3, &a100(2)).await;
    assert_eq!((status, &problem["type"]), (422, &"impossible".into()), "{problem}");
    let (status, pool) = cluster.request(0, "DELETE /v1/pools/gpus/units/3/drain", "").await;
    assert_eq!((status, &pool["drained"]), (200, &Value::Null), "{pool}");
    assert_eq!(put(&cluster, 1, 4, &a100(1)).await.0, 200);
    for (what, code) in [
        ("PUT /v1/pools/gpus/units/g9/drain", 400),
        ("PUT /v1/pools/gpus/units/99/drain", 400),
        ("PUT /v1/pools/none/units/0/drain", 404),
    ] {
        assert_eq!(cluster.request(0, what, "").await.0, code, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_gets_other_labels_while_the_pool_runs() {
    let cluster = Cluster::start(2, POOLS).await;
    let a100 =
        |units: u32| format!(r#"{{"lines": [{{"where": {{"gpu": "a100"}}, "units": {units}}}]}}"#);
    let (_, first) = put(&cluster, 1, 1, &a100(2)).await;
    assert_eq!(names(&first), ["g2", "g3"]);
    ask(&cluster, 1, 2, &a100(2)).await;
    ask(&cluster, 1, 3, r#"{"lines": [{"where": {"gpu": "b200"}}]}"#).await;
    let (_, third) = cluster.request(1, "GET /v1/pools/gpus/claims/3?wait=30s", "").await;
    assert_eq!(third["state"], "refused", "{third}");
    crate::common::until("2 is in the books", || async {
        let (_, queue) = cluster.request(0, "GET /v1/pools/gpus/queue", "").await;
        queue["waiting"][0]["position"] == 1
    })
    .await;
    // Through the node that does not decide: who holds the unit keeps it, who can never have two
    // a100s any more is refused, and says so.
    let path = "/v1/pools/gpus/units/g3/labels";
    let b200 = r#"{"labels": {"gpu": "b200", "zone": "us"}}"#;
    let (status, pool) = cluster.request(1, &format!("PUT {path}"), b200).await;
    assert_eq!((status, &pool["relabelled"]), (200, &serde_json::json!(["g3"])), "{pool}");
    let refused = pool["outcome"]["refused"][0].as_str().unwrap();
    assert!(refused.ends_with('2'), "{pool}");
    assert_eq!(pool["unit_labels"][3]["gpu"], "b200", "{pool}");
    let (_, second) = cluster.request(1, "GET /v1/pools/gpus/claims/2?wait=30s", "").await;
    let says = "2 with gpu=a100: there is 1 such unit.";
    assert_eq!(second["state"], "refused", "{second}");
    assert!(second["ended"].as_str().unwrap().starts_with(says), "{second}");
    let (_, still) = cluster.request(1, "GET /v1/pools/gpus/claims/1", "").await;
    assert_eq!((names(&still), &still["state"]), (vec!["g2", "g3"], &"granted".into()), "{still}");
    // Whoever waits for it now gets it, with its new labels, at either node.
    ask(&cluster, 1, 4, r#"{"lines": [{"where": {"gpu": "b200"}}]}"#).await;
    cluster.request(1, "DELETE /v1/pools/gpus/claims/1", "").await;
    let (_, fourth) = cluster.request(1, "GET /v1/pools/gpus/claims/4?wait=30s", "").await;
    assert_eq!(
        (names(&fourth), &fourth["units"][0]["labels"]["gpu"]),
        (vec!["g3"], &"b200".into())
    );
    let (_, elsewhere) = cluster.request(0, "GET /v1/pools/gpus/claims/4", "").await;
    assert_eq!(elsewhere["units"], fourth["units"], "{elsewhere}");
    // And back to what the configuration says: a claim that waits is granted by that.
    let (status, waits) = ask(&cluster, 0, 5, &a100(2)).await;
    assert_eq!((status, &waits["type"]), (422, &"impossible".into()), "{waits}");
    cluster.request(1, "DELETE /v1/pools/gpus/claims/4", "").await;
    let (status, pool) = cluster.request(0, &format!("DELETE {path}"), "").await;
    assert_eq!((status, &pool["relabelled"]), (200, &Value::Null), "{pool}");
    assert_eq!(put(&cluster, 1, 6, &a100(2)).await.0, 200);
    for (what, body, code) in [
        ("PUT /v1/pools/gpus/units/g9/labels", b200, 400),
        ("PUT /v1/pools/gpus/units/g0/labels", r#"{"labels": {"gpu": ""}}"#, 400),
        ("PUT /v1/pools/gpus/units/g0/labels", r#"{"label": {}}"#, 400),
        ("PUT /v1/pools/plain/units/0/labels", b200, 400),
        ("PUT /v1/pools/none/units/0/labels", b200, 404),
    ] {
        assert_eq!(cluster.request(0, what, body).await.0, code, "{what} {body}");
    }
}

/// What a claim shows to keep its units.
fn shown<'a>(units: impl IntoIterator<Item = &'a Value>) -> String {
    let units: Vec<&Value> = units.into_iter().collect();
    serde_json::json!({ "units": units }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_movable_claim_is_asked_to_move_and_its_unit_changes_hands_when_it_has() {
    let cluster = Cluster::start(2, POOLS).await;
    let eu = r#"{"movable": true, "lines": [{"where": {"zone": "eu"}}]}"#;
    let (status, first) = put(&cluster, 1, 1, eu).await;
    assert_eq!(status, 200, "{first}");
    // Whichever it has, somebody needs exactly that.
    let gpu = first["units"][0]["labels"]["gpu"].as_str().unwrap();
    let needs = format!(r#"{{"lines": [{{"where": {{"zone": "eu", "gpu": "{gpu}"}}}}]}}"#);
    let (status, second) = ask(&cluster, 0, 2, &needs).await;
    assert_eq!((status, &second["state"]), (202, &"waiting".into()), "{second}");
    let path = "GET /v1/pools/gpus/claims/1";
    crate::common::until("it is asked to move", || async {
        cluster.request(1, path, "").await.1["moves"].is_array()
    })
    .await;
    let (_, asked) = cluster.request(1, path, "").await;
    assert_eq!(asked["units"].as_array().map(Vec::len), Some(2), "it has both: {asked}");
    let (_, elsewhere) = cluster.request(0, path, "").await;
    assert_eq!(elsewhere["moves"], asked["moves"], "any node says so: {elsewhere}");
    let it = &asked["moves"][0];
    assert_eq!(it["from"]["unit"], first["units"][0]["unit"]);
    // Renewing what it has, or had, is no answer.
    let renew = "POST /v1/pools/gpus/claims/1/renew";
    for units in [vec![&it["from"], &it["to"]], vec![&it["from"]]] {
        let (status, still) = cluster.request(1, renew, &shown(units)).await;
        assert_eq!((status, still["moves"].is_array()), (200, true), "{still}");
    }
    let (_, second) = cluster.request(0, "GET /v1/pools/gpus/claims/2", "").await;
    assert_eq!(second["state"], "waiting", "{second}");
    let (status, moved) = cluster.request(1, renew, &shown([&it["to"]])).await;
    assert_eq!((status, moved["units"].as_array().map(Vec::len)), (200, Some(1)), "{moved}");
    let (status, second) = cluster.request(0, "GET /v1/pools/gpus/claims/2?wait=30s", "").await;
    assert_eq!((status, names(&second)), (200, names(&first)), "{second}");
}

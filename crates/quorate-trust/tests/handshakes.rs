//! Handshakes without a network: who is let in, and who is not.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_trust::{
    Authority, DAY, Identity, Issued, Keys, KeysError, Kind, Lifetime, Roots, is_node, shown,
};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConnection};
use rustls_pki_types::{PrivateKeyDer, ServerName, pem::PemObject as _};

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

fn life() -> Lifetime {
    Lifetime { since_1970: now(), days: 90 }
}

struct Cluster {
    ca: Issued,
    authority: Authority,
}

impl Cluster {
    fn new(name: &str) -> Cluster {
        let ca = Authority::create(name, life()).unwrap();
        let authority = Authority::from_pem(ca.certificate.as_bytes(), &ca.key).unwrap();
        Cluster { ca, authority }
    }

    fn node(&self, name: &str) -> Keys {
        let made = self.authority.node(name, &["10.0.0.1".into()], life()).unwrap();
        self.keys(&made, name).unwrap()
    }

    fn keys(&self, made: &Issued, name: &str) -> Result<Keys, KeysError> {
        let files =
            (self.ca.certificate.as_bytes(), made.certificate.as_bytes(), made.key.as_bytes());
        Keys::from_pem(files, &identity(self.authority.cluster(), name), now())
    }
}

fn identity(cluster: &str, name: &str) -> Identity {
    Identity::new(cluster, Kind::Node, name).unwrap()
}

fn address() -> ServerName<'static> {
    ServerName::try_from("10.0.0.1").unwrap()
}

/// Both sides talk until they are done or one has had enough: why, if so.
fn shake(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<(), String> {
    fn pass<A, B>(
        from: &mut ConnectionCommon<A>,
        to: &mut ConnectionCommon<B>,
    ) -> Result<(), String> {
        let mut bytes = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut bytes).map_err(|error| error.to_string())?;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            to.read_tls(&mut rest).map_err(|error| error.to_string())?;
            to.process_new_packets().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
    for _ in 0..8 {
        pass(&mut *client, &mut *server)?;
        pass(&mut *server, &mut *client)?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking(), "it ends");
    Ok(())
}

fn call(from: &Keys, to: &Keys, name: &Identity) -> Result<(Identity, Identity), String> {
    let client = from.to_peer(name.clone()).unwrap();
    let mut client = ClientConnection::new(client, address()).unwrap();
    let mut server = ServerConnection::new(to.for_peers()).unwrap();
    shake(&mut client, &mut server)?;
    Ok((shown(client.peer_certificates()).unwrap(), shown(server.peer_certificates()).unwrap()))
}

#[test]
fn two_nodes_of_a_cluster_know_each_other_at_whatever_address() {
    let rack = Cluster::new("rack-7");
    let (a, b) = (rack.node("a"), rack.node("b"));
    let (called, caller) = call(&a, &b, &identity("rack-7", "b")).unwrap();
    assert_eq!(is_node(&called, "rack-7", "b"), Ok(()));
    assert_eq!(is_node(&caller, "rack-7", "a"), Ok(()));
    assert!(is_node(&caller, "rack-7", "b").is_err(), "a name of its own");
    assert!(is_node(&caller, "rack-8", "a").is_err());
}

#[test]
fn another_node_that_answers_is_not_talked_to() {
    let rack = Cluster::new("rack-7");
    let (a, b) = (rack.node("a"), rack.node("b"));
    let error = call(&a, &b, &identity("rack-7", "c")).unwrap_err();
    assert!(error.contains("quorate://rack-7/node/b answers instead of"), "{error}");
}

#[test]
fn a_node_of_another_authority_is_refused_by_both() {
    let (ours, theirs) = (Cluster::new("rack-7"), Cluster::new("rack-7"));
    let (a, b) = (ours.node("a"), theirs.node("b"));
    assert!(call(&a, &b, &identity("rack-7", "b")).is_err());
    // Its own side trusts our authority, and ours does not trust it.
    let both = format!("{}{}", ours.ca.certificate, theirs.ca.certificate);
    let made = theirs.authority.node("b", &[], life()).unwrap();
    let files = (both.as_bytes(), made.certificate.as_bytes(), made.key.as_bytes());
    let b = Keys::from_pem(files, &identity("rack-7", "b"), now()).unwrap();
    assert!(call(&b, &a, &identity("rack-7", "a")).is_err());
}

/// A client's side: checks the address, and shows a certificate or none.
fn client(rack: &Cluster, shows: Option<&Issued>) -> Arc<ClientConfig> {
    let mut store = RootCertStore::empty();
    let roots = Roots::from_pem(rack.ca.certificate.as_bytes()).unwrap();
    store.add_parsable_certificates(roots.certificates().iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let builder = builder.with_root_certificates(store);
    Arc::new(match shows {
        None => builder.with_no_client_auth(),
        Some(made) => {
            let chain = Roots::from_pem(made.certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain.certificates().to_vec(), key).unwrap()
        }
    })
}

#[test]
fn clients_check_the_address_and_may_show_who_they_are() {
    let rack = Cluster::new("rack-7");
    let node = rack.node("a");
    let visit = |shows: Option<&Issued>, address: &str| {
        let name = ServerName::try_from(address.to_owned()).unwrap();
        let mut client = ClientConnection::new(client(&rack, shows), name).unwrap();
        let mut server = ServerConnection::new(node.for_clients()).unwrap();
        shake(&mut client, &mut server)?;
        Ok::<_, String>(shown(server.peer_certificates()).ok())
    };
    assert_eq!(visit(None, "10.0.0.1"), Ok(None));
    assert!(visit(None, "10.0.0.2").is_err());
    let ci = rack.authority.client("ci", life()).unwrap();
    let known = visit(Some(&ci), "10.0.0.1").unwrap().unwrap();
    assert_eq!(known.to_string(), "quorate://rack-7/client/ci");
    let stranger = Cluster::new("rack-7").authority.client("ci", life()).unwrap();
    assert!(visit(Some(&stranger), "10.0.0.1").is_err());
}

#[test]
fn a_client_is_no_peer() {
    let rack = Cluster::new("rack-7");
    let node = rack.node("a");
    let ci = rack.authority.client("ci", life()).unwrap();
    for shows in [None, Some(&ci)] {
        let mut client = ClientConnection::new(client(&rack, shows), address()).unwrap();
        let mut server = ServerConnection::new(node.for_peers()).unwrap();
        let shaken = shake(&mut client, &mut server);
        let whose = shaken.and_then(|()| {
            let whose = shown(server.peer_certificates()).map_err(|error| error.to_string())?;
            is_node(&whose, "rack-7", "ci")
        });
        assert!(whose.is_err(), "{whose:?}");
    }
}

#[test]
fn files_that_do_not_fit_are_refused_before_anybody_calls() {
    let rack = Cluster::new("rack-7");
    let made = rack.authority.node("a", &[], life()).unwrap();
    assert!(matches!(rack.keys(&made, "b"), Err(KeysError::Whose(..))));
    let ci = rack.authority.client("a", life()).unwrap();
    assert!(matches!(rack.keys(&ci, "a"), Err(KeysError::Certificate(_))));
    let other = rack.authority.node("a", &[], life()).unwrap();
    let mixed = Issued { certificate: made.certificate.clone(), key: other.key };
    assert!(matches!(rack.keys(&mixed, "a"), Err(KeysError::Key(_))));
    let none = Issued { certificate: made.certificate, key: "none".into() };
    assert!(matches!(rack.keys(&none, "a"), Err(KeysError::Key(_))));
    let old = Lifetime { since_1970: now() - DAY * 30, days: 7 };
    let old = rack.authority.node("a", &[], old).unwrap();
    let said = rack.keys(&old, "a").unwrap_err().to_string();
    assert!(said.contains("expired on"), "{said}");
}

//! Nodes and clients that know each other by certificates.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::common::{Cluster, until};
use quorate_client::{AcquireError, Client, ConnectError, Options, Tls, Token, Views};
use quorate_trust::{Authority, Issued, Lifetime, Secret};
use quorate_wire::frame::{self, Frame};
use quorate_wire::{Hello, Life, Resume};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// An authority, and the files that it made for a test.
struct Office {
    folder: PathBuf,
    authority: Authority,
    ca: Issued,
}

impl Office {
    fn new(test: &str) -> Office {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let ca = Authority::create("test", life()).unwrap();
        let authority = Authority::from_pem(ca.certificate.as_bytes(), &ca.key).unwrap();
        std::fs::write(folder.join("ca.crt"), &ca.certificate).unwrap();
        Office { folder, authority, ca }
    }

    fn node(&self, name: &str) -> Issued {
        self.authority.node(name, &["127.0.0.1".into()], life()).unwrap()
    }

    /// With the certificates of so many nodes.
    fn with(self, nodes: usize) -> Office {
        for place in 0..nodes {
            let name = format!("n{place}");
            save(&self.folder, &name, &self.node(&name));
        }
        self
    }
}

fn save(folder: &Path, name: &str, made: &Issued) {
    std::fs::write(folder.join(format!("{name}.crt")), &made.certificate).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), &made.key).unwrap();
}

fn life() -> Lifetime {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Lifetime { since_1970, days: 7 }
}

/// The end of a configuration: a pool, a token and the client of a certificate.
fn file(ann: &Secret) -> String {
    format!(
        "[[pools]]\nname = \"p\"\nunits = 2\n[[tokens]]\nname = \"ann\"\nsha256 = \"{}\"\n\
         may = [\"see\", \"claim\"]\npools = [\"*\"]\n\
         [[certificates]]\nname = \"ci\"\nmay = [\"claim\"]\npools = [\"p\"]\n",
        ann.digest()
    )
}

/// A request in the clear, from this machine.
fn by(guest: &Secret, what: &str) -> String {
    format!("{what} HTTP/1.1\r\nauthorization: Bearer {}\r\nx-rest:", guest.reveal())
}

fn options(tls: Tls, token: Option<&Secret>) -> Options {
    let token = token.map(|secret| Token(secret.reveal().to_owned()));
    Options { tls: Some(tls), token, ..Options::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_clients_with_certificates_share_units() {
    let office = Office::new("encrypted-cluster").with(3);
    let ann = Secret::random().unwrap();
    let cluster = Cluster::encrypted(office.folder.clone(), 3, &file(&ann)).await;
    cluster.connected().await;
    let server = |place: usize| format!("https://{}", cluster.address(place));
    let tls = Tls::trusting(office.ca.certificate.as_bytes()).unwrap();
    let client = Client::connect_with([server(2)], options(tls.clone(), Some(&ann))).await.unwrap();
    let grant = client.pool("p").acquire_many(2).await.unwrap();
    let token = Token(ann.reveal().to_owned());
    let views = Views::new([server(1)]).unwrap();
    let views = views.with_tls(Some(tls.clone())).unwrap().with_token(Some(token));
    let (_, counted) = cluster.text(0, &by(&ann, "GET /metrics")).await;
    for counted_so in [
        "\nquorate_tls_certificate_expiry_timestamp_seconds{kind=\"node\"} 1",
        "\nquorate_tls_certificate_expiry_timestamp_seconds{kind=\"authority\"} 1",
        "\nquorate_tls_handshakes_total{from=\"client\",outcome=\"done\"} ",
        "\nquorate_tls_handshakes_total{from=\"peer\",outcome=\"done\"} ",
    ] {
        let (_, there) = cluster.text(2, &by(&ann, "GET /metrics")).await;
        assert!(there.contains(counted_so), "{counted}\n{there}");
    }
    let holders = views.holders("p").await.unwrap().holders;
    assert_eq!(holders[0].client, "ann");
    grant.release().await.unwrap();
    // Without a token it is nobody.
    let nobody = Client::connect_with([server(0)], options(tls, None)).await.unwrap();
    let refused = nobody.pool("p").acquire_many(1).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Rejected(_)), "{refused}");
    let (_, counted) = cluster.text(0, &by(&ann, "GET /metrics")).await;
    assert!(counted.contains("\nquorate_auth_refused_total{reason=\"no token\"} 1"), "{counted}");
    // A certificate will do instead.
    let ci = office.authority.client("ci", life()).unwrap();
    let ca = office.ca.certificate.as_bytes();
    let tls = Tls::showing(ca, ci.certificate.as_bytes(), ci.key.as_bytes()).unwrap();
    let ci = Client::connect_with([server(0)], options(tls.clone(), None)).await.unwrap();
    ci.pool("p").acquire_many(1).await.unwrap().release().await.unwrap();
    let views = Views::new([server(0)]).unwrap().with_tls(Some(tls)).unwrap();
    assert!(views.holders("p").await.is_err(), "it may claim, and not see");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_trusts_nobody_but_its_authority() {
    let office = Office::new("encrypted-trust").with(1);
    let ann = Secret::random().unwrap();
    let cluster = Cluster::encrypted(office.folder.clone(), 1, &file(&ann)).await;
    let server = format!("https://{}", cluster.address(0));
    let other = Office::new("encrypted-trust-other");
    let tls = Tls::trusting(other.ca.certificate.as_bytes()).unwrap();
    let refused = Client::connect_with([&server], options(tls, Some(&ann))).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unreachable { .. }), "{refused}");
    let unsaid = Client::connect([&server]).await.unwrap_err();
    assert!(matches!(unsaid, ConnectError::NoAuthority { .. }), "{unsaid}");
    assert!(Tls::trusting(b"nothing").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_another_authority_is_not_met() {
    let (ours, theirs) =
        (Office::new("encrypted-stranger").with(1), Office::new("encrypted-other"));
    save(&ours.folder, "n1", &ours.node("n1"));
    let ann = Secret::random().unwrap();
    let mut cluster = Cluster::encrypted(ours.folder.clone(), 2, &file(&ann)).await;
    cluster.connected().await;
    // The second comes back with a certificate of somebody else, whom it trusts as well.
    cluster.stop(1).await;
    save(&ours.folder, "n1", &theirs.node("n1"));
    let both = format!("{}{}", ours.ca.certificate, theirs.ca.certificate);
    std::fs::write(ours.folder.join("ca.crt"), both).unwrap();
    cluster.restart(1, None).await;
    let node = cluster.nodes[0].as_ref().unwrap();
    until("it is refused", || async {
        let peer = node.view().await.unwrap().peers.remove(0);
        let why = peer.problem.unwrap_or_default();
        !peer.connected && why.contains("not signed by this cluster's authority")
    })
    .await;
}

/// A greeting of one node for another.
fn greeting(cluster: &Cluster, from: &str, to: &str) -> Vec<u8> {
    let config = cluster.config(0, "");
    let resume = Resume { life: Life { boot: 1, mark: 1 }, knows: None, received: 0 };
    let hello = Hello {
        cluster: "test".into(),
        epoch: 1,
        digest: config.digest,
        node: from.into(),
        to: to.into(),
        resume,
    };
    let mut bytes = Vec::new();
    frame::encode(&Frame::Hello(hello), &mut bytes);
    bytes
}

/// Calls a node's address for peers with these files; what it answers, or how the call ended.
async fn call(
    cluster: &Cluster,
    office: &Office,
    (shows, whose): (&Issued, &str),
    (place, bytes): (usize, &[u8]),
) -> String {
    let ca = office.ca.certificate.as_bytes();
    let identity = format!("quorate://test/node/{whose}").parse().unwrap();
    let files = (ca, shows.certificate.as_bytes(), shows.key.as_bytes());
    let to = format!("quorate://test/node/n{place}");
    let tls = match quorate_trust::Keys::from_pem(files, &identity, life().since_1970) {
        Ok(keys) => keys.to_peer(to.parse().unwrap()).unwrap(),
        Err(error) => panic!("{error}"),
    };
    let stream = TcpStream::connect(cluster.peers_address(place)).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(tls).connect(name, stream).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    match frame::decode(&answer) {
        Ok(Some((Frame::Refused(why), _))) => why,
        other => format!("{other:?}"),
    }
}

/// Found by the campaign: of two members the earlier one calls, so the later one knew of an address
/// only from which somebody with another version had called.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_calls_with_another_version_is_named() {
    let office = Office::new("encrypted-version").with(2);
    let ann = Secret::random().unwrap();
    let mut cluster = Cluster::encrypted(office.folder.clone(), 2, &file(&ann)).await;
    cluster.connected().await;
    cluster.stop(0).await;
    let mut bytes = greeting(&cluster, "n0", "n1");
    bytes[2] = 9;
    let told = call(&cluster, &office, (&office.node("n0"), "n0"), (1, &bytes)).await;
    assert!(told.contains("version 9 of the wire"), "{told}");
    let node = cluster.nodes[1].as_ref().unwrap();
    until("it is named", || async {
        let peer = node.view().await.unwrap().peers.remove(0);
        let why = peer.problem.unwrap_or_default();
        peer.name == "n0" && !peer.connected && why.contains("version 9 of the wire")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_says_another_name_than_its_certificate_is_refused() {
    let office = Office::new("encrypted-names").with(3);
    let ann = Secret::random().unwrap();
    let cluster = Cluster::encrypted(office.folder.clone(), 3, &file(&ann)).await;
    let bytes = greeting(&cluster, "n1", "n0");
    let why = call(&cluster, &office, (&office.node("n2"), "n2"), (0, &bytes)).await;
    assert!(why.contains("its certificate is of quorate://test/node/n2"), "{why}");
    // Somebody without a certificate does not get to say anything.
    let mut plain = TcpStream::connect(cluster.peers_address(0)).await.unwrap();
    plain.write_all(b"QU\x01\x01").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(frame::decode(&answer).is_err(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_certificate_nobody_vouches_for_any_more_is_cut_off() {
    let office = Office::new("encrypted-outdated").with(2);
    let ann = Secret::random().unwrap();
    let pools = file(&ann);
    let cluster = Cluster::encrypted(office.folder.clone(), 2, &pools).await;
    cluster.connected().await;
    let ca = office.ca.certificate.as_bytes();
    let server = format!("https://{}", cluster.address(0));
    let ci = office.authority.client("ci", life()).unwrap();
    let tls = Tls::showing(ca, ci.certificate.as_bytes(), ci.key.as_bytes()).unwrap();
    let ci = Client::connect_with([&server], options(tls, None)).await.unwrap();
    let ann_tls = Tls::trusting(ca).unwrap();
    let ann = Client::connect_with([&server], options(ann_tls, Some(&ann))).await.unwrap();
    let node = cluster.nodes[0].as_ref().unwrap();
    let reload = || node.reload(Ok(cluster.config(0, &pools)));
    let peer = || async { node.view().await.unwrap().peers.remove(0) };
    // With both authorities nothing ends.
    let other = Office::new("encrypted-outdated-other");
    let both = format!("{}{}", office.ca.certificate, other.ca.certificate);
    std::fs::write(office.folder.join("ca.crt"), both).unwrap();
    reload().unwrap();
    assert!(ci.server().is_ok() && peer().await.connected);
    // What is no good is not taken up: it would be cut off from itself.
    std::fs::write(office.folder.join("ca.crt"), &other.ca.certificate).unwrap();
    let refused = reload().unwrap_err().to_string();
    assert!(refused.contains("not signed by this cluster's authority"), "{refused}");
    let files = || async {
        let checks = node.view().await.unwrap().checks;
        checks.into_iter().find(|check| check.name == "files").unwrap()
    };
    let said = files().await;
    assert!(said.ok && said.detail.contains("those of before are in use"), "{said:?}");
    assert!(ci.server().is_ok() && peer().await.connected);
    // The new one alone: the other node and the client have certificates of the old one.
    save(&office.folder, "n0", &other.node("n0"));
    reload().unwrap();
    assert_eq!(files().await.detail, "fine");
    until("the client is cut off", || async { ci.server().is_err() }).await;
    until("the member is cut off", || async { !peer().await.connected }).await;
    // Who has shown no certificate stays.
    assert!(ann.server().is_ok());
}

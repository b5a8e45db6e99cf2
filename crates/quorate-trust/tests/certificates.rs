//! What the authority makes is taken for what it is, and for nothing else.

use std::time::Duration;

use proptest::prelude::*;
use quorate_trust::{
    Authority, Certificate, CertificateError, DAY, IssueError, Issued, Kind, Lifetime, Roots, Usage,
};

const NOW: Duration = Duration::from_secs(1_794_831_855);

fn days(days: u32) -> Lifetime {
    Lifetime { since_1970: NOW, days }
}

struct Cluster {
    files: Issued,
    authority: Authority,
    roots: Roots,
}

fn cluster(name: &str) -> Cluster {
    let files = Authority::create(name, days(3650)).unwrap();
    let authority = Authority::from_pem(files.certificate.as_bytes(), &files.key).unwrap();
    let roots = Roots::from_pem(files.certificate.as_bytes()).unwrap();
    Cluster { files, authority, roots }
}

fn read(issued: &Issued) -> Certificate {
    Certificate::from_pem(issued.certificate.as_bytes()).unwrap().0
}

fn addresses() -> Vec<String> {
    ["10.0.0.1", "::1", "a.example"].map(String::from).to_vec()
}

#[test]
fn a_node_is_a_node_of_its_cluster_on_both_sides() {
    let rack = cluster("rack-7");
    let node = read(&rack.authority.node("a", &addresses(), days(90)).unwrap());
    for usage in [Usage::Server, Usage::Client] {
        let identity = rack.roots.verify(&node, &[], usage, NOW).unwrap();
        assert_eq!(identity.to_string(), "quorate://rack-7/node/a");
    }
    for address in addresses() {
        assert_eq!(node.is_for(&address), Ok(()));
    }
    for other in ["10.0.0.2", "b.example", "quorate://rack-7/node/a", "", "a"] {
        assert_eq!(node.is_for(other), Err(CertificateError::Name(other.into())));
    }
    assert_eq!(node.addresses(), ["a.example", "10.0.0.1", "::1"]);
}

#[test]
fn a_client_is_no_server_and_no_node() {
    let rack = cluster("rack-7");
    let client = read(&rack.authority.client("ci", days(90)).unwrap());
    let identity = rack.roots.verify(&client, &[], Usage::Client, NOW).unwrap();
    assert_eq!((identity.kind, &*identity.name), (Kind::Client, "ci"));
    let server = rack.roots.verify(&client, &[], Usage::Server, NOW);
    assert_eq!(server, Err(CertificateError::Usage));
}

#[test]
fn the_authority_is_neither() {
    let rack = cluster("rack-7");
    let itself = read(&rack.files);
    for usage in [Usage::Server, Usage::Client] {
        let verified = rack.roots.verify(&itself, &[], usage, NOW);
        assert_eq!(verified, Err(CertificateError::Usage));
    }
    assert_eq!(itself.identity().unwrap().to_string(), "quorate://rack-7/ca");
}

#[test]
fn another_authority_counts_for_nothing_even_under_the_same_name() {
    let (ours, theirs) = (cluster("rack-7"), cluster("rack-7"));
    let node = read(&theirs.authority.node("a", &[], days(90)).unwrap());
    let verified = ours.roots.verify(&node, &[], Usage::Server, NOW);
    assert_eq!(verified, Err(CertificateError::UnknownIssuer));
    // Both count while one replaces the other.
    let both = format!("{}{}", ours.files.certificate, theirs.files.certificate);
    let both = Roots::from_pem(both.as_bytes()).unwrap();
    assert_eq!(both.certificates().len(), 2);
    for cluster in [&ours, &theirs] {
        let node = read(&cluster.authority.node("a", &[], days(90)).unwrap());
        assert!(both.verify(&node, &[], Usage::Server, NOW).is_ok());
    }
}

#[test]
fn a_node_cannot_sign() {
    let rack = cluster("rack-7");
    let node = rack.authority.node("a", &[], days(90)).unwrap();
    let error = Authority::from_pem(node.certificate.as_bytes(), &node.key).unwrap_err();
    assert_eq!(error, IssueError::NoAuthority("quorate://rack-7/node/a".into()));
    let error = Authority::from_pem(rack.files.certificate.as_bytes(), &node.key).unwrap_err();
    assert_eq!(error, IssueError::OtherKey);
    let error = Authority::from_pem(rack.files.certificate.as_bytes(), "no key").unwrap_err();
    assert_eq!(error, IssueError::Key);
}

#[test]
fn a_certificate_begins_a_little_earlier_and_ends_on_its_day() {
    let rack = cluster("rack-7");
    let node = read(&rack.authority.node("a", &[], days(90)).unwrap());
    let (from, until) = node.validity().unwrap();
    assert!(from <= NOW - DAY);
    assert!(until > NOW + DAY * 89 && until <= NOW + DAY * 90);
    let at = |now| rack.roots.verify(&node, &[], Usage::Server, now).map(drop);
    let second = Duration::from_secs(1);
    assert_eq!(at(from), Ok(()));
    assert_eq!(at(until), Ok(()));
    let expired = at(until + second).unwrap_err();
    assert_eq!(expired.to_string(), "the certificate expired on 2027-02-14");
    let early = at(from - second).unwrap_err();
    assert!(matches!(early, CertificateError::NotYet(Some(_))), "{early}");
}

#[test]
fn what_makes_no_sense_is_not_signed() {
    let rack = cluster("rack-7");
    let node = |name: &str, address: &str, life| {
        rack.authority.node(name, &[address.into()], days(life)).map(drop)
    };
    assert!(matches!(node("a/b", "::1", 90), Err(IssueError::Name(_))));
    assert!(matches!(node("", "::1", 90), Err(IssueError::Name(_))));
    for address in ["", "a b", "10.0.0.1:7420", "http://a", "é"] {
        assert_eq!(node("a", address, 90), Err(IssueError::Address(address.into())));
    }
    assert_eq!(node("a", "::1", 0), Err(IssueError::Days(0)));
    assert_eq!(node("a", "::1", 36_501), Err(IssueError::Days(36_501)));
    assert!(Authority::create("rack 7", days(1)).is_err());
    let long = "x".repeat(quorate_trust::NAME_MAX);
    let long = cluster(&long);
    let node = read(&long.authority.node("a", &[], days(90)).unwrap());
    assert!(long.roots.verify(&node, &[], Usage::Client, NOW).is_ok(), "long names work");
}

#[test]
fn keys_are_not_shown() {
    let rack = cluster("rack-7");
    let shown = format!("{:?} {:?}", rack.files, rack.authority);
    assert!(!shown.contains("PRIVATE"), "{shown}");
}

#[test]
fn files_without_certificates_are_told() {
    assert_eq!(Certificate::from_pem(b"").unwrap_err(), CertificateError::Missing);
    assert_eq!(Roots::from_pem(b"nothing").unwrap_err(), CertificateError::Missing);
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(Certificate::from_pem(broken), Err(CertificateError::Unreadable(_))));
}

proptest! {
    #[test]
    fn damage_is_noticed(at in 0..400usize, bit in 0..8u32) {
        let rack = cluster("rack-7");
        let node = read(&rack.authority.node("a", &[], days(90)).unwrap());
        let mut bytes = node.der().to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let damaged = Certificate::from_der(&bytes.into());
        let verified = damaged
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|damaged| rack.roots.verify(damaged, &[], Usage::Server, NOW));
        prop_assert!(verified.is_err());
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_read(bytes: Vec<u8>) {
        let _ = Certificate::from_der(&bytes.clone().into());
        let _ = Certificate::from_pem(&bytes);
        let _ = Roots::from_pem(&bytes);
    }
}

use std::time::Duration;

use quorate_api::{InviteRequest, JoinRequest, ProblemKind};
use quorate_trust::{Certificate, DAY, Invitation, Keys, NodeKey};

use super::ask::{Door, ask};
use super::renew::renew_at;
use super::*;

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("quorate-newcomer-{}-{name}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn wish(&self) -> Wish {
        let data = self.0.join("data");
        Wish { data, address: Some("127.0.0.1".into()), listen: None, clients: 7420, peers: 7520 }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_cluster_has_a_file_that_starts_and_secrets_for_its_owner_alone() {
    let folder = Folder::new("first");
    let founded = found("demo", "n1", &folder.wish()).unwrap();
    let config = Config::read(&founded.file).unwrap();
    assert_eq!((config.name(), config.joins, config.members.len()), ("n1", true, 1));
    assert!(config.founds_charter() && config.keys().unwrap().is_some());
    for secret in [FILE, CA_KEY, KEY, TOKEN] {
        assert_eq!(mode(&folder.wish().data.join(secret)), 0o600, "{secret}");
    }
    assert_eq!(mode(&folder.wish().data), 0o700);
    let token: quorate_trust::Secret = fs::read_to_string(&founded.token).unwrap().parse().unwrap();
    assert!(fs::read_to_string(&founded.file).unwrap().contains(&token.digest().to_string()));
    // Nobody founds anything where somebody was.
    let error = found("demo", "n1", &folder.wish()).unwrap_err().to_string();
    assert!(error.contains("is that of a member"), "{error}");
    fs::remove_file(&founded.file).unwrap();
    let error = found("demo", "n1", &folder.wish()).unwrap_err().to_string();
    assert!(error.contains("was in use before"), "{error}");
}

#[test]
fn a_wish_that_makes_no_sense_writes_nothing() {
    let folder = Folder::new("wish");
    let wishes: [(&str, &str, &dyn Fn(&mut Wish)); 5] = [
        ("a b", "n1", &|_| {}),
        ("demo", "", &|_| {}),
        ("demo", "n1", &|wish| wish.address = None),
        ("demo", "n1", &|wish| wish.address = Some("no host".into())),
        ("demo", "n1", &|wish| wish.peers = wish.clients),
    ];
    for (cluster, name, change) in wishes {
        let mut wish = folder.wish();
        change(&mut wish);
        let error = found(cluster, name, &wish).unwrap_err().to_string();
        assert!(error.contains("nothing was written"), "{error}");
    }
    assert!(!folder.0.exists());
}

#[test]
fn a_certificate_is_renewed_in_time_for_the_same_key_and_its_file_is_whole() {
    let folder = Folder::new("renew");
    let founded = found("demo", "n1", &folder.wish()).unwrap();
    let config = Config::read(&founded.file).unwrap();
    let tls = config.tls.clone().unwrap();
    let own = || Certificate::from_pem(&fs::read(&tls.cert).unwrap()).unwrap().0;
    let before = own();
    let now = crate::charter::since_1970();
    assert_eq!(renew_at(&config, now).unwrap(), None);
    assert_eq!(renew_at(&config, now + DAY * 50).unwrap(), None);
    // Also one that was away for so long that its certificate has expired.
    for days in [62, 400] {
        let at = now + DAY * days;
        let until = renew_at(&config, at).unwrap().expect("it is due");
        assert!(until > at + DAY * 89);
        let after = own();
        assert_eq!(after.public_key().unwrap(), before.public_key().unwrap());
        assert_eq!(after.addresses(), before.addresses());
        let files = [&tls.ca, &tls.cert, &tls.key].map(|path| fs::read(path).unwrap());
        let whose = before.identity().unwrap();
        Keys::from_pem((&files[0], &files[1], &files[2]), whose, at).unwrap();
        assert_eq!(renew_at(&config, at + Duration::from_secs(60)).unwrap(), None);
    }
    // A node that does not hold the authority's key leaves its certificate to others.
    fs::remove_file(tls.authority.unwrap()).unwrap();
    assert!(renew_at(&config, now + DAY * 800).is_err());
}

#[tokio::test]
async fn whoever_asks_again_is_the_same_member_and_nobody_else_is() {
    let folder = Folder::new("again");
    let listen = || tokio::net::TcpListener::bind("127.0.0.1:0");
    let (clients, peers) = (listen().await.unwrap(), listen().await.unwrap());
    let port = |listener: &tokio::net::TcpListener| listener.local_addr().unwrap().port();
    let wish = Wish { clients: port(&clients), peers: port(&peers), ..folder.wish() };
    let founded = found("demo", "n1", &wish).unwrap();
    let config = Config::read(&founded.file).unwrap();
    let node = crate::Node::start_on(config, clients, peers).await.unwrap();
    let hall = std::sync::Arc::clone(node.app().hall().unwrap());
    let invited = loop {
        // It has just started, and founds its charter.
        match hall.invite("n2", InviteRequest::default()).await {
            Ok(invited) => break invited,
            Err(problem) if problem.kind == ProblemKind::Unavailable => {}
            Err(problem) => panic!("{problem}"),
        }
        tokio::task::yield_now().await;
    };
    let invitation: Invitation = invited.invitation.parse().unwrap();
    assert!(
        Door::open(&invitation.places[0], [0; 32])
            .await
            .is_err_and(|why| { why.contains("another cluster answers there") })
    );
    let key = NodeKey::random().unwrap();
    let request = |key: &NodeKey, birth: u128, port: u16| JoinRequest {
        name: "n2".into(),
        secret: invitation.secret.reveal().into(),
        key: key.public().iter().map(|byte| format!("{byte:02x}")).collect(),
        birth: format!("{birth:032x}"),
        peers: format!("127.0.0.1:{port}"),
        clients: "127.0.0.1:9".into(),
    };
    let asked = async |request: JoinRequest| {
        let door = Door::open(&invitation.places[0], invitation.authority).await.unwrap();
        ask(door, &request).await.unwrap()
    };
    // What cannot be is said before anybody is a member, and costs no invitation.
    let own = wish.peers;
    assert!(asked(request(&key, 1, own)).await.unwrap_err().contains("n1 is at 127.0.0.1:"));
    let short = JoinRequest { key: "04".into(), ..request(&key, 1, 10) };
    assert!(asked(short).await.unwrap_err().contains("the node's key cannot be read"));
    let first = asked(request(&key, 1, 10)).await.unwrap();
    let again = asked(request(&key, 1, 10)).await.unwrap();
    assert_eq!((first.member, &first.members), (again.member, &again.members));
    assert_eq!(first.members.len(), 2);
    let other = NodeKey::random().unwrap();
    for (wrong, why) in [
        (request(&other, 1, 10), "was used"),
        (request(&key, 2, 10), "was used"),
        (request(&key, 1, 11), "is a member already, at 127.0.0.1:10"),
        (JoinRequest { name: "n3".into(), ..request(&key, 1, 10) }, "nobody is invited"),
    ] {
        let said = asked(wrong).await.unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let taken = hall.invite("n1", InviteRequest::default()).await.unwrap_err();
    assert!(taken.detail.contains("the name n1 is taken"), "{taken}");
    node.stop().await;
}

//! Tokens of the charter: made at one node and good at all, narrowed and taken away while clients
//! are connected, while a node is down, and while most are; never without an administrator.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use quorate_api::ProblemKind;
use quorate_client::{Token, ViewError, Views};

use crate::joining::{Machine, client, whole};
use crate::ring::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_quorate");

/// `quorate` with these words at a machine, for whoever has this token.
fn ask(machine: &Machine, token: &str, words: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("QUORATE_SERVER", machine.clients.to_string());
    command.env("QUORATE_TOKEN", token);
    tokio::task::block_in_place(|| command.output()).expect("the command was built")
}

fn fine(machine: &Machine, token: &str, words: &[&str]) -> String {
    let output = ask(machine, token, words);
    assert!(output.status.success(), "{words:?}: {output:?}; {}", machine.log());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(machine: &Machine, token: &str, words: &[&str], why: &str) {
    let output = ask(machine, token, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{words:?}, {why}: {output:?}");
}

/// The secret of a token that is made with these words.
fn made(machine: &Machine, admin: &str, words: &[&str]) -> String {
    let said = fine(machine, admin, &[&["token", "create"], words].concat());
    let secret = said.lines().next().expect("a line").to_owned();
    assert!(secret.starts_with("qt1_") && said.contains("is made"), "{said}");
    secret
}

fn views(machine: &Machine, token: &str) -> Views {
    let views = Views::new([machine.clients.to_string()]).expect("an address");
    views.with_token(Some(Token(token.to_owned())))
}

/// What a machine says to whoever has this token, as soon as it says anything about that.
async fn first_word(machine: &Machine, token: &str) -> Result<(), ProblemKind> {
    let views = views(machine, token);
    loop {
        match views.pools().await {
            Ok(_) => return Ok(()),
            Err(ViewError::Problem(why)) if why.kind == ProblemKind::Starting => {}
            Err(ViewError::Problem(why)) => return Err(why.kind),
            Err(_) => {}
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

pub(crate) async fn tokens(name: &'static str) {
    let began = Instant::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("real-tokens");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of our own");
    let [mut n1, mut n2, mut n3, mut n4] =
        ["n1", "n2", "n3", "n4"].map(|name| Machine::new(&folder, name));
    n1.run(n1.begin(&["--new", "--cluster", "real", "--name", "n1"]));
    until("the first member makes a pool", || {
        n1.ask(&["pool", "create", "p", "--units", "1"]).status.success()
    })
    .await;
    let words = n1.invite(&["n2", "n3", "n4"]);
    n2.run(n2.begin(&["--join", &words[0]]));
    n3.run(n3.begin(&["--join", &words[1]]));
    whole(&[&n1, &n2, &n3], 3).await;
    let admin = std::fs::read_to_string(n1.data.join("admin.token")).expect("it was written");
    let admin = admin.trim();

    // Made at one, good at all, at once.
    let ci = made(&n1, admin, &["ci", "--may", "see,claim", "--pools", "p"]);
    for machine in [&n2, &n3] {
        assert_eq!(first_word(machine, &ci).await, Ok(()));
    }
    let listed = fine(&n2, admin, &["token", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("ci ")), "{listed}");
    assert!(!listed.contains(&ci), "secrets are nowhere");

    // Not for everybody, not twice, not under a name of the file, not while it is in use.
    let lacks = "lacks the right `admin`";
    for words in [&["token", "list"][..], &["right", "set", "ci", "--may", "admin"]] {
        refused(&n2, &ci, words, lacks);
    }
    refused(&n2, &ci, &["token", "create", "mine", "--may", "admin"], lacks);
    refused(&n3, admin, &["token", "create", "ci", "--right", "ci"], "is there already");
    let clash = "has a token or a certificate of the name";
    refused(&n3, admin, &["token", "create", "admin", "--may", "see"], clash);
    refused(&n3, admin, &["token", "create", "x", "--right", "none"], "there is no right");
    refused(&n3, admin, &["right", "delete", "ci"], "is that of ci");
    let other = ["token", "revoke", "ci", "--if-generation", "1"];
    refused(&n3, admin, &other, "nothing changed");

    // Said again under its name it is done once, and no secret is shown that is worth nothing.
    let file = folder.join("once.token").display().to_string();
    let once = ["token", "create", "once", "--right", "ci", "--request-id", "7"];
    let kept = [&once[..], &["--secret-file", &file]].concat();
    fine(&n1, admin, &kept);
    fine(&n2, admin, &kept);
    refused(&n2, admin, &once, "this secret is worth nothing");
    let secret = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(first_word(&n3, secret.trim()).await, Ok(()));

    // Narrowed and widened while a client is connected.
    let open = client(&[&n3], &ci).await;
    open.pool("p").acquire().await.expect("it may").release().await.expect("it is held");
    fine(&n2, admin, &["right", "set", "ci", "--may", "see"]);
    while let Ok(grant) = open.pool("p").acquire().await {
        let _ = grant.release().await;
    }
    refused(&n3, &ci, &["run", "p", "--", "true"], "lacks the right `claim`");
    assert_eq!(first_word(&n3, &ci).await, Ok(()), "it may still look");
    fine(&n2, admin, &["right", "set", "ci", "--may", "see,claim"]);
    let held = loop {
        if let Ok(grant) = open.pool("p").acquire().await {
            break grant;
        }
    };

    // Taken away while one waits on an open connection.
    let pool = open.pool("p");
    let waits = tokio::spawn(async move { pool.acquire().await });
    until("it waits", || fine(&n1, admin, &["queue", "p"]).lines().count() > 1).await;
    fine(&n1, admin, &["token", "revoke", "ci"]);
    let told = waits.await.expect("no panic").expect_err("its token is gone");
    assert!(told.to_string().contains("does not know the token"), "{told}");
    for machine in [&n1, &n2, &n3] {
        until("all obey", || !ask(machine, &ci, &["pools"]).status.success()).await;
        assert_eq!(first_word(machine, &ci).await, Err(ProblemKind::Unauthorized));
    }
    drop(held);

    // What happens to tokens while a node is down it knows before it lets anybody in.
    let gone = made(&n1, admin, &["gone", "--right", "ci"]);
    assert_eq!(first_word(&n3, &gone).await, Ok(()));
    n3.process = None;
    fine(&n1, admin, &["token", "revoke", "gone"]);
    let late = made(&n2, admin, &["late", "--right", "ci", "--forever"]);
    n3.run(n3.serve(&[]));
    assert_eq!(first_word(&n3, &gone).await, Err(ProblemKind::Unauthorized));
    assert_eq!(first_word(&n3, &late).await, Ok(()));
    // Nor need a machine that joins be told.
    n4.run(n4.begin(&["--join", &words[2]]));
    assert_eq!(first_word(&n4, &late).await, Ok(()));
    whole(&[&n1, &n2, &n3, &n4], 3).await;

    // Another secret: the one before is worth nothing.
    let rotated = fine(&n4, admin, &["token", "rotate", "late", "--forever"]);
    let new = rotated.lines().next().expect("a line").to_owned();
    for machine in [&n1, &n2, &n3, &n4] {
        assert_eq!(first_word(machine, &new).await, Ok(()));
        assert_eq!(first_word(machine, &late).await, Err(ProblemKind::Unauthorized));
    }

    // Without a majority nothing changes, and those who were let in still are; but not after a
    // restart, since what this node obeyed may not be on its disk.
    let voters: Vec<bool> = {
        let view = n1.ask(&["member", "list", "--json"]);
        let view: quorate_api::MembersView = serde_json::from_slice(&view.stdout).expect("JSON");
        let votes = |name: &str| {
            let is = |it: &&quorate_api::MemberRow| it.name == name;
            view.members.iter().find(is).is_some_and(|it| it.role == quorate_api::MemberRole::Voter)
        };
        ["n1", "n2", "n3", "n4"].map(votes).to_vec()
    };
    assert_eq!(voters, [true, true, true, false]);
    (n1.process, n2.process) = (None, None);
    assert_eq!(first_word(&n3, &new).await, Ok(()));
    let output = ask(&n3, admin, &["token", "revoke", "late"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let why = ["no majority", "no leader"].iter().any(|why| said.contains(why));
    assert!(!output.status.success() && why && said.contains("changed"), "{said}");
    assert!(fine(&n3, admin, &["token", "list"]).contains("as this node knows it"));
    n3.process = None;
    n3.run(n3.serve(&[]));
    assert_eq!(first_word(&n3, &new).await, Err(ProblemKind::Unavailable), "not confirmed");
    let unknown = quorate_trust::Secret::random().expect("chance");
    let said = first_word(&n3, unknown.reveal()).await;
    assert_eq!(said, Err(ProblemKind::Unavailable), "it may be new");

    // They are back, and it is good; then it is taken away for good.
    n1.run(n1.serve(&[]));
    n2.run(n2.serve(&[]));
    until("a majority answers", || ask(&n3, &new, &["pools"]).status.success()).await;
    until("a majority answers", || ask(&n3, admin, &["token", "revoke", "late"]).status.success())
        .await;
    for machine in [&n1, &n2, &n3, &n4] {
        until("all obey", || !ask(machine, &new, &["pools"]).status.success()).await;
    }
    let audit = views(&n3, admin).audit().await.expect("it is an administrator");
    let written = serde_json::to_string(&audit).expect("plain data");
    assert!(written.contains("token revoke") && written.contains("token late"), "{written}");
    println!("{name}: ok, {:.0?}", began.elapsed());
}

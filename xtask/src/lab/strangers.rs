//! Who must not get in, and who is not to be trusted: certificates and tokens that are wrong in one
//! way each, beside those that are right. Odd certificates are openssl's work, with the guide's
//! authority.

use std::process::Command;

use super::guide::{LAPTOP, NODES, Rack};
use super::net::{self, Outcome};

/// Where those are who are up to something.
pub(crate) const STRANGER: &str = "stranger";

/// How openssl signs with days of our choice.
const CA_FILE: &str = "[ca]\ndefault_ca = lab\n[lab]\ndatabase = index.txt\nnew_certs_dir = .\n\
    rand_serial = yes\nunique_subject = no\ndefault_md = sha256\npolicy = any\n\
    [any]\ncommonName = supplied\n";

/// When a certificate is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Days {
    Now,
    Past,
    Future,
}

/// What was tried, and what came of it.
pub(crate) struct Trials<'a> {
    rack: &'a Rack,
    pub(crate) count: usize,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(rack: &'a Rack) -> Trials<'a> {
        Trials { rack, count: 0 }
    }

    /// It works.
    pub(crate) fn fine(&mut self, what: &str, command: &mut Command) -> Outcome<String> {
        self.count += 1;
        net::fine(command).map_err(|why| format!("{what}: should work: {why}"))
    }

    /// It does not, and says one of these.
    pub(crate) fn refused(&mut self, what: &str, command: &mut Command, says: &[&str]) -> Outcome {
        self.count += 1;
        let output = net::output(command)?;
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if output.status.success() {
            return Err(format!("{what}: should be refused, and works: {said}"));
        }
        match says.is_empty() || says.iter().any(|words| said.contains(words)) {
            true => Ok(()),
            false => Err(format!("{what}: refused as it should be, but not with {says:?}: {said}")),
        }
    }

    /// A certificate by openssl, as FILE.crt and FILE.key in the laptop's `odd`.
    fn odd(&self, file: &str, whose: &str, address: Option<&str>, days: Days) -> Outcome {
        let laptop = self.rack.host(LAPTOP);
        let (from, to) = match days {
            Days::Now => ("20200101000000Z", "20490101000000Z"),
            Days::Past => ("20200101000000Z", "20200401000000Z"),
            Days::Future => ("20480101000000Z", "20490101000000Z"),
        };
        let usage = if address.is_some() { "serverAuth,clientAuth" } else { "clientAuth" };
        let address = address.map(|address| format!(",IP:{address}")).unwrap_or_default();
        laptop.write(
            &format!("odd/{file}.ext"),
            format!(
                "subjectAltName = URI:{whose}{address}\nextendedKeyUsage = {usage}\n\
                 keyUsage = digitalSignature\nbasicConstraints = CA:FALSE\n"
            ),
        )?;
        net::done(&mut laptop.shell(&format!(
            "cd odd
             openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={file} \
                -keyout {file}.key -out {file}.csr
             openssl ca -batch -notext -config ca.cnf -cert ../certs/ca.crt \
                -keyfile ../certs/ca.key -in {file}.csr -out {file}.crt -extfile {file}.ext \
                -startdate {from} -enddate {to}"
        )))
    }
}

/// The pools and certificates that the guide's file gets in addition.
pub(crate) const MORE: &str = "[[pools]]\npattern = \"gpu-*\"\nunits = 4\n\
    [[certificates]]\nname = \"builder\"\nmay = [\"see\", \"claim\"]\npools = [\"ci-*\"]\n";

/// The cluster with a few more credentials.
pub(crate) fn prepare(rack: &mut Rack) -> Outcome {
    let laptop = rack.host(LAPTOP);
    let script = "quorate token new gpu --may see,claim --pools gpu-* --secret-file gpu.token
         quorate cert client builder --dir certs > /dev/null";
    let program = rack.program.display().to_string();
    let made = net::fine(&mut laptop.shell(&script.replace("quorate ", &format!("{program} "))))?;
    rack.install("", &format!("{MORE}{made}"))?;
    rack.start()
}

pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    prepare(rack)?;
    let rack = &*rack;
    let mut trials = Trials::new(rack);
    rack.host(LAPTOP).write("odd/ca.cnf", CA_FILE)?;
    rack.host(LAPTOP).write("odd/index.txt", "")?;
    for words in [
        "cert new-ca rack-7 --dir foreign",
        "cert client builder --dir foreign",
        "cert node a --address 10.0.0.1,10.0.0.5 --dir foreign",
    ] {
        net::done(&mut rack.quorate(LAPTOP, words))?;
    }
    clients(&mut trials)?;
    servers(&mut trials)?;
    peers(&mut trials)?;
    starts(&mut trials)?;
    // Nobody was disturbed.
    rack.until_joined()?;
    Ok(format!("{} trials", trials.count))
}

/// What clients show to a node.
fn clients(trials: &mut Trials<'_>) -> Outcome {
    let rack = trials.rack;
    for (file, whose, days) in [
        ("good", "quorate://rack-7/client/builder", Days::Now),
        ("expired", "quorate://rack-7/client/builder", Days::Past),
        ("early", "quorate://rack-7/client/builder", Days::Future),
        ("elsewhere", "quorate://rack-8/client/builder", Days::Now),
    ] {
        trials.odd(file, whose, None, days)?;
    }
    let ask = |more: &str| {
        rack.quorate(LAPTOP, &format!("pools --server https://10.0.0.1 --ca ca.crt {more}"))
    };
    let shows = |stem: &str| ask(&format!("--cert {stem}.crt --key {stem}.key"));
    let job = |words: &str| {
        let with = "--server https://10.0.0.2 --ca ca.crt --timeout 30s";
        rack.quorate(LAPTOP, &format!("run {words} {with} -- true"))
    };
    trials.fine("the guide's token", &mut job("ci-build --token-file ci.token"))?;
    trials.fine("a token of another pool, there", &mut job("gpu-x --token-file gpu.token"))?;
    let unknown = ["there is no pool"];
    let of_another = &mut job("ci-build --token-file gpu.token");
    trials.refused("a token of another pool", of_another, &unknown)?;
    let seen = trials.fine("what it sees", &mut ask("--token-file gpu.token"))?;
    if seen.contains("ci-") {
        return Err(format!("a token of gpu-* sees ci-build: {seen}"));
    }
    let token = ["asks for a token, or a certificate"];
    trials.refused("nothing at all", &mut ask(""), &token)?;
    trials.fine("a client's certificate", &mut shows("certs/client-builder"))?;
    trials.fine("a client's certificate by openssl", &mut shows("odd/good"))?;
    let ours = ["it refuses the certificate that we show"];
    trials.refused("expired", &mut shows("odd/expired"), &ours)?;
    trials.refused("not yet valid", &mut shows("odd/early"), &ours)?;
    trials.refused("of another authority", &mut shows("foreign/client-builder"), &ours)?;
    trials.refused("of another cluster", &mut shows("odd/elsewhere"), &token)?;
    trials.refused("a node's certificate", &mut shows("certs/node-a"), &token)?;
    let plain = &mut rack.quorate(LAPTOP, "pools --server 10.0.0.1 --token-file ci.token");
    trials.refused("in the clear, from elsewhere", plain, &["speaks TLS"])?;
    Ok(())
}

/// Whom clients take for a node.
fn servers(trials: &mut Trials<'_>) -> Outcome {
    let rack = trials.rack;
    let (stranger, laptop) = (rack.host(STRANGER), rack.host(LAPTOP));
    let here = stranger.address.to_string();
    for (file, whose, address, days) in [
        ("moved", "quorate://rack-7/node/a", &*here, Days::Now),
        ("node-expired", "quorate://rack-7/node/a", &*here, Days::Past),
        ("node-early", "quorate://rack-7/node/a", &*here, Days::Future),
    ] {
        trials.odd(file, whose, Some(address), days)?;
    }
    let ask = format!("pools --server https://{here} --ca ca.crt --token-file ci.token");
    for (what, stem, trusted) in [
        ("a server with a node's certificate for its address", "odd/moved", true),
        ("a stolen certificate, at another address", "certs/node-a", false),
        ("a client's certificate as a server's", "certs/client-builder", false),
        ("an expired node", "odd/node-expired", false),
        ("a node of tomorrow", "odd/node-early", false),
        ("a node of another authority", "foreign/node-a", false),
    ] {
        let mut server = stranger.command("openssl");
        let file = |end: &str| laptop.folder.join(format!("{stem}.{end}"));
        server.args(["s_server", "-quiet", "-naccept", "2", "-www", "-accept", "7420", "-cert"]);
        server.arg(file("crt")).arg("-key").arg(file("key"));
        server.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let server = net::start(&mut server)?;
        let mut curl = laptop.command("curl");
        curl.args(["-s", "-k", "-o", "odd/answer", &format!("https://{here}:7420/")]);
        net::until(&format!("{what} listens"), || {
            net::output(&mut curl).is_ok_and(|output| output.status.success())
        })?;
        // openssl answers with a page of its own, which is no list of pools: whoever gets so far
        // has trusted it.
        let says = if trusted { "does not speak as a node" } else { "its certificate is" };
        trials.refused(what, &mut rack.quorate(LAPTOP, &ask), &[says])?;
        drop(server);
    }
    Ok(())
}

/// What strangers show to a node on the address of its peers, by openssl.
fn peers(trials: &mut Trials<'_>) -> Outcome {
    let rack = trials.rack;
    trials.odd("peer", "quorate://rack-7/node/b", Some("10.0.0.2"), Days::Now)?;
    let shake = |stem: Option<&str>| {
        let mut openssl = rack.host(LAPTOP).command("openssl");
        openssl.args(["s_client", "-connect", "10.0.0.1:7520", "-CAfile", "ca.crt"]);
        openssl.args(["-verify_return_error", "-ign_eof"]);
        if let Some(stem) = stem {
            openssl.args(["-cert", &format!("{stem}.crt"), "-key", &format!("{stem}.key")]);
        }
        net::output(&mut openssl).map(|output| {
            let both = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&both).into_owned()
        })
    };
    // A node says why it does not take a certificate; whoever shows a good one is not told
    // anything, and must greet.
    for (what, stem, taken) in [
        ("a node's certificate", Some("odd/peer"), true),
        ("none", None, false),
        ("an expired one", Some("odd/node-expired"), false),
        ("one of tomorrow", Some("odd/node-early"), false),
        ("one of another authority", Some("foreign/node-a"), false),
    ] {
        trials.count += 1;
        let said = shake(stem)?;
        if said.contains("alert") == taken {
            return Err(format!(
                "{what}, at the peers' address of a: taken should be {taken}: {said}"
            ));
        }
    }
    Ok(())
}

/// Nodes that say they are `a`, and are not.
fn starts(trials: &mut Trials<'_>) -> Outcome {
    let rack = trials.rack;
    let (stranger, laptop) = (rack.host(STRANGER), rack.host(LAPTOP));
    let here = stranger.address.to_string();
    let file = rack.host("a").read("etc/a.toml")?.replace("10.0.0.1:", &format!("{here}:"));
    let folder = rack.host("a").folder.display().to_string();
    let file = file.replace(&folder, &stranger.folder.display().to_string());
    stranger.write("etc/ca.crt", laptop.read("ca.crt")?)?;
    std::fs::create_dir_all(stranger.folder.join("run")).map_err(|error| error.to_string())?;
    let with = |stem: &str, file: &str| -> Outcome {
        stranger.write("etc/node-a.crt", laptop.read(&format!("{stem}.crt"))?)?;
        stranger.write("etc/node-a.key", laptop.read(&format!("{stem}.key"))?)?;
        stranger.write("etc/a.toml", file)
    };
    // With a certificate of which it can know itself that nobody would take it, it does not start.
    for (what, stem, says) in [
        ("a node with an expired certificate", "odd/node-expired", "expired"),
        ("a node with one of tomorrow", "odd/node-early", "not valid"),
        ("a node with a client's", "certs/client-builder", "cert"),
        ("a node with that of b", "certs/node-b", "and not of this node"),
        ("a node with one of another authority", "foreign/node-a", "cert"),
    ] {
        with(stem, &file)?;
        let mut serve = rack.quorate(STRANGER, "serve --config etc/a.toml");
        trials.refused(what, &mut serve, &[says])?;
    }
    // With others it does, and nobody talks to it.
    let other = file.replace("cluster = \"rack-7\"", "cluster = \"rack-8\"");
    trials.odd("other", "quorate://rack-8/node/a", Some(&here), Days::Now)?;
    for (what, stem, file) in [
        ("of another authority", "foreign/node-a", &file),
        ("of another cluster", "odd/other", &other),
    ] {
        trials.count += 1;
        with(stem, file)?;
        let ca = if stem.starts_with("foreign") { "foreign/ca.crt" } else { "ca.crt" };
        stranger.write("etc/ca.crt", laptop.read(ca)?)?;
        let _ = std::fs::remove_dir_all(stranger.folder.join("data"));
        // It is not to wait until what somebody may have been promised before is over. Nobody whom
        // it could ask about that talks to it.
        net::done(&mut rack.quorate(STRANGER, "init --config etc/a.toml"))?;
        let mut serve = rack.quorate(STRANGER, "serve --config etc/a.toml");
        let log = std::fs::File::create(stranger.folder.join("node.log"));
        let log = log.map_err(|error| error.to_string())?;
        let process = net::start(serve.stderr(log).stdout(std::process::Stdio::null()))?;
        net::until(&format!("a node {what} has tried all others, in vain"), || {
            let log = stranger.read("node.log").unwrap_or_default();
            NODES[1..].iter().all(|name| log.lines().any(|line| names_refusal(line, name)))
        })?;
        if rack.connected("b") != Some(2) || rack.ask(STRANGER, "/v1/node").is_ok_and(joined) {
            return Err(format!("a node {what} got in"));
        }
        drop(process);
    }
    Ok(())
}

fn joined(shown: String) -> bool {
    shown.split_whitespace().collect::<String>().contains("\"connected\":true")
}

/// Whether a line of a node's log says that a peer could not be talked to.
fn names_refusal(line: &str, peer: &str) -> bool {
    line.contains("no link") && line.contains(&format!("\"{peer}\""))
}

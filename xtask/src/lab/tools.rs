//! Programs that know nothing of ours, as clients of a node on another machine: openssl and curl.

use super::guide::{LAPTOP, Rack};
use super::net::{self, Outcome};
use super::strangers::{self, Trials};

pub(crate) fn scenario(rack: &mut Rack) -> Outcome<String> {
    strangers::prepare(rack)?;
    let rack = &*rack;
    let mut trials = Trials::new(rack);
    let laptop = rack.host(LAPTOP);
    let secret = laptop.read("ci.token")?;
    laptop.write("bearer", format!("Authorization: Bearer {}\n", secret.trim()))?;
    laptop.write("basic", format!("user = \"anybody:{}\"\n", secret.trim()))?;
    net::done(&mut rack.quorate(LAPTOP, "cert new-ca rack-7 --dir foreign"))?;
    let pools = "https://10.0.0.2:7420/v1/pools";
    let own = "--cert certs/client-builder.crt --key certs/client-builder.key";
    let claim = "-X PUT -d @claim";
    laptop.write("claim", "{\"units\": 2}")?;
    for (what, words, expected) in [
        ("a token", format!("--cacert ca.crt -H @bearer {pools}"), "200"),
        ("a token as a password", format!("--cacert ca.crt -K basic {pools}"), "200"),
        ("a certificate", format!("--cacert ca.crt {own} {pools}"), "200"),
        ("nothing", format!("--cacert ca.crt {pools}"), "401"),
        ("health, for everybody", "--cacert ca.crt https://10.0.0.2:7420/livez".into(), "200"),
        ("without the root", format!("-H @bearer {pools}"), "000"),
        ("a root of nobody", format!("--cacert foreign/ca.crt -H @bearer {pools}"), "000"),
        ("another name", "--cacert ca.crt https://localhost:7420/livez".into(), "000"),
        ("in the clear", format!("-H @bearer {}", pools.replace("https", "http")), "400"),
        (
            "a claim",
            format!(
                "--cacert ca.crt -H @bearer {claim} \
                 https://10.0.0.3:7420/v1/pools/ci-curl/claims/c1?wait=20s"
            ),
            "200",
        ),
    ] {
        trials.count += 1;
        let mut curl = laptop.command("curl");
        curl.args(["-s", "--max-time", "30", "-o", "answer", "-w", "%{http_code}"]);
        let output = net::output(curl.args(words.split_whitespace()))?;
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        if status != expected {
            let answer = laptop.read("answer").unwrap_or_default();
            return Err(format!("curl, {what}: {status} instead of {expected}: {answer}"));
        }
    }
    let shake = |words: &str| {
        let mut openssl = laptop.command("openssl");
        openssl.args(["s_client", "-CAfile", "ca.crt", "-verify_return_error"]);
        openssl.args(words.split_whitespace());
        openssl
    };
    let here = "-connect 10.0.0.2:7420";
    let said = trials.fine("openssl", &mut shake(&format!("{here} -verify_ip 10.0.0.2")))?;
    if !said.contains("TLSv1.3") || !said.contains("Verify return code: 0 (ok)") {
        return Err(format!("openssl is content, but how? {said}"));
    }
    let own = "-cert certs/client-builder.crt -key certs/client-builder.key";
    trials.fine("openssl with a certificate", &mut shake(&format!("{here} {own}")))?;
    let elsewhere = &mut shake(&format!("{here} -verify_ip 10.0.0.3"));
    trials.refused("openssl, another address", elsewhere, &["mismatch"])?;
    trials.refused("openssl, TLS 1.2", &mut shake(&format!("{here} -tls1_2")), &["alert"])?;
    let old = &mut shake("-connect 10.0.0.2:7520 -tls1_2");
    trials.refused("openssl, TLS 1.2 on the peers' address", old, &["alert"])?;
    Ok(format!("{} trials with curl and openssl", trials.count))
}

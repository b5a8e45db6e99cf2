//! How long renewals take while strangers knock: measured and not judged.
//!
//! One `quorate serve` with certificates and tokens, and a holder that renews on its connection two
//! hundred times a second. Beside it a process of strangers (this program again, at the lowest
//! priority, since it shares the machine) that makes handshakes and shows wrong tokens, asks with
//! wrong tokens on connections that it keeps, or connects and says nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorate_api::link::{
    self, Answer, Ask, FromClient, FromNode, PREFACE, Reply, Request, Share, Token,
};
use quorate_api::{ClaimId, Want};
use quorate_client::{Tls, Views};
use quorate_trust::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::ports::free_address;

/// Between a renewal's answer and the next one.
const PAUSE: Duration = Duration::from_millis(5);
/// Strangers of each kind at once.
const STRANGERS: usize = 64;
const KINDS: [&str; 3] = ["handshakes", "tokens", "silence"];

/// Something that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures, and prints a table.
pub(crate) async fn measure(seconds: u64) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("flood");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    let (address, token, _node) = start(&folder).await;
    let mut holder = Holder::connect(address, &token).await;
    println!("one holder renews every {PAUSE:?} for {seconds} s; {STRANGERS} strangers each");
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>9}  what they did",
        "flood", "renewals", "p50", "p99", "max"
    );
    for kind in [None, Some("handshakes"), Some("tokens"), Some("silence"), None] {
        let flood = kind.map(|kind| {
            let ca = folder.join("ca.crt");
            let mut strangers = Command::new("nice");
            strangers.args(["-n", "19"]).arg(std::env::current_exe().expect("a path"));
            strangers.args(["flooder", kind, &address.to_string()]).arg(ca);
            strangers.arg((seconds + 1).to_string()).stdout(Stdio::piped());
            strangers.spawn().expect("strangers")
        });
        if flood.is_some() {
            sleep(Duration::from_secs(1)).await;
        }
        let mut took = holder.renew_for(Duration::from_secs(seconds)).await;
        took.sort();
        let did = flood.map(|flood| flood.wait_with_output().expect("they end by themselves"));
        let did = did.map(|did| String::from_utf8_lossy(&did.stdout).trim().to_owned());
        let at = |percent: usize| took[(took.len() - 1) * percent / 100];
        println!(
            "{:<12} {:>9} {:>9.2?} {:>9.2?} {:>9.2?}  {}",
            kind.unwrap_or("none"),
            took.len(),
            at(50),
            at(99),
            at(100),
            did.unwrap_or_default()
        );
    }
}

/// A node, where it is, and a token that may claim.
async fn start(folder: &Path) -> (SocketAddr, String, Running) {
    let quorate = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(words.split_whitespace()).current_dir(folder);
        let output = command.output().expect("the command was built");
        assert!(output.status.success(), "{words}: {output:?}");
    };
    quorate("cert new-ca flood");
    quorate("cert node a --address 127.0.0.1");
    let [clients, peers] = [(); 2].map(|()| free_address());
    let secret = Secret::random().expect("chance");
    let file = format!(
        "cluster = \"flood\"\nepoch = 1\nnode = \"a\"\ndata_dir = \"data\"\n\
         [listen]\nclients = \"{clients}\"\npeers = \"{peers}\"\n\
         [tls]\nca = \"ca.crt\"\ncert = \"node-a.crt\"\nkey = \"node-a.key\"\n\
         [audit]\nfile = \"audit.jsonl\"\n\
         [[members]]\nname = \"a\"\npeers = \"{peers}\"\n\
         [[pools]]\nname = \"p\"\nunits = 1\nlease = \"30s\"\n\
         [[tokens]]\nname = \"holder\"\nsha256 = \"{}\"\nmay = [\"claim\"]\npools = [\"p\"]\n",
        secret.digest()
    );
    std::fs::write(folder.join("a.toml"), file).expect("a folder of our own");
    quorate("init --config a.toml");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_quorate"));
    serve.args(["serve", "--config", "a.toml"]).current_dir(folder).stderr(Stdio::null());
    let node = Running(serve.spawn().expect("the command was built"));
    while TcpStream::connect(clients).await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
    (clients, secret.reveal().to_owned(), node)
}

/// A client that holds the only unit.
struct Holder {
    stream: TcpStream,
    bytes: Vec<u8>,
    number: u64,
    units: Vec<Share>,
}

impl Holder {
    async fn connect(address: SocketAddr, token: &str) -> Holder {
        let mut stream = TcpStream::connect(address).await.expect("a node");
        stream.set_nodelay(true).expect("a socket");
        stream.write_all(&PREFACE).await.expect("a node");
        let mut holder = Holder { stream, bytes: Vec::new(), number: 0, units: Vec::new() };
        let token = Token(token.to_owned());
        holder.ask(Ask::Introduce { client: String::new(), token }).await;
        let claim = Ask::Claim { pool: "p".into(), id: ClaimId(1), want: Want::from(1) };
        match holder.ask(claim).await {
            Reply::Granted { units, .. } => holder.units = units,
            other => panic!("not granted: {other:?}"),
        }
        holder
    }

    async fn ask(&mut self, ask: Ask) -> Reply {
        self.number += 1;
        let mut bytes = Vec::new();
        link::encode(&FromClient::Request(Request { number: self.number, ask }), &mut bytes);
        self.stream.write_all(&bytes).await.expect("the node is there");
        loop {
            if let Some((said, used)) = link::decode(&self.bytes).expect("frames") {
                self.bytes.drain(..used);
                match said {
                    FromNode::Answer(Answer { number, reply }) if number == self.number => {
                        return reply;
                    }
                    _ => continue,
                }
            }
            let read = self.stream.read_buf(&mut self.bytes).await.expect("the node is there");
            assert_ne!(read, 0, "the node hung up");
        }
    }

    async fn renew_for(&mut self, span: Duration) -> Vec<Duration> {
        let (began, mut took) = (Instant::now(), Vec::new());
        while began.elapsed() < span {
            let sent = Instant::now();
            let units = self.units.clone();
            let renew = Ask::Renew { pool: "p".into(), id: ClaimId(1), units };
            let reply = self.ask(renew).await;
            took.push(sent.elapsed());
            assert!(!matches!(reply, Reply::Problem(_)), "{reply:?}");
            sleep(PAUSE).await;
        }
        took
    }
}

/// `flooder KIND ADDRESS CA SECONDS`: strangers, until the time is over.
pub(crate) fn flooder(words: &[String]) {
    let [kind, address, ca, seconds] = words else { panic!("flooder KIND ADDRESS CA SECONDS") };
    let address: SocketAddr = address.parse().expect("an address");
    let ca = std::fs::read(ca).expect("the authority's certificate");
    let span = Duration::from_secs(seconds.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (done, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    runtime.block_on(async {
        for _ in 0..STRANGERS {
            let (kind, ca) = (kind.clone(), ca.clone());
            let counts = (Arc::clone(&done), Arc::clone(&refused));
            tokio::spawn(async move { stranger(&kind, address, &ca, counts).await });
        }
        sleep(span).await;
    });
    let per_second = |count: &AtomicU64| count.load(Ordering::Relaxed) / span.as_secs().max(1);
    println!("{} a second done, {} turned away", per_second(&done), per_second(&refused));
}

async fn stranger(
    kind: &str,
    address: SocketAddr,
    ca: &[u8],
    (done, refused): (Arc<AtomicU64>, Arc<AtomicU64>),
) {
    let count = |fine: bool| (if fine { &done } else { &refused }).fetch_add(1, Ordering::Relaxed);
    let wrong = || Secret::random().expect("chance").reveal().to_owned();
    let tls = Tls::trusting(ca).expect("a certificate");
    loop {
        match kind {
            "handshakes" => {
                let views = Views::new([format!("https://{address}")]).expect("an address");
                let views = views.with_tls(Some(tls.clone())).expect("an authority");
                let asked = views.with_token(Some(Token(wrong()))).pools().await;
                // The token is refused in any case; who was cut off before has heard nothing.
                let heard = matches!(asked, Err(quorate_client::ViewError::Problem(_)));
                count(heard);
            }
            "tokens" => {
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                let mut answer = vec![0; 4096];
                loop {
                    let request = format!(
                        "GET /v1/pools HTTP/1.1\r\nhost: localhost\r\n\
                         authorization: Bearer {}\r\n\r\n",
                        wrong()
                    );
                    let sent = stream.write_all(request.as_bytes()).await;
                    match (sent, stream.read(&mut answer).await) {
                        (Ok(()), Ok(1..)) => count(true),
                        _ => break,
                    };
                }
                count(false);
            }
            "silence" => {
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                let _ = stream.write_all(&[0x16]).await;
                // Held until the node hangs up.
                let held = Instant::now();
                let _ = stream.read(&mut [0]).await;
                count(held.elapsed() > Duration::from_secs(1));
            }
            other => panic!("{other:?}: choose one of {KINDS:?}"),
        }
    }
}

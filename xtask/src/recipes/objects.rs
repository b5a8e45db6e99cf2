//! docs/guides/fences.md, "Object stores": on Azurite, in which Microsoft has the conditional
//! writes of its blobs on one's own machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Dev, Done, ensure, said, until};
use crate::steps;

/// Makes a container, and the address with which anybody may write there: the account and its key
/// are the same in every Azurite.
const SHARE: &str = r#"
import base64, hashlib, hmac, sys, urllib.parse, urllib.request
key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
version, account, until = "2020-08-04", "devstoreaccount1", "2999-01-01T00:00:00Z"
said = "\n".join([account, "rwdlac", "b", "sco", "", until, "", "", version, ""]).encode()
signed = base64.b64encode(hmac.new(base64.b64decode(key), said, hashlib.sha256).digest())
words = dict(sv=version, ss="b", srt="sco", sp="rwdlac", se=until, sig=signed.decode())
base, query = f"http://127.0.0.1:{sys.argv[1]}/{account}/quorate", urllib.parse.urlencode(words)
request = urllib.request.Request(f"{base}?restype=container&{query}", method="PUT")
urllib.request.urlopen(request)
print(f"{base}/state?{query}")
"#;

struct Azurite(Child);

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A late writer is refused; also if it looked before the next one wrote, and writes after.
pub(super) fn late_writers(dev: &Dev, root: &Path, early: u64, late: u64) -> Done {
    let Some(program) = installed(root) else {
        println!("skipped: an object store: npm cannot install azurite");
        return Ok(());
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.map_err(|error| error.to_string())?.port();
    let mut store = Command::new(program);
    store.args(["--silent", "--skipApiVersionCheck", "--blobPort", &port.to_string()]);
    store.arg("--location").arg(dev.folder.join("blobs")).stdout(Stdio::null());
    let _store = Azurite(store.spawn().map_err(|error| error.to_string())?);
    until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    let mut share = Command::new("python3");
    let share = share.args(["-c", SHARE, &port.to_string()]).output();
    let share = share.map_err(|error| error.to_string())?;
    ensure(share.status.success(), &said(&share))?;
    let url = said(&share).trim().to_owned();
    dev.write("more", "header = \"x-ms-blob-type: BlockBlob\"\n")?;
    let script = root.join("packaging/recipes/put-fenced");
    let put = |fence: u64, text: &str, path: &str| {
        dev.write(text, text)?;
        let mut shell = dev.shell("sh");
        shell.arg(&script).args([&*url, text]).env("QUORATE_FENCES", fence.to_string());
        shell.env("FENCE_HEADER", "x-ms-meta-fence").env("FENCE_CURL", "more");
        if !path.is_empty() {
            let all = std::env::var("PATH").unwrap_or_default();
            shell.env("PATH", format!("{path}:{all}"));
        }
        shell.output().map_err(|error| error.to_string())
    };
    let there = || {
        let output = Command::new("curl").args(["-s", &url]).output();
        output.map(|output| said(&output)).map_err(|error| error.to_string())
    };
    for (fence, text, code) in
        [(early, "first", 0), (early, "again", 0), (late, "second", 0), (early, "third", 75)]
    {
        let output = put(fence, text, "")?;
        ensure(output.status.code() == Some(code), &format!("{text}: {}", said(&output)))?;
    }
    ensure(there()? == "second", "what the later holder wrote is there")?;
    // The next holder writes in the middle of it: between the look and the write of `late`.
    let next = late + 1;
    let curl = format!(
        "#!/bin/sh\ncase \"$*\" in *--upload-file*) [ -e passed ] || {{ : > passed\n\
         QUORATE_FENCES={next} PATH=${{PATH#*:}} sh {} '{url}' between; }};; esac\n\
         PATH=${{PATH#*:}} exec curl \"$@\"\n",
        script.display()
    );
    dev.write("between", "between")?;
    let folder = dev.folder.join("slow");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    dev.write("slow/curl", &curl)?;
    let made = Command::new("chmod").arg("+x").arg(folder.join("curl")).status();
    ensure(made.is_ok_and(|status| status.success()), "chmod")?;
    let output = put(late, "too late", &folder.display().to_string())?;
    ensure(output.status.code() == Some(75), &format!("in the middle: {}", said(&output)))?;
    ensure(there()? == "between", "what the next holder wrote is there")?;
    println!("an object store refuses the late writer");
    Ok(())
}

/// Where it is, once npm has put it there.
fn installed(root: &Path) -> Option<PathBuf> {
    let folder = steps::target(root).join("azurite");
    let program = folder.join("node_modules/.bin/azurite-blob");
    if !program.exists() {
        println!("installing azurite");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        let _ = npm.arg("azurite@3.33.0").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    program.exists().then_some(program)
}

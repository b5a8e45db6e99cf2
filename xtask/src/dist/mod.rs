//! `cargo xtask dist`: what is given away, in `target/dist/artefacts`: an archive, a package of
//! Debian, the client for Python, what is in the command (a bill of materials), and checksums. Man
//! pages and completions are written by the command itself.

mod debian;
mod materials;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{python, steps};

/// What is built, and where.
pub(crate) struct Dist<'a> {
    root: &'a Path,
    /// The command that is packed.
    binary: PathBuf,
    /// Where everything goes.
    artefacts: PathBuf,
    /// Its scratch folder.
    stage: PathBuf,
    version: String,
}

/// Makes everything; with `--binary FILE` of a command that was built already; with `--try` the
/// package is looked at by lintian, and installed, upgraded and removed in a Debian of its own.
pub(crate) fn run(root: &Path, words: &[&str]) -> Option<bool> {
    let (mut binary, mut attempt) = (None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--binary" => binary = Some(PathBuf::from(words.next()?)),
            "--try" => attempt = true,
            _ => return None,
        }
    }
    println!("\n--- dist");
    let done = make(root, binary).and_then(|(dist, package)| {
        if attempt { debian::attempt(&dist, &package) } else { Ok(()) }
    });
    if let Err(why) = &done {
        println!("{why}");
    }
    println!("--- dist: {}", if done.is_ok() { "ok" } else { "FAILED" });
    Some(done.is_ok())
}

fn make(root: &Path, binary: Option<PathBuf>) -> Result<(Dist<'_>, PathBuf), String> {
    let target = steps::target(root);
    let binary = match binary {
        Some(binary) => binary,
        None => {
            let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
            let words = ["build", "--profile", "dist", "--locked", "--package", "quorate"];
            perform(Command::new(cargo).args(words).current_dir(root))?;
            target.join("dist/quorate")
        }
    };
    let artefacts = target.join("dist/artefacts");
    let stage = target.join("dist/stage");
    for folder in [&artefacts, &stage] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
    }
    let said = output(Command::new(&binary).arg("--version"))?;
    let version = said.split_whitespace().nth(1).ok_or("it does not say its version")?.to_owned();
    let dist = Dist { root, binary, artefacts, stage, version };
    dist.archive()?;
    let package = debian::package(&dist)?;
    materials::write(&dist)?;
    python::packages(root, &dist.artefacts)?;
    dist.checksums()?;
    for entry in std::fs::read_dir(&dist.artefacts).into_iter().flatten().flatten() {
        let bytes = entry.metadata().map_or(0, |about| about.len());
        println!("{:>10} {}", bytes, entry.path().display());
    }
    Ok((dist, package))
}

impl Dist<'_> {
    /// One folder with the command and what belongs to it.
    fn archive(&self) -> Result<(), String> {
        let name = format!("quorate-{}-{}", self.version, std::env::consts::ARCH);
        let folder = self.stage.join(&name);
        let packaging = self.root.join("packaging");
        put(&self.binary, &folder.join("bin/quorate"), 0o755)?;
        self.pages(&folder.join("man"))?;
        for (shell, file) in SHELLS {
            self.completion(shell, &folder.join("completions").join(file))?;
        }
        for file in ["systemd/quorate.service", "systemd/quorate.sysusers.conf"] {
            put(&packaging.join(file), &folder.join(file), 0o644)?;
        }
        for file in EXAMPLES {
            put(&packaging.join(file), &folder.join(file), 0o644)?;
        }
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
            put(&self.root.join(file), &folder.join(file), 0o644)?;
        }
        let archive = self.artefacts.join(format!("{name}.tar.gz"));
        // The same files make the same archive.
        let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
        perform(
            Command::new("tar")
                .args(same)
                .arg(format!("--mtime=@{}", self.time()))
                .args(["--use-compress-program", "gzip -9n", "-cf"])
                .arg(archive)
                .arg("-C")
                .arg(&self.stage)
                .arg(name),
        )
    }

    /// When the sources were committed, in seconds: what is made says nothing of when it was.
    fn time(&self) -> String {
        let mut git = Command::new("git");
        git.args(["log", "-1", "--format=%ct"]).current_dir(self.root);
        output(&mut git).map_or_else(|_| "0".into(), |time| time.trim().to_owned())
    }

    fn pages(&self, folder: &Path) -> Result<(), String> {
        perform(Command::new(&self.binary).arg("__man").arg(folder))
    }

    fn completion(&self, shell: &str, file: &Path) -> Result<(), String> {
        let script = output(Command::new(&self.binary).args(["completions", shell]))?;
        write(file, &script)
    }

    fn checksums(&self) -> Result<(), String> {
        let entries = std::fs::read_dir(&self.artefacts).map_err(|e| told(&self.artefacts, &e))?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let mut tool = Command::new("sha256sum");
        let sums = output(tool.args(names).current_dir(&self.artefacts))?;
        write(&self.artefacts.join("SHA256SUMS"), &sums)
    }
}

/// What guides tell people to put somewhere, or to change first.
const EXAMPLES: [&str; 6] = [
    "prometheus/quorate.rules.yml",
    "grafana/quorate.json",
    "systemd/quorate.service.d/credentials.conf",
    "recipes/fences.sql",
    "recipes/put-fenced",
    "recipes/reboot-when-free",
];

/// Shells, and what they call such a file.
const SHELLS: [(&str, &str); 3] =
    [("bash", "quorate"), ("zsh", "_quorate"), ("fish", "quorate.fish")];

/// Copies a file, with folders for it.
fn put(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    folder_of(to)?;
    std::fs::copy(from, to).map_err(|error| told(from, &error))?;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(to, mode).map_err(|error| told(to, &error))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    folder_of(file)?;
    std::fs::write(file, text).map_err(|error| told(file, &error))
}

fn folder_of(file: &Path) -> Result<(), String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| told(folder, &error))
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Runs a command that must succeed.
fn perform(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// What a command that must succeed says.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        Ok(done) => Err(format!("{shown}: {}", done.status)),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

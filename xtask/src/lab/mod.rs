//! `cargo xtask lab`: a cluster on several machines, which are network namespaces of this one, with
//! links that can be cut, reset, made lossy and slow. Linux, and root.

mod guide;
mod hold;
mod joining;
mod links;
pub(crate) mod net;
mod relay;
mod rotation;
mod shadows;
mod strangers;
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use guide::Rack;
use net::{Lab, Outcome, say};

/// What can be played.
struct Scenario {
    name: &'static str,
    about: &'static str,
    /// Hosts beside those of the guide.
    others: &'static [&'static str],
    play: fn(&mut Rack) -> Outcome<String>,
    /// Whether it is played unless others are named.
    usual: bool,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "guide",
        about: "three machines, by the commands of docs/guides/three-machines.md",
        others: &[],
        play: guide::scenario,
        usual: true,
    },
    Scenario {
        name: "joining",
        about: "three machines in four commands: one is made, two are invited and join",
        others: &[],
        play: joining::scenario,
        usual: true,
    },
    Scenario {
        name: "shadows",
        about: "whoever decides and its shadow are cut off and killed: the pool goes on at once",
        others: &[],
        play: shadows::scenario,
        usual: true,
    },
    Scenario {
        name: "strangers",
        about: "certificates and tokens that are wrong in one way each",
        others: &[strangers::STRANGER],
        play: strangers::scenario,
        usual: true,
    },
    Scenario {
        name: "tools",
        about: "openssl and curl as clients",
        others: &[],
        play: tools::scenario,
        usual: true,
    },
    Scenario {
        name: "rotation",
        about: "a new authority under load, and no grant is lost",
        others: &[],
        play: rotation::scenario,
        usual: true,
    },
    Scenario {
        name: "links",
        about: "links cut, reset, lossy and slow: no unit has two holders",
        others: &[],
        play: links::scenario,
        usual: true,
    },
    Scenario {
        name: "links-short",
        about: "one of these, for cargo xtask test",
        others: &[],
        play: links::short,
        usual: false,
    },
];

const HELP: &str = "\
cargo xtask lab [--json] [--program FILE] [SCENARIO...]
cargo xtask lab --list
cargo xtask lab --shell

  SCENARIO...           play these; all, if none is named
  --list                what there is to play
  --shell               set the machines of the guide up, say how to use them, and wait for Ctrl-C
  --json                print the results as one line of JSON
  --program FILE        play with this quorate, instead of building one

Linux, and root. All is in network namespaces, from which no packet leaves, and is taken down at the
end, also after a Ctrl-C.

Exit code 0 if all is well, 1 if not, 2 if the command was not understood.";

/// What `cargo xtask lab` was asked for.
#[derive(Default)]
struct Wish<'a> {
    json: bool,
    shell: bool,
    program: Option<&'a str>,
    names: Vec<&'a str>,
}

/// `cargo xtask lab` with these words.
pub(crate) fn run(root: &Path, words: &[&str]) -> ExitCode {
    match words {
        // What the laboratory starts itself.
        ["relay", listen, to, millis] => {
            let delay = Duration::from_millis(millis.parse().unwrap_or_default());
            if let Err(why) = relay::run(listen, to, delay) {
                eprintln!("{why}");
            }
            return ExitCode::FAILURE;
        }
        // What `cargo xtask test` starts.
        ["short", program] => {
            let good = short(root, Path::new(program));
            return if good { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        ["hold", folder, ends] => return ExitCode::from(hold::job(folder, ends) as u8),
        ["--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["--list"] => {
            for Scenario { name, about, .. } in SCENARIOS {
                println!("{name:12}  {about}");
            }
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let wish = match read(words) {
        Ok(wish) => wish,
        Err(problem) => {
            eprintln!("xtask lab: {problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = possible() {
        eprintln!("cargo xtask lab cannot be used here: {why}");
        return ExitCode::FAILURE;
    }
    let program = match wish.program.map_or_else(|| build(root), |file| absolute(Path::new(file))) {
        Ok(program) => program,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let good = match wish.shell {
        true => wait(root, &program),
        false => play_all(root, &program, &wish),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read<'a>(words: &[&'a str]) -> Outcome<Wish<'a>> {
    let mut wish = Wish::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--json" => wish.json = true,
            "--shell" => wish.shell = true,
            "--program" => {
                wish.program = Some(words.next().ok_or("--program takes a file")?);
            }
            option if option.starts_with('-') => return Err(format!("not understood: {option}")),
            name if SCENARIOS.iter().any(|it| it.name == name) => wish.names.push(name),
            name => return Err(format!("there is no scenario {name:?}: see --list")),
        }
    }
    Ok(wish)
}

/// A short version, for `cargo xtask test`: with the quorate that the tests built.
fn short(root: &Path, program: &Path) -> bool {
    println!("\n--- lab: cargo xtask lab guide links-short");
    if let Err(why) = possible() {
        println!("--- lab: skipped: {why}");
        return true;
    }
    let wish = Wish { names: vec!["guide", "links-short"], ..Wish::default() };
    absolute(program).is_ok_and(|program| play_all(root, &program, &wish))
}

fn play_all(root: &Path, program: &Path, wish: &Wish<'_>) -> bool {
    let chosen = SCENARIOS.iter().filter(|it| match wish.names.is_empty() {
        true => it.usual,
        false => wish.names.contains(&it.name),
    });
    let mut results = Vec::new();
    for scenario in chosen {
        say(&format!("--- lab, {}: {}", scenario.name, scenario.about));
        let began = Instant::now();
        let result = play(root, program, scenario);
        let seconds = began.elapsed().as_secs_f64();
        match &result {
            Ok(found) => say(&format!("--- lab, {}: ok, {found} ({seconds:.1} s)", scenario.name)),
            Err(why) => say(&format!("--- lab, {}: FAILED: {why}", scenario.name)),
        }
        results.push((scenario.name, result, seconds));
    }
    if wish.json {
        let one = |(name, result, seconds): &(&str, Outcome<String>, f64)| {
            let (good, text) = match result {
                Ok(found) => (true, found),
                Err(why) => (false, why),
            };
            let text = json_text(text);
            format!(
                "{{\"scenario\":\"{name}\",\"ok\":{good},\"seconds\":{seconds:.1},\"text\":{text}}}"
            )
        };
        say(&format!("[{}]", results.iter().map(one).collect::<Vec<_>>().join(",")));
    }
    results.iter().all(|(_, result, _)| result.is_ok())
}

fn play(root: &Path, program: &Path, scenario: &Scenario) -> Outcome<String> {
    let mut rack = Rack::new(root, program, scenario.others)?;
    let played = (scenario.play)(&mut rack);
    played.map_err(|why| format!("{why}\n{}", rack.logs()))
}

/// A string of JSON.
pub(crate) fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '.. => quoted.push(letter),
            control => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
    }
    quoted.push('"');
    quoted
}

/// The machines of the guide, for whoever wants to try something by hand.
fn wait(root: &Path, program: &Path) -> bool {
    let rack = Rack::new(root, program, &[]).and_then(|mut rack| {
        rack.install("", "")?;
        rack.start()?;
        Ok(rack)
    });
    let rack = match rack {
        Ok(rack) => rack,
        Err(why) => {
            say(&why);
            return false;
        }
    };
    say("a, b and c run. From the laptop, with the guide's token:");
    say(&rack.by_hand());
    say("Ctrl-C takes all of it down.");
    loop {
        std::thread::park();
    }
}

/// Whether machines can be made here; installs the tools for that if they are missing.
pub(crate) fn possible() -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err("machines are network namespaces, which only Linux has".into());
    }
    let id = Command::new("id").arg("-u").output().map_err(|error| error.to_string())?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Err("only root may make network namespaces".into());
    }
    install()?;
    // Whether this kernel, or the container around us, lets us is found out by trying.
    let mut lab = Lab::new(&["a", "b"])?;
    lab.lossy("a", "b", 0.5)?;
    lab.reset("a", "b")?;
    lab.narrow("a", 1000)?;
    lab.heal()
}

/// Debian's names, and a program of each.
const TOOLS: [(&str, &str); 4] =
    [("iproute2", "ip"), ("iptables", "iptables"), ("openssl", "openssl"), ("curl", "curl")];

fn install() -> Outcome {
    let missing = || -> Vec<&str> {
        let gone = |(_, program): &&(&str, &str)| {
            let mut which = Command::new("sh");
            which.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
            !which.status().is_ok_and(|status| status.success())
        };
        TOOLS.iter().filter(gone).map(|(package, _)| *package).collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    println!("--- installing {}", packages.join(", "));
    crate::browser::apt(&packages);
    match missing() {
        none if none.is_empty() => Ok(()),
        still => Err(format!("{} could not be installed: do it by hand", still.join(", "))),
    }
}

fn build(root: &Path) -> Outcome<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["build", "--locked", "--quiet", "--package", "quorate"];
    let built = Command::new(cargo).args(words).current_dir(root).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("quorate could not be built".into());
    }
    absolute(&crate::steps::target(root).join("debug/quorate"))
}

fn absolute(file: &Path) -> Outcome<PathBuf> {
    file.canonicalize().map_err(|error| format!("cannot find {}: {error}", file.display()))
}

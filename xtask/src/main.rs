//! `cargo xtask`: the project's chores as a program, so that a person and CI run the same thing.
//!
//! `test` never writes to the tree; `fix` does. It depends on nothing but the laws and their
//! vocabulary, which depend on nothing else, so that it builds in seconds.

mod alerts;
mod browser;
mod campaign;
mod citations;
mod dist;
mod doors;
mod lab;
mod machine;
mod peers;
mod python;
mod recipes;
mod steps;
mod suites;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test [--quick]        everything CI checks; --quick leaves out model checks and seeds
  fix                   format, and apply what clippy can repair by itself
  tidy                  only the rules of the house: who may know whom, file sizes, words, links
  seeds --minutes N     simulate fresh seeds of every protocol and fault profile, N minutes in all
  seeds --real --minutes N
                        the same with processes that are killed, paused and cut off
  checks [NAME]         explore the larger worlds that CI leaves out; NAME chooses among the tests
  alerts                Prometheus's alerts and the Grafana dashboard, by promtool
  python                packages and tests of the client for Python, with target/debug/quorate
  recipes               what guides tell people to do, on PostgreSQL, systemd and others (root)
  fuzz [--inputs N | --minutes N] [--seed N]
                        nonsense for every decoder, in a release build
  peers [WORDS]         Quorate beside Redis, etcd and ZooKeeper in one run, and the raw limit
                        (root, if they must be installed); --help says more
  dist [--binary FILE] [--try]
                        an archive, packages of Debian and Python, a bill of materials, checksums;
                        --try looks at Debian's with lintian, and installs and runs it in a Debian
                        of its own, with systemd (root)
  lab [SCENARIO...]     a cluster on several machines, as network namespaces, with links that break;
                        --list and --help say more
  campaign [--minutes N] [--seed S]
                        workloads and faults drawn by seed on such machines, and clients' histories
                        judged by the laws; --list and --help say more

Exit code 0 if all is well, 1 if a check failed, 2 if the command was not understood.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let root = root();
    let good = match words[..] {
        ["test"] => steps::test(&root, steps::Tier::Default),
        ["test", "--quick"] => steps::test(&root, steps::Tier::Quick),
        ["checks"] => steps::checks(&root, None),
        ["checks", name] if !name.starts_with('-') => steps::checks(&root, Some(name)),
        ["lab", ref words @ ..] => return lab::run(&root, words),
        ["campaign", ref words @ ..] => return campaign::run(&root, words),
        ["peers", "--help" | "-h"] => {
            println!("{}", peers::HELP);
            return ExitCode::SUCCESS;
        }
        ["peers", ref words @ ..] => peers::run(&root, words),
        ["alerts"] => alerts::check(&root),
        ["fuzz", ref words @ ..] => steps::fuzz(&root, &words.join(" ")),
        ["dist", ref words @ ..] => match dist::run(&root, words) {
            Some(good) => good,
            None => return usage(&format!("not understood: dist {}", words.join(" "))),
        },
        ["recipes"] => recipes::check(&root),
        ["python"] => python::test(&root),
        ["fix"] => steps::fix(&root),
        ["tidy"] => steps::report("tidy", &tidy::check(&root)),
        ["seeds", ref kind @ .., "--minutes", minutes] if matches!(kind, [] | ["--real"]) => {
            match minutes.parse() {
                Ok(minutes) if kind.is_empty() => steps::seeds(&root, minutes),
                Ok(minutes) => steps::real_seeds(&root, minutes),
                Err(_) => {
                    return usage(&format!("--minutes takes a whole number, not '{minutes}'"));
                }
            }
        }
        [] | ["--help" | "-h" | "help"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => return usage(&format!("not understood: {}", words.join(" "))),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("xtask: {problem}\n\n{HELP}");
    ExitCode::from(2)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_path_buf()
}

//! docs/guides/recipes.md, "CI jobs over several runners": its steps in the shells that GitHub's
//! runner and Jenkins start, with what those say in the environment.

use std::path::Path;
use std::process::{Child, Command};

use super::{Dev, Done, ensure, said, until};

/// What a system of CI does with the words of a step.
struct Runner {
    name: &'static str,
    /// The shell and its options; the script's file comes last.
    shell: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// What it sends to the shell of a job that is cancelled.
    cancels: &'static str,
}

/// GitHub's by its documentation of `run` without `shell` on Linux, Jenkins' by that of `sh`.
const RUNNERS: [Runner; 2] = [
    Runner {
        name: "GitHub Actions",
        shell: &["bash", "-e"],
        environment: &[("CI", "true"), ("GITHUB_WORKFLOW", "deploy"), ("GITHUB_RUN_ID", "77")],
        cancels: "INT",
    },
    Runner {
        name: "Jenkins",
        shell: &["sh", "-xe"],
        environment: &[("BUILD_TAG", "jenkins-deploy-7"), ("JENKINS_NODE_COOKIE", "a-cookie")],
        cancels: "TERM",
    },
];

pub(super) fn jobs(dev: &Dev, root: &Path) -> Done {
    let guide = root.join("docs/guides/recipes.md");
    let guide = std::fs::read_to_string(guide).map_err(|error| error.to_string())?;
    let step = |begin: &str, end: &str| {
        let line = guide.lines().find_map(|line| line.trim().strip_prefix(begin));
        let line = line.and_then(|line| line.strip_suffix(end));
        line.map(str::to_owned).ok_or(format!("the guide has no step {begin}"))
    };
    let steps = [step("- run: ", "")?, step("sh '", "'")?];
    let log = dev.folder.join("deployments");
    // Whoever is here twice has found the other's mark.
    let deploy = "#!/bin/sh\nmkdir here || exit 9\necho \"$1\" >> deployments\n\
                  sleep ${NAP:-0.5}\nrmdir here\n";
    dev.write("deploy.sh", deploy)?;
    let done = Command::new("chmod").args(["+x", "deploy.sh"]).current_dir(&dev.folder).status();
    ensure(done.is_ok_and(|status| status.success()), "chmod")?;
    let start = |runner: &Runner, step: &str, nap: &str| -> Done<Child> {
        dev.write(runner.name, &format!("{step}\n"))?;
        let mut shell = dev.shell(runner.shell[0]);
        shell.args(&runner.shell[1..]).arg(runner.name).env("NAP", nap);
        shell.envs(runner.environment.iter().copied());
        shell.spawn().map_err(|error| format!("{}: {error}", runner.name))
    };
    // One job of each at once: neither finds the other in the middle.
    let begun = RUNNERS.iter().zip(&steps).map(|(runner, step)| start(runner, step, "0.5"));
    for mut job in begun.collect::<Done<Vec<_>>>()? {
        let ended = job.wait().map_err(|error| error.to_string())?;
        ensure(ended.success(), &format!("a job ended with {ended}"))?;
    }
    let count = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    ensure(count() == 2, "both were deployed")?;
    for (runner, step) in RUNNERS.iter().zip(&steps) {
        // A job that is cancelled, and one whose runner vanishes: the next has the unit.
        for signal in [runner.cancels, "KILL"] {
            let before = count();
            let mut job = start(runner, step, "60")?;
            until(|| count() > before)?;
            let kill = |signal: &str, whom: u32| {
                let mut kill = Command::new("kill");
                kill.args([format!("-{signal}"), whom.to_string()]).status()
            };
            // Both tell every process of the job.
            let inside = said(
                &dev.shell("pgrep")
                    .args(["-P", &job.id().to_string()])
                    .output()
                    .map_err(|error| error.to_string())?,
            );
            for whom in inside.lines().filter_map(|line| line.parse().ok()) {
                let _ = kill(signal, whom);
            }
            let _ = kill(signal, job.id());
            let _ = job.wait();
            let held =
                dev.quorate(&["run", "staging", "--timeout", "60s", "--", "rmdir", "here"])?;
            ensure(held.status.success(), &said(&held))?;
        }
        println!(
            "{}: jobs take turns, and one that is cancelled or vanishes leaves nothing",
            runner.name
        );
    }
    Ok(())
}

//! What can be done to a node beside killing it: another clock, another program, a slow disk,
//! certificates that expire, and what operators do to members. [`Stage::heal`] undoes it.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::draw::Protocol;
use super::stage::{FAKETIME, RECOVERY, Stage};
use crate::lab::net::{self, Outcome};

/// Seconds of a day, for which certificates are made at least.
const DAY: u64 = 86_400;

impl Stage {
    /// A node is started anew with these words before it and these variables.
    pub(crate) fn restart_oddly(
        &mut self,
        number: usize,
        before: &[&str],
        variables: &[(&str, String)],
    ) -> Outcome {
        let node = &mut self.nodes[number];
        node.before = before.iter().map(|word| (*word).to_owned()).collect();
        node.variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        node.odd = true;
        self.restart(number)
    }

    /// A node is started anew as one of the test program, with something planted in it.
    pub(crate) fn restart_as(
        &mut self,
        number: usize,
        planted: &'static str,
        variables: &[(&str, String)],
    ) -> Outcome {
        self.nodes[number].planted = Some(planted);
        self.restart_oddly(number, &[], variables)
    }

    /// Another rate of all clocks of a node, that of its leases too.
    pub(crate) fn restart_at_rate(
        &mut self,
        number: usize,
        planted: &'static str,
        rate: &str,
    ) -> Outcome {
        let clock = [("LD_PRELOAD", FAKETIME.to_owned()), ("FAKETIME", format!("+0 x{rate}"))];
        self.restart_as(number, planted, &clock)
    }

    /// Another rate of timers, and another time of day.
    pub(crate) fn restart_with_clock(
        &mut self,
        number: usize,
        clock: &str,
        rates: bool,
    ) -> Outcome {
        let mut variables =
            vec![("LD_PRELOAD", FAKETIME.to_owned()), ("FAKETIME", clock.to_owned())];
        if !rates {
            variables.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()));
        }
        self.restart_oddly(number, &[], &variables)
    }

    /// A node is started anew where each sync takes so much longer, and every twentieth this more.
    pub(crate) fn restart_on_slow_disk(&mut self, number: usize, each: u64, stall: u64) -> Outcome {
        let eye = self.lab.host("eye").clone();
        let library = eye.folder.join("slow.so");
        if !library.exists() {
            eye.write("slow.c", include_str!("slow.c"))?;
            net::done(&mut eye.shell("cc -shared -fPIC -O1 -o slow.so slow.c -ldl"))?;
        }
        let variables = [
            ("LD_PRELOAD", library.display().to_string()),
            ("QUORATE_CAMPAIGN_SYNC_MS", each.to_string()),
            ("QUORATE_CAMPAIGN_STALL_MS", stall.to_string()),
        ];
        self.restart_oddly(number, &[], &variables)
    }

    /// Empties a directory, as a disk that was replaced is empty.
    pub(crate) fn empty(&self, number: usize) -> Outcome {
        let data = self.host(number).folder.join("data");
        let entries = fs::read_dir(&data).map_err(|error| error.to_string())?;
        for entry in entries.flatten() {
            let path = entry.path();
            let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            gone.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A node gets a certificate that is worth something for so many seconds.
    pub(crate) fn certify_briefly(&mut self, number: usize, seconds: u64) -> Outcome {
        let eye = self.lab.host("eye").clone();
        let (host, program) = (self.host(number).clone(), self.tools.program.display().to_string());
        let script = format!(
            "rm -rf brief\nLD_PRELOAD={FAKETIME} FAKETIME=-{}s {program} cert node {} --days 1 \
             --address {} --ca {} --dir brief\n",
            DAY - seconds,
            host.name,
            host.address,
            self.authority,
        );
        net::done(&mut eye.shell(&script))?;
        self.brief.push(number);
        // While it has none that is worth something it cannot be started.
        self.nodes[number].may_end = true;
        self.hand_out(number, "brief")?;
        self.note(format!("{} has a certificate for {seconds} s", host.name));
        self.signal(number, "HUP")
    }

    /// It gets its own again.
    pub(crate) fn certify(&mut self, number: usize) -> Outcome {
        self.brief.retain(|node| *node != number);
        self.hand_out(number, self.authority)?;
        let name = self.nodes[number].name.clone();
        self.note(format!("{name} has a certificate that lasts"));
        self.signal(number, "HUP")
    }

    fn hand_out(&self, number: usize, folder: &str) -> Outcome {
        let (eye, host) = (self.lab.host("eye"), self.host(number));
        for end in ["key", "crt"] {
            let file = self.certificate(number, end);
            host.write(&format!("etc/{file}.new"), eye.read(&format!("{folder}/{file}"))?)?;
            let (from, to) = (format!("etc/{file}.new"), format!("etc/{file}"));
            let moved = fs::rename(host.folder.join(from), host.folder.join(to));
            moved.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    // Members.

    /// `quorate member ...` about one of them, at all others.
    pub(super) fn member(&self, number: usize, words: &str) -> Command {
        let eye = self.lab.host("eye");
        let others: Vec<String> = (0..self.nodes.len())
            .filter(|other| *other != number)
            .map(|other| format!("https://{}:7420", self.host(other).address))
            .collect();
        let mut command = eye.command(&self.tools.program.display().to_string());
        command.arg("member").args(words.split(' ')).args(["--server", &others.join(",")]);
        command.args(["--ca", "ca.crt", "--token-file", "token"]);
        command
    }

    fn begin(&mut self, number: usize, words: &str) -> Outcome {
        let log = super::stage::append(&self.lab.host("eye").folder.join("members.log"))?;
        let mut command = self.member(number, words);
        command.stdout(std::process::Stdio::null()).stderr(log);
        self.note(format!("member {words}"));
        self.strangers.push(net::start(&mut command)?);
        Ok(())
    }

    pub(crate) fn drain_member(&mut self, number: usize, drains: bool) -> Outcome {
        let name = self.nodes[number].member.clone();
        if drains {
            self.drained = Some(number);
        }
        self.begin(number, &format!("drain {name}{}", if drains { "" } else { " --undo" }))
    }

    /// It ends by itself then, and may be killed first.
    pub(crate) fn remove_member(&mut self, number: usize) -> Outcome {
        let name = self.nodes[number].member.clone();
        self.gone.push(number);
        self.nodes[number].may_end = true;
        self.begin(number, &format!("remove {name} --force"))
    }

    /// A machine is lost with its disk.
    pub(crate) fn lose_member(&mut self, number: usize) -> Outcome {
        self.gone.push(number);
        self.nodes[number].may_end = true;
        self.kill(number)?;
        self.empty(number)
    }

    /// Another machine takes its place; if no majority answers, it stays away for now.
    pub(crate) fn replace_member(&mut self, number: usize) -> Outcome {
        if self.draw.protocol == Protocol::Grown {
            return self.follow(number);
        }
        let name = self.nodes[number].name.clone();
        self.kill(number)?;
        self.empty(number)?;
        let done = net::output(&mut self.member(number, &format!("replace {name} --force")))?;
        if done.status.success() {
            self.note(format!("{name} is replaced"));
            self.gone.retain(|node| *node != number);
            self.start(number)?;
        }
        Ok(())
    }

    /// What operators did to members is taken back, when all others are there.
    pub(crate) fn restore_members(&mut self) -> Outcome {
        let began = Instant::now();
        while let Some(number) = self.gone.first().copied() {
            self.replace_member(number)?;
            self.enough(began, number, "replace")?;
        }
        self.all_joined()?;
        while let Some(number) = self.drained {
            let words = format!("drain {} --undo", self.nodes[number].member);
            let done = net::output(&mut self.member(number, &words))?;
            if done.status.success() {
                self.drained = None;
            }
            self.enough(began, number, "drain --undo")?;
        }
        Ok(())
    }

    fn enough(&self, began: Instant, number: usize, what: &str) -> Outcome {
        std::thread::sleep(Duration::from_millis(100));
        match began.elapsed() > RECOVERY {
            true => Err(format!("MEMBERS: {what} {} is in vain", self.nodes[number].name)),
            false => Ok(()),
        }
    }
}

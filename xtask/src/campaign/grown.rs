//! A cluster that one machine makes, and that others join by invitation: at the beginning, and
//! while it is used. A machine that joins in place of a lost one has a name of its own.

use super::draw::Protocol;
use super::stage::{Node, POOL, PROBE, Stage};
use crate::lab::net::{self, Outcome};

impl Stage {
    /// `quorate serve` with these words, where a machine is no member yet.
    fn begin_member(&self, number: usize, words: &[&str]) -> Vec<String> {
        let host = self.host(number);
        let (data, address) = (host.folder.join("data"), host.address.to_string());
        let data = data.display().to_string();
        let program = self.tools.program.display().to_string();
        let all = [program.as_str(), "serve"].into_iter().chain(words.iter().copied());
        let all = all.chain(["--data", data.as_str(), "--address", address.as_str()]);
        all.map(String::from).collect()
    }

    /// One makes it, with pools, and the others join.
    pub(super) fn grow(&mut self) -> Outcome {
        let name = self.nodes[0].name.clone();
        let words =
            self.begin_member(0, &["--new", "--cluster", "campaign", "--name", name.as_str()]);
        self.start_with(0, words)?;
        let (eye, first) = (self.lab.host("eye").clone(), self.host(0).clone());
        net::until("the first member has its file", || self.has_joined(0))?;
        self.stop(0)?;
        // Whoever joins has the pace from there.
        let written = first.read(self.file())?;
        let paced = written.replace("joins = true\n", &format!("joins = true\n{}", self.pace()));
        first.write(self.file(), paced)?;
        self.hurry(0)?;
        self.start(0)?;
        eye.write("ca.crt", first.read("data/ca.crt")?)?;
        self.show(&first.read("data/admin.token")?)?;
        eye.write(
            "pools.toml",
            self.pools(&[("name", POOL), ("name", PROBE), ("name", "flood-1")]),
        )?;
        for number in 0..self.nodes.len() {
            self.host(number).write("etc/ca.crt", first.read("data/ca.crt")?)?;
        }
        let program = self.tools.program.display().to_string();
        let words = format!(
            "{program} apply -f pools.toml --server https://{}:7420 --ca ca.crt --token-file token",
            first.address
        );
        let mut said = String::new();
        net::until("pools are made", || match net::fine(&mut eye.shell(&words)) {
            Ok(_) => true,
            Err(why) => {
                said = why;
                false
            }
        })
        .map_err(|why| format!("{why}: {said}"))?;
        for number in 1..self.nodes.len() {
            let name = self.nodes[number].name.clone();
            net::until(&format!("{name} is invited"), || {
                self.join(number, &name).unwrap_or_default()
            })?;
            self.until_joined(number)?;
            self.stop(number)?;
            self.hurry(number)?;
            self.start(number)?;
        }
        Ok(())
    }

    /// It suspects as soon as nodes of other draws do.
    fn hurry(&self, number: usize) -> Outcome {
        let host = self.host(number);
        let written = host.read(self.file())?;
        host.write(self.file(), format!("suspect_after = \"2s\"\n{written}"))
    }

    /// Whether it has a file of its own, with which it starts from now on.
    pub(crate) fn has_joined(&self, number: usize) -> bool {
        self.host(number).folder.join(self.file()).exists()
    }

    /// How it starts as long as it has not joined.
    pub(super) fn joining(&self, number: usize) -> Option<Vec<String>> {
        self.nodes[number].joins.clone().filter(|_| !self.has_joined(number))
    }

    /// A machine is invited under this name, and starts; not if nobody can invite it now.
    fn join(&mut self, number: usize, member: &str) -> Outcome<bool> {
        let done = net::output(&mut self.member(number, &format!("invite {member}")))?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let Some(word) = said.split('\'').nth(1).filter(|_| done.status.success()) else {
            return Ok(false);
        };
        let words = self.begin_member(number, &["--join", word]);
        let node = &mut self.nodes[number];
        (node.member, node.joins, node.may_end) = (member.to_owned(), Some(words), true);
        let host = node.name.clone();
        self.note(format!("{host} joins as {member}"));
        self.start(number)?;
        Ok(true)
    }

    /// Until it is a member, whatever happened while it joined.
    pub(super) fn until_joined(&mut self, number: usize) -> Outcome {
        let name = self.nodes[number].member.clone();
        net::until(&format!("{name} has joined"), || {
            let _ = self.check_alive().and_then(|()| self.start(number));
            self.has_joined(number)
        })
        .map_err(|why| format!("MEMBERS: {why}"))
    }

    /// One more machine, which nobody knew.
    pub(crate) fn arrive(&mut self) -> Outcome {
        let (number, name) = (self.nodes.len(), format!("m{}", self.joined));
        self.nodes.push(Node::new(name.clone()));
        self.furnish(number)?;
        let authority = self.lab.host("eye").read("ca.crt")?;
        self.host(number).write("etc/ca.crt", authority)?;
        if !self.join(number, &name)? {
            self.note(format!("nobody can invite {name}"));
            self.nodes.pop();
            return Ok(());
        }
        self.joined += 1;
        Ok(())
    }

    /// Clients of the machine that came last, if it has joined and there are none yet; and whoever
    /// looks at nodes looks at it too.
    pub(crate) fn welcome(&mut self) -> Outcome {
        let number = self.nodes.len() - 1;
        if self.nodes[number].joins.is_none() || !self.has_joined(number) {
            return Ok(());
        }
        self.nodes[number].joins = None;
        self.stop_looking()?;
        self.look()?;
        self.crew(0)
    }

    /// Another machine in place of a lost member, under a name that nobody had; if no majority
    /// answers, it stays away for now.
    pub(super) fn follow(&mut self, number: usize) -> Outcome {
        self.kill(number)?;
        self.empty(number)?;
        let lost = self.nodes[number].member.clone();
        let gone = net::output(&mut self.member(number, &format!("remove {lost} --dead --force")))?;
        if !gone.status.success() {
            return Ok(());
        }
        self.joined += 1;
        let name = format!("{}-{}", self.nodes[number].name, self.joined);
        if self.join(number, &name)? {
            self.gone.retain(|node| *node != number);
        }
        Ok(())
    }

    /// All who were invited are members.
    pub(super) fn all_joined(&mut self) -> Outcome {
        if self.draw.protocol != Protocol::Grown {
            return Ok(());
        }
        (0..self.nodes.len()).try_for_each(|number| self.until_joined(number))
    }
}

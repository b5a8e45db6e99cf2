//! What is in the files of a draw's nodes: certificates, tokens, members, pools.

use super::draw::{Draw, Protocol};
use super::stage::{POOL, PROBE, Stage};
use crate::lab::net::{self, Outcome};

impl Stage {
    /// An authority, a token, and a file for each node.
    pub(super) fn write_files(&mut self) -> Outcome {
        let eye = self.lab.host("eye").clone();
        let program = self.tools.program.display().to_string();
        let mut script = format!("{program} cert new-ca campaign --dir certs\n");
        for node in &self.nodes {
            let address = self.lab.host(&node.name).address;
            script +=
                &format!("{program} cert node {} --address {address} --dir certs\n", node.name);
        }
        script += &format!(
            "{program} token new camp --may see,claim,admin --pools '*' --secret-file token \
             > tokens\ncp certs/ca.crt ca.crt\n"
        );
        net::done(&mut eye.shell(&script))?;
        self.show(&eye.read("token")?)?;
        for number in 0..self.nodes.len() {
            let host = self.host(number).clone();
            for file in
                ["ca.crt".into(), self.certificate(number, "crt"), self.certificate(number, "key")]
            {
                host.write(&format!("etc/{file}"), eye.read(&format!("certs/{file}"))?)?;
            }
            self.configure(number)?;
            let words = format!("{program} init --config etc/node.toml");
            net::done(&mut host.shell(&words))?;
        }
        Ok(())
    }

    pub(crate) fn certificate(&self, number: usize, end: &str) -> String {
        format!("node-{}.{end}", self.nodes[number].name)
    }

    /// Writes a node's file.
    pub(crate) fn configure(&self, number: usize) -> Outcome {
        let host = self.host(number);
        let (name, address, folder) = (&host.name, host.address, host.folder.display());
        let mut text = format!(
            "cluster = \"campaign\"\nepoch = {}\nnode = \"{name}\"\ndata_dir = \"{folder}/data\"\n\
             suspect_after = \"2s\"\n[listen]\nclients = \"{address}:7420\"\n\
             peers = \"{address}:7520\"\n[tls]\nca = \"{folder}/etc/ca.crt\"\n\
             cert = \"{folder}/etc/node-{name}.crt\"\nkey = \"{folder}/etc/node-{name}.key\"\n",
            self.epoch
        );
        for node in &self.nodes {
            let address = self.lab.host(&node.name).address;
            text += &format!("[[members]]\nname = \"{}\"\npeers = \"{address}:7520\"\n", node.name);
        }
        if self.draw.protocol == Protocol::Moving {
            text += &format!("[charter]\nenabled = true\n{}", self.pace());
        }
        let patterns =
            [("name", POOL), ("name", PROBE), ("pattern", "camp-*"), ("pattern", "flood-*")];
        text += &self.pools(&patterns);
        let tokens = self.lab.host("eye").read("tokens")?;
        host.write("etc/node.toml", format!("{text}{tokens}"))
    }

    /// How soon the charter acts.
    pub(super) fn pace(&self) -> String {
        // Well above sixteen round trips (docs/configuration.md).
        let licence = self.draw.apart.map_or(500, |_| 2000);
        format!("licence = \"{licence}ms\"\nsuspect_after = \"1s\"\n")
    }

    /// These pools, as in a configuration.
    pub(super) fn pools(&self, named: &[(&str, &str)]) -> String {
        let Draw { units, lease, durable, protocol, workload, .. } = self.draw;
        let clock = self.draw.faults.iter().any(|fault| fault.clock);
        // What these do to clocks is promised then.
        let drift = if clock { "drift_ppm = 99000\n" } else { "" };
        let mut text = String::new();
        for (kind, name) in named {
            let labelled = workload.labelled && *name == POOL;
            let goods = if labelled { labels(units) } else { format!("units = {units}\n") };
            text += &format!(
                "[[pools]]\n{kind} = \"{name}\"\n{goods}lease = \"{}ms\"\n{drift}{}",
                lease.as_millis(),
                protocol.options(units, durable)
            );
            if workload.stands && *name == POOL {
                text += "standing = true\n";
            }
        }
        text
    }

    /// The file of a node, in its host's folder.
    pub(crate) fn file(&self) -> &'static str {
        // Who joined wrote it itself.
        if self.draw.protocol == Protocol::Grown { "data/quorate.toml" } else { "etc/node.toml" }
    }
}

/// Half of the units are big, every third is in the east.
fn labels(units: u32) -> String {
    let one = |unit: u32| {
        let (kind, zone) =
            (["big", "small"][unit as usize % 2], ["east", "west", "west"][unit as usize % 3]);
        format!("{{ name = \"u{unit}\", labels = {{ kind = \"{kind}\", zone = \"{zone}\" }} }}")
    };
    format!("units = [{}]\n", (0..units).map(one).collect::<Vec<_>>().join(", "))
}

//! What a draw is made of: all of it follows from the seed and from what was left to choose from.

use std::time::Duration;

use quorate_core::Dice;

use super::faults::{self, Fault};
use super::workloads::{self, Workload};

/// Who decides over the pools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Protocol {
    Central,
    /// `central`, and the charter says which node decides.
    Moving,
    /// The same in a cluster that one machine made and others joined by invitation: who is a member
    /// is in the charter, and so are pools.
    Grown,
    Named,
    Count,
    Ticket,
    Table,
    Broadcast,
    Ring,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 9] = [
        Protocol::Central,
        Protocol::Moving,
        Protocol::Grown,
        Protocol::Named,
        Protocol::Count,
        Protocol::Ticket,
        Protocol::Table,
        Protocol::Broadcast,
        Protocol::Ring,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Central => "central",
            Protocol::Moving => "moving",
            Protocol::Grown => "grown",
            Protocol::Named => "named",
            Protocol::Count => "count",
            Protocol::Ticket => "ticket",
            Protocol::Table => "table",
            Protocol::Broadcast => "broadcast",
            Protocol::Ring => "ring",
        }
    }

    /// Whether the charter says who decides.
    pub(crate) fn moves(self) -> bool {
        matches!(self, Protocol::Moving | Protocol::Grown)
    }

    /// Whether a grant's units are the pool's own, so that laws about units are judged.
    pub(crate) fn names_units(self) -> bool {
        !matches!(self, Protocol::Count | Protocol::Ticket | Protocol::Broadcast)
    }

    /// Whether a claim can be renewed and asked for at any node.
    pub(crate) fn lets_wander(self) -> bool {
        !matches!(self, Protocol::Broadcast | Protocol::Ring)
    }

    /// Whether what one node forgets is remembered by others.
    pub(crate) fn votes(self) -> bool {
        use Protocol::{Count, Named, Table, Ticket};
        matches!(self, Named | Count | Ticket | Table)
    }

    /// Whether any one node of three may be away.
    pub(crate) fn outlives_one(self) -> bool {
        matches!(self, Protocol::Named | Protocol::Ticket | Protocol::Table)
    }

    pub(crate) fn can_be_durable(self) -> bool {
        use Protocol::{Central, Count, Named, Table};
        matches!(self, Central | Named | Count | Table)
    }

    /// Its lines in a pool of the configuration.
    pub(crate) fn options(self, units: u32, durable: bool) -> String {
        let voting = format!("protocol = \"arbiter\"\nretry = \"200ms\"\ndurable = {durable}\n");
        let decided = format!("retry = \"200ms\"\ndurable = {durable}\n");
        match self {
            Protocol::Central | Protocol::Moving | Protocol::Grown => decided,
            Protocol::Table => format!("protocol = \"table\"\n{decided}"),
            Protocol::Named => voting,
            Protocol::Count => format!("{voting}mode = \"arbiter\"\nsurvive = 0\n"),
            Protocol::Ticket => {
                "protocol = \"arbiter\"\nmode = \"ticket\"\nretry = \"200ms\"\n".into()
            }
            Protocol::Broadcast => format!(
                "protocol = \"broadcast\"\nretry = \"200ms\"\nnode_units_max = {units}\n\
                 reclaim = \"lease\"\n"
            ),
            Protocol::Ring => "protocol = \"ring\"\ntimeout = \"300ms\"\nidle = \"50ms\"\n".into(),
        }
    }
}

/// One trial.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    pub(crate) protocol: Protocol,
    pub(crate) workload: &'static Workload,
    pub(crate) faults: Vec<&'static Fault>,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) durable: bool,
    /// Hosts are in three places, so far apart.
    pub(crate) apart: Option<Duration>,
    /// How long faults last.
    pub(crate) span: Duration,
    /// It ends with the faults: only what happened until then is judged.
    pub(crate) brief: bool,
}

/// What may be drawn: names of workloads, faults, protocols and numbers of hosts; of a kind of
/// which none is named, all.
#[derive(Clone, Default, Debug)]
pub(crate) struct Only(pub(crate) Vec<String>);

impl Only {
    /// Of these, those that were named, or all.
    fn among<T: Copy>(&self, all: &[T], name: impl Fn(&T) -> String) -> Vec<T> {
        let named: Vec<T> = all.iter().filter(|one| self.0.contains(&name(one))).copied().collect();
        if named.is_empty() { all.to_vec() } else { named }
    }

    /// A word that names nothing.
    pub(crate) fn unknown(&self) -> Option<&str> {
        let known = |word: &str| {
            workloads::ALL.iter().any(|one| one.name == word)
                || faults::all().any(|one| one.name == word)
                || Protocol::ALL.iter().any(|one| one.name() == word)
                || HOSTS.iter().any(|one| one.to_string() == word)
        };
        self.0.iter().map(String::as_str).find(|word| !known(word))
    }

    fn named_faults(&self) -> impl Iterator<Item = &'static Fault> {
        faults::all().filter(|fault| self.0.iter().any(|word| word == fault.name))
    }
}

/// Three most often: more of them fit into an hour.
const HOSTS: [usize; 5] = [3, 3, 3, 5, 7];

/// What this build and machine have, without which some faults make no sense.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Means {
    /// A program with the Rust client in it.
    pub(crate) real: bool,
    /// Another build of nodes.
    pub(crate) other: bool,
    /// libfaketime.
    pub(crate) clocks: bool,
}

impl Draw {
    /// What this seed gives.
    pub(crate) fn new(seed: u64, only: &Only, means: Means) -> Draw {
        let mut dice = Dice::new(seed);
        let hosts = dice.pick(&only.among(&HOSTS, ToString::to_string));
        let usable: Vec<&Workload> = workloads::ALL
            .iter()
            .filter(|one| means.real || !one.crews.iter().any(|crew| crew.kind == "rust"))
            .collect();
        // Of what was named, that which goes together.
        let harms =
            |protocol: &Protocol| only.named_faults().all(|fault| fault.suits(*protocol, hosts));
        let protocols: Vec<Protocol> =
            only.among(&Protocol::ALL, |one| one.name().into()).into_iter().filter(harms).collect();
        let usable: Vec<&Workload> = usable
            .into_iter()
            .filter(|work| protocols.iter().any(|protocol| work.suits(*protocol)))
            .filter(|work| !(work.stands && only.named_faults().any(|fault| fault.robs)))
            .collect();
        let workload = dice.pick(&only.among(&usable, |one| one.name.into()));
        let fitting: Vec<Protocol> =
            protocols.into_iter().filter(|one| workload.suits(*one)).collect();
        let protocol = if fitting.is_empty() { Protocol::Central } else { dice.pick(&fitting) };
        let possible: Vec<&Fault> = faults::all()
            .filter(|fault| fault.suits(protocol, hosts))
            .filter(|fault| !(workload.stands && fault.robs))
            .filter(|fault| means.other || fault.name != "upgrade")
            .filter(|fault| means.clocks || !(fault.clock || fault.beyond || fault.expires()))
            .filter(|fault| means.real || !fault.real)
            .collect();
        let among = only.among(&possible, |one| one.name.into());
        let mut faults = vec![dice.pick(&among)];
        // All that were named are wanted together; else every third draw has two.
        if only.named_faults().count() > 1 {
            faults = among;
        } else if only.named_faults().count() == 0 && dice.one_in(3) {
            let second = dice.pick(&among);
            if second.name != faults[0].name {
                faults.push(second);
            }
        }
        let alone = faults.iter().any(|fault| fault.forgets || fault.clock || fault.beyond);
        // What is not written down does not mind a disk.
        let disk = faults.iter().any(|fault| fault.disk);
        let durable = protocol.can_be_durable() && !alone && (dice.one_in(2) || disk);
        let durable = durable || workload.stands;
        let lease = Duration::from_millis(dice.pick(&match protocol {
            // Four times `suspect_after` and `licence` together, at least.
            Protocol::Moving | Protocol::Grown => [6000, 6000, 7000, 8000],
            _ => [1500, 2000, 3000, 6000],
        }));
        let apart: Option<Duration> =
            (hosts == 3 && faults.iter().all(|fault| !fault.links) && dice.one_in(6))
                .then(|| Duration::from_millis(dice.pick(&[15, 40])));
        // Licences are longer where members are far apart, and leases with them.
        let far = apart.is_some() && protocol.moves();
        let lease = if far { lease.max(Duration::from_secs(12)) } else { lease };
        Draw {
            seed,
            hosts,
            protocol,
            workload,
            faults,
            units: dice.below(5) as u32 + 2,
            lease,
            durable,
            apart,
            span: lease * 3,
            brief: false,
        }
    }

    /// In one line.
    pub(crate) fn shown(&self) -> String {
        let faults: Vec<&str> = self.faults.iter().map(|fault| fault.name).collect();
        format!(
            "{} × {}, {}{} on {} hosts{}, k {}, lease {:.1} s",
            self.workload.name,
            faults.join(" + "),
            self.protocol.name(),
            if self.durable { " (durable)" } else { "" },
            self.hosts,
            self.apart.map_or(String::new(), |far| format!(" {} ms apart", far.as_millis())),
            self.units,
            self.lease.as_secs_f64(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_draw_and_seeds_reach_everything() {
        let means = Means { real: true, other: false, clocks: true };
        let draw = |seed, words: &[&str]| {
            Draw::new(seed, &Only(words.iter().map(|word| (*word).to_owned()).collect()), means)
        };
        let (mut works, mut harms) = (Vec::new(), Vec::new());
        for seed in 0..4000 {
            let one = draw(seed, &[]);
            assert_eq!(one.shown(), draw(seed, &[]).shown());
            assert!(one.workload.suits(one.protocol));
            assert!(one.faults.iter().all(|fault| fault.suits(one.protocol, one.hosts)));
            assert!(!one.workload.stands || one.durable && one.faults.iter().all(|it| !it.robs));
            works.push(one.workload.name);
            harms.extend(one.faults.iter().map(|fault| fault.name));
        }
        assert!(workloads::ALL.iter().all(|one| works.contains(&one.name)));
        let drawn = |fault: &Fault| harms.contains(&fault.name) || fault.name == "upgrade";
        assert!(faults::all().all(drawn));
        let one = draw(3, &["small", "kill-one", "pause-long", "table", "5"]);
        assert_eq!((one.workload.name, one.protocol, one.hosts), ("small", Protocol::Table, 5));
        assert_eq!(one.faults.len(), 2);
        // What goes together is found.
        assert!(draw(4, &["kill-leader"]).protocol.moves());
        assert_eq!(draw(4, &["member-joins"]).protocol, Protocol::Grown);
        for seed in 0..50 {
            assert_eq!(draw(seed, &["moving"]).protocol, Protocol::Moving);
        }
        assert_eq!(Only(vec!["smal".into()]).unknown(), Some("smal"));
    }
}

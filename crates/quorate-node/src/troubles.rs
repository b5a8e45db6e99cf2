//! What is the matter with a pool that broadcasts, in words: from what its nodes tell about
//! themselves ([`quorate_core::Protocol::facts`]).

use quorate_api::FactView;

/// What nodes tell of one pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    facts: &'a [FactView],
    units: u32,
}

impl<'a> Told<'a> {
    pub(crate) fn new(facts: &'a [FactView], units: u32) -> Self {
        Told { facts, units }
    }

    /// Facts of this name that hold.
    fn true_ones(self, name: &'static str) -> impl Iterator<Item = &'a FactView> {
        self.facts.iter().filter(move |fact| fact.name == name && fact.value > 0)
    }

    /// Nodes of which this holds.
    fn nodes(self, name: &'static str) -> Vec<&'a str> {
        self.true_ones(name).map(|fact| fact.node.as_str()).collect()
    }

    /// Peers of which a node says this.
    fn peers(self, name: &'static str, node: &str) -> Vec<&'a str> {
        let facts = self.true_ones(name).filter(|fact| fact.node == node);
        facts.filter_map(|fact| fact.about.as_deref()).collect()
    }

    /// How many units nobody can use because nodes that do not answer are taken to use them, and
    /// which nodes: as whoever misses most sees it.
    pub(crate) fn lost(self) -> (u32, Vec<&'a str>) {
        let worst = self.true_ones("units_lost").max_by_key(|fact| fact.value);
        worst.map_or((0, Vec::new()), |worst| {
            let units = u32::try_from(worst.value).unwrap_or(u32::MAX);
            (units.min(self.units), self.peers("silent", &worst.node))
        })
    }

    /// Why a node asks for nothing at the moment, if it says so.
    pub(crate) fn absence(self, node: &str) -> Option<String> {
        let awaited = self.peers("awaited", node);
        let is_joining = self.nodes("joining").contains(&node);
        (is_joining && !awaited.is_empty()).then(|| {
            let verb = if awaited.len() == 1 { "answers" } else { "answer" };
            let awaited = awaited.join(", ");
            format!("{node} is joining: it asks for nothing until {awaited} {verb}")
        })
    }

    /// Why, as a node sees it, it may be that nothing is granted to anybody.
    pub(crate) fn outage(self, node: &str) -> Option<&'static str> {
        let sees = self.nodes("too_many_crashed").contains(&node);
        sees.then_some("more nodes are away than crashes_max allows for")
    }

    /// All of it, a sentence each.
    pub(crate) fn troubles(self) -> Vec<String> {
        let joining = self.nodes("joining");
        let mut all: Vec<String> = joining.iter().filter_map(|node| self.absence(node)).collect();
        if let (lost @ 1.., silent) = self.lost() {
            let [seem, are, they_are] = match silent.len() {
                1 => ["seems", "is", "it is"],
                _ => ["seem", "are", "they are"],
            };
            // Where nobody is ever counted out nothing is told about it.
            let is_counted_out = self.facts.iter().any(|fact| fact.name == "counted_out");
            let until = if is_counted_out { "counted out" } else { "back" };
            let (silent, units) = (silent.join(", "), self.units);
            all.push(format!(
                "fewer units than configured: {silent} {seem} to have crashed and {are} taken to \
                 use {lost} of {units} until {they_are} {until}"
            ));
        }
        for (name, what) in [
            (
                "too_many_crashed",
                "more nodes are away than crashes_max allows for: they crashed, or the network \
                 is split",
            ),
            ("falsely_suspected", "taken for crashed while it runs"),
        ] {
            if let nodes @ [_, ..] = &self.nodes(name)[..] {
                all.push(format!("ALARM at {}: {what}", nodes.join(", ")));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `"n0 crashed n4 1"`: a node, a fact, the peer that it is about if any, a value.
    fn facts(lines: &[&str]) -> Vec<FactView> {
        let fact = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let about = (words.len() == 4).then(|| words[2].to_owned());
            FactView {
                node: words[0].into(),
                name: words[1].into(),
                about,
                value: words[words.len() - 1].parse().unwrap(),
                grows: false,
            }
        };
        lines.iter().map(fact).collect()
    }

    #[test]
    fn what_the_dead_cost_is_said_as_whoever_misses_most_sees_it() {
        let told = facts(&[
            "n0 units_lost 2",
            "n0 silent n4 1",
            "n1 units_lost 4",
            "n1 silent n3 1",
            "n1 silent n4 1",
            "n1 silent n2 0",
            "n1 too_many_crashed 0",
        ]);
        let told = Told::new(&told, 6);
        assert_eq!(told.lost(), (4, vec!["n3", "n4"]));
        let expected = "fewer units than configured: n3, n4 seem to have crashed and are taken to \
                        use 4 of 6 until they are back";
        assert_eq!(told.troubles(), [expected]);
        assert_eq!((told.absence("n1"), told.outage("n1")), (None, None));
    }

    #[test]
    fn a_node_that_joins_says_for_whom_it_waits() {
        let told = facts(&["n3 joining 1", "n3 awaited n4 1", "n3 awaited n0 0", "n2 joining 0"]);
        let told = Told::new(&told, 6);
        let expected = "n3 is joining: it asks for nothing until n4 answers";
        assert_eq!(told.absence("n3").as_deref(), Some(expected));
        assert_eq!(told.absence("n2"), None);
        assert_eq!(told.troubles(), [expected]);
    }

    #[test]
    fn alarms_name_the_nodes_that_raise_them() {
        let told = facts(&[
            "n0 too_many_crashed 1",
            "n1 too_many_crashed 1",
            "n2 too_many_crashed 0",
            "n2 falsely_suspected 1",
        ]);
        let told = Told::new(&told, 3);
        let expected = [
            "ALARM at n0, n1: more nodes are away than crashes_max allows for: they crashed, or \
             the network is split",
            "ALARM at n2: taken for crashed while it runs",
        ];
        assert_eq!(told.troubles(), expected);
        assert!(told.outage("n0").is_some() && told.outage("n2").is_none());
    }
}

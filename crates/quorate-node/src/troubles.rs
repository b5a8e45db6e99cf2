//! What is the matter with a pool, in words: from how its nodes say that they are
//! ([`quorate_core::Health`]).

use quorate_wire::survey::HealthLine;

/// How one node says that it is, with the names of others.
#[derive(Clone, Default, Debug)]
pub(crate) struct Told {
    node: String,
    /// If it does not take part yet: for whom it waits.
    joining: Option<Vec<String>>,
    silent: Vec<String>,
    units_lost: u32,
    /// If units are missing that are made anew: whether whoever had them must stop first.
    remade_later: Option<bool>,
    /// Who is not counted any more, where that can be.
    counted_out: Option<Vec<String>>,
    falsely_suspected: bool,
    too_many_crashed: bool,
}

impl Told {
    /// `name` is nothing for a node that does not exist.
    pub(crate) fn new(
        node: String,
        health: &HealthLine,
        name: impl Fn(u32) -> Option<String>,
    ) -> Self {
        let names = |nodes: &[u32]| nodes.iter().filter_map(|node| name(*node)).collect();
        Told {
            node,
            joining: health.joining.as_deref().map(names),
            silent: names(&health.silent),
            units_lost: health.units_lost,
            remade_later: health.remade_later,
            counted_out: health.counted_out.as_deref().map(names),
            falsely_suspected: health.falsely_suspected,
            too_many_crashed: health.too_many_crashed,
        }
    }
}

/// What the nodes of one pool tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Troubles<'a> {
    told: &'a [Told],
    units: u32,
}

impl<'a> Troubles<'a> {
    pub(crate) fn new(told: &'a [Told], units: u32) -> Self {
        Troubles { told, units }
    }

    fn of(self, node: &str) -> Option<&'a Told> {
        self.told.iter().find(|told| told.node == node)
    }

    /// How many units nobody can use because nodes that do not answer are taken to use them, and
    /// which nodes: as whoever misses most sees it.
    pub(crate) fn lost(self) -> (u32, &'a [String]) {
        let worst = self.worst();
        worst.map_or((0, &[]), |worst| (worst.units_lost.min(self.units), &worst.silent))
    }

    fn worst(self) -> Option<&'a Told> {
        let some = self.told.iter().filter(|told| told.units_lost > 0);
        some.max_by_key(|told| told.units_lost)
    }

    /// What a node counts that makes missing units anew.
    fn counted(self, told: &Told, later: bool) -> String {
        let without = match told.counted_out.as_deref().unwrap_or_default() {
            [] => String::new(),
            nodes => format!(" without {}", nodes.join(", ")),
        };
        let later = match later {
            true => "once whoever had them must have stopped",
            false => "by the next counts",
        };
        let (node, units) = (&told.node, self.units);
        let counted = units.saturating_sub(told.units_lost);
        format!(
            "fewer units than configured: {node} counted {counted} of {units}{without}; the rest \
             is made anew {later}"
        )
    }

    /// Why a node asks for nothing at the moment, if it says so.
    pub(crate) fn absence(self, node: &str) -> Option<String> {
        let awaited = self.of(node)?.joining.as_ref().filter(|awaited| !awaited.is_empty())?;
        let verb = if awaited.len() == 1 { "answers" } else { "answer" };
        let awaited = awaited.join(", ");
        Some(format!("{node} is joining: it asks for nothing until {awaited} {verb}"))
    }

    /// Why, as a node sees it, it may be that nothing is granted to anybody.
    pub(crate) fn outage(self, node: &str) -> Option<&'static str> {
        let sees = self.of(node).is_some_and(|told| told.too_many_crashed);
        sees.then_some("more nodes are away than crashes_max allows for")
    }

    /// All of it, a sentence each.
    pub(crate) fn sentences(self) -> Vec<String> {
        let mut all: Vec<String> =
            self.told.iter().filter_map(|told| self.absence(&told.node)).collect();
        let remade = self.worst().and_then(|worst| Some((worst, worst.remade_later?)));
        if let Some((worst, later)) = remade {
            all.push(self.counted(worst, later));
        } else if let (lost @ 1.., silent) = self.lost() {
            let [seem, are, they_are] = match silent.len() {
                1 => ["seems", "is", "it is"],
                _ => ["seem", "are", "they are"],
            };
            let counts_out = self.told.iter().any(|told| told.counted_out.is_some());
            let until = if counts_out { "counted out" } else { "back" };
            let (silent, units) = (silent.join(", "), self.units);
            all.push(format!(
                "fewer units than configured: {silent} {seem} to have crashed and {are} taken to \
                 use {lost} of {units} until {they_are} {until}"
            ));
        }
        let mut alarm = |is_so: fn(&Told) -> bool, what: &str| {
            let nodes = self.told.iter().filter(|told| is_so(told));
            if let nodes @ [_, ..] = &nodes.map(|told| told.node.as_str()).collect::<Vec<_>>()[..] {
                all.push(format!("ALARM at {}: {what}", nodes.join(", ")));
            }
        };
        alarm(
            |told| told.too_many_crashed,
            "more nodes are away than crashes_max allows for: they crashed, or the network is \
             split",
        );
        alarm(|told| told.falsely_suspected, "taken for crashed while it runs");
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(node: u32, health: HealthLine) -> Told {
        let name = |node: u32| format!("n{node}");
        Told::new(name(node), &health, |node| (node < 9).then(|| name(node)))
    }

    #[test]
    fn what_the_dead_cost_is_said_as_whoever_misses_most_sees_it() {
        let some = HealthLine { units_lost: 2, silent: vec![4], ..HealthLine::default() };
        let more = HealthLine { units_lost: 4, silent: vec![3, 4, 99], ..HealthLine::default() };
        let told = [told(0, some), told(1, more)];
        let troubles = Troubles::new(&told, 6);
        assert_eq!(troubles.lost(), (4, &["n3".to_owned(), "n4".to_owned()][..]));
        let expected = "fewer units than configured: n3, n4 seem to have crashed and are taken to \
                        use 4 of 6 until they are back";
        assert_eq!(troubles.sentences(), [expected]);
        assert_eq!((troubles.absence("n1"), troubles.outage("n1")), (None, None));
    }

    #[test]
    fn units_that_are_made_anew_are_missing_as_their_node_counts() {
        let counts = |later| HealthLine {
            units_lost: 2,
            remade_later: Some(later),
            counted_out: Some(vec![3]),
            ..HealthLine::default()
        };
        let told = [told(1, HealthLine::default()), told(0, counts(true))];
        let troubles = Troubles::new(&told, 6);
        let expected = "fewer units than configured: n0 counted 4 of 6 without n3; the rest is \
                        made anew once whoever had them must have stopped";
        assert_eq!(troubles.sentences(), [expected]);
        assert_eq!(troubles.lost().0, 2);
    }

    #[test]
    fn a_node_that_joins_says_for_whom_it_waits() {
        let joining = |nodes| HealthLine { joining: Some(nodes), ..HealthLine::default() };
        let told = [told(3, joining(vec![4])), told(2, joining(vec![]))];
        let troubles = Troubles::new(&told, 6);
        let expected = "n3 is joining: it asks for nothing until n4 answers";
        assert_eq!(troubles.absence("n3").as_deref(), Some(expected));
        assert_eq!(troubles.absence("n2"), None);
        assert_eq!(troubles.sentences(), [expected]);
    }

    #[test]
    fn alarms_name_the_nodes_that_raise_them() {
        let many = || HealthLine { too_many_crashed: true, ..HealthLine::default() };
        let falsely = HealthLine { falsely_suspected: true, ..HealthLine::default() };
        let told = [told(0, many()), told(1, many()), told(2, falsely)];
        let troubles = Troubles::new(&told, 3);
        let expected = [
            "ALARM at n0, n1: more nodes are away than crashes_max allows for: they crashed, or \
             the network is split",
            "ALARM at n2: taken for crashed while it runs",
        ];
        assert_eq!(troubles.sentences(), expected);
        assert!(troubles.outage("n0").is_some() && troubles.outage("n2").is_none());
    }
}

//! The same search, for worlds that say themselves what can happen in them.
//!
//! What [`crate::check`] explores has clients that outlive their nodes and nodes that come back. A
//! paper may suppose something else: that a process is its client, that answers are held back, that
//! every node has a clock of its own. Such a world says with [`Rules`] what happens in it and what
//! must hold; its states are words, numbers of what it keeps on a [`crate::Shelf`]. They are
//! compared exactly, kept in little memory, and what is found is found by a shortest way.

use crate::atlas::Atlas;

/// What can happen in a world, and what must hold there.
pub trait Rules {
    /// One thing that can happen.
    type Happening: Copy;

    /// The first state. All states have as many words.
    fn first(&mut self) -> Vec<u32>;

    /// Everything that can happen in a state.
    fn happenings(&mut self, state: &[u32]) -> Vec<Self::Happening>;

    /// The state after something happened.
    ///
    /// # Errors
    /// What was wrong with that.
    fn after(&mut self, state: &[u32], happening: Self::Happening) -> Result<Vec<u32>, String>;

    /// What is wrong with a state that was found, if so.
    fn judge(&mut self, state: &[u32]) -> Option<String>;

    /// What is wrong with a state in which nothing can happen.
    fn judge_end(&mut self, _state: &[u32]) -> Option<String> {
        None
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Walk<H> {
    /// Distinct states.
    pub states: usize,
    /// What is wrong, and the shortest way there.
    pub wrong: Option<(String, Vec<H>)>,
}

/// Explores everything, until something is wrong.
pub fn walk<R: Rules>(rules: &mut R) -> Walk<R::Happening> {
    let first = rules.first();
    let mut atlas = Atlas::new(first.len());
    atlas.find_or_add(&first);
    let (mut words, mut number) = (Vec::new(), 0);
    while number < atlas.len() {
        atlas.go_to(number, &mut words);
        let happenings = rules.happenings(&words);
        let end = if happenings.is_empty() { rules.judge_end(&words) } else { None };
        let mut wrong = end.map(|what| (what, None));
        for happening in happenings {
            let known = atlas.len();
            let judged = rules.after(&words, happening).map(|next| {
                let is_new = atlas.find_or_add(&next) == known;
                if is_new { rules.judge(&next) } else { None }
            });
            if let Some(what) = judged.unwrap_or_else(Some) {
                wrong = Some((what, Some(happening)));
                break;
            }
        }
        if let Some((what, last)) = wrong {
            let mut way = way_to(rules, &atlas, number);
            way.extend(last);
            return Walk { states: atlas.len(), wrong: Some((what, way)) };
        }
        atlas.leave();
        number += 1;
    }
    Walk { states: atlas.len(), wrong: None }
}

/// A shortest way to a state.
fn way_to<R: Rules>(rules: &mut R, atlas: &Atlas, number: usize) -> Vec<R::Happening> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let (mut way, mut child) = (Vec::new(), number);
    while child != 0 {
        let parent = atlas.parent(child);
        atlas.read(parent, &mut from);
        atlas.read(child, &mut to);
        let mut all = rules.happenings(&from).into_iter();
        let leads =
            |&happening: &R::Happening| rules.after(&from, happening).is_ok_and(|next| next == to);
        way.push(all.find(leads).expect("a child was reached from its parent"));
        child = parent;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that goes one up or doubles, and must not be 10; at 7 it stops.
    struct Counter;

    impl Rules for Counter {
        type Happening = bool;

        fn first(&mut self) -> Vec<u32> {
            vec![1]
        }

        fn happenings(&mut self, state: &[u32]) -> Vec<bool> {
            if state[0] < 7 { vec![false, true] } else { Vec::new() }
        }

        fn after(&mut self, state: &[u32], doubles: bool) -> Result<Vec<u32>, String> {
            let next = if doubles { 2 * state[0] } else { state[0] + 1 };
            if next == 12 { Err("a dozen".into()) } else { Ok(vec![next]) }
        }

        fn judge(&mut self, state: &[u32]) -> Option<String> {
            (state[0] == 10).then(|| "ten".into())
        }
    }

    #[test]
    fn what_is_wrong_is_found_by_a_shortest_way() {
        let walk = walk(&mut Counter);
        // 1, 2, 3, 4, 6, 5, 8, and 12 is reached from 6 before 10 is from 5.
        assert_eq!(
            (walk.states, walk.wrong),
            (8, Some(("a dozen".into(), vec![false, false, true, true])))
        );
    }
}

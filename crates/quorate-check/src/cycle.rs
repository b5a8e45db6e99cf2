//! Histories that never end: a state that comes back without a fault.
//!
//! "No deadlock" asks whether a claim *can* still be granted; participants that give the same units
//! back and forth for ever always can. If a protocol repeats nothing by itself, every history must
//! end (arbiter spec 7.7), so its states form no cycle.

use quorate_core::Explorable;
use quorate_laws::Breach;

use crate::search::Search;

impl<P: Explorable> Search<'_, P> {
    /// The first state that some history without a fault comes back to, among those explored.
    pub(crate) fn cycle(&self) -> Option<(usize, Breach)> {
        let count = self.atlas.left();
        // How many ways out of each state lead to states from which not every history ends.
        let mut open: Vec<u32> = Vec::with_capacity(count);
        let mut starts: Vec<u32> = vec![0; count + 1];
        for number in 0..count {
            let ways = || self.ways(number);
            open.push(ways().count() as u32);
            ways().for_each(|next| starts[next + 1] += 1);
        }
        for number in 0..count {
            starts[number + 1] += starts[number];
        }
        let mut places = starts.clone();
        let mut comes_from: Vec<u32> = vec![0; starts[count] as usize];
        for number in 0..count {
            for next in self.ways(number) {
                let place = &mut places[next];
                comes_from[*place as usize] = number as u32;
                *place += 1;
            }
        }
        let mut ended: Vec<usize> = (0..count).filter(|&number| open[number] == 0).collect();
        while let Some(number) = ended.pop() {
            let before = starts[number] as usize..starts[number + 1] as usize;
            for &from in &comes_from[before] {
                open[from as usize] -= 1;
                if open[from as usize] == 0 {
                    ended.push(from as usize);
                }
            }
        }
        let first = (0..count).find(|&number| open[number] > 0)?;
        // Going on among such states must come back somewhere.
        let (mut path, mut place) = (vec![first], vec![None; count]);
        loop {
            let here = path[path.len() - 1];
            if let Some(before) = place[here].replace(path.len()) {
                let length = path.len() - before;
                let what = format!("{length} actions without a fault lead from here back to here");
                return Some((here, Breach { law: "no livelock", what }));
            }
            let next = self.ways(here).find(|&next| open[next] > 0);
            path.push(next.expect("not every history ends here"));
        }
    }

    /// Where a state leads, as far as that was explored too.
    fn ways(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let ways = self.atlas.leads_to(number);
        ways.filter(|&next| next < self.atlas.left())
    }
}

//! Units with the same labels, together: how many are held, and how many claims could use them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_api::{HolderView, KindView, Line, WaiterView};
use quorate_core::Unit;

use crate::config::PoolDef;
use crate::views::Picture;

/// Most kinds in a list.
const KINDS_MAX: usize = 256;

/// What there is of each kind, and how many kinds are left out. Where units are alike, those who
/// wait and are in no list want them too; where they differ, nobody knows what those want.
pub(crate) fn of(
    def: &PoolDef,
    picture: &Picture,
    holders: &[HolderView],
    waiting: &[WaiterView],
    unlisted: u64,
) -> (Vec<KindView>, u64) {
    let held = holders.iter().flat_map(|holder| holder.units.iter().map(|unit| unit.unit));
    let Some(labels) = picture.labels() else {
        let held =
            def.promises.names_units.then(|| u32::try_from(held.count()).unwrap_or(u32::MAX));
        let wanted = (waiting.len() as u64).saturating_add(unlisted);
        return (vec![KindView { units: def.units, held, wanted, ..KindView::default() }], 0);
    };
    let labels = |unit: u32| labels.of(Unit(unit)).cloned().unwrap_or_default();
    let kinds = group((0..def.units).map(labels), &held.collect());
    let left_out = kinds.len().saturating_sub(KINDS_MAX) as u64;
    let wanted = |kind| KindView { wanted: wanted(&kind, waiting), ..kind };
    (kinds.into_iter().take(KINDS_MAX).map(wanted).collect(), left_out)
}

/// Kinds in the order of their first units.
fn group(
    labels: impl Iterator<Item = BTreeMap<String, String>>,
    held: &BTreeSet<u32>,
) -> Vec<KindView> {
    let mut places: BTreeMap<BTreeMap<String, String>, usize> = BTreeMap::new();
    let mut kinds: Vec<KindView> = Vec::new();
    for (labels, unit) in labels.zip(0..) {
        let place = *places.entry(labels.clone()).or_insert(kinds.len());
        if place == kinds.len() {
            kinds.push(KindView { labels, held: Some(0), ..KindView::default() });
        }
        kinds[place].units += 1;
        kinds[place].held = kinds[place].held.map(|sum| sum + u32::from(held.contains(&unit)));
    }
    kinds
}

/// Claims that could use some units of a kind: one that asks for no labels can use any.
fn wanted(kind: &KindView, waiting: &[WaiterView]) -> u64 {
    let will_do =
        |line: &Line| line.labels.iter().all(|(key, value)| kind.labels.get(key) == Some(value));
    let wants = |claim: &&WaiterView| claim.lines.is_empty() || claim.lines.iter().any(will_do);
    waiting.iter().filter(wants).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(words: &[(&str, &str)]) -> BTreeMap<String, String> {
        words.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn waiter(lines: &[&[(&str, &str)]]) -> WaiterView {
        WaiterView {
            id: "1".parse().expect("a claim"),
            position: None,
            count: 1,
            lines: lines.iter().map(|words| Line { labels: labels(words), units: 1 }).collect(),
            node: String::new(),
            client: String::new(),
            reason: String::new(),
            waiting_ms: None,
        }
    }

    #[test]
    fn every_claim_that_waits_is_counted_for_the_kinds_it_could_use() {
        let (eu, us) = (&[("gpu", "h100"), ("zone", "eu")], &[("gpu", "h100"), ("zone", "us")]);
        let units = [labels(eu), labels(us), labels(eu), labels(&[("gpu", "a100")])];
        let kinds = group(units.into_iter(), &[0, 3].into());
        let counts: Vec<_> = kinds.iter().map(|kind| (kind.units, kind.held)).collect();
        assert_eq!(counts, [(2, Some(1)), (1, Some(0)), (1, Some(1))]);
        // Far more than a page shows: 130 want any h100, one a place in the EU, one anything.
        let mut waiting = vec![waiter(&[&[("gpu", "h100")]]); 130];
        waiting.extend([waiter(&[&[("zone", "eu")]]), waiter(&[])]);
        let wanted: Vec<u64> = kinds.iter().map(|kind| wanted(kind, &waiting)).collect();
        assert_eq!(wanted, [132, 131, 1]);
    }
}

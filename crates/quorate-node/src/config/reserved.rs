//! Units that are not for everybody: the paper's alpha, as the configuration says it.

use std::sync::Arc;

use quorate_core::{NodeId, Unit};
use quorate_protocols::allocator::labels::{Labels, Selector};

use super::low;

/// Units that only some may use, chosen by the labels of the configuration: who may use a unit does
/// not change when its labels do. A unit of which several of these speak is for whoever any of them
/// lets in; one of which none speaks is for everybody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reserved {
    /// Which units, ascending.
    pub units: Vec<Unit>,
    /// The members whose clients may use them; `None` means any.
    pub members: Option<Vec<NodeId>>,
    /// The clients that may use them, by what they call themselves; `None` means any.
    pub clients: Option<Vec<Pattern>>,
}

/// A name, or all names that begin and end like this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        match self.0.split_once('*') {
            None => self.0 == name,
            Some((prefix, suffix)) => {
                name.len() >= prefix.len() + suffix.len()
                    && name.starts_with(prefix)
                    && name.ends_with(suffix)
            }
        }
    }
}

impl Reserved {
    pub(super) fn read(
        low: low::Reserved,
        labels: &Labels,
        members: &[String],
    ) -> Result<Reserved, String> {
        let low::Reserved { labels: wanted, units: names, members: homes, clients } = low;
        if wanted.is_empty() == names.is_empty() {
            return Err("reserved: say which units, by either where or units".into());
        }
        if homes.is_none() && clients.is_none() {
            return Err("reserved: say for whom, by members or clients or both".into());
        }
        let units = match names.is_empty() {
            true => labels.select(&Selector::from(wanted)).to_vec(),
            false => {
                let unit = |name: &String| {
                    let all = 0..labels.len() as u32;
                    let found = all.map(Unit).find(|unit| labels.name(*unit) == Some(name));
                    found.ok_or_else(|| format!("reserved: no unit is named {name:?}"))
                };
                let mut units = names.iter().map(unit).collect::<Result<Vec<_>, _>>()?;
                units.sort_unstable();
                units.dedup();
                units
            }
        };
        if units.is_empty() {
            return Err("reserved: no unit has these labels".into());
        }
        let member = |name: &String| {
            let place = members.iter().position(|member| member == name);
            place
                .map(NodeId::from)
                .ok_or_else(|| format!("reserved: {name:?} is not a member: choose of {members:?}"))
        };
        let members = homes.map(|homes| homes.iter().map(member).collect()).transpose()?;
        let clients = clients.map(|names| names.into_iter().map(Pattern).collect());
        Ok(Reserved { units, members, clients })
    }

    /// Whether clients of a member may use them; `client` is what one calls itself, if that counts.
    fn lets_in(&self, member: NodeId, client: Option<&str>) -> bool {
        let home = self.members.as_ref().is_none_or(|members| members.contains(&member));
        let named = match (&self.clients, client) {
            (Some(clients), Some(client)) => clients.iter().any(|name| name.matches(client)),
            _ => true,
        };
        home && named
    }
}

/// The units that a client of a member may use, ascending; `None` if that is all.
pub(crate) fn allowed(
    reserved: &[Reserved],
    units: u32,
    member: NodeId,
    client: Option<&str>,
) -> Option<Arc<[Unit]>> {
    let may_use = |unit: &Unit| {
        let mut about = reserved.iter().filter(|rule| rule.units.binary_search(unit).is_ok());
        about.clone().next().is_none() || about.any(|rule| rule.lets_in(member, client))
    };
    if reserved.is_empty() {
        return None;
    }
    let allowed: Arc<[Unit]> = (0..units).map(Unit).filter(may_use).collect();
    (allowed.len() < units as usize).then_some(allowed)
}

//! `central`: one node decides.

use quorate_core::{NodeId, Protocol};
use quorate_protocols::central::{Central, Pool};

use super::{About, Books, Chosen, ProtocolDef, Read, Registered};
use crate::config::{Basis, Options};
use crate::seat::Runs;

pub(super) const CENTRAL: Registered = Registered {
    name: Central::NAME,
    options: &["arbiter", "durable", "fairness", "retry"],
    chooses: true,
    read,
};

impl Runs for Central {}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let pool = goods(basis, options)?;
    let text: String = options.take("arbiter")?.unwrap_or_else(|| "spread".into());
    let place = basis.members.iter().position(|name| *name == text);
    let arbiter = match place {
        _ if text == "spread" => Chosen::ByName,
        Some(place) => Chosen::Node(NodeId::from(place)),
        None => {
            let members = basis.members;
            return Err(format!(
                "arbiter {text:?} is not a member: choose one of {members:?} or \"spread\""
            ));
        }
    };
    let who = match arbiter {
        Chosen::ByName => "spread".to_owned(),
        Chosen::Node(node) => node.to_string(),
    };
    let about = About {
        canonical: format!("central {who} {}", agreed(&pool)),
        durable: pool.durable,
        reads_records: pool.durable,
        labels: pool.labels.clone(),
        relabels: true,
        books: Books::Decide(arbiter),
        ..About::default()
    };
    let made =
        move |name: &str, members| Pool { arbiter: arbiter.node(name, members), ..pool.clone() };
    Ok((ProtocolDef::made::<Central>(about, made), None))
}

/// What there is, for whom, and who may pass whom.
pub(super) fn goods(basis: &Basis<'_>, options: &mut Options) -> Result<Pool, String> {
    let mut pool = Pool::new(basis.units);
    pool.lease = basis.lease;
    pool.labels = basis.labels.clone();
    pool.eligible = basis.eligible();
    pool.fairness = options.fairness()?;
    pool.durable = options.take("durable")?.unwrap_or(false);
    pool.retry = options.span("retry")?.unwrap_or(pool.retry);
    Ok(pool)
}

/// The same, as every member must know it.
pub(super) fn agreed(pool: &Pool) -> String {
    let passes = pool.fairness.overtakes_max();
    let labels = pool.labels.as_ref().map(|labels| format!(" {labels:?}")).unwrap_or_default();
    format!("passes {passes} durable {}{labels}", pool.durable)
}

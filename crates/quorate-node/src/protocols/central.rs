//! `central`: one node decides.

use quorate_core::{NodeId, Obeys, Order, Outbox, Protocol, Relabelled, Seat, Unit};
use quorate_protocols::central::{Central, Pool};

use super::{About, Books, Chosen, ProtocolDef, Read, Registered, goods};
use crate::config::{Basis, Options};
use crate::seat::Runs;

pub(super) const CENTRAL: Registered = Registered {
    name: Central::NAME,
    options: &["arbiter", "durable", "fairness", "retry"],
    chooses: true,
    read,
};

impl Runs for Central {
    fn obey(&mut self, seat: &Seat<'_, Self>, order: Order, out: &mut Outbox<Self>) -> bool {
        Obeys::obey(self, seat, order, out)
    }

    fn drained(&self, show: &mut dyn FnMut(Unit, bool)) {
        Obeys::drained(self, show);
    }

    fn relabelled(&self) -> Option<Relabelled<'_>> {
        Obeys::relabelled(self)
    }
}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let pool = Pool::of(goods::read(basis, options)?);
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
        canonical: format!("central {who} {}", goods::agreed(&pool.goods)),
        durable: pool.goods.durable,
        reads_records: pool.goods.durable,
        labels: pool.goods.labels.clone(),
        relabels: true,
        books: Books::Decide(arbiter),
        awaits: "the node that decides to book it",
        ..About::default()
    };
    let made =
        move |name: &str, members| Pool { arbiter: arbiter.node(name, members), ..pool.clone() };
    Ok((ProtocolDef::made::<Central>(about, made), None))
}

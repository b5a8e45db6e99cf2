//! `central`: one node decides; which one, the pool says, or the charter from time to time.

use quorate_api::format_span;
use quorate_core::{NodeId, NodeSet, Obeys, Order, Outbox, Protocol, Relabelled, Seat, Unit};
use quorate_protocols::central::{Central, Pool, moving};
use quorate_wire::{DecodeError, Wire};

use super::{About, Books, Chosen, ProtocolDef, Read, Registered, goods};
use crate::config::{Basis, Chartered, Options};
use crate::seat::Runs;

pub(super) const CENTRAL: Registered = Registered {
    name: Central::NAME,
    options: &["arbiter", "durable", "fairness", "retry", "shadow"],
    chooses: true,
    no_standing: Some("its books are on one disk, or on none"),
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

    fn rest(&mut self) {
        Central::rest(self);
    }
}

/// Orders would be forgotten with the next move: they are refused. In pools of the charter that
/// says what is drained, and which labels units have.
impl Runs for moving::Moving {
    fn drained(&self, show: &mut dyn FnMut(Unit, bool)) {
        moving::Moving::drained(self, show);
    }

    /// The node asks for the licences of all its seats, and tells each as something happens to it:
    /// what is left to do is to remind a shadow.
    fn dozes(&self, alarm: &moving::Alarm) -> bool {
        matches!(alarm, moving::Alarm::Licence) && !self.awaits_its_shadow()
    }

    fn is_owed(&self) -> bool {
        self.awaits_its_shadow()
    }

    fn put(pool: &moving::Pool, message: &moving::Message, out: &mut Vec<u8>) {
        match pool.pinned {
            Some(_) => quorate_wire::put_pinned(message, out),
            None => Self::encode_message(message, out),
        }
    }

    fn take(pool: &moving::Pool, bytes: &[u8]) -> Result<moving::Message, DecodeError> {
        match pool.pinned {
            Some(_) => quorate_wire::take_pinned(bytes),
            None => Self::decode_message(bytes),
        }
    }

    fn rest(&mut self) {
        moving::Moving::rest(self);
    }

    fn grow(pool: &mut moving::Pool, members: usize) {
        pool.members = NodeSet::first(members);
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
    let shadow: Option<bool> = options.take("shadow")?;
    let who = match (arbiter, basis.charter) {
        // What is on a disk when the charter comes stays with the node that has it.
        (Chosen::ByName, Some(charter)) if !(charter.import && pool.goods.durable) => {
            return read_moving(basis, pool, charter, shadow.unwrap_or(true));
        }
        _ if shadow.is_some() => {
            return Err("shadow: only a seat that moves has one, and this one does not: leave it \
                        out, or leave out `arbiter` and switch the charter on"
                .into());
        }
        (Chosen::Node(node), _) => node.to_string(),
        (_, _) => "spread".to_owned(),
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

/// The charter says who decides, and who next.
fn read_moving(
    basis: &Basis<'_>,
    central: Pool,
    charter: Chartered,
    shadowed: bool,
) -> Result<Read, String> {
    if central.goods.durable {
        return Err(
            "durable: a seat that moves writes nothing down, and what it must know of the \
                    past the others tell it. Leave it out, or name the node that decides: \
                    arbiter = \"NAME\""
                .into(),
        );
    }
    charter.suits(&basis.lease)?;
    // What the charter itself names was never decided by a file.
    let pinned = charter.import && basis.past.is_none();
    if pinned && !shadowed {
        return Err("shadow: while `import = true` this pool is what it was without [charter], \
                    and gets a shadow when its seat moves: leave it out"
            .into());
    }
    let pause = format_span(charter.pause(&basis.lease));
    let again = match shadowed {
        true => format!(
            "{}, or after {pause} if it had no whole shadow",
            format_span(charter.suspect_after)
        ),
        false => pause,
    };
    let begins = if pinned { " once `quorate cluster import` is done" } else { "" };
    let unshadowed = if shadowed { "" } else { " unshadowed" };
    let about = About {
        canonical: match pinned {
            true => format!("central spread {}", goods::agreed(&central.goods)),
            false => format!("central by charter{unshadowed} {}", goods::agreed(&central.goods)),
        },
        pinned,
        shadowed,
        labels: central.goods.labels.clone(),
        seat_moves: true,
        // Where the charter says what the pool is, and may say it otherwise.
        relabels: basis.past.is_some(),
        books: Books::Decide(Chosen::ByCharter),
        awaits: "the node that decides to book it",
        terms: Some(format!(
            "its seat moves{begins}: when the node that decides crashes, another grants again \
             after {again}"
        )),
        ..About::default()
    };
    let made = move |name: &str, members| moving::Pool {
        licence: charter.licence,
        pinned: pinned.then(|| Chosen::ByName.node(name, members)),
        ..moving::Pool::new(central.clone(), members)
    };
    let def = ProtocolDef::made::<moving::Moving>(about, made);
    // What a file calls it.
    Ok((ProtocolDef { name: Central::NAME, ..def }, None))
}

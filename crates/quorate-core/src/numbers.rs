//! Numbers of which only the order matters, wherever they are.
//!
//! The model checker renames clocks and fences, so it must see every one of them. What a type has
//! in it is said once, by [`numbers!`](crate::numbers!), which names all fields of the type: one
//! that is forgotten does not compile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Claim, ClaimId, Clock, Fence, Holding, Line, Moment, Move, NodeId, NodeSet, Share, Shares,
    Stamp, Unit, Units, Wanted,
};

/// A number of which only the order matters.
#[derive(Debug)]
pub enum Number<'a> {
    /// A reading of a Lamport clock.
    Clock(&'a mut u64),
    /// A fence.
    Fence(&'a mut Fence),
}

/// Something that may have such numbers in it.
pub trait Numbers {
    /// Whether a value of this type never has any.
    const PLAIN: bool = false;

    /// Shows every clock and fence in it. Whoever sees one may replace it by another, if the order
    /// of all stays as it was.
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>));
}

/// Says which numbers a type of one's own has in it, by naming all its fields:
///
/// ```
/// use quorate_core::{Fence, Stamp, Unit, numbers};
///
/// struct Entry { stamp: Stamp, unit: Unit, told: u64, draw: u64 }
/// numbers!(Entry { stamp, unit, told: clock, draw: plain });
///
/// enum Word { Hello, Grant(Fence), Floor { base: u64, seen: Option<u64> } }
/// numbers!(enum Word { Hello, Grant(fence), Floor { base: fence, seen: clocks } });
/// ```
///
/// A field is shown to whoever implements [`Numbers`] for its type; a `u64` is said to be a clock
/// (`clocks` for several, or for one that may be missing), to count as fences do, or to be neither
/// (`plain`). Types without any number are listed: `numbers!(plain Color, Size);`. Generic
/// parameters come first, in brackets: `numbers!([T: Numbers] Pair<T> { a, b });`.
#[macro_export]
macro_rules! numbers {
    (plain $($type:ty),+ $(,)?) => {$(
        impl $crate::Numbers for $type {
            const PLAIN: bool = true;

            fn numbers(&mut self, _: &mut dyn FnMut($crate::Number<'_>)) {}
        }
    )+};
    (enum $type:ty { $($arms:tt)* }) => { $crate::numbers!([] enum $type { $($arms)* }); };
    ([$($generics:tt)*] enum $type:ty {
        $($arm:ident
            $({ $($field:ident $(: $how:ident)?),* $(,)? })?
            $(( $($part:ident $(: $part_how:ident)?),* $(,)? ))?
        ),* $(,)?
    }) => {
        impl<$($generics)*> $crate::Numbers for $type {
            fn numbers(&mut self, see: &mut dyn FnMut($crate::Number<'_>)) {
                match self {
                    $(Self::$arm $({ $($field),* })? $(( $($part),* ))? => {
                        $($($crate::numbers!(@see see $field $($how)?);)*)?
                        $($($crate::numbers!(@see see $part $($part_how)?);)*)?
                    })*
                }
                let _ = see;
            }
        }
    };
    (@see $see:ident $field:ident) => { $crate::Numbers::numbers($field, $see) };
    (@see $see:ident $field:ident clock) => { $see($crate::Number::Clock($field)) };
    (@see $see:ident $field:ident clocks) => {
        $field.iter_mut().for_each(|clock| $see($crate::Number::Clock(clock)))
    };
    (@see $see:ident $field:ident fence) => {{
        let mut fence = $crate::Fence(*$field);
        $see($crate::Number::Fence(&mut fence));
        *$field = fence.0;
    }};
    (@see $see:ident $field:ident plain) => {{ let _ = $field; }};
    ([$($generics:tt)*] $type:ty {
        $($(#[$attribute:meta])* $field:ident $(: $how:ident)?),* $(,)?
    }) => {
        impl<$($generics)*> $crate::Numbers for $type {
            fn numbers(&mut self, see: &mut dyn FnMut($crate::Number<'_>)) {
                let Self { $($(#[$attribute])* $field),* } = self;
                $($(#[$attribute])* { $crate::numbers!(@see see $field $($how)?); })*
                let _ = see;
            }
        }
    };
    ($type:ty { $($fields:tt)* }) => { $crate::numbers!([] $type { $($fields)* }); };
}

numbers!(plain(), bool, u8, u32, usize, String, Duration, Infallible);
numbers!(plain Claim, ClaimId, Line, Moment, NodeId, NodeSet, Unit, Units, Wanted);
numbers!(Stamp { clock: clock, node });
numbers!(Share { unit, fence });
numbers!(Move { from, to });
numbers!(Holding { shares, moves });

impl Numbers for Clock {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        see(Number::Clock(&mut self.0));
    }
}

impl Numbers for Fence {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        see(Number::Fence(self));
    }
}

impl Numbers for Shares {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        *self = self.map_fences(|mut fence| {
            see(Number::Fence(&mut fence));
            fence
        });
    }
}

impl<T: Numbers> Numbers for Option<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.iter_mut().for_each(|it| it.numbers(see));
    }
}

impl<T: Numbers + ?Sized> Numbers for Box<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        (**self).numbers(see);
    }
}

impl<T: Numbers> Numbers for [T] {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.iter_mut().for_each(|it| it.numbers(see));
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.iter_mut().for_each(|it| it.numbers(see));
    }
}

impl<T: Numbers> Numbers for VecDeque<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.iter_mut().for_each(|it| it.numbers(see));
    }
}

/// What is shared is copied, if it has numbers at all.
impl<T: Numbers + Clone> Numbers for Arc<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        if !T::PLAIN {
            Arc::make_mut(self).numbers(see);
        }
    }
}

impl<T: Numbers + Clone> Numbers for Arc<[T]> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        if !T::PLAIN {
            Arc::make_mut(self).numbers(see);
        }
    }
}

impl<T: Numbers + Ord> Numbers for BTreeSet<T> {
    const PLAIN: bool = T::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        if !T::PLAIN {
            let seen = |mut it: T| {
                it.numbers(see);
                it
            };
            *self = std::mem::take(self).into_iter().map(seen).collect();
        }
    }
}

impl<K: Numbers + Ord, V: Numbers> Numbers for BTreeMap<K, V> {
    const PLAIN: bool = K::PLAIN && V::PLAIN;

    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        if !K::PLAIN {
            let seen = |(mut key, value): (K, V)| {
                key.numbers(see);
                (key, value)
            };
            *self = std::mem::take(self).into_iter().map(seen).collect();
        }
        if !V::PLAIN {
            self.values_mut().for_each(|value| value.numbers(see));
        }
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {$(
        impl<$($name: Numbers),+> Numbers for ($($name,)+) {
            const PLAIN: bool = $($name::PLAIN)&&+;

            fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
                #[allow(non_snake_case, reason = "a value is called as its type")]
                let ($($name,)+) = self;
                $($name.numbers(see);)+
            }
        }
    )+};
}

tuples!(A B; A B C; A B C D;);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_seen_and_what_has_no_numbers_is_left_shared() {
        let names: Arc<[Unit]> = Arc::new([Unit(3)]);
        let mut seen = (
            BTreeMap::from([((Clock(7), ClaimId::default()), Some(Fence(5)))]),
            vec![Arc::clone(&names)],
            BTreeSet::from([Clock(8), Clock(9)]),
        );
        let mut count = 0;
        seen.numbers(&mut |number| {
            count += 1;
            match number {
                Number::Clock(clock) => *clock -= 7,
                Number::Fence(fence) => fence.0 = 0,
            }
        });
        assert_eq!(count, 4);
        assert_eq!(seen.0, BTreeMap::from([((Clock(0), ClaimId::default()), Some(Fence(0)))]));
        assert_eq!(seen.2, BTreeSet::from([Clock(1), Clock(2)]));
        assert!(Arc::ptr_eq(&names, &seen.1[0]));
    }
}

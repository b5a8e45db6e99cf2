//! Who takes up how many places, where one alone must not take them all.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places that are taken, by whom. Clones share them.
#[derive(Debug)]
pub(crate) struct Crowd<K: Ord>(Arc<Mutex<Inside<K>>>);

#[derive(Debug)]
struct Inside<K> {
    all: usize,
    each: BTreeMap<K, usize>,
}

/// How many places there are, in all and for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    pub(crate) all: usize,
    pub(crate) each: usize,
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// Everybody together has taken all of them.
    All,
    /// This one has taken all that it may.
    Each,
}

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Ord> {
    crowd: Crowd<K>,
    who: K,
}

impl<K: Ord> Default for Crowd<K> {
    fn default() -> Self {
        Crowd(Arc::new(Mutex::new(Inside { all: 0, each: BTreeMap::new() })))
    }
}

impl<K: Ord> Clone for Crowd<K> {
    fn clone(&self) -> Self {
        Crowd(Arc::clone(&self.0))
    }
}

impl<K: Ord + Clone> Crowd<K> {
    /// Takes a place.
    ///
    /// # Errors
    /// There is none; nothing changed.
    pub(crate) fn enter(&self, who: &K, room: Room) -> Result<Place<K>, Full> {
        let mut inside = self.inside();
        let own = inside.each.get(who).copied().unwrap_or(0);
        if own >= room.each {
            return Err(Full::Each);
        }
        if inside.all >= room.all {
            return Err(Full::All);
        }
        inside.all += 1;
        inside.each.insert(who.clone(), own + 1);
        drop(inside);
        Ok(Place { crowd: self.clone(), who: who.clone() })
    }
}

impl<K: Ord> Crowd<K> {
    fn inside(&self) -> MutexGuard<'_, Inside<K>> {
        // Nobody panics in the middle of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord> Drop for Place<K> {
    fn drop(&mut self) {
        let mut inside = self.crowd.inside();
        inside.all -= 1;
        if let Some(own) = inside.each.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                inside.each.remove(&self.who);
            }
        }
    }
}

/// Whom an address stands for: of IPv6, everybody has 2^64 of them.
pub(crate) fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// A connection's place among those of whoever has shown a token or a certificate on it.
#[derive(Debug)]
pub(crate) struct Seat {
    callers: Crowd<String>,
    room: Room,
    taken: Mutex<Option<Place<String>>>,
}

impl Seat {
    /// For a connection, on which nobody has shown anything yet.
    pub(crate) fn new(callers: Crowd<String>, each: usize) -> Seat {
        Seat { callers, room: Room { all: usize::MAX, each }, taken: Mutex::default() }
    }

    /// It is this caller's from now on.
    ///
    /// # Errors
    /// It has too many already; nothing changed.
    pub(crate) fn take(&self, who: &str) -> Result<(), Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.as_ref().is_none_or(|place| place.who != who) {
            *taken = Some(self.callers.enter(&who.to_owned(), self.room)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_places_and_whoever_leaves_makes_room() {
        let crowd = Crowd::default();
        let enter = |who: &str| crowd.enter(&who.to_owned(), Room { all: 3, each: 2 });
        let mut places = vec![enter("a").unwrap(), enter("a").unwrap()];
        assert_eq!(enter("a").unwrap_err(), Full::Each);
        places.push(enter("b").unwrap());
        assert_eq!(enter("c").unwrap_err(), Full::All);
        places.remove(0);
        assert_eq!(enter("a").map(drop), Ok(()));
        drop(places);
        let inside = crowd.inside();
        assert_eq!((inside.all, inside.each.len()), (0, 0), "nothing is left behind");
    }

    #[test]
    fn a_connection_is_counted_once_for_whom_it_is() {
        let callers = Crowd::default();
        let seats = [(); 3].map(|()| Seat::new(callers.clone(), 2));
        for _ in 0..5 {
            assert_eq!(seats[0].take("a"), Ok(()));
            assert_eq!(seats[1].take("a"), Ok(()));
        }
        assert_eq!(seats[2].take("a"), Err(Full::Each));
        assert_eq!(seats[2].take("b"), Ok(()));
        assert_eq!(seats[0].take("b"), Ok(()), "it is another's now");
        assert_eq!(seats[2].take("a"), Ok(()), "so there is room");
    }

    #[test]
    fn neighbours_of_the_new_kind_are_one_party() {
        let party = |text: &str| party(text.parse().unwrap()).to_string();
        assert_eq!(party("10.0.0.7"), "10.0.0.7");
        assert_eq!(party("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(party("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}

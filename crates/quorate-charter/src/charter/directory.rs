//! Many things by name, of which a copy costs next to nothing.
//!
//! Whoever looks at a document keeps what it looks at, and the next entry makes another document.
//! With a hundred thousand pools in it, that must cost what the entry changes. So the names are in
//! pages, in order, and two documents share all pages in which they do not differ. By that it is
//! also known in which they do ([`Directory::changes`]).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A page with more lines than this becomes two.
const PAGE_MAX: usize = 64;

type Line<V> = Arc<(String, V)>;

/// See the module.
#[derive(Clone)]
pub struct Directory<V> {
    /// None is empty; the names of each come before all names of the next.
    pages: Vec<Arc<Vec<Line<V>>>>,
    len: usize,
}

/// A name under which there is something else than there was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Differs<'a, V> {
    /// The name.
    pub name: &'a str,
    /// What there was.
    pub was: Option<&'a V>,
    /// What there is.
    pub is: Option<&'a V>,
}

impl<V> Default for Directory<V> {
    fn default() -> Self {
        Directory { pages: Vec::new(), len: 0 }
    }
}

impl<V> Directory<V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is there under this name.
    pub fn get(&self, name: &str) -> Option<&V> {
        let page = self.pages.get(self.page(name))?;
        let line = page.binary_search_by(|line| line.0.as_str().cmp(name)).ok()?;
        Some(&page[line].1)
    }

    /// Whether there is anything under this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All of it, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.pages.iter().flat_map(|page| page.iter()).map(|line| (line.0.as_str(), &line.1))
    }

    /// The same from the first name after this one.
    pub fn after<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a V)> {
        let pages = self.pages.get(self.page(name)..).unwrap_or_default();
        let lines = pages.iter().flat_map(|page| page.iter());
        let later = lines.skip_while(move |line| line.0.as_str() <= name);
        later.map(|line| (line.0.as_str(), &line.1))
    }

    /// What is there, in the order of names.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The page on which a name is, if it is anywhere.
    fn page(&self, name: &str) -> usize {
        let begins_by = |page: &Arc<Vec<Line<V>>>| page[0].0.as_str() <= name;
        self.pages.partition_point(begins_by).saturating_sub(1)
    }

    /// Puts something under this name.
    pub fn insert(&mut self, name: String, value: V) {
        let number = self.page(&name);
        let Some(page) = self.pages.get_mut(number) else {
            self.pages.push(Arc::new(vec![Arc::new((name, value))]));
            self.len = 1;
            return;
        };
        let lines = Arc::make_mut(page);
        match lines.binary_search_by(|line| line.0.cmp(&name)) {
            Ok(place) => lines[place] = Arc::new((name, value)),
            Err(place) => {
                lines.insert(place, Arc::new((name, value)));
                self.len += 1;
            }
        }
        if lines.len() > PAGE_MAX {
            // Names that come in order leave full pages behind them.
            let is_last = number + 1 == self.pages.len();
            let keep = if is_last { PAGE_MAX } else { PAGE_MAX / 2 };
            let rest = Arc::make_mut(&mut self.pages[number]).split_off(keep);
            self.pages.insert(number + 1, Arc::new(rest));
        }
    }

    /// Takes away whatever is under this name. Says whether there was anything.
    pub fn remove(&mut self, name: &str) -> bool {
        let number = self.page(name);
        let Some(page) = self.pages.get_mut(number) else { return false };
        let Ok(place) = page.binary_search_by(|line| line.0.as_str().cmp(name)) else {
            return false;
        };
        Arc::make_mut(page).remove(place);
        if page.is_empty() {
            self.pages.remove(number);
        }
        self.len -= 1;
        true
    }
}

impl<V: PartialEq> Directory<V> {
    /// Where this differs from what was before, in the order of names. Of two that share most of
    /// what they have it takes no longer than there are pages.
    pub fn changes<'a>(&'a self, before: &'a Directory<V>) -> Vec<Differs<'a, V>> {
        let mut changes = Vec::new();
        let (mut was, mut is) = (Place::first(before), Place::first(self));
        loop {
            while was.shares_page(&is) {
                was.next_page();
                is.next_page();
            }
            let (old, new) = (was.line(), is.line());
            let order = match (old, new) {
                (None, None) => return changes,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(old), Some(new)) => old.0.cmp(&new.0),
            };
            let (old, new) = (old.filter(|_| order.is_le()), new.filter(|_| order.is_ge()));
            let same = match (old, new) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old.1 == new.1,
                _ => false,
            };
            if let Some(line) = new.or(old).filter(|_| !same) {
                let (was, is) = (old.map(|line| &line.1), new.map(|line| &line.1));
                changes.push(Differs { name: &line.0, was, is });
            }
            if old.is_some() {
                was.next();
            }
            if new.is_some() {
                is.next();
            }
        }
    }
}

/// A line of a directory.
struct Place<'a, V> {
    pages: &'a [Arc<Vec<Line<V>>>],
    line: usize,
}

impl<'a, V> Place<'a, V> {
    fn first(directory: &'a Directory<V>) -> Self {
        Place { pages: &directory.pages, line: 0 }
    }

    /// Whether both are at the beginning of one and the same page.
    fn shares_page(&self, other: &Place<'_, V>) -> bool {
        match (self.pages.first(), other.pages.first()) {
            (Some(a), Some(b)) => self.line == 0 && other.line == 0 && Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn line(&self) -> Option<&'a Line<V>> {
        self.pages.first().map(|page| &page[self.line])
    }

    fn next(&mut self) {
        self.line += 1;
        if self.pages.first().is_some_and(|page| page.len() == self.line) {
            self.next_page();
        }
    }

    fn next_page(&mut self) {
        (self.pages, self.line) = (&self.pages[1..], 0);
    }
}

impl<V> Index<&str> for Directory<V> {
    type Output = V;

    fn index(&self, name: &str) -> &V {
        self.get(name).expect("nothing is under this name")
    }
}

impl<V: PartialEq> PartialEq for Directory<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for Directory<V> {}

impl<V: fmt::Debug> fmt::Debug for Directory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V> FromIterator<(String, V)> for Directory<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(all: I) -> Self {
        let mut directory = Directory::default();
        for (name, value) in all {
            directory.insert(name, value);
        }
        directory
    }
}

/// As any map has it.
impl<V: Serialize> Serialize for Directory<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Directory<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader(BTreeMap::new()))
    }
}

/// What was read so far.
struct Reader<V>(BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Reader<V> {
    type Value = Directory<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("things by name")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Directory<V>, A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            self.0.insert(name, value);
        }
        Ok(self.0.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that did the same as a map is the same, before and after each step, and knows in
    /// what it differs from every earlier one.
    #[test]
    fn it_is_a_map_of_which_copies_stay_as_they_were() {
        let mut dice = 1u64;
        let mut draw = |n: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % n
        };
        let (mut map, mut directory) = (BTreeMap::new(), Directory::default());
        let mut earlier = Vec::new();
        for step in 0..3000u64 {
            let name = format!("{:03}", draw(700));
            match draw(3) {
                0 => assert_eq!(directory.remove(&name), map.remove(&name).is_some()),
                _ => {
                    map.insert(name.clone(), step);
                    directory.insert(name, step);
                }
            }
            if step % 100 == 0 {
                earlier.push((map.clone(), directory.clone()));
            }
        }
        assert!(directory.pages.iter().all(|page| (1..=PAGE_MAX).contains(&page.len())));
        for (was, kept) in &earlier {
            let listed = was.iter().map(|(name, value)| (name.as_str(), value));
            assert!(listed.eq(kept.iter()) && was.len() == kept.len());
            let all = was.keys().chain(map.keys().filter(|name| !was.contains_key(*name)));
            let mut names: Vec<&String> = all.collect();
            names.sort();
            let differs = names.into_iter().filter(|name| was.get(*name) != map.get(*name));
            let differs = differs.map(|name| (name.as_str(), was.get(name), map.get(name)));
            let changes = directory.changes(kept);
            assert!(differs.eq(changes.iter().map(|it| (it.name, it.was, it.is))));
        }
        for name in ["", "000", "349", "350x", "699", "a"] {
            let later = map.iter().filter(|(other, _)| other.as_str() > name);
            assert!(later.map(|(name, it)| (name.as_str(), it)).eq(directory.after(name)));
            assert_eq!(directory.get(name), map.get(name));
        }
        let bytes = postcard::to_allocvec(&directory).unwrap();
        assert_eq!(bytes, postcard::to_allocvec(&map).unwrap());
        assert_eq!(postcard::from_bytes(&bytes), Ok(directory));
    }

    /// What one change costs: the pages that it touches, and no other.
    #[test]
    fn a_copy_shares_all_pages_but_those_that_were_changed() {
        let names = (0..10_000).map(|number| (format!("{number:05}"), number));
        let before: Directory<i32> = names.collect();
        assert_eq!(before.pages.len(), 10_000usize.div_ceil(PAGE_MAX), "pages are full");
        let mut after = before.clone();
        after.insert("05000".into(), -1);
        after.insert("05000x".into(), -2);
        let has = |page: &&Arc<_>| !before.pages.iter().any(|other| Arc::ptr_eq(other, page));
        assert_eq!(after.pages.iter().filter(has).count(), 2);
        let changes = after.changes(&before);
        let named: Vec<_> = changes.iter().map(|it| (it.name, it.was, it.is)).collect();
        assert_eq!(named, [("05000", Some(&5000), Some(&-1)), ("05000x", None, Some(&-2))]);
    }
}

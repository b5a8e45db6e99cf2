//! The document as bytes: what snapshots and backups are made of.
//!
//! One byte for the form, then the fields in their order as postcard writes them. Maps are ordered,
//! so one document has one form.

use super::{Charter, REMEMBERED};
use crate::names::fnv;

/// The form that this code writes.
const FORM: u8 = 4;
/// Forms before: the fields that they lack are the last ones, and a zero says of each that there is
/// nothing. The first of them lacks invitations...
const UNINVITED: u8 = 3;
/// ...and this one also whether the charter was recovered.
const UNRECOVERED: u8 = 2;

/// Why bytes are no charter. Nothing was taken from them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BytesError {
    /// There is nothing.
    #[error("no charter: there are no bytes")]
    Empty,
    /// Written by another version.
    #[error(
        "a charter of form {0}, and this program reads form {FORM}: \
         use the version of the program that wrote it"
    )]
    Form(u8),
    /// Cut off or damaged.
    #[error("no charter: the bytes do not decode; the copy is damaged or incomplete")]
    Garbage,
    /// They decode, and no history leads there.
    #[error("no charter: {0}; the copy is damaged")]
    Impossible(String),
}

impl Charter {
    /// The same document has the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![FORM]).expect("plain data always encodes")
    }

    /// Reads a document back.
    ///
    /// # Errors
    /// The bytes are no document that [`Charter::to_bytes`] could have written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Charter, BytesError> {
        let (form, rest) = bytes.split_first().ok_or(BytesError::Empty)?;
        match *form {
            FORM => {}
            UNINVITED => return Charter::from_bytes(&[&[FORM], rest, &[0]].concat()),
            UNRECOVERED => return Charter::from_bytes(&[&[FORM], rest, &[0, 0]].concat()),
            form => return Err(BytesError::Form(form)),
        }
        let charter: Charter = match postcard::take_from_bytes(rest) {
            Ok((charter, [])) => charter,
            _ => return Err(BytesError::Garbage),
        };
        charter.sound().map_err(BytesError::Impossible)?;
        if charter.to_bytes() != bytes {
            return Err(BytesError::Garbage); // Numbers can be written longer than they are.
        }
        Ok(charter)
    }

    /// The document as a word that can stand in any text: what a backup is.
    pub fn to_text(&self) -> String {
        let bytes = self.to_bytes();
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.chain([format!("{:016x}", fnv(&bytes))]).collect()
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub fn from_text(text: &str) -> Result<Charter, BytesError> {
        if text.is_empty() {
            return Err(BytesError::Empty);
        }
        let pairs = text.as_bytes().chunks(2).map(|pair| {
            let digits = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            // Also signs are read as parts of numbers.
            let digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)?;
            u8::from_str_radix(digits, 16).ok()
        });
        let bytes: Option<Vec<u8>> = pairs.collect();
        let bytes = bytes.ok_or(BytesError::Garbage)?;
        match bytes.split_last_chunk::<8>() {
            Some((bytes, check)) if fnv(bytes).to_be_bytes() == *check => {
                Charter::from_bytes(bytes)
            }
            _ => Err(BytesError::Garbage),
        }
    }

    /// What holds of every document that can be reached.
    pub(super) fn sound(&self) -> Result<(), String> {
        if self.cluster.is_none() && !self.members.is_empty() {
            return Err("members without a cluster".into());
        }
        if let Some((id, _)) = self.members.iter().find(|(id, _)| id.0 > self.version) {
            return Err(format!("member {id} joins after the last entry"));
        }
        if let Some((id, _)) = self.gone.iter().find(|(id, _)| self.members.contains_key(id)) {
            return Err(format!("member {id} is there and gone"));
        }
        let stray = self.labels.keys().chain(self.drains.keys());
        if let Some((pool, unit)) = stray.clone().find(|unit| !self.pools.contains_key(&unit.0)) {
            return Err(format!("unit {unit:?} of pool {pool:?}, which is not there"));
        }
        let tokens = self.tokens.iter();
        for (id, token) in tokens {
            if !self.rights.contains_key(&token.value.right) {
                return Err(format!("token {id:?} has a right that is not there"));
            }
        }
        for (group, seat) in &self.seats {
            let shadow = seat.shadow.map(|shadow| shadow.life.member);
            if seat.term == 0 || !self.members.contains_key(&seat.life.member) {
                return Err(format!("nobody decides for {group}"));
            }
            if shadow.is_some_and(|id| id == seat.life.member || !self.members.contains_key(&id)) {
                return Err(format!("nobody shadows {group}"));
            }
        }
        for (name, kept) in &self.invitations {
            let taken = kept.value.taken;
            let known = taken
                .is_none_or(|id| self.members.contains_key(&id) || self.gone.contains_key(&id));
            if !known {
                return Err(format!("nobody took the invitation of {name:?}"));
            }
        }
        if self.memory.len() > REMEMBERED {
            return Err("too many requests are remembered".into());
        }
        Ok(())
    }
}

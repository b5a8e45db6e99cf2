//! The document as bytes: what snapshots and backups are made of.
//!
//! One byte for the form, then the fields in their order as postcard writes them. Maps are ordered,
//! so one document has one form.

use super::{Charter, REMEMBERED};

/// The form that this code writes, and the only one that it reads.
const FORM: u8 = 2;

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
        if *form != FORM {
            return Err(BytesError::Form(*form));
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
        if self.memory.len() > REMEMBERED {
            return Err("too many requests are remembered".into());
        }
        Ok(())
    }
}

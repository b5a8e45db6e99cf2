//! What this crate reads of what others wrote, for whoever feeds nonsense to it (`quorate-lab
//! fuzz`). No part of the library's promises.

use serde::{Serialize, de::DeserializeOwned};

use crate::Charter;
use crate::raft::{Frame, Reply, decode, encode};

/// Whether these are words of a member to another. What is taken is written as it was read.
pub fn words(bytes: &[u8]) -> bool {
    fn one<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
        let Ok(value) = decode::<T>(bytes) else { return false };
        let again = encode(&value);
        // Numbers can be written longer than they are, so the bytes may differ once.
        let read = decode::<T>(&again).map(|value| encode(&value));
        assert_eq!(read, Ok(again), "what is written is what is read");
        true
    }
    one::<Frame>(bytes) | one::<Reply>(bytes)
}

/// Whether this is a document, as bytes or as the text of a backup.
pub fn document(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    let backup = || Charter::from_text(text?).ok();
    let Some(charter) = Charter::from_bytes(bytes).ok().or_else(backup) else { return false };
    let again = Charter::from_text(&charter.to_text());
    assert_eq!(again, Ok(charter), "what is written is what is read");
    true
}

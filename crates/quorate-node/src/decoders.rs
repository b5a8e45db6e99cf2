//! What only this crate reads of what others wrote, for whoever feeds nonsense to it
//! (`quorate-lab fuzz`). No part of the library's promises.

/// The token of an `Authorization` header.
pub fn authorization(header: &str) -> String {
    crate::caller::token_of(header)
}

/// Whether this could be the file of a data directory that counts starts.
pub fn boot_file(text: &str) -> bool {
    crate::boot::is_readable(text)
}

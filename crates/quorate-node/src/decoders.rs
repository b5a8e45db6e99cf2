//! What only this crate reads of what others wrote, for whoever feeds nonsense to it
//! (`quorate-lab fuzz`). No part of the library's promises.

pub use quorate_charter::decoders as charter;

/// Whether a gateway would read this body: FleetLock's or Terraform's.
pub fn gateway_body(bytes: &[u8]) -> bool {
    crate::api::gateway::fleetlock::is_readable(bytes)
        | crate::api::gateway::terraform::is_readable(bytes)
}

/// The token of an `Authorization` header.
pub fn authorization(header: &str) -> String {
    crate::caller::token_of(header)
}

/// Whether this could be the file of a data directory that counts starts.
pub fn boot_file(text: &str) -> bool {
    crate::boot::is_readable(text)
}

//! A node that holds the authority's key renews its own certificate, long before it expires: the
//! same key, another date. Who has shown it on a connection goes on; the file is read anew like any
//! file that changed.

use std::time::Duration;

use quorate_trust::{Certificate, NodeKey};

use super::{NewcomerError, Result, write};
use crate::charter::{Seal, since_1970};
use crate::config::Config;

/// Renews this node's certificate if two thirds of its time are over. Says when the new one ends,
/// since 1970; nothing if there was nothing to do.
///
/// # Errors
/// It is due, and could not be done: the certificate is as it was.
pub fn renew(config: &Config) -> Result<Option<Duration>> {
    renew_at(config, since_1970())
}

pub(super) fn renew_at(config: &Config, now: Duration) -> Result<Option<Duration>> {
    let Some(tls) = config.tls.as_ref().filter(|tls| tls.authority.is_some()) else {
        return Ok(None);
    };
    let read = |path: &std::path::Path| {
        let read = std::fs::read_to_string(path);
        read.map_err(|error| NewcomerError(format!("cannot read {}: {error}", path.display())))
    };
    let (own, _) =
        Certificate::from_pem(read(&tls.cert)?.as_bytes()).map_err(NewcomerError::new)?;
    let Some((from, until)) = own.validity() else { return Ok(None) };
    if now < from + until.saturating_sub(from) / 3 * 2 {
        return Ok(None);
    }
    let Some(seal) = Seal::read(config).map_err(NewcomerError)? else { return Ok(None) };
    let key = NodeKey::from_pem(&read(&tls.key)?).map_err(NewcomerError::new)?;
    let made = seal.sign(config.name(), &own.addresses(), key.public(), now);
    let made = made.map_err(NewcomerError)?;
    let (folder, file) = (tls.cert.parent(), tls.cert.file_name().and_then(|name| name.to_str()));
    let (Some(folder), Some(file)) = (folder, file) else {
        return Err(NewcomerError(format!("{} is no file", tls.cert.display())));
    };
    write(folder, file, &made, 0o644)?;
    let (new, _) = Certificate::from_pem(made.as_bytes()).map_err(NewcomerError::new)?;
    Ok(new.validity().map(|(_, until)| until))
}

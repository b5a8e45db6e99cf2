//! The first member of a new cluster: an authority, a certificate, an administrator, and a charter
//! of one.

use std::path::PathBuf;

use quorate_trust::{Authority, Lifetime, NodeKey, Secret, is_name};

use super::{
    CA, CA_KEY, CERTIFICATE, FILE, KEY, NewcomerError, Place, Result, TOKEN, Wish, Words, config,
    directory, unused, write,
};
use crate::Node;
use crate::charter::{CERTIFIED_DAYS, since_1970};

/// For how many days the authority is good: ten years.
const AUTHORITY_DAYS: u32 = 3650;

/// A cluster that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Founded {
    /// The node's file.
    pub file: PathBuf,
    /// The file with the administrator's token.
    pub token: PathBuf,
    /// The certificate of the authority.
    pub ca: PathBuf,
    /// Where clients reach it...
    pub clients: String,
    /// ...and whether also by a socket beside its file.
    pub socket: bool,
}

/// Makes the first member of a new cluster, in a directory that nobody used. Nothing runs yet.
///
/// # Errors
/// The directory was in use, or something else is not as it should be; if the file of the node was
/// not written, the directory is none of a member.
pub fn found(cluster: &str, name: &str, wish: &Wish) -> Result<Founded> {
    for (what, text) in [("cluster", cluster), ("member", name)] {
        if !is_name(text) {
            return Err(NewcomerError(format!(
                "{text:?} is no name of a {what}: 1 to 128 letters, digits, and . _ - :; nothing \
                 was written"
            )));
        }
    }
    let Some(host) = &wish.address else {
        let text = "say where others reach this machine: --address HOST; nothing was written";
        return Err(NewcomerError::new(text));
    };
    let place = Place::of(wish, host)?;
    let data = directory(&wish.data)?;
    unused(&data, &[])?;
    let now = since_1970();
    let life = Lifetime { since_1970: now, days: AUTHORITY_DAYS };
    let ca = Authority::create(cluster, life).map_err(NewcomerError::new)?;
    let authority = Authority::from_pem(ca.certificate.as_bytes(), &ca.key);
    let authority = authority.map_err(NewcomerError::new)?;
    let key = NodeKey::random().map_err(NewcomerError::new)?;
    let life = Lifetime { since_1970: now, days: CERTIFIED_DAYS };
    let certificate = authority.node_of(name, &[place.peers.host()], key.public(), life);
    let certificate = certificate.map_err(NewcomerError::new)?;
    let token = Secret::random().map_err(NewcomerError::new)?;
    let rights = format!(
        "tokens = [{{ name = \"admin\", sha256 = \"{}\", may = [\"see\", \"claim\", \"revoke\", \
         \"admin\"], pools = [\"*\"] }}]\n",
        token.digest()
    );
    let words = Words {
        cluster,
        epoch: 1,
        name,
        place: &place,
        wish,
        pace: "",
        members: &[(name.to_owned(), place.peers.to_string())],
        rights: &rights,
    };
    let text = words.file(&data);
    let read = config(&data, &text)?;
    write(&data, CA, &ca.certificate, 0o644)?;
    write(&data, CA_KEY, &ca.key, 0o600)?;
    write(&data, CERTIFICATE, &(certificate + &ca.certificate), 0o644)?;
    write(&data, KEY, &key.reveal(), 0o600)?;
    write(&data, TOKEN, &format!("{}\n", token.reveal()), 0o600)?;
    Node::init(&read).map_err(NewcomerError::new)?;
    write(&data, FILE, &text, 0o600)?;
    Ok(Founded {
        file: data.join(FILE),
        token: data.join(TOKEN),
        ca: data.join(CA),
        clients: place.clients.to_string(),
        socket: read.listen_local.is_some(),
    })
}

//! A machine joins a cluster by an invitation.
//!
//! It makes its key here, and writes it down before anybody hears of it: if the answer is lost, or
//! the machine, the same command goes on with the same key, and is the same member. The cluster is
//! known by its authority, whose fingerprint the invitation has, and nothing is said to anybody
//! else.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_api::{JoinRequest, JoinView};
use quorate_charter::{Birth, ClusterId, Identity, MemberId, Store};
use quorate_trust::{Invitation, NodeKey};
use serde::{Deserialize, Serialize};

use super::ask::{Door, ask};
use super::{
    CA, CA_KEY, CERTIFICATE, FILE, KEY, NewcomerError, Place, Result, Wish, Words, config,
    directory, unused, write,
};
use crate::boot;
use crate::charter::{STORE, drawn};

/// What a machine that joins must not forget: its key, and the birth of its store.
const JOINING: &str = "joining.json";
/// All that may be there when the command is said again.
const LEFT: [&str; 9] = [JOINING, CA, CA_KEY, CERTIFICATE, KEY, FILE, STORE, "boot", "lock"];

/// A machine that became a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The node's file.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// The cluster.
    pub cluster: String,
    /// Its number in the charter.
    pub member: u64,
    /// Who are members now.
    pub members: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Joining {
    key: String,
    birth: String,
}

/// Makes this machine a member of the cluster that invites it. Nothing runs yet.
///
/// # Errors
/// The directory was in use, nobody answers, the cluster is another one, or does not let it in. If
/// the answer was lost, the same command goes on.
pub async fn join(invitation: &Invitation, wish: &Wish) -> Result<Joined> {
    let data = directory(&wish.data)?;
    let again = data.join(JOINING).exists();
    unused(&data, if again { &LEFT } else { &LEFT[..1] })?;
    let joining = remembered(&data, again)?;
    let key = NodeKey::from_pem(&joining.key).map_err(NewcomerError::new)?;
    let name = &invitation.name;
    let mut last = String::new();
    for door in &invitation.places {
        let door = match Door::open(door, invitation.authority).await {
            Ok(door) => door,
            Err(why) => {
                last = format!("{door}: {why}");
                continue;
            }
        };
        let host = wish.address.clone().unwrap_or_else(|| door.own_address());
        let place = Place::of(wish, &host)?;
        let request = JoinRequest {
            name: name.clone(),
            secret: invitation.secret.reveal().to_owned(),
            key: key.public().iter().map(|byte| format!("{byte:02x}")).collect(),
            birth: joining.birth.clone(),
            peers: place.peers.to_string(),
            clients: place.clients.to_string(),
        };
        match ask(door, &request).await {
            Ok(Ok(view)) => return settle(&data, invitation, wish, &place, &joining, &view),
            // The cluster has spoken: another member says the same.
            Ok(Err(problem)) => {
                return Err(NewcomerError(format!("{name} is not let in: {problem}")));
            }
            Err(why) => last = why,
        }
    }
    Err(NewcomerError(format!(
        "nobody lets {name} in ({last}). Whether the cluster took it in is unknown: the same \
         command goes on where this one stopped"
    )))
}

/// The key and the birth with which it asks, now and whenever it asks again.
fn remembered(data: &Path, again: bool) -> Result<Joining> {
    if again {
        let read = fs::read_to_string(data.join(JOINING)).map_err(NewcomerError::new)?;
        return serde_json::from_str(&read).map_err(|error| {
            let shown = data.join(JOINING);
            NewcomerError(format!("{} is damaged: {error}; empty the directory", shown.display()))
        });
    }
    let key = NodeKey::random().map_err(NewcomerError::new)?.reveal();
    let joining = Joining { key, birth: Birth(drawn()).to_string() };
    let text = serde_json::to_string(&joining).map_err(NewcomerError::new)?;
    write(data, JOINING, &text, 0o600)?;
    Ok(joining)
}

/// Writes down what the cluster said, the node's file last.
fn settle(
    data: &Path,
    invitation: &Invitation,
    wish: &Wish,
    place: &Place,
    joining: &Joining,
    view: &JoinView,
) -> Result<Joined> {
    let name = &invitation.name;
    let members: Vec<(String, String)> =
        view.members.iter().map(|it| (it.name.clone(), it.peers.clone())).collect();
    let words = Words {
        cluster: &view.cluster,
        epoch: view.epoch,
        name,
        place,
        wish,
        pace: &view.pace,
        members: &members,
        rights: &view.rights,
    };
    let text = words.file(data);
    let read = config(data, &text)?;
    write(data, CA, &view.ca, 0o644)?;
    write(data, CA_KEY, &view.authority, 0o600)?;
    write(data, CERTIFICATE, &view.certificate, 0o644)?;
    write(data, KEY, &joining.key, 0o600)?;
    // All that a start would find wrong is found here.
    read.keys().map_err(NewcomerError::new)?;
    let strange = || NewcomerError::new("the cluster's answer makes no sense");
    let number = |text: &str| u128::from_str_radix(text, 16).map_err(|_| strange());
    let identity = Identity {
        cluster: ClusterId(number(&view.charter)?.to_be_bytes()),
        member: MemberId(view.member),
        birth: Birth(number(&joining.birth)?.to_be_bytes()),
    };
    // What an earlier try left was never started from.
    let store = data.join(STORE);
    for left in [&store, &data.join("boot")] {
        match fs::remove_file(left) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(NewcomerError::new(error));
            }
            _ => {}
        }
    }
    drop(Store::create(&store, identity).map_err(NewcomerError::new)?);
    // Nobody ever had its name, nor its place among the members: nobody holds anything of it.
    boot::declare_new(&read).map_err(NewcomerError::new)?;
    write(data, FILE, &text, 0o600)?;
    // If it stays, it says nothing that the other files do not.
    let _ = fs::remove_file(data.join(JOINING));
    Ok(Joined {
        file: data.join(FILE),
        name: name.clone(),
        cluster: view.cluster.clone(),
        member: view.member,
        members: members.into_iter().map(|(name, _)| name).collect(),
    })
}

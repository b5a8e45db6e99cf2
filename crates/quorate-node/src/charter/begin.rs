//! Whose store this is: founded, joined, or waiting to be let in.
//!
//! A charter is founded once, by the first member of the file, from a directory in which somebody
//! said that the cluster is new (`quorate init`). That is kept in the directory itself: one that
//! was lost takes it along, and a node that finds nothing asks to be let in. If the charter knows
//! its name with another store it is refused: a wiped machine is another member.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_charter::{
    About, Birth, Change, ClusterId, Council, Done, Identity, MemberId, Newcomer, RaftCouncil,
    Request, Store, StoreError,
};
use quorate_core::NodeId;
use tokio::time::{sleep, timeout};

use super::words::{Said, Word};
use super::{Carrier, Hall, Part, TERMS_EACH, addresses, drawn, request_id};
use crate::boot;
use crate::config::{Config, Data};

/// How long one member may take to say whether it lets us in, and how long to wait before all are
/// asked again.
const TO_ADMIT: Duration = Duration::from_secs(6);
const AGAIN: Duration = Duration::from_millis(200);
/// How often to look who votes.
const LOOK: Duration = Duration::from_millis(20);

/// How a start begins.
#[derive(Debug)]
pub(crate) enum Begin {
    /// It is a member.
    Member(Store),
    /// It wants to be one, with a store of this birth.
    Joins(Birth),
}

/// Says that the charter is to be founded from this directory, if this is the member that does.
pub(crate) fn declare_new(config: &Config) -> io::Result<()> {
    let Data::Directory(directory) = &config.data else { return Ok(()) };
    if config.charter.is_some_and(|charter| charter.import) {
        return Err(io::Error::other(
            "import = true is for a cluster that ran before it had a charter: take it out of \
             [charter] of all files",
        ));
    }
    if !config.founds_charter() {
        return Ok(());
    }
    boot::replace(directory, &directory.join(FOUNDS), "this directory founds the charter\n")
}

/// The word that this directory founds the charter; taken back when it has.
pub(super) const FOUNDS: &str = "charter-founds";
pub(crate) const STORE: &str = "charter.redb";
/// The birth of the store that this directory will have.
pub(super) const BIRTH: &str = "charter-birth";

impl Begin {
    /// Looks at the directory.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn open(config: &Config) -> Result<Begin, String> {
        let made =
            |birth| Identity { cluster: ClusterId(drawn()), member: MemberId::FOUNDER, birth };
        let Data::Directory(directory) = &config.data else {
            return match config.me {
                NodeId(0) => Store::in_memory(made(Birth(drawn()))).map(Begin::Member),
                _ => Ok(Begin::Joins(Birth(drawn()))),
            }
            .map_err(|error| error.to_string());
        };
        let store = directory.join(STORE);
        let word = directory.join(FOUNDS);
        match Store::open(&store) {
            Ok(store) => {
                // It founds once: what becomes of a store in the middle of that, the store knows.
                let _ = fs::remove_file(&word);
                Ok(Begin::Member(store))
            }
            Err(StoreError::Empty) => {
                let wrong = |error: io::Error| format!("{}: {error}", directory.display());
                let birth = birth(directory).map_err(wrong)?;
                if !word.exists() {
                    return Ok(Begin::Joins(birth));
                }
                let store = Store::create(&store, made(birth)).map_err(|it| it.to_string())?;
                fs::remove_file(&word).map_err(wrong)?;
                Ok(Begin::Member(store))
            }
            Err(error) => Err(format!("{}: {error}", store.display())),
        }
    }
}

/// Drawn once for a directory, so that asking twice to be let in is asking once.
fn birth(directory: &Path) -> io::Result<Birth> {
    let path: PathBuf = directory.join(BIRTH);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let number = u128::from_str_radix(text.trim(), 16);
            let number = number.map_err(|_| io::Error::other("charter-birth is damaged"))?;
            Ok(Birth(number.to_be_bytes()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let birth = Birth(drawn());
            boot::replace(directory, &path, &format!("{birth}\n"))?;
            Ok(birth)
        }
        Err(error) => Err(error),
    }
}

/// Becomes a member, which may take as long as nobody lets us in.
///
/// # Errors
/// The store cannot be used.
pub(super) async fn enter(hall: &Arc<Hall>, begin: Begin) -> Result<Part, String> {
    let store = match begin {
        Begin::Member(store) => store,
        Begin::Joins(birth) => {
            let (cluster, member) = ask_to_join(hall, birth).await;
            let identity = Identity { cluster, member, birth };
            let made = match &hall.config.data {
                Data::Directory(directory) => Store::create(&directory.join(STORE), identity),
                Data::Memory => Store::in_memory(identity),
            };
            made.map_err(|error| error.to_string())?
        }
    };
    let from = store.identity().member;
    let carrier = Carrier {
        from,
        lines: Arc::clone(&hall.lines),
        book: Arc::clone(&hall.book),
        gone: Arc::clone(&hall.gone),
    };
    let part = RaftCouncil::start(store, hall.pace(), carrier).await;
    let part = part.map_err(|error| error.to_string())?;
    hall.book.note(from, hall.config.me);
    // Whoever is not alone any more has founded it.
    let alone = |part: &Part| part.status().voters.iter().all(|voter| *voter == from);
    while from == MemberId::FOUNDER && alone(&part) {
        let about = About { addresses: addresses(&hall.config), ..About::default() };
        let settles = part.settle(hall.config.name().to_owned(), about, incarnation(hall.boot));
        // A store that was just opened says late who votes: until this node knows that it is not
        // alone it answers no member, and its clients' renewals go nowhere.
        let settled = tokio::select! {
            settled = settles => settled,
            () = until(|| !alone(&part)) => break,
        };
        match settled {
            Ok(()) => break,
            Err(trouble) => {
                hall.stands(Some(trouble.to_string()));
                sleep(AGAIN).await;
            }
        }
    }
    Ok(part)
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(LOOK).await;
    }
}

/// Terms count on from any boot number that a node of an earlier cluster of these pools can have
/// had, so that fences do too (charter spec S10): a count of starts, or minutes since 2026.
pub(super) fn incarnation(boot: u32) -> u64 {
    u64::from(boot.max(boot::minutes_since_2026())) / TERMS_EACH + 1
}

async fn ask_to_join(hall: &Arc<Hall>, birth: Birth) -> (ClusterId, MemberId) {
    let address = hall.config.members[hall.config.me.index()].peers.to_string();
    let word = Word::Join { birth, address };
    let mut said_last = String::new();
    loop {
        let mut why = "no member that has the charter answers yet".to_owned();
        for other in hall.others() {
            let name = &hall.config.members[other.index()].name;
            match timeout(TO_ADMIT, hall.ask(other, &word)).await {
                Ok(Ok(Said::Joined(cluster, member))) => return (cluster, member),
                Ok(Ok(Said::Refused(no))) => why = format!("{name} says: {no}"),
                Ok(_) | Err(_) => {}
            }
        }
        if why != said_last {
            tracing::warn!("this node is no member of the charter yet: {why}");
            said_last.clone_from(&why);
        }
        hall.stands(Some(why));
        sleep(AGAIN).await;
    }
}

impl Hall {
    /// A member of the file asks to be let in.
    pub(super) async fn admit(&self, from: NodeId, birth: Birth, address: String) -> Said {
        let Some(part) = self.part() else {
            return Said::NotYet("this member is not in yet".into());
        };
        let cluster = part.identity().cluster;
        let charter = match part.read().await {
            Ok(reading) => reading.charter,
            Err(trouble) => return Said::NotYet(trouble.to_string()),
        };
        let name = self.config.members[from.index()].name.clone();
        let known = charter.members().iter().find(|(_, member)| member.name == name);
        if let Some((id, member)) = known {
            return match member.birth == birth {
                true => Said::Joined(cluster, *id),
                false if self.config.joins => Said::Refused(format!(
                    "the charter knows {name} with another store, and a store that was lost does \
                     not come back. Nothing was changed. Restore the data directory of {name}; \
                     or, if it is gone, run `quorate member remove {name} --dead`, and invite this \
                     machine under a name that nobody had"
                )),
                false => Said::Refused(format!(
                    "the charter knows {name} with another store, and a store that was lost does \
                     not come back. Nothing was changed. Restore the data directory of {name}; \
                     or, if it is gone, run `quorate member replace {name}`: then this machine \
                     joins as another member"
                )),
            };
        }
        if self.config.joins {
            return Said::Refused(format!(
                "members of this cluster join by invitation, and {name} has none. Nothing was \
                 changed. Run `quorate member invite NAME` at a member"
            ));
        }
        let about = About { addresses: vec![address], ..About::default() };
        let change = Change::Join(Newcomer { name, birth, about });
        // Whoever asks twice joins once, since nobody joins with the store of a member. Each time
        // under a new id: what was refused may be allowed later.
        match part.propose(Request::one(request_id(), change)).await {
            Ok(Ok(Done { version })) => Said::Joined(cluster, MemberId(version)),
            Ok(Err(refused)) => Said::Refused(refused.to_string()),
            Err(trouble) => Said::NotYet(trouble.to_string()),
        }
    }
}

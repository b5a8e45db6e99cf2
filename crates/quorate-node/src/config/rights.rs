//! Whom a node knows, and what each may do: `[[tokens]]` and `[rights]`, and what the charter adds
//! to them.
//!
//! A file says who may do what at its machine, and whether that is asked at all. Tokens of the
//! charter are good where it is. Where both name somebody, the file counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_trust::{Date, Digest, Permit, Secret, is_name};
use tokio::sync::watch;

use super::{Secret as AdminToken, Text, low};

/// Most tokens of a file: every request is compared with all of them.
const TOKENS_MAX: usize = 1000;

/// Who may do what now: shared by all who ask, and replaced as a whole while the node runs.
#[derive(Clone, Debug, Default)]
pub struct Guard(watch::Sender<Rules>);

#[derive(Clone, Debug, Default)]
struct Rules {
    /// What an administrator shows, if anything.
    admin: Option<Arc<AdminToken>>,
    /// What the file says...
    file: Option<Arc<Guarded>>,
    /// ...what the charter adds to it...
    chartered: Arc<Vec<(Digest, Permit)>>,
    /// ...and both together.
    guarded: Option<Arc<Guarded>>,
    /// Why newer rules were not taken up, if the last were not.
    refused: Option<String>,
    /// What the file says of that, for the files of members that join.
    handed: Arc<str>,
}

/// Whatever a file says of who may do what, without `admin_token`.
pub(super) fn handed(text: &str) -> String {
    let mut file: toml::Table = text.parse().unwrap_or_default();
    file.retain(|key, _| ["tokens", "certificates", "rights"].contains(&key));
    super::added::lines(&file)
}

impl Guard {
    pub(super) fn new(
        admin: Option<AdminToken>,
        guarded: Option<Guarded>,
        handed: String,
    ) -> Guard {
        let (admin, file) = (admin.map(Arc::new), guarded.map(Arc::new));
        let (guarded, handed) = (file.clone(), handed.into());
        let chartered = Arc::default();
        Guard(watch::Sender::new(Rules { admin, file, chartered, guarded, refused: None, handed }))
    }

    /// What the file of a member that joins says of who may do what: hashes of tokens, no token.
    pub(crate) fn handed(&self) -> Arc<str> {
        Arc::clone(&self.0.borrow().handed)
    }

    /// Nothing, if everything is open to everybody.
    pub(crate) fn now(&self) -> Option<Arc<Guarded>> {
        self.0.borrow().guarded.clone()
    }

    /// `admin_token`, if there is one.
    pub(crate) fn admin(&self) -> Option<Arc<AdminToken>> {
        self.0.borrow().admin.clone()
    }

    /// Why the file as it is now was not taken up, if it was not.
    pub(crate) fn refused(&self) -> Option<String> {
        self.0.borrow().refused.clone()
    }

    /// What was to hold from now on cannot; the old does.
    pub(crate) fn refuse(&self, why: String) {
        self.0.send_modify(|rules| rules.refused = Some(why));
    }

    /// From now on this file holds. What the charter adds stays.
    pub(crate) fn replace(&self, other: &Guard) {
        let Rules { admin, file, handed, .. } = other.0.borrow().clone();
        self.0.send_modify(|rules| {
            let chartered = Arc::clone(&rules.chartered);
            let guarded = together(&file, &chartered, &rules.guarded);
            *rules = Rules { admin, file, chartered, guarded, refused: None, handed };
        });
    }

    /// From now on the charter adds these.
    pub(crate) fn add(&self, tokens: Vec<(Digest, Permit)>) {
        self.0.send_modify(|rules| {
            rules.chartered = Arc::new(tokens);
            rules.guarded = together(&rules.file, &rules.chartered, &rules.guarded);
        });
    }

    /// What the file says, if anybody is asked for anything.
    pub(crate) fn file(&self) -> Option<Arc<Guarded>> {
        self.0.borrow().file.clone()
    }

    /// The tokens of the charter that are not good here, since the file has something of their
    /// name, or the same token.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let rules = self.0.borrow();
        let Some(file) = &rules.file else { return Vec::new() };
        let hidden = rules
            .chartered
            .iter()
            .filter(|(digest, permit)| file.names(&permit.name) || file.token(digest).is_some());
        hidden.map(|(_, permit)| permit.name.clone()).collect()
    }

    /// Whose tokens and certificates' entries end, and on which day.
    pub fn expiries(&self) -> Vec<(String, Date)> {
        let Some(guarded) = self.now() else { return Vec::new() };
        let ends = |permit: &Arc<Permit>| Some((permit.name.clone(), permit.expires?));
        guarded.permits().filter_map(ends).collect()
    }

    /// When the rules were replaced, from now on; only that, not what they are.
    pub(crate) fn news(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }
}

/// What a file and the charter say together. Whether anybody is asked for anything the file says.
fn together(
    file: &Option<Arc<Guarded>>,
    chartered: &[(Digest, Permit)],
    before: &Option<Arc<Guarded>>,
) -> Option<Arc<Guarded>> {
    let file = file.as_ref()?;
    let all = file.with(chartered);
    Some(Arc::new(match before {
        Some(before) => all.keeping(before),
        None => all,
    }))
}

/// Who may do what, where that is not open to everybody.
#[derive(Clone, Debug)]
pub struct Guarded {
    tokens: Vec<(Digest, Arc<Permit>)>,
    certificates: Vec<Arc<Permit>>,
    /// Whether anybody may read what the node counts, of all pools.
    pub open_metrics: bool,
}

impl Guarded {
    /// Nothing if the file has neither tokens nor rights.
    pub(super) fn read(
        tokens: Vec<low::Token>,
        certificates: Vec<low::Token>,
        rights: Option<low::Rights>,
    ) -> Result<Option<Guarded>, String> {
        if tokens.is_empty() && certificates.is_empty() && rights.is_none() {
            return Ok(None);
        }
        let count = tokens.len() + certificates.len();
        if count > TOKENS_MAX {
            return Err(format!("{count} tokens: at most {TOKENS_MAX} are possible"));
        }
        let mut known: Vec<(Digest, Arc<Permit>)> = Vec::new();
        for token in tokens {
            let name = token.name.clone();
            let wrong = |what| format!("token {name:?}: {what}");
            let (digest, permit) = token.read().map_err(wrong)?;
            let digest = digest.ok_or_else(|| wrong("sha256 is missing".into()))?;
            if known.iter().any(|(_, other)| other.name == name) {
                return Err(format!("two tokens are named {name:?}: claims belong to names"));
            }
            if let Some((_, other)) = known.iter().find(|(other, _)| other.is(&digest)) {
                return Err(format!("tokens {:?} and {name:?} are the same", other.name));
            }
            known.push((digest, Arc::new(permit)));
        }
        let mut certified: Vec<Arc<Permit>> = Vec::new();
        for entry in certificates {
            let name = entry.name.clone();
            let wrong = |what| format!("certificate {name:?}: {what}");
            match entry.read().map_err(wrong)? {
                (None, permit) => certified.push(Arc::new(permit)),
                (Some(_), _) => return Err(wrong("sha256 is for tokens".into())),
            }
            let named = |permit: &Arc<Permit>| permit.name == name;
            if certified.iter().filter(|permit| named(permit)).count() > 1 {
                return Err(format!("two certificates are named {name:?}"));
            }
            if known.iter().any(|(_, permit)| named(permit)) {
                return Err(format!(
                    "a token and a certificate are named {name:?}: claims belong to names"
                ));
            }
        }
        let open_metrics = rights.is_some_and(|rights| rights.open_metrics);
        Ok(Some(Guarded { tokens: known, certificates: certified, open_metrics }))
    }

    /// The same and these tokens, where nothing here has their name.
    fn with(&self, chartered: &[(Digest, Permit)]) -> Guarded {
        let mut all = self.clone();
        let names: BTreeSet<&str> = self.permits().map(|permit| &*permit.name).collect();
        for (digest, permit) in chartered {
            if !names.contains(&*permit.name) && self.token(digest).is_none() {
                all.tokens.push((*digest, Arc::new(permit.clone())));
            }
        }
        all
    }

    /// All entries.
    pub(crate) fn permits(&self) -> impl Iterator<Item = &Arc<Permit>> {
        self.tokens.iter().map(|(_, permit)| permit).chain(&self.certificates)
    }

    /// The tokens.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &Arc<Permit>> {
        self.tokens.iter().map(|(_, permit)| permit)
    }

    /// Whether a token or a certificate has this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.permits().any(|permit| permit.name == name)
    }

    /// Whose token has this hash.
    pub(crate) fn token(&self, digest: &Digest) -> Option<&Arc<Permit>> {
        self.tokens.iter().find(|(known, _)| known.is(digest)).map(|(_, permit)| permit)
    }

    /// Entries that did not change are the same ones as before: whoever was let in by one still is.
    /// A new secret under an old name is another entry, though it may do the same.
    fn keeping(&self, old: &Guarded) -> Guarded {
        let mut new = self.clone();
        let before: BTreeMap<&str, &(Digest, Arc<Permit>)> =
            old.tokens.iter().map(|token| (&*token.1.name, token)).collect();
        for (digest, permit) in &mut new.tokens {
            let was = before.get(&*permit.name);
            if let Some((_, was)) = was.filter(|(known, was)| known.is(digest) && *was == *permit) {
                *permit = Arc::clone(was);
            }
        }
        for permit in &mut new.certificates {
            if let Some(was) = old.certificates.iter().find(|was| *was == permit) {
                *permit = Arc::clone(was);
            }
        }
        new
    }

    /// Whether somebody who was let in by this entry still is.
    pub(crate) fn still(&self, permit: &Arc<Permit>) -> bool {
        self.permits().any(|known| Arc::ptr_eq(known, permit))
    }

    /// What the client of a certificate may do.
    pub(crate) fn certified(&self, name: &str) -> Option<&Arc<Permit>> {
        self.certificates.iter().find(|permit| permit.name == name)
    }

    /// Whose token it is. Looks at all of them, whichever it is.
    pub(crate) fn whose(&self, shown: &Secret) -> Option<&Arc<Permit>> {
        let digest = shown.digest();
        let mut found = None;
        for (known, permit) in &self.tokens {
            if known.is(&digest) {
                found = Some(permit);
            }
        }
        found
    }
}

impl low::Token {
    fn read(self) -> Result<(Option<Digest>, Permit), String> {
        let low::Token { name, sha256, may, pools, most_units, clients, expires } = self;
        if !is_name(&name) {
            return Err("a name has 1 to 128 letters, digits, and . _ - :".into());
        }
        let digest = sha256.map(|text| text.parse()).transpose();
        let digest: Option<Digest> = digest.map_err(|error| format!("sha256: {error}"))?;
        let rights = may.iter().map(|word| word.parse()).collect::<Result<_, _>>();
        let patterns = |texts: &[String]| texts.iter().map(|text| text.parse()).collect();
        let pools: Result<Vec<_>, quorate_trust::PatternError> = patterns(&pools);
        let clients: Result<Vec<_>, quorate_trust::PatternError> = patterns(&clients);
        let expires = expires.map(|text| text.parse()).transpose();
        if most_units == Some(0) {
            return Err("most_units = 0: leave `claim` out of `may` instead".into());
        }
        let permit = Permit {
            name,
            may: rights.map_err(|error: quorate_trust::RightsError| format!("may: {error}"))?,
            pools: pools.map_err(|error| format!("pools: {error}"))?,
            most_units,
            clients: clients.map_err(|error| format!("clients: {error}"))?,
            expires: expires.map_err(|error| format!("expires: {error}"))?,
        };
        Ok((digest, permit))
    }
}

/// What a token of this name may do that has this right of the charter, read as a file's is.
///
/// # Errors
/// No file could say that.
pub(crate) fn permit(name: &str, right: &Text) -> Result<Permit, String> {
    let right: low::Right = right.fields()?;
    let low::Right { may, pools, most_units, clients } = right;
    let (name, sha256, expires) = (name.to_owned(), None, None);
    let token = low::Token { name, sha256, may, pools, most_units, clients, expires };
    Ok(token.read()?.1)
}

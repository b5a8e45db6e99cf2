//! Whom a node knows, and what each may do: `[[tokens]]` and `[rights]`.

use std::sync::Arc;

use quorate_trust::{Digest, Permit, Secret, is_name};

use super::low;

/// Most tokens of a file: every request is compared with all of them.
const TOKENS_MAX: usize = 1000;

/// Who may do what, where that is not open to everybody.
#[derive(Clone, Debug)]
pub struct Guarded {
    tokens: Vec<(Digest, Arc<Permit>)>,
    /// Whether anybody may read what the node counts, of all pools.
    pub open_metrics: bool,
}

impl Guarded {
    /// Nothing if the file has neither tokens nor rights.
    pub(super) fn read(
        tokens: Vec<low::Token>,
        rights: Option<low::Rights>,
    ) -> Result<Option<Guarded>, String> {
        if tokens.is_empty() && rights.is_none() {
            return Ok(None);
        }
        if tokens.len() > TOKENS_MAX {
            return Err(format!("{} tokens: at most {TOKENS_MAX} are possible", tokens.len()));
        }
        let mut known: Vec<(Digest, Arc<Permit>)> = Vec::new();
        for token in tokens {
            let name = token.name.clone();
            let (digest, permit) =
                token.read().map_err(|what| format!("token {name:?}: {what}"))?;
            if known.iter().any(|(_, other)| other.name == name) {
                return Err(format!("two tokens are named {name:?}: claims belong to names"));
            }
            if let Some((_, other)) = known.iter().find(|(other, _)| other.is(&digest)) {
                return Err(format!("tokens {:?} and {name:?} are the same", other.name));
            }
            known.push((digest, Arc::new(permit)));
        }
        let open_metrics = rights.is_some_and(|rights| rights.open_metrics);
        Ok(Some(Guarded { tokens: known, open_metrics }))
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
    fn read(self) -> Result<(Digest, Permit), String> {
        let low::Token { name, sha256, may, pools, most_units, clients, expires } = self;
        if !is_name(&name) {
            return Err("a name has 1 to 128 letters, digits, and . _ - :".into());
        }
        let digest: Digest = sha256.parse().map_err(|error| format!("sha256: {error}"))?;
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

//! Who is let in by the charter: its tokens and rights, taken up by this node, shown and changed.
//!
//! A token is a digest, a day on which it ends and the name of a right; a right is what an entry of
//! `[[tokens]]` says beside that, and is read by the same code. The charter keeps no secret:
//! whoever makes a token draws it, and sends the digest.
//!
//! A node that starts lets nobody in by what it knew before it stopped, until a majority has told
//! it what became of that meanwhile: not even its own disk says what it had obeyed by then, since
//! how far the log is in force is written down later than it is obeyed. A node that ran all the
//! time and reaches no majority goes by what it knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_api::{
    AmendRequest, Problem, RightView, RightsView, TokenRequest, TokenView, TokensView,
};
use quorate_charter::{Change, Charter, Council, Kept, Token};
use quorate_trust::{Date, Demand, Digest, Permit, Right, is_name};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::pools::{Plan, conflict, wrong};
use super::{Hall, Part, locked, since_1970};
use crate::config::{Guarded, Text, permit};

/// For so long after the start of a node whoever shows a token that it does not know waits for a
/// majority, and is told to come again afterwards.
const TO_LEARN: Duration = Duration::from_secs(5);
/// How soon it asks again.
const AGAIN: Duration = Duration::from_millis(50);
/// Least time from one round to the next that are begun for tokens which nobody knows: whoever
/// tries many must not keep the charter busy.
const BETWEEN: Duration = Duration::from_millis(100);
/// Most tokens, and most rights: every request is compared with all tokens.
const MOST: usize = 1000;

type Rights = BTreeMap<String, Kept<String>>;
type Tokens = BTreeMap<String, Kept<Token>>;

/// What this node took up.
#[derive(Debug)]
pub(super) struct Trusted {
    started: Instant,
    /// Whether a majority has told this node since then who is let in.
    confirmed: watch::Sender<bool>,
    taken: Mutex<(Rights, Tokens)>,
    /// When the last round began by which somebody wanted to know of a new token, and whether it
    /// was answered.
    asked: tokio::sync::Mutex<Option<(Instant, bool)>>,
}

impl Trusted {
    pub(super) fn new() -> Trusted {
        let (started, confirmed) = (Instant::now(), watch::Sender::default());
        Trusted { started, confirmed, taken: Mutex::default(), asked: Default::default() }
    }
}

/// Has this node know who is let in, as soon as it can.
pub(super) async fn learn(hall: Arc<Hall>, part: Part) {
    while part.read().await.is_err() {
        sleep(AGAIN).await;
    }
    hall.confirmed(&part);
}

impl Hall {
    /// A majority has told this node who is let in.
    fn confirmed(&self, part: &Part) {
        if !self.trusted.confirmed.send_replace(true) {
            self.let_in_by(part);
        }
    }

    /// Lets in whoever the charter lets in now, as far as this node has applied it, and nobody
    /// else.
    pub(super) fn let_in_by(&self, part: &Part) {
        if !*self.trusted.confirmed.borrow() {
            return;
        }
        let mut taken = locked(&self.trusted.taken);
        // Read under the lock: what was taken up last is the newest.
        let charter = Arc::clone(&part.watch().borrow().charter);
        if (&taken.0, &taken.1) == (charter.rights(), charter.tokens()) {
            return;
        }
        *taken = (charter.rights().clone(), charter.tokens().clone());
        let guard = &self.config.guarded;
        guard.add(permits(&taken.0, &taken.1));
        tracing::info!(tokens = taken.1.len(), version = charter.version(), "tokens changed");
        for name in guard.hidden() {
            tracing::warn!(
                "token {name:?} of the charter is worth nothing here: this node's file has an \
                 entry of this name, or the same token"
            );
        }
    }

    /// Returns when this node knows every token that was made before this was called; whether it
    /// does, since it may not be able to find out.
    pub(crate) async fn hear_of_tokens(&self) -> bool {
        if self.asks_for_tokens().await {
            return true;
        }
        // A node that has just started may yet hear of it.
        let Trusted { started, confirmed, .. } = &self.trusted;
        let mut confirmed = confirmed.subscribe();
        let before = *confirmed.borrow();
        let now = timeout_at(*started + TO_LEARN, confirmed.wait_for(|now| *now)).await;
        !before && now.is_ok_and(|now| now.is_ok()) && self.asks_for_tokens().await
    }

    /// Asks a majority which tokens there are, together with whoever else wants to know; whether
    /// it was answered, and this node obeys.
    async fn asks_for_tokens(&self) -> bool {
        let asked = Instant::now();
        let mut last = self.trusted.asked.lock().await;
        let answered = match *last {
            // Another's round began after this was called.
            Some((began, answered)) if began > asked => answered,
            before => {
                if let Some((began, _)) = before {
                    sleep_until(began + BETWEEN).await;
                }
                let began = Instant::now();
                let answered = self.catch_up().await.is_ok();
                *last = Some((began, answered));
                answered
            }
        };
        drop(last);
        let Some(part) = self.part().filter(|_| answered) else { return false };
        self.confirmed(&part);
        true
    }

    /// Why nobody is let in by a token of the charter, if nobody is.
    pub(crate) fn distrust(&self) -> Option<&'static str> {
        let confirmed = *self.trusted.confirmed.borrow();
        (!confirmed).then_some(
            "this node lets nobody in by a token of the charter before a majority has told it, \
             since it started, which ones are good",
        )
    }

    /// Whether this is the digest of this token, as far as this node has applied the charter.
    pub(crate) fn has_token(&self, name: &str, digest: &Digest) -> bool {
        self.token(name).is_some_and(|kept| Digest::from(kept.value.digest).is(digest))
    }

    fn token(&self, name: &str) -> Option<Kept<Token>> {
        self.part()?.watch().borrow().charter.tokens().get(name).cloned()
    }

    /// All tokens that are good here, and those of the charter that are not.
    pub(crate) async fn tokens(&self) -> TokensView {
        let (charter, problem) = self.charter_now().await;
        let file = self.config.guarded.file();
        let hidden = self.config.guarded.hidden();
        let listed = file.iter().flat_map(|file| file.tokens()).map(|permit| TokenView {
            source: format!("file of {}", self.config.name()),
            ..view(permit)
        });
        let of_charter = charter.tokens().iter().map(|(name, kept)| {
            let permit = read(charter.rights(), name, &kept.value).ok();
            let none = Permit { may: quorate_trust::Rights::NONE, ..Permit::everything(name) };
            TokenView {
                source: "charter".into(),
                right: Some(kept.value.right.clone()),
                generation: kept.generation,
                hidden: hidden.contains(name),
                ..view(&permit.unwrap_or(none))
            }
        });
        let tokens = listed.chain(of_charter).collect();
        TokensView { version: charter.version(), tokens, problem }
    }

    /// All rights that tokens of the charter can have.
    pub(crate) async fn rights(&self) -> RightsView {
        let (charter, problem) = self.charter_now().await;
        let row = |(name, kept): (&String, &Kept<String>)| RightView {
            name: name.clone(),
            generation: kept.generation,
            definition: kept.value.clone(),
            tokens: holders(charter.tokens(), name),
        };
        let rights = charter.rights().iter().map(row).collect();
        RightsView { version: charter.version(), rights, problem }
    }

    /// The charter as this node has applied it, and why there may be a later one.
    async fn charter_now(&self) -> (Arc<Charter>, Option<String>) {
        let problem = self.catch_up().await.err().map(|problem| problem.detail);
        let now = self.part().map(|part| Arc::clone(&part.watch().borrow().charter));
        (now.unwrap_or_default(), problem)
    }

    /// The plan that makes a token, or gives one another secret.
    ///
    /// # Errors
    /// It cannot be, or there is one of this name, or not of the generation that the asker saw.
    pub(crate) fn token_plan(
        &self,
        charter: &Charter,
        name: &str,
        request: &TokenRequest,
    ) -> Result<Plan, Problem> {
        let TokenRequest { sha256, right, definition, expires, if_generation, dry_run } = request;
        called("token", name)?;
        let digest = sha256.parse().map_err(|error| wrong(format!("sha256: {error}")))?;
        self.unique(charter, name, &digest)?;
        let expires = expires.as_deref().map(str::parse::<Date>).transpose();
        let expires = expires.map_err(|error| wrong(format!("expires: {error}")))?;
        if let Some(on) = expires.filter(|on| on.since_1970() <= since_1970()) {
            return Err(wrong(format!("a token that expired on {on} lets nobody in")));
        }
        let mut changes = Vec::new();
        let right = match (right, definition) {
            (Some(right), None) if charter.rights().contains_key(right) => right,
            (Some(right), None) => {
                return Err(wrong(format!(
                    "there is no right {right:?}: make it with `quorate right set {right} --may \
                     RIGHTS --pools PATTERNS`"
                )));
            }
            (None, Some(text)) => {
                changes.extend(own_right(charter, name, text)?);
                &name.to_owned()
            }
            _ => return Err(wrong("say either `right` or `definition`".into())),
        };
        let kept = charter.tokens().get(name);
        let now = kept.map_or(0, |kept| kept.generation);
        match (kept, if_generation) {
            (_, Some(wanted)) if *wanted != now => return Err(seen("token", name, *wanted, now)),
            (Some(_), None) => {
                return Err(conflict(format!(
                    "token {name:?} is there already, of generation {now}: `quorate token rotate \
                     {name}` gives it another secret, `quorate token revoke {name}` takes it away"
                )));
            }
            (None, _) if charter.tokens().len() >= MOST => {
                return Err(conflict(format!("there are {MOST} tokens, and no more are possible")));
            }
            _ => {}
        }
        let until = expires.map_or_else(|| "for ever".into(), |on| format!("until {on}"));
        let done = if kept.is_some() { "has another secret" } else { "is made" };
        let words = vec![format!("token {name} {done}: right {right}, {until}")];
        let token = Token {
            digest: digest.bytes(),
            right: right.clone(),
            expires: expires.map(|on| on.since_1970().as_secs()),
        };
        let mut after = charter.tokens().clone();
        after.insert(name.to_owned(), Kept { generation: now, value: token.clone() });
        self.still_administered(charter, (charter.rights(), &after))?;
        let (id, token, if_generation) = (name.to_owned(), Some(token), Some(now));
        changes.push(Change::Token { id, token, if_generation });
        Ok(Plan { changes: if *dry_run { Vec::new() } else { changes }, words })
    }

    /// Whether nobody else goes by this name, and this token is nobody's.
    fn unique(&self, charter: &Charter, name: &str, digest: &Digest) -> Result<(), Problem> {
        let Some(file) = self.config.guarded.file() else {
            return Err(conflict(
                "this node is open to whoever reaches it, and asks nobody for a token: put `rights \
                 = {}` into the file of every node first, and see docs/rights.md"
                    .into(),
            ));
        };
        if file.names(name) {
            return Err(conflict(format!(
                "the file of this node has a token or a certificate of the name {name:?}, which \
                 counts here, and claims belong to names: choose another, or take that entry out \
                 of every node's file first"
            )));
        }
        let same = |(other, kept): &(&String, &Kept<Token>)| {
            *other != name && Digest::from(kept.value.digest).is(digest)
        };
        let other = charter.tokens().iter().find(same).map(|(other, _)| other.clone());
        match other.or_else(|| file.token(digest).map(|permit| permit.name.clone())) {
            Some(other) => Err(conflict(format!("tokens {other:?} and {name:?} are the same"))),
            None => Ok(()),
        }
    }

    /// The plan that takes a token away.
    ///
    /// # Errors
    /// It is not there, or not of the generation that the asker saw, or the last of its kind.
    pub(crate) fn revocation(
        &self,
        charter: &Charter,
        name: &str,
        (if_generation, dry_run): (Option<u64>, bool),
    ) -> Result<Plan, Problem> {
        let Some(kept) = charter.tokens().get(name) else {
            return Err(match self.config.guarded.file().is_some_and(|file| file.names(name)) {
                true => conflict(format!(
                    "{name:?} is in the file of this node, and is taken away there"
                )),
                false => wrong(format!("there is no token {name:?}")),
            });
        };
        if let Some(wanted) = if_generation.filter(|wanted| *wanted != kept.generation) {
            return Err(seen("token", name, wanted, kept.generation));
        }
        let mut after = charter.tokens().clone();
        after.remove(name);
        self.still_administered(charter, (charter.rights(), &after))?;
        let right = &kept.value.right;
        let mut words = vec![format!("token {name} is taken away")];
        if holders(&after, right).is_empty() {
            words.push(format!("no token has right {right} any more"));
        }
        let (id, if_generation) = (name.to_owned(), Some(kept.generation));
        let changes = vec![Change::Token { id, token: None, if_generation }];
        Ok(Plan { changes: if dry_run { Vec::new() } else { changes }, words })
    }

    /// The plan that makes a right, or changes one.
    ///
    /// # Errors
    /// It cannot be, or is not of the generation that the asker saw.
    pub(crate) fn right_plan(
        &self,
        charter: &Charter,
        name: &str,
        (fields, request): (&Text, &AmendRequest),
    ) -> Result<Plan, Problem> {
        called("right", name)?;
        let kept = charter.rights().get(name);
        let now = kept.map_or(0, |kept| kept.generation);
        if let Some(wanted) = request.if_generation.filter(|wanted| *wanted != now) {
            return Err(seen("right", name, wanted, now));
        }
        if kept.is_none() && charter.rights().len() >= MOST {
            return Err(conflict(format!("there are {MOST} rights, and no more are possible")));
        }
        let before = kept.map(|kept| text(name, &kept.value)).transpose()?;
        let is = before.clone().unwrap_or_default().with(fields, &request.without);
        sound(name, &is)?;
        let words = match &before {
            None => format!("right {name} is made: {}", is.line()),
            Some(before) => {
                let differs = before.differences(&is);
                if differs.is_empty() {
                    let words = vec![format!("right {name} is there as it should be")];
                    return Ok(Plan { changes: Vec::new(), words });
                }
                let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
                format!("right {name} is changed: {}", differs.join(", "))
            }
        };
        let mut words = vec![words];
        match &holders(charter.tokens(), name)[..] {
            [] => {}
            tokens => words.push(format!("tokens that have it: {}", tokens.join(", "))),
        }
        let mut after = charter.rights().clone();
        after.insert(name.to_owned(), Kept { generation: now, value: is.lines() });
        self.still_administered(charter, (&after, charter.tokens()))?;
        let changes = vec![Change::Right {
            name: name.to_owned(),
            definition: Some(is.lines()),
            if_generation: Some(now),
        }];
        Ok(Plan { changes: if request.dry_run { Vec::new() } else { changes }, words })
    }

    /// The plan that takes a right away.
    ///
    /// # Errors
    /// It is not there, or not of the generation that the asker saw, or a token has it.
    pub(crate) fn right_deletion(
        charter: &Charter,
        name: &str,
        (if_generation, dry_run): (Option<u64>, bool),
    ) -> Result<Plan, Problem> {
        let Some(kept) = charter.rights().get(name) else {
            return Err(wrong(format!("there is no right {name:?}")));
        };
        if let Some(wanted) = if_generation.filter(|wanted| *wanted != kept.generation) {
            return Err(seen("right", name, wanted, kept.generation));
        }
        let tokens = holders(charter.tokens(), name);
        if !tokens.is_empty() {
            return Err(conflict(format!(
                "right {name:?} is that of {}: take these tokens away first, with `quorate token \
                 revoke`",
                tokens.join(", ")
            )));
        }
        let (definition, if_generation) = (None, Some(kept.generation));
        let changes = vec![Change::Right { name: name.to_owned(), definition, if_generation }];
        let words = vec![format!("right {name} is deleted")];
        Ok(Plan { changes: if dry_run { Vec::new() } else { changes }, words })
    }

    /// Whether somebody could still change all this at this node, if somebody can now: nobody
    /// should lock everybody out by mistake.
    fn still_administered(
        &self,
        charter: &Charter,
        (rights, tokens): (&Rights, &Tokens),
    ) -> Result<(), Problem> {
        let (guard, now) = (&self.config.guarded, since_1970());
        let all = Demand { right: Right::Admin, pool: None, units: None };
        let may = |permit: &Permit| permit.decide(all, now).is_ok();
        let listed = |file: Arc<Guarded>| file.permits().any(|permit| may(permit));
        let otherwise = guard.admin().is_some()
            || self.config.listen_local.is_some()
            || guard.file().is_some_and(listed);
        let by = |rights, tokens| permits(rights, tokens).iter().any(|(_, permit)| may(permit));
        if otherwise || by(rights, tokens) || !by(charter.rights(), charter.tokens()) {
            return Ok(());
        }
        Err(conflict(
            "nobody could administer this node any more: make another token with `admin` on all \
             pools first"
                .into(),
        ))
    }
}

/// Who is let in, and what each may do. A right that this node cannot read lets nobody in.
fn permits(rights: &Rights, tokens: &Tokens) -> Vec<(Digest, Permit)> {
    let each = tokens.iter().filter_map(|(name, Kept { value, .. })| {
        let permit = read(rights, name, value);
        let permit = permit.inspect_err(|why| {
            tracing::error!(token = name, why, "this node cannot read a right of the charter");
        });
        Some((Digest::from(value.digest), permit.ok()?))
    });
    each.collect()
}

fn read(rights: &Rights, name: &str, token: &Token) -> Result<Permit, String> {
    let kept = rights.get(&token.right).ok_or("it is not there")?;
    let permit = permit(name, &Text::read(&kept.value)?)?;
    let expires = token.expires.map(|seconds| Date::after(Duration::from_secs(seconds)));
    Ok(Permit { expires, ..permit })
}

fn view(permit: &Permit) -> TokenView {
    let Permit { name, may, pools, most_units, clients, expires } = permit;
    TokenView {
        name: name.clone(),
        source: String::new(),
        right: None,
        generation: 0,
        hidden: false,
        may: may.named().map(|right| right.word().to_owned()).collect(),
        pools: pools.iter().map(ToString::to_string).collect(),
        most_units: *most_units,
        clients: clients.iter().map(ToString::to_string).collect(),
        expires: expires.map(|on| on.to_string()),
    }
}

/// The tokens that have this right.
fn holders(tokens: &Tokens, right: &str) -> Vec<String> {
    let has = |(_, kept): &(&String, &Kept<Token>)| kept.value.right == right;
    tokens.iter().filter(has).map(|(name, _)| name.clone()).collect()
}

/// The change that makes the right of a token that is to have one of its own, unless it is there.
fn own_right(charter: &Charter, name: &str, definition: &str) -> Result<Option<Change>, Problem> {
    let is = text(name, definition)?;
    sound(name, &is)?;
    match charter.rights().get(name) {
        Some(kept) if kept.value == is.lines() => return Ok(None),
        Some(_) => {
            return Err(conflict(format!(
                "there is a right {name:?}, which is another: say --right {name} to give the token \
                 that one, or change it with `quorate right set {name}`"
            )));
        }
        None if charter.rights().len() >= MOST => {
            return Err(conflict(format!("there are {MOST} rights, and no more are possible")));
        }
        None => {}
    }
    let (definition, if_generation) = (Some(is.lines()), Some(0));
    Ok(Some(Change::Right { name: name.to_owned(), definition, if_generation }))
}

fn text(name: &str, definition: &str) -> Result<Text, Problem> {
    Text::read(definition).map_err(|why| wrong(format!("right {name:?}: {why}")))
}

fn sound(name: &str, is: &Text) -> Result<(), Problem> {
    permit(name, is).map(drop).map_err(|why| wrong(format!("right {name:?}: {why}")))
}

fn called(what: &str, name: &str) -> Result<(), Problem> {
    if is_name(name) {
        return Ok(());
    }
    let name: String = name.chars().take(quorate_trust::NAME_MAX).collect();
    Err(wrong(format!("{name:?} is no name of a {what}: 1 to 128 letters, digits, and . _ - :")))
}

fn seen(what: &str, name: &str, wanted: u64, now: u64) -> Problem {
    let is = match now {
        0 => "is not there".to_owned(),
        now => format!("is of generation {now}"),
    };
    let then = match wanted {
        0 => "was not to be there".to_owned(),
        wanted => format!("not {wanted}"),
    };
    conflict(format!(
        "{what} {name:?} {is}, {then}: look at it again with `quorate {what} show {name}`, then \
         change it"
    ))
}

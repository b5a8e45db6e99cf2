//! Who asks, and whether it may: the one place that decides.
//!
//! The door makes a [`Caller`] of whoever connects, and what a request or a greeting shows tells
//! more about it: a token, in an HTTP header or on the client link. Whatever a caller wants from
//! the engine passes [`decide`] first, over HTTP and over the client link alike
//! ([`crate::app::App`]), and the engine is told who it was.
//!
//! Without `[[tokens]]` and `[rights]` a node is open to whoever reaches it, and listens on
//! loopback addresses only; if the configuration has an `admin_token`, taking claims back and
//! administering pools needs it. With them nothing is open but health, `admin_token` may do
//! everything, and each token what its permit says (`quorate_trust::Permit`). A pool on which a
//! caller has no right does not exist for it: it is answered as for a pool that nobody has heard
//! of.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_api::{Problem, ProblemKind};
use quorate_trust::{Demand, Identity, Kind, Permit, Refusal, Right, Secret, TokenError};
use quorate_wire::order::Ordered;
use quorate_wire::survey::Question;

use crate::admission;
use crate::config::{Config, Secret as AdminToken};
use crate::crowd::Seat;
use crate::engine::{Ask, Request};

/// Who asks, as far as this node knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// Somebody who showed nothing.
    Anonymous,
    /// Somebody who showed a token that gives no rights; and what is wrong with its form, if that
    /// is why.
    Stranger(Option<TokenError>),
    /// Somebody who showed a token that this node does not know, while it cannot find out whether
    /// that is new.
    Unheard,
    /// Whoever has a token of the configuration or of the charter.
    Holder(Arc<Permit>),
    /// Whoever has shown the administrator's token: this one.
    Bearer(Arc<AdminToken>),
    /// Whoever runs this process: root and its own user, on its Unix socket; and the node itself.
    Administrator,
    /// Somebody who may do nothing: shows that everybody is asked for its rights.
    #[cfg(test)]
    Nobody,
}

/// Where a caller calls from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Whence {
    /// The node itself.
    Node,
    /// An address of the network.
    Address(IpAddr),
    /// This machine, by the Unix socket, as this user.
    Local { user: u32 },
}

/// As logs show it.
impl fmt::Display for Whence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whence::Node => f.write_str("this node"),
            Whence::Address(address) => address.fmt(f),
            Whence::Local { user } => write!(f, "local user {user}"),
        }
    }
}

/// Who is at the other end of a connection, before any request shows more.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) caller: Caller,
    pub(crate) whence: Whence,
    /// Whether nobody else hears what is said, and no page of another site can lead here: TLS, or
    /// the Unix socket.
    pub(crate) private: bool,
    /// Where the connection is counted for whoever shows something on it.
    pub(crate) seat: Option<Arc<Seat>>,
}

/// What a caller wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// To know whether the node lives and is ready.
    Health,
    /// To know what the node counts.
    Measure,
    /// To look.
    See,
    /// To know how a claim stands: whoever made it may, too.
    Read,
    /// To make, renew and end claims.
    Claim,
    /// To take somebody else's claim back.
    Revoke,
    /// To change what a pool is, or to interfere with it.
    Admin,
    /// To know who did what, in all pools.
    Audit,
    /// To change who belongs to the cluster.
    Members,
    /// To see and change who is let in.
    Tokens,
}

impl Action {
    /// The rights of which one will do, where tokens have rights.
    fn rights(self) -> &'static [Right] {
        match self {
            Action::Health => &[],
            Action::Measure | Action::See => &[Right::See],
            Action::Read => &[Right::See, Right::Claim, Right::Revoke],
            Action::Claim => &[Right::Claim],
            Action::Revoke => &[Right::Revoke],
            Action::Admin | Action::Audit | Action::Members | Action::Tokens => &[Right::Admin],
        }
    }

    /// What an order takes.
    pub(crate) fn of_order(what: &Ordered) -> Action {
        match what {
            Ordered::Revoke { .. } => Action::Revoke,
            Ordered::Drain { .. } | Ordered::Restore { .. } | Ordered::Relabel { .. } => {
                Action::Admin
            }
        }
    }

    /// As the audit has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Action::Health => "health",
            Action::Measure => "metrics",
            Action::See => "see",
            Action::Read => "read a claim",
            Action::Claim => "claim",
            Action::Revoke => "revoke",
            Action::Admin => "admin",
            Action::Audit => "audit",
            Action::Members => "members",
            Action::Tokens => "tokens",
        }
    }
}

impl Caller {
    /// Whoever shows this certificate: one of a client that the configuration knows, or nobody.
    pub(crate) fn certified(config: &Config, shown: Option<&Identity>) -> Self {
        let known = shown.filter(|it| it.kind == Kind::Client && it.cluster == config.cluster);
        let permit = known.zip(config.guarded.now());
        match permit.and_then(|(it, guarded)| guarded.certified(&it.name).cloned()) {
            Some(permit) => Caller::Holder(permit),
            None => Caller::Anonymous,
        }
    }

    /// The same caller, who has shown this token with a request. Who is an administrator without
    /// one stays that: a token which nobody knows any more must not stand in the way back in.
    pub(crate) fn shows(self, config: &Config, token: Option<&str>) -> Self {
        let Some(shown) = token else { return self };
        if self == Caller::Administrator {
            return self;
        }
        match (config.guarded.admin(), config.guarded.now()) {
            (Some(token), _) if token.is(shown) => Caller::Bearer(token),
            (None, None) => self,
            (Some(_), None) => Caller::Stranger(None),
            (_, Some(guarded)) => match Secret::from_str(shown) {
                Ok(secret) => match guarded.whose(&secret) {
                    Some(permit) => Caller::Holder(Arc::clone(permit)),
                    None => Caller::Stranger(None),
                },
                Err(wrong) => Caller::Stranger(Some(wrong)),
            },
        }
    }
}

impl Caller {
    /// Whether it is known who it is: more is read from those, at once.
    pub(crate) fn is_known(&self, config: &Config) -> bool {
        match self {
            Caller::Holder(_) | Caller::Bearer(_) | Caller::Administrator => true,
            // Where nobody is asked for anything, everybody is as good as known.
            _ => config.guarded.now().is_none(),
        }
    }
}

/// As logs show it.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Caller::Anonymous => "anonymous",
            Caller::Stranger(_) | Caller::Unheard => "stranger",
            Caller::Holder(permit) => &permit.name,
            Caller::Bearer(_) | Caller::Administrator => "administrator",
            #[cfg(test)]
            Caller::Nobody => "nobody",
        })
    }
}

/// Why a caller may not do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// It showed nothing.
    Nothing,
    /// It showed something else.
    Strange(Option<TokenError>),
    /// It showed what may be new.
    Unheard,
    /// What it showed does not go so far.
    Permit(Refusal),
    /// It is no administrator, where only those are told apart.
    Administrators(&'static str),
}

/// The same as [`decide`], in the words of an answer.
///
/// # Errors
/// It may not; nothing changed.
#[cfg(test)]
pub(crate) fn authorize(
    config: &Config,
    caller: &Caller,
    pool: Option<&str>,
    action: Action,
) -> Result<(), Problem> {
    decide(config, caller, pool, action, None).map_err(|why| why.problem(pool))
}

/// The same, for whoever wants nothing but an answer.
pub(crate) fn may(config: &Config, caller: &Caller, pool: Option<&str>, action: Action) -> bool {
    decide(config, caller, pool, action, None).is_ok()
}

/// Whether this caller may do that, to this pool or, without one, to the node; and, if it is a
/// claim, for so many units.
///
/// # Errors
/// It may not; why.
pub(crate) fn decide(
    config: &Config,
    caller: &Caller,
    pool: Option<&str>,
    action: Action,
    units: Option<u32>,
) -> Result<(), Why> {
    let Some(guarded) = config.guarded.now() else {
        return decide_openly(config, caller, action);
    };
    let open = match action {
        Action::Health => true,
        Action::Measure => guarded.open_metrics,
        _ => false,
    };
    match caller {
        _ if open => Ok(()),
        Caller::Administrator => Ok(()),
        Caller::Bearer(shown) if is_current(config, shown) => Ok(()),
        Caller::Bearer(_) => Err(Why::Strange(None)),
        Caller::Anonymous => Err(Why::Nothing),
        Caller::Stranger(wrong) => Err(Why::Strange(*wrong)),
        Caller::Unheard => Err(Why::Unheard),
        // Its token was taken away, or changed, since it was let in.
        Caller::Holder(permit) if !guarded.still(permit) => Err(Why::Strange(None)),
        Caller::Holder(permit) => {
            let now = since_1970();
            let one = |right: &Right| permit.decide(Demand { right: *right, pool, units }, now);
            let decided: Vec<Result<(), Refusal>> = action.rights().iter().map(one).collect();
            match decided.first() {
                _ if decided.contains(&Ok(())) => Ok(()),
                // Where several rights would do, the first asks for least.
                Some(Err(refusal)) => Err(Why::Permit(*refusal)),
                _ => Ok(()),
            }
        }
        #[cfg(test)]
        Caller::Nobody => Err(Why::Nothing),
    }
}

/// Whether what somebody was let in with still lets in, whatever it may do.
///
/// # Errors
/// It was taken away, changed, or has expired; or nobody could say whether it lets in.
pub(crate) fn let_in(config: &Config, caller: &Caller) -> Result<(), Why> {
    match caller {
        Caller::Holder(permit) => {
            // Without rules everything is open to everybody.
            let Some(guarded) = config.guarded.now() else { return Ok(()) };
            match permit.expires {
                _ if !guarded.still(permit) => Err(Why::Strange(None)),
                Some(on) if since_1970() >= on.since_1970() => {
                    Err(Why::Permit(Refusal::Expired { on }))
                }
                _ => Ok(()),
            }
        }
        Caller::Bearer(shown) if !is_current(config, shown) => Err(Why::Strange(None)),
        Caller::Unheard => Err(Why::Unheard),
        _ => Ok(()),
    }
}

/// Whether `admin_token` is still what somebody was let in with.
fn is_current(config: &Config, shown: &AdminToken) -> bool {
    config.guarded.admin().is_some_and(|token| *token == *shown)
}

/// Where tokens have no rights: administrators are told apart from everybody else.
fn decide_openly(config: &Config, caller: &Caller, action: Action) -> Result<(), Why> {
    let open = match action {
        Action::Revoke | Action::Admin | Action::Audit | Action::Members | Action::Tokens => {
            config.guarded.admin().is_none()
        }
        _ => true,
    };
    match caller {
        Caller::Administrator => Ok(()),
        Caller::Bearer(shown) if is_current(config, shown) => Ok(()),
        #[cfg(test)]
        Caller::Nobody if action != Action::Health => {
            Err(Why::Administrators("this caller may do nothing"))
        }
        _ if open => Ok(()),
        Caller::Stranger(_) | Caller::Bearer(_) => {
            Err(Why::Administrators("the token is not the administrator's"))
        }
        _ => Err(Why::Administrators("this cluster asks for the administrator's token")),
    }
}

const HOW: &str = "Send a token as `Authorization: Bearer TOKEN`, or give the command \
                   QUORATE_TOKEN, --token-file, or --cert and --key";

impl Why {
    /// In a few words that are the same every time, for counting and for the audit.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Why::Nothing => "no token",
            Why::Strange(Some(_)) => "no token of ours",
            Why::Strange(None) => "unknown token",
            Why::Unheard => "token not heard of",
            Why::Permit(Refusal::Expired { .. }) => "expired",
            Why::Permit(Refusal::Hidden) => "hidden pool",
            Why::Permit(Refusal::Lacks(_)) => "lacks the right",
            Why::Permit(Refusal::TooMany { .. }) => "too many units",
            Why::Administrators(_) => "no administrator",
        }
    }

    /// What the caller is told.
    pub(crate) fn problem(self, pool: Option<&str>) -> Problem {
        let unknown = |text: String| {
            Problem::new(ProblemKind::Unauthorized, format!("{text}; nothing changed. {HOW}"))
        };
        let forbidden =
            |text: String| Problem::new(ProblemKind::Forbidden, format!("{text}; nothing changed"));
        match (self, pool) {
            (Why::Nothing, _) => unknown(
                "this cluster asks for a token, or a certificate that its files name".into(),
            ),
            (Why::Strange(Some(wrong)), _) => unknown(wrong.to_string()),
            (Why::Strange(None), _) => unknown("this cluster does not know the token".into()),
            (Why::Unheard, _) => {
                let text = "this node does not know the token, and no majority of the members \
                            that vote answers, which could say whether it is new; nothing changed";
                Problem::new(ProblemKind::Unavailable, text)
            }
            (Why::Permit(Refusal::Expired { on }), _) => {
                unknown(format!("this token expired on {on}"))
            }
            (Why::Permit(Refusal::Hidden), Some(pool)) => admission::unknown_pool(pool),
            (Why::Permit(Refusal::Hidden), None) => forbidden("this token may see no pool".into()),
            (Why::Permit(Refusal::Lacks(right)), _) => {
                forbidden(format!("this token lacks the right `{right}`: ask an administrator"))
            }
            (Why::Permit(Refusal::TooMany { most }), _) => {
                forbidden(format!("this token may claim at most {most} units at once"))
            }
            (Why::Administrators(text), _) => {
                let text = format!("{text}; nothing changed. {HOW}");
                Problem::new(ProblemKind::Forbidden, text)
            }
        }
    }
}

/// What a client of this caller is called that calls itself so. Where tokens have rights, that is
/// a name which its token allows; elsewhere, whatever it says.
///
/// # Errors
/// It may not call itself that; nothing changed.
pub(crate) fn called(caller: &Caller, said: &str) -> Result<String, Problem> {
    let Caller::Holder(permit) = caller else { return Ok(said.to_owned()) };
    let said = (!said.is_empty()).then_some(said);
    permit.client(said).map(str::to_owned).map_err(|_| {
        let patterns: Vec<String> = permit.clients.iter().map(ToString::to_string).collect();
        let text = format!(
            "clients with this token may call themselves {} or {}, or nothing at all; nothing \
             changed. The command says what QUORATE_CLIENT says",
            permit.name,
            patterns.join(" or ")
        );
        Problem::new(ProblemKind::Forbidden, text)
    })
}

fn since_1970() -> Duration {
    // A clock that is before 1970 finds nothing expired, which it cannot know anyway.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    #[cfg(test)]
    let now = now + LATER.get();
    now
}

#[cfg(test)]
thread_local! {
    /// By how much a test is ahead of the clock, in its own thread.
    pub(crate) static LATER: std::cell::Cell<Duration> =
        const { std::cell::Cell::new(Duration::ZERO) };
}

/// The token of an `Authorization` header: `Bearer TOKEN`, or as the password of `Basic`, for those
/// who can do nothing else. Whoever shows something else shows a token that nobody has.
pub(crate) fn token_of(header: &str) -> String {
    let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        return rest.trim().to_owned();
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return String::new();
    }
    let decoded = base64(rest.trim()).and_then(|bytes| String::from_utf8(bytes).ok());
    let password = decoded.as_deref().and_then(|text| text.split_once(':'));
    password.map(|(_, password)| password.to_owned()).unwrap_or_default()
}

/// RFC 4648, section 4, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

impl Request {
    /// What its caller must be allowed to do, and to which pool.
    pub(crate) fn needs(&self) -> (Option<&str>, Action) {
        match self {
            Request::Claim { pool, ask, .. } => (Some(pool), ask.needs()),
            Request::Gather { question: Question::Claim { pool, .. }, .. } => {
                (Some(pool), Action::Read)
            }
            Request::Gather { question, .. } => (question.pool(), Action::See),
            Request::Order { pool, what, .. } => (Some(pool), Action::of_order(what)),
            Request::Pools { .. } | Request::Node(_) => (None, Action::See),
            Request::Measure(_) => (None, Action::Measure),
            Request::Checks(_) => (None, Action::Health),
            Request::Register { pool, .. } | Request::Grants { pool, .. } => {
                (Some(pool), Action::See)
            }
            Request::Owner { pool, .. } | Request::Seen { pool, .. } => (Some(pool), Action::Claim),
            Request::Corrupt { pool, .. } | Request::Fence { pool, .. } => {
                (Some(pool), Action::Admin)
            }
        }
    }
}

impl Ask {
    /// As the audit has it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Ask::Claim { .. } => "claim",
            Ask::Renew { .. } => "renew",
            Ask::End => "release",
            Ask::Status { .. } => "read a claim",
        }
    }

    /// What it takes. Whose the claim may be is looked at as well (`App::own`).
    pub(crate) fn needs(&self) -> Action {
        match self {
            Ask::Claim { .. } | Ask::Renew { .. } | Ask::End => Action::Claim,
            Ask::Status { .. } => Action::Read,
        }
    }
}

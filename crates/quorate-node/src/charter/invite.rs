//! Machines join while everything runs: an administrator invites one, and it comes with the secret
//! of the invitation and a key that it made. Whoever lets it in signs its certificate, and hands it
//! what the file of a member has.
//!
//! Whoever holds the authority's key does that, and every member that was made like this holds it
//! (docs/security.md says what follows from it). The answer may be lost: the same machine, known by
//! its key and the birth of its store, may ask again, and is the same member.

use std::time::{Duration, SystemTime};

use quorate_api::{
    InviteRequest, InviteView, JoinMember, JoinRequest, JoinView, Problem, ProblemKind, format_span,
};
use quorate_charter::{
    About, Birth, Change, Charter, ClusterId, Council, Done, Invitation, Kept, MemberId, Newcomer,
    Request,
};
use quorate_trust::{Authority, Certificate, Date, Lifetime, NodeKey, Secret, is_name};
use tokio::time::Instant;

use super::members::{JOINED, TO_DO, in_trouble, refused};
use super::{Hall, Part, address_of, request_id};
use crate::config::{Address, Config};

/// For how many days a certificate of a node is good.
pub(crate) const CERTIFIED_DAYS: u32 = 90;
/// Longest time for which an invitation is good: a week.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Most members whose addresses an invitation has.
const PLACES: usize = 3;

/// The authority's key and certificates of this node.
pub(crate) struct Seal {
    pub(crate) authority: Authority,
    /// The certificate of the authority whose key that is...
    pub(crate) certificate: Certificate,
    /// ...and all that are trusted, as PEM...
    ca: String,
    /// ...and the key, likewise.
    key: String,
}

impl Seal {
    /// Nothing, if this node does not have the key.
    ///
    /// # Errors
    /// The files are not there, or not good.
    pub(crate) fn read(config: &Config) -> Result<Option<Seal>, String> {
        let Some(tls) = &config.tls else { return Ok(None) };
        let Some(path) = &tls.authority else { return Ok(None) };
        let read = |path: &std::path::Path| {
            let read = std::fs::read_to_string(path);
            read.map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let (ca, key) = (read(&tls.ca)?, read(path)?);
        let (authority, certificate) =
            Authority::among(ca.as_bytes(), &key).map_err(|error| error.to_string())?;
        if authority.cluster() != config.cluster {
            return Err(format!("the authority is that of cluster {}", authority.cluster()));
        }
        Ok(Some(Seal { authority, certificate, ca, key }))
    }

    /// A certificate for a node, and the authority's after it, by which whoever joins knows the
    /// cluster.
    pub(crate) fn sign(
        &self,
        name: &str,
        addresses: &[String],
        key: &[u8],
        now: Duration,
    ) -> Result<String, String> {
        let life = Lifetime { since_1970: now, days: CERTIFIED_DAYS };
        let made = self.authority.node_of(name, addresses, key, life);
        let made = made.map_err(|error| error.to_string())?;
        Ok(made + &self.certificate.to_pem())
    }
}

pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn bad(text: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, text)
}

fn unauthorized(text: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unauthorized, text)
}

/// What is known of a machine that asks to be let in, checked.
struct Candidate {
    name: String,
    digest: [u8; 32],
    birth: Birth,
    key: Vec<u8>,
    /// SHA-256 of the key.
    fingerprint: [u8; 32],
    peers: Address,
    clients: Address,
}

impl Candidate {
    fn read(request: &JoinRequest) -> Result<Candidate, Problem> {
        let JoinRequest { name, secret, key, birth, peers, clients } = request;
        let secret: Secret = secret.parse().map_err(|_| unknown())?;
        if !is_name(name) {
            return Err(bad("name: 1 to 128 letters, digits, and . _ - :; nothing changed"));
        }
        let bytes = |what: &str, text: &str| {
            unhex(text)
                .ok_or_else(|| bad(format!("{what}: write hexadecimal digits; nothing changed")))
        };
        let place = |what: &str, text: &str| {
            let place: Result<Address, _> = text.parse();
            place.map_err(|error| bad(format!("{what}: {error}; nothing changed")))
        };
        let birth: [u8; 16] = bytes("birth", birth)?
            .try_into()
            .map_err(|_| bad("birth: 32 hexadecimal digits; nothing changed"))?;
        let key = bytes("key", key)?;
        Ok(Candidate {
            name: name.clone(),
            digest: secret.digest().bytes(),
            birth: Birth(birth),
            fingerprint: NodeKey::sha256(&key),
            key,
            peers: place("peers", peers)?,
            clients: place("clients", clients)?,
        })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > 1024 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pair = |pair: &[u8]| {
        let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

/// Whoever guesses learns nothing but that.
fn unknown() -> Problem {
    unauthorized(
        "nobody is invited under this name with this secret; nothing changed. It may have been \
         invited again since: `quorate member invite NAME` makes a new invitation",
    )
}

impl Hall {
    /// A machine may join under this name.
    ///
    /// # Errors
    /// Says why not, and that nothing changed.
    pub(crate) async fn invite(
        &self,
        name: &str,
        InviteRequest { expires_s }: InviteRequest,
    ) -> Result<InviteView, Problem> {
        let seal = self.seal()?;
        if !is_name(name) {
            return Err(bad("a name has 1 to 128 letters, digits, and . _ - :; nothing changed"));
        }
        if expires_s == 0 || expires_s > LONGEST.as_secs() {
            return Err(bad(format!(
                "{expires_s} s: an invitation is good for 1s to {}; nothing changed",
                format_span(LONGEST)
            )));
        }
        let no_chance = |error: quorate_trust::TokenError| {
            Problem::new(ProblemKind::Unavailable, format!("{error}; nothing changed"))
        };
        let secret = Secret::random().map_err(no_chance)?;
        let until = Instant::now() + TO_DO;
        let (part, charter) = self.look(until).await?;
        if charter.places().iter().any(|(known, _)| known == name) {
            return Err(refused(format!(
                "the name {name} is taken: a member has it or had it, and names are used once; \
                 nothing changed. Choose another"
            )));
        }
        let invitation = Invitation {
            digest: secret.digest().bytes(),
            expires: since_1970().as_secs().saturating_add(expires_s),
            taken: None,
        };
        let change = Change::Invite {
            name: name.to_owned(),
            invitation: Some(invitation),
            if_generation: None,
        };
        self.ask_for(&part, change, until).await?;
        let invitation = quorate_trust::Invitation {
            name: name.to_owned(),
            places: self.doors(&charter),
            authority: seal.certificate.sha256(),
            secret,
        };
        Ok(InviteView { name: name.to_owned(), invitation: invitation.reveal(), expires_s })
    }

    /// What signs, where members join.
    fn seal(&self) -> Result<Seal, Problem> {
        if !self.config.joins {
            return Err(refused(
                "the members of this cluster are those of its files; nothing changed. Only a \
                 cluster that was made by `quorate serve --new` lets machines join while it runs"
                    .into(),
            ));
        }
        match Seal::read(&self.config) {
            Ok(Some(seal)) => Ok(seal),
            Ok(None) => Err(refused(format!(
                "{} has no key of the authority, and cannot sign certificates; nothing changed. \
                 Ask a member whose file names one ([tls] authority)",
                self.config.name()
            ))),
            Err(why) => Err(Problem::new(
                ProblemKind::Unavailable,
                format!("{} cannot sign certificates: {why}; nothing changed", self.config.name()),
            )),
        }
    }

    /// Where a machine that joins may knock: here first.
    fn doors(&self, charter: &Charter) -> Vec<String> {
        let own = super::addresses(&self.config).into_iter().nth(1);
        let others = charter.members().values().filter(|it| it.name != self.config.name());
        let others = others.filter_map(|it| it.about.addresses.get(1).cloned());
        own.into_iter().chain(others).take(PLACES).collect()
    }

    /// A machine comes with an invitation.
    ///
    /// # Errors
    /// Says why it is not let in, or that this is not known.
    pub(crate) async fn let_in(&self, request: &JoinRequest) -> Result<JoinView, Problem> {
        let seal = self.seal()?;
        let candidate = Candidate::read(request)?;
        // Whoever guesses costs no round of the charter, but for one that all share.
        if self.invitation(&candidate).is_none() {
            self.catch_up().await?;
        }
        let Some(kept) = self.invitation(&candidate) else { return Err(unknown()) };
        if since_1970().as_secs() >= kept.value.expires {
            return Err(unauthorized(
                "this invitation has expired; nothing changed. `quorate member invite NAME` makes \
                 a new one",
            ));
        }
        // Before anybody is a member: what cannot be signed is said now.
        let hosts = [&candidate.peers, &candidate.clients].map(Address::host);
        let mut hosts = hosts.to_vec();
        hosts.dedup();
        let now = since_1970();
        let certificate = seal.sign(&candidate.name, &hosts, &candidate.key, now);
        let certificate = certificate.map_err(|why| bad(format!("{why}; nothing changed")))?;
        let until = Instant::now() + TO_DO;
        let (part, charter) = self.look(until).await?;
        let member = match known(&charter, &candidate)? {
            Some(member) => member,
            None => self.enter(&part, &charter, &candidate, until).await?,
        };
        let (part, charter) = self.look(until).await?;
        let cluster = part.identity().cluster;
        self.told_up_to(charter.version()).await?;
        Ok(self.welcome(&seal, &charter, (cluster, member), certificate))
    }

    fn invitation(&self, candidate: &Candidate) -> Option<Kept<Invitation>> {
        let part = self.part()?;
        let charter = std::sync::Arc::clone(&part.watch().borrow().charter);
        let kept = charter.invitations().get(&candidate.name)?;
        (kept.value.digest == candidate.digest).then(|| kept.clone())
    }

    async fn enter(
        &self,
        part: &Part,
        charter: &Charter,
        candidate: &Candidate,
        until: Instant,
    ) -> Result<MemberId, Problem> {
        let peers = candidate.peers.to_string();
        let there = |it: &quorate_charter::Member| it.about.addresses.first() == Some(&peers);
        if let Some(other) = charter.members().values().find(|it| there(it)) {
            return Err(refused(format!(
                "{} is at {peers} already; nothing changed. Give this machine another address or \
                 other ports",
                other.name
            )));
        }
        let about = About {
            addresses: vec![peers, candidate.clients.to_string()],
            fingerprint: candidate.fingerprint,
            labels: [(JOINED.to_owned(), Date::after(since_1970()).to_string())].into(),
        };
        let newcomer = Newcomer { name: candidate.name.clone(), birth: candidate.birth, about };
        let change = Change::Enter { digest: candidate.digest, newcomer };
        let request = Request::one(request_id(), change);
        loop {
            match part.propose(request.clone()).await {
                Ok(Ok(Done { version })) => return Ok(MemberId(version)),
                // By another of its requests, perhaps: whoever asks again is told.
                Ok(Err(why)) => return Err(refused(why.to_string())),
                Err(trouble) if Instant::now() >= until => return Err(in_trouble(&trouble)),
                Err(_) => tokio::time::sleep(super::members::AGAIN).await,
            }
        }
    }

    fn welcome(
        &self,
        seal: &Seal,
        charter: &Charter,
        (cluster, member): (ClusterId, MemberId),
        certificate: String,
    ) -> JoinView {
        let places = charter.places().into_iter().enumerate();
        let listed = |(place, (name, _)): (usize, (String, MemberId))| JoinMember {
            peers: address_of(charter, &name, place).to_string(),
            name,
        };
        JoinView {
            cluster: self.config.cluster.clone(),
            member: member.0,
            charter: cluster.to_string(),
            epoch: self.config.epoch,
            pace: self.chartered.lines(),
            members: places.map(listed).collect(),
            rights: self.config.guarded.handed().to_string(),
            ca: seal.ca.clone(),
            certificate,
            authority: seal.key.clone(),
        }
    }
}

/// Whether this very machine has been let in before.
fn known(charter: &Charter, candidate: &Candidate) -> Result<Option<MemberId>, Problem> {
    let kept = charter.invitations().get(&candidate.name);
    let kept = kept.filter(|kept| kept.value.digest == candidate.digest).ok_or_else(unknown)?;
    let Some(id) = kept.value.taken else { return Ok(None) };
    let is_it = charter.members().get(&id).is_some_and(|member| {
        (member.birth, member.about.fingerprint) == (candidate.birth, candidate.fingerprint)
    });
    let addresses = [&candidate.peers, &candidate.clients].map(ToString::to_string);
    let moved = charter.members().get(&id).filter(|member| member.about.addresses != addresses);
    match (is_it, moved) {
        (true, None) => Ok(Some(id)),
        (true, Some(member)) => Err(refused(format!(
            "this machine is a member already, at {}; nothing changed. Ask again with the same \
             address and ports",
            member.about.addresses.join(" and ")
        ))),
        (false, _) => Err(unauthorized(
            "this invitation was used: a machine has joined by it; nothing changed. \
             `quorate member invite NAME` makes one for another name",
        )),
    }
}

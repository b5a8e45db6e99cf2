//! Where a replicated document says who decides: how fast it goes.

use std::time::Duration;

use quorate_api::{format_span, parse_span};
use quorate_core::Lease;

use super::low;

/// Shortest licence: it is asked for several times while it lasts, and each answer takes a round
/// among the members.
const LICENCE_MIN: Duration = Duration::from_millis(500);
/// Shortest silence that means anything: members show six times as often that they live.
const SUSPECT_MIN: Duration = Duration::from_millis(500);

/// How the charter of a cluster goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chartered {
    /// How long a node may decide without being told again that it may: L of the charter.
    pub licence: Duration,
    /// How long a member may be silent before others decide in its place.
    pub suspect_after: Duration,
    /// Whether pools of the file were decided by fixed nodes before, and are until the charter has
    /// taken them over.
    pub import: bool,
}

/// Whether members join while nodes run.
pub(super) fn joins(file: &low::File) -> Result<bool, String> {
    let Some(charter) = file.charter.as_ref().filter(|charter| charter.joins) else {
        return Ok(false);
    };
    let lacks = [
        (charter.import, "has members that its charter has always known: take import out"),
        (!charter.enabled, "says who joins: write enabled = true beside it"),
        (file.tls.is_none(), "gives whoever joins a certificate: that takes [tls]"),
        (
            !file.pools.is_empty(),
            "has nodes whose files know nothing of each other: take [[pools]] out, and make pools \
             with `quorate pool create` or `quorate apply`",
        ),
    ];
    match lacks.iter().find(|(lacks, _)| *lacks) {
        Some((_, what)) => Err(format!("joins = true: a cluster that members join {what}")),
        None => Ok(true),
    }
}

impl Chartered {
    /// After how long nobody has a licence that was asked for before, by whatever clock.
    pub(crate) fn rest(&self) -> Duration {
        self.licence.saturating_add(self.licence / 8)
    }

    /// What was written, if it is switched on.
    pub(super) fn read(written: &low::Charter) -> Result<Option<Chartered>, String> {
        let least = |name: &str, text: &str, least: Duration| {
            let span = parse_span(text).map_err(|error| format!("{name}: {error}"))?;
            match span >= least {
                true => Ok(span),
                false => Err(format!("{name} = {text:?}: choose {} or more", format_span(least))),
            }
        };
        let licence = least("licence", &written.licence, LICENCE_MIN)?;
        let suspect_after = least("suspect_after", &written.suspect_after, SUSPECT_MIN)?;
        let import = written.import;
        if import && !written.enabled {
            return Err("import = true: a cluster gets its charter with enabled = true".into());
        }
        Ok(written.enabled.then_some(Chartered { licence, suspect_after, import }))
    }

    /// Whether holders can renew in time when the seat moves: nobody renews from when the node that
    /// decided falls silent to the end of its licence. Charter spec S3 allows half a lease; clients
    /// renew after a third, and `quorate run` ends its command when a quarter is left, which leaves
    /// less than a third, and elections take some of that.
    pub(crate) fn suits(&self, lease: &Lease) -> Result<(), String> {
        let pause = self.suspect_after.saturating_add(self.licence);
        if lease.length() >= pause.saturating_mul(4) {
            return Ok(());
        }
        Err(format!(
            "a lease of {} is too short for a seat that moves: nobody can renew for {} when it \
             does (suspect_after and licence of [charter]), which may be a quarter of a lease at \
             most. \
             Choose {} or more, or name the node that decides: arbiter = \"NAME\"",
            format_span(lease.length()),
            format_span(pause),
            format_span(pause.saturating_mul(4)),
        ))
    }

    /// How long nobody new is granted anything when a node that decides crashes, and nobody else
    /// knows what it gave: until it is missed, until it has no licence, and until its promises are
    /// over.
    pub(crate) fn pause(&self, lease: &Lease) -> Duration {
        self.suspect_after.saturating_add(self.licence).saturating_add(lease.length())
    }

    /// How many of so many members may stay away while it still changes: less than half of those
    /// that vote.
    pub(crate) fn survives(members: usize) -> u32 {
        let voters = members.min(quorate_charter::policy::votes::VOTERS_WANTED);
        u32::try_from(voters.saturating_sub(1) / 2).unwrap_or(u32::MAX)
    }

    /// As a file has it.
    pub(crate) fn lines(&self) -> String {
        let (licence, suspect) = (format_span(self.licence), format_span(self.suspect_after));
        format!("licence = \"{licence}\"\nsuspect_after = \"{suspect}\"\n")
    }

    /// What every member must agree on.
    pub(super) fn canonical(&self) -> String {
        let (licence, suspect) = (self.licence.as_nanos(), self.suspect_after.as_nanos());
        format!("charter {licence} {suspect}\n")
    }
}

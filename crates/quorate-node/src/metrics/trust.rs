//! What is counted of who comes to the doors, and of who is sent away.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quorate_trust::Keys;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct HandshakeLabel {
    from: &'static str,
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// A handshake that has begun. If nobody says how it ended, it was not in time.
#[derive(Debug)]
pub(crate) struct Handshake<'a> {
    trust: &'a Trust,
    from: &'static str,
    outcome: &'static str,
}

impl Handshake<'_> {
    /// It ended so.
    pub(crate) fn ended<T, E>(mut self, how: &Result<T, E>) {
        self.outcome = if how.is_ok() { "done" } else { "failed" };
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        let label = HandshakeLabel { from: self.from, outcome: self.outcome };
        self.trust.handshakes.get_or_create(&label).inc();
    }
}

/// Counters of doors.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    refused: Family<ReasonLabel, Counter>,
    handshakes: Family<HandshakeLabel, Counter>,
    expiry: Family<KindLabel, Gauge>,
    pub(crate) audit_left_out: Counter,
    pub(crate) audit_lost: Counter,
}

impl Trust {
    pub(super) fn new(registry: &mut Registry) -> Trust {
        let trust = Trust::default();
        let help = "Requests that their caller had no right to, by what was wrong";
        registry.register("auth_refused", help, trust.refused.clone());
        let help = "TLS handshakes, by who called and what came of it";
        registry.register("tls_handshakes", help, trust.handshakes.clone());
        let help = "When a certificate expires, in seconds since 1970: this node's, and the first \
                    of its authorities'";
        let name = "tls_certificate_expiry_timestamp_seconds";
        registry.register(name, help, trust.expiry.clone());
        let help = "Refusals that are not in the audit: too many at once";
        registry.register("audit_left_out", help, trust.audit_left_out.clone());
        let help = "Lines of the audit that could not be written";
        registry.register("audit_lost", help, trust.audit_lost.clone());
        trust
    }

    /// Somebody had no right to what it wanted.
    pub(crate) fn refuse(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// A handshake begins.
    pub(crate) fn handshake(&self, from: &'static str) -> Handshake<'_> {
        Handshake { trust: self, from, outcome: "late" }
    }

    /// These are the files of TLS now.
    pub(crate) fn tell_expiry(&self, keys: &Keys) {
        let own = keys.certificate().validity().map(|(_, until)| until);
        for (kind, until) in [("node", own), ("authority", keys.authority_until())] {
            if let Some(until) = until {
                self.expires(kind, until);
            }
        }
    }

    pub(super) fn expires(&self, kind: &'static str, until: Duration) {
        self.expiry.get_or_create(&KindLabel { kind }).set(seconds(until));
    }
}

fn seconds(since_1970: Duration) -> i64 {
    i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)
}

//! What is measured in every run, by `sim run` and by experiments alike, and its names.

/// What is measured in every run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Metric {
    ObtainingTime,
    WaitingP50,
    WaitingP99,
    WaitingMax,
    Waiting,
    CsPerSecond,
    UnitsInUse,
    MessagesPerCs,
    MessagesProtocol,
    MessagesRetry,
    MessagesLease,
    MessagesProbe,
    /// Of each grant's messages, how many the busiest node sends or is given.
    BusiestNode,
    /// Only where somebody always waits.
    SynchronizationDelay,
    Fairness,
    OvertakenMax,
    StateBytes,
    DetectionTime,
    /// Only where somebody crashed and crashes are found at all.
    CrashesKnown,
    /// Only where somebody stands still, and crashes are found at all.
    FalselySuspected,
    /// Only where somebody crashed.
    Recovered,
    RecoveryTime,
}

impl Metric {
    pub(crate) const ALL: [Metric; 22] = [
        Metric::ObtainingTime,
        Metric::WaitingP50,
        Metric::WaitingP99,
        Metric::WaitingMax,
        Metric::Waiting,
        Metric::CsPerSecond,
        Metric::UnitsInUse,
        Metric::MessagesPerCs,
        Metric::MessagesProtocol,
        Metric::MessagesRetry,
        Metric::MessagesLease,
        Metric::MessagesProbe,
        Metric::BusiestNode,
        Metric::SynchronizationDelay,
        Metric::Fairness,
        Metric::OvertakenMax,
        Metric::StateBytes,
        Metric::DetectionTime,
        Metric::CrashesKnown,
        Metric::FalselySuspected,
        Metric::Recovered,
        Metric::RecoveryTime,
    ];

    /// Its name in files, and on axes.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Metric::ObtainingTime => ("obtaining_time", "seconds from claim to grant"),
            Metric::WaitingP50 => ("waiting_p50", "seconds from claim to grant, median"),
            Metric::WaitingP99 => ("waiting_p99", "seconds from claim to grant, 99 of 100"),
            Metric::WaitingMax => ("waiting_max", "seconds from claim to grant, longest"),
            Metric::Waiting => ("waiting", "claims waiting"),
            Metric::CsPerSecond => ("cs_per_second", "grants per second"),
            Metric::UnitsInUse => ("units_in_use", "units in use"),
            Metric::MessagesPerCs => ("messages_per_cs", "messages per grant"),
            Metric::MessagesProtocol => ("messages_protocol", "messages per grant: protocol"),
            Metric::MessagesRetry => ("messages_retry", "messages per grant: retries"),
            Metric::MessagesLease => ("messages_lease", "messages per grant: leases"),
            Metric::MessagesProbe => ("messages_probe", "messages per grant: probes"),
            Metric::BusiestNode => ("busiest_node", "messages per grant at the busiest node"),
            Metric::SynchronizationDelay => {
                ("synchronization_delay", "seconds from free to next user")
            }
            Metric::Fairness => ("fairness", "fairness over clients (Jain)"),
            Metric::OvertakenMax => ("overtaken_max", "most times that one claim was overtaken"),
            Metric::StateBytes => ("state_bytes", "bytes of state at the node that has most"),
            Metric::DetectionTime => ("detection_time", "seconds until every live node knows"),
            Metric::CrashesKnown => {
                ("crashes_known", "share of crashes that every live node knows of in the end")
            }
            Metric::FalselySuspected => {
                ("falsely_suspected", "share of runs in which a live node was suspected")
            }
            Metric::Recovered => ("recovered", "share of runs that serve as before after crashes"),
            Metric::RecoveryTime => {
                ("recovery_time", "seconds from the last crash until it serves as before")
            }
        }
    }

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        self.names().0
    }

    /// Its name on axes.
    pub(crate) fn label(self) -> &'static str {
        self.names().1
    }
}

//! What is measured in every run of an experiment, and its names.

/// What is measured in every run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    ObtainingTime,
    Waiting,
    CsPerSecond,
    UnitsInUse,
    MessagesPerCs,
    /// Only where somebody always waits.
    SynchronizationDelay,
    DetectionTime,
    /// Only where somebody crashed and crashes are found at all.
    CrashesKnown,
    /// Only where somebody stands still, and crashes are found at all.
    FalselySuspected,
}

impl Metric {
    pub(crate) const ALL: [Metric; 9] = [
        Metric::ObtainingTime,
        Metric::Waiting,
        Metric::CsPerSecond,
        Metric::UnitsInUse,
        Metric::MessagesPerCs,
        Metric::SynchronizationDelay,
        Metric::DetectionTime,
        Metric::CrashesKnown,
        Metric::FalselySuspected,
    ];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::ObtainingTime => "obtaining_time",
            Metric::Waiting => "waiting",
            Metric::CsPerSecond => "cs_per_second",
            Metric::UnitsInUse => "units_in_use",
            Metric::MessagesPerCs => "messages_per_cs",
            Metric::SynchronizationDelay => "synchronization_delay",
            Metric::DetectionTime => "detection_time",
            Metric::CrashesKnown => "crashes_known",
            Metric::FalselySuspected => "falsely_suspected",
        }
    }

    /// Its name on axes.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Metric::ObtainingTime => "seconds from claim to grant",
            Metric::Waiting => "claims waiting",
            Metric::CsPerSecond => "grants per second",
            Metric::UnitsInUse => "units in use",
            Metric::MessagesPerCs => "messages per grant",
            Metric::SynchronizationDelay => "seconds from free to next user",
            Metric::DetectionTime => "seconds until every live node knows",
            Metric::CrashesKnown => "share of crashes that every live node knows of in the end",
            Metric::FalselySuspected => "share of runs in which a live node was suspected",
        }
    }
}

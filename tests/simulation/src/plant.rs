//! Faults that are planted in the shared state, to show that the checks find them.

/// A fault of the shared state that breaks the contract of its trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// `SessionStore::save` compares and stores in two steps.
    StoreNotAtomic,
    /// `SessionStore::remove` removes nothing.
    StoreKeepsRemoved,
    /// The bus drops one of 50 messages.
    BusDrops,
    /// The log loses the last event of one of 10 streams, and says that the stream is complete.
    LogLosesTail,
    /// The log returns one of 10 parts from one event too early.
    LogRepeats,
}

impl Plant {
    pub(crate) const ALL: [Self; 5] = [
        Self::StoreNotAtomic,
        Self::StoreKeepsRemoved,
        Self::BusDrops,
        Self::LogLosesTail,
        Self::LogRepeats,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StoreNotAtomic => "store-not-atomic",
            Self::StoreKeepsRemoved => "store-keeps-removed",
            Self::BusDrops => "bus-drops",
            Self::LogLosesTail => "log-loses-tail",
            Self::LogRepeats => "log-repeats",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}

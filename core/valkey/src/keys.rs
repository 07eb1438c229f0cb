//! The keys in Valkey.
//!
//! All keys of a session have the same hash tag, so that a cluster keeps them on one node and scripts can use them
//! together. The number after the prefix is the version of the layout: a process never reads what another version wrote
//! differently.

/// The version of keys, values and scripts.
const LAYOUT: u32 = 1;

/// Makes keys.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}:{LAYOUT}"),
        }
    }

    /// A session (a string).
    pub(crate) fn session(&self, id: &str) -> String {
        format!("{}:{{{id}}}", self.prefix)
    }

    /// The streams of a session (a hash). One field per stream, named like the stream: its position in the order of
    /// creation, the numbers of its first and last event, its size in bytes, and whether it has ended. The field `*`: the
    /// next position, and the size of all streams in bytes.
    pub(crate) fn index(&self, session: &str) -> String {
        format!("{}:{{{session}}}:streams", self.prefix)
    }

    /// The events of a stream (a stream).
    pub(crate) fn stream(&self, session: &str, name: &str) -> String {
        format!("{}:{{{session}}}:streams:{name}", self.prefix)
    }

    /// A key that was used (a string: the process's name for this use).
    pub(crate) fn used(&self, key: &str) -> String {
        format!("{}:{{{key}}}:used", self.prefix)
    }

    /// A token bucket (a string: when it is full again).
    pub(crate) fn bucket(&self, key: &str) -> String {
        format!("{}:{{{key}}}:bucket", self.prefix)
    }

    /// The bus (a stream).
    pub(crate) fn bus(&self) -> String {
        format!("{}:{{bus}}", self.prefix)
    }

    /// The bytes of the events on the bus (a number).
    pub(crate) fn bus_bytes(&self) -> String {
        format!("{}:{{bus}}:bytes", self.prefix)
    }
}

/// Splits a stream's name in the event log into its session and its name within the session.
pub(crate) fn split_stream_name(stream: &str) -> (&str, &str) {
    stream.split_once('/').unwrap_or((stream, ""))
}

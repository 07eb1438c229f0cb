//! Accounting of what peers use of this process: bytes that are held for them, calls, connections.
//!
//! Everything that is kept for a peer is charged to a [`UsageLimit`]: one per client, within one per server. A client that
//! exceeds its own is refused, others are served as before. [`Settings::client_share`] is the part of the whole that
//! one client may use. A client is a principal if requests are authenticated, otherwise the address that they come from,
//! or over a Unix socket another user than the server's ([`ClientTable`]). Every other connection is a client of its own.
//!
//! [`Settings::client_share`]: crate::server::Settings::client_share

mod clients;
mod counts;
mod usage_limit;

#[cfg(all(unix, feature = "stdio"))]
pub(crate) use clients::OpenConnection;
pub(crate) use clients::{ClientKey, ClientQuota, ClientTable, Reclaim};
#[cfg(feature = "http")]
pub(crate) use counts::RefusalReason;
pub(crate) use counts::{Counted, Limit};
#[cfg(feature = "http")]
pub(crate) use usage_limit::UsageLimit;
pub(crate) use usage_limit::{Charge, Exceeded, LimitOwner, Usage};

use bytes::Bytes;

/// Smaller messages are not charged: the limits of calls, connections and suspended handlers bound their number, and
/// charging each would cost more than some calls.
pub(crate) const UNCHARGED_BYTES: usize = 4 * 1024;

/// Returns bytes that return their charge when the last slice of them is dropped.
pub(crate) fn attach_charge(bytes: Bytes, charge: Charge) -> Bytes {
    struct Charged {
        bytes: Bytes,
        _charge: Charge,
    }
    impl AsRef<[u8]> for Charged {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Bytes::from_owner(Charged {
        bytes,
        _charge: charge,
    })
}

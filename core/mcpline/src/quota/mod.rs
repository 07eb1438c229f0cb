//! What peers may use of this process, counted: bytes that are held for them, calls, connections.
//!
//! Everything that is kept on behalf of a peer is charged to a [`Budget`]: one per client, within one per server. A
//! client that exceeds its own is refused, others are served as before; [`Settings::client_share`] says how much of the
//! whole one client may use. A client is a principal where requests are authenticated, else the address that they come
//! from ([`ClientTable`]).
//!
//! [`Settings::client_share`]: crate::server::Settings::client_share

mod budget;
mod clients;

pub(crate) use budget::{Charge, Exceeded, Level};
pub(crate) use clients::{ClientKey, ClientQuota, ClientTable, Reclaim};

use bytes::Bytes;

/// Messages below this many bytes aren't charged: how many of them there are is bounded by the limits on calls,
/// connections and suspended handlers, and charging each would cost more than some calls.
pub(crate) const UNCHARGED_BYTES: usize = 4 * 1024;

/// Bytes that give their charge back when the last slice of them is dropped.
pub(crate) fn charged(bytes: Bytes, charge: Charge) -> Bytes {
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

//! Decodes large messages of a server off the I/O threads, so that the host's other servers are not delayed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::Raw;
use serde::de::DeserializeOwned;

use crate::fair_queue::PeerId;
use crate::offload;

/// Decodes a large value on another thread. Returns `None` if the runtime is shutting down.
pub(super) async fn decode_offloaded<T: DeserializeOwned + Send + 'static>(
    peer: PeerId,
    raw: Raw,
) -> Option<Result<T, serde_json::Error>> {
    let never = Arc::new(AtomicBool::new(false));
    offload::compute(peer, never, move |_| raw.decode()).await
}

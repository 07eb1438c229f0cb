//! What a server sent, decoded away from the threads that serve connections: a host's other servers are heard meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::Raw;
use serde::de::DeserializeOwned;

use crate::offload;
use crate::turn_queue::PeerId;

/// Decodes what is too large to be decoded where it arrived. `None` if the runtime is ending.
pub(super) async fn decode_elsewhere<T: DeserializeOwned + Send + 'static>(
    peer: PeerId,
    raw: Raw,
) -> Option<Result<T, serde_json::Error>> {
    let never = Arc::new(AtomicBool::new(false));
    offload::compute(peer, never, move |_| raw.decode()).await
}

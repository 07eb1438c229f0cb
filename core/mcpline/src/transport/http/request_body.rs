//! Collects a request's body within its limit, charged to its client while it arrives.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;

use crate::quota::{self, Charge, ClientQuota, Exceeded, UNCHARGED_BYTES};

use super::hyper_buffers::BUFFERED_BYTES;

/// Bodies up to this size are copied: a body arrives as a slice of the connection's buffer, all of which a long call
/// would keep alive. A longer body is more than half of the buffer anyway.
const COPIED_BYTES: usize = BUFFERED_BYTES / 2;

/// Why a body was not collected.
pub(super) enum CollectError {
    /// It exceeds the limit.
    TooLong,
    /// The client's memory limit is exhausted.
    NoRoom(Exceeded),
    /// It could not be read.
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

/// Collects a body of at most `limit` bytes into one buffer, however small the pieces in which it arrives.
pub(super) async fn collect<B>(
    mut body: Pin<&mut B>,
    limit: usize,
    client: &Arc<ClientQuota>,
) -> Result<Bytes, CollectError>
where
    B: http_body::Body<Data: Into<Bytes> + Send>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut collected = BodyBuffer::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CollectError::Broken(error.into()))?;
        let Ok(data) = frame.into_data() else {
            // Trailers have no meaning here.
            continue;
        };
        if collected.len() + data.remaining() > limit {
            return Err(CollectError::TooLong);
        }
        collected
            .push(data.into(), client)
            .map_err(CollectError::NoRoom)?;
    }
    Ok(collected.finish())
}

/// The bytes that have arrived.
#[derive(Default)]
struct BodyBuffer {
    /// The first piece as it came, which is all of most bodies.
    first: Bytes,
    /// All bytes, once there is more than one piece.
    joined: Vec<u8>,
    charge: Option<Charge>,
}

impl BodyBuffer {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, piece: Bytes, client: &ClientQuota) -> Result<(), Exceeded> {
        if self.len() == 0 {
            self.hold(piece.len(), client)?;
            self.first = piece;
            return Ok(());
        }
        let needed = self.len() + piece.len();
        if needed > self.joined.capacity() {
            // Doubles each time, so that many small pieces cost no more than few large ones; nothing is allocated for
            // an announced length alone.
            let capacity = needed.next_power_of_two();
            self.hold(capacity, client)?;
            self.joined.reserve_exact(capacity - self.joined.len());
        }
        let first = std::mem::take(&mut self.first);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(&piece);
        Ok(())
    }

    /// Raises the charge to this number of bytes.
    fn hold(&mut self, bytes: usize, client: &ClientQuota) -> Result<(), Exceeded> {
        match &mut self.charge {
            Some(charge) => {
                let more = bytes.saturating_sub(charge.amount());
                charge.absorb(client.hold_bytes(more)?);
            }
            None if bytes < UNCHARGED_BYTES => {}
            None => self.charge = Some(client.hold_bytes(bytes)?),
        }
        Ok(())
    }

    fn finish(mut self) -> Bytes {
        let bytes = if self.joined.is_empty() && self.first.len() <= COPIED_BYTES {
            Bytes::copy_from_slice(&self.first)
        } else if self.joined.is_empty() {
            self.first
        } else {
            self.joined.shrink_to_fit();
            Bytes::from(self.joined)
        };
        match self.charge {
            Some(mut charge) => {
                charge.shrink_to(bytes.len());
                quota::attach_charge(bytes, charge)
            }
            None => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::pin;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;
    use crate::quota::ClientTable;

    struct Pieces(VecDeque<Bytes>);

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    const LIMIT: usize = 1024 * 1024;

    fn client(most: usize) -> Arc<ClientQuota> {
        ClientTable::new(1.0, most, 1).sole_client()
    }

    async fn collect_pieces(
        pieces: impl IntoIterator<Item = Bytes>,
        client: &Arc<ClientQuota>,
    ) -> Result<Bytes, CollectError> {
        let body = pin!(Pieces(pieces.into_iter().collect()));
        collect(body, LIMIT, client).await
    }

    #[runtimes::test]
    async fn many_small_pieces_are_held_once_and_charged_until_they_are_dropped() {
        let client = client(LIMIT);
        let pieces = (0..LIMIT / 2).map(|_| Bytes::from_static(b"x"));
        let body = collect_pieces(pieces, &client).await.ok().expect("fits");
        assert_eq!(body.len(), LIMIT / 2);
        assert_eq!(client.held_bytes(), LIMIT / 2);
        let slice = body.slice(..10);
        drop(body);
        assert_eq!(client.held_bytes(), LIMIT / 2, "a slice holds all of it");
        drop(slice);
        assert_eq!(client.held_bytes(), 0);
    }

    #[runtimes::test]
    async fn a_body_that_came_whole_is_a_slice_if_that_holds_little_more_than_itself() {
        for (bytes, is_slice) in [
            (100, false),
            (COPIED_BYTES, false),
            (COPIED_BYTES + 1, true),
            (BUFFERED_BYTES, true),
        ] {
            // In the middle of a read, as after a request's head.
            let read = Bytes::from(vec![b'x'; BUFFERED_BYTES + 200]);
            let whole = read.slice(200..200 + bytes);
            let body = collect_pieces([whole.clone()], &client(LIMIT)).await;
            let body = body.ok().expect("fits");
            assert_eq!(body, whole);
            assert_eq!(body.as_ptr() == whole.as_ptr(), is_slice, "{bytes}");
            drop(whole);
            // Whether the connection is the only owner of its buffer again.
            let is_free = read.is_unique();
            assert_eq!(is_free, !is_slice, "{bytes}");
        }
    }

    #[runtimes::test]
    async fn a_client_whose_memory_is_used_up_is_refused_and_keeps_nothing() {
        let client = client(100_000);
        let pieces = (0..200).map(|_| Bytes::from(vec![b'x'; 1_000]));
        let refused = collect_pieces(pieces, &client).await;
        assert!(matches!(refused, Err(CollectError::NoRoom(_))));
        assert_eq!(client.held_bytes(), 0);
    }

    #[runtimes::test]
    async fn a_body_past_the_limit_is_refused() {
        let pieces = (0..2).map(|_| Bytes::from(vec![b'x'; LIMIT / 2 + 1]));
        let refused = collect_pieces(pieces, &client(usize::MAX)).await;
        assert!(matches!(refused, Err(CollectError::TooLong)));
    }
}

//! The response streams that a session keeps for a client that lost its connection.

use std::collections::VecDeque;

use crate::sync::Arc;

use super::stream::Stream;

/// Maximum number of response streams of a session. Together, finished ones keep at most as many bytes as one stream
/// may.
const MAX_KEPT_STREAMS: usize = 16;

/// The response streams of one session, oldest first. Found by linear search, because there are few.
pub(super) struct KeptStreams {
    streams: VecDeque<KeptStream>,
    next_number: u64,
}

struct KeptStream {
    number: u64,
    stream: Arc<Stream>,
    /// Size of its events when it ended, after which none are added. Cached on first use, so that opening a stream does
    /// not lock all the others.
    bytes_at_end: Option<usize>,
}

impl KeptStreams {
    /// Creates an empty list; the first stream gets this number.
    pub(super) fn new(first_number: u64) -> Self {
        Self {
            streams: VecDeque::new(),
            next_number: first_number,
        }
    }

    /// Adds the stream that `open` returns for the next number, and drops the oldest finished streams above the limits.
    pub(super) fn add(
        &mut self,
        max_bytes: usize,
        open: impl FnOnce(u64) -> Arc<Stream>,
    ) -> Arc<Stream> {
        let number = self.next_number;
        self.next_number += 1;
        let stream = open(number);
        self.streams.push_back(KeptStream {
            number,
            stream: stream.clone(),
            bytes_at_end: None,
        });
        self.forget_finished(max_bytes);
        stream
    }

    /// Returns the stream with this number, if it is still kept.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Stream>> {
        let found = self.streams.iter().find(|kept| kept.number == number);
        found.map(|kept| kept.stream.clone())
    }

    /// Keeps further events of all streams out of the log that processes share.
    pub(super) fn stop_logging(&self) {
        for kept in &self.streams {
            kept.stream.stop_logging();
        }
    }

    fn forget_finished(&mut self, max_bytes: usize) {
        let mut bytes: usize = self.streams.iter_mut().map(KeptStream::bytes).sum();
        if bytes > max_bytes {
            // Some of it may have been reclaimed meanwhile.
            bytes = self.streams.iter_mut().map(KeptStream::bytes_now).sum();
        }
        while self.streams.len() > MAX_KEPT_STREAMS || bytes > max_bytes {
            let oldest = self
                .streams
                .iter()
                .position(|kept| kept.stream.is_finished());
            let Some(mut forgotten) = oldest.and_then(|index| self.streams.remove(index)) else {
                return;
            };
            bytes = bytes.saturating_sub(forgotten.bytes());
        }
    }
}

impl KeptStream {
    /// Returns the memory size of its events. An upper bound once it has ended: its events may have been reclaimed
    /// meanwhile.
    fn bytes(&mut self) -> usize {
        match self.bytes_at_end {
            Some(bytes) => bytes,
            None => self.bytes_now(),
        }
    }

    fn bytes_now(&mut self) -> usize {
        let (bytes, ended) = self.stream.kept_bytes();
        self.bytes_at_end = ended.then_some(bytes);
        bytes
    }
}

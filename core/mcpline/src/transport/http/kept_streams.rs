//! The response streams that a session keeps for a client that lost the end of one.

use std::collections::VecDeque;

use crate::sync::Arc;

use super::stream::Stream;

/// How many response streams a session keeps. Together, finished ones keep no more bytes than one stream may.
const MAX_KEPT_STREAMS: usize = 16;

/// The response streams of one session, oldest first. There are few, so finding one takes no map.
pub(super) struct KeptStreams {
    streams: VecDeque<KeptStream>,
    next_number: u64,
}

struct KeptStream {
    number: u64,
    stream: Arc<Stream>,
    /// What its events took when it ended: nothing is added afterwards. Known as soon as it was looked at, so that opening
    /// a stream doesn't lock all the others.
    bytes_at_end: Option<usize>,
}

impl KeptStreams {
    /// No stream yet; the first has this number.
    pub(super) fn new(first_number: u64) -> Self {
        Self {
            streams: VecDeque::new(),
            next_number: first_number,
        }
    }

    /// Adds the stream that `open` returns for the next number, and forgets the oldest finished streams past the limits.
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

    /// The stream with this number, if it is still kept.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Stream>> {
        let found = self.streams.iter().find(|kept| kept.number == number);
        found.map(|kept| kept.stream.clone())
    }

    /// Ends all streams.
    pub(super) fn end(&self) {
        for kept in &self.streams {
            kept.stream.end();
        }
    }

    fn forget_finished(&mut self, max_bytes: usize) {
        let mut bytes: usize = self.streams.iter_mut().map(KeptStream::bytes).sum();
        if bytes > max_bytes {
            // Some of it may have been reclaimed since.
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
    /// How many bytes of memory its events take. At most, once it has ended: its events may have been reclaimed since.
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

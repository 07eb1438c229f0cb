//! Line framing of the stdio transport: messages are separated by newlines and contain none
//! (2025-11-25, "Transports", stdio).

use bytes::{Bytes, BytesMut};

use crate::limits::MAX_LINE;

/// Splits received bytes into lines.
///
/// Read into [`buffer`](Self::buffer) (or copy with [`push`](Self::push)), then take lines with
/// [`next_line`](Self::next_line) until there is none. Lines share the memory that they were read into. `\n` and `\r\n`
/// end a line; blank lines are skipped; a line beyond the limit is reported once, as soon as it exceeds it, and the
/// rest of it is discarded.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// Leading bytes of the buffer that are known to contain no newline.
    searched: usize,
    /// Inside an over-long line.
    skipping: bool,
    limit: usize,
}

/// A line exceeded the limit and is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {limit} bytes (`max_line_bytes`)")]
pub struct LineTooLong {
    /// The limit that it exceeded.
    pub limit: usize,
}

/// The room that [`LineDecoder::buffer`] offers: the capacity of a Linux pipe.
const ROOM: usize = 64 * 1024;

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes, without their line ending.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            limit,
        }
    }

    /// The buffer to append received bytes to, with room for at least 64 KiB.
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < ROOM / 4 {
            // Doubling keeps the copying of a long line linear.
            self.buffer.reserve(ROOM.max(self.buffer.len()));
        }
        &mut self.buffer
    }

    /// Appends a copy of `chunk`.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete line, without its line ending; `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.wait();
            };
            let mut line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            line.truncate(line.len() - 1);
            if let Some(line) = self.finish_line(line) {
                return Some(line);
            }
        }
    }

    /// The text after the last newline, at the end of input.
    pub fn finish(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        let rest = self.buffer.split();
        self.searched = 0;
        if std::mem::take(&mut self.skipping) {
            None
        } else {
            self.finish_line(rest)
        }
    }

    fn finish_line(&self, mut line: BytesMut) -> Option<Result<Bytes, LineTooLong>> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.limit {
            return Some(Err(LineTooLong { limit: self.limit }));
        }
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        (!blank).then(|| Ok(line.freeze()))
    }

    /// Handles a buffer without a newline.
    fn wait(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        if self.skipping {
            self.buffer.clear();
        }
        self.searched = self.buffer.len();
        // One byte more, because the last one could be the `\r` of the line ending.
        if self.searched <= self.limit + 1 {
            return None;
        }
        self.buffer = BytesMut::new();
        self.searched = 0;
        self.skipping = true;
        Some(Err(LineTooLong { limit: self.limit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(decoder: &mut LineDecoder) -> Vec<Result<String, LineTooLong>> {
        let text = |line: Bytes| String::from_utf8_lossy(&line).into_owned();
        std::iter::from_fn(|| decoder.next_line())
            .map(|line| line.map(text))
            .collect()
    }

    fn ok(lines: &[&str]) -> Vec<Result<String, LineTooLong>> {
        lines.iter().map(|line| Ok((*line).to_owned())).collect()
    }

    #[test]
    fn lines_end_in_either_way_and_blank_ones_are_passed_over() {
        let mut decoder = LineDecoder::default();
        decoder.push(b"a\nb\r\n\n\r\n \t\nc\rd\ne");
        assert_eq!(lines(&mut decoder), ok(&["a", "b", "c\rd"]));
        decoder.push(b"f\n");
        assert_eq!(lines(&mut decoder), ok(&["ef"]));
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn how_the_bytes_are_cut_into_chunks_does_not_matter() {
        let text = b"first\r\nsecond\n\nway too long a line\nthird\n0123456789\r\n";
        let mut whole = LineDecoder::new(10);
        whole.push(text);
        let expected = lines(&mut whole);
        assert_eq!(expected.iter().filter(|line| line.is_err()).count(), 1);
        for size in 1..text.len() {
            let mut decoder = LineDecoder::new(10);
            let mut got = Vec::new();
            for chunk in text.chunks(size) {
                decoder.push(chunk);
                got.extend(lines(&mut decoder));
            }
            assert_eq!(got, expected, "chunks of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_reported_once_and_not_kept() {
        let mut decoder = LineDecoder::new(100);
        let mut reports = 0;
        for _ in 0..1000 {
            decoder.push(&[b'x'; 50]);
            reports += lines(&mut decoder).len();
            assert!(decoder.buffer.len() <= 150);
        }
        assert_eq!(reports, 1);
        decoder.push(b"\nnext\n");
        assert_eq!(lines(&mut decoder), ok(&["next"]));
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        let mut decoder = LineDecoder::default();
        decoder.push(b"a\nb");
        assert_eq!(lines(&mut decoder), ok(&["a"]));
        assert_eq!(decoder.finish(), Some(Ok(Bytes::from_static(b"b"))));
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn lines_of_one_read_share_its_memory() {
        let mut decoder = LineDecoder::default();
        decoder.buffer().extend_from_slice(b"one\ntwo\n");
        let start = decoder.buffer.as_ptr();
        let one = decoder.next_line().expect("a line").expect("short");
        let two = decoder.next_line().expect("a line").expect("short");
        assert_eq!((one.as_ptr(), two.as_ptr()), (start, start.wrapping_add(4)));
    }
}

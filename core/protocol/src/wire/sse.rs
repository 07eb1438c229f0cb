//! Server-sent events: an encoder, and an incremental parser that follows the HTML standard to the letter (section 9.2,
//! "Server-sent events").

use bytes::{Buf, Bytes, BytesMut};

use crate::limits::{MAX_EVENT, MAX_EVENT_ID};

/// Appends one event. `data` may contain line breaks; from `id` and `event`, characters that would end their line are
/// removed.
pub fn event(out: &mut Vec<u8>, id: Option<&str>, event: Option<&str>, data: &[u8]) {
    if let Some(event) = event {
        field(out, "event", event);
    }
    if let Some(id) = id {
        field(out, "id", id);
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        match memchr::memchr2(b'\n', b'\r', rest) {
            Some(end) => {
                out.extend_from_slice(&rest[..end]);
                let crlf = rest[end..].starts_with(b"\r\n");
                rest = &rest[end + if crlf { 2 } else { 1 }..];
                out.push(b'\n');
            }
            None => {
                out.extend_from_slice(rest);
                out.extend_from_slice(b"\n\n");
                return;
            }
        }
    }
}

/// Appends the time after which the client should reconnect, in milliseconds, as a separate block.
pub fn retry(out: &mut Vec<u8>, milliseconds: u64) {
    field(out, "retry", itoa::Buffer::new().format(milliseconds));
    out.push(b'\n');
}

/// Appends a comment, which keeps a connection alive and has no content.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    out.push(b':');
    if !text.is_empty() {
        out.push(b' ');
        out.extend(text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    }
    out.extend_from_slice(b"\n\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    if memchr::memchr3(b'\n', b'\r', 0, value.as_bytes()).is_none() {
        out.extend_from_slice(value.as_bytes());
    } else {
        let allowed = |byte: &u8| !matches!(byte, b'\n' | b'\r' | 0);
        out.extend(value.bytes().filter(allowed));
    }
    out.push(b'\n');
}

/// A dispatched event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's type; `message` unless the stream says otherwise.
    pub event: String,
    /// The data lines, joined by newlines. Valid UTF-8.
    pub data: Bytes,
    /// The last event id seen up to and including this event; empty if there was none.
    pub last_event_id: String,
}

/// An event exceeded the limit and is dropped. Reported as soon as that is known, because its end may never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit that it exceeded.
    pub limit: usize,
}

/// Splits a received stream into events.
///
/// [`push`](Self::push) received bytes, then take events with [`next_event`](Self::next_event) until there is none. An
/// event without its end is never dispatched.
#[derive(Debug)]
pub struct EventDecoder {
    buffer: BytesMut,
    /// Leading bytes of the buffer that are known to contain no line ending.
    searched: usize,
    started: bool,
    /// Whether the last line ended in `\r`, so that a following `\n` belongs to it.
    after_cr: bool,
    limit: usize,
    /// Whether the current event is too large.
    overflown: bool,
    /// Whether that has been reported.
    told: bool,
    event: String,
    data: Option<Bytes>,
    /// The data, if it has more than one line.
    lines: Vec<u8>,
    id: String,
    last_event_id: String,
    retry: Option<u64>,
}

/// A line without meaning: the start of a comment.
const IGNORED: &[u8] = b":";

impl Default for EventDecoder {
    fn default() -> Self {
        Self::new(MAX_EVENT)
    }
}

impl EventDecoder {
    /// A decoder for events whose data and lines have at most `limit` bytes each.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            started: false,
            after_cr: false,
            limit,
            overflown: false,
            told: false,
            event: String::new(),
            data: None,
            lines: Vec::new(),
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// Appends a copy of `chunk`.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next event; `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Option<Result<Event, EventTooLarge>> {
        loop {
            let line = self.next_line();
            let is_last = line.is_none();
            match line {
                Some(line) if line.is_empty() => {
                    if let Some(event) = self.dispatch() {
                        return Some(Ok(event));
                    }
                }
                Some(line) => self.line(line),
                None => {}
            }
            if self.overflown && !std::mem::replace(&mut self.told, true) {
                return Some(Err(EventTooLarge { limit: self.limit }));
            }
            if is_last {
                return None;
            }
        }
    }

    /// The id to send as `Last-Event-ID`; empty if the stream has not set one.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The reconnection time that the stream set, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if !self.started {
            let mark = b"\xef\xbb\xbf";
            if self.buffer.starts_with(mark) {
                self.buffer.advance(mark.len());
            } else if mark.starts_with(&self.buffer) {
                return None;
            }
            self.started = true;
        }
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
        #[cfg(fuzzing)]
        crate::fuzz_step_count::count(1 + found.unwrap_or(self.buffer.len() - self.searched));
        let Some(found) = found else {
            self.searched = self.buffer.len();
            if self.searched > self.limit {
                // The line is discarded, so the rest of it is treated as a comment.
                self.overflown = true;
                self.buffer = BytesMut::from(IGNORED);
                self.searched = IGNORED.len();
            }
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + found).freeze();
        if line.len() > self.limit {
            self.overflown = true;
            line = Bytes::from_static(IGNORED);
        }
        self.after_cr = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    fn line(&mut self, line: Bytes) {
        let (name, value) = match memchr::memchr(b':', &line) {
            Some(0) => return,
            Some(colon) => {
                let space = usize::from(line.get(colon + 1) == Some(&b' '));
                (line.slice(..colon), line.slice(colon + 1 + space..))
            }
            None => (line, Bytes::new()),
        };
        match name.as_ref() {
            b"data" => self.add_data(value),
            b"event" => self.event = String::from_utf8_lossy(&value).into_owned(),
            b"id" if memchr::memchr(0, &value).is_none() && value.len() <= MAX_EVENT_ID => {
                self.id = String::from_utf8_lossy(&value).into_owned();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(&value).unwrap_or_default();
                self.retry = Some(digits.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }

    fn add_data(&mut self, value: Bytes) {
        let collected = self
            .data
            .as_ref()
            .map_or(0, |data| data.len().max(self.lines.len()));
        if self.overflown || collected + value.len() > self.limit {
            self.overflown = true;
            return;
        }
        match &self.data {
            None => self.data = Some(value),
            Some(first) => {
                if self.lines.is_empty() {
                    self.lines.extend_from_slice(first);
                }
                self.lines.push(b'\n');
                self.lines.extend_from_slice(&value);
            }
        }
    }

    /// Handles the blank line at the end of an event.
    fn dispatch(&mut self) -> Option<Event> {
        self.last_event_id.clone_from(&self.id);
        let event = std::mem::take(&mut self.event);
        let lines = std::mem::take(&mut self.lines);
        let data = self.data.take();
        self.told = false;
        if std::mem::take(&mut self.overflown) {
            return None;
        }
        let mut data = data?;
        if !lines.is_empty() {
            data = lines.into();
        }
        if std::str::from_utf8(&data).is_err() {
            data = String::from_utf8_lossy(&data).into_owned().into();
        }
        Some(Event {
            event: if event.is_empty() {
                "message".to_owned()
            } else {
                event
            },
            data,
            last_event_id: self.last_event_id.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes in chunks of every size, which must make no difference.
    fn events(stream: &[u8]) -> Vec<(String, String, String)> {
        let decode = |size: usize| {
            let mut decoder = EventDecoder::default();
            let mut events = Vec::new();
            for chunk in stream.chunks(size) {
                decoder.push(chunk);
                while let Some(event) = decoder.next_event() {
                    let event = event.expect("small");
                    let data = String::from_utf8(event.data.to_vec()).expect("UTF-8");
                    events.push((event.event, data, event.last_event_id));
                }
            }
            events
        };
        let whole = decode(stream.len());
        for size in 1..stream.len() {
            assert_eq!(decode(size), whole, "chunks of {size}");
        }
        whole
    }

    fn data(stream: &[u8]) -> Vec<String> {
        events(stream)
            .into_iter()
            .map(|(_, data, _)| data)
            .collect()
    }

    #[test]
    fn decodes_the_examples_of_the_standard() {
        assert_eq!(
            data(b"data: YHOO\ndata: +2\ndata: 10\n\n"),
            ["YHOO\n+2\n10"]
        );
        assert_eq!(
            events(b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"),
            [
                ("message".into(), "first event".into(), "1".into()),
                ("message".into(), "second event".into(), String::new()),
                ("message".into(), " third event".into(), String::new()),
            ]
        );
        assert_eq!(data(b"data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data(b"data:test\n\ndata: test\n\n"), ["test", "test"]);
    }

    #[test]
    fn every_line_end_and_a_byte_order_mark_are_understood() {
        assert_eq!(
            data(b"\xef\xbb\xbfdata: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\n"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            data(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n"),
            ["b"]
        );
    }

    #[test]
    fn ids_persist_and_bad_ones_are_ignored() {
        let got = events(b"id: 7\ndata: a\n\ndata: b\n\nid: x\0y\ndata: c\n\nid:\ndata: d\n\n");
        let ids: Vec<_> = got.into_iter().map(|(_, _, id)| id).collect();
        assert_eq!(ids, ["7", "7", "7", ""]);
    }

    #[test]
    fn an_event_without_data_only_sets_the_id() {
        let mut decoder = EventDecoder::default();
        decoder.push(b"event: x\nid: 9\n\n");
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.last_event_id(), "9");
        decoder.push(b"data: y\n\n");
        assert_eq!(
            decoder.next_event().expect("event").expect("small").event,
            "message"
        );
    }

    #[test]
    fn the_type_of_an_event_is_kept_for_that_event_only() {
        let got = events(b"event: endpoint\ndata: /x\n\ndata: y\n\n");
        assert_eq!(
            (got[0].0.as_str(), got[1].0.as_str()),
            ("endpoint", "message")
        );
    }

    #[test]
    fn retry_takes_digits_only() {
        let mut decoder = EventDecoder::default();
        decoder.push(b"retry: 1500\nretry: +1\nretry: 1x\nretry:\nretry: -1\n");
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.retry(), Some(1500));
    }

    #[test]
    fn unknown_fields_and_unfinished_events_are_dropped() {
        assert_eq!(
            data(b"Data: a\ndata : b\nfoo: c\n\ndata: d\n\ndata: e"),
            ["d"]
        );
    }

    #[test]
    fn bad_utf8_is_replaced_as_the_standard_says() {
        assert_eq!(data(b"data: a\xffb\n\n"), ["a\u{fffd}b"]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_reported_once_and_not_kept() {
        for line in [&b"data: 0123456789\n"[..], b"data: 01234", b"event: 0123"] {
            let mut decoder = EventDecoder::new(64);
            let mut received = Vec::new();
            for _ in 0..100 {
                decoder.push(line);
                received.extend(decoder.next_event());
                assert!(decoder.buffer.len() + decoder.lines.len() < 200);
            }
            // Reported before its end, which may never come.
            assert_eq!(received, [Err(EventTooLarge { limit: 64 })]);
            decoder.push(b"\n\ndata: next\n\n");
            let next = decoder.next_event().expect("an event").expect("small");
            assert_eq!(next.data, "next");
        }
    }

    #[test]
    fn an_over_long_line_is_reported_however_it_is_cut() {
        let stream = b"data: 0123456789abcdef\ndata: x\n\n:0123456789abcdef\n\ndata: y\n\n";
        for size in 1..stream.len() {
            let mut decoder = EventDecoder::new(12);
            let mut verdicts = Vec::new();
            for chunk in stream.chunks(size) {
                decoder.push(chunk);
                verdicts
                    .extend(std::iter::from_fn(|| decoder.next_event()).map(|event| event.is_ok()));
            }
            assert_eq!(verdicts, [false, false, true], "chunks of {size}");
        }
    }

    #[test]
    fn encoded_events_round_trip() {
        let mut out = Vec::new();
        retry(&mut out, 500);
        comment(&mut out, "");
        comment(&mut out, "keep\nalive");
        event(&mut out, Some("1\n2"), Some("endpoint"), b"/messages");
        event(&mut out, None, None, b"{\n\"a\":\r\n1\r}");
        event(&mut out, Some("3"), None, b"");
        assert_eq!(
            events(&out),
            [
                ("endpoint".into(), "/messages".into(), "12".into()),
                ("message".into(), "{\n\"a\":\n1\n}".into(), "12".into()),
                ("message".into(), String::new(), "3".into()),
            ]
        );
    }
}

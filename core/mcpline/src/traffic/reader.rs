//! Reads traffic files. `docs/traffic-files.md` specifies their format.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use mcpline_protocol::Revision;
use mcpline_protocol::wire::{JsonKind, Raw};
use thiserror::Error;

use super::{Direction, Role};

/// Maximum length of a line in bytes. A record has at most a megabyte of text, and JSON may escape each byte as six bytes.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;

/// Reads the records of a traffic file, in their order.
///
/// A line that is not a record is an error, after which the next line is read. An incomplete line at the end of the file, which
/// a killed process leaves, is skipped: see [`is_cut_off`](Self::is_cut_off).
///
/// ```
/// use mcpline::traffic::{Direction, TrafficContent, TrafficReader, TrafficEntry};
///
/// let file = br#"{"time":"2026-07-28T09:10:00.123Z","role":"server","name":"weather","direction":"received","transport":"stdio","connection":1,"bytes":42,"message":{"jsonrpc":"2.0","id":3,"method":"tools/list"}}
/// "#;
/// for record in TrafficReader::new(&file[..]) {
///     if let TrafficEntry::Message(message) = record?
///         && let TrafficContent::Message(json) = message.content
///     {
///         assert_eq!(message.direction, Direction::Received);
///         println!("{json}");
///     }
/// }
/// # Ok::<(), mcpline::traffic::TrafficError>(())
/// ```
#[derive(Debug)]
pub struct TrafficReader<R> {
    input: R,
    /// Number of the last line that was read, from 1.
    line: u64,
    is_cut_off: bool,
    /// Whether there is nothing more to read: the file has ended, or cannot be read.
    has_ended: bool,
}

/// A record of a traffic file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrafficEntry {
    /// A message was received or sent.
    Message(TrafficMessage),
    /// This number of records is missing here, because the disk was full or too slow.
    LeftOut(u64),
}

/// A message that a server or client has received or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficMessage {
    /// When: RFC 3339, in UTC, with milliseconds.
    pub time: String,
    /// Who has recorded it.
    pub role: Role,
    /// Name of the server or client that has recorded it.
    pub name: String,
    /// Its direction, seen from who has recorded it.
    pub direction: Direction,
    /// How it was exchanged: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
    pub transport: String,
    /// Tells connections apart. `None` within a session over HTTP.
    pub connection: Option<u64>,
    /// The first eight characters of the session's id.
    pub session: Option<String>,
    /// The revision of the connection, if it is known.
    pub revision: Option<Revision>,
    /// Length of the message in bytes, before secrets were replaced.
    pub bytes: u64,
    /// The message without its secrets.
    pub content: TrafficContent,
}

/// What was received or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrafficContent {
    /// A message, which is an object, or a batch of messages, which is an array.
    Message(Raw),
    /// What is neither, or the beginning of a message that is too long for the file.
    Text(String),
}

/// Why a record cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// The file cannot be read. No further record follows.
    #[error("line {line}: cannot be read: {source}")]
    Io {
        /// Number of the line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is not a record.
    #[error("line {line}: {reason}")]
    Invalid {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl TrafficReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(|file| Self::new(BufReader::new(file)))
    }
}

impl<R: BufRead> TrafficReader<R> {
    /// Reads the records of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            is_cut_off: false,
            has_ended: false,
        }
    }

    /// Whether the file ends within a line, which was skipped. Known once the iterator has ended.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    fn invalid(&self, reason: String) -> TrafficError {
        TrafficError::Invalid {
            line: self.line,
            reason,
        }
    }

    /// Reads to the end of a line that is too long.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffered = self.input.fill_buf()?;
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffered.len(), |end| end + 1);
            self.input.consume(length);
            if end.is_some() || length == 0 {
                return Ok(());
            }
        }
    }

    fn read_record(&mut self) -> Result<Option<TrafficEntry>, TrafficError> {
        self.line += 1;
        let mut line = Vec::new();
        let failed = |line, source| TrafficError::Io { line, source };
        let mut limited = self.input.by_ref().take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| failed(self.line, error))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            if line.len() as u64 <= MAX_LINE_BYTES {
                self.is_cut_off = true;
                return Ok(None);
            }
            self.skip_line().map_err(|error| failed(self.line, error))?;
            return Err(self.invalid(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        let record = Raw::parse(line).map_err(|error| self.invalid(error.to_string()))?;
        let record = Members(&record).record();
        record.map(Some).map_err(|reason| self.invalid(reason))
    }
}

impl<R: BufRead> Iterator for TrafficReader<R> {
    type Item = Result<TrafficEntry, TrafficError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let record = self.read_record();
        self.has_ended = matches!(record, Ok(None) | Err(TrafficError::Io { .. }));
        record.transpose()
    }
}

/// The members of a record.
struct Members<'a>(&'a Raw);

impl Members<'_> {
    fn record(&self) -> Result<TrafficEntry, String> {
        if self.0.kind() != JsonKind::Object {
            return Err("a record must be a JSON object".to_owned());
        }
        let time = self.required("time", Self::text)?;
        if !is_time(&time) {
            return Err(format!(
                "`time` must be like 2026-07-28T09:10:00.123Z, not {time:?}"
            ));
        }
        if self.0.member("direction").is_none() {
            let left_out = self.number("left_out")?;
            let left_out = left_out.ok_or("a record must have `direction` or `left_out`")?;
            return Ok(TrafficEntry::LeftOut(left_out));
        }
        Ok(TrafficEntry::Message(TrafficMessage {
            time,
            role: self.one_of("role", [Role::Server, Role::Client], Role::name)?,
            name: self.required("name", Self::text)?,
            direction: self.one_of(
                "direction",
                [Direction::Received, Direction::Sent],
                Direction::name,
            )?,
            transport: self.required("transport", Self::text)?,
            connection: self.number("connection")?,
            session: self.text("session")?,
            revision: self.revision()?,
            bytes: self.required("bytes", Self::number)?,
            content: self.content()?,
        }))
    }

    fn content(&self) -> Result<TrafficContent, String> {
        let message = self.0.member("message");
        match (message, self.text("text")?) {
            (Some(message), None)
                if matches!(message.kind(), JsonKind::Object | JsonKind::Array) =>
            {
                Ok(TrafficContent::Message(message))
            }
            (Some(_), None) => Err("`message` must be an object or an array".to_owned()),
            (None, Some(text)) => Ok(TrafficContent::Text(text)),
            (None, None) => Err("a record must have `message` or `text`".to_owned()),
            (Some(_), Some(_)) => {
                Err("a record must not have both `message` and `text`".to_owned())
            }
        }
    }

    fn revision(&self) -> Result<Option<Revision>, String> {
        let text = self.text("revision")?;
        let known = text.map(|text| {
            let known = Revision::ALL.iter().find(|known| known.as_str() == text);
            known.copied().ok_or(text)
        });
        known
            .transpose()
            .map_err(|text| format!("`revision` {text:?} is not known"))
    }

    fn one_of<T: Copy>(
        &self,
        name: &str,
        values: [T; 2],
        name_of: impl Fn(T) -> &'static str,
    ) -> Result<T, String> {
        let text = self.required(name, Self::text)?;
        let known = values.into_iter().find(|value| name_of(*value) == text);
        known.ok_or_else(|| {
            let [one, other] = values.map(&name_of);
            format!("`{name}` must be {one:?} or {other:?}, not {text:?}")
        })
    }

    fn required<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        read(self, name)?.ok_or_else(|| format!("no `{name}`"))
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.0.member(name) else {
            return Ok(None);
        };
        let text = value.string_value().map(Cow::into_owned);
        text.map(Some)
            .ok_or_else(|| format!("`{name}` must be a string"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.0.member(name) else {
            return Ok(None);
        };
        let number = value.as_str().parse();
        number
            .map(Some)
            .map_err(|_| format!("`{name}` must be an integer of at least 0"))
    }
}

/// Whether a text is like `2026-07-28T09:10:00.123Z`.
fn is_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == *form,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"time":"2026-07-28T09:10:00.123Z","role":"server","name":"weather","direction":"received","transport":"stdio","connection":1,"session":"12345678","revision":"2025-11-25","bytes":86,"message":{"id":3}}"#;

    fn read(text: &[u8]) -> Vec<Result<TrafficEntry, String>> {
        let records = TrafficReader::new(text);
        records
            .map(|record| record.map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn reads_the_members_of_records() {
        let text = LINE.replace(r#""message":{"id":3}"#, r#""new":[],"text":"Hello""#);
        let records = read(
            format!("{LINE}\n{text}\n{{\"time\":\"2026-07-28T09:10:00.123Z\",\"left_out\":7}}\n")
                .as_bytes(),
        );
        let expected = TrafficMessage {
            time: "2026-07-28T09:10:00.123Z".to_owned(),
            role: Role::Server,
            name: "weather".to_owned(),
            direction: Direction::Received,
            transport: "stdio".to_owned(),
            connection: Some(1),
            session: Some("12345678".to_owned()),
            revision: Some(Revision::V2025_11_25),
            bytes: 86,
            content: TrafficContent::Message(Raw::from_trusted(r#"{"id":3}"#)),
        };
        let text = TrafficMessage {
            content: TrafficContent::Text("Hello".to_owned()),
            ..expected.clone()
        };
        let expected = [
            Ok(TrafficEntry::Message(expected)),
            Ok(TrafficEntry::Message(text)),
            Ok(TrafficEntry::LeftOut(7)),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn says_what_is_wrong_with_which_line() {
        let changed = |from: &str, to: &str| {
            assert!(LINE.contains(from), "{from}");
            LINE.replace(from, to)
        };
        for (line, reason) in [
            ("[]".to_owned(), "a record must be a JSON object"),
            ("{}".to_owned(), "no `time`"),
            (
                changed("T09", " 09"),
                "`time` must be like 2026-07-28T09:10:00.123Z, not \"2026-07-28 09:10:00.123Z\"",
            ),
            (
                changed(r#""direction":"received","#, ""),
                "a record must have `direction` or `left_out`",
            ),
            (
                changed(r#""received""#, r#""seen""#),
                "`direction` must be \"received\" or \"sent\", not \"seen\"",
            ),
            (
                changed(r#""server""#, r#""proxy""#),
                "`role` must be \"server\" or \"client\", not \"proxy\"",
            ),
            (changed(r#""weather""#, "5"), "`name` must be a string"),
            (changed(r#""transport":"stdio","#, ""), "no `transport`"),
            (
                changed(":1,", ":-1,"),
                "`connection` must be an integer of at least 0",
            ),
            (
                changed("2025-11-25", "2025-11-26"),
                "`revision` \"2025-11-26\" is not known",
            ),
            (
                changed("86", "8.6"),
                "`bytes` must be an integer of at least 0",
            ),
            (
                changed(r#"{"id":3}"#, "3"),
                "`message` must be an object or an array",
            ),
            (
                changed(r#","message":{"id":3}"#, ""),
                "a record must have `message` or `text`",
            ),
            (
                changed(r#""message":"#, r#""text":"","message":"#),
                "a record must not have both `message` and `text`",
            ),
        ] {
            let records = read(format!("{LINE}\n{line}\n{LINE}\n").as_bytes());
            let [Ok(_), Err(error), Ok(_)] = &records[..] else {
                panic!("{line}: {records:?}");
            };
            assert_eq!(error, &format!("line 2: {reason}"));
        }
        // What is wrong with JSON is said as elsewhere.
        let records = read(b"{\"time\":\n");
        let [Err(error)] = &records[..] else {
            panic!("{records:?}");
        };
        assert!(error.starts_with("line 1: "), "{error}");
    }

    #[test]
    fn skips_a_line_that_was_not_written_to_its_end() {
        for (text, expected) in [
            (format!("{LINE}\n"), false),
            (format!("{LINE}\n{}", &LINE[..20]), true),
            // It may be a part of a longer one.
            (format!("{LINE}\n{LINE}"), true),
        ] {
            let mut reader = TrafficReader::new(text.as_bytes());
            assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 1);
            assert_eq!(reader.is_cut_off(), expected, "{text}");
            assert!(reader.next().is_none());
        }
    }

    #[test]
    fn refuses_lines_that_no_record_has() {
        let mut text = vec![b'x'; MAX_LINE_BYTES as usize + 1];
        text.push(b'\n');
        text.extend_from_slice(LINE.as_bytes());
        text.push(b'\n');
        let records = read(&text);
        let [Err(error), Ok(_)] = &records[..] else {
            panic!("{} records", records.len());
        };
        assert_eq!(error, "line 1: longer than 8388608 bytes");
    }

    #[test]
    fn a_file_that_cannot_be_read_has_no_further_records() {
        let mut reader = TrafficReader::new(BufReader::new(Failing));
        let error = reader.next().expect("an error").expect_err("an error");
        assert!(matches!(error, TrafficError::Io { line: 1, .. }), "{error}");
        assert!(reader.next().is_none());
    }

    struct Failing;

    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("a defect"))
        }
    }
}

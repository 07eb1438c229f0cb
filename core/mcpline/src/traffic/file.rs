//! A file of messages, as JSON lines. `docs/traffic-files.md` specifies their format.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use mcpline_protocol::Revision;
use serde::de::IgnoredAny;

use crate::error::Error;
use crate::log_file::{LogFile, LogWriter};
use crate::timestamp::Rfc3339;

use super::{Direction, Role, excerpt};

/// Name of the environment variable with the path of the traffic file for servers and clients whose setting `traffic_file`
/// leaves it open. Empty is as if it did not exist.
pub const TRAFFIC_FILE_VARIABLE: &str = "MCPLINE_TRAFFIC_FILE";

/// Size at which a file is rotated, in bytes: hours of most servers, and little enough for a disk.
const MAX_FILE_BYTES: u64 = 100 * 1024 * 1024;

/// Number of rotated files that are kept.
const ROTATED_FILES: u32 = 1;

/// Maximum length of the recorded text of a message in bytes, so that one file holds the messages around a large image.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How long the last server or client with a file waits until it is written.
const MAX_CLOSING_TIME: Duration = Duration::from_secs(1);

/// Maximum depth of a recorded message. A record nests the message one level deeper, which is the most that JSON parsers read.
const MAX_DEPTH: usize = mcpline_protocol::limits::MAX_DEPTH - 1;

/// The open files of this process. Servers and clients with the same path share one, so that their records keep their order.
static FILES: Mutex<Vec<Weak<TrafficFile>>> = Mutex::new(Vec::new());

/// A file that records of messages are appended to.
#[derive(Debug)]
pub(crate) struct TrafficFile {
    writer: LogWriter,
    /// Number of records that were left out since the last written one, because the disk is too slow.
    left_out: AtomicU64,
}

/// A message with its circumstances.
pub(crate) struct FileRecord<'a> {
    pub(crate) role: Role,
    /// Name of the server or client.
    pub(crate) name: &'a str,
    pub(crate) direction: Direction,
    pub(crate) transport: &'a str,
    pub(crate) connection: Option<u64>,
    /// The beginning of a session's id.
    pub(crate) session: Option<&'a str>,
    pub(crate) revision: Option<Revision>,
    pub(crate) message: RecordedMessage<'a>,
}

pub(crate) enum RecordedMessage<'a> {
    /// A JSON value, or any text that is none.
    Message(&'a [u8]),
    /// A line that is longer than this number of bytes, and was not kept.
    TooLong(usize),
}

impl TrafficFile {
    /// Opens the file of the setting, or else of the environment, if there is one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the file cannot be opened for writing.
    pub(crate) fn of(setting: Option<&Path>) -> Result<Option<Arc<Self>>, Error> {
        let variable = || std::env::var_os(TRAFFIC_FILE_VARIABLE).map(PathBuf::from);
        let path = setting.map(Path::to_owned).or_else(variable);
        match path.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Self::open(&path).map(Some),
            None => Ok(None),
        }
    }

    fn open(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |error| {
            Error::usage(format!(
                "cannot open the traffic file {}: {error}",
                path.display()
            ))
        };
        let absolute = std::path::absolute(path).map_err(failed)?;
        let mut files = lock();
        files.retain(|file| file.strong_count() > 0);
        let mut open = files.iter().filter_map(Weak::upgrade);
        if let Some(file) = open.find(|file| file.writer.path() == absolute) {
            return Ok(file);
        }
        let mut file = LogFile::open(path).map_err(failed)?;
        file.max_bytes = MAX_FILE_BYTES;
        file.max_files = ROTATED_FILES;
        let file = Arc::new(Self {
            writer: LogWriter::new("the traffic file", MAX_CLOSING_TIME, file),
            left_out: AtomicU64::new(0),
        });
        files.push(Arc::downgrade(&file));
        Ok(file)
    }

    /// Writes the records that wait, which takes at most `timeout`. Blocks.
    pub(crate) fn flush(&self, timeout: Duration) {
        self.writer.flush(timeout);
    }

    /// Appends a record. If too many bytes wait for the disk, it is left out: the peer must not wait for it.
    pub(crate) fn record(&self, record: &FileRecord<'_>) {
        if !self.writer.has_room() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let time = SystemTime::now();
        let left_out = self.left_out.swap(0, Ordering::Relaxed) + self.writer.take_lost();
        let mut out = Vec::new();
        if left_out > 0 {
            // Writing to a vector never fails.
            let _ = writeln!(
                out,
                "{{\"time\":\"{}\",\"left_out\":{left_out}}}",
                Rfc3339(time)
            );
        }
        record.write(&mut out, time);
        if let Err(error) = self.writer.write_later(out) {
            self.writer.warn(&error);
        }
    }
}

impl FileRecord<'_> {
    fn write(&self, out: &mut Vec<u8>, time: SystemTime) {
        // Writing to a vector never fails.
        let _ = write!(
            out,
            "{{\"time\":\"{}\",\"role\":\"{}\",\"name\":",
            Rfc3339(time),
            self.role.name()
        );
        json_string(out, self.name);
        let _ = write!(
            out,
            ",\"direction\":\"{}\",\"transport\":\"{}\"",
            self.direction.name(),
            self.transport
        );
        if let Some(connection) = self.connection {
            let _ = write!(out, ",\"connection\":{connection}");
        }
        if let Some(session) = self.session {
            out.extend_from_slice(b",\"session\":");
            json_string(out, session);
        }
        if let Some(revision) = self.revision {
            let _ = write!(out, ",\"revision\":\"{revision}\"");
        }
        match self.message {
            RecordedMessage::Message(message) => write_message(out, message),
            RecordedMessage::TooLong(limit) => {
                let _ = write!(
                    out,
                    ",\"bytes\":{limit},\"text\":\"… (more than {limit} bytes)\""
                );
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

fn write_message(out: &mut Vec<u8>, message: &[u8]) {
    let excerpt = excerpt(message, MAX_MESSAGE_BYTES);
    let _ = write!(out, ",\"bytes\":{}", message.len());
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_json = matches!(message.trim_ascii_start().first(), Some(b'{' | b'['))
        && std::str::from_utf8(message).is_ok_and(is_json)
        && is_json(&excerpt.text);
    if excerpt.is_whole && is_json && depth(message) <= MAX_DEPTH {
        out.extend_from_slice(b",\"message\":");
        out.extend_from_slice(excerpt.text.as_bytes());
    } else {
        out.extend_from_slice(b",\"text\":");
        json_string(out, &excerpt.text);
    }
}

/// Returns how deep the objects and arrays of a JSON value are.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn json_string(out: &mut Vec<u8>, text: &str) {
    // Serializing a string never fails.
    let _ = serde_json::to_writer(out, text);
}

/// Writes the records that wait, which takes at most `timeout`. Call it before the process ends.
pub(crate) fn flush_files(timeout: Duration) {
    let files: Vec<_> = lock().iter().filter_map(Weak::upgrade).collect();
    for file in files {
        file.flush(timeout);
    }
}

fn lock() -> MutexGuard<'static, Vec<Weak<TrafficFile>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::wire::Raw;
    use serde_json::{Value, json};

    use super::*;

    fn recorded(message: RecordedMessage<'_>) -> Value {
        let record = FileRecord {
            role: Role::Server,
            name: "a \"b\"",
            direction: Direction::Received,
            transport: "stdio",
            connection: Some(1),
            session: None,
            revision: Some(Revision::V2025_11_25),
            message,
        };
        let mut out = Vec::new();
        record.write(&mut out, SystemTime::UNIX_EPOCH);
        assert_eq!(out.pop(), Some(b'\n'));
        assert!(!out.contains(&b'\n'), "a line");
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn a_record_is_a_line_of_json() {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"token": "s3cret", "text": "a\u{2028}\n"}});
        let text = serde_json::to_string_pretty(&message).expect("JSON");
        assert_eq!(
            recorded(RecordedMessage::Message(text.as_bytes())),
            json!({
                "time": "1970-01-01T00:00:00.000Z", "role": "server", "name": "a \"b\"", "direction": "received",
                "transport": "stdio", "connection": 1, "revision": "2025-11-25", "bytes": text.len(),
                "message": {"jsonrpc": "2.0", "id": 1, "result": {"token": "[redacted]", "text": "a\u{2028}\n"}},
            })
        );
    }

    #[test]
    fn what_is_not_json_or_too_long_is_a_text() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let record = recorded(RecordedMessage::Message(nested(MAX_DEPTH).as_bytes()));
        let reread = Raw::parse(record.to_string()).expect("as deep as messages may be");
        assert!(reread.member("message").is_some());
        let deep = nested(MAX_DEPTH + 1);
        for message in [
            &b"Hello\n\xff\""[..],
            b"",
            b"{\"a\":",
            b"{\"token\":\"s3cret",
            b"{\"a\":\"\x01\"}",
            b"{\"a\":\"\xff\"}",
            b"5",
            deep.as_bytes(),
        ] {
            let record = recorded(RecordedMessage::Message(message));
            assert_eq!(record.get("message"), None);
            assert!(record["text"].is_string());
            assert!(!record.to_string().contains("s3cret"));
        }
        let long = json!("é".repeat(MAX_MESSAGE_BYTES)).to_string();
        let record = recorded(RecordedMessage::Message(long.as_bytes()));
        let text = record["text"].as_str().expect("a text");
        assert!(text.ends_with(&format!("… ({} bytes)", long.len())));
        assert!(text.len() < MAX_MESSAGE_BYTES + 40);
        assert_eq!(record["bytes"], long.len());
        let record = recorded(RecordedMessage::TooLong(10));
        assert_eq!(record["text"], "… (more than 10 bytes)");
    }
}

//! Events of streams as files: `streams/DIGEST/DIGEST`, of the session and of the stream's name within it.
//!
//! A file has a record for each event: the length of the event (four bytes), its number (eight bytes, both little-endian), and the
//! event. The end of the stream is a record with the length [`END`] and the number of the last event. Only the process that sends a
//! stream writes its file, so an append is one `write`. A record that a killed process has left incomplete is the last one; readers
//! ignore it.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use mcpline::sharing::LoggedEvents;

use crate::directory::{ServiceDirectory, private_file};
use crate::file_names::file_name;
use crate::limits::{
    EVENT_BYTES, MAX_READ_BYTES, MAX_SESSION_STREAM_BYTES, MAX_SESSION_STREAMS, MAX_STREAM_BYTES,
    STREAM_CHECK_BYTES,
};
use crate::readers::{Position, Readers};
use crate::record::END;
use crate::sessions::remove_file;

/// Records to append to one stream.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    has_events: bool,
}

impl Records {
    /// Adds an event. One that is too large for the format is left out, after which the stream begins anew.
    pub(crate) fn event(&mut self, number: u64, event: &[u8]) {
        let Some(length) = u32::try_from(event.len()).ok().filter(|len| *len != END) else {
            return;
        };
        self.has_events = true;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(event);
    }

    /// Adds the end of the stream after this event.
    pub(crate) fn end(&mut self, last: u64) {
        self.bytes.extend_from_slice(&END.to_le_bytes());
        self.bytes.extend_from_slice(&last.to_le_bytes());
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// A record of a file.
#[derive(Debug, PartialEq, Eq)]
enum Record<'a> {
    Event(u64, &'a [u8]),
    End(u64),
}

/// The complete records of a file.
struct Reader<'a>(&'a [u8]);

impl<'a> Iterator for Reader<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        let number = u64::from_le_bytes(*number);
        if length == END {
            self.0 = rest;
            return Some(Record::End(number));
        }
        let (event, rest) = rest.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(Record::Event(number, event))
    }
}

/// The latest events of a stream that follow each other.
#[derive(Default)]
struct Latest<'a> {
    first: u64,
    events: Vec<&'a [u8]>,
    /// Where the records of the events begin in the file.
    places: Vec<u64>,
    ended: bool,
}

impl<'a> Latest<'a> {
    fn read(file: &'a [u8]) -> Self {
        let mut latest = Self::default();
        let mut reader = Reader(file);
        loop {
            let place = (file.len() - reader.0.len()) as u64;
            let Some(record) = reader.next() else {
                return latest;
            };
            match record {
                Record::End(last) => {
                    let next = last.saturating_add(1);
                    if next != latest.next() {
                        // The last event was lost.
                        latest.events.clear();
                        latest.places.clear();
                        latest.first = next;
                    }
                    latest.ended = true;
                }
                Record::Event(number, event) => {
                    let next = latest.next();
                    if !latest.events.is_empty() && number < next {
                        // It is there already.
                        continue;
                    }
                    if latest.events.is_empty() || number > next {
                        // Nothing may be skipped by a client that resumes: after a gap the stream begins anew.
                        latest.events.clear();
                        latest.places.clear();
                        latest.first = number;
                    }
                    latest.events.push(event);
                    latest.places.push(place);
                }
            }
        }
    }

    /// Returns the position of an event that is kept.
    fn position(&self, number: u64) -> Option<Position> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(Position {
            place: *self.places.get(index)?,
            number,
            length: u32::try_from(self.events.get(index)?.len()).ok()?,
        })
    }

    /// Returns the number of the event that follows.
    fn next(&self) -> u64 {
        self.first.saturating_add(self.events.len() as u64)
    }

    /// Returns the events after this one, or a part of them, if it is the one before the first that is kept, or a later one.
    fn after(&self, after: u64) -> Option<LoggedEvents> {
        let from = after.checked_add(1)?.checked_sub(self.first)?;
        let events = self.events.get(usize::try_from(from).ok()?..)?;
        let mut part = Vec::new();
        let mut bytes = 0;
        for event in events {
            bytes += event.len();
            if bytes > MAX_READ_BYTES && !part.is_empty() {
                return Some(LoggedEvents::part(part));
            }
            // A copy, so that one event does not keep the bytes of all.
            part.push(Bytes::copy_from_slice(event));
        }
        Some(LoggedEvents::new(part, self.ended))
    }

    /// Returns records with the latest events within the limit.
    fn within_limit(&self) -> Records {
        let mut kept = 0;
        let mut total = 0;
        for event in self.events.iter().rev() {
            total += event.len() as u64 + EVENT_BYTES;
            if kept > 0 && total > MAX_STREAM_BYTES {
                break;
            }
            kept += 1;
        }
        let skipped = self.events.len() - kept;
        let mut records = Records::default();
        for (number, event) in (self.first + skipped as u64..).zip(&self.events[skipped..]) {
            records.event(number, event);
        }
        if self.ended {
            records.end(self.next().saturating_sub(1));
        }
        records
    }
}

/// Splits a stream's name in the event log into its session and its name within the session.
fn split_name(stream: &str) -> (&str, &str) {
    stream.split_once('/').unwrap_or((stream, ""))
}

impl ServiceDirectory {
    fn stream_folder(&self, session: &str) -> PathBuf {
        self.streams().join(file_name(session))
    }

    /// Appends records to a stream, unless its session was removed. The end alone begins no stream.
    pub(crate) fn append(&self, stream: &str, records: &Records) -> io::Result<()> {
        let (session, name) = split_name(stream);
        let folder = self.stream_folder(session);
        let path = folder.join(file_name(name));
        let mut options = private_file();
        options.append(true);
        let (mut file, is_new) = match options.open(&path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !records.has_events || self.has_ended(session)? {
                    return Ok(());
                }
                match fs::create_dir(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => (options.create(true).open(&path)?, true),
                }
            }
            Err(error) => return Err(error),
        };
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(&records.bytes) {
            // Later records must not follow an incomplete one.
            let _ = file.set_len(before);
            return Err(error);
        }
        let bytes = before + records.bytes();
        if bytes > 2 * MAX_STREAM_BYTES {
            let file = fs::read(&path)?;
            let kept = Latest::read(&file).within_limit();
            if kept.bytes() < bytes {
                self.replace(&path, &[&kept.bytes])?;
            }
        }
        if is_new || before / STREAM_CHECK_BYTES != bytes / STREAM_CHECK_BYTES {
            prune_session_streams(&folder, &path)?;
        }
        Ok(())
    }

    /// Returns the events after this one; `None` if the stream is unknown or some of them are no longer kept. Reads only what is
    /// new if the reader is known.
    pub(crate) fn read(
        &self,
        stream: &str,
        after: u64,
        readers: &mut Readers,
    ) -> io::Result<Option<LoggedEvents>> {
        let (session, name) = split_name(stream);
        let path = self.stream_folder(session).join(file_name(name));
        let known = readers.take(stream, after);
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(position) = known
            && let Some((events, position)) = position.read_on(&mut file)?
        {
            if !events.ended {
                readers.put(stream, position);
            }
            return Ok(Some(events));
        }
        let mut read = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut read)?;
        let latest = Latest::read(&read);
        let Some(events) = latest.after(after) else {
            return Ok(None);
        };
        if !events.ended
            && let Some(position) = latest.position(after + events.events.len() as u64)
        {
            readers.put(stream, position);
        }
        Ok(Some(events))
    }
}

/// Removes the oldest streams of a session until those that are left are within its limits. The one at `latest` stays.
fn prune_session_streams(folder: &Path, latest: &Path) -> io::Result<()> {
    let mut streams: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another process may have removed it.
        if let Ok(found) = entry.metadata() {
            streams.push((found.modified()?, entry.path(), found.len()));
        }
    }
    let mut bytes: u64 = streams.iter().map(|(_, _, bytes)| bytes).sum();
    let mut count = streams.len();
    streams.sort();
    for (_, path, size) in streams {
        if count <= MAX_SESSION_STREAMS && bytes <= MAX_SESSION_STREAM_BYTES {
            break;
        }
        if path != latest {
            remove_file(&path)?;
            bytes -= size;
            count -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut records = Records::default();
        for number in numbers {
            records.event(number, number.to_string().as_bytes());
        }
        records.bytes
    }

    fn texts(events: &LoggedEvents) -> Vec<&str> {
        let text = |event| std::str::from_utf8(event).expect("text");
        events.events.iter().map(|event| text(event)).collect()
    }

    #[test]
    fn every_prefix_of_a_file_is_read_up_to_its_last_complete_record() {
        let file = file(4..7);
        // A length, a number and one digit.
        let record = 4 + 8 + 1;
        for length in 0..=file.len() {
            let latest = Latest::read(&file[..length]);
            assert_eq!(latest.events.len(), length / record, "{length}");
        }
    }

    #[test]
    fn events_are_read_from_the_one_before_the_first_on() {
        let file = file(4..7);
        let latest = Latest::read(&file);
        assert_eq!(texts(&latest.after(3).expect("kept")), ["4", "5", "6"]);
        assert_eq!(texts(&latest.after(5).expect("kept")), ["6"]);
        assert!(latest.after(6).expect("kept").events.is_empty());
        for unknown in [0, 2, 7, u64::MAX] {
            assert_eq!(latest.after(unknown), None, "{unknown}");
        }
        assert_eq!(Latest::read(&[]).after(0), None);
    }

    #[test]
    fn a_stream_begins_anew_after_a_gap_and_has_each_event_once() {
        let file = file([1, 2, 2, 1, 5, 6, 6]);
        let latest = Latest::read(&file);
        assert_eq!(latest.after(2), None);
        assert_eq!(texts(&latest.after(4).expect("kept")), ["5", "6"]);
    }

    #[test]
    fn the_latest_event_is_kept_whatever_its_size() {
        let large = vec![b'x'; 2 * MAX_STREAM_BYTES as usize];
        let mut records = Records::default();
        records.event(0, b"small");
        records.event(1, &large);
        records.end(1);
        let kept = Latest::read(&records.bytes).within_limit();
        let kept = Latest::read(&kept.bytes);
        assert_eq!((kept.first, kept.events.len(), kept.ended), (1, 1, true));
    }
}

//! Where readers of streams have stopped, so that they go on there instead of reading files from their beginning.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use bytes::Bytes;
use mcpline::sharing::LoggedEvents;

use crate::limits::{MAX_POSITIONS, MAX_READ_BYTES};
use crate::record::{END, HEADER};

/// The record of the latest event that a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Where the record begins in the file.
    pub(crate) place: u64,
    /// The number of the event.
    pub(crate) number: u64,
    /// The length of the event.
    pub(crate) length: u32,
}

/// The positions of readers, by stream and number of the event.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    positions: HashMap<(String, u64), Position>,
}

impl Readers {
    /// Returns the position of the reader that has this event, if it is known.
    pub(crate) fn take(&mut self, stream: &str, number: u64) -> Option<Position> {
        self.positions.remove(&(stream.to_owned(), number))
    }

    pub(crate) fn put(&mut self, stream: &str, position: Position) {
        if self.positions.len() >= MAX_POSITIONS {
            self.positions.clear();
        }
        let key = (stream.to_owned(), position.number);
        self.positions.insert(key, position);
    }
}

impl Position {
    /// Returns the events after this one, or a part of them, with the position of the last; `None` if the file no longer has the
    /// record here, or has a gap after it: it must then be read as a whole.
    pub(crate) fn read_on(self, file: &mut File) -> io::Result<Option<(LoggedEvents, Self)>> {
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(self.place))?;
        let mut file = BufReader::new(file);
        // The file may have been replaced by one without the oldest events.
        match header(&mut file)? {
            Some((length, number)) if (length, number) == (self.length, self.number) => {}
            _ => return Ok(None),
        }
        file.seek_relative(i64::from(self.length))?;
        let mut latest = self;
        let mut events = Vec::new();
        let mut bytes = 0;
        loop {
            let place = latest.place + HEADER + u64::from(latest.length);
            let Some((length, number)) = header(&mut file)? else {
                return Ok(Some((LoggedEvents::new(events, false), latest)));
            };
            if length == END {
                let is_complete = number == latest.number;
                return Ok(is_complete.then(|| (LoggedEvents::new(events, true), latest)));
            }
            if number != latest.number + 1 {
                return Ok(None);
            }
            if place + HEADER + u64::from(length) > end {
                // It is being written, or was left incomplete.
                return Ok(Some((LoggedEvents::new(events, false), latest)));
            }
            bytes += length as usize;
            if bytes > MAX_READ_BYTES && !events.is_empty() {
                return Ok(Some((LoggedEvents::part(events), latest)));
            }
            let mut event = vec![0; length as usize];
            file.read_exact(&mut event)?;
            events.push(Bytes::from(event));
            latest = Self {
                place,
                number,
                length,
            };
        }
    }
}

/// Returns the length and the number in the next record; `None` if the file ends before.
fn header(file: &mut impl Read) -> io::Result<Option<(u32, u64)>> {
    let (mut length, mut number) = ([0; 4], [0; 8]);
    let read = file
        .read_exact(&mut length)
        .and_then(|()| file.read_exact(&mut number));
    match read {
        Ok(()) => Ok(Some((
            u32::from_le_bytes(length),
            u64::from_le_bytes(number),
        ))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

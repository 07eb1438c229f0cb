//! Reads sessions and streams, and takes tokens of buckets: what does not wait in the queue.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{BucketPolicy, LoggedEvents, TakeOutcome};
use redis::{Cmd, Value, from_redis_value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Connector};
use crate::failure::Failure;
use crate::keys::{self, Keys};
use crate::limits::{MAX_PART_BYTES, MAX_PART_EVENTS, MAX_READ_STREAMS};
use crate::scripts;

/// Reads over one connection, which it opens when it is needed. While connecting fails, operations fail at once, except
/// for one attempt after each delay.
pub(crate) struct Reader {
    connector: Arc<Connector>,
    keys: Keys,
    state: Mutex<State>,
    /// Permits to read streams.
    streams: Semaphore,
    timeout: Duration,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Counts connections.
    number: u64,
    /// How many times the server had turned out to be a replica before the connection.
    demotions: u64,
    /// The last failure, and until when to wait before the next attempt.
    failure: Option<(Instant, Failure)>,
    backoff: Backoff,
}

impl Reader {
    /// Creates a reader. `timeout` is how long a stream waits until fewer are read at once.
    pub(crate) fn new(connector: Arc<Connector>, keys: Keys, timeout: Duration) -> Self {
        Self {
            connector,
            keys,
            state: Mutex::default(),
            streams: Semaphore::new(MAX_READ_STREAMS),
            timeout,
        }
    }

    /// Returns a session.
    pub(crate) async fn load(&self, session: &str) -> Result<Option<Bytes>, Failure> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.session(session));
        let value: Option<Vec<u8>> = read(self.ask(&get).await?)?;
        // A removed session leaves an empty value.
        Ok(value.filter(|value| !value.is_empty()).map(Bytes::from))
    }

    /// Returns events of a stream after `after`, within limits; `None` if some of them are not kept.
    pub(crate) async fn read(
        &self,
        stream: &str,
        after: u64,
    ) -> Result<Option<LoggedEvents>, Failure> {
        // No event can follow the one with the highest number.
        let Some(next) = after.checked_add(1) else {
            return Ok(None);
        };
        let permit = tokio::time::timeout(self.timeout, self.streams.acquire());
        let _permit = permit.await.map_err(|_| Failure::TimedOut(self.timeout))?;
        let (session, name) = keys::split_stream_name(stream);
        let mut command = redis::cmd("EVAL");
        command.arg(scripts::READ).arg(2);
        command.arg(self.keys.index(session));
        command.arg(self.keys.stream(session, name));
        command.arg(name).arg(format!("{next}-1"));
        command.arg(MAX_PART_EVENTS).arg(MAX_PART_BYTES);
        let part: Option<Vec<Value>> = read(self.ask(&command).await?)?;
        let Some(part) = part else {
            return Ok(None);
        };
        let mut values = part.into_iter();
        let (Some(entry), Some(has_more)) = (values.next(), values.next()) else {
            return Err(Failure::Unreadable("a stream without an entry".to_owned()));
        };
        let entry: String = read(entry)?;
        let entry = StreamEntry::parse(&entry)
            .ok_or_else(|| Failure::Unreadable(format!("the entry {entry:?} of a stream")))?;
        if next < entry.first || after > entry.last {
            return Ok(None);
        }
        let mut events = Vec::with_capacity(values.len() / 2);
        for number in next.. {
            let Some(id) = values.next() else { break };
            let Some(event) = values.next() else {
                return Err(Failure::Unreadable("an event without a message".to_owned()));
            };
            if read::<String>(id)? != format!("{number}-1") {
                // An event in between was removed.
                return Ok(None);
            }
            events.push(Bytes::from(read::<Vec<u8>>(event)?));
        }
        if read::<u8>(has_more)? == 1 {
            return Ok(Some(LoggedEvents::part(events)));
        }
        // Valkey may have evicted the events.
        if (events.len() as u64) < entry.last - after {
            return Ok(None);
        }
        Ok(Some(LoggedEvents::new(events, entry.has_ended)))
    }

    /// Takes up to so many tokens of a bucket.
    pub(crate) async fn take(
        &self,
        key: &str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Result<TakeOutcome, Failure> {
        let answer = self.ask(&self.bucket_command(key, policy, tokens, 0)).await;
        Ok(match read(answer?)? {
            (0, microseconds) => TakeOutcome::Empty(Duration::from_micros(microseconds)),
            (taken, _) => TakeOutcome::Taken(taken),
        })
    }

    /// Gives back tokens of a bucket.
    pub(crate) async fn give_back(
        &self,
        key: &str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Result<(), Failure> {
        let command = self.bucket_command(key, policy, 0, tokens);
        self.ask(&command).await.map(|_| ())
    }

    fn bucket_command(&self, key: &str, policy: BucketPolicy, taken: u32, returned: u32) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(scripts::TAKE).arg(1);
        command.arg(self.keys.bucket(key));
        let nanoseconds = policy.interval.as_nanos().max(1);
        command
            .arg(nanoseconds.to_string())
            .arg(policy.burst.max(1));
        command.arg(taken).arg(returned);
        command
    }

    /// Sends a command. If the connection was lost, sends it once more: it only reads, or at worst takes or gives back tokens
    /// twice.
    async fn ask(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut may_repeat = true;
        loop {
            let (number, mut connection) = self.connection().await?;
            let failure = match connection.query(command).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let is_lost = matches!(failure, Failure::Unreachable(_) | Failure::Demoted(_));
            if failure.breaks_connection() {
                self.drop_connection(number, &failure).await;
            }
            if !(is_lost && std::mem::take(&mut may_repeat)) {
                return Err(failure);
            }
        }
    }

    /// Returns the connection and its number. All who need one wait for the same attempt.
    async fn connection(&self) -> Result<(u64, Connection), Failure> {
        let mut state = self.state.lock().await;
        let demotions = *self.connector.demotions().borrow();
        if let Some(connection) = &state.connection
            && state.demotions == demotions
        {
            return Ok((state.number, connection.clone()));
        }
        if let Some((until, failure)) = &state.failure
            && Instant::now() < *until
        {
            return Err(failure.clone());
        }
        match self.connector.connect(Duration::ZERO).await {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.number += 1;
                state.demotions = demotions;
                state.failure = None;
                state.backoff.reset();
                Ok((state.number, connection))
            }
            Err(failure) => {
                let until = Instant::now() + state.backoff.next_delay();
                state.failure = Some((until, failure.clone()));
                Err(failure)
            }
        }
    }

    /// Drops a connection that failed.
    async fn drop_connection(&self, number: u64, failure: &Failure) {
        let mut state = self.state.lock().await;
        if state.number == number && state.connection.take().is_some() {
            // A closed connection is replaced at once, but a server that does not answer gets a pause.
            if matches!(failure, Failure::TimedOut(_)) {
                let until = Instant::now() + state.backoff.next_delay();
                state.failure = Some((until, failure.clone()));
            }
        }
    }
}

/// What the index says about a stream.
#[derive(Debug, PartialEq, Eq)]
struct StreamEntry {
    first: u64,
    last: u64,
    has_ended: bool,
}

impl StreamEntry {
    fn parse(entry: &str) -> Option<Self> {
        let mut parts = entry.split(' ').skip(1);
        let first = parts.next()?.parse().ok()?;
        let last = parts.next()?.parse().ok()?;
        let has_ended = parts.nth(1)? == "1";
        Some(Self {
            first,
            last,
            has_ended,
        })
    }
}

fn read<T: redis::FromRedisValue>(value: Value) -> Result<T, Failure> {
    from_redis_value(value).map_err(|error| Failure::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_streams_are_read() {
        let entry = StreamEntry {
            first: 4,
            last: 9,
            has_ended: true,
        };
        assert_eq!(StreamEntry::parse("2 4 9 700 1"), Some(entry));
        for invalid in ["", "2 4 9 700", "2 4 x 700 0", "2 -4 9 700 0"] {
            assert_eq!(StreamEntry::parse(invalid), None, "{invalid}");
        }
    }
}

//! The task that writes what is queued.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline_runtime::{WarningLimit, background};
use redis::{Cmd, Value, from_redis_value};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Connector};
use crate::failure::Failure;
use crate::keys::{self, Keys};
use crate::limits::{
    BUS_LIFETIME, EVENT_BYTES, FLUSH_TIMEOUT, MAX_BUS_BYTES, MAX_BUS_EVENTS, MAX_SESSION_BYTES,
    MAX_SESSION_STREAMS, MAX_STREAM_BYTES, MAX_STREAM_EVENTS, MAX_TIMEOUTS, REMOVED_LIFETIME,
    STREAM_LIFETIME,
};
use crate::operation_queue::{Entry, Operation, Queue, report_outcome};
use crate::scripts::{LoadedScript, ScriptCall};

/// Writes batches of the queue, one after the other, until the queue is closed. Operations that fail for a temporary
/// reason are written again, in order; scripts and receivers recognize repetitions.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) connector: Arc<Connector>,
    pub(crate) keys: Keys,
    /// The name of this process on the bus.
    pub(crate) sender: String,
    pub(crate) warnings: WarningLimit,
}

impl Writer {
    pub(crate) async fn run(self) {
        let mut link: Option<(Connection, LoadedScript)> = None;
        let mut backoff = Backoff::default();
        let mut has_warned = false;
        let mut flush_until = None;
        while let Some(batch) = self.queue.take().await {
            let failure = match self.write(&mut link, batch).await {
                None => {
                    backoff.reset();
                    if std::mem::take(&mut has_warned) {
                        // A warning, like the other line: Python and Node show nothing else.
                        tracing::warn!("Valkey can be written to again");
                    }
                    continue;
                }
                Some(failure) => failure,
            };
            if let Some(suppressed) = self.warnings.admit() {
                tracing::warn!(error = %failure, suppressed, "cannot write shared state to Valkey; retrying");
                has_warned = true;
            }
            if self.queue.is_closed() {
                let until = *flush_until.get_or_insert_with(|| Instant::now() + FLUSH_TIMEOUT);
                if Instant::now() >= until {
                    return;
                }
                tokio::time::sleep(backoff.next_delay()).await;
            } else {
                self.queue.sleep(backoff.next_delay()).await;
            }
        }
    }

    /// Writes a batch. Returns why some of it, which is queued again, was not written.
    async fn write(
        &self,
        link: &mut Option<(Connection, LoadedScript)>,
        batch: Vec<Entry>,
    ) -> Option<Failure> {
        let batch = without_removed(batch);
        let is_single = batch.len() == 1;
        let outcomes = match self.send(link, &batch).await {
            Ok(outcomes) => outcomes,
            Err(failure) => {
                self.queue.finish_batch(batch, Some(failure.clone()));
                return Some(failure);
            }
        };
        let mut kept: Vec<Entry> = Vec::new();
        let mut passing: Option<Failure> = None;
        let mut is_link_broken = false;
        for (mut entry, outcome) in batch.into_iter().zip(outcomes) {
            if let Outcome::Failed(failure) = &outcome {
                is_link_broken |= !matches!(failure, Failure::Unavailable(_) | Failure::Refused(_));
            }
            match outcome {
                Outcome::Done(instead) => report_outcome(entry, Ok(instead)),
                Outcome::NotTried => kept.push(entry),
                Outcome::Failed(failure)
                    if failure.is_temporary()
                        && !(is_single && is_too_large(&mut entry, &failure)) =>
                {
                    kept.push(entry);
                    if failure.breaks_connection() || passing.is_none() {
                        passing = Some(failure);
                    }
                }
                Outcome::Failed(failure) => {
                    if let Some(suppressed) = self.warnings.admit() {
                        tracing::warn!(error = %failure, suppressed, "shared state was not written");
                    }
                    report_outcome(entry, Err(failure));
                }
            }
        }
        if is_link_broken {
            *link = None;
        }
        self.queue.finish_batch(kept, passing.clone());
        passing
    }

    /// Sends a batch; returns the outcome of each operation. A connection that was lost since the last batch is replaced at
    /// once: the server may have been restarted in the meantime.
    ///
    /// # Errors
    ///
    /// There is no connection.
    async fn send(
        &self,
        link: &mut Option<(Connection, LoadedScript)>,
        batch: &[Entry],
    ) -> Result<Vec<Outcome>, Failure> {
        if let Some((connection, script)) = link {
            let outcomes = send(connection, batch.len(), self.groups(script, batch)).await;
            let is_lost = |outcome: &Outcome| match outcome {
                Outcome::Failed(Failure::Demoted(_)) => {
                    self.connector.note_demotion();
                    true
                }
                Outcome::Failed(Failure::Unreachable(_) | Failure::UnknownScript(_)) => true,
                _ => false,
            };
            if !outcomes.iter().any(is_lost) {
                return Ok(outcomes);
            }
            *link = None;
        }
        let (connection, script) = link.insert(self.open().await?);
        Ok(send(connection, batch.len(), self.groups(script, batch)).await)
    }

    /// Returns a command for the operations of each session, and one for those of the bus. The bus comes last, so that a
    /// process that receives a message finds what was saved before it.
    fn groups(&self, script: &LoadedScript, batch: &[Entry]) -> Vec<Group> {
        let mut by_session: Vec<(Vec<usize>, Vec<ScriptCall<'_>>)> = Vec::new();
        let mut bus = (Vec::new(), Vec::new());
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, entry) in batch.iter().enumerate() {
            let (entries, calls) = match entry.operation.session() {
                None => &mut bus,
                Some(session) => {
                    let place = *places.entry(session).or_insert(by_session.len());
                    if place == by_session.len() {
                        by_session.push((Vec::new(), Vec::new()));
                    }
                    &mut by_session[place]
                }
            };
            entries.push(at);
            calls.push(self.call(&entry.operation));
        }
        by_session
            .into_iter()
            .chain([bus])
            .filter(|(entries, _)| !entries.is_empty())
            .map(|(entries, calls)| Group {
                entries,
                command: script.command(&calls),
            })
            .collect()
    }

    async fn open(&self) -> Result<(Connection, LoadedScript), Failure> {
        let mut connection = self.connector.connect(Duration::ZERO).await?;
        let script = LoadedScript::load(&mut connection).await?;
        Ok((connection, script))
    }

    fn call<'o>(&'o self, operation: &'o Operation) -> ScriptCall<'o> {
        let keys = &self.keys;
        match operation {
            Operation::Save {
                session,
                value,
                replaces,
                lifetime,
            } => {
                let call = ScriptCall::new("save", [keys.session(session), keys.index(session)])
                    .bytes(value)
                    .number(lifetime_ms(*lifetime));
                replaces.iter().fold(call, |call, value| call.bytes(value))
            }
            Operation::Remove { session } => {
                ScriptCall::new("remove", [keys.session(session), keys.index(session)])
                    .number(lifetime_ms(REMOVED_LIFETIME))
            }
            Operation::RecordUse {
                key,
                value,
                lifetime,
            } => ScriptCall::new("save", [keys.used(key), keys.index(key)])
                .bytes(value)
                .number(lifetime_ms(*lifetime)),
            Operation::Append {
                stream,
                number,
                event,
            } => {
                let (session, name) = keys::split_stream_name(stream);
                let (index, events) = (keys.index(session), keys.stream(session, name));
                ScriptCall::new("append", [keys.session(session), index, events])
                    .bytes(name.as_bytes())
                    .number(*number)
                    .bytes(event)
                    .limit(MAX_STREAM_EVENTS)
                    .limit(MAX_STREAM_BYTES)
                    .limit(MAX_SESSION_BYTES)
                    .limit(MAX_SESSION_STREAMS)
                    .limit(EVENT_BYTES)
                    .number(lifetime_ms(STREAM_LIFETIME))
            }
            Operation::End { stream, last } => {
                let (session, name) = keys::split_stream_name(stream);
                ScriptCall::new("end", [keys.index(session), keys.stream(session, name)])
                    .bytes(name.as_bytes())
                    .number(*last)
            }
            Operation::Publish { number, message } => {
                ScriptCall::new("publish", [keys.bus(), keys.bus_bytes()])
                    .bytes(self.sender.as_bytes())
                    .number(*number)
                    .bytes(message)
                    .limit(MAX_BUS_EVENTS)
                    .limit(MAX_BUS_BYTES)
                    .limit(EVENT_BYTES)
                    .number(lifetime_ms(BUS_LIFETIME))
            }
        }
    }
}

/// Whether an operation that was sent alone is too large to be written within the timeout. Sent again and again, it would keep
/// all others waiting.
fn is_too_large(entry: &mut Entry, failure: &Failure) -> bool {
    if !entry.is_large() || !matches!(failure, Failure::TimedOut(_)) {
        return false;
    }
    entry.timeouts += 1;
    entry.timeouts >= MAX_TIMEOUTS
}

/// What became of an operation.
#[derive(Debug, Clone)]
enum Outcome {
    /// It was executed; or another process has changed the session, which has this value.
    Done(Option<Bytes>),
    Failed(Failure),
    /// An earlier operation on the same session, or on the bus, failed: later ones must not overtake it.
    NotTried,
}

/// The operations of a batch on one session, or on the bus: their places in the batch, and the command for them.
struct Group {
    entries: Vec<usize>,
    command: Cmd,
}

/// Returns the batch without operations on sessions that it removes later: a session must be removed even while its other
/// operations fail for lack of memory.
fn without_removed(mut batch: Vec<Entry>) -> Vec<Entry> {
    let mut removed: HashSet<String> = HashSet::new();
    let mut kept = Vec::with_capacity(batch.len());
    while let Some(entry) = batch.pop() {
        if let Some(session) = entry.operation.session()
            && removed.contains(session)
        {
            report_outcome(entry, Ok(None));
            continue;
        }
        if let Operation::Remove { session } = &entry.operation {
            removed.insert(session.clone());
        }
        kept.push(entry);
    }
    kept.reverse();
    kept
}

/// Sends the commands of groups; returns the outcome of each of the operations, of which there are `count`. On a cluster, the
/// groups are sent separately, because they have different slots.
async fn send(connection: &mut Connection, count: usize, groups: Vec<Group>) -> Vec<Outcome> {
    let lost = || Outcome::Failed(Failure::Unreachable("the runtime has ended".to_owned()));
    let mut outcomes: Vec<Outcome> = (0..count).map(|_| lost()).collect();
    let mut note = |entries: &[usize], answer: Result<Answer, Failure>| {
        for (place, outcome) in entries.iter().zip(outcomes_of(entries.len(), answer)) {
            outcomes[*place] = outcome;
        }
    };
    if !connection.is_cluster() {
        let (entries, commands): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .map(|group| (group.entries, group.command))
            .unzip();
        match connection.query_all(commands).await {
            Ok(answers) if answers.len() == entries.len() => {
                for (entries, answer) in entries.iter().zip(answers) {
                    note(entries, answer.and_then(read_answer));
                }
            }
            Ok(answers) => {
                let reason = format!("{} answers to {} commands", answers.len(), entries.len());
                for entries in &entries {
                    note(entries, Err(Failure::Unreachable(reason.clone())));
                }
            }
            Err(failure) => {
                for entries in &entries {
                    note(entries, Err(failure.clone()));
                }
            }
        }
        return outcomes;
    }
    let mut sent = JoinSet::new();
    for group in groups {
        let mut connection = connection.clone();
        sent.spawn(background::task(async move {
            let answer = connection.query(&group.command).await;
            (group.entries, answer.and_then(read_answer))
        }));
    }
    while let Some(group) = sent.join_next().await {
        if let Ok((entries, answer)) = group {
            note(&entries, answer);
        }
    }
    outcomes
}

/// How many operations of a group succeeded, the error of the next one, and what operations returned, by their places.
type Answer = (usize, Vec<u8>, Vec<(usize, Vec<u8>)>);

fn read_answer(answer: Value) -> Result<Answer, Failure> {
    from_redis_value(answer).map_err(|error| Failure::Unreadable(error.to_string()))
}

/// Returns the outcomes of the operations of a group.
fn outcomes_of(count: usize, answer: Result<Answer, Failure>) -> Vec<Outcome> {
    let (done, error, returned) = match answer {
        Ok(answer) => answer,
        Err(failure) => return vec![Outcome::Failed(failure); count],
    };
    let mut outcomes = vec![Outcome::Done(None); done.min(count)];
    for (place, value) in returned {
        if let Some(outcome) = outcomes.get_mut(place) {
            *outcome = Outcome::Done(Some(value.into()));
        }
    }
    if outcomes.len() < count {
        let failure = Failure::of_text(&String::from_utf8_lossy(&error));
        outcomes.push(Outcome::Failed(failure));
    }
    outcomes.resize(count, Outcome::NotTried);
    outcomes
}

/// Lifetimes of 100 years or more are stored as endless: Valkey refuses times that its clock cannot represent.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// Returns a lifetime in milliseconds; 0 if it does not end.
fn lifetime_ms(lifetime: Duration) -> u64 {
    if lifetime >= ENDLESS {
        return 0;
    }
    u64::try_from(lifetime.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use crate::limits::MAX_BATCH_BYTES;

    use super::*;

    #[test]
    fn operations_after_a_failed_one_of_the_same_group_are_not_tried() {
        let error = b"OOM command not allowed".to_vec();
        let outcomes = outcomes_of(4, Ok((2, error, vec![(1, b"other".to_vec())])));
        assert!(
            matches!(
                outcomes[..],
                [
                    Outcome::Done(None),
                    Outcome::Done(Some(_)),
                    Outcome::Failed(Failure::Unavailable(_)),
                    Outcome::NotTried
                ]
            ),
            "{outcomes:?}"
        );
    }

    #[tokio::test]
    async fn only_a_large_operation_is_dropped_after_several_timeouts() {
        let queue = Queue::default();
        for bytes in [MAX_BATCH_BYTES, 1] {
            queue.push(Operation::Publish {
                number: 1,
                message: vec![0; bytes].into(),
            });
            let mut batch = queue.take().await.expect("a batch");
            queue.finish_batch(Vec::new(), None);
            let entry = &mut batch[0];
            let unreachable = Failure::Unreachable("closed".to_owned());
            let timed_out = Failure::TimedOut(Duration::ZERO);
            for _ in 1..MAX_TIMEOUTS {
                assert!(!is_too_large(entry, &unreachable));
                assert!(!is_too_large(entry, &timed_out));
            }
            assert_eq!(is_too_large(entry, &timed_out), bytes == MAX_BATCH_BYTES);
        }
    }

    #[test]
    fn lifetimes_are_at_least_a_millisecond_and_may_have_no_end() {
        assert_eq!(lifetime_ms(Duration::ZERO), 1);
        assert_eq!(lifetime_ms(Duration::from_secs(3)), 3_000);
        assert_eq!(lifetime_ms(Duration::MAX), 0);
    }
}

//! The task that writes what is queued.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpline_runtime::background;
use redis::{Cmd, Value};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Connector};
use crate::failure::Failure;
use crate::keys::{self, Keys};
use crate::limits::{
    BUS_LIFETIME, EVENT_BYTES, FLUSH_TIMEOUT, MAX_BUS_BYTES, MAX_BUS_EVENTS, MAX_SESSION_BYTES,
    MAX_SESSION_STREAMS, MAX_STREAM_BYTES, MAX_STREAM_EVENTS, STREAM_LIFETIME,
};
use crate::queue::{Entry, Operation, Queue, report_outcome};
use crate::scripts::{LoadedScripts, Script};
use crate::warning_limiter::WarningLimiter;

/// Writes batches of the queue, one after the other, until the queue is closed. Operations that fail for a temporary
/// reason are written again, in order; scripts and receivers recognize repetitions.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) connector: Arc<Connector>,
    pub(crate) keys: Keys,
    /// The name of this process on the bus.
    pub(crate) sender: String,
    pub(crate) warnings: WarningLimiter,
}

impl Writer {
    pub(crate) async fn run(self) {
        let mut link: Option<(Connection, LoadedScripts)> = None;
        let mut backoff = Backoff::default();
        let mut has_failed = false;
        let mut flush_until = None;
        while let Some(batch) = self.queue.take().await {
            let failure = match self.write(&mut link, batch).await {
                None => {
                    backoff.reset();
                    if std::mem::take(&mut has_failed) {
                        tracing::info!("Valkey can be written to again");
                    }
                    continue;
                }
                Some(failure) => failure,
            };
            has_failed = true;
            if let Some(suppressed) = self.warnings.admit() {
                tracing::warn!(error = %failure, suppressed, "cannot write shared state to Valkey; retrying");
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
        link: &mut Option<(Connection, LoadedScripts)>,
        batch: Vec<Entry>,
    ) -> Option<Failure> {
        let outcomes = match self.send(link, &batch).await {
            Ok(outcomes) => outcomes,
            Err(failure) => {
                self.queue.finish_batch(batch, Some(failure.clone()));
                return Some(failure);
            }
        };
        let mut kept: Vec<Entry> = Vec::new();
        let mut passing: Option<Failure> = None;
        for (entry, outcome) in batch.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    if let Operation::Remove { session } = &entry.operation {
                        // Earlier operations that are written again must not restore the removed session.
                        let is_of_it =
                            |earlier: &mut Entry| earlier.operation.session() == Some(session);
                        for earlier in kept.extract_if(.., is_of_it) {
                            report_outcome(earlier, Ok(()));
                        }
                    }
                    report_outcome(entry, Ok(()));
                }
                Err(failure) if failure.is_temporary() => {
                    kept.push(entry);
                    if failure.breaks_connection() || passing.is_none() {
                        passing = Some(failure);
                    }
                }
                Err(failure) => {
                    if let Some(suppressed) = self.warnings.admit() {
                        tracing::warn!(error = %failure, suppressed, "shared state was not written");
                    }
                    report_outcome(entry, Err(failure));
                }
            }
        }
        if let Some(failure) = &passing
            && !matches!(failure, Failure::NotNow(_))
        {
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
        link: &mut Option<(Connection, LoadedScripts)>,
        batch: &[Entry],
    ) -> Result<Vec<Result<(), Failure>>, Failure> {
        if let Some((connection, scripts)) = link {
            let outcomes = send(connection, batch, self.commands(scripts, batch)).await;
            let is_lost = |outcome: &Result<(), Failure>| {
                matches!(
                    outcome,
                    Err(Failure::Unreachable(_) | Failure::UnknownScript(_))
                )
            };
            if !outcomes.iter().any(is_lost) {
                return Ok(outcomes);
            }
            *link = None;
        }
        let (connection, scripts) = link.insert(self.open().await?);
        Ok(send(connection, batch, self.commands(scripts, batch)).await)
    }

    fn commands(&self, scripts: &LoadedScripts, batch: &[Entry]) -> Vec<Cmd> {
        let operations = batch.iter().map(|entry| &entry.operation);
        operations
            .map(|operation| self.command(scripts, operation))
            .collect()
    }

    async fn open(&self) -> Result<(Connection, LoadedScripts), Failure> {
        let mut connection = self.connector.connect(Duration::ZERO).await?;
        let scripts = LoadedScripts::load(&mut connection).await?;
        Ok((connection, scripts))
    }

    fn command(&self, scripts: &LoadedScripts, operation: &Operation) -> Cmd {
        let keys = &self.keys;
        match operation {
            Operation::Save {
                session,
                value,
                lifetime,
            } => {
                let mut call = scripts.call(
                    Script::Save,
                    &[&keys.session(session), &keys.index(session)],
                );
                call.arg(&value[..]).arg(lifetime_ms(*lifetime));
                call
            }
            Operation::Remove { session } => scripts.call(
                Script::Remove,
                &[&keys.session(session), &keys.index(session)],
            ),
            Operation::Append {
                stream,
                number,
                event,
            } => {
                let (session, name) = keys::split_stream_name(stream);
                let (index, events) = (keys.index(session), keys.stream(session, name));
                let all: [&str; 3] = [&keys.session(session), &index, &events];
                let mut call = scripts.call(Script::Append, &all);
                call.arg(name).arg(*number).arg(&event[..]);
                call.arg(MAX_STREAM_EVENTS).arg(MAX_STREAM_BYTES);
                call.arg(MAX_SESSION_BYTES).arg(MAX_SESSION_STREAMS);
                call.arg(EVENT_BYTES).arg(lifetime_ms(STREAM_LIFETIME));
                call
            }
            Operation::End { stream } => {
                let (session, name) = keys::split_stream_name(stream);
                let mut call = scripts.call(Script::End, &[&keys.index(session)]);
                call.arg(name);
                call
            }
            Operation::Publish { number, message } => {
                let mut call = scripts.call(Script::Publish, &[&keys.bus(), &keys.bus_bytes()]);
                call.arg(&self.sender).arg(*number).arg(&message[..]);
                call.arg(MAX_BUS_EVENTS).arg(MAX_BUS_BYTES);
                call.arg(EVENT_BYTES).arg(lifetime_ms(BUS_LIFETIME));
                call
            }
        }
    }
}

/// Sends the commands of entries; returns the outcome of each. On a cluster, the commands of each session are sent
/// together, because they have the same slot.
async fn send(
    connection: &mut Connection,
    batch: &[Entry],
    commands: Vec<Cmd>,
) -> Vec<Result<(), Failure>> {
    let count = commands.len();
    if !connection.is_cluster() {
        return send_together(connection, commands).await;
    }
    let mut by_session: HashMap<Option<&str>, Vec<(usize, Cmd)>> = HashMap::new();
    for (at, (entry, command)) in batch.iter().zip(commands).enumerate() {
        let group = by_session.entry(entry.operation.session()).or_default();
        group.push((at, command));
    }
    let mut groups = JoinSet::new();
    for group in by_session.into_values() {
        let mut connection = connection.clone();
        groups.spawn(background::task(async move {
            let (places, commands): (Vec<usize>, Vec<Cmd>) = group.into_iter().unzip();
            let outcomes = send_together(&mut connection, commands).await;
            places.into_iter().zip(outcomes).collect::<Vec<_>>()
        }));
    }
    let lost = || Err(Failure::Unreachable("the runtime has ended".to_owned()));
    let mut outcomes: Vec<_> = (0..count).map(|_| lost()).collect();
    while let Some(group) = groups.join_next().await {
        for (at, outcome) in group.unwrap_or_default() {
            outcomes[at] = outcome;
        }
    }
    outcomes
}

async fn send_together(
    connection: &mut Connection,
    commands: Vec<Cmd>,
) -> Vec<Result<(), Failure>> {
    let count = commands.len();
    match connection.query_all(commands).await {
        Ok(outcomes) if outcomes.len() == count => {
            let outcomes = outcomes.into_iter();
            outcomes.map(|outcome| outcome.map(|_: Value| ())).collect()
        }
        Ok(outcomes) => {
            let reason = format!("{} answers to {count} commands", outcomes.len());
            vec![Err(Failure::Unreachable(reason)); count]
        }
        Err(failure) => vec![Err(failure); count],
    }
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
    use super::*;

    #[test]
    fn lifetimes_are_at_least_a_millisecond_and_may_have_no_end() {
        assert_eq!(lifetime_ms(Duration::ZERO), 1);
        assert_eq!(lifetime_ms(Duration::from_secs(3)), 3_000);
        assert_eq!(lifetime_ms(Duration::MAX), 0);
    }
}

//! A check of shared state that a program implements: whether its functions do what the traits of [`sharing`](crate::sharing)
//! promise.

mod subscription;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline_runtime::clock;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::background;
use crate::error::Error;
use crate::server::Server;
use crate::sharing::{LoggedEvents, SharingError, SharingReply, SharingRequest};
use crate::transport::{Stop, Transport};

use super::ForeignSharing;
use super::limits::{LEAVE_TIMEOUT, MAX_APPENDED_EVENTS};
use super::requests::{Requests, wrong_reply};
use subscription::CheckSubscription;

/// How long a session is kept that the check saves: longer than the check takes.
const LIFETIME: Duration = Duration::from_secs(600);
/// How long messages of the bus may take.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of messages that are sent over the bus, before the last one.
const MESSAGES: usize = 100;
/// Number of changes of one session at the same time: as many as calls of the store run at once.
const CONCURRENT: usize = 16;
/// Number of attempts to save one of these changes. Before each conflict, another change was stored, so `CONCURRENT` are enough.
/// Twice as many allow for a store that returns a value which was replaced meanwhile.
const MAX_SAVES: usize = 2 * CONCURRENT;
/// Number of events of a stream that is written in several calls.
const LONG_STREAM: usize = 600;

/// The check of shared state, served as if it were a transport: it ends when everything was checked. The executors of the server
/// run the functions.
///
/// It saves, changes and removes sessions, also at the same time, writes and reads streams, and publishes messages, with the
/// requests that a server sends. Their names begin with `check-`; what was written may stay.
pub struct SharingCheck {
    sharing: ForeignSharing,
    other: ForeignSharing,
}

impl SharingCheck {
    /// Creates a check of `sharing`. `other` is the same shared state as another process has it. Neither belongs to a server.
    pub fn new(sharing: ForeignSharing, other: ForeignSharing) -> Self {
        Self { sharing, other }
    }
}

impl Transport for SharingCheck {
    /// Checks the functions.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a function failed, did not answer within the timeout of its shared state,
    /// or does something else. The text begins with the name of the function, such as `sessions.save`.
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed): `stop` was signalled before the end. A subscription is ended first, for
    /// a second at most. If the future is dropped, it is ended in the background.
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        let requests = |sharing: &ForeignSharing| {
            let requests = sharing.0.state().requests.clone();
            requests.set_server(&server);
            requests
        };
        let check = Check {
            processes: [requests(&self.sharing), requests(&self.other)],
            name: format!("check-{}", clock::token()),
            server,
        };
        let mut subscription = None;
        let checked = tokio::select! {
            checked = check.run(&mut subscription) => {
                checked.map_err(|failure| Error::broken_rule(failure.function, failure.text))
            }
            () = stop.stopped() => Err(Error::closed("the check was stopped")),
        };
        if let Some(mut subscription) = subscription {
            // Only if the check was stopped, which is the outcome.
            let _ = timeout(LEAVE_TIMEOUT, subscription.end()).await;
        }
        checked
    }
}

/// One of the two processes.
type Process = usize;
/// The process that [`SharingCheck::new`] takes first.
const A: Process = 0;
/// The other one.
const B: Process = 1;

/// A request whose answer must be the right one.
struct Step {
    process: Process,
    /// The end of the name of the session or the stream.
    name: &'static str,
    operation: Operation,
    /// The function whose effect is checked; `None` if it is that of the operation.
    function: Option<&'static str>,
    /// What is checked.
    rule: &'static str,
}

/// The operation of a step, and its answer.
enum Operation {
    /// The session, what it replaces, and what is stored if there is a conflict.
    Save(&'static str, &'static str, Option<&'static str>),
    /// The same, with a lifetime that does not end.
    SaveForever(&'static str, &'static str),
    Load(Option<&'static str>),
    Remove,
    /// The number of the first event, and the events.
    Append(u64, &'static [&'static str]),
    End(u64),
    /// The number of the event before, and the events with whether the stream has ended after them.
    Read(u64, Option<(&'static [&'static str], bool)>),
}

use Operation::{Append, End, Load, Read, Remove, Save, SaveForever};

const fn step(
    process: Process,
    name: &'static str,
    operation: Operation,
    rule: &'static str,
) -> Step {
    Step {
        process,
        name,
        operation,
        function: None,
        rule,
    }
}

/// A step that checks the effect of another function.
const fn effect_of(function: &'static str, step: Step) -> Step {
    Step {
        function: Some(function),
        ..step
    }
}

const FIRST: &str = r#"{"name":"first"}"#;
const SECOND: &str = r#"{"name":"zwölf"}"#;
const THIRD: &str = "{}";

const SESSIONS: &[Step] = &[
    step(A, "", Load(None), "an id that was never saved"),
    step(A, "-unknown", Remove, "an id that was never saved"),
    step(
        A,
        "",
        Save(FIRST, FIRST, None),
        "nothing is stored under the id",
    ),
    step(B, "", Load(Some(FIRST)), "what the other process has saved"),
    step(
        B,
        "",
        Save(SECOND, FIRST, None),
        "the store has what is replaced",
    ),
    step(
        A,
        "",
        Load(Some(SECOND)),
        "what the other process has changed",
    ),
    step(
        A,
        "",
        Save(THIRD, FIRST, Some(SECOND)),
        "another process has changed the session",
    ),
    step(
        A,
        "",
        Save(THIRD, THIRD, Some(SECOND)),
        "something else is stored under the id",
    ),
    step(B, "", Load(Some(SECOND)), "the session after a conflict"),
    step(
        A,
        "",
        Save(SECOND, FIRST, None),
        "the store has the session itself",
    ),
    step(
        A,
        "",
        SaveForever(THIRD, SECOND),
        "a lifetime without an end",
    ),
    step(
        B,
        "",
        Load(Some(THIRD)),
        "a session whose lifetime does not end",
    ),
    step(B, "", Remove, "a session that is stored"),
    step(A, "", Load(None), "a session that was removed"),
    step(
        A,
        "",
        Save(THIRD, THIRD, None),
        "a session that was removed shortly before",
    ),
    step(
        B,
        "",
        Load(None),
        "a removed session that was saved again stays removed",
    ),
];

const EVENTS: &[&str] = &["four", "", "sechs ☃"];

const STREAMS: &[Step] = &[
    step(B, "/1", Read(0, None), "a stream that is unknown"),
    step(A, "/2", End(5), "a stream that is unknown"),
    effect_of(
        "events.end",
        step(B, "/2", Read(0, None), "a stream that is unknown stays so"),
    ),
    step(A, "/1", Append(4, &["four", ""]), "a new stream"),
    step(A, "/10", Append(0, &["of another stream"]), "a new stream"),
    step(A, "/1", Append(6, &["sechs ☃"]), "the next event"),
    step(
        B,
        "/1",
        Read(3, Some((EVENTS, false))),
        "from the first event on",
    ),
    step(
        B,
        "/1",
        Read(5, Some((&["sechs ☃"], false))),
        "from a later event on",
    ),
    step(B, "/1", Read(6, Some((&[], false))), "after the last event"),
    step(
        B,
        "/1",
        Read(2, None),
        "events before the first one that is kept",
    ),
    step(
        B,
        "/1",
        Read(7, None),
        "after a number that was never stored",
    ),
    step(A, "/1", End(6), "the last event is stored"),
    step(
        B,
        "/1",
        Read(5, Some((&["sechs ☃"], true))),
        "a stream that has ended",
    ),
    step(A, "/gap", Append(0, &["0", "1"]), "a new stream"),
    step(A, "/gap", Append(5, &["5", "6"]), "an event after a gap"),
    step(
        B,
        "/gap",
        Read(4, Some((&["5", "6"], false))),
        "events after a gap",
    ),
    step(
        B,
        "/gap",
        Read(1, None),
        "from before a gap, so that events are missing",
    ),
    step(A, "/lost", Append(0, &["0", "1"]), "a new stream"),
    step(A, "/lost", End(2), "the last event is not stored"),
    effect_of(
        "events.end",
        step(
            B,
            "/lost",
            Read(0, None),
            "a stream without its last event is not known any more",
        ),
    ),
];

/// A function that does not do what it must.
struct Failure {
    function: &'static str,
    /// Begins with the name of the function.
    text: String,
}

impl Failure {
    fn new(function: &'static str, error: SharingError) -> Self {
        Self {
            function,
            text: error.to_string(),
        }
    }
}

/// The check of two processes.
struct Check {
    processes: [Arc<Requests>; 2],
    /// The beginning of all names.
    name: String,
    server: Server,
}

impl Check {
    /// Checks everything. `subscription` is where the subscription is kept until it has ended.
    async fn run(&self, subscription: &mut Option<CheckSubscription>) -> Result<(), Failure> {
        for step in SESSIONS.iter().chain(STREAMS) {
            self.take(step).await?;
        }
        self.check_changes().await?;
        self.check_long_stream().await?;
        self.check_bus(subscription).await
    }

    async fn send(
        &self,
        process: Process,
        request: SharingRequest,
    ) -> Result<SharingReply, Failure> {
        answer(&self.processes[process], request).await
    }

    /// Sends the request of a step, and compares the answer.
    async fn take(&self, step: &Step) -> Result<(), Failure> {
        let name = format!("{}{}", self.name, step.name);
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let save = |session, replaces, lifetime| SharingRequest::Save {
            id: name.clone(),
            session: bytes(session),
            replaces: bytes(replaces),
            lifetime,
        };
        let done = SharingReply::Done;
        let (request, expected) = match step.operation {
            Save(session, replaces, conflict) => (
                save(session, replaces, Some(LIFETIME)),
                conflict.map_or(done, |stored| SharingReply::Conflict(bytes(stored))),
            ),
            SaveForever(session, replaces) => (save(session, replaces, None), done),
            Load(session) => (
                SharingRequest::Load { id: name },
                SharingReply::Session(session.map(bytes)),
            ),
            Remove => (SharingRequest::Remove { id: name }, done),
            Append(number, events) => (
                SharingRequest::Append {
                    stream: name,
                    number,
                    events: events.iter().copied().map(bytes).collect(),
                },
                done,
            ),
            End(last) => (SharingRequest::End { stream: name, last }, done),
            Read(after, expected) => {
                let part = expected.map(|(events, ended)| {
                    LoggedEvents::new(events.iter().copied().map(bytes).collect(), ended)
                });
                let read = self.read(step.process, &name, after).await?;
                return expect(
                    step.function.unwrap_or("events.read"),
                    step.rule,
                    &SharingReply::Events(read),
                    &SharingReply::Events(part),
                );
            }
        };
        let function = step.function.unwrap_or(request.name());
        let answer = self.send(step.process, request).await?;
        expect(function, step.rule, &answer, &expected)
    }

    /// Reads all parts of a stream.
    async fn read(
        &self,
        process: Process,
        stream: &str,
        after: u64,
    ) -> Result<Option<LoggedEvents>, Failure> {
        let mut all = LoggedEvents::default();
        loop {
            let request = SharingRequest::Read {
                stream: stream.to_owned(),
                after: after + all.events.len() as u64,
            };
            let function = request.name();
            let SharingReply::Events(Some(part)) = self.send(process, request).await? else {
                return Ok(None);
            };
            if part.has_more && part.events.is_empty() {
                return Err(broken(
                    function,
                    "a part without events is followed by more: it would be read without end",
                ));
            }
            all.events.extend(part.events);
            all.ended = part.ended;
            if all.events.len() > 2 * LONG_STREAM {
                return Err(broken(
                    function,
                    "more events than were appended: the parts do not end",
                ));
            }
            if !part.has_more {
                return Ok(Some(all));
            }
        }
    }

    /// Checks that no change is lost when processes change a session at the same time.
    async fn check_changes(&self) -> Result<(), Failure> {
        let id = format!("{}-changes", self.name);
        // Its tasks end when it is dropped.
        let mut adding = JoinSet::new();
        for member in 0..CONCURRENT {
            let store = self.processes[member % self.processes.len()].clone();
            adding.spawn(background::task(add_member(store, id.clone(), member)));
        }
        while let Some(added) = adding.join_next().await {
            // An error: the runtime ends.
            added.unwrap_or(Ok(()))?;
        }
        let stored = match self
            .send(A, SharingRequest::Load { id: id.clone() })
            .await?
        {
            SharingReply::Session(Some(stored)) => stored,
            _ => Bytes::new(),
        };
        let stored = String::from_utf8_lossy(&stored);
        let is_stored = |member: &usize| {
            stored
                .split(',')
                .any(|it| it.parse::<usize>() == Ok(*member))
        };
        let lost = (0..CONCURRENT).filter(|member| !is_stored(member)).count();
        if lost > 0 {
            return Err(broken(
                "sessions.save",
                &format!(
                    "changes at the same time: {lost} of {CONCURRENT} are lost; comparing and storing must be one step"
                ),
            ));
        }
        self.send(A, SharingRequest::Remove { id }).await.map(drop)
    }

    /// Checks a stream that is written in several calls, and may be read in several.
    async fn check_long_stream(&self) -> Result<(), Failure> {
        let stream = format!("{}/long", self.name);
        let events: Vec<Bytes> = (0..LONG_STREAM)
            .map(|number| number.to_string().into())
            .collect();
        let mut number = 0;
        for part in events.chunks(MAX_APPENDED_EVENTS) {
            let append = SharingRequest::Append {
                stream: stream.clone(),
                number,
                events: part.to_vec(),
            };
            self.send(A, append).await?;
            number += part.len() as u64;
        }
        let read = self.read(B, &stream, 0).await?;
        let expected = LoggedEvents::new(events[1..].to_vec(), false);
        match read {
            Some(read) if read == expected => Ok(()),
            Some(read) => Err(broken(
                "events.read",
                &format!(
                    "a long stream, in all parts: {} of {} events, or in another order",
                    read.events.len(),
                    expected.events.len()
                ),
            )),
            None => Err(broken(
                "events.read",
                "a long stream, in all parts: nothing",
            )),
        }
    }

    /// Checks that messages arrive once, in their order.
    async fn check_bus(&self, kept: &mut Option<CheckSubscription>) -> Result<(), Failure> {
        let received = Arc::new(ReceivedMessages::new(&self.name));
        let receiver = received.clone();
        let subscription = kept.insert(CheckSubscription::begin(
            self.server.clone(),
            self.processes[B].clone(),
            Arc::new(move |message| receiver.add(&message)),
        )?);
        let published = match subscription.is_subscribed().await {
            true => self.publish_all(&received).await,
            // The reason is the outcome of the end.
            false => Ok(()),
        };
        let ended = subscription.end().await;
        *kept = None;
        published?;
        ended?;
        received.check_order()
    }

    /// Publishes all messages. The last one follows when the others have arrived, so that repeated ones arrive before it.
    async fn publish_all(&self, received: &ReceivedMessages) -> Result<(), Failure> {
        for number in 0..MESSAGES {
            self.publish(received, number).await?;
        }
        received.wait(MESSAGES).await?;
        self.publish(received, MESSAGES).await?;
        received.wait(MESSAGES + 1).await
    }

    async fn publish(&self, received: &ReceivedMessages, number: usize) -> Result<(), Failure> {
        let message = received.message(number).into();
        let publish = SharingRequest::Publish { message };
        self.send(A, publish).await.map(drop)
    }
}

/// Adds a member to a session that others change at the same time.
async fn add_member(store: Arc<Requests>, id: String, member: usize) -> Result<(), Failure> {
    let mut stored = Bytes::from_static(b"-");
    for _ in 0..MAX_SAVES {
        let mut changed = stored.to_vec();
        changed.extend_from_slice(format!(",{member}").as_bytes());
        let save = SharingRequest::Save {
            id: id.clone(),
            session: changed.into(),
            replaces: stored,
            lifetime: Some(LIFETIME),
        };
        match answer(&store, save).await? {
            SharingReply::Conflict(current) => stored = current,
            _ => return Ok(()),
        }
    }
    Err(broken(
        "sessions.save",
        &format!(
            "changes at the same time: expected a change that replaces what a conflict returned to be stored, \
             got {MAX_SAVES} conflicts in a row; a conflict must return what is stored now"
        ),
    ))
}

/// The messages of the check that have arrived. Others, which other processes may send, are ignored.
struct ReceivedMessages {
    /// The beginning of the messages.
    name: String,
    numbers: Mutex<Vec<usize>>,
    arrived: Notify,
}

impl ReceivedMessages {
    fn new(name: &str) -> Self {
        Self {
            name: format!("{name} ☃ "),
            numbers: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(&self, number: usize) -> String {
        format!("{}{number}", self.name)
    }

    fn add(&self, message: &[u8]) {
        let number = std::str::from_utf8(message).ok();
        let number = number.and_then(|message| message.strip_prefix(&self.name)?.parse().ok());
        let Some(number) = number else { return };
        {
            let mut numbers = self.lock();
            // More than that are wrong in any case.
            if numbers.len() < 2 * MESSAGES {
                numbers.push(number);
            }
        }
        self.arrived.notify_one();
    }

    /// Waits until so many messages have arrived.
    async fn wait(&self, expected: usize) -> Result<(), Failure> {
        let arriving = async {
            while self.lock().len() < expected {
                self.arrived.notified().await;
            }
        };
        timeout(MESSAGE_TIMEOUT, arriving).await.map_err(|_| {
            let count = self.lock().len();
            let seconds = MESSAGE_TIMEOUT.as_secs();
            broken(
                "bus.publish",
                &format!("{count} of {expected} messages arrived within {seconds} s"),
            )
        })
    }

    /// Checks that all messages have arrived once, in their order.
    fn check_order(&self) -> Result<(), Failure> {
        let numbers = self.lock();
        match numbers.iter().copied().eq(0..=MESSAGES) {
            true => Ok(()),
            false => Err(broken(
                "bus.publish",
                &format!("messages in their order, each once: they arrived as {numbers:?}"),
            )),
        }
    }
}

/// Compares the answer of a function with what the rule expects.
fn expect(
    function: &'static str,
    rule: &str,
    answer: &SharingReply,
    expected: &SharingReply,
) -> Result<(), Failure> {
    let (answer, expected) = (described(answer), described(expected));
    match answer == expected {
        true => Ok(()),
        false => Err(broken(
            function,
            &format!("{rule}: expected {expected}, got {answer}"),
        )),
    }
}

fn broken(function: &'static str, rule: &str) -> Failure {
    Failure {
        function,
        text: format!("{function}: {rule}"),
    }
}

/// Sends a request, and returns an answer that belongs to it.
async fn answer(store: &Requests, request: SharingRequest) -> Result<SharingReply, Failure> {
    use SharingReply::{Conflict, Done, Events, Session};
    let function = request.name();
    let expected: fn(&SharingReply) -> bool = match request {
        SharingRequest::Save { .. } => |reply| matches!(reply, Done | Conflict(_)),
        SharingRequest::Load { .. } => |reply| matches!(reply, Session(_)),
        SharingRequest::Read { .. } => |reply| matches!(reply, Events(_)),
        _ => |reply| matches!(reply, Done),
    };
    let answer = store.send(request, ()).await;
    let answer = answer.and_then(|reply| match expected(&reply) {
        true => Ok(reply),
        false => Err(wrong_reply(function)),
    });
    answer.map_err(|error| Failure::new(function, error))
}

/// Describes an answer by all that matters for the check.
fn described(answer: &SharingReply) -> String {
    match answer {
        SharingReply::Done | SharingReply::Session(None) | SharingReply::Events(None) => {
            "nothing".to_owned()
        }
        SharingReply::Session(Some(session)) | SharingReply::Conflict(session) => shown(session),
        SharingReply::Events(Some(part)) => {
            let mut text = "the events".to_owned();
            for event in &part.events {
                // Writing to a string cannot fail.
                let _ = write!(text, " {}", shown(event));
            }
            text.push_str(if part.ended {
                " and the end"
            } else {
                " and no end"
            });
            text
        }
    }
}

/// Returns bytes as text for a message.
fn shown(bytes: &[u8]) -> String {
    const MAX: usize = 256;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX)]);
    let rest = bytes.len().saturating_sub(MAX);
    match rest {
        0 => format!("{text:?}"),
        _ => format!("{text:?} and {rest} bytes"),
    }
}

use std::collections::HashSet;

use tokio::time::{Instant, sleep};

use crate::ErrorKind;
use crate::foreign::{SharingFunctions, sharing_request};
use crate::server::{Call, Handler, HandlerError, Reply};
use crate::sharing::{EventLog as _, MemorySharing, SaveOutcome, SessionStore as _};

use super::*;

type Receive = Arc<dyn Fn(Bytes) + Send + Sync>;

/// What a broken store does in place of the right thing; `None` if the request is none of its concern.
type Fault = fn(&Store, &SharingRequest) -> Option<Result<SharingReply, HandlerError>>;

/// How long a function takes, also when it is cancelled; `Duration::MAX` if it does not return.
type Delay = fn(&Store, &SharingRequest) -> Duration;

/// A store, log and bus of a program.
struct Store {
    memory: MemorySharing,
    receivers: Mutex<Vec<Receive>>,
    requests: Mutex<Vec<&'static str>>,
    published: Mutex<Vec<Bytes>>,
    /// Number of functions that were cancelled.
    cancelled: Mutex<usize>,
    /// Notified when a function is called or cancelled.
    changed: Notify,
    fault: Fault,
    delay: Delay,
}

struct Function(Arc<Store>);

impl Handler for Function {
    fn call(&self, call: Call) {
        let store = self.0.clone();
        let request = sharing_request(&call.context()).expect("a request").clone();
        store.lock_requests().push(request.name());
        store.changed.notify_one();
        let cancelled = store.clone();
        call.context().on_cancel(move || {
            *cancelled.cancelled.lock().expect("no panic") += 1;
            cancelled.changed.notify_one();
        });
        tokio::spawn(async move {
            let delay = (store.delay)(&store, &request);
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let reply = match (store.fault)(&store, &request) {
                Some(reply) => reply,
                None => Ok(store.answer(request).await),
            };
            call.reply(reply.map(Reply::Sharing));
        });
    }
}

impl Store {
    fn new(fault: Fault) -> Arc<Self> {
        Self::slow(fault, |_, _| Duration::ZERO)
    }

    fn slow(fault: Fault, delay: Delay) -> Arc<Self> {
        Arc::new(Self {
            memory: MemorySharing::default(),
            receivers: Mutex::default(),
            requests: Mutex::default(),
            published: Mutex::default(),
            cancelled: Mutex::default(),
            changed: Notify::new(),
            fault,
            delay,
        })
    }

    /// Waits until the condition holds after a call or a cancellation.
    async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        while !condition(self) {
            self.changed.notified().await;
        }
    }

    fn count(&self, name: &str) -> usize {
        self.lock_requests()
            .iter()
            .filter(|it| **it == name)
            .count()
    }

    fn cancelled(&self) -> usize {
        *self.cancelled.lock().expect("no panic")
    }

    fn is_subscribed(&self) -> bool {
        !self.receivers.lock().expect("no panic").is_empty()
    }

    fn deliver(&self, message: &Bytes) {
        let receivers = self.receivers.lock().expect("no panic").clone();
        for receive in receivers {
            receive(message.clone());
        }
    }

    /// Delivers all messages again.
    fn repeat(&self) {
        for message in &*self.published.lock().expect("no panic") {
            self.deliver(message);
        }
    }

    fn lock_requests(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        self.requests.lock().expect("no panic")
    }

    async fn answer(&self, request: SharingRequest) -> SharingReply {
        match request {
            SharingRequest::Save {
                id,
                session,
                replaces,
                lifetime,
            } => {
                let lifetime = lifetime.unwrap_or(Duration::MAX);
                let saved = self.memory.save(&id, session, replaces, lifetime).await;
                if let SaveOutcome::Conflict(stored) = saved.expect("saves") {
                    return SharingReply::Conflict(stored);
                }
            }
            SharingRequest::Load { id } => {
                return SharingReply::Session(self.memory.load(&id).await.expect("loads"));
            }
            SharingRequest::Remove { id } => {
                self.memory.remove(&id).await.expect("removes");
            }
            SharingRequest::Append {
                stream,
                number,
                events,
            } => {
                for (number, event) in (number..).zip(events) {
                    self.memory.append(&stream, number, event);
                }
            }
            SharingRequest::End { stream, last } => self.memory.end(&stream, last),
            SharingRequest::Read { stream, after } => {
                let read = self.memory.read(&stream, after).await;
                return SharingReply::Events(read.expect("reads"));
            }
            SharingRequest::Publish { message } => {
                self.deliver(&message);
                self.published.lock().expect("no panic").push(message);
            }
            SharingRequest::Subscribe { receive } => {
                self.receivers.lock().expect("no panic").push(receive);
            }
            SharingRequest::Unsubscribe => self.receivers.lock().expect("no panic").clear(),
        }
        SharingReply::Done
    }

    fn sharing(self: &Arc<Self>) -> ForeignSharing {
        let function: Arc<dyn Handler> = Arc::new(Function(self.clone()));
        let functions = SharingFunctions::in_order(vec![function; 9]).expect("nine");
        ForeignSharing::new(functions, None).expect("valid")
    }
}

async fn check(a: &Arc<Store>, b: &Arc<Store>, stop: Stop) -> Result<(), Error> {
    let server = Server::builder("test", "1").build().expect("a server");
    let check = SharingCheck::new(a.sharing(), b.sharing());
    server.serve_until(check, stop).await
}

const NO_FAULT: Fault = |_, _| None;

#[tokio::test(start_paused = true)]
async fn accepts_a_store_and_leaves_no_subscription() {
    let store = Store::new(NO_FAULT);
    check(&store, &store, Stop::new())
        .await
        .expect("it is right");
    assert!(store.receivers.lock().expect("no panic").is_empty());
    let called: HashSet<&str> = store.lock_requests().iter().copied().collect();
    assert_eq!(called.len(), 9, "every function: {called:?}");
}

/// Faults, and what the check says of them.
const FAULTS: &[(&str, &str, Fault)] = &[
    (
        "sessions.save",
        "changes at the same time: 16 of 16 are lost",
        |_, request| {
            let SharingRequest::Save { id, .. } = request else {
                return None;
            };
            id.ends_with("-changes").then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "sessions.save",
        "another process has changed the session: expected \"{\\\"name\\\":\\\"zwölf\\\"}\", got nothing",
        |_, request| {
            let SharingRequest::Save {
                session, replaces, ..
            } = request
            else {
                return None;
            };
            let conflicts = session == "{}" && replaces == FIRST;
            conflicts.then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "sessions.save",
        "something else is stored under the id: expected \"{\\\"name\\\":\\\"zwölf\\\"}\", got nothing",
        |_, request| {
            let SharingRequest::Save {
                session, replaces, ..
            } = request
            else {
                return None;
            };
            let is_new = session == "{}" && replaces == "{}";
            is_new.then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "sessions.load",
        "an id that was never saved: expected nothing, got \"\"",
        |_, request| {
            let is_load = matches!(request, SharingRequest::Load { .. });
            is_load.then(|| Ok(SharingReply::Session(Some(Bytes::new()))))
        },
    ),
    (
        "sessions.load",
        "a session that was removed",
        |_, request| {
            matches!(request, SharingRequest::Remove { .. }).then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "sessions.load",
        "a removed session that was saved again stays removed",
        |store, request| {
            let SharingRequest::Load { .. } = request else {
                return None;
            };
            let is_revived = store.lock_requests().ends_with(&[
                "sessions.remove",
                "sessions.load",
                "sessions.save",
                "sessions.load",
            ]);
            let session = Bytes::from_static(b"saved again");
            is_revived.then_some(Ok(SharingReply::Session(Some(session))))
        },
    ),
    ("sessions.remove", "the disk is full", |_, request| {
        let is_remove = matches!(request, SharingRequest::Remove { .. });
        is_remove.then(|| Err(HandlerError::Tool("the disk is full".to_owned())))
    }),
    (
        "sessions.save",
        "the function returned the result of another function",
        |_, request| {
            let is_save = matches!(request, SharingRequest::Save { .. });
            is_save.then_some(Ok(SharingReply::Events(None)))
        },
    ),
    (
        "events.read",
        "a stream that has ended: expected the events \"sechs ☃\" and the end, got the events \"sechs ☃\" and no end",
        |_, request| {
            matches!(request, SharingRequest::End { .. }).then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "events.end",
        "a stream without its last event is not known any more",
        |store, request| {
            let SharingRequest::End { stream, last } = request else {
                return None;
            };
            let is_lost = stream.ends_with("/lost");
            is_lost.then(|| {
                store.memory.end(stream, last - 1);
                Ok(SharingReply::Done)
            })
        },
    ),
    (
        "events.read",
        "a part without events is followed by more",
        |_, request| {
            let SharingRequest::Read { stream, .. } = request else {
                return None;
            };
            let part = || Ok(SharingReply::Events(Some(LoggedEvents::part(Vec::new()))));
            stream.ends_with("/long").then(part)
        },
    ),
    (
        "events.read",
        "more events than were appended",
        |_, request| {
            let SharingRequest::Read { stream, .. } = request else {
                return None;
            };
            let part = || LoggedEvents::part(vec![Bytes::from_static(b"again")]);
            stream
                .ends_with("/long")
                .then(|| Ok(SharingReply::Events(Some(part()))))
        },
    ),
    (
        "bus.publish",
        "0 of 100 messages arrived within 10 s",
        |_, request| {
            matches!(request, SharingRequest::Publish { .. }).then_some(Ok(SharingReply::Done))
        },
    ),
    (
        "bus.publish",
        "messages in their order, each once",
        |store, request| {
            if let SharingRequest::Publish { message } = request {
                store.deliver(message);
            }
            None
        },
    ),
    (
        // All of them, in order, before the next one.
        "bus.publish",
        "messages in their order, each once",
        |store, request| {
            let count = store.published.lock().expect("no panic").len();
            if matches!(request, SharingRequest::Publish { .. }) && count == MESSAGES {
                store.repeat();
            }
            None
        },
    ),
    (
        "bus.publish",
        "messages in their order, each once",
        |store, request| {
            if matches!(request, SharingRequest::Unsubscribe) {
                store.repeat();
            }
            None
        },
    ),
    (
        "sessions.save",
        "changes at the same time: expected a change that replaces what a conflict returned to be stored, got 32 conflicts",
        |store, request| {
            if !is_change(request) {
                return None;
            }
            Some(match store.count("sessions.save") {
                0..10_000 => Ok(SharingReply::Conflict(Bytes::from_static(b"-,99"))),
                _ => Err(HandlerError::Tool("saved without an end".to_owned())),
            })
        },
    ),
];

/// Whether the request is one of the changes of a session at the same time.
fn is_change(request: &SharingRequest) -> bool {
    matches!(request, SharingRequest::Save { id, .. } if id.ends_with("-changes"))
}

#[tokio::test(start_paused = true)]
async fn names_the_function_and_the_rule() {
    for (function, rule, fault) in FAULTS {
        let store = Store::new(*fault);
        let error = check(&store, &store, Stop::new()).await;
        let error = error.expect_err(rule);
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert_eq!(error.operation(), Some(*function), "{error}");
        let expected = format!("{function}: {rule}");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(store.receivers.lock().expect("no panic").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn compares_two_processes() {
    let [a, b] = [(); 2].map(|()| Store::new(NO_FAULT));
    let error = check(&a, &b, Stop::new()).await.expect_err("two stores");
    let expected = "sessions.load: what the other process has saved: expected ";
    let text = error.to_string();
    assert!(
        text.starts_with(expected) && text.ends_with(", got nothing"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn ends_when_it_is_stopped() {
    let store = Store::new(NO_FAULT);
    let stop = Stop::new();
    stop.stop();
    let error = check(&store, &store, stop).await.expect_err("stopped");
    assert_eq!(error.kind(), ErrorKind::Closed);
}

/// Whether it is that of the last member, when all others are running.
fn is_last_change(request: &SharingRequest) -> bool {
    let last = format!(",{}", CONCURRENT - 1);
    let is_last = |session: &Bytes| session.ends_with(last.as_bytes());
    is_change(request)
        && matches!(request, SharingRequest::Save { session, .. } if is_last(session))
}

/// Number of saves before those at the same time.
fn saves_in_order() -> usize {
    let is_save = |step: &&Step| matches!(step.operation, Save(..) | SaveForever(..));
    SESSIONS.iter().filter(is_save).count()
}

/// Starts a check, and stops it once the condition holds. Returns how long it took after that.
async fn stop_when(store: &Arc<Store>, condition: impl Fn(&Store) -> bool) -> Duration {
    let stop = Stop::new();
    let stopping = async {
        store.wait_until(condition).await;
        stop.stop();
        Instant::now()
    };
    let (checked, stopped) = tokio::join!(check(store, store, stop.clone()), stopping);
    assert_eq!(checked.expect_err("stopped").kind(), ErrorKind::Closed);
    stopped.elapsed()
}

const PUBLISHES_SLOWLY: Delay = |_, request| match request {
    SharingRequest::Publish { .. } => Duration::MAX,
    _ => Duration::ZERO,
};

#[tokio::test(start_paused = true)]
async fn unsubscribes_when_it_is_stopped() {
    let store = Store::slow(NO_FAULT, PUBLISHES_SLOWLY);
    let took = stop_when(&store, |store| store.count("bus.publish") == 1).await;
    assert_eq!(store.count("bus.unsubscribe"), 1);
    assert!(!store.is_subscribed());
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn stops_although_unsubscribing_hangs() {
    let store = Store::slow(NO_FAULT, |_, request| match request {
        SharingRequest::Publish { .. } | SharingRequest::Unsubscribe => Duration::MAX,
        _ => Duration::ZERO,
    });
    let took = stop_when(&store, |store| store.count("bus.publish") == 1).await;
    assert_eq!(store.count("bus.unsubscribe"), 1);
    assert!(took < super::super::limits::DEFAULT_TIMEOUT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn unsubscribes_when_it_is_dropped() {
    let store = Store::slow(NO_FAULT, PUBLISHES_SLOWLY);
    tokio::select! {
        _ = check(&store, &store, Stop::new()) => panic!("it waits for `publish`"),
        () = store.wait_until(|store| store.count("bus.publish") == 1) => {}
    }
    let ended = store.wait_until(|store| store.count("bus.unsubscribe") == 1);
    timeout(MESSAGE_TIMEOUT, ended).await.expect("unsubscribes");
}

/// Subscribes after the timeout.
const SUBSCRIBES_LATE: Delay = |_, request| match request {
    SharingRequest::Subscribe { .. } => Duration::from_secs(5),
    _ => Duration::ZERO,
};

const LATE: &str = "bus.subscribe: no answer within 2 s (`timeout`)";

#[tokio::test(start_paused = true)]
async fn unsubscribes_after_subscribing_late() {
    let store = Store::slow(NO_FAULT, SUBSCRIBES_LATE);
    let error = check(&store, &store, Stop::new()).await.expect_err("late");
    assert_eq!(error.to_string(), LATE);
    // Longer than the function takes.
    sleep(MESSAGE_TIMEOUT).await;
    assert!(!store.is_subscribed());
    assert_eq!(store.count("bus.unsubscribe"), 1);
    assert_eq!(store.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn does_not_unsubscribe_after_failing_late() {
    let fault: Fault = |_, request| {
        let is_subscribe = matches!(request, SharingRequest::Subscribe { .. });
        is_subscribe.then(|| Err(HandlerError::Tool("no connection".to_owned())))
    };
    let store = Store::slow(fault, SUBSCRIBES_LATE);
    let error = check(&store, &store, Stop::new()).await.expect_err("late");
    assert_eq!(error.to_string(), LATE);
    assert_eq!(store.count("bus.unsubscribe"), 0);
}

#[tokio::test(start_paused = true)]
async fn unsubscribes_although_subscribing_hangs() {
    let hangs: Delay = |_, request| match request {
        SharingRequest::Subscribe { .. } => Duration::MAX,
        _ => Duration::ZERO,
    };
    let store = Store::slow(NO_FAULT, hangs);
    let error = check(&store, &store, Stop::new()).await.expect_err("hangs");
    assert_eq!(error.to_string(), LATE);
    assert_eq!(store.count("bus.unsubscribe"), 1);

    let store = Store::slow(NO_FAULT, hangs);
    let took = stop_when(&store, |store| store.count("bus.subscribe") == 1).await;
    assert_eq!(store.count("bus.unsubscribe"), 1);
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn ends_changes_when_one_fails() {
    let store = Store::slow(
        |_, request| {
            is_last_change(request).then(|| Err(HandlerError::Tool("the disk is full".to_owned())))
        },
        |_, request| match is_change(request) && !is_last_change(request) {
            true => Duration::MAX,
            false => Duration::ZERO,
        },
    );
    let begun = Instant::now();
    let error = check(&store, &store, Stop::new()).await.expect_err("fails");
    assert_eq!(error.to_string(), "sessions.save: the disk is full");
    let others = CONCURRENT - 1;
    store.wait_until(|store| store.cancelled() == others).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn ends_changes_when_it_is_stopped() {
    let store = Store::slow(NO_FAULT, |_, request| match is_change(request) {
        true => Duration::MAX,
        false => Duration::ZERO,
    });
    let begun = Instant::now();
    let all = saves_in_order() + CONCURRENT;
    stop_when(&store, |store| store.count("sessions.save") == all).await;
    let has_ended = |store: &Store| store.cancelled() == CONCURRENT;
    store.wait_until(has_ended).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::server::{Call, HandlerError, Reply};
use crate::sharing::{MemorySharing, UseOutcome};

use super::limits::{
    MAX_MESSAGE_AGE, MAX_MESSAGE_BYTES, MAX_REASON_BYTES, MAX_RETRY_DELAY, MAX_RUNNING_READS,
    MAX_RUNNING_SESSION_REQUESTS, MAX_WAITING_EVENT_BYTES, MAX_WRITTEN_STREAMS,
};
use super::*;

const LIFETIME: Duration = Duration::from_secs(3_600);

/// A store, log and bus of a program.
#[derive(Default)]
struct Store {
    memory: MemorySharing,
    receivers: Mutex<Vec<Receiver>>,
    /// The names of requests.
    requested: Mutex<Vec<&'static str>>,
    subscriptions: AtomicUsize,
    is_broken: AtomicBool,
    is_stuck: AtomicBool,
    /// The beginning of the names of requests that are kept without an answer.
    stuck: Mutex<Option<&'static str>>,
    replies_wrongly: AtomicBool,
    /// Calls that are not answered.
    kept: Mutex<Vec<Call>>,
}

struct Function(Arc<Store>);

impl Handler for Function {
    fn call(&self, call: Call) {
        let store = self.0.clone();
        let context = call.context();
        let request = sharing_request(&context).expect("a request").clone();
        store
            .requested
            .lock()
            .expect("no panic")
            .push(request.name());
        let stuck = *store.stuck.lock().expect("no panic");
        let is_stuck = stuck.is_some_and(|stuck| request.name().starts_with(stuck));
        if is_stuck || store.is_stuck.load(Ordering::Relaxed) {
            store.kept.lock().expect("no panic").push(call);
        } else if store.is_broken.load(Ordering::Relaxed) {
            call.reply(Err(HandlerError::Tool("ä".repeat(MAX_REASON_BYTES))));
        } else {
            tokio::spawn(async move {
                let reply = store.answer(request).await;
                call.reply(Ok(Reply::Sharing(reply)));
            });
        }
    }
}

impl Store {
    fn keep(&self, names: Option<&'static str>) {
        *self.stuck.lock().expect("no panic") = names;
    }

    fn count(&self, name: &str) -> usize {
        let requested = self.requested.lock().expect("no panic");
        requested.iter().filter(|it| **it == name).count()
    }

    /// Lets the functions return that were kept, in the order of their calls.
    async fn return_kept(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().expect("no panic"));
        for call in kept {
            let request = sharing_request(&call.context()).expect("a request").clone();
            let reply = self.answer(request).await;
            call.reply(Ok(Reply::Sharing(reply)));
        }
    }

    async fn answer(&self, request: SharingRequest) -> SharingReply {
        if self.replies_wrongly.load(Ordering::Relaxed) {
            return SharingReply::Events(Some(LoggedEvents::part(Vec::new())));
        }
        match request {
            SharingRequest::Save {
                id,
                session,
                replaces,
                lifetime,
            } => {
                let lifetime = lifetime.unwrap_or(Duration::MAX);
                let saved = self.memory.save(&id, session, replaces, lifetime).await;
                match saved.expect("saves") {
                    SaveOutcome::Saved => SharingReply::Done,
                    SaveOutcome::Conflict(stored) => SharingReply::Conflict(stored),
                }
            }
            SharingRequest::Load { id } => {
                SharingReply::Session(self.memory.load(&id).await.expect("loads"))
            }
            SharingRequest::Remove { id } => {
                self.memory.remove(&id).await.expect("removes");
                SharingReply::Done
            }
            SharingRequest::Append {
                stream,
                number,
                events,
            } => {
                for (number, event) in (number..).zip(events) {
                    self.memory.append(&stream, number, event);
                }
                SharingReply::Done
            }
            SharingRequest::End { stream, last } => {
                self.memory.end(&stream, last);
                SharingReply::Done
            }
            SharingRequest::Read { stream, after } => {
                SharingReply::Events(self.memory.read(&stream, after).await.expect("reads"))
            }
            SharingRequest::Publish { message } => {
                let receivers = self.receivers.lock().expect("no panic").clone();
                for receive in receivers {
                    receive(message.clone());
                }
                SharingReply::Done
            }
            SharingRequest::Subscribe { receive } => {
                self.receivers.lock().expect("no panic").push(receive);
                self.subscriptions.fetch_add(1, Ordering::Relaxed);
                SharingReply::Done
            }
            SharingRequest::Unsubscribe => {
                self.subscriptions.fetch_sub(1, Ordering::Relaxed);
                SharingReply::Done
            }
        }
    }
}

/// A process that shares a store.
struct Process {
    sharing: ForeignSharing,
    _server: Server,
}

impl Process {
    fn start(store: &Arc<Store>) -> Self {
        let function = || Arc::new(Function(store.clone())) as Arc<dyn Handler>;
        let functions = SharingFunctions {
            save: function(),
            load: function(),
            remove: function(),
            append: function(),
            end: function(),
            read: function(),
            publish: function(),
            subscribe: function(),
            unsubscribe: function(),
        };
        let sharing = ForeignSharing::new(functions, None).expect("valid");
        let server = sharing.build_server(Server::builder("test", "1"));
        Self {
            sharing,
            _server: server.expect("a server"),
        }
    }

    fn enter(&self) -> SharingGuard {
        self.sharing.enter(&Handle::current())
    }

    async fn save(&self, session: &'static str, replaces: &'static str) -> SaveOutcome {
        let [session, replaces] = [session, replaces].map(Bytes::from_static_str);
        let saved = self.sharing.save("one", session, replaces, LIFETIME).await;
        saved.expect("saves or not")
    }

    async fn load_error(&self) -> String {
        let loaded = self.sharing.load("one").await;
        loaded.expect_err("it fails").to_string()
    }
}

trait FromText {
    fn from_static_str(text: &'static str) -> Self;
}

impl FromText for Bytes {
    fn from_static_str(text: &'static str) -> Self {
        Self::from_static(text.as_bytes())
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_used_once_by_the_processes_of_a_store() {
    let store = Arc::new(Store::default());
    let [a, b] = [(); 2].map(|()| Process::start(&store));
    let _guards = [a.enter(), b.enter()];
    let record_use = async |process: &Process| {
        let used = process.sharing.record_use("proof-one", LIFETIME).await;
        used.expect("records")
    };
    assert_eq!(record_use(&a).await, UseOutcome::First);
    for process in [&b, &a] {
        assert_eq!(record_use(process).await, UseOutcome::Repeated);
    }
    assert_eq!(store.count("sessions.save"), 3);
}

/// Subscribes, and returns what is received.
fn received(process: &Process) -> (Arc<Mutex<Vec<Bytes>>>, Subscription) {
    let messages: Arc<Mutex<Vec<Bytes>>> = Arc::default();
    let receiving = messages.clone();
    let subscription = process.sharing.subscribe(Arc::new(move |message| {
        receiving.lock().expect("no panic").push(message);
    }));
    (messages, subscription)
}

/// Waits until something has happened. Time is virtual.
async fn until(mut happened: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if happened() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not happen");
}

#[tokio::test(start_paused = true)]
async fn functions_implement_the_store_and_the_log() {
    let store = Arc::<Store>::default();
    let (a, b) = (Process::start(&store), Process::start(&store));
    let (in_a, _in_b) = (a.enter(), b.enter());
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    assert_eq!(b.save("second", "first").await, SaveOutcome::Saved);
    let conflict = SaveOutcome::Conflict(Bytes::from_static(b"second"));
    assert_eq!(a.save("third", "first").await, conflict);
    let loaded = a.sharing.load("one").await.expect("loads");
    assert_eq!(loaded.as_deref(), Some(&b"second"[..]));
    for number in 0..3 {
        a.sharing
            .append("one/1", number, Bytes::from(number.to_string()));
    }
    a.sharing.end("one/1", 2);
    a.sharing.flush().await.expect("writes");
    let read = b.sharing.read("one/1", 0).await.expect("reads");
    let events = ["1", "2"].map(Bytes::from_static_str).to_vec();
    assert_eq!(read, Some(LoggedEvents::new(events, true)));
    b.sharing.remove("one").await.expect("removes");
    assert_eq!(a.sharing.load("one").await.expect("loads"), None);
    let requested = store.requested.lock().expect("no panic").clone();
    let appends = requested.iter().filter(|name| **name == "events.append");
    assert_eq!(appends.count(), 1, "waiting events are written together");
    in_a.leave().await;
}

#[tokio::test(start_paused = true)]
async fn messages_reach_each_subscriber_once_in_order() {
    let store = Arc::<Store>::default();
    let (a, b) = (Process::start(&store), Process::start(&store));
    let (in_a, in_b) = (a.enter(), b.enter());
    let ((at_a, _one), (also_at_a, _two)) = (received(&a), received(&a));
    let (at_b, _three) = received(&b);
    until(|| store.subscriptions.load(Ordering::Relaxed) == 2).await;
    let messages: Vec<Bytes> = (0..100)
        .map(|number| Bytes::from(format!("message {number}")))
        .collect();
    for message in &messages {
        a.sharing.publish(message.clone());
    }
    until(|| at_b.lock().expect("no panic").len() == messages.len()).await;
    for received in [&at_a, &also_at_a, &at_b] {
        assert_eq!(*received.lock().expect("no panic"), messages);
    }
    in_a.leave().await;
    in_b.leave().await;
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_method_and_are_bounded() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    assert_eq!(
        a.load_error().await,
        "sessions.load: the server is not served"
    );
    let _in_a = a.enter();
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    store.is_broken.store(true, Ordering::Relaxed);
    let error = a.load_error().await;
    assert!(error.starts_with("sessions.load: ää"), "{error}");
    assert_eq!(error.len(), "sessions.load: ".len() + MAX_REASON_BYTES);
    store.is_broken.store(false, Ordering::Relaxed);
    store.replies_wrongly.store(true, Ordering::Relaxed);
    assert!(a.load_error().await.contains("another function"));
    let read = a.sharing.read("one/1", 0).await.expect_err("it fails");
    assert!(
        read.to_string().contains("has `has_more`, but no events"),
        "{read}: it would be read again without end"
    );
    store.replies_wrongly.store(false, Ordering::Relaxed);
    a.sharing.load("one").await.expect("the store works again");
}

#[tokio::test(start_paused = true)]
async fn a_function_that_does_not_return_keeps_its_place_after_its_timeout() {
    let store = Arc::<Store>::default();
    let a = Arc::new(Process::start(&store));
    let in_a = a.enter();
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    store.is_stuck.store(true, Ordering::Relaxed);
    let mut loads = tokio::task::JoinSet::new();
    for _ in 0..=MAX_RUNNING_SESSION_REQUESTS {
        let a = a.clone();
        loads.spawn(async move { a.load_error().await });
    }
    while let Some(error) = loads.join_next().await {
        let error = error.expect("no panic");
        assert!(error.contains("no answer within 2 s"), "{error}");
    }
    let called = || store.kept.lock().expect("no panic").len();
    assert_eq!(called(), MAX_RUNNING_SESSION_REQUESTS);
    store.is_stuck.store(false, Ordering::Relaxed);
    assert!(a.load_error().await.contains("no answer"));
    store.kept.lock().expect("no panic").clear();
    a.sharing.load("one").await.expect("there is room again");
    in_a.leave().await;
}

#[tokio::test(start_paused = true)]
async fn leaving_writes_what_is_queued_and_does_not_wait_for_a_stuck_function() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let (one, two) = (a.enter(), a.enter());
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    a.sharing.append("one/1", 0, Bytes::from_static(b"event"));
    one.leave().await;
    a.sharing.load("one").await.expect("another transport");
    a.sharing.append("one/1", 1, Bytes::from_static(b"event"));
    two.leave().await;
    let read = store.memory.read("one/1", 0).await.expect("reads");
    assert_eq!(read.expect("written").events.len(), 1);
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 0);
    let again = a.enter();
    a.sharing.load("one").await.expect("served again");
    store.is_stuck.store(true, Ordering::Relaxed);
    a.sharing.append("one/1", 2, Bytes::from_static(b"event"));
    let began = tokio::time::Instant::now();
    again.leave().await;
    assert!(began.elapsed() <= LEAVE_TIMEOUT + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_fails_is_tried_again() {
    let store = Arc::<Store>::default();
    store.is_broken.store(true, Ordering::Relaxed);
    let a = Process::start(&store);
    let _in_a = a.enter();
    // Sessions do not wait for more than the first attempt.
    assert!(a.load_error().await.starts_with("sessions.load: ä"));
    store.is_broken.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_events_are_bounded() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    let fitting = MAX_WAITING_EVENT_BYTES / large.len();
    for number in 0..2 * fitting as u64 {
        a.sharing.append("one/1", number, large.clone());
    }
    let in_a = a.enter();
    a.sharing.flush().await.expect("writes");
    let last = 2 * fitting as u64 - 1;
    let latest = store.memory.read("one/1", last - 1).await.expect("reads");
    assert!(latest.is_some());
    let appends = store.requested.lock().expect("no panic");
    let appends = appends.iter().filter(|name| **name == "events.append");
    assert_eq!(appends.count(), fitting - 1);
    drop(in_a);
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_a_function_of_their_stream_that_is_late() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let in_a = a.enter();
    store.keep(Some("events.append"));
    a.sharing.append("one/1", 0, Bytes::from_static(b"0"));
    until(|| store.count("events.append") == 1).await;
    tokio::time::sleep(2 * DEFAULT_TIMEOUT).await;
    a.sharing.append("one/1", 1, Bytes::from_static(b"1"));
    a.sharing.append("one/1", 2, Bytes::from_static(b"2"));
    a.sharing.end("one/1", 2);
    tokio::time::sleep(2 * DEFAULT_TIMEOUT).await;
    assert_eq!(
        store.count("events.append"),
        1,
        "the first has not returned"
    );
    assert_eq!(store.count("events.end"), 0);
    store.keep(None);
    // Another stream does not wait.
    a.sharing.append("one/2", 0, Bytes::from_static(b"other"));
    until(|| store.count("events.append") == 2).await;
    store.return_kept().await;
    a.sharing.flush().await.expect("writes");
    let read = a.sharing.read("one/1", 0).await.expect("reads");
    let events = ["1", "2"].map(Bytes::from_static_str).to_vec();
    assert_eq!(read, Some(LoggedEvents::new(events, true)));
    in_a.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_end_after_lost_events_does_not_look_like_the_whole_stream() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let _in_a = a.enter();
    a.sharing.append("one/1", 0, Bytes::from_static(b"0"));
    a.sharing.flush().await.expect("writes");
    store.is_broken.store(true, Ordering::Relaxed);
    a.sharing.append("one/1", 1, Bytes::from_static(b"1"));
    a.sharing.flush().await.expect("tries to write");
    store.is_broken.store(false, Ordering::Relaxed);
    a.sharing.end("one/1", 1);
    a.sharing.flush().await.expect("writes");
    assert_eq!(a.sharing.read("one/1", 0).await.expect("reads"), None);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_return_leaves_the_others_room() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let in_a = a.enter();
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    store.keep(Some("events."));
    for stream in 0..2 * MAX_WRITTEN_STREAMS {
        let event = Bytes::from_static(b"event");
        a.sharing.append(&format!("one/{stream}"), 0, event);
    }
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..2 * MAX_RUNNING_READS {
        let sharing = a.sharing.clone();
        reads.spawn(async move { sharing.read("one/1", 0).await });
    }
    tokio::time::sleep(2 * DEFAULT_TIMEOUT).await;
    assert_eq!(store.count("events.append"), MAX_WRITTEN_STREAMS);
    assert_eq!(store.count("events.read"), MAX_RUNNING_READS);
    a.sharing.publish(Bytes::from_static(b"message"));
    until(|| store.count("bus.publish") == 1).await;
    a.sharing.load("one").await.expect("loads");
    store.keep(None);
    store.return_kept().await;
    a.sharing.flush().await.expect("writes");
    assert_eq!(store.count("events.append"), 2 * MAX_WRITTEN_STREAMS);
    in_a.leave().await;
}

#[tokio::test(start_paused = true)]
async fn messages_wait_for_a_publication_that_is_late_but_not_for_long() {
    let store = Arc::<Store>::default();
    let (a, b) = (Process::start(&store), Process::start(&store));
    let (_in_a, _in_b) = (a.enter(), b.enter());
    let (at_b, _subscription) = received(&b);
    until(|| store.subscriptions.load(Ordering::Relaxed) == 2).await;
    let [first, second, third] = ["first", "second", "third"].map(Bytes::from_static_str);
    store.keep(Some("bus.publish"));
    a.sharing.publish(first.clone());
    tokio::time::sleep(2 * DEFAULT_TIMEOUT).await;
    a.sharing.publish(second.clone());
    tokio::time::sleep(2 * DEFAULT_TIMEOUT).await;
    assert_eq!(store.count("bus.publish"), 1);
    store.keep(None);
    store.return_kept().await;
    until(|| *at_b.lock().expect("no panic") == [first.clone(), second.clone()]).await;
    store.keep(Some("bus.publish"));
    a.sharing.publish(first.clone());
    tokio::time::sleep(DEFAULT_TIMEOUT).await;
    a.sharing.publish(second.clone());
    tokio::time::sleep(MAX_MESSAGE_AGE + DEFAULT_TIMEOUT).await;
    a.sharing.publish(third.clone());
    store.keep(None);
    store.return_kept().await;
    let expected = [&first, &second, &first, &third].map(Bytes::clone);
    until(|| *at_b.lock().expect("no panic") == expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_subscription_is_used_and_not_made_twice() {
    let store = Arc::<Store>::default();
    store.keep(Some("bus.subscribe"));
    let a = Process::start(&store);
    let in_a = a.enter();
    // Sessions wait until its timeout.
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
    tokio::time::sleep(10 * MAX_RETRY_DELAY).await;
    assert_eq!(store.count("bus.subscribe"), 1);
    store.return_kept().await;
    tokio::time::sleep(10 * MAX_RETRY_DELAY).await;
    assert_eq!(store.count("bus.subscribe"), 1);
    in_a.leave().await;
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_before_the_next_one_begins() {
    let store = Arc::<Store>::default();
    store.keep(Some("bus.subscribe"));
    let a = Process::start(&store);
    let in_a = a.enter();
    until(|| store.count("bus.subscribe") == 1).await;
    in_a.leave().await;
    assert_eq!(store.count("bus.unsubscribe"), 1, "it may still subscribe");
    store.keep(None);
    let again = a.enter();
    a.sharing.load("one").await.expect("sessions do not wait");
    assert_eq!(store.count("bus.subscribe"), 1);
    store.return_kept().await;
    until(|| store.count("bus.subscribe") == 2).await;
    again.leave().await;
}

#[tokio::test(start_paused = true)]
async fn the_next_use_waits_for_the_end_of_the_previous_one() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let in_a = a.enter();
    a.sharing.load("one").await.expect("loads");
    store.keep(Some("bus.unsubscribe"));
    let leaving = tokio::spawn(in_a.leave());
    until(|| store.count("bus.unsubscribe") == 1).await;
    let again = a.enter();
    tokio::time::sleep(LEAVE_TIMEOUT / 2).await;
    assert_eq!(store.count("bus.subscribe"), 1);
    store.keep(None);
    store.return_kept().await;
    until(|| store.count("bus.subscribe") == 2).await;
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 1);
    leaving.await.expect("no panic");
    again.leave().await;
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_until_functions_can_run() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let prepared = a.sharing.prepare();
    let sharing = a.sharing.clone();
    let loading = tokio::spawn(async move { sharing.load("one").await });
    a.sharing.append("one/1", 0, Bytes::from_static(b"event"));
    tokio::time::sleep(10 * DEFAULT_TIMEOUT).await;
    assert!(!loading.is_finished());
    assert!(store.requested.lock().expect("no panic").is_empty());
    prepared.begin(&Handle::current());
    loading.await.expect("no panic").expect("loads");
    assert_eq!(store.subscriptions.load(Ordering::Relaxed), 1);
    prepared.leave().await;
    let dropped = a.sharing.prepare();
    let sharing = a.sharing.clone();
    let loading = tokio::spawn(async move { sharing.load("one").await });
    tokio::time::sleep(DEFAULT_TIMEOUT).await;
    drop(dropped);
    let error = loading.await.expect("no panic").expect_err("it fails");
    assert_eq!(error.to_string(), "sessions.load: the server is not served");
}

#[tokio::test(start_paused = true)]
async fn a_forked_process_begins_anew() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let in_a = a.enter();
    a.sharing.load("one").await.expect("loads");
    let (messages, _subscription) = received(&a);
    store.keep(Some("sessions."));
    let mut loads = tokio::task::JoinSet::new();
    for _ in 0..=MAX_RUNNING_SESSION_REQUESTS {
        let sharing = a.sharing.clone();
        loads.spawn(async move { sharing.load("one").await });
    }
    while loads.join_next().await.is_some() {}
    store.keep(Some("events."));
    a.sharing.append("one/1", 0, Bytes::from_static(b"event"));
    until(|| store.count("events.append") == 1).await;
    a.sharing.append("one/1", 1, Bytes::from_static(b"event"));
    store.keep(None);
    let forked = Arc::new(a.sharing.0.state().forked());
    *a.sharing.0.current.lock().expect("no panic") = forked;
    let error = a.load_error().await;
    assert_eq!(error, "sessions.load: the server is not served");
    let in_child = a.enter();
    a.sharing.load("one").await.expect("no function runs in it");
    a.sharing.flush().await.expect("nothing waits");
    assert_eq!(store.count("events.append"), 1);
    // Subscribers are those of the server, which was copied.
    a.sharing.publish(Bytes::from_static(b"message"));
    assert_eq!(messages.lock().expect("no panic").len(), 1);
    in_child.leave().await;
    drop(in_a);
}

#[tokio::test(start_paused = true)]
async fn what_functions_hold_after_their_timeout_counts() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let _in_a = a.enter();
    store.keep(Some("sessions."));
    let large = Bytes::from(vec![b'x'; MAX_WAITING_BYTES]);
    let saved = a.sharing.save("one", large.clone(), Bytes::new(), LIFETIME);
    let error = saved.await.expect_err("no answer").to_string();
    assert!(error.contains("no answer within 2 s"), "{error}");
    let saved = a.sharing.save("one", large, Bytes::new(), LIFETIME);
    let error = saved.await.expect_err("no room").to_string();
    assert!(error.contains("too many requests"), "{error}");
    store.kept.lock().expect("no panic").clear();
    store.keep(None);
    assert_eq!(a.save("first", "").await, SaveOutcome::Saved);
}

#[tokio::test(start_paused = true)]
async fn large_messages_of_the_bus_are_ignored() {
    let store = Arc::<Store>::default();
    let a = Process::start(&store);
    let _in_a = a.enter();
    let (messages, _subscription) = received(&a);
    until(|| store.subscriptions.load(Ordering::Relaxed) == 1).await;
    let receive = store.receivers.lock().expect("no panic")[0].clone();
    let mut large = vec![b'x'; MAX_MESSAGE_BYTES + 1];
    large[1] = b' ';
    receive(large.into());
    receive(Bytes::from_static(b"x small"));
    until(|| !messages.lock().expect("no panic").is_empty()).await;
    assert_eq!(*messages.lock().expect("no panic"), ["small"]);
}

#[test]
fn the_timeout_must_be_positive() {
    let functions = || {
        let function = Arc::new(Function(Arc::default())) as Arc<dyn Handler>;
        SharingFunctions {
            save: function.clone(),
            load: function.clone(),
            remove: function.clone(),
            append: function.clone(),
            end: function.clone(),
            read: function.clone(),
            publish: function.clone(),
            subscribe: function.clone(),
            unsubscribe: function,
        }
    };
    for invalid in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = ForeignSharing::new(functions(), Some(invalid)).expect_err("invalid");
        assert!(error.to_string().contains("`timeout`"), "{error}");
    }
}

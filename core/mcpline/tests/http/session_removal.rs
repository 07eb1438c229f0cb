//! Sessions that end while the store that processes share fails or is slow: they do not come back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::http_sessions::{self, settle};
use crate::support::requests::{call, request};
use bytes::Bytes;
use http::{Method, StatusCode};
use mcpline::sharing::{Pending, SaveOutcome, SessionStore, Sharing, SharingError};
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Longer than a process waits before it tries again what the store failed to do.
const UNTIL_RETRIED: Duration = Duration::from_secs(3);

/// One process.
struct Process {
    service: HttpService,
}

impl Process {
    fn start(sharing: &Sharing) -> Self {
        Self::start_with(sharing, HttpOptions::default())
    }

    fn start_with(sharing: &Sharing, options: HttpOptions) -> Self {
        let mut settings = Settings::default();
        settings.sharing = Some(sharing.clone());
        let server = Server::builder("removes", "1").settings(settings);
        let server = server.build().expect("a server").tool(
            "plain",
            "Answers at once",
            |_: Nothing, _: Context| async { "done" },
        );
        Self {
            service: server.http_service(options),
        }
    }

    async fn send(&self, method: Method, session: &str, body: Value) -> StatusCode {
        let response = http_sessions::send(&self.service, method, session, body).await;
        response.status()
    }

    /// Calls a tool.
    async fn call(&self, session: &str) -> StatusCode {
        self.send(Method::POST, session, call(1, "plain")).await
    }

    async fn end(&self, session: &str) {
        let ended = self.send(Method::DELETE, session, Value::Null).await;
        assert_eq!(ended, StatusCode::NO_CONTENT);
    }

    /// Performs a handshake; returns the session's id.
    async fn begin(&self) -> String {
        let id = http_sessions::initialized(&self.service, "2025-11-25").await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            self.send(Method::POST, &id, ready).await,
            StatusCode::ACCEPTED
        );
        id
    }

    /// Sends a request without waiting for its response.
    fn start_request(&self, method: Method, session: &str, body: Value) -> JoinHandle<StatusCode> {
        let headers = [
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let request = request(method, &headers, body);
        let service = self.service.clone();
        tokio::spawn(async move { service.handle(request).await.status() })
    }

    /// Sends a request that changes the session, without waiting for its response.
    fn start_change(&self, session: &str) -> JoinHandle<StatusCode> {
        let level = json!({"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel",
                           "params": {"level": "error"}});
        self.start_request(Method::POST, session, level)
    }
}

/// A store that forgets that a session was removed: whatever is saved later is stored.
#[derive(Default)]
struct Store {
    sessions: Mutex<HashMap<String, Bytes>>,
    loads: AtomicUsize,
    fails_to_remove: AtomicBool,
    delays_saves: AtomicBool,
    delays_removals: AtomicBool,
    /// The delayed operations that wait.
    delayed: AtomicUsize,
    go_on: Delays,
}

struct Delays(Semaphore);

impl Default for Delays {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Store {
    fn share() -> (Sharing, Arc<Self>) {
        let mut sharing = Sharing::in_memory();
        let store = Arc::new(Self::default());
        sharing.sessions = Arc::new(Shared(store.clone()));
        (sharing, store)
    }

    fn fail_to_remove(&self, fails: bool) {
        self.fails_to_remove.store(fails, Ordering::SeqCst);
    }

    fn held(&self) -> usize {
        self.sessions.lock().expect("no panic").len()
    }

    async fn delay(&self, is_delayed: &AtomicBool) {
        if is_delayed.load(Ordering::SeqCst) {
            self.delayed.fetch_add(1, Ordering::SeqCst);
            self.go_on.0.acquire().await.expect("open").forget();
        }
    }

    /// Waits until an operation is delayed.
    async fn has_delayed(&self) {
        while self.delayed.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }

    fn go_on(&self) {
        self.delays_saves.store(false, Ordering::SeqCst);
        self.delays_removals.store(false, Ordering::SeqCst);
        self.go_on
            .0
            .add_permits(self.delayed.load(Ordering::SeqCst));
    }
}

/// A store that completes each save, whether or not the caller waits for it.
struct Shared(Arc<Store>);

impl SessionStore for Shared {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        _: Duration,
    ) -> Pending<'a, SaveOutcome> {
        let (store, id) = (self.0.clone(), id.to_owned());
        Box::pin(async {
            let saving = tokio::spawn(async move {
                store.delay(&store.delays_saves).await;
                let mut sessions = store.sessions.lock().expect("no panic");
                match sessions.get(&id) {
                    Some(stored) if *stored != replaces && *stored != session => {
                        SaveOutcome::Conflict(stored.clone())
                    }
                    _ => {
                        sessions.insert(id, session);
                        SaveOutcome::Saved
                    }
                }
            });
            Ok(saving.await.expect("no panic"))
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        let sessions = self.0.sessions.lock().expect("no panic");
        let stored = sessions.get(id).cloned();
        Box::pin(async { Ok(stored) })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            self.0.delay(&self.0.delays_removals).await;
            if self.0.fails_to_remove.load(Ordering::SeqCst) {
                return Err(SharingError::new("unreachable"));
            }
            self.0.sessions.lock().expect("no panic").remove(id);
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_store_could_not_remove_is_unknown_where_it_ended() {
    let (sharing, store) = Store::share();
    let a = Process::start(&sharing);
    let id = a.begin().await;
    store.fail_to_remove(true);
    a.end(&id).await;
    for _ in 0..2 {
        let before = store.loads.load(Ordering::SeqCst);
        assert_eq!(a.call(&id).await, StatusCode::NOT_FOUND);
        let ended = a.send(Method::DELETE, &id, Value::Null).await;
        assert_eq!(ended, StatusCode::NOT_FOUND);
        assert_eq!(store.loads.load(Ordering::SeqCst), before);
        // Attempts to remove it fail, too.
        tokio::time::sleep(4 * UNTIL_RETRIED).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_removed_and_ends_everywhere_once_the_store_is_back() {
    let (sharing, store) = Store::share();
    let [a, b] = [(); 2].map(|()| Process::start(&sharing));
    let (id, other) = (a.begin().await, a.begin().await);
    store.fail_to_remove(true);
    a.end(&id).await;
    a.end(&other).await;
    // It finds the session in the store.
    assert_eq!(b.call(&id).await, StatusCode::OK);
    tokio::time::sleep(4 * UNTIL_RETRIED).await;
    store.fail_to_remove(false);
    tokio::time::sleep(UNTIL_RETRIED).await;
    assert_eq!(store.held(), 0);
    for process in [&a, &b, &Process::start(&sharing)] {
        assert_eq!(process.call(&id).await, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_continued_while_it_is_removed_ends() {
    let (sharing, store) = Store::share();
    let [a, b] = [(); 2].map(|()| Process::start(&sharing));
    let id = a.begin().await;
    store.delays_removals.store(true, Ordering::SeqCst);
    let ending = a.start_request(Method::DELETE, &id, Value::Null);
    store.has_delayed().await;
    assert_eq!(a.call(&id).await, StatusCode::NOT_FOUND);
    // The end was published before.
    assert_eq!(b.call(&id).await, StatusCode::OK);
    store.go_on();
    assert_eq!(ending.await.expect("no panic"), StatusCode::NO_CONTENT);
    settle().await;
    for process in [&a, &b] {
        assert_eq!(process.call(&id).await, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_save_in_flight_does_not_bring_back_a_session_whose_second_removal_fails() {
    for client_leaves in [false, true] {
        let (sharing, store) = Store::share();
        let [a, b] = [(); 2].map(|()| Process::start(&sharing));
        let id = a.begin().await;
        store.delays_saves.store(true, Ordering::SeqCst);
        let changing = a.start_change(&id);
        store.has_delayed().await;
        a.end(&id).await;
        store.fail_to_remove(true);
        if client_leaves {
            changing.abort();
            assert!(changing.await.is_err(), "the client has left");
            store.go_on();
        } else {
            store.go_on();
            changing.await.expect("no panic");
        }
        settle().await;
        assert_eq!(store.held(), 1, "the store has taken the save");
        assert_eq!(a.call(&id).await, StatusCode::NOT_FOUND);
        assert_eq!(b.call(&id).await, StatusCode::OK);
        store.fail_to_remove(false);
        tokio::time::sleep(UNTIL_RETRIED).await;
        assert_eq!(store.held(), 0);
        for process in [&a, &b, &Process::start(&sharing)] {
            assert_eq!(process.call(&id).await, StatusCode::NOT_FOUND);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_made_room_is_removed_once_the_store_is_back() {
    let (sharing, store) = Store::share();
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    let a = Process::start_with(&sharing, options);
    let first = a.begin().await;
    store.fail_to_remove(true);
    a.begin().await;
    settle().await;
    assert_eq!(store.held(), 2);
    assert_eq!(a.call(&first).await, StatusCode::NOT_FOUND);
    store.fail_to_remove(false);
    tokio::time::sleep(UNTIL_RETRIED).await;
    assert_eq!(store.held(), 1);
}

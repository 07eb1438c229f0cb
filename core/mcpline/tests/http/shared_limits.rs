//! Rate limits that count for several processes of one service, which have only [`Sharing`] in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::support::requests::{body, call, request};
use crate::support::{Client, Nothing, http_sessions};
use http::Method;
use mcpline::middleware::{LimitKey, RateLimit};
use mcpline::server::MiddlewareScope;
use mcpline::sharing::{BucketPolicy, Pending, SharedBuckets, Sharing, SharingError, TakeOutcome};
use mcpline::transport::http::{HttpOptions, HttpService, Principal};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// A token a minute, after these at once.
fn limit(burst: u32) -> RateLimit {
    RateLimit::new(1, 60 * SECOND).with_burst(burst)
}

fn server(sharing: &Sharing, limit: RateLimit) -> Server {
    let mut settings = Settings::default();
    settings.sharing = Some(sharing.clone());
    let server = Server::builder("limited", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
            "done"
        });
    let calls = MiddlewareScope::all().with_methods(["tools/call"]);
    server
        .add_middleware(calls, Arc::new(limit))
        .expect("a limit");
    server
}

/// One process, and a session that it began.
struct Process {
    service: HttpService,
    session: String,
}

impl Process {
    async fn start(sharing: &Sharing, limit: RateLimit) -> Self {
        let service = server(sharing, limit).http_service(HttpOptions::default());
        let session = http_sessions::initialized(&service, "2025-11-25").await;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        http_sessions::send(&service, Method::POST, &session, ready).await;
        Self { service, session }
    }

    /// Calls a tool in a session.
    async fn call_in(&self, session: &str) -> Result<(), Value> {
        let called = http_sessions::send(&self.service, Method::POST, session, call(1, "plain"));
        outcome(body(called.await).await)
    }

    async fn call(&self) -> Result<(), Value> {
        self.call_in(&self.session).await
    }
}

/// Returns the data of the error with which a limit refuses a call.
fn outcome(answer: Value) -> Result<(), Value> {
    match answer.get("error") {
        None => {
            assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
            Ok(())
        }
        Some(error) => {
            assert_eq!(error["code"], -31_000, "{answer}");
            Err(error["data"].clone())
        }
    }
}

/// Calls the tool at one process after the other until all refuse it. Returns the number of calls that were admitted.
async fn calls_until_refused(processes: &[&Process]) -> usize {
    let (mut admitted, mut refused) = (0, 0);
    for process in processes.iter().cycle() {
        match process.call().await {
            Ok(()) => {
                admitted += 1;
                refused = 0;
            }
            Err(data) => {
                let seconds = data["retryAfter"].as_u64();
                assert!(seconds.is_some_and(|seconds| (1..=60).contains(&seconds)));
                refused += 1;
            }
        }
        if refused == processes.len() {
            break;
        }
    }
    admitted
}

#[tokio::test(start_paused = true)]
async fn processes_reach_a_shared_limit_together() {
    for (is_shared, calls) in [(true, 40), (false, 80)] {
        let sharing = Sharing::in_memory();
        let limit = || match is_shared {
            true => limit(40).shared("calls"),
            false => limit(40),
        };
        let a = Process::start(&sharing, limit()).await;
        let b = Process::start(&sharing, limit()).await;
        assert_eq!(calls_until_refused(&[&a, &b]).await, calls);
        tokio::time::advance(60 * SECOND).await;
        // One token for both, or for each.
        assert_eq!(calls_until_refused(&[&a, &b]).await, calls / 40);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_with_different_names_count_on_their_own() {
    let sharing = Sharing::in_memory();
    let a = Process::start(&sharing, limit(1).shared("one")).await;
    let b = Process::start(&sharing, limit(1).shared("two")).await;
    assert_eq!(calls_until_refused(&[&a]).await, 1);
    assert_eq!(calls_until_refused(&[&b]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn state_without_buckets_leaves_each_process_its_own_limit() {
    let mut sharing = Sharing::in_memory();
    sharing.buckets = None;
    let a = Process::start(&sharing, limit(2).shared("calls")).await;
    let b = Process::start(&sharing, limit(2).shared("calls")).await;
    assert_eq!(calls_until_refused(&[&a]).await, 2);
    assert_eq!(calls_until_refused(&[&b]).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_moves_to_another_process_finds_what_it_has_not_used() {
    let sharing = Sharing::in_memory();
    let a = Process::start(&sharing, limit(64).shared("calls")).await;
    let b = Process::start(&sharing, limit(64).shared("calls")).await;
    // 1 + 2 + 4 + 8 tokens were taken.
    for _ in 0..8 {
        a.call().await.expect("admitted");
    }
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(calls_until_refused(&[&b]).await, 56);
}

#[tokio::test(start_paused = true)]
async fn sessions_and_callers_are_counted_at_all_processes() {
    let sharing = Sharing::in_memory();
    let per_session = || limit(2).per([LimitKey::Session]).shared("calls");
    let a = Process::start(&sharing, per_session()).await;
    let b = Process::start(&sharing, per_session()).await;
    a.call().await.expect("admitted");
    b.call_in(&a.session).await.expect("admitted");
    for process in [&a, &b] {
        let refused = process.call_in(&a.session).await;
        refused.expect_err("its bucket is empty");
    }
    b.call().await.expect("another session");

    let sharing = Sharing::in_memory();
    let per_client = || limit(1).per([LimitKey::Client]).shared("calls");
    let services = [(); 2].map(|()| {
        let server = server(&sharing, per_client());
        server.http_service(HttpOptions::default())
    });
    let call_as = async |service: &HttpService, name: &str| {
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "plain"),
        ];
        let mut called = call(1, "plain");
        called["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut request = request(Method::POST, &headers, called);
        request.extensions_mut().insert(Principal(name.to_owned()));
        outcome(body(service.handle(request).await).await)
    };
    call_as(&services[0], "ann").await.expect("admitted");
    let refused = call_as(&services[1], "ann").await;
    refused.expect_err("her bucket is empty");
    call_as(&services[1], "bob").await.expect("admitted");
}

/// The first connection of each process has the same number.
#[tokio::test(start_paused = true)]
async fn clients_that_only_their_connection_identifies_are_counted_where_they_are() {
    for (keys, is_counted_elsewhere) in [
        (&[LimitKey::Client][..], false),
        (&[LimitKey::Session], false),
        (&[LimitKey::Target], true),
    ] {
        let sharing = Sharing::in_memory();
        let per = || limit(1).per(keys.iter().copied()).shared("calls");
        let servers = [server(&sharing, per()), server(&sharing, per())];
        let mut admitted = Vec::new();
        for server in &servers {
            let mut client = Client::legacy(server, "2025-11-25").await;
            let params = json!({"name": "plain", "arguments": {}});
            let id = client.begin("tools/call", params);
            admitted.push(client.response(&id).await.is_ok());
        }
        assert_eq!(admitted, [true, !is_counted_elsewhere], "{keys:?}");
    }
}

/// Buckets that fail, or hang, while they are down.
struct Unreliable {
    sound: Arc<dyn SharedBuckets>,
    is_down: AtomicBool,
    hangs: bool,
    asked: AtomicU32,
}

impl SharedBuckets for Unreliable {
    fn take<'a>(
        &'a self,
        key: &'a str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Pending<'a, TakeOutcome> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match (self.is_down.load(Ordering::SeqCst), self.hangs) {
            (false, _) => self.sound.take(key, policy, tokens),
            (true, true) => Box::pin(std::future::pending()),
            (true, false) => Box::pin(async { Err(SharingError::new("the disk is full")) }),
        }
    }

    fn give_back<'a>(&'a self, key: &'a str, policy: BucketPolicy, tokens: u32) -> Pending<'a, ()> {
        self.sound.give_back(key, policy, tokens)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_leaves_each_process_its_own_limit_until_it_is_back() {
    for hangs in [false, true] {
        let mut sharing = Sharing::in_memory();
        let store = Arc::new(Unreliable {
            sound: sharing.buckets.take().expect("buckets"),
            is_down: AtomicBool::new(true),
            hangs,
            asked: AtomicU32::new(0),
        });
        sharing.buckets = Some(store.clone());
        let a = Process::start(&sharing, limit(3).shared("calls")).await;
        let b = Process::start(&sharing, limit(3).shared("calls")).await;
        let began = Instant::now();
        assert_eq!(calls_until_refused(&[&a]).await, 3);
        assert_eq!(calls_until_refused(&[&b]).await, 3);
        // One request of each process has waited, and no other.
        let waited = if hangs { SECOND } else { Duration::ZERO };
        assert_eq!(began.elapsed(), waited);
        assert_eq!(store.asked.load(Ordering::SeqCst), 2);
        store.is_down.store(false, Ordering::SeqCst);
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(calls_until_refused(&[&a, &b]).await, 3);
    }
}

/// A client must not use up what a lease takes by cancelling its calls.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_loses_no_lease() {
    let sharing = Sharing::in_memory();
    let buckets = sharing.buckets.clone().expect("buckets");
    let slow = Sharing {
        buckets: Some(Arc::new(Slow(buckets))),
        ..sharing
    };
    let a = Process::start(&slow, limit(64).shared("calls")).await;
    for _ in 0..7 {
        a.call().await.expect("admitted");
    }
    // It requests 8 tokens, and is cancelled meanwhile.
    let abandoned = tokio::time::timeout(Slow::DELAY / 2, a.call()).await;
    abandoned.expect_err("not answered yet");
    tokio::time::sleep(2 * SECOND).await;
    // One token was the request's, and the others were given back.
    assert_eq!(calls_until_refused(&[&a]).await, 56);
}

/// Buckets whose answers take a while.
struct Slow(Arc<dyn SharedBuckets>);

impl Slow {
    const DELAY: Duration = Duration::from_millis(10);
}

impl SharedBuckets for Slow {
    fn take<'a>(
        &'a self,
        key: &'a str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Pending<'a, TakeOutcome> {
        Box::pin(async move {
            let taken = self.0.take(key, policy, tokens).await;
            tokio::time::sleep(Self::DELAY).await;
            taken
        })
    }

    fn give_back<'a>(&'a self, key: &'a str, policy: BucketPolicy, tokens: u32) -> Pending<'a, ()> {
        self.0.give_back(key, policy, tokens)
    }
}

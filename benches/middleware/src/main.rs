//! Times `tools/call` in memory at servers with different middleware, alternately: medians of the CPU time per call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpline::Server;
use mcpline::middleware::{
    AuditLog, ConcurrencyLimit, LimitKey, Middleware, MiddlewareRequest, Next, RateLimit,
    Redaction, ResponseCache, ResponseSizeLimit,
};
use mcpline::server::{FeatureSelection, MiddlewareScope};

const CALLS: u32 = 5_000;
const ROUNDS: usize = 61;

fn with(middlewares: Vec<Arc<dyn Middleware>>) -> Server {
    let server = bench_calls::server(false);
    for middleware in middlewares {
        server
            .add_middleware(MiddlewareScope::all(), middleware)
            .expect("a middleware");
    }
    server
}

fn pass_on() -> Arc<dyn Middleware> {
    Arc::new(|request: MiddlewareRequest, next: Next| async move { next.run(request).await })
}

/// A middleware whose scope has no tool of the server: the chain of a call is empty.
fn elsewhere() -> Server {
    let server = bench_calls::server(false);
    let scope = MiddlewareScope::all().with_features(FeatureSelection::all().with_names(["other"]));
    server
        .add_middleware(scope, pass_on())
        .expect("a middleware");
    server
}

fn built_ins() -> Vec<Arc<dyn Middleware>> {
    let rate = || RateLimit::new(1_000_000_000, Duration::from_secs(1));
    vec![
        Arc::new(rate().per([LimitKey::Client])),
        Arc::new(rate().per([LimitKey::Client, LimitKey::Target])),
        Arc::new(ConcurrencyLimit::new(100).per([LimitKey::Target])),
        Arc::new(ResponseCache::new(Duration::from_secs(1))),
        Arc::new(ResponseSizeLimit::new(100_000)),
    ]
}

fn audit_log(path: &Path) -> Server {
    let log = AuditLog::open(path).expect("a new file");
    with(vec![Arc::new(log)])
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let log = std::env::temp_dir().join(format!("mcpline-bench-{}.jsonl", std::process::id()));
    let redaction = Redaction::new().with_members(["password"]);
    let cases = vec![
        ("no middleware", bench_calls::server(false)),
        ("an empty chain", elsewhere()),
        ("one that passes the call on", with(vec![pass_on()])),
        (
            "five that pass the call on",
            with((0..5).map(|_| pass_on()).collect()),
        ),
        ("five built-in ones", with(built_ins())),
        ("redaction", with(vec![Arc::new(redaction)])),
        ("audit log", audit_log(&log)),
    ];
    let cases = bench_calls::chosen(cases);
    let (names, servers): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let mut clients = Vec::new();
    for server in &servers {
        let client = bench_calls::connect(server).await;
        bench_calls::time(&client, CALLS, "").await;
        clients.push(client);
    }
    let mut times = vec![Vec::new(); names.len()];
    for _ in 0..bench_calls::rounds(ROUNDS) {
        for (client, times) in clients.iter().zip(&mut times) {
            times.push(bench_calls::time(client, CALLS, "").await);
        }
    }
    bench_calls::report(&names, &mut times);
    drop((clients, servers));
    // A file of this run only.
    let _ = std::fs::remove_file(log);
}

//! Times `tools/call` in memory at servers with different middleware, alternately, and prints medians and what each adds to a
//! server without any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpline::middleware::{
    ConcurrencyLimit, LimitKey, Middleware, MiddlewareRequest, Next, RateLimit, ResponseCache,
    ResponseSizeLimit,
};
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{FeatureSelection, MiddlewareScope, ToolOptions};
use mcpline::transport::Memory;
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 15;

fn server() -> Server {
    let server = Server::new("bench", "1");
    let tool = Tool::new("echo", json!({"type": "object"}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            |arguments: Value, _: Context| async move {
                Ok::<_, HandlerError>(arguments["word"].as_str().unwrap_or_default().to_owned())
            },
        )
        .expect("a tool");
    server
}

fn with(middlewares: Vec<Arc<dyn Middleware>>) -> Server {
    let server = server();
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

/// A middleware whose scope has no tool of the server.
fn elsewhere() -> Server {
    let server = server();
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

async fn connect(server: &Server) -> Memory {
    let memory = server.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
    memory.send(initialize.to_string());
    memory.receive().await.expect("a handshake");
    memory.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    memory
}

async fn time(memory: &Memory) -> Duration {
    let started = Instant::now();
    for id in 1..=CALLS {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"word":"tea"}}}}}}"#
        ));
        memory.receive().await.expect("a response");
    }
    started.elapsed() / CALLS
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cases = [
        ("none", server()),
        ("one for another tool", elsewhere()),
        ("one that passes on", with(vec![pass_on()])),
        (
            "five that pass on",
            with((0..5).map(|_| pass_on()).collect()),
        ),
        ("five built-in", with(built_ins())),
    ];
    let mut clients = Vec::new();
    for (_, server) in &cases {
        clients.push(connect(server).await);
    }
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (memory, times) in clients.iter().zip(&mut times) {
            times.push(time(memory).await);
        }
    }
    let mut base = Duration::ZERO;
    for ((name, _), times) in cases.iter().zip(&mut times) {
        times.sort_unstable();
        let median = times[times.len() / 2];
        if *name == "none" {
            base = median;
        }
        let added = median.as_nanos() as i128 - base.as_nanos() as i128;
        println!("{name:>22}: {:>6} ns, {added:+} ns", median.as_nanos());
    }
}

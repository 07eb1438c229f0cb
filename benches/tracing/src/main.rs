//! Times `tools/call` in memory at a server that is traced or not: CPU time per call, in medians of alternating processes, because a
//! process remembers for each place in the code whether spans are wanted.

use std::process::Command;

use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::transport::Memory;
use mcpline::{Context, HandlerError, Server};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt as _;

const CALLS: u32 = 50_000;
const ROUNDS: usize = 9;

/// What is measured, each in processes of its own.
const CASES: [&str; 5] = [
    "off",
    "off, with a trace context",
    "sampled out",
    "sampled at 1 %",
    "always on",
];

/// Discards spans: how they are exported is not what is measured.
#[derive(Debug)]
struct Discarding;

impl SpanExporter for Discarding {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

/// Exports the spans of the process, as far as the sampler wants them.
fn trace(sampler: Sampler) {
    let provider = SdkTracerProvider::builder()
        .with_sampler(sampler)
        .with_batch_exporter(Discarding)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("bench"));
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
}

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

async fn connect(server: &Server) -> Memory {
    let memory = server.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
    memory.send(initialize.to_string());
    memory.receive().await.expect("a handshake");
    memory.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    memory
}

async fn call(memory: &Memory, calls: u32, meta: &str) {
    for id in 1..=calls {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"word":"tea"}}{meta}}}}}"#
        ));
        memory.receive().await.expect("a response");
    }
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split_whitespace().next().expect("the time");
    first.parse().expect("a number")
}

#[tokio::main(flavor = "current_thread")]
async fn measure(case: &str) {
    let mut meta = "";
    match case {
        "off, with a trace context" => {
            meta = r#","_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;
        }
        "sampled out" => trace(Sampler::AlwaysOff),
        "sampled at 1 %" => trace(Sampler::TraceIdRatioBased(0.01)),
        "always on" => trace(Sampler::AlwaysOn),
        _ => {}
    }
    let server = server();
    let memory = connect(&server).await;
    call(&memory, CALLS / 5, meta).await;
    let before = cpu_time();
    call(&memory, CALLS, meta).await;
    println!("{}", (cpu_time() - before) / u64::from(CALLS));
}

fn main() {
    if let Some(case) = std::env::args().nth(1) {
        return measure(&case);
    }
    let this = std::env::current_exe().expect("this program");
    let mut times = vec![Vec::new(); CASES.len()];
    for _ in 0..ROUNDS {
        for (case, times) in CASES.iter().zip(&mut times) {
            let output = Command::new(&this).arg(case).output().expect("it runs");
            let text = String::from_utf8(output.stdout).expect("text");
            times.push(text.trim().parse::<i64>().expect("a number"));
        }
    }
    let mut base = 0;
    for (case, times) in CASES.iter().zip(&mut times) {
        times.sort_unstable();
        let median = times[times.len() / 2];
        if *case == "off" {
            base = median;
        }
        println!("{case:>26}: {median:>6} ns, {:+} ns", median - base);
    }
}

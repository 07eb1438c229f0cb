//! Times `tools/call` in memory at a server that is traced or not, and from a client that is: medians of the CPU time per call, of
//! alternating processes, because a process remembers for each place in the code whether spans are wanted.

use std::process::Command;

use mcpline::client::Client;
use mcpline::open_telemetry::RequestSampler;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

const CALLS: u32 = 25_000;
const ROUNDS: usize = 25;

/// What is measured, each in processes of its own.
const CASES: [&str; 11] = [
    "off",
    "propagation only",
    "not sampled",
    "not sampled by the client",
    "not sampled, without RequestSampler",
    "sampled at 1 %",
    "always on",
    "client and server, off",
    "client and server, not sampled",
    "client and server, without RequestSampler",
    "client and server, always on",
];

/// The cases whose calls are those of a client; what follows is another case.
const CLIENT: &str = "client and server, ";

const SAMPLED: &str =
    r#","_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;
const UNSAMPLED: &str =
    r#","_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}"#;

/// Discards spans: how they are exported is not what is measured.
#[derive(Debug)]
struct Discarding;

impl SpanExporter for Discarding {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

/// Exports the spans of the process, as far as the sampler wants them.
fn trace(sampler: Sampler, is_asked_early: bool) {
    let provider = SdkTracerProvider::builder().with_batch_exporter(Discarding);
    let registry = tracing_subscriber::registry();
    let set = if is_asked_early {
        let sampler = RequestSampler::new(sampler);
        let tracer = sampler.configure(provider).build().tracer("bench");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        tracing::subscriber::set_global_default(registry.with(layer.with_filter(sampler)))
    } else {
        let tracer = provider.with_sampler(sampler).build().tracer("bench");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        tracing::subscriber::set_global_default(registry.with(layer))
    };
    set.expect("the only subscriber");
}

#[tokio::main(flavor = "current_thread")]
async fn measure(case: &str) {
    let mut meta = "";
    let from_client = case.strip_prefix(CLIENT);
    match from_client.unwrap_or(case) {
        "propagation only" => meta = SAMPLED,
        "not sampled" => trace(Sampler::AlwaysOff, true),
        "not sampled by the client" => {
            meta = UNSAMPLED;
            trace(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)), true);
        }
        "not sampled, without RequestSampler" | "without RequestSampler" => trace(Sampler::AlwaysOff, false),
        "sampled at 1 %" => trace(Sampler::TraceIdRatioBased(0.01), true),
        "always on" => trace(Sampler::AlwaysOn, true),
        _ => {}
    }
    let server = bench_calls::server(case == "propagation only");
    if from_client.is_some() {
        let client = Client::builder("bench", "1").connect(&server).await;
        let client = client.expect("a connection");
        bench_calls::time_client(&client, CALLS / 5).await;
        println!("{}", bench_calls::time_client(&client, CALLS).await);
        return;
    }
    let memory = bench_calls::connect(&server).await;
    bench_calls::time(&memory, CALLS / 5, meta).await;
    println!("{}", bench_calls::time(&memory, CALLS, meta).await);
}

fn main() {
    let case = std::env::args().nth(1);
    if let Some(case) = case.filter(|case| CASES.contains(&case.as_str())) {
        return measure(&case);
    }
    let this = std::env::current_exe().expect("this program");
    let mut times = vec![Vec::new(); CASES.len()];
    for _ in 0..bench_calls::rounds(ROUNDS) {
        for (case, times) in CASES.iter().zip(&mut times) {
            let output = Command::new(&this).arg(case).output().expect("it runs");
            let text = String::from_utf8(output.stdout).expect("text");
            times.push(text.trim().parse::<i64>().expect("a number"));
        }
    }
    bench_calls::report(&CASES, &mut times);
}

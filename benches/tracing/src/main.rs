//! Times `tools/call` in memory at a server that is traced or not: medians of the CPU time per call, of alternating processes, because a
//! process remembers for each place in the code whether spans are wanted.

use std::process::Command;

use mcpline::open_telemetry::RequestSampler;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

const CALLS: u32 = 25_000;
const ROUNDS: usize = 25;

/// What is measured, each in processes of its own.
const CASES: [&str; 7] = [
    "off",
    "propagation only",
    "not sampled",
    "not sampled by the client",
    "not sampled, without RequestSampler",
    "sampled at 1 %",
    "always on",
];

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
    match case {
        "propagation only" => meta = SAMPLED,
        "not sampled" => trace(Sampler::AlwaysOff, true),
        "not sampled by the client" => {
            meta = UNSAMPLED;
            trace(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)), true);
        }
        "not sampled, without RequestSampler" => trace(Sampler::AlwaysOff, false),
        "sampled at 1 %" => trace(Sampler::TraceIdRatioBased(0.01), true),
        "always on" => trace(Sampler::AlwaysOn, true),
        _ => {}
    }
    let server = bench_calls::server(case == "propagation only");
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

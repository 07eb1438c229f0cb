//! Calls a tool in memory, and measures the CPU time of a call: of all threads of the process, because some middleware and
//! exporters have threads of their own.

use mcpline::client::Client;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::transport::MemoryTransport;
use mcpline::{Context, HandlerError, Server};
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Returns a server with the tool `echo`, which finishes at once. With `reads_context` it reads the trace context of the call.
pub fn server(reads_context: bool) -> Server {
    let server = Server::new("bench", "1");
    let tool = Tool::new("echo", json!({"type": "object"}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            move |arguments: Value, ctx: Context| async move {
                if reads_context {
                    std::hint::black_box(ctx.trace_context());
                }
                Ok::<_, HandlerError>(arguments["word"].as_str().unwrap_or_default().to_owned())
            },
        )
        .expect("a tool");
    server
}

/// Connects a client of 2025-11-25.
pub async fn connect(server: &Server) -> MemoryTransport {
    let memory = server.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
    memory.send(initialize.to_string());
    memory.receive().await.expect("a handshake");
    memory.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    memory
}

/// Calls the tool so often, one call after another, with this member after the arguments. Returns the CPU time of a call in
/// nanoseconds.
pub async fn time(memory: &MemoryTransport, calls: u32, meta: &str) -> i64 {
    let before = cpu_time();
    for id in 1..=calls {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"word":"tea"}}{meta}}}}}"#
        ));
        memory.receive().await.expect("a response");
    }
    (cpu_time() - before) / i64::from(calls)
}

/// Calls the tool so often from a client, one call after another. Returns the CPU time of a call in nanoseconds, with that of the
/// server.
pub async fn time_client(client: &Client, calls: u32) -> i64 {
    let before = cpu_time();
    for _ in 0..calls {
        let result = client.call_tool("echo", json!({"word": "tea"})).await;
        result.expect("a result");
    }
    (cpu_time() - before) / i64::from(calls)
}

/// Returns the case that was named when the program was started, by `--only NAME`, such as for a profiler; all if none was.
pub fn chosen<T>(cases: Vec<(&'static str, T)>) -> Vec<(&'static str, T)> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--only");
    let Some(only) = arguments.nth(1) else {
        return cases;
    };
    cases
        .into_iter()
        .filter(|(name, _)| *name == only)
        .collect()
}

/// Returns how often the cases take turns: less often if the program was started with `--quick`.
pub fn rounds(usual: usize) -> usize {
    match std::env::args().any(|argument| argument == "--quick") {
        true => 5,
        false => usual,
    }
}

/// Prints the median of each case in nanoseconds, and what it adds to the first one: as a table, or as JSON if the program was
/// started with `--json`.
pub fn report(cases: &[&str], times: &mut [Vec<i64>]) {
    let medians = times.iter_mut().map(|times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let medians: Vec<_> = medians.collect();
    if std::env::args().any(|argument| argument == "--json") {
        let all = cases
            .iter()
            .zip(&medians)
            .map(|(case, median)| json!([case, median]));
        println!("{}", Value::Array(all.collect()));
        return;
    }
    for (case, median) in cases.iter().zip(&medians) {
        println!("{case:>40}: {median:>6} ns, {:+} ns", median - medians[0]);
    }
}

fn cpu_time() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the clock of the process");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

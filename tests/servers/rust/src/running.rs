//! Tools that report progress, wait and are cancelled.

use std::sync::Arc;
use std::time::Duration;

use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::{Context, Error, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use crate::content::Nothing;
use crate::state::State;

/// The delay between two steps of a tool that works in steps.
const STEP: Duration = Duration::from_millis(50);

#[derive(Deserialize, JsonSchema)]
struct Gate {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Label {
    label: String,
}

fn log(ctx: &Context, text: &str) {
    ctx.log(LoggingLevel::Info, None, text);
}

/// Adds these tools.
pub(crate) fn add(server: &Server, state: &Arc<State>) -> Result<(), Error> {
    let server = server
        .clone()
        .tool(
            "test_tool_with_logging",
            "Logs three times",
            |_: Nothing, ctx: Context| async move {
                log(&ctx, "Tool execution started");
                sleep(STEP).await;
                log(&ctx, "Tool processing data");
                sleep(STEP).await;
                log(&ctx, "Tool execution completed");
                "Tool with logging executed successfully"
            },
        )
        .tool(
            "test_log_levels",
            "Logs at every level",
            |_: Nothing, ctx: Context| async move {
                for level in LoggingLevel::ALL {
                    let text = format!("message at {}", level.as_str());
                    ctx.log(*level, Some("fixture"), text);
                }
                "logged"
            },
        )
        .tool(
            "test_logging_tool",
            "Logs once",
            |_: Nothing, ctx: Context| async move {
                log(&ctx, "Logging tool called");
                "logged"
            },
        )
        .tool(
            "test_tool_with_progress",
            "Reports progress",
            |_: Nothing, ctx: Context| async move {
                for step in [0, 50, 100] {
                    let message = format!("Completed step {step} of 100");
                    ctx.progress(f64::from(step), Some(100.0), Some(&message));
                    sleep(STEP).await;
                }
                "progress done"
            },
        )
        .tool(
            "test_reconnection",
            "Closes its stream",
            |_: Nothing, ctx: Context| async move {
                ctx.close_stream();
                sleep(2 * STEP).await;
                "reconnected"
            },
        );
    let gates = state.clone();
    let server = server.tool(
        "test_gate",
        "Waits for a gate",
        move |args: Gate, ctx: Context| {
            let gates = gates.clone();
            async move {
                ctx.progress(0.0, Some(1.0), Some("waiting"));
                gates.gates.wait(&args.name).await;
                format!("gate {} passed", args.name)
            }
        },
    );
    let gates = state.clone();
    let server = server.tool(
        "test_open_gate",
        "Opens a gate",
        move |args: Gate, _: Context| {
            gates.gates.set(&args.name);
            async move { format!("gate {} opened", args.name) }
        },
    );
    let cancelled = state.clone();
    let server = server.tool(
        "test_cancellation",
        "Waits until it is cancelled",
        move |args: Label, ctx: Context| {
            let recorded = cancelled.clone();
            ctx.on_cancel(move || recorded.cancelled.set(&args.label));
            async move {
                ctx.progress(0.0, Some(1.0), Some("waiting"));
                std::future::pending::<String>().await
            }
        },
    );
    let cancelled = state.clone();
    let _ = server.tool(
        "test_cancellation_status",
        "Waits until a call was cancelled",
        move |args: Label, _: Context| {
            let cancelled = cancelled.clone();
            async move {
                cancelled.cancelled.wait(&args.label).await;
                format!("{} was cancelled", args.label)
            }
        },
    );
    Ok(())
}

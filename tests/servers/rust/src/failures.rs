//! Tools that fail, each in a different way.

use std::io::{Read, Write};

use mcpline::protocol::session::RequiredCapability;
use mcpline::protocol::{ErrorCode, RpcError};
use mcpline::{Context, Error, HandlerError, Server, ToolError};
use serde_json::json;

use crate::content::Nothing;

/// The message of unexpected failures.
pub(crate) const SECRET: &str = "secret-detail-7c1f";

/// Adds these tools.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let _ = server
        .clone()
        .tool(
            "test_error_handling",
            "Fails for the model to read",
            |_: Nothing, _: Context| async {
                Err::<String, _>(ToolError::new(
                    "This tool intentionally returns an error for testing",
                ))
            },
        )
        .tool(
            "test_exception",
            "Fails unexpectedly",
            |_: Nothing, _: Context| async { fail(SECRET) },
        )
        .tool(
            "test_protocol_error",
            "Fails with a JSON-RPC error",
            |_: Nothing, _: Context| async {
                let error = RpcError::new(ErrorCode(-31_050), "deliberate protocol error")
                    .with_data(&json!({"reason": "fixture"}));
                Err::<String, _>(HandlerError::Rpc(error))
            },
        )
        .tool(
            "test_missing_capability",
            "Needs a client that samples",
            |_: Nothing, ctx: Context| async move {
                if ctx.peer().accepts(RequiredCapability::Sampling) {
                    return Ok("sampling is available");
                }
                Err(HandlerError::Rpc(RequiredCapability::Sampling.error()))
            },
        )
        .tool(
            "test_stray_output",
            "Prints and reads in passing",
            |_: Nothing, _: Context| async { stray_output() },
        );
    Ok(())
}

fn fail(detail: &str) -> String {
    panic!("{detail}")
}

#[allow(clippy::print_stdout, reason = "a stray print is what is tested")]
fn stray_output() -> Result<String, ToolError> {
    println!("stray output");
    std::io::stdout().flush()?;
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    Ok(format!("read {} bytes", input.len()))
}

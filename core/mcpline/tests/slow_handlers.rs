//! A handler that keeps the thread that reads the client's messages is logged. The warning has a limit for the whole
//! process, so this test is a separate program.

mod support;

use std::time::Duration;

use mcpline::Server;
use mcpline::client::Client;
use serde_json::json;
use support::log::Log;

#[tokio::test]
async fn a_handler_that_blocks_before_it_waits_is_logged() {
    let log = Log::new(tracing::Level::WARN);
    let _log = tracing::subscriber::set_default(log.clone());
    let server = Server::new("slow", "1").tool("sleeps", "Blocks", || async {
        // A little more than the threshold in `src/server/handler.rs`.
        std::thread::sleep(Duration::from_millis(60));
        "done"
    });
    let client = Client::connect(&server).await.expect("a client");
    let result = client
        .call_tool("sleeps", json!({}))
        .await
        .expect("a result");
    assert_eq!(result.text(), "done");
    assert!(log.has("sleeps"), "{:?}", log.lines());
    assert!(log.has("mcpline::server::Blocking"), "{:?}", log.lines());
}

//! Timeouts of a client, under virtual time: the timeout of every kind of request, and periodic pings.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpline::ErrorKind;
use mcpline::Revision;
use mcpline::client::{Address, Channel, Client, ClientError, ClientTransport, RequestOptions};
use mcpline::protocol::vocabulary::{CompleteParams, LoggingLevel};
use serde_json::json;
use tokio::time::Instant;

use crate::support::log::Log;
use crate::support::scripted::{self, Act, Scripted, result};

const SECOND: Duration = Duration::from_secs(1);

type Outcome = Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

macro_rules! requests {
    ($($name:literal: |$client:ident, $options:ident| $request:expr;)*) => {
        vec![$(($name, {
            let ask: fn(Client, RequestOptions) -> Outcome = |$client, $options| {
                Box::pin(async move { $request.await.map(drop) })
            };
            ask
        })),*]
    };
}

fn completion() -> CompleteParams {
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    serde_json::from_value(params).expect("parameters")
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_request_has_its_own_timeout() {
    let requests = requests! {
        "ping": |client, options| client.ping_with(&options);
        "list_tools": |client, options| client.list_tools_with(&options);
        "list_tools_page": |client, options| client.list_tools_page(None, &options);
        "list_resources": |client, options| client.list_resources_with(&options);
        "list_resources_page": |client, options| client.list_resources_page(Some("c"), &options);
        "list_resource_templates": |client, options| client.list_resource_templates_with(&options);
        "list_resource_templates_page": |client, options| client.list_resource_templates_page(None, &options);
        "list_prompts": |client, options| client.list_prompts_with(&options);
        "list_prompts_page": |client, options| client.list_prompts_page(None, &options);
        "call_tool": |client, options| client.call_tool_with("t", json!({}), &options);
        "read_resource": |client, options| client.read_resource_with("test://a", &options);
        "get_prompt": |client, options| client.get_prompt_with("p", &BTreeMap::new(), &options);
        "complete": |client, options| client.complete_with(&completion(), &options);
        "set_log_level": |client, options| client.set_log_level_with(LoggingLevel::Error, &options);
        "subscribe": |client, options| client.subscribe_with("test://a", &options);
        "unsubscribe": |client, options| client.unsubscribe_with("test://b", &options);
        "request": |client, options| client.request("x/y", None, &options);
    };
    for revision in Revision::ALL {
        let server = Scripted::new(*revision, |_, _| vec![]);
        let client = Client::connect(server.address()).await.expect("connects");
        for (name, request) in &requests {
            let begun = Instant::now();
            let options = RequestOptions::new().timeout(7 * SECOND);
            let outcome = request(client.clone(), options).await;
            // These send nothing on 2026-07-28: the level goes with each request, and there is no subscription to end.
            if revision.is_modern() && matches!(*name, "set_log_level" | "unsubscribe") {
                assert_eq!(outcome, Ok(()), "{name} of {revision}");
                continue;
            }
            let waited = 7 * SECOND;
            let in_all = false;
            let late = ClientError::RequestTimedOut { waited, in_all };
            assert_eq!(outcome, Err(late), "{name} of {revision}");
            assert_eq!(begun.elapsed().as_secs(), 7, "{name} of {revision}");
        }
        // A request that timed out does not end the connection.
        assert_eq!(server.dialled(), 1);
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancels_a_subscription_that_is_not_acknowledged_in_time() {
    let server = Scripted::new(Revision::V2026_07_28, |_, _| vec![]);
    let client = Client::connect(server.address()).await.expect("connects");
    let options = RequestOptions::new().timeout(SECOND);
    let late = client.subscribe_with("test://a", &options).await;
    late.expect_err("silence");
    tokio::time::sleep(60 * SECOND).await;
    // The request was cancelled and is not repeated.
    let listens = server.sent("subscriptions/listen");
    assert_eq!(listens.len(), 1);
    let cancelled = server.sent("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0].1["params"]["requestId"], listens[0].1["id"]);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn keeps_a_subscription_while_one_of_two_callers_waits() {
    for (first, second) in [(1, 30), (30, 1), (1, 1)] {
        let was_requested = AtomicBool::new(false);
        let server = Scripted::new(Revision::V2026_07_28, move |_, message| {
            if message["method"] != "subscriptions/listen" {
                return vec![];
            }
            let params = json!({
                "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]},
                "notifications": message["params"]["notifications"],
            });
            let acknowledged = Act::Say(json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}));
            match was_requested.swap(true, Ordering::Relaxed) {
                false => vec![Act::Work(3 * SECOND), acknowledged],
                true => vec![acknowledged],
            }
        });
        let client = Client::connect(server.address()).await.expect("connects");
        let subscribe = async |seconds: u32| {
            let options = RequestOptions::new().timeout(seconds * SECOND);
            client.subscribe_with("test://a", &options).await
        };
        let outcomes = tokio::join!(subscribe(first), subscribe(second));
        assert_eq!(
            (outcomes.0.is_ok(), outcomes.1.is_ok()),
            (first > 3, second > 3)
        );
        tokio::time::sleep(60 * SECOND).await;
        let listens = server.sent("subscriptions/listen");
        let (_, last) = listens.last().expect("a subscription");
        let uris = &last["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*uris, json!(["test://a"]));
        let cancelled = server.sent("notifications/cancelled");
        let is_over = cancelled
            .iter()
            .any(|(_, message)| message["params"]["requestId"] == last["id"]);
        assert_eq!(is_over, outcomes.0.is_err() && outcomes.1.is_err());
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancels_a_subscription_with_its_last_waiting_caller() {
    // Milliseconds after which one caller's future is dropped; the other caller times out after a second.
    for dropped in [500, 2_000] {
        let server = Scripted::new(Revision::V2026_07_28, |_, _| vec![]);
        let client = Client::connect(server.address()).await.expect("connects");
        let subscribe = async |timeout: Duration| {
            let options = RequestOptions::new().timeout(timeout);
            client.subscribe_with("test://a", &options).await
        };
        let dropped = tokio::time::timeout(Duration::from_millis(dropped), subscribe(30 * SECOND));
        let (dropped, late) = tokio::join!(dropped, subscribe(SECOND));
        assert!(dropped.is_err() && late.is_err());
        tokio::time::sleep(60 * SECOND).await;
        let listens = server.sent("subscriptions/listen");
        let cancelled = server.sent("notifications/cancelled");
        for (_, request) in &listens {
            let is_over = cancelled
                .iter()
                .any(|(_, message)| message["params"]["requestId"] == request["id"]);
            assert!(is_over, "{request} is still open");
        }
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn list_timeouts_apply_to_each_page_and_fresh_bypasses_the_cache() {
    let server = Scripted::new(Revision::V2026_07_28, |_, to| {
        let cacheable = |rest: serde_json::Value| {
            let mut page = json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private"});
            page.as_object_mut()
                .expect("an object")
                .extend(rest.as_object().expect("an object").clone());
            vec![result(to, page)]
        };
        match to["params"]["cursor"].as_str() {
            None => cacheable(json!({"nextCursor": "second"})),
            Some("second") => cacheable(json!({})),
            Some(_) => vec![],
        }
    });
    let client = Client::connect(server.address()).await.expect("connects");
    for _ in 0..2 {
        client.list_tools().await.expect("a list");
        assert_eq!(server.sent("tools/list").len(), 2, "it is kept");
    }
    let mut options = RequestOptions::new();
    options.fresh = true;
    client.list_tools_with(&options).await.expect("a list");
    assert_eq!(
        server.sent("tools/list").len(),
        4,
        "both pages are asked for"
    );
    client.close().await;

    let server = Scripted::new(
        Revision::V2025_11_25,
        |_, to| match &to["params"]["cursor"] {
            cursor if cursor.is_null() => {
                vec![result(to, json!({"tools": [], "nextCursor": "second"}))]
            }
            _ => vec![],
        },
    );
    let client = Client::connect(server.address()).await.expect("connects");
    let options = RequestOptions::new().timeout(3 * SECOND);
    let begun = Instant::now();
    let late = client.list_tools_with(&options).await.expect_err("silence");
    assert_eq!(late.kind(), ErrorKind::RequestTimedOut);
    assert_eq!(begun.elapsed().as_secs(), 3);
    client.close().await;
}

/// A server that answers everything except tool calls; `pings` decides by connection whether it answers pings.
fn answering(
    revision: Revision,
    pings: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> Scripted {
    Scripted::new(revision, move |connection, to| {
        match to["method"].as_str() {
            Some("ping") if !pings(connection) => vec![],
            Some("tools/call") => vec![],
            Some("tools/list") if connection == 0 && !pings(0) => vec![],
            Some("tools/list") => vec![result(to, json!({"tools": []}))],
            Some(_) if to["id"].is_null() => vec![],
            _ => vec![result(to, json!({}))],
        }
    })
}

async fn pinging(server: &Scripted) -> Client {
    Client::builder("host", "1")
        .configure(|settings| {
            settings.ping_interval = Some(10 * SECOND);
            settings.ping_timeout = 4 * SECOND;
        })
        .connect(server.address())
        .await
        .expect("connects")
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_ping_ends_the_connection_and_is_logged() {
    for revision in Revision::ALL.iter().filter(|one| !one.is_modern()) {
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        let server = answering(*revision, |connection| connection > 0);
        let client = pinging(&server).await;
        let begun = Instant::now();
        let lost = client.call_tool("t", json!({})).await.expect_err("silence");
        assert!(
            matches!(&lost, ClientError::ConnectionLost { reason, .. } if reason.contains("ping")),
            "{lost:?}"
        );
        assert_eq!(begun.elapsed().as_secs(), 14, "of silence, and of the ping");
        assert!(log.has("ping"), "{revision}");
        // The next request opens another connection, whose pings are answered.
        client.list_tools().await.expect("a list");
        tokio::time::sleep(120 * SECOND).await;
        assert_eq!((server.dialled(), server.closed()), (2, 1));
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn safe_requests_survive_a_connection_lost_to_pings() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = answering(Revision::V2025_11_25, |connection| connection > 0);
    let client = pinging(&server).await;
    client
        .list_tools()
        .await
        .expect("from the other connection");
    assert!(log.has("ping"));
    assert_eq!(server.dialled(), 2);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn pings_at_the_interval_only_while_the_server_is_silent() {
    let server = answering(Revision::V2025_11_25, |_| true);
    let client = pinging(&server).await;
    tokio::time::sleep(95 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 9);
    // Any message of the server counts like an answered ping.
    client.list_tools().await.expect("a list");
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 9);
    assert_eq!(server.dialled(), 1);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn sends_no_pings_on_2026_07_28_nor_by_default() {
    let modern = answering(Revision::V2026_07_28, |_| true);
    let client = pinging(&modern).await;
    let legacy = answering(Revision::V2025_11_25, |_| true);
    let other = Client::connect(legacy.address()).await.expect("connects");
    tokio::time::sleep(3_600 * SECOND).await;
    for server in [&modern, &legacy] {
        assert_eq!(server.sent("ping"), []);
        assert_eq!(server.sent("server/discover").len(), 1);
        assert_eq!(server.dialled(), 1);
    }
    client.close().await;
    other.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_counts_as_a_pong_but_leaving_does_not() {
    let server = Scripted::new(Revision::V2024_11_05, |_, to| match to["method"].as_str() {
        Some("ping") => vec![scripted::error(to, -32601)],
        Some("tools/call") => vec![Act::Leave],
        _ => vec![],
    });
    let client = pinging(&server).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((server.dialled(), server.sent("ping").len()), (1, 5));
    let lost = client.call_tool("t", json!({})).await.expect_err("it left");
    assert_eq!(lost.kind(), ErrorKind::ConnectionLost);
    client.close().await;
}

async fn pinging_often(server: &Scripted, timeout: Duration) -> Client {
    Client::builder("host", "1")
        .configure(|settings| {
            settings.ping_interval = Some(2 * SECOND);
            settings.ping_timeout = timeout;
        })
        .connect(server.address())
        .await
        .expect("connects")
}

#[tokio::test(start_paused = true)]
async fn pings_at_the_interval_whatever_the_ping_timeout() {
    let server = answering(Revision::V2025_11_25, |_| true);
    let client = pinging_often(&server, 30 * SECOND).await;
    tokio::time::sleep(21 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 10);
    client.close().await;
    // Errors count as answers, too.
    let server = Scripted::new(Revision::V2025_11_25, |_, to| match to["method"].as_str() {
        Some("ping") => vec![scripted::error(to, -32601)],
        _ => vec![],
    });
    let client = pinging_often(&server, 30 * SECOND).await;
    tokio::time::sleep(21 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 10);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_messages_need_not_answer_pings() {
    // A server that handles one request at a time and reports progress.
    let server = Scripted::new(Revision::V2025_11_25, |_, to| match to["method"].as_str() {
        Some("tools/call") => {
            let token = &to["params"]["_meta"]["progressToken"];
            let mut acts = Vec::new();
            for step in 1..=10 {
                let params = json!({"progressToken": token, "progress": step});
                let progress =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                acts.extend([Act::Work(3 * SECOND), Act::Say(progress)]);
            }
            acts.push(result(to, json!({"content": []})));
            acts
        }
        Some("ping") => vec![result(to, json!({}))],
        _ => vec![],
    });
    let client = pinging_often(&server, 4 * SECOND).await;
    let begun = Instant::now();
    let options = RequestOptions::new().on_progress(|_| {});
    let called = client.call_tool_with("t", json!({}), &options).await;
    called.expect("a result");
    assert_eq!(begun.elapsed().as_secs(), 30);
    tokio::time::sleep(60 * SECOND).await;
    assert!(server.sent("ping").len() > 10);
    assert_eq!((server.dialled(), server.closed()), (1, 0));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn rejects_a_ping_interval_or_timeout_of_zero() {
    let server = answering(Revision::V2025_11_25, |_| true);
    for (interval, timeout) in [(Duration::ZERO, SECOND), (SECOND, Duration::ZERO)] {
        let host = Client::builder("host", "1").configure(|settings| {
            settings.ping_interval = Some(interval);
            settings.ping_timeout = timeout;
        });
        let refused = host.connect(server.address()).await.expect_err("zero");
        assert_eq!(refused.kind(), ErrorKind::Usage, "{refused}");
        assert!(refused.to_string().contains("`ping_"), "{refused}");
    }
    assert_eq!(server.dialled(), 0);
}

/// A channel that never opens.
struct Hanging;

impl ClientTransport for Hanging {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn gives_up_on_a_channel_that_does_not_open() {
    let began = Instant::now();
    let failed = Client::builder("host", "1")
        .configure(|settings| settings.open_timeouts.answer = 20 * SECOND)
        .connect(Address::Custom(Arc::new(Hanging)))
        .await
        .expect_err("it is never open");
    assert_eq!(failed.kind(), ErrorKind::ServerUnreachable);
    assert!(failed.to_string().contains("within 20 s"), "{failed}");
    assert_eq!(began.elapsed(), 20 * SECOND);
}

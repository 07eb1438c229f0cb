//! How long a client waits, under virtual time: every kind of request with a timeout of its own, and periodic pings.

#[path = "support/log.rs"]
mod log;
#[path = "support/scripted.rs"]
mod scripted;

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

use log::Log;
use scripted::{Act, Scripted, result};

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
async fn every_request_has_a_timeout_of_its_own() {
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
        // One that was not answered ends no connection.
        assert_eq!(server.dialled(), 1);
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_was_not_acknowledged_in_time_is_given_up() {
    let server = Scripted::new(Revision::V2026_07_28, |_, _| vec![]);
    let client = Client::connect(server.address()).await.expect("connects");
    let options = RequestOptions::new().timeout(SECOND);
    let late = client.subscribe_with("test://a", &options).await;
    late.expect_err("silence");
    tokio::time::sleep(60 * SECOND).await;
    // The request was cancelled, and is not made again.
    let asked = server.sent("subscriptions/listen");
    assert_eq!(asked.len(), 1);
    let cancelled = server.sent("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0].1["params"]["requestId"], asked[0].1["id"]);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_lasts_while_a_caller_of_two_waits_for_it() {
    for (first, second) in [(1, 30), (30, 1), (1, 1)] {
        let is_asked = AtomicBool::new(false);
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
            match is_asked.swap(true, Ordering::Relaxed) {
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
        let asked = server.sent("subscriptions/listen");
        let (_, last) = asked.last().expect("a subscription");
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
async fn a_subscription_is_given_up_with_the_last_caller_that_waits_for_it() {
    // After how many milliseconds one caller's future is dropped, while the other's request times out after a second.
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
        let asked = server.sent("subscriptions/listen");
        let cancelled = server.sent("notifications/cancelled");
        for (_, request) in &asked {
            let is_over = cancelled
                .iter()
                .any(|(_, message)| message["params"]["requestId"] == request["id"]);
            assert!(is_over, "{request} is still open");
        }
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_list_holds_for_each_page_and_it_can_be_asked_for_anew() {
    let server = Scripted::new(Revision::V2026_07_28, |_, to| {
        let kept = |rest: serde_json::Value| {
            let mut page = json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private"});
            page.as_object_mut()
                .expect("an object")
                .extend(rest.as_object().expect("an object").clone());
            vec![result(to, page)]
        };
        match to["params"]["cursor"].as_str() {
            None => kept(json!({"nextCursor": "second"})),
            Some("second") => kept(json!({})),
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

/// Answers everything but calls of tools, and pings as `pings` says.
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
async fn a_ping_without_an_answer_ends_the_connection_and_is_logged() {
    for revision in Revision::ALL.iter().filter(|one| !one.is_modern()) {
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        let server = answering(*revision, |connection| connection > 0);
        let client = pinging(&server).await;
        let begun = Instant::now();
        let lost = client.call_tool("t", json!({})).await.expect_err("silence");
        assert!(
            matches!(&lost, ClientError::ConnectionLost { reason } if reason.contains("ping")),
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
async fn what_is_safe_to_repeat_survives_a_connection_that_pings_find_lost() {
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
async fn a_server_that_answers_pings_is_pinged_as_often_as_it_is_silent() {
    let server = answering(Revision::V2025_11_25, |_| true);
    let client = pinging(&server).await;
    tokio::time::sleep(95 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 9);
    // What the server says counts as well as a ping.
    client.list_tools().await.expect("a list");
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 9);
    assert_eq!(server.dialled(), 1);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pinged_on_2026_07_28_nor_by_default() {
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
async fn an_error_answers_a_ping_and_a_server_that_leaves_has_left() {
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
async fn a_silent_server_is_pinged_at_the_interval_however_long_an_answer_may_take() {
    let server = answering(Revision::V2025_11_25, |_| true);
    let client = pinging_often(&server, 30 * SECOND).await;
    tokio::time::sleep(21 * SECOND).await;
    assert_eq!(server.sent("ping").len(), 10);
    client.close().await;
    // As an error is an answer, too.
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
async fn a_server_that_says_something_needs_to_answer_no_ping() {
    // One that does one thing at a time, and tells how far it is.
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
async fn pings_without_a_pause_or_without_time_for_an_answer_are_refused() {
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

/// A channel that is never open.
struct Hanging;

impl ClientTransport for Hanging {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_does_not_open_is_given_up() {
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

//! What a client keeps for a new connection and what it does not: eras, cursors, refused revisions.

use mcpline::Revision;
use mcpline::client::{Client, ClientError, Reconnect, RequestOptions};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::client::HandshakeError;
use serde_json::{Value, json};

use crate::support::scripted::{Act, Scripted, result};

/// A server that ends the first connection after a first page, and returns whole lists on later connections.
fn leaving(revision: Revision) -> Scripted {
    Scripted::new(revision, |connection, to| {
        let page = |rest: Value| {
            let mut page =
                json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"});
            let members = page.as_object_mut().expect("an object");
            members.extend(rest.as_object().expect("an object").clone());
            result(to, page)
        };
        match (connection, to["method"].as_str()) {
            (0, Some("tools/list")) => vec![page(json!({"nextCursor": "second"})), Act::Leave],
            (_, Some("tools/list")) => vec![page(json!({}))],
            _ => vec![],
        }
    })
}

#[tokio::test]
#[should_panic(expected = "a task of a server that the test plays has panicked")]
async fn a_panic_of_a_scripted_server_fails_the_test() {
    let server = Scripted::new(Revision::V2026_07_28, |_, _| panic!("as it should"));
    let client = Client::connect(server.address()).await.expect("connects");
    let error = client.list_tools().await.expect_err("the server is gone");
    assert!(error.to_string().contains("connection"), "{error}");
    client.close().await;
}

#[runtimes::test]
async fn does_not_use_a_cursor_beyond_its_session() {
    for revision in Revision::ALL.iter().filter(|one| !one.is_modern()) {
        let server = leaving(*revision);
        let client = Client::connect(server.address()).await.expect("connects");
        let failed = client.list_tools().await.expect_err("the session is over");
        assert_eq!(failed, ClientError::SessionExpired);
        assert!(failed.is_retry_safe());
        // Nor if the host requests the page itself.
        let options = RequestOptions::new();
        let failed = client.list_tools_page(Some("second"), &options).await;
        assert_eq!(failed.err(), Some(ClientError::SessionExpired));
        client.list_tools().await.expect("begun anew");
        let sent = server.sent("tools/list");
        let after = sent.iter().filter(|(connection, _)| *connection > 0);
        for (_, message) in after {
            assert_eq!(message["params"]["cursor"], Value::Null, "{revision}");
        }
        client.close().await;
    }
}

#[runtimes::test]
async fn a_2026_07_28_cursor_is_valid_on_a_new_connection() {
    let server = leaving(Revision::V2026_07_28);
    let client = Client::connect(server.address()).await.expect("connects");
    client.list_tools().await.expect("a list");
    let sent = server.sent("tools/list");
    let (connection, last) = sent.last().expect("a request");
    assert_eq!(
        (*connection, &last["params"]["cursor"]),
        (1, &json!("second"))
    );
    client.close().await;
}

#[runtimes::test]
async fn reconnecting_does_not_probe_again() {
    for (revision, probes) in [(Revision::V2025_06_18, 1), (Revision::V2026_07_28, 2)] {
        let server = leaving(revision);
        let client = Client::connect(server.address()).await.expect("connects");
        let options = RequestOptions::new();
        for _ in 0..2 {
            client
                .list_tools_page(None, &options)
                .await
                .expect("a page");
        }
        assert_eq!(server.dialled(), 2);
        let probed = server.sent("server/discover");
        let openings = probed.iter().filter(|(_, message)| message["id"] == 1);
        assert_eq!(openings.count(), probes, "{revision}");
        client.close().await;
    }
}

fn unsupported(to: &Value, supported: &[&str]) -> Vec<Act> {
    let error =
        json!({"code": -32022, "message": "no such version", "data": {"supported": supported}});
    vec![Act::Say(
        json!({"jsonrpc": "2.0", "id": to["id"], "error": error}),
    )]
}

#[runtimes::test]
async fn negotiates_again_when_the_server_refuses_the_revision() {
    // Like a server that restarted with fewer versions at the same address, and then with all of them again.
    let server = Scripted::new(Revision::V2026_07_28, |connection, to| {
        match (connection, to["method"].as_str()) {
            (0, Some("tools/list")) => unsupported(to, &["2025-11-25"]),
            (_, Some("tools/list")) => vec![result(
                to,
                json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
            )],
            _ => vec![],
        }
    });
    let client = Client::connect(server.address()).await.expect("connects");
    client.list_tools().await.expect("over the new connection");
    assert_eq!(server.dialled(), 2);
    client.close().await;
}

#[runtimes::test]
async fn reports_a_revision_that_is_always_refused() {
    let server = Scripted::new(Revision::V2026_07_28, |_, to| {
        unsupported(to, &["2031-01-01"])
    });
    let client = Client::connect(server.address()).await.expect("connects");
    let failed = client.list_tools().await.expect_err("refused");
    assert_eq!(
        failed.rpc().map(|error| error.code),
        Some(ErrorCode::UNSUPPORTED_VERSION)
    );
    assert_eq!(
        server.dialled(),
        3,
        "it is connected to twice more, and no further"
    );
    client.close().await;
    // Without reconnecting, it is reported at once.
    let client = Client::builder("host", "1")
        .configure(|settings| settings.reconnect = Reconnect::never())
        .connect(server.address())
        .await
        .expect("connects");
    let failed = client.list_tools().await.expect_err("refused");
    assert_eq!(
        failed.rpc().map(|error| error.code),
        Some(ErrorCode::UNSUPPORTED_VERSION)
    );
    assert_eq!(server.dialled(), 4);
    client.close().await;
}

#[runtimes::test]
async fn a_new_connection_fails_without_a_common_revision() {
    let refusing = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = refusing.clone();
    let server = Scripted::new(Revision::V2026_07_28, move |_, to| {
        seen.store(true, std::sync::atomic::Ordering::SeqCst);
        unsupported(to, &["2031-01-01"])
    });
    server.refuse_openings_when(refusing);
    let client = Client::connect(server.address()).await.expect("connects");
    let failed = client.list_tools().await.expect_err("refused");
    let ClientError::HandshakeFailed(HandshakeError::NoCommonRevision {
        server: supported, ..
    }) = failed.cause()
    else {
        panic!("{failed:?}");
    };
    assert_eq!(supported, &["2031-01-01"]);
    client.close().await;
}

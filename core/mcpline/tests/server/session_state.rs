//! Values that a program keeps for the session of a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Client, Nothing};
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};

/// Number of values that exist.
#[derive(Default)]
struct Alive(AtomicUsize);

/// A value of a session that counts calls, and is counted while it exists.
#[derive(Default)]
struct Calls {
    number: AtomicUsize,
    alive: std::sync::OnceLock<Arc<Alive>>,
}

impl Drop for Calls {
    fn drop(&mut self) {
        if let Some(alive) = self.alive.get() {
            alive.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn server(alive: &Arc<Alive>) -> Server {
    let inner = Server::new("inner", "1");
    let alive = alive.clone();
    let inner = inner.tool("count", "Count", move |_: Nothing, ctx: Context| {
        let alive = alive.clone();
        async move {
            let calls = ctx.session_state::<Calls>()?;
            calls.alive.get_or_init(|| {
                alive.0.fetch_add(1, Ordering::Relaxed);
                alive
            });
            Ok::<_, HandlerError>(calls.number.fetch_add(1, Ordering::Relaxed) + 1)
        }
    });
    let server = Server::new("main", "1");
    server.mount(&inner, Default::default()).expect("mounts");
    server
}

async fn count(client: &mut Client) -> Value {
    let params = json!({"name": "count", "arguments": {}});
    let id = client.begin("tools/call", params);
    client.response(&id).await.expect("a result")
}

#[runtimes::test]
async fn a_session_has_values_until_it_ends() {
    let alive = Arc::<Alive>::default();
    let server = server(&alive);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut one = Client::legacy(&server, revision).await;
        let mut other = Client::legacy(&server, revision).await;
        for expected in ["1", "2"] {
            assert_eq!(count(&mut one).await["content"][0]["text"], expected);
        }
        assert_eq!(count(&mut other).await["content"][0]["text"], "1");
        assert_eq!(alive.0.load(Ordering::Relaxed), 2);
        drop(one);
        assert_eq!(alive.0.load(Ordering::Relaxed), 1);
        drop(other);
        assert_eq!(alive.0.load(Ordering::Relaxed), 0);
    }
}

#[runtimes::test]
async fn a_revision_without_sessions_has_none() {
    let alive = Arc::<Alive>::default();
    let mut client = Client::modern(&server(&alive));
    let refused = client.call_modern("count", json!({})).await;
    assert_eq!(refused.expect("a result")["isError"], true);
    assert_eq!(alive.0.load(Ordering::Relaxed), 0);
}

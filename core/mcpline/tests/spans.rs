//! Handlers run in the span of their request, below the span that was current, before and after they wait.

mod support;

use std::fmt;
use std::sync::{Arc, Mutex};

use mcpline::{Context, Server};
use serde_json::{Value, json};
use support::Client;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Span, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{self, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// Keeps new spans: the name of the parent, the name and the fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let span = context.span(id).expect("registered");
        let parent = span.parent().map_or("none", |parent| parent.name());
        let mut text = format!("{parent} > {}", span.name());
        attributes.record(&mut Fields(&mut text));
        self.0.lock().expect("not poisoned").push(text);
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

fn current() -> &'static str {
    Span::current()
        .metadata()
        .map_or("none", |span| span.name())
}

/// Calls a tool that reports its span before and after it waits.
async fn spans_of_a_handler() -> String {
    let server = Server::new("spans", "1").tool("waits", "", |_: Value, _: Context| async {
        let before = current();
        tokio::task::yield_now().await;
        format!("{before}, {}", current())
    });
    let mut client = Client::modern(&server);
    let id = {
        let _outer = tracing::info_span!("outer").entered();
        client.begin_modern("tools/call", json!({"name": "waits"}))
    };
    let result = client.response(&id).await.expect("a result");
    assert_eq!(current(), "none", "left again");
    result["content"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned()
}

// One test: `tracing` remembers for all threads whether a line of code is wanted, so that tests without a subscriber would
// disturb the others.
#[tokio::test]
async fn a_handler_runs_in_the_span_of_its_request_or_in_the_current_one() {
    assert_eq!(spans_of_a_handler().await, "none, none");
    {
        let spans = Spans::default();
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        let _recording = tracing::subscriber::set_default(subscriber);
        assert_eq!(spans_of_a_handler().await, "mcp_request, mcp_request");
        let all = spans.0.lock().expect("not poisoned").clone();
        let calls: Vec<_> = all
            .iter()
            .filter(|span| span.contains("mcp_request"))
            .collect();
        let [call] = calls[..] else {
            panic!("{all:?}");
        };
        for part in [
            "outer > mcp_request ",
            " mcp.method.name=\"tools/call\"",
            " gen_ai.tool.name=\"waits\"",
            " jsonrpc.request.id=",
        ] {
            assert!(call.contains(part), "{call}");
        }
    }
    let filter = filter_fn(|span| span.name() != "mcp_request");
    let subscriber = tracing_subscriber::registry()
        .with(filter)
        .with(Spans::default());
    let _recording = tracing::subscriber::set_default(subscriber);
    assert_eq!(spans_of_a_handler().await, "outer, outer");
}

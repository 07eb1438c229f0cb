//! A client asks the sampler before it makes the span of a request.

use std::sync::{Arc, Mutex};

use mcpline::Server;
use mcpline::client::Client;
use mcpline::client::middleware::{ClientNext, ClientRequest};
use mcpline::open_telemetry::RequestSampler;
use opentelemetry::Context;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use serde_json::json;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

// One test: with several subscribers in a process, `tracing` cannot tell that none of them wants a span.
#[tokio::test]
async fn a_request_that_is_not_sampled_has_no_span() {
    let sampler = RequestSampler::new(Sampler::AlwaysOff);
    let provider = sampler.configure(SdkTracerProvider::builder()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(sampler));
    let _tracing = tracing::subscriber::set_default(subscriber);

    let current = Arc::new(Mutex::new(Vec::new()));
    let kept = current.clone();
    let keeping = move |request: ClientRequest, next: ClientNext| {
        let span = tracing::Span::current();
        let name = span.metadata().map(|span| span.name());
        kept.lock().expect("not poisoned").push(name);
        async move { next.run(request).await }
    };
    let server = Server::new("sampled", "1").tool("works", "", async || "done");
    let traced = Arc::new(Mutex::new(false));
    let has_context = traced.clone();
    let client = Client::builder("test", "1")
        .middleware(keeping)
        .on_tool_call(move |_| {
            let has_context = has_context.clone();
            async move {
                let context = Context::current();
                let is_valid = context.span().span_context().is_valid();
                *has_context.lock().expect("not poisoned") = is_valid;
                Ok(())
            }
        })
        .connect(&server)
        .await
        .expect("connects");
    let result = client.call_tool("works", json!({})).await;
    assert_eq!(result.expect("a result").text(), "done");
    assert_eq!(*current.lock().expect("not poisoned"), [None]);
    // What the hook sends belongs to the trace that is not sampled.
    assert!(*traced.lock().expect("not poisoned"));
}

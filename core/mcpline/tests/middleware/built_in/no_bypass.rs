//! No way to a handler avoids the middleware that the library provides: mounts, new names, batches, calls as tasks, custom methods,
//! resources by their templates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpline::middleware::{
    AuditLog, ConcurrencyLimit, Middleware, RateLimit, ResponseCache, ResponseSizeLimit, ToolPolicy,
};
use mcpline::protocol::vocabulary::{Prompt, Resource, ResourceTemplate, Tool};
use mcpline::server::{
    Caller, MiddlewareScope, MountOptions, ResourceOptions, ToolOptions, ToolTransform,
    resource_handler,
};
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{Client, Nothing};

/// What each handler does: it counts, waits for a permit, and returns a text.
#[derive(Clone)]
struct Work {
    runs: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
    text: Arc<str>,
}

impl Work {
    fn new() -> Self {
        Self {
            runs: Arc::default(),
            gate: Arc::new(Semaphore::new(1_000)),
            text: "a secret".into(),
        }
    }

    async fn run(self) -> String {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let _permit = self.gate.acquire().await.expect("it is open");
        self.text.to_string()
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

/// A server with a feature of each kind. Requests of tasks are custom methods, except on 2025-11-25.
fn features(work: &Work, options: ToolOptions) -> Server {
    let of = |work: &Work| {
        let work = work.clone();
        move || work.clone().run()
    };
    let custom = |work: &Work| {
        let run = of(work);
        move |_: Nothing, _: Context| {
            let running = run();
            async move { Ok::<_, HandlerError>(json!({"text": running.await})) }
        }
    };
    let run = of(work);
    let server = Server::new("features", "1")
        .prompt(Prompt::new("prompt"), move |_: Value, _: Context| run())
        .on_request("acme/find", custom(work))
        .on_request("tasks/get", custom(work));
    let run = of(work);
    let tool = Tool::new("tool", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options, move |_: Value, _: Context| {
            let running = run();
            async move { Ok::<_, HandlerError>(running.await) }
        })
        .expect("a tool");
    let run = of(work);
    let handler = resource_handler(None, move |_: Context| run());
    let resource = Resource::new("note://all", "all");
    server
        .add_resource_with(resource, ResourceOptions::default(), handler.clone())
        .expect("a resource");
    let template = ResourceTemplate::new("note://by/{id}", "by");
    server
        .add_resource_template(template, handler)
        .expect("a template");
    server
}

/// A path to a handler.
#[derive(Debug, Clone, Copy)]
struct CallPath {
    revision: &'static str,
    method: &'static str,
    /// The name or URI at the server that has the feature.
    name: &'static str,
    in_batch: bool,
    is_mounted: bool,
}

const FEATURES: [(&str, &str); 6] = [
    ("tools/call", "tool"),
    ("prompts/get", "prompt"),
    ("resources/read", "note://all"),
    ("resources/read", "note://by/1"),
    ("acme/find", ""),
    ("tasks/get", ""),
];

fn call_paths() -> Vec<CallPath> {
    let mut call_paths = Vec::new();
    for (method, name) in FEATURES {
        for (revision, in_batch) in [
            ("2024-11-05", false),
            ("2025-03-26", true),
            ("2025-11-25", false),
            ("2026-07-28", false),
        ] {
            for is_mounted in [false, true] {
                // The revision has its own.
                if (method, revision) != ("tasks/get", "2025-11-25") {
                    call_paths.push(CallPath {
                        revision,
                        method,
                        name,
                        in_batch,
                        is_mounted,
                    });
                }
            }
        }
    }
    call_paths
}

impl CallPath {
    /// Returns the server that is served, and the one of the middleware: a mount changes the names of all features.
    fn server(&self, work: &Work, options: ToolOptions) -> Server {
        let inner = features(work, options);
        if !self.is_mounted {
            return inner;
        }
        let outer = Server::new("outer", "1");
        let renamed = ToolTransform::default().with_name("other");
        let mount = MountOptions::default()
            .with_prefix("in")
            .with_tool("tool", renamed);
        outer.mount(&inner, mount).expect("mounts");
        outer
    }

    fn params(&self) -> Value {
        let name = match (self.is_mounted, self.name) {
            (false, name) => name.to_owned(),
            (true, "tool") => "in_other".to_owned(),
            (true, name) if name.contains("://") => name.replace("://", "://in/"),
            (true, name) => format!("in_{name}"),
        };
        let mut params = match self.method {
            "tools/call" => json!({"name": name, "arguments": {}}),
            "prompts/get" => json!({"name": name}),
            "resources/read" => json!({"uri": name}),
            _ => json!({}),
        };
        // The client asks for a task; a server without tasks answers as usual.
        if (self.method, self.revision) == ("tools/call", "2025-11-25") {
            params["task"] = json!({"ttl": 60_000});
        }
        params
    }

    async fn client(&self, server: &Server) -> Client {
        match self.revision {
            "2026-07-28" => Client::modern(server),
            revision => Client::legacy(server, revision).await,
        }
    }

    /// Sends two requests.
    fn begin(&self, client: &mut Client) -> [Value; 2] {
        if self.in_batch {
            let ids = [json!("first"), json!("second")];
            let request = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "method": self.method, "params": self.params()});
            client.send(json!([request(&ids[0]), request(&ids[1])]));
            return ids;
        }
        let mut begin = || match self.revision {
            "2026-07-28" => client.begin_modern(self.method, self.params()),
            _ => client.begin(self.method, self.params()),
        };
        [begin(), begin()]
    }

    /// Sends two requests, and returns their responses.
    async fn responses(&self, client: &mut Client) -> Vec<Value> {
        let ids = self.begin(client);
        received(client, &ids).await
    }
}

/// Waits for the responses to requests, which may come in a batch.
async fn received(client: &Client, ids: &[Value]) -> Vec<Value> {
    let mut responses = Vec::new();
    while responses.len() < ids.len() {
        let of_request = |message: &Value| ids.contains(&message["id"]);
        match client.next().await {
            Value::Array(batch) => responses.extend(batch.into_iter().filter(of_request)),
            message if of_request(&message) => responses.push(message),
            _ => {}
        }
    }
    responses
}

fn are_refused(responses: &[Value]) -> usize {
    let refused = responses
        .iter()
        .filter(|response| response["error"]["code"] == -31_000);
    refused.count()
}

/// Adds a middleware to the server that is served, for requests of one method: the handshake has none, and lists are not counted.
fn with(path: &CallPath, server: Server, middleware: impl Middleware) -> Server {
    let scope = MiddlewareScope::all().with_methods([path.method]);
    server
        .add_middleware(scope, Arc::new(middleware))
        .expect("a middleware");
    server
}

#[runtimes::test]
async fn a_rate_limit_counts_requests_on_every_path() {
    for path in call_paths() {
        let work = Work::new();
        let limit = RateLimit::new(1, Duration::from_secs(3_600));
        let server = with(&path, path.server(&work, ToolOptions::default()), limit);
        let mut client = path.client(&server).await;
        let responses = path.responses(&mut client).await;
        assert_eq!(are_refused(&responses), 1, "{path:?}: {responses:?}");
        assert_eq!(work.runs(), 1, "{path:?}");
    }
}

#[runtimes::test]
async fn a_concurrency_limit_holds_on_every_path() {
    for path in call_paths() {
        let mut work = Work::new();
        work.gate = Arc::new(Semaphore::new(0));
        let limit = ConcurrencyLimit::new(1);
        let server = with(&path, path.server(&work, ToolOptions::default()), limit);
        let mut client = path.client(&server).await;
        let ids = path.begin(&mut client);
        if !path.in_batch {
            let refused = client.next().await;
            assert_eq!(are_refused(&[refused]), 1, "{path:?}");
            work.gate.add_permits(1);
            assert!(client.next().await.get("result").is_some(), "{path:?}");
        } else {
            // A batch is answered as a whole. Both requests have arrived before the ping.
            let ping = client.begin("ping", json!({}));
            client.response(&ping).await.expect("an answer");
            work.gate.add_permits(1);
            let responses = received(&client, &ids).await;
            assert_eq!(are_refused(&responses), 1, "{path:?}");
        }
        assert_eq!(work.runs(), 1, "{path:?}");
    }
}

#[cfg(feature = "redaction")]
#[runtimes::test]
async fn a_redaction_replaces_values_on_every_path() {
    use mcpline::middleware::Redaction;

    for path in call_paths() {
        let work = Work::new();
        let redaction = Redaction::new()
            .with_patterns(["secret"])
            .expect("a pattern");
        let server = path.server(&work, ToolOptions::default());
        let server = server.middleware(redaction);
        let mut client = path.client(&server).await;
        let responses = path.responses(&mut client).await;
        for response in responses {
            let text = response["result"].to_string();
            assert!(text.contains("a [redacted]"), "{path:?}: {response}");
            assert!(!text.contains("secret"), "{path:?}: {response}");
        }
    }
}

#[runtimes::test]
async fn an_audit_log_has_a_record_of_every_request() {
    let folder = super::audit_log::Folder::new();
    for path in call_paths() {
        let file = folder.log();
        let _ = std::fs::remove_file(&file);
        let log = AuditLog::open(&file).expect("a file");
        let server = with(
            &path,
            path.server(&Work::new(), ToolOptions::default()),
            log,
        );
        let mut client = path.client(&server).await;
        path.responses(&mut client).await;
        let records = super::audit_log::records(&file);
        assert_eq!(records.len(), 2, "{path:?}: {records:?}");
        for record in records {
            assert_eq!(record["method"], path.method, "{path:?}");
            let params = path.params();
            let name = ["name", "uri"].map(|name| params[name].clone());
            let name = name.into_iter().find(|name| !name.is_null());
            assert_eq!(record.get("name").cloned(), name, "{path:?}: {record}");
        }
    }
}

fn calls() -> impl Iterator<Item = CallPath> {
    let call_paths = call_paths().into_iter();
    call_paths.filter(|path| path.method == "tools/call")
}

#[runtimes::test]
async fn a_size_limit_cuts_results_of_tools_on_every_path() {
    for path in calls() {
        let mut work = Work::new();
        work.text = "a".repeat(5_000).into();
        let limit = ResponseSizeLimit::new(1_000);
        let server = with(&path, path.server(&work, ToolOptions::default()), limit);
        let mut client = path.client(&server).await;
        for response in path.responses(&mut client).await {
            let result = response["result"].to_string();
            assert!(result.len() < 1_100, "{path:?}: {}", result.len());
            assert!(result.contains("bytes are left out"), "{path:?}: {result}");
        }
    }
}

#[runtimes::test]
async fn a_policy_denies_tools_on_every_path() {
    for path in calls() {
        let work = Work::new();
        let name = path.params()["name"].clone();
        let policy = ToolPolicy::new().with_denied([name.as_str().expect("a name")]);
        let server = path
            .server(&work, ToolOptions::default())
            .middleware(policy);
        let mut client = path.client(&server).await;
        for response in path.responses(&mut client).await {
            assert_eq!(response["error"]["code"], -32_602, "{path:?}");
        }
        assert_eq!(work.runs(), 0, "{path:?}");
    }
}

#[runtimes::test]
async fn a_cache_gives_no_caller_the_results_of_another_one_on_any_way() {
    for path in call_paths() {
        let work = Work::new();
        let tool = path.params()["name"].as_str().unwrap_or("none").to_owned();
        let cache = ResponseCache::new(Duration::from_secs(60)).with_tools([tool]);
        let server = with(&path, path.server(&work, ToolOptions::default()), cache);
        for (subject, scopes) in [
            ("ann", &["a"][..]),
            ("bob", &["a"]),
            // The same caller with fewer scopes.
            ("ann", &[]),
        ] {
            let caller = Caller::new().with_subject(subject).with_scopes(scopes);
            let client = Client::over(server.connect_as(caller));
            let mut client = match path.revision {
                "2026-07-28" => client,
                revision => client.shake_hands(revision).await,
            };
            let before = work.runs();
            path.responses(&mut client).await;
            assert!(work.runs() > before, "{path:?}: {subject}");
        }
    }
}

#[runtimes::test]
async fn tools_that_need_scopes_are_not_served_from_a_cache_without_them() {
    for path in calls() {
        let work = Work::new();
        let tool = path.params()["name"].as_str().expect("a name").to_owned();
        let cache = ResponseCache::new(Duration::from_secs(60)).with_tools([tool]);
        let options = ToolOptions::default().with_scopes(["secret"]);
        let server = with(&path, path.server(&work, options), cache);
        for (scopes, is_served) in [(&["secret"][..], true), (&[], false)] {
            let caller = Caller::new().with_subject("ann").with_scopes(scopes);
            let client = Client::over(server.connect_as(caller));
            let mut client = match path.revision {
                "2026-07-28" => client,
                revision => client.shake_hands(revision).await,
            };
            for response in path.responses(&mut client).await {
                assert_eq!(response.get("result").is_some(), is_served, "{path:?}");
            }
        }
    }
}

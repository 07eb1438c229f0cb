//! Scopes of tools, resources, templates, prompts, custom requests and notifications: lists omit what a caller may not
//! use, and requests for it get a challenge with the required scopes. On every revision, over real sockets.

use crate::support::authorized::{Answer, Rig};
use crate::support::{self, Nothing};
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, Prompt, PromptArgument, Resource, ResourceTemplate, Tool,
};
use mcpline::server::{
    Completer, Handler, MethodOptions, PromptOptions, PromptReply, ResourceOptions, ResourceReply,
    ToolOptions,
};
use mcpline::{Call, Context, Reply, Server, Settings};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const HANDSHAKES: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A handler that replies at once.
fn says(reply: fn() -> Reply) -> Arc<dyn Handler> {
    struct Says(fn() -> Reply);
    impl Handler for Says {
        fn call(&self, call: Call) {
            call.reply(Ok((self.0)()));
        }
    }
    Arc::new(Says(reply))
}

/// Six tools of which every second requires `files:write`; a resource, a template and a prompt without scopes and one
/// of each with scopes; a custom request for writers.
fn server() -> Server {
    let mut settings = Settings::default();
    settings.page_size = 2;
    settings.list_cache = CacheHints::new(60_000, CacheScope::Public);
    let builder = Server::builder("scoped", "1").settings(settings);
    let server = builder.build().expect("a server");
    for number in 1..=6 {
        let options = match number % 2 {
            0 => ToolOptions::default().with_scopes(["files:read", "files:write"]),
            _ => ToolOptions::default(),
        };
        let tool = Tool::new(format!("tool{number}"), json!({"type": "object"}));
        server
            .add_tool_fn(tool, options, |_: Nothing, _: Context| async { "done" })
            .expect("a tool");
    }
    let contents = || {
        Reply::Resource(ResourceReply {
            contents: mcpline::protocol::Raw::EMPTY_ARRAY,
            cache: Some(CacheHints::new(5_000, CacheScope::Public)),
            meta: None,
        })
    };
    let reader = || ResourceOptions::default().with_scopes(["files:read"]);
    let open = Resource::new("file:///open", "open");
    server.add_resource(open, says(contents)).expect("added");
    let secret = Resource::new("file:///secret", "secret");
    server
        .add_resource_with(secret, reader(), says(contents))
        .expect("added");
    let notes = ResourceTemplate::new("note:///{name}", "note");
    server
        .add_resource_template(notes, says(contents))
        .expect("added");
    let letters = ResourceTemplate::new("letter:///{name}", "letter");
    server
        .add_resource_template_with(letters, reader(), says(contents))
        .expect("added");
    let prompt = || {
        Reply::Prompt(PromptReply {
            messages: mcpline::protocol::Raw::EMPTY_ARRAY,
            description: None,
            meta: None,
        })
    };
    server
        .add_prompt(Prompt::new("greet"), says(prompt))
        .expect("added");
    server
        .add_prompt_with(
            Prompt::new("audit").with_arguments(vec![PromptArgument::new("year")]),
            PromptOptions::default().with_scopes(["audit"]),
            says(prompt),
        )
        .expect("added");
    let options = MethodOptions::default()
        .with_params_schema(json!({"required": ["path"]}))
        .with_scopes(["files:write"]);
    let done = says(|| Reply::Result(mcpline::protocol::Raw::EMPTY_OBJECT));
    server
        .add_request_handler("acme/erase", options, done)
        .expect("added");
    let years = Completer::Candidates(vec!["2024".into(), "2025".into()]);
    server
        .add_completer("audit", "year", years)
        .expect("it has the argument");
    server
}

async fn rig() -> Rig {
    Rig::start(server(), |builder, issuer| {
        builder
            .issuer(issuer.issuer())
            .implies("files:admin", ["files:write"])
            .implies("files:write", ["files:read"])
    })
    .await
}

/// A client of any revision.
struct Caller<'r> {
    rig: &'r Rig,
    token: String,
    session: Option<String>,
}

impl<'r> Caller<'r> {
    async fn new(rig: &'r Rig, revision: &str, scope: &str) -> Self {
        let token = rig.token(scope);
        let session = match revision {
            "2026-07-28" => None,
            _ => Some(rig.session(&token, revision).await),
        };
        Self {
            rig,
            token,
            session,
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Answer {
        match &self.session {
            Some(session) => {
                self.rig
                    .in_session(&self.token, session, method, params)
                    .await
            }
            None => self.rig.modern(&self.token, method, params).await,
        }
    }

    /// Sends a notification.
    async fn notify(&self, method: &str, mut params: Value) -> Answer {
        let mut headers = Vec::new();
        match &self.session {
            Some(session) => headers.push(("Mcp-Session-Id", session.as_str())),
            None => {
                headers.push(("MCP-Protocol-Version", "2026-07-28"));
                headers.push(("Mcp-Method", method));
                params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            }
        }
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.rig.post(&self.token, &headers, &body).await
    }

    /// Requests all pages of a list; returns the names and the responses.
    async fn list(&self, method: &str, list: &str) -> (Vec<String>, Vec<Answer>) {
        let (mut names, mut pages) = (Vec::new(), Vec::new());
        let mut params = json!({});
        loop {
            let page = self.ask(method, params).await;
            names.extend(page.names(list).into_iter().map(str::to_owned));
            let next = page.body["result"]["nextCursor"].clone();
            pages.push(page);
            if next.is_null() {
                return (names, pages);
            }
            params = json!({"cursor": next});
        }
    }
}

fn revisions() -> impl Iterator<Item = &'static str> {
    HANDSHAKES.into_iter().chain(["2026-07-28"])
}

/// Asserts that a request was refused with these scopes in one challenge.
fn assert_step_up(answer: &Answer, scopes: &str) {
    assert_eq!(answer.status, 403, "{answer:?}");
    let challenge = answer.bearer();
    assert_eq!(challenge.get("error"), Some("insufficient_scope"));
    assert_eq!(challenge.get("scope"), Some(scopes));
    assert!(challenge.get("resource_metadata").is_some());
    assert_eq!(answer.body["error"]["code"], -31001);
    assert_eq!(answer.body["id"], 1);
}

#[runtimes::test]
async fn lists_omit_what_the_caller_may_not_use_on_every_page() {
    let rig = rig().await;
    for revision in revisions() {
        let caller = Caller::new(&rig, revision, "mcp").await;
        let (tools, pages) = caller.list("tools/list", "tools").await;
        assert_eq!(tools, ["tool1", "tool3", "tool5"], "{revision}");
        // Pages are full, so they do not reveal how many items are hidden.
        let sizes: Vec<_> = pages.iter().map(|page| page.names("tools").len()).collect();
        assert_eq!(sizes, [2, 1]);
        let (resources, _) = caller.list("resources/list", "resources").await;
        assert_eq!(resources, ["open"]);
        let (templates, _) = caller
            .list("resources/templates/list", "resourceTemplates")
            .await;
        assert_eq!(templates, ["note"]);
        let (prompts, _) = caller.list("prompts/list", "prompts").await;
        assert_eq!(prompts, ["greet"]);
    }
}

#[runtimes::test]
async fn lists_contain_everything_that_the_caller_may_use() {
    let rig = rig().await;
    for revision in revisions() {
        let caller = Caller::new(&rig, revision, "mcp files:read files:write audit").await;
        let (tools, _) = caller.list("tools/list", "tools").await;
        assert_eq!(tools.len(), 6, "{revision}");
        let (resources, _) = caller.list("resources/list", "resources").await;
        assert_eq!(resources, ["open", "secret"]);
        let (prompts, _) = caller.list("prompts/list", "prompts").await;
        assert_eq!(prompts, ["greet", "audit"]);
    }
}

#[runtimes::test]
async fn lists_with_restricted_items_are_private_on_every_page() {
    let rig = rig().await;
    for scope in ["mcp", "mcp files:admin"] {
        let caller = Caller::new(&rig, "2026-07-28", scope).await;
        let (_, pages) = caller.list("tools/list", "tools").await;
        for page in &pages {
            assert_eq!(page.body["result"]["cacheScope"], "private");
            assert_eq!(page.body["result"]["ttlMs"], 60_000);
        }
    }
    // A list without restricted items may be cached publicly.
    let mut settings = Settings::default();
    settings.list_cache = CacheHints::new(60_000, CacheScope::Public);
    let builder = Server::builder("open", "1").settings(settings);
    let open = builder.build().expect("a server");
    let open = open.tool("plain", "Answers", |_: Nothing, _: Context| async { "x" });
    let rig = Rig::start(open, |builder, issuer| builder.issuer(issuer.issuer())).await;
    let caller = Caller::new(&rig, "2026-07-28", "mcp").await;
    let (names, pages) = caller.list("tools/list", "tools").await;
    assert_eq!(names, ["plain"]);
    assert_eq!(pages[0].body["result"]["cacheScope"], "public");
}

#[runtimes::test]
async fn restricted_contents_are_private_whatever_the_handler_returns() {
    let rig = rig().await;
    let caller = Caller::new(&rig, "2026-07-28", "mcp files:read").await;
    for (uri, scope) in [
        ("file:///open", "public"),
        ("file:///secret", "private"),
        ("note:///x", "public"),
        ("letter:///x", "private"),
    ] {
        let read = caller.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read.body["result"]["cacheScope"], scope, "{uri}");
        assert_eq!(read.body["result"]["ttlMs"], 5_000);
    }
}

#[runtimes::test]
async fn challenges_name_all_scopes_that_a_hidden_item_requires() {
    let rig = rig().await;
    for revision in revisions() {
        let caller = Caller::new(&rig, revision, "mcp").await;
        let call = json!({"name": "tool2", "arguments": {}});
        assert_step_up(
            &caller.ask("tools/call", call.clone()).await,
            "mcp files:read files:write",
        );
        // Other errors in the request are not reported first.
        let wrong = json!({"name": "tool2", "arguments": []});
        assert_step_up(
            &caller.ask("tools/call", wrong).await,
            "mcp files:read files:write",
        );
        let read = json!({"uri": "file:///secret"});
        assert_step_up(&caller.ask("resources/read", read).await, "mcp files:read");
        let read = json!({"uri": "letter:///home"});
        assert_step_up(&caller.ask("resources/read", read).await, "mcp files:read");
        let get = json!({"name": "audit"});
        assert_step_up(&caller.ask("prompts/get", get).await, "mcp audit");
        let complete = json!({"ref": {"type": "ref/prompt", "name": "audit"},
                              "argument": {"name": "year", "value": "20"}});
        assert_step_up(
            &caller.ask("completion/complete", complete).await,
            "mcp audit",
        );
        let complete = json!({"ref": {"type": "ref/resource", "uri": "letter:///{name}"},
                              "argument": {"name": "name", "value": "x"}});
        assert_step_up(
            &caller.ask("completion/complete", complete).await,
            "mcp files:read",
        );
        for params in [json!({"path": "a"}), json!({})] {
            assert_step_up(&caller.ask("acme/erase", params).await, "mcp files:write");
        }
        let half = Caller::new(&rig, revision, "mcp files:read").await;
        assert_step_up(
            &half.ask("tools/call", call).await,
            "mcp files:read files:write",
        );
    }
}

#[runtimes::test]
async fn serves_requests_with_the_scopes_of_their_target() {
    let rig = rig().await;
    for revision in revisions() {
        let caller = Caller::new(&rig, revision, "mcp files:read files:write audit").await;
        for (method, params) in [
            ("tools/call", json!({"name": "tool2", "arguments": {}})),
            ("resources/read", json!({"uri": "file:///secret"})),
            ("resources/read", json!({"uri": "letter:///home"})),
            ("prompts/get", json!({"name": "audit"})),
            ("acme/erase", json!({"path": "a"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "audit"},
                       "argument": {"name": "year", "value": "20"}}),
            ),
        ] {
            let answer = caller.ask(method, params).await;
            assert_eq!(answer.status, 200, "{revision} {answer:?}");
            assert!(answer.body.get("result").is_some(), "{answer:?}");
        }
        let unknown = caller
            .ask("tools/call", json!({"name": "tool7", "arguments": {}}))
            .await;
        assert_eq!(unknown.body["error"]["code"], -32602);
    }
}

#[runtimes::test]
async fn a_scope_grants_the_scopes_it_implies_transitively() {
    let rig = rig().await;
    let caller = Caller::new(&rig, "2026-07-28", "mcp files:admin").await;
    let call = json!({"name": "tool2", "arguments": {}});
    assert_eq!(caller.ask("tools/call", call).await.status, 200);
    let (tools, _) = caller.list("tools/list", "tools").await;
    assert_eq!(tools.len(), 6);
    // Not the other way round.
    let reader = Caller::new(&rig, "2026-07-28", "mcp files:read").await;
    let (tools, _) = reader.list("tools/list", "tools").await;
    assert_eq!(tools.len(), 3);
}

#[runtimes::test]
async fn a_callback_can_expand_granted_scopes() {
    let rig = Rig::start(server(), |builder, issuer| {
        builder.issuer(issuer.issuer()).expand(|granted| {
            let all = granted.contains("files:*");
            ["files:read", "files:write"]
                .iter()
                .filter(|_| all)
                .collect()
        })
    })
    .await;
    let caller = Caller::new(&rig, "2026-07-28", "mcp files:*").await;
    let (tools, _) = caller.list("tools/list", "tools").await;
    assert_eq!(tools.len(), 6);
    let caller = Caller::new(&rig, "2026-07-28", "mcp").await;
    let (tools, _) = caller.list("tools/list", "tools").await;
    assert_eq!(tools.len(), 3);
}

#[runtimes::test]
async fn handlers_can_require_more_scopes() {
    let server = Server::new("dynamic", "1").tool(
        "open",
        "Opens one of two doors",
        |args: Value, ctx: Context| async move {
            if args["progress"] == true {
                ctx.progress(1.0, None, None);
            }
            if args["door"] == "back" {
                ctx.require_scopes(["doors:back", "doors:all"])?;
            }
            // The error that authors write most often, and that would hide the demand if it were text for the model.
            Ok::<_, mcpline::ToolError>("open")
        },
    );
    let memory = server.clone();
    let rig = Rig::start(server, |builder, issuer| builder.issuer(issuer.issuer())).await;
    let params = |arguments: Value| {
        json!({"name": "open", "arguments": arguments,
                                           "_meta": {"progressToken": 1}})
    };
    for revision in revisions() {
        let caller = Caller::new(&rig, revision, "mcp").await;
        let front = caller
            .ask("tools/call", params(json!({"door": "front"})))
            .await;
        assert_eq!(front.body["result"]["content"][0]["text"], "open");
        let back = caller
            .ask("tools/call", params(json!({"door": "back"})))
            .await;
        assert_step_up(&back, "mcp doors:back doors:all");
        let stepped_up = Caller::new(&rig, revision, "mcp doors:back doors:all").await;
        let back = stepped_up
            .ask("tools/call", params(json!({"door": "back"})))
            .await;
        assert_eq!(back.status, 200, "{back:?}");
        // Once the response has begun, it carries the required scopes itself.
        let late = json!({"door": "back", "progress": true});
        let late = caller.ask("tools/call", params(late)).await;
        assert_eq!(late.status, 200);
    }
    let mut client = support::Client::modern(&memory);
    let back = json!({"arguments": {"door": "back"}});
    assert!(client.call_modern("open", back).await.is_ok());
}

#[runtimes::test]
async fn subscribing_requires_the_scopes_of_the_resource() {
    let rig = rig().await;
    for revision in HANDSHAKES {
        let caller = Caller::new(&rig, revision, "mcp").await;
        for uri in ["file:///secret", "letter:///home"] {
            let answer = caller.ask("resources/subscribe", json!({"uri": uri})).await;
            assert_step_up(&answer, "mcp files:read");
        }
        let open = json!({"uri": "file:///open"});
        let answer = caller.ask("resources/subscribe", open).await;
        assert_eq!(answer.status, 200);
        let reader = Caller::new(&rig, revision, "mcp files:read").await;
        let secret = json!({"uri": "file:///secret"});
        let answer = reader.ask("resources/subscribe", secret).await;
        assert_eq!(answer.status, 200);
    }
    let caller = Caller::new(&rig, "2026-07-28", "mcp").await;
    let wanted = json!({"notifications": {
        "resourceSubscriptions": ["file:///open", "file:///secret"]}});
    let answer = caller.ask("subscriptions/listen", wanted).await;
    assert_step_up(&answer, "mcp files:read");
}

#[runtimes::test]
async fn checks_each_request_of_a_batch() {
    let rig = rig().await;
    let caller = Caller::new(&rig, "2025-03-26", "mcp").await;
    let call = |id: i64, tool: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
               "params": {"name": tool, "arguments": {}}})
    };
    let session = caller.session.as_deref().expect("a session");
    let answer = rig
        .post(
            &caller.token,
            &[("Mcp-Session-Id", session)],
            &json!([call(1, "tool1"), call(2, "tool2")]),
        )
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answers = answer.body.as_array().expect("a batch");
    let of = |id: i64| answers.iter().find(|one| one["id"] == id).expect("it");
    assert!(of(1).get("result").is_some());
    assert_eq!(of(2)["error"]["code"], -31001);
    assert_eq!(
        of(2)["error"]["data"]["requiredScopes"],
        json!(["files:read", "files:write"])
    );
}

#[runtimes::test]
async fn http_sse_reports_required_scopes_on_the_stream() {
    let rig = rig().await;
    let token = rig.token("mcp");
    let mut stream = rig.open("GET", "/sse", &token, &[], &Value::Null).await;
    stream.until(Some("sessionId=")).await;
    stream.until(Some("\n\n")).await;
    let at = stream.seen.find("/messages?sessionId=").expect("a path");
    let path: String = stream.seen[at..]
        .chars()
        .take_while(|c| !c.is_whitespace())
        .collect();
    let say = async |body: Value| rig.ask_with(&token, "POST", &path, &body).await;
    let begun = say(support::requests::initialize("2024-11-05")).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                      "params": {"name": "tool2", "arguments": {}}});
    assert_eq!(say(call).await.status, 202);
    stream.until(Some("requiredScopes")).await;
    let list = json!({"jsonrpc": "2.0", "id": 6, "method": "prompts/list"});
    assert_eq!(say(list).await.status, 202);
    stream.until(Some("greet")).await;
    assert!(!stream.seen.contains("audit"));
}

#[runtimes::test]
async fn http_clients_have_no_scopes_without_authorization() {
    use crate::support::requests::{body, request};
    use mcpline::transport::http::HttpOptions;
    let service = server().http_service(HttpOptions::default());
    let (_, listing) = support::authorized::modern("tools/list", json!({}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let listed = service
        .handle(request(http::Method::POST, &headers, listing))
        .await;
    let tools = body(listed).await["result"]["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(2));
    let (name, call) =
        support::authorized::modern("tools/call", json!({"name": "tool2", "arguments": {}}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name.as_str()),
    ];
    let refused = service
        .handle(request(http::Method::POST, &headers, call))
        .await;
    assert_eq!(refused.status(), 403);
}

#[runtimes::test]
async fn middleware_can_set_the_caller_and_its_scopes() {
    use crate::support::requests::{body, request};
    use mcpline::auth::Caller;
    use mcpline::transport::http::HttpOptions;
    let service = server().http_service(HttpOptions::default());
    let (_, listing) = support::authorized::modern("tools/list", json!({}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let mut request_as_alice = request(http::Method::POST, &headers, listing);
    let caller = Caller::new()
        .with_subject("alice")
        .with_scopes(["files:read", "files:write"]);
    request_as_alice.extensions_mut().insert(caller);
    let listed = body(service.handle(request_as_alice).await).await;
    assert_eq!(listed["result"]["tools"][1]["name"], "tool2");
}

#[test]
fn rejects_malformed_scopes_at_registration() {
    let server = Server::new("checked", "1");
    for scope in ["two words", "", "caf\u{e9}", "a\"b"] {
        let scopes = ["good", scope];
        let refused = [
            server.add_tool_fn(
                Tool::new("tool", json!({"type": "object"})),
                ToolOptions::default().with_scopes(scopes),
                |_: Nothing, _: Context| async { "x" },
            ),
            server.add_resource_with(
                Resource::new("file:///x", "x"),
                ResourceOptions::default().with_scopes(scopes),
                says(|| Reply::Completion(Default::default())),
            ),
            server.add_resource_template_with(
                ResourceTemplate::new("file:///{x}", "x"),
                ResourceOptions::default().with_scopes(scopes),
                says(|| Reply::Completion(Default::default())),
            ),
            server.add_prompt_with(
                Prompt::new("prompt"),
                PromptOptions::default().with_scopes(scopes),
                says(|| Reply::Completion(Default::default())),
            ),
        ];
        for refused in refused {
            let error = refused.expect_err(scope).to_string();
            assert!(error.contains("can't be a scope"), "{error}");
        }
        let auth = mcpline::auth::ResourceServer::builder("https://mcp.example.com/mcp")
            .issuer("https://auth.example.com")
            .required_scopes(scopes);
        assert!(auth.build().is_err());
    }
}

#[runtimes::test]
async fn in_memory_clients_have_all_scopes() {
    let mut client = support::Client::modern(&server());
    let id = client.begin_modern("tools/list", json!({}));
    let listed = client.response(&id).await.expect("a list");
    assert_eq!(listed["tools"][1]["name"], "tool2");
    assert!(client.call_modern("tool2", json!({})).await.is_ok());
}

#[runtimes::test]
async fn handles_custom_notifications_only_of_callers_with_their_scopes() {
    struct Passes(UnboundedSender<Value>);
    impl Handler for Passes {
        fn call(&self, call: Call) {
            let params = serde_json::from_slice(call.arguments().as_bytes()).expect("JSON");
            // The test may have failed.
            let _ = self.0.send(params);
            call.reply(Ok(Reply::Result(mcpline::protocol::Raw::EMPTY_OBJECT)));
        }
    }
    let (sender, mut handled) = unbounded_channel();
    let server = Server::new("scoped", "1");
    let options = MethodOptions::default().with_scopes(["files:read", "files:write"]);
    server
        .add_notification_handler("acme/changed", options, Arc::new(Passes(sender)))
        .expect("a custom method");
    let rig = Rig::start(server, |builder, issuer| builder.issuer(issuer.issuer())).await;
    for revision in revisions() {
        for scope in ["mcp", "mcp files:read", "mcp files:read files:write"] {
            let caller = Caller::new(&rig, revision, scope).await;
            let answer = caller
                .notify("acme/changed", json!({"by": scope, "on": revision}))
                .await;
            // Notifications are accepted even if they are dropped.
            assert_eq!(answer.status, 202, "{revision}, {scope}: {answer:?}");
        }
        let first = handled.recv().await.expect("a handler");
        let writer = json!({"by": "mcp files:read files:write", "on": revision});
        assert_eq!(first, writer);
        assert!(handled.try_recv().is_err(), "{revision}");
    }
}

//! Ownership: sessions, streams, input requests and their responses belong to the principal that started them. Another
//! principal with a valid id gets the same response as for an id that does not exist.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::Nothing;
use crate::support::authorized::{Answer, Rig, modern};
use crate::support::requests::{initialize, request};
use http::Method;
use mcpline::auth::{Caller, Keys, ResourceServer};
use mcpline::jose::JwkSet;
use mcpline::protocol::vocabulary::{ElicitParams, FormSchema, Tool};
use mcpline::server::ToolOptions;
use mcpline::sharing::Sharing;
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};

async fn ask(ctx: Context) -> String {
    let form = ElicitParams::form("Name?", FormSchema::new());
    match ctx.elicit(&form).await {
        Ok(answer) => format!("{:?}", answer.action),
        Err(error) => error.to_string(),
    }
}

fn server_with(settings: Settings) -> Server {
    let server = Server::builder("owned", "1")
        .settings(settings)
        .declare_resources()
        .build()
        .expect("a server")
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .tool("asks", "Asks", |_: Nothing, ctx: Context| ask(ctx));
    let tool = Tool::new("asks_writers", json!({"type": "object"}));
    let options = ToolOptions::default().with_scopes(["write"]);
    server
        .add_tool_fn(tool, options, |_: Nothing, ctx: Context| ask(ctx))
        .expect("a tool");
    server
}

async fn rig() -> Rig {
    let server = server_with(Settings::default());
    Rig::start(server, |builder, issuer| builder.issuer(issuer.issuer())).await
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// Accepts the tokens `short`, valid for a second after it is verified, and `long`.
async fn impatient(server: Server) -> Rig {
    Rig::start(server, |builder, issuer| {
        builder
            .authorization_server(issuer.issuer())
            .clock_skew(Duration::ZERO)
            .verifier(|token| async move {
                let good_for = if token.expose() == "short" { 1 } else { 1_000 };
                let alice = Caller::new().with_subject("alice");
                Ok(alice.with_scopes(["mcp"]).with_expiry(now() + good_for))
            })
    })
    .await
}

/// Waits until the token `short` has expired.
async fn lapse() {
    let end = now() + 1;
    while now() <= end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends every kind of request that names a session.
async fn everything(rig: &Rig, token: &str, session: &str) -> Vec<Answer> {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", session),
    ];
    let mut resuming = headers.to_vec();
    resuming.push(("Last-Event-ID", "0-0"));
    let message = |body: Value| async move {
        let headers = [("Mcp-Session-Id", session)];
        rig.post(token, &headers, &body).await
    };
    vec![
        message(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await,
        message(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await,
        message(initialize("2025-11-25")).await,
        message(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                       "params": {"requestId": 7}}),
        )
        .await,
        message(json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}})).await,
        message(json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])).await,
        rig.ask("GET", "/mcp", &headers, &Value::Null).await,
        rig.ask("GET", "/mcp", &resuming, &Value::Null).await,
        rig.ask("DELETE", "/mcp", &headers, &Value::Null).await,
    ]
}

#[runtimes::test]
async fn sessions_of_other_principals_look_nonexistent() {
    let rig = rig().await;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (alice, mallory) = (rig.token("mcp"), rig.token_of("mallory", "mcp"));
        let session = rig.session(&alice, revision).await;
        let foreign = everything(&rig, &mallory, &session).await;
        let none = everything(&rig, &mallory, "made-up").await;
        for (foreign, none) in foreign.iter().zip(&none) {
            assert_eq!(foreign.status, 404, "{foreign:?}");
            assert_eq!(foreign.body, none.body);
        }
        // Its owner can still use it, with any token.
        let later = rig.issuer.mint(&{
            let mut claims = rig.claims("mcp other");
            claims["client_id"] = "another".into();
            claims
        });
        let call = json!({"name": "plain", "arguments": {}});
        let answer = rig.in_session(&later, &session, "tools/call", call).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[runtimes::test]
async fn the_same_subject_of_another_issuer_is_another_principal() {
    let server = server_with(Settings::default());
    let other = authorization_server::AuthorizationServer::start(Default::default());
    let other = other.await.expect("a port");
    let rig = Rig::start(server, |builder, issuer| {
        builder.issuer(issuer.issuer()).issuer(other.issuer())
    })
    .await;
    let session = rig.session(&rig.token("mcp"), "2025-11-25").await;
    let alice = other.mint(&other.claims("client", "mcp", &rig.resource));
    let answer = rig
        .in_session(&alice, &session, "tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 404);
    // Its tokens are valid, but not with the other issuer's name.
    rig.session(&alice, "2025-11-25").await;
    let mut claims = other.claims("client", "mcp", &rig.resource);
    claims["iss"] = rig.issuer.issuer().into();
    let answer = rig
        .modern(&other.mint(&claims), "tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 401);
}

#[runtimes::test]
async fn http_sse_endpoints_of_other_principals_look_nonexistent() {
    let rig = rig().await;
    let (alice, mallory) = (rig.token("mcp"), rig.token_of("mallory", "mcp"));
    let mut stream = rig.open("GET", "/sse", &alice, &[], &Value::Null).await;
    stream.until(Some("sessionId=")).await;
    stream.until(Some("\n\n")).await;
    let at = stream.seen.find("/messages?sessionId=").expect("a path");
    let path: String = stream.seen[at..]
        .chars()
        .take_while(|c| !c.is_whitespace())
        .collect();
    let begin = initialize("2024-11-05");
    let theirs = rig.ask_with(&mallory, "POST", &path, &begin).await;
    let none = rig
        .ask_with(&mallory, "POST", "/messages?sessionId=made-up", &begin)
        .await;
    assert_eq!((theirs.status, &theirs.body), (404, &none.body));
    assert_eq!(rig.ask("POST", &path, &[], &begin).await.status, 401);
    let own = rig.ask_with(&alice, "POST", &path, &begin).await;
    assert_eq!(own.status, 202);
    stream.until(Some("protocolVersion")).await;
    assert_eq!(stream.seen.matches("protocolVersion").count(), 1);
}

/// Calls a tool that requires input; returns the parameters of a retry with an answer.
async fn retry_with_input(rig: &Rig, token: &str, tool: &str) -> Value {
    let call = json!({"name": tool, "arguments": {}});
    let response = rig.modern(token, "tools/call", call.clone()).await;
    let result = &response.body["result"];
    assert_eq!(result["resultType"], "input_required", "{response:?}");
    let requests = result["inputRequests"].as_object().expect("questions");
    let key = requests.keys().next().expect("a question").clone();
    let mut retry = call;
    retry["requestState"] = result["requestState"].clone();
    retry["inputResponses"] = json!({ key: {"action": "decline"} });
    retry
}

#[runtimes::test]
async fn only_the_principal_that_was_asked_can_answer() {
    let rig = rig().await;
    let (alice, mallory) = (rig.token("mcp"), rig.token_of("mallory", "mcp"));
    let retry = retry_with_input(&rig, &alice, "asks").await;
    let stolen = rig.modern(&mallory, "tools/call", retry.clone()).await;
    assert_eq!(stolen.body["error"]["code"], -32602);
    let mut made_up = retry.clone();
    made_up["requestState"] = "made-up".into();
    let unknown = rig.modern(&mallory, "tools/call", made_up).await;
    assert_eq!(stolen.body["error"], unknown.body["error"]);
    // The attempt did not use up the state, and the state is not bound to one token.
    let again = rig.token("mcp other");
    let answered = rig.modern(&again, "tools/call", retry).await;
    let text = &answered.body["result"]["content"][0]["text"];
    assert_eq!(text, "Decline", "{answered:?}");
}

#[runtimes::test]
async fn resuming_a_tool_requires_its_scopes() {
    let rig = rig().await;
    let retry = retry_with_input(&rig, &rig.token("mcp write"), "asks_writers").await;
    let refused = rig
        .modern(&rig.token("mcp"), "tools/call", retry.clone())
        .await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.bearer().get("scope"), Some("mcp write"));
    // After the step-up, the call resumes.
    let stepped_up = rig.token("mcp write");
    let answered = rig.modern(&stepped_up, "tools/call", retry).await;
    let text = &answered.body["result"]["content"][0]["text"];
    assert_eq!(text, "Decline", "{answered:?}");
}

#[runtimes::test]
async fn a_shared_session_belongs_to_its_owner_in_every_process() {
    let issuer = authorization_server::AuthorizationServer::start(Default::default());
    let issuer = issuer.await.expect("a port");
    let resource = "http://localhost:8000/mcp";
    let keys = JwkSet::parse(issuer.jwks().to_string()).expect("keys");
    let sharing = Sharing::in_memory();
    let process = || -> HttpService {
        let mut settings = Settings::default();
        settings.sharing = Some(sharing.clone());
        let auth = ResourceServer::builder(resource)
            .issuer_with_keys(issuer.issuer(), Keys::These(keys.clone()))
            .build();
        let mut options = HttpOptions::default();
        options.auth = Some(Arc::new(auth.expect("usable options")));
        server_with(settings).http_service(options)
    };
    let (one, other) = (process(), process());
    let token = |subject: &str| {
        let mut claims = issuer.claims("client", "", resource);
        claims["sub"] = subject.into();
        format!("Bearer {}", issuer.mint(&claims))
    };
    let (alice, mallory) = (token("alice"), token("mallory"));
    let headers = [("authorization", alice.as_str())];
    let begun = one
        .handle(request(Method::POST, &headers, initialize("2025-11-25")))
        .await;
    let id = begun.headers()["mcp-session-id"]
        .to_str()
        .expect("ASCII")
        .to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ask = async |service: &HttpService, token: &str, method: Method, body: Value| {
        let headers = [("authorization", token), ("mcp-session-id", id.as_str())];
        service
            .handle(request(method, &headers, body))
            .await
            .status()
    };
    assert_eq!(ask(&one, &alice, Method::POST, ready).await, 202);
    for service in [&other, &one] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            assert_eq!(ask(service, &mallory, method, list.clone()).await, 404);
        }
    }
    assert_eq!(ask(&other, &alice, Method::POST, list).await, 200);
}

#[runtimes::test]
async fn streams_without_a_call_end_when_their_token_expires() {
    let rig = impatient(server_with(Settings::default())).await;
    // The connection ends with its stream.
    let close = ("Connection", "close");
    let session = rig.session("short", "2025-11-25").await;
    let own = [("Mcp-Session-Id", session.as_str()), close];
    let mut general = rig.open("GET", "/mcp", "short", &own, &Value::Null).await;
    let mut http_sse = rig
        .open("GET", "/sse", "short", &[close], &Value::Null)
        .await;
    let (_, wanted) = modern(
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
        close,
    ];
    let mut listening = rig.open("POST", "/mcp", "short", &headers, &wanted).await;
    for stream in [&mut general, &mut http_sse, &mut listening] {
        stream.until(None).await;
        assert!(stream.seen.starts_with("HTTP/1.1 200"), "{}", stream.seen);
    }
    assert!(
        listening.seen.contains("acknowledged"),
        "{}",
        listening.seen
    );
    assert!(!listening.seen.contains("result"), "{}", listening.seen);
}

#[runtimes::test]
async fn a_stream_continues_with_a_later_token() {
    let server = server_with(Settings::default());
    let rig = impatient(server.clone()).await;
    let session = rig.session("short", "2025-11-25").await;
    let answer = rig
        .in_session("long", &session, "tools/list", json!({}))
        .await;
    assert_eq!(answer.status, 200);
    let own = [("Mcp-Session-Id", session.as_str())];
    let mut general = rig.open("GET", "/mcp", "short", &own, &Value::Null).await;
    general.until(Some("\r\n\r\n")).await;
    lapse().await;
    assert!(server.remove_tool("plain"));
    general
        .until(Some("notifications/tools/list_changed"))
        .await;
}

#[runtimes::test]
async fn a_call_continues_after_its_token_expires() {
    let go_on = Arc::new(tokio::sync::Notify::new());
    let wait = go_on.clone();
    let server = server_with(Settings::default()).tool(
        "slow",
        "Takes long",
        move |_: Nothing, ctx: Context| {
            let wait = wait.clone();
            async move {
                ctx.progress(1.0, None, None);
                wait.notified().await;
                "it is done"
            }
        },
    );
    let rig = impatient(server).await;
    let (name, call) = modern(
        "tools/call",
        json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}}),
    );
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name.as_str()),
    ];
    let mut stream = rig.open("POST", "/mcp", "short", &headers, &call).await;
    stream.until(Some("notifications/progress")).await;
    lapse().await;
    go_on.notify_one();
    stream.until(Some("it is done")).await;
}

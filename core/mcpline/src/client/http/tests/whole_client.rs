//! Whole clients against scripted servers: remembered eras, cached results, and lost pings.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::StatusCode;
use mcpline_protocol::Era;
use tokio::sync::Notify;

use crate::ErrorKind;
use crate::auth::{Auth, BearerToken};
use crate::client::settings::ClientSettings;
use crate::client::{Address, Client, RequestOptions};

use super::peer::{Peer, Reply, Seen, Step, answer, json as json_answer};
use super::*;

fn message(seen: &Seen) -> Value {
    serde_json::from_str(&seen.body).unwrap_or_default()
}

fn method(seen: &Seen) -> String {
    let method = message(seen)["method"].as_str().map(str::to_owned);
    method.unwrap_or_else(|| seen.method.clone())
}

fn reply(seen: &Seen, result: &Value) -> Reply {
    let id = message(seen)["id"].clone();
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    vec![Step::Send(json_answer(&body))]
}

fn status(status: StatusCode) -> Reply {
    let status = format!(
        "{} {}",
        status.as_u16(),
        status.canonical_reason().unwrap_or("")
    );
    vec![Step::Send(answer(&status, &[], ""))]
}

fn handshake(seen: &Seen) -> Reply {
    reply(
        seen,
        &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"}}),
    )
}

fn discovery(seen: &Seen) -> Reply {
    reply(
        seen,
        &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "public"}),
    )
}

/// A server of a handshake revision, until it is upgraded.
async fn upgradable() -> (Peer, Arc<AtomicBool>) {
    let upgraded = Arc::new(AtomicBool::new(false));
    let is_upgraded = upgraded.clone();
    let peer = Peer::new(move |_, seen| {
        let modern = is_upgraded.load(Ordering::SeqCst);
        match method(seen).as_str() {
            "server/discover" if modern => discovery(seen),
            "initialize" if !modern => handshake(seen),
            "notifications/initialized" => status(StatusCode::ACCEPTED),
            "GET" => status(StatusCode::METHOD_NOT_ALLOWED),
            _ => status(StatusCode::NOT_FOUND),
        }
    })
    .await;
    (peer, upgraded)
}

async fn connect_with(url: &str, configure: impl FnOnce(&mut ClientSettings)) -> Client {
    connect_by(settings(), url, configure).await
}

async fn connect_by(
    http: HttpSettings,
    url: &str,
    configure: impl FnOnce(&mut ClientSettings),
) -> Client {
    // On a machine that pauses for longer than the default, a probe would end before it is sent.
    let patient = |settings: &mut ClientSettings| settings.open_timeouts.probe = GUARD;
    let host = Client::builder("host", "1")
        .configure(patient)
        .configure(configure);
    let connecting = host.connect(Address::Url(url.to_owned(), http));
    guarded(connecting).await.expect("connects")
}

async fn connect(url: &str) -> Client {
    connect_with(url, |_| {}).await
}

/// The URL of a peer on another machine, with settings that reach it through a proxy, which is the peer itself.
fn elsewhere(peer: &Peer) -> (String, HttpSettings) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let mut settings = settings();
    settings.proxy = Proxy::Url(peer.url().replace("/mcp", ""));
    // Not named by the port, which a later peer may get again: what clients know of a server outlives a test.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    (format!("http://other-machine-{number}/mcp"), settings)
}

/// The server refuses the revision of the first request, so that its client opens another session over the same
/// connection, and resets that connection then.
#[runtimes::test]
async fn opening_over_a_connection_that_the_server_resets_is_retried() {
    let mut used = HashSet::new();
    let mut lists = 0;
    let mut peer = Peer::new(move |_, seen| {
        let is_first = used.insert(seen.connection);
        match method(seen).as_str() {
            "server/discover" if lists == 0 || is_first => discovery(seen),
            "server/discover" => vec![Step::Reset],
            "tools/list" => {
                lists += 1;
                if lists > 1 {
                    let page = json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public"});
                    return reply(seen, &page);
                }
                let error = json!({"code": -32022, "message": "no such version",
                    "data": {"supported": ["2026-07-28"]}});
                let body = json!({"jsonrpc": "2.0", "id": message(seen)["id"], "error": error});
                vec![Step::Send(json_answer(&body.to_string()))]
            }
            _ => status(StatusCode::NOT_FOUND),
        }
    })
    .await;
    let client = connect(&peer.url()).await;
    let listed = guarded(client.request("tools/list", None, &RequestOptions::default())).await;
    assert_eq!(listed.map(|_| ()), Ok(()));
    let connections: Vec<_> = peer.rest().iter().map(|seen| seen.connection).collect();
    let reset = connections.windows(2).any(|two| two[0] < two[1]);
    assert!(
        reset,
        "all requests came by one connection: {connections:?}"
    );
    client.close().await;
}

/// Returns the methods that opened sessions since the last call.
fn openings(peer: &mut Peer) -> Vec<String> {
    let all = peer.rest().into_iter().map(|seen| method(&seen));
    all.filter(|method| matches!(method.as_str(), "server/discover" | "initialize"))
        .collect()
}

#[runtimes::test]
async fn clients_of_one_server_probe_it_once_and_find_that_it_was_upgraded() {
    let (mut peer, upgraded) = upgradable().await;
    let (url, settings) = elsewhere(&peer);
    let connect = async |url: &str| connect_by(settings.clone(), url, |_| {}).await;
    for expected in [&["server/discover", "initialize"][..], &["initialize"]] {
        let client = connect(&url).await;
        assert_eq!(client.revision(), LEGACY);
        client.close().await;
        assert_eq!(openings(&mut peer), expected);
    }
    // Another URL is another server, even at the same origin.
    let client = connect(&url.replace("/mcp", "/other")).await;
    client.close().await;
    assert_eq!(openings(&mut peer), ["server/discover", "initialize"]);
    // A remembered era that fails is forgotten.
    upgraded.store(true, Ordering::SeqCst);
    for expected in [&["initialize", "server/discover"][..], &["server/discover"]] {
        let client = connect(&url).await;
        assert_eq!(client.revision(), MODERN);
        client.close().await;
        assert_eq!(openings(&mut peer), expected);
    }
}

#[runtimes::test]
async fn a_server_on_this_machine_is_probed_by_each_client() {
    let (mut peer, _) = upgradable().await;
    let localhost = peer.url().replace("127.0.0.1", "localhost");
    for url in [peer.url(), localhost] {
        for _ in 0..2 {
            connect(&url).await.close().await;
            assert_eq!(openings(&mut peer), ["server/discover", "initialize"]);
        }
    }
}

#[runtimes::test]
async fn a_host_with_a_remembered_era_neither_uses_nor_updates_the_shared_one() {
    let (mut peer, _) = upgradable().await;
    let (url, settings) = elsewhere(&peer);
    let connect_with = async |url: &str, configure: fn(&mut ClientSettings)| {
        connect_by(settings.clone(), url, configure).await
    };
    let connect = async |url: &str| connect_with(url, |_| {}).await;
    let modern = |settings: &mut ClientSettings| settings.era = Some(Era::Modern);
    connect_with(&url, modern).await.close().await;
    assert_eq!(openings(&mut peer), ["server/discover", "initialize"]);
    // A client without 2026-07-28 does not record an era either.
    let old = |settings: &mut ClientSettings| settings.revisions = vec![LEGACY];
    connect_with(&url, old).await.close().await;
    assert_eq!(openings(&mut peer), ["initialize"]);
    connect(&url).await.close().await;
    assert_eq!(openings(&mut peer), ["server/discover", "initialize"]);
    connect_with(&url, modern).await.close().await;
    assert_eq!(openings(&mut peer), ["server/discover", "initialize"]);
}

#[runtimes::test]
async fn results_cached_for_one_user_are_not_returned_to_the_next() {
    let mut peer = Peer::new(|_, seen| {
        let token = seen.header("authorization").unwrap_or("none").to_owned();
        match method(seen).as_str() {
            "server/discover" => discovery(seen),
            // Only Bob is authorized.
            "tools/call" if token != "Bearer bob" => {
                let challenge = [("www-authenticate", "Bearer error=\"invalid_token\"")];
                vec![Step::Send(answer("401 Unauthorized", &challenge, ""))]
            }
            "tools/call" => reply(seen, &json!({"resultType": "complete", "content": []})),
            _ => {
                let tool = json!({"name": token, "inputSchema": {"type": "object"}});
                reply(
                    seen,
                    &json!({"resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private"}),
                )
            }
        }
    })
    .await;
    let mut settings = settings();
    settings.auth = Some(Auth::source(|wanted| async move {
        let user = if wanted.refused { "bob" } else { "alice" };
        Ok(BearerToken::from(user))
    }));
    let host = Client::builder("host", "1");
    let connecting = host.connect(Address::Url(peer.url(), settings));
    let client = guarded(connecting).await.expect("connects");
    for user in ["Bearer alice", "Bearer bob"] {
        for _ in 0..2 {
            let tools = guarded(client.list_tools()).await.expect("a list");
            assert_eq!(tools[0].name, user);
        }
        let lists = peer.rest().into_iter().map(|seen| method(&seen));
        assert_eq!(lists.filter(|method| method == "tools/list").count(), 1);
        let called = guarded(client.call_tool("t", json!({}))).await;
        called.expect("bob's");
    }
    client.close().await;
}

#[runtimes::test]
async fn a_session_with_an_unanswered_ping_is_replaced() {
    let (gone, sessions) = (Arc::new(Notify::new()), AtomicUsize::new(0));
    let mut is_called = false;
    let mut peer = Peer::new(move |_, seen| {
        let is_first = seen.header("mcp-session-id") == Some("0");
        is_called |= method(seen) == "tools/call";
        match method(seen).as_str() {
            "server/discover" | "DELETE" => status(StatusCode::NOT_FOUND),
            "initialize" => {
                let Some(Step::Send(answer)) = handshake(seen).pop() else {
                    unreachable!("it is sent");
                };
                let session = sessions.fetch_add(1, Ordering::SeqCst);
                let answer = String::from_utf8(answer).expect("UTF-8");
                let (status, rest) = answer.split_once("\r\n").expect("a head");
                let answer = format!("{status}\r\nmcp-session-id: {session}\r\n{rest}");
                vec![Step::Send(answer.into_bytes())]
            }
            "notifications/initialized" => status(StatusCode::ACCEPTED),
            "GET" => status(StatusCode::METHOD_NOT_ALLOWED),
            // Pings are answered until the call arrives: however late it comes, it finds the session.
            "ping" | "tools/call" if is_first && is_called => vec![Step::Silence(gone.clone())],
            _ => reply(seen, &json!({"tools": []})),
        }
    })
    .await;
    let client = connect_with(&peer.url(), |settings| {
        settings.ping_interval = Some(Duration::from_millis(20));
        settings.ping_timeout = Duration::from_secs(1);
    })
    .await;
    let lost = guarded(client.call_tool("t", json!({}))).await;
    let lost = lost.expect_err("the session is lost");
    assert_eq!(lost.kind(), ErrorKind::ConnectionLost);
    assert!(
        lost.is_outcome_unknown() && lost.to_string().contains("ping"),
        "{lost}"
    );
    guarded(client.list_tools())
        .await
        .expect("of another session");
    client.close().await;
    let seen = peer.rest();
    let of = |name: &str| {
        let with = seen.iter().filter(move |seen| method(seen) == name);
        with.map(|seen| seen.header("mcp-session-id").map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert!(
        of("DELETE").contains(&Some("0".to_owned())),
        "{:?}",
        of("DELETE")
    );
    let last = of("tools/list").pop().expect("a request");
    assert_ne!(last, Some("0".to_owned()));
}

/// A server with sessions. `script` gets the session's number and answers pings and calls; other requests have default
/// answers.
async fn with_sessions(
    mut script: impl FnMut(usize, &Seen) -> Option<Reply> + Send + 'static,
) -> Peer {
    let mut sessions = 0;
    Peer::new(move |_, seen| {
        let session = seen.header("mcp-session-id");
        let session = session.and_then(|session| session.parse().ok());
        if let Some(reply) = session.and_then(|session| script(session, seen)) {
            return reply;
        }
        match method(seen).as_str() {
            "server/discover" | "DELETE" => status(StatusCode::NOT_FOUND),
            "initialize" => {
                let Some(Step::Send(answer)) = handshake(seen).pop() else {
                    unreachable!("it is sent");
                };
                let answer = String::from_utf8(answer).expect("UTF-8");
                let (status, rest) = answer.split_once("\r\n").expect("a head");
                let answer = format!("{status}\r\nmcp-session-id: {sessions}\r\n{rest}");
                sessions += 1;
                vec![Step::Send(answer.into_bytes())]
            }
            "notifications/initialized" => status(StatusCode::ACCEPTED),
            "GET" => status(StatusCode::METHOD_NOT_ALLOWED),
            "tools/call" => reply(seen, &json!({"content": []})),
            _ => reply(seen, &json!({"tools": []})),
        }
    })
    .await
}

async fn connect_pinging(peer: &Peer, timeout: Duration) -> Client {
    connect_with(&peer.url(), |settings| {
        settings.ping_interval = Some(Duration::from_millis(20));
        settings.ping_timeout = timeout;
    })
    .await
}

#[runtimes::test]
async fn a_ping_that_finds_the_session_lost_leaves_calls_in_flight_alone() {
    let (called, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (is_called, is_done) = (called.clone(), done.clone());
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = gone.clone();
    let mut peer = with_sessions(move |session, seen| match method(seen).as_str() {
        "tools/call" if session == 0 => {
            is_called.notify_one();
            is_gone.store(true, Ordering::SeqCst);
            let mut acts = vec![Step::Wait(is_done.clone())];
            acts.extend(reply(seen, &json!({"content": []})));
            Some(acts)
        }
        "ping" if session == 0 && is_gone.load(Ordering::SeqCst) => {
            Some(status(StatusCode::NOT_FOUND))
        }
        _ => None,
    })
    .await;
    // A client with a listener reconnects at once.
    let host = Client::builder("host", "1")
        .configure(|settings| {
            settings.ping_interval = Some(Duration::from_millis(20));
            settings.ping_timeout = GUARD;
        })
        .on_notification(|_| {});
    let connecting = host.connect(Address::Url(peer.url(), settings()));
    let client = guarded(connecting).await.expect("connects");
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("t", json!({})).await }
    });
    guarded(called.notified()).await;
    let mut seen = Vec::new();
    let of = |seen: &[Seen], name: &str| {
        let with = seen.iter().filter(|seen| method(seen) == name);
        with.filter(|seen| name == "initialize" || seen.header("mcp-session-id") == Some("0"))
            .count()
    };
    while of(&seen, "initialize") < 2 {
        seen.push(peer.seen().await);
    }
    // A lost session is no longer pinged, unlike its successor.
    let pings = of(&seen, "ping");
    let all = |seen: &[Seen]| seen.iter().filter(|seen| method(seen) == "ping").count();
    while all(&seen) < pings + 3 {
        seen.push(peer.seen().await);
    }
    assert_eq!(of(&seen, "ping"), pings);
    let calls = seen.iter().filter(|seen| method(seen) == "tools/call");
    assert_eq!(calls.count(), 1);
    done.notify_one();
    guarded(call).await.expect("no panic").expect("a result");
    client.close().await;
}

#[runtimes::test]
async fn an_undeliverable_ping_leaves_the_outcome_of_calls_unknown() {
    let (called, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let call_arrived = called.clone();
    let mut is_called = false;
    let mut peer = with_sessions(move |_, seen| {
        // No connection is kept, so that each message needs a new one.
        match method(seen).as_str() {
            "tools/call" => {
                is_called = true;
                call_arrived.notify_one();
                Some(vec![Step::Silence(gone.clone())])
            }
            "ping" if is_called => Some(vec![Step::Close]),
            // However late the call comes, it finds the session.
            "ping" => {
                let id = serde_json::from_str::<Value>(&seen.body).expect("JSON")["id"].take();
                let body = json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string();
                let headers = [
                    ("content-type", "application/json"),
                    ("connection", "close"),
                ];
                Some(vec![
                    Step::Send(answer("200 OK", &headers, &body)),
                    Step::Close,
                ])
            }
            "notifications/initialized" => Some(vec![
                Step::Send(answer("202 Accepted", &[("connection", "close")], "")),
                Step::Close,
            ]),
            "GET" => Some(vec![
                Step::Send(answer(
                    "405 Method Not Allowed",
                    &[("connection", "close")],
                    "",
                )),
                Step::Close,
            ]),
            _ => None,
        }
    })
    .await;
    let client = connect_pinging(&peer, Duration::from_millis(500)).await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("t", json!({})).await }
    });
    guarded(called.notified()).await;
    peer.refuse();
    let lost = guarded(call).await.expect("no panic");
    let lost = lost.expect_err("the server is gone");
    assert!(lost.is_outcome_unknown(), "{lost:?}");
    let calls = peer
        .rest()
        .into_iter()
        .filter(|seen| method(seen) == "tools/call");
    assert_eq!(calls.count(), 1);
    client.close().await;
}

#[runtimes::test]
async fn a_lost_ping_is_sent_again_and_ends_nothing() {
    let (answered, mut pings) = (Arc::new(Notify::new()), 0);
    let mut peer = with_sessions(move |_, seen| match method(seen).as_str() {
        "tools/call" => {
            let mut acts = vec![Step::Wait(answered.clone())];
            acts.extend(reply(seen, &json!({"content": []})));
            Some(acts)
        }
        "ping" => {
            pings += 1;
            if pings <= 5 {
                return Some(vec![Step::Reset]);
            }
            answered.notify_one();
            None
        }
        _ => None,
    })
    .await;
    let client = connect_pinging(&peer, GUARD).await;
    let called = guarded(client.call_tool("t", json!({}))).await;
    called.expect("a result");
    let opened = openings(&mut peer);
    assert_eq!(opened, ["server/discover", "initialize"]);
    client.close().await;
}

#[runtimes::test]
async fn a_slow_busy_or_unreachable_server_is_probed_again_by_the_next_client() {
    let gone = Arc::new(Notify::new());
    let failures: [fn(&Arc<Notify>) -> Reply; 6] = [
        |_| status(StatusCode::SERVICE_UNAVAILABLE),
        |_| status(StatusCode::TOO_MANY_REQUESTS),
        |_| status(StatusCode::REQUEST_TIMEOUT),
        |_| status(StatusCode::TOO_EARLY),
        |_| vec![Step::Close],
        |gone| vec![Step::Silence(gone.clone())],
    ];
    for (case, failure) in failures.into_iter().enumerate() {
        let gone = gone.clone();
        let mut peer = Peer::new(move |_, seen| match method(seen).as_str() {
            "server/discover" => failure(&gone),
            "initialize" => handshake(seen),
            "notifications/initialized" => status(StatusCode::ACCEPTED),
            _ => status(StatusCode::METHOD_NOT_ALLOWED),
        })
        .await;
        let (url, settings) = elsewhere(&peer);
        for client in 0..2 {
            // Long enough that the probe is sent, short enough to wait for where it is not answered.
            let hasty = |settings: &mut ClientSettings| {
                settings.open_timeouts.probe = Duration::from_secs(1);
            };
            connect_by(settings.clone(), &url, hasty)
                .await
                .close()
                .await;
            let openings = openings(&mut peer);
            assert_eq!(openings[0], "server/discover", "client {client} of {case}");
        }
    }
}

//! Servers on a named pipe of Windows: its name, connections and their limit, shutdown.
#![cfg(windows)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpline::client::{Address, Client};
use mcpline::transport::{NamedPipeOptions, Stop, named_pipe};
use mcpline::{Context, ErrorKind, Server, Settings};
use serde_json::json;

use crate::support::Nothing;
use crate::support::connection::TEST_TIMEOUT;

fn unique_name() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(r"\\.\pipe\mcpline-{}-{number}", std::process::id())
}

fn server() -> Server {
    with_tools(Server::new("weather", "1"))
}

fn with_tools(server: Server) -> Server {
    server
        .tool("hello", "Hello", |_: Nothing, _: Context| async { "hello" })
        .tool("wait", "Wait", |_: Nothing, _: Context| async {
            std::future::pending::<&str>().await
        })
}

async fn hello(client: &Client) -> String {
    let result = client.call_tool("hello", json!({})).await;
    result.expect("a result").text()
}

#[runtimes::test]
async fn clients_one_after_another_and_at_the_same_time() {
    let (name, stop) = (unique_name(), Stop::new());
    let pipe = named_pipe(&name, NamedPipeOptions::default()).expect("a pipe");
    assert_eq!(pipe.url(), format!("pipe:{name}"));
    let (serving, stopped) = (server(), stop.clone());
    let served = tokio::spawn(async move { serving.serve_until(pipe, stopped).await });
    for _ in 0..3 {
        let one = Client::connect(Address::Socket(name.clone().into())).await;
        let other = Client::connect(Address::Socket(name.clone().into())).await;
        let (one, other) = (one.expect("connects"), other.expect("connects"));
        assert_eq!(hello(&one).await, "hello");
        assert_eq!(hello(&other).await, "hello");
        one.close().await;
        assert_eq!(hello(&other).await, "hello");
        other.close().await;
    }
    stop.stop();
    served.await.expect("no panic").expect("served");
}

#[runtimes::test]
async fn a_name_belongs_to_one_server() {
    if std::env::var_os("WINEPREFIX").is_some() {
        eprintln!(
            "left out: Wine ignores FILE_FLAG_FIRST_PIPE_INSTANCE, which refuses a second server"
        );
        return;
    }
    let name = unique_name();
    let _first = named_pipe(&name, NamedPipeOptions::default()).expect("a pipe");
    let error = named_pipe(&name, NamedPipeOptions::default()).expect_err("in use");
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains(&name), "{error}");
}

#[runtimes::test]
async fn a_connection_beyond_the_limit_is_closed() {
    let (name, stop) = (unique_name(), Stop::new());
    let mut options = NamedPipeOptions::default();
    options.max_connections = 1;
    let pipe = named_pipe(&name, options).expect("a pipe");
    let (serving, stopped) = (server(), stop.clone());
    let served = tokio::spawn(async move { serving.serve_until(pipe, stopped).await });
    let first = Client::connect(Address::Socket(name.clone().into())).await;
    let first = first.expect("connects");
    Client::connect(Address::Socket(name.clone().into()))
        .await
        .expect_err("one too many");
    assert_eq!(hello(&first).await, "hello");
    first.close().await;
    stop.stop();
    served.await.expect("no panic").expect("served");
}

#[runtimes::test]
async fn calls_are_cancelled_and_answered_when_serving_stops() {
    let (name, stop) = (unique_name(), Stop::new());
    let pipe = named_pipe(&name, NamedPipeOptions::default()).expect("a pipe");
    let mut settings = Settings::default();
    settings.shutdown_timeout = Duration::from_millis(50);
    let serving = Server::builder("weather", "1").settings(settings);
    let serving = with_tools(serving.build().expect("valid"));
    let stopped = stop.clone();
    let served = tokio::spawn(async move { serving.serve_until(pipe, stopped).await });
    let client = Client::connect(Address::Socket(name.clone().into())).await;
    let client = client.expect("connects");
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("wait", json!({})).await }
    });
    assert_eq!(hello(&client).await, "hello");
    stop.stop();
    let answer = tokio::time::timeout(TEST_TIMEOUT, call)
        .await
        .expect("ends");
    let error = answer.expect("no panic").expect_err("cancelled");
    assert!(error.to_string().contains("shut"), "{error}");
    served.await.expect("no panic").expect("served");
    client.close().await;
}

#[runtimes::test]
async fn rejects_invalid_names() {
    for name in [
        "weather",
        r"C:\weather.sock",
        r"\\.\pipe\",
        r"\\other\pipe\weather",
    ] {
        let error = named_pipe(name, NamedPipeOptions::default()).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
    }
}

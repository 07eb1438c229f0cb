//! A client and its child process on Windows: started without a shell, read despite noise, ended with everything it started.
//!
//! The child is this test program, started to run only [`child`]; the output of libtest is the noise. A process shows that it is
//! running by a port at which it accepts connections.
#![cfg(windows)]
#![allow(
    clippy::print_stdout,
    reason = "the host tells the test what it has started"
)]

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpline::client::{Client, ClientError, Command};
use mcpline::transport::Stop;
use mcpline::{Context, Server, transport};
use serde_json::json;

/// Environment variable that makes this process a child; its value is the role.
const ROLE: &str = "MCPLINE_TEST_ROLE";

/// How long a process may take to end. The bound only prevents hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn server(stop: Stop) -> Server {
    Server::new("child", "1")
        .tool(
            "port",
            "A port of this process",
            |_: Nothing, _: Context| async { accepting().to_string() },
        )
        .tool(
            "start",
            "Start a process; returns its port",
            |_: Nothing, _: Context| async { started_port("sleeper").to_string() },
        )
        .tool(
            "arguments",
            "Those of this process",
            |_: Nothing, _: Context| async {
                let given: Vec<String> = std::env::args()
                    .skip_while(|each| each != "--")
                    .skip(1)
                    .collect();
                serde_json::to_string(&given).expect("JSON")
            },
        )
        .tool(
            "print",
            "Print to standard output",
            |_: Nothing, _: Context| async {
                println!("{{\"jsonrpc\": \"2.0\", \"method\": \"stray\"}}");
                let shell = std::process::Command::new("cmd")
                    .args(["/c", "echo stray"])
                    .status();
                format!("{}", shell.is_ok_and(|status| status.success()))
            },
        )
        .tool("stop", "Stop the server", move |_: Nothing, _: Context| {
            stop.stop();
            async { "stopping" }
        })
}

/// Accepts connections as long as this process runs; returns the port.
fn accepting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    port
}

/// Starts this program in a role; returns the port that it prints.
fn started_port(role: &str) -> u16 {
    let mut child = this(role)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let port = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("port ")?.parse().ok());
    port.expect("a port")
}

/// The entry point of children; not a test.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    match role.as_str() {
        "server" => {
            let stop = Stop::new();
            let serving = server(stop.clone());
            let served = runtime.block_on(serving.serve_until(transport::stdio(), stop));
            served.expect("served");
            std::process::exit(0);
        }
        "sleeper" => {
            println!("\nport {}", accepting());
            std::thread::sleep(TEST_TIMEOUT * 10);
        }
        "host" => runtime.block_on(async {
            let client = Client::connect(serving()).await.expect("connects");
            println!("\nport {}", call(&client, "port").await);
            println!("\nport {}", call(&client, "start").await);
            std::future::pending::<()>().await;
        }),
        other => panic!("no role is named {other}"),
    }
}

fn this(role: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role);
    command
}

fn serving() -> Command {
    Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, "server")
}

async fn call(client: &Client, tool: &str) -> String {
    let result = client.call_tool(tool, json!({})).await.expect("a result");
    let content = serde_json::to_value(&result.content).expect("JSON");
    content[0]["text"].as_str().expect("text").to_owned()
}

fn is_running(port: &str) -> bool {
    TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
}

async fn gone(port: &str) {
    let ends = async {
        while is_running(port) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, ends)
        .await
        .expect("ends");
}

/// A folder with files, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("mcpline-child-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A batch file that starts this program with its arguments.
    fn batch(&self, name: &str) -> &Path {
        let exe = std::env::current_exe().expect("a path");
        let script = format!("@\"{}\" --exact child --nocapture -- %*\r\n", exe.display());
        std::fs::write(self.0.join(name), script).expect("a file");
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[runtimes::test]
async fn closing_the_client_ends_the_child() {
    let client = Client::connect(serving()).await.expect("connects");
    let server = call(&client, "port").await;
    assert!(is_running(&server));
    client.close().await;
    gone(&server).await;
}

#[runtimes::test]
async fn ends_processes_that_the_child_started() {
    let client = Client::connect(serving()).await.expect("connects");
    let grandchild = call(&client, "start").await;
    assert!(is_running(&grandchild));
    client.close().await;
    gone(&grandchild).await;
}

#[runtimes::test]
async fn dropping_the_client_ends_the_child_and_what_it_started() {
    let client = Client::connect(serving()).await.expect("connects");
    let (server, grandchild) = (call(&client, "port").await, call(&client, "start").await);
    drop(client);
    gone(&server).await;
    gone(&grandchild).await;
}

#[tokio::test]
async fn children_end_with_a_host_that_is_killed() {
    let mut host = this("host")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(host.stdout.take().expect("a pipe")).lines();
    let ports = lines
        .map_while(Result::ok)
        .filter_map(|line| Some(line.strip_prefix("port ")?.to_owned()));
    let ports: Vec<String> = ports.take(2).collect();
    assert_eq!(ports.len(), 2);
    assert!(ports.iter().all(|port| is_running(port)));
    host.kill().expect("is running");
    let _ = host.wait();
    for port in &ports {
        gone(port).await;
    }
}

#[runtimes::test]
async fn what_the_server_prints_does_not_reach_the_client() {
    let client = Client::connect(serving()).await.expect("connects");
    assert_eq!(call(&client, "print").await, "true");
    assert_eq!(call(&client, "arguments").await, "[]");
    client.close().await;
}

#[runtimes::test]
async fn a_server_stops_while_its_input_is_open() {
    let client = Client::builder("host", "1")
        .configure(|settings| settings.reconnect = mcpline::client::Reconnect::never())
        .connect(serving())
        .await
        .expect("connects");
    assert_eq!(call(&client, "stop").await, "stopping");
    let ended = tokio::time::timeout(TEST_TIMEOUT, async {
        loop {
            match client.call_tool("port", json!({})).await {
                Err(ClientError::ServerExited { exit, .. }) => return exit,
                Err(error) => assert!(error.to_string().contains("shut"), "{error}"),
                Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    });
    let exit = ended.await.expect("ends").expect("a status");
    assert_eq!(exit, "exit code: 0");
}

#[runtimes::test]
async fn finds_a_batch_file_by_its_name() {
    let folder = Folder::new();
    let path = folder.batch("weather-server.cmd");
    let command = Command::new("weather-server")
        .env("PATH", path)
        .env(ROLE, "server");
    let client = Client::connect(command).await.expect("connects");
    assert_eq!(call(&client, "arguments").await, "[]");
    client.close().await;
}

#[runtimes::test]
async fn arguments_of_a_batch_file_are_not_commands() {
    let folder = Folder::new();
    let path = folder.batch("server.cmd").join("server.cmd");
    let proof = folder.0.join("injected");
    for argument in [
        "\" & echo x > {proof} & \"",
        "& echo x > {proof}",
        "%PATH%",
        "^& echo x > {proof}",
        "a b",
        "100%",
    ] {
        let argument = argument.replace("{proof}", &proof.display().to_string());
        let command = Command::new(&path).arg(&argument).env(ROLE, "server");
        let connected = Client::connect(command).await;
        // An argument that cannot be quoted is refused.
        assert!(connected.is_ok() || argument != "a b");
        if let Ok(client) = connected {
            let given: Vec<String> =
                serde_json::from_str(&call(&client, "arguments").await).expect("JSON");
            assert_eq!(given, [argument.clone()]);
            client.close().await;
        }
        assert!(!proof.exists(), "{argument}");
    }
}

#[runtimes::test]
async fn a_program_that_does_not_exist_is_named() {
    let error = Client::connect(Command::new("no-such-program")).await;
    let text = error.expect_err("no program").to_string();
    assert!(text.contains("no-such-program"), "{text}");
}

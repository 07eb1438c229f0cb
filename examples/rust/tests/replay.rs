//! The example `replay` repeats what the example server has recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Output};

use mcpline::client::{Client, Command, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Revision, Server};
use serde_json::json;

const SERVER: &str = env!("CARGO_BIN_EXE_example-weather");

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mcpline-replay-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Lets the example server record the calls of a client.
async fn record(revision: Revision, file: &Path) {
    let server = Command::new(SERVER).env("MCPLINE_TRAFFIC_FILE", file);
    let client = Client::builder("host", "1")
        .configure(|settings| settings.revisions = vec![revision])
        .on_elicit(|_| async {
            let city = json!({"city": "Bergen"});
            let content = city.as_object().cloned().unwrap_or_default();
            Ok(ElicitResult::new(ElicitAction::Accept).with_content(content))
        })
        .connect(server)
        .await
        .expect("a connection");
    client.list_tools().await.expect("a list");
    for arguments in [json!({"city": "Oslo", "days": 2}), json!({})] {
        client
            .call_tool("forecast", arguments)
            .await
            .expect("a result");
    }
    let params = Raw::from_trusted(r#"{"name":"missing"}"#);
    let missing = client
        .request("tools/call", Some(&params), &RequestOptions::new())
        .await;
    missing.expect_err("no such tool");
    client.close().await;
}

fn replay(file: &Path, at: &str) -> Output {
    let mut program = Program::new(env!("CARGO_BIN_EXE_replay"));
    program.arg(file).arg(at).output().expect("it runs")
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

const SAME: [&str; 5] = [
    "same tools/list",
    "same tools/call \"forecast\"",
    "same tools/call \"forecast\"",
    "same tools/call \"missing\"",
    "4 answers are the same, 0 are different",
];

#[tokio::test]
async fn the_same_server_gives_the_same_answers() {
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        // The oldest revision has no elicitation: the call fails, both times.
        let folder = Folder::new(revision.as_str());
        let file = folder.0.join("traffic.jsonl");
        record(revision, &file).await;
        let output = replay(&file, SERVER);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(lines(&output), SAME, "{revision}");
    }
}

#[tokio::test]
async fn another_server_gives_other_answers() {
    let folder = Folder::new("other");
    let file = folder.0.join("traffic.jsonl");
    record(Revision::V2025_11_25, &file).await;
    let server =
        Server::new("weather", "2.0.0").tool("forecast", "Forecast for a city", async || "rain");
    let http = http(("127.0.0.1", 0), HttpOptions::default())
        .await
        .expect("a free port");
    let (url, stop) = (http.url(), Stop::new());
    let signal = stop.clone();
    let serving = tokio::spawn(async move { server.serve_until(http, signal).await });
    let output = tokio::task::spawn_blocking(move || replay(&file, &url))
        .await
        .expect("no panic");
    stop.stop();
    serving.await.expect("no panic").expect("served");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output);
    assert!(
        lines[0].starts_with("different tools/list: result.tools[0]."),
        "{lines:?}"
    );
    let call = "different tools/call \"forecast\": result.content[0].text was \"{";
    assert!(
        lines[1].starts_with(call) && lines[1].ends_with(" and is \"rain\""),
        "{lines:?}"
    );
    assert_eq!(lines[3], "same tools/call \"missing\"");
    assert_eq!(lines[4], "1 answers are the same, 3 are different");
}

#[test]
fn a_file_of_another_format_is_an_error() {
    let folder = Folder::new("invalid");
    let file = folder.0.join("traffic.jsonl");
    fs::write(&file, "{\"time\":\"today\"}\n").expect("a file");
    let output = replay(&file, SERVER);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("line 1") && error.contains("`time` must be like"),
        "{error}"
    );
}

//! Traffic files: what servers and clients record, and that a recording can be replayed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::TEST_TIMEOUT;
use mcpline::client::{Client, ClientError};
use mcpline::protocol::vocabulary::Root;
use mcpline::server::HandlerError;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, ErrorKind, Revision, Server, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpline-traffic-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Login {
    password: String,
}

fn server(file: Option<&Path>) -> Server {
    let mut settings = Settings::default();
    settings.traffic_file = Some(file.unwrap_or(Path::new("")).to_owned());
    Server::builder("recorded", "1")
        .settings(settings)
        .build()
        .expect("valid settings")
        .tool("login", "Logs in", |login: Login, _: Context| async move {
            match login.password.is_empty() {
                true => "no password",
                false => "welcome",
            }
        })
        .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
            let roots = ctx.list_roots().await?;
            Ok::<_, HandlerError>(format!("{} root", roots.len()))
        })
        .tool("fails", "Fails", |_: Nothing, _: Context| async {
            Err::<String, _>(HandlerError::Tool("no".into()))
        })
}

/// Returns the records of a file when it has those of `expected` responses to calls of tools. A thread writes them, which the
/// last connection of the server waits for.
async fn records(path: &Path, expected: usize) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).expect("each line is JSON");
    let waited = async {
        loop {
            let text = fs::read_to_string(path).unwrap_or_default();
            let records: Vec<Value> = match text.ends_with('\n') {
                true => text.lines().map(read).collect(),
                false => Vec::new(),
            };
            let is_result = |record: &&Value| {
                let result = &record["message"]["result"];
                result.get("content").is_some() || result.get("tools").is_some()
            };
            if records.iter().filter(is_result).count() == expected {
                return records;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, waited)
        .await
        .expect("all records are written")
}

/// The messages of one direction.
fn messages(records: &[Value], direction: &str) -> Vec<Value> {
    let of_direction = records
        .iter()
        .filter(|record| record["direction"] == direction);
    of_direction
        .map(|record| record["message"].clone())
        .collect()
}

/// Connects a client of a revision, that records to a file, and calls each tool.
async fn visit(server: &Server, revision: Revision, file: &Path) {
    let client = Client::builder("host", "1")
        .configure(|settings| {
            settings.revisions = vec![revision];
            settings.traffic_file = Some(file.to_owned());
        })
        .roots([Root::new("/home").expect("a root")])
        .connect(server)
        .await
        .expect("a connection");
    let login = json!({"password": "s3cret"});
    let result = client.call_tool("login", &login).await.expect("a result");
    assert_eq!(result.text(), "welcome");
    let result = client.call_tool("asks", &json!({})).await;
    assert_eq!(result.expect("a result").text(), "1 root");
    let result = client.call_tool("fails", &json!({})).await;
    assert_eq!(result.expect("a result").is_error, Some(true));
    client.close().await;
}

#[runtimes::test]
async fn both_sides_record_the_same_messages_without_their_secrets() {
    for revision in Revision::ALL {
        let folder = Folder::new();
        let (ours, theirs) = (folder.file("server.jsonl"), folder.file("client.jsonl"));
        let server = server(Some(&ours));
        visit(&server, *revision, &theirs).await;
        drop(server);
        let (ours, theirs) = (records(&ours, 3).await, records(&theirs, 3).await);
        assert_eq!(messages(&ours, "received"), messages(&theirs, "sent"));
        assert_eq!(messages(&ours, "sent"), messages(&theirs, "received"));
        assert!(ours.len() > 9, "{ours:?}");
        for (records, role, name) in [(&ours, "server", "recorded"), (&theirs, "client", "host")] {
            for record in records {
                assert_eq!(record["role"], role);
                assert_eq!(record["name"], name);
                assert_eq!(record["transport"], "memory");
                assert!(record["connection"].is_u64());
                assert!(record["bytes"].as_u64() >= Some(40));
                assert!(!record.to_string().contains("s3cret"));
            }
            let last = records.last().expect("a record");
            assert_eq!(last["revision"], revision.as_str());
        }
    }
}

/// Sends what a file says that a server received, and compares what it sends with what the file says.
async fn replay(server: &Server, records: &[Value]) {
    let memory = server.connect();
    for record in records {
        let message = &record["message"];
        if record["direction"] == "received" {
            memory.send(message.to_string());
            continue;
        }
        let sent = memory.receive().await.expect("a message");
        let sent: Value = serde_json::from_slice(&sent).expect("JSON");
        assert_eq!(sent, *message);
    }
}

#[runtimes::test]
async fn a_recording_of_a_handshake_revision_can_be_replayed() {
    let folder = Folder::new();
    let (ours, theirs) = (folder.file("server.jsonl"), folder.file("client.jsonl"));
    let recorded = server(Some(&ours));
    visit(&recorded, Revision::V2025_11_25, &theirs).await;
    drop(recorded);
    replay(&server(None), &records(&ours, 3).await).await;
}

#[runtimes::test]
async fn messages_over_http_have_the_beginning_of_their_session() {
    let folder = Folder::new();
    let (ours, theirs) = (folder.file("server.jsonl"), folder.file("client.jsonl"));
    let server = server(Some(&ours));
    let http = http(("127.0.0.1", 0), HttpOptions::default())
        .await
        .expect("a free port");
    let (url, stop) = (http.url(), Stop::new());
    let (served, signal) = (server.clone(), stop.clone());
    let serving = tokio::spawn(async move { served.serve_until(http, signal).await });
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::builder("host", "1").configure(|settings| {
            settings.revisions = vec![revision];
            settings.traffic_file = Some(theirs.clone());
        });
        let client = client.connect(url.as_str()).await.expect("a connection");
        client.list_tools().await.expect("a list");
        client.close().await;
    }
    stop.stop();
    serving.await.expect("no panic").expect("served");
    drop(server);
    let ours = records(&ours, 2).await;
    let of_call = |method: &str, revision: &str| {
        let found = ours
            .iter()
            .find(|record| record["message"]["method"] == method && record["revision"] == revision);
        found.expect(method).clone()
    };
    let handshake = of_call("tools/list", "2025-11-25");
    assert_eq!(handshake["session"].as_str().map(str::len), Some(8));
    assert_eq!(handshake.get("connection"), None);
    let modern = of_call("tools/list", "2026-07-28");
    assert_eq!(modern.get("session"), None);
    assert!(modern["connection"].is_u64());
    let theirs = records(&theirs, 2).await;
    assert!(theirs.iter().all(|record| record["transport"] == "http"));
    // Several connections carry them, so that their order may differ.
    let sorted = |records: &[Value], direction: &str| {
        let mut texts: Vec<_> = messages(records, direction)
            .iter()
            .map(Value::to_string)
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&theirs, "sent"), sorted(&ours, "received"));
}

#[runtimes::test]
async fn a_file_that_cannot_be_opened_is_an_error() {
    let folder = Folder::new();
    let mut settings = Settings::default();
    settings.traffic_file = Some(folder.0.clone());
    let error = Server::builder("a", "1").settings(settings).build();
    let error = error.expect_err("a folder");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error
            .to_string()
            .starts_with("cannot open the traffic file")
    );
    let client = Client::builder("host", "1")
        .configure(|settings| settings.traffic_file = Some(folder.0.clone()));
    match client.connect(&server(None)).await {
        Err(ClientError::Usage(reason)) => {
            assert!(reason.starts_with("cannot open the traffic file"));
        }
        other => panic!("{other:?}"),
    }
}

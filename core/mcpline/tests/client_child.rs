//! A client and its child process: started, read despite noise, ended with everything it started, restarted.
//!
//! The child is this test program, started to run only [`child`]; the output of libtest is the noise.
#![cfg(target_os = "linux")]
#![allow(
    clippy::print_stdout,
    reason = "the host tells the test what it has started"
)]

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpline::client::{Client, ClientError, Command, ConnectionEvent, Reconnect};
use mcpline::protocol::vocabulary::Resource;
use mcpline::{Context, Revision, Server, transport};
use serde_json::json;

/// Environment variable that makes this process a child; its value is the role.
const ROLE: &str = "MCPLINE_TEST_ROLE";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn server() -> Server {
    let server = Server::new("child", "1");
    let touched = server.clone();
    server
        .tool(
            "touch",
            "Tell of a change",
            move |_: Nothing, _: Context| {
                touched.notify_resource_updated("test://a");
                async { "touched" }
            },
        )
        .tool("pid", "Its process id", |_: Nothing, _: Context| async {
            std::process::id().to_string()
        })
        .tool("exit", "Exit in mid-call", |_: Nothing, _: Context| async {
            eprintln!("I am leaving");
            std::process::exit(7);
            #[allow(unreachable_code)]
            ""
        })
        .resource(Resource::new("test://a", "a"), || async { "a" })
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
            runtime
                .block_on(server().serve(transport::stdio()))
                .expect("served");
            std::process::exit(0);
        }
        "host" => runtime.block_on(host()),
        other => panic!("no role is named {other}"),
    }
}

/// A host that prints which process it has started, and runs until it is killed.
async fn host() {
    let client = Client::connect(stubborn()).await.expect("connects");
    println!("\nserver {}", pid(&client).await);
    std::future::pending::<()>().await;
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

/// A server below a shell, next to a process that ignores the end of its input and SIGTERM. That process prints its id
/// to stderr.
fn stubborn() -> Command {
    let exe = std::env::current_exe().expect("a path");
    let script = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; echo grandchild $$ >&2; while :; do sleep 1; done' </dev/null & \
         {} --exact child --nocapture; wait",
        exe.display()
    );
    Command::new("/bin/sh")
        .args(["-c", &script])
        .env(ROLE, "server")
        .exit_timeout(Duration::from_millis(200))
}

/// Returns a path of a file that does not exist yet.
fn unique_path() -> std::path::PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = std::fs::canonicalize(std::env::temp_dir()).expect("a folder");
    folder.join(format!("mcpline-child-{process}-{count}"))
}

async fn pid(client: &Client) -> i32 {
    let result = client.call_tool("pid", json!({})).await.expect("a result");
    let content = serde_json::to_value(&result.content).expect("JSON");
    content[0]["text"]
        .as_str()
        .expect("text")
        .parse()
        .expect("a number")
}

fn is_alive(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).expect("an id");
    if rustix::process::test_kill_process(pid).is_err() {
        return false;
    }
    // A zombie has ended; its parent has not reaped it yet.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| !stat.contains(") Z"))
}

/// Returns the processes of a group.
fn members(group: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("Linux");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // The group is the third field after the name in brackets.
    let is_member = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace()
            .nth(2)
            .and_then(|of| of.parse().ok())
            == Some(group)
    };
    ids.filter(is_member).collect()
}

/// Waits until a process is gone. The bound only prevents hanging.
async fn gone(pid: i32) {
    for _ in 0..6_000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} is still there");
}

#[runtimes::test]
async fn a_working_directory_that_does_not_exist_is_named() {
    let command = Command::new("true").current_dir("/does/not/exist");
    let error = Client::builder("host", "1").connect(command).await;
    let text = error.expect_err("no directory").to_string();
    assert!(
        text.contains("the working directory /does/not/exist"),
        "{text}"
    );
}

#[runtimes::test]
async fn closing_the_client_ends_the_child() {
    let client = Client::connect(serving()).await.expect("connects");
    let server = pid(&client).await;
    assert!(is_alive(server));
    client.close().await;
    assert!(!is_alive(server));
}

/// Returns what a shell around a server notes when it ends: the end of input and a SIGTERM, which reach both. With
/// `stays`, the shell runs on after the end of its input and needs the signal.
async fn noted(stays: bool, grace: Duration) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("mcpline-notes-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let exe = std::env::current_exe().expect("a path");
    let notes = path.display();
    let stay = if stays {
        "while :; do sleep 0.05; done"
    } else {
        ""
    };
    let script = format!(
        "trap 'echo SIGTERM >> {notes}; exit' TERM; {} --exact child --nocapture; echo end of input >> {notes}; {stay}",
        exe.display()
    );
    let command = Command::new("/bin/sh")
        .args(["-c", &script])
        .env(ROLE, "server")
        .exit_timeout(grace);
    let client = Client::connect(command).await.expect("connects");
    let server = pid(&client).await;
    client.close().await;
    gone(server).await;
    // A child that was killed before it noted anything leaves no file.
    let noted = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    noted
}

#[runtimes::test]
async fn does_not_signal_a_child_that_ends_with_its_input() {
    assert_eq!(
        noted(false, Duration::from_secs(60)).await,
        "end of input\n"
    );
}

#[runtimes::test]
async fn sends_sigterm_to_a_child_that_ignores_the_end_of_its_input() {
    // On a busy machine the child may take longer than the grace period to see the end of its input or to note the
    // signal. A signal that does not wait for the grace period comes first in every attempt.
    let mut grace = Duration::from_millis(500);
    loop {
        let noted = noted(true, grace).await;
        if noted == "end of input\nSIGTERM\n" {
            return;
        }
        grace *= 2;
        assert!(grace < Duration::from_secs(60), "{noted:?}");
    }
}

#[runtimes::test]
async fn restores_subscriptions_after_restarting_the_child() {
    let (sender, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::builder("host", "1")
        .configure(|settings| settings.revisions = vec![Revision::V2026_07_28])
        .on_notification(move |notification| {
            // The test may be over.
            let _ = sender.send(notification.method.as_str().to_owned());
        })
        .connect(serving())
        .await
        .expect("connects");
    client.subscribe("test://a").await.expect("subscribed");
    client
        .call_tool("exit", json!({}))
        .await
        .expect_err("it exits");
    // The new child sends the notification as soon as it has the subscription.
    let notified = async {
        loop {
            client.call_tool("touch", json!({})).await.expect("touched");
            tokio::time::sleep(Duration::from_millis(5)).await;
            while let Ok(method) = updates.try_recv() {
                if method == "notifications/resources/updated" {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), notified)
        .await
        .expect("it is told");
    client.close().await;
}

#[runtimes::test]
async fn dropping_the_client_ends_the_child() {
    let client = Client::connect(serving()).await.expect("connects");
    let server = pid(&client).await;
    drop(client);
    gone(server).await;
}

#[runtimes::test]
async fn ends_stubborn_processes_that_the_child_started() {
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let command = stubborn().on_stderr(move |line| {
        // The test may be over.
        let _ = sender.send(line.to_owned());
    });
    let client = Client::connect(command).await.expect("connects");
    let server = pid(&client).await;
    let grandchild = loop {
        let line = lines.recv().await.expect("the child lives");
        if let Some(pid) = line.strip_prefix("grandchild ") {
            break pid.parse().expect("a number");
        }
    };
    assert!(is_alive(grandchild));
    client.close().await;
    gone(server).await;
    gone(grandchild).await;
}

#[runtimes::test]
async fn killing_the_host_ends_all_processes_of_its_child() {
    let mut host = this("host")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(host.stdout.take().expect("a pipe")).lines();
    let server: i32 = loop {
        let line = lines.next().expect("a line").expect("text");
        if let Some(pid) = line.strip_prefix("server ") {
            break pid.parse().expect("a number");
        }
    };
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(server)).expect("a group");
    let group = group.as_raw_nonzero().get();
    let members = members(group);
    // The shell, the server, and the process that ignores signals.
    assert!(members.len() >= 3, "{members:?}");
    host.kill().expect("killed");
    host.wait().expect("ended");
    for member in members {
        gone(member).await;
    }
}

#[runtimes::test]
async fn errors_report_the_exit_status_and_last_stderr_lines_of_a_child() {
    let command = Command::new("/bin/sh").args(["-c", "echo no configuration >&2; exit 3"]);
    let error = Client::connect(command).await.expect_err("it ends");
    let ClientError::ServerExited { exit, stderr, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(exit.as_deref(), Some("exit status: 3"));
    assert_eq!(stderr, &["no configuration"]);
    assert!(error.to_string().contains("no configuration"), "{error}");

    let error = Client::connect(Command::new("/no/such/program"))
        .await
        .expect_err("there is none");
    assert!(
        matches!(error, ClientError::ServerUnreachable { .. }) && error.is_retry_safe(),
        "{error:?}"
    );
}

#[runtimes::test]
async fn a_call_fails_if_the_child_exits_and_the_next_restarts_it() {
    let client = Client::connect(serving()).await.expect("connects");
    let first = pid(&client).await;
    let error = client
        .call_tool("exit", json!({}))
        .await
        .expect_err("it exits");
    let ClientError::ServerExited {
        exit,
        stderr,
        unsent,
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((exit.as_deref(), *unsent), (Some("exit status: 7"), false));
    assert_eq!(stderr.last().map(String::as_str), Some("I am leaving"));
    assert!(error.is_outcome_unknown());
    let second = pid(&client).await;
    assert_ne!(first, second);
    client.close().await;
}

#[runtimes::test]
async fn a_host_follows_the_connection_and_the_process_of_its_server() {
    let (builder, mut events) = Client::builder("host", "1").connection_events();
    let client = builder.connect(serving()).await.expect("connects");
    let first = pid(&client).await.cast_unsigned();
    assert_eq!(client.pid(), Some(first));
    let lost = client.call_tool("exit", json!({})).await;
    let lost = lost.expect_err("it exits");
    assert_eq!(events.next().await, Some(ConnectionEvent::Connected));
    assert_eq!(events.next().await, Some(ConnectionEvent::Lost(lost)));
    assert_eq!(client.pid(), None);
    let second = pid(&client).await.cast_unsigned();
    assert_eq!(client.pid(), Some(second));
    assert_ne!(first, second);
    client.close().await;
    assert_eq!(client.pid(), None);
    assert_eq!(events.next().await, Some(ConnectionEvent::Retrying));
    assert_eq!(events.next().await, Some(ConnectionEvent::Restored));
    assert_eq!(events.next().await, Some(ConnectionEvent::Closed));
    assert_eq!(events.next().await, None);
}

#[runtimes::test]
async fn a_host_follows_failed_attempts_to_connect_again() {
    let program = unique_path();
    let this = std::env::current_exe().expect("a path");
    std::os::unix::fs::symlink(this, &program).expect("a link");
    let command = Command::new(&program)
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, "server");
    let (builder, mut events) = Client::builder("host", "1").connection_events();
    let client = builder
        .configure(|settings| {
            settings.reconnect.attempts = 2;
            settings.reconnect.first_delay = Duration::from_millis(1);
        })
        .connect(command)
        .await
        .expect("connects");
    assert_eq!(events.next().await, Some(ConnectionEvent::Connected));
    let lost = client.call_tool("exit", json!({})).await;
    let lost = lost.expect_err("it exits");
    assert_eq!(events.next().await, Some(ConnectionEvent::Lost(lost)));
    std::fs::remove_file(&program).expect("removes");
    let first = client.call_tool("pid", json!({})).await;
    let first = first.expect_err("the program is gone");
    assert_eq!(events.next().await, Some(ConnectionEvent::Retrying));
    assert_eq!(events.next().await, Some(ConnectionEvent::Lost(first)));
    let second = client.call_tool("pid", json!({})).await;
    let second = second.expect_err("the program is gone");
    assert_eq!(events.next().await, Some(ConnectionEvent::Retrying));
    let given_up = events.next().await.expect("an event");
    assert_eq!(given_up.error(), Some(&second));
    assert_eq!(given_up.name(), "given_up");
    // Without a further attempt.
    let third = client.call_tool("pid", json!({})).await;
    assert_eq!(third.expect_err("the program is gone"), second);
    client.close().await;
    assert_eq!(events.next().await, Some(ConnectionEvent::Closed));
    assert_eq!(events.next().await, None);
}

#[runtimes::test]
async fn a_dropped_request_ends_the_attempt_to_connect_again() {
    let (builder, mut events) = Client::builder("host", "1").connection_events();
    let client = builder
        .configure(|settings| settings.reconnect.first_delay = Duration::from_secs(600))
        .connect(serving())
        .await
        .expect("connects");
    assert_eq!(events.next().await, Some(ConnectionEvent::Connected));
    let lost = client.call_tool("exit", json!({})).await;
    let lost = ConnectionEvent::Lost(lost.expect_err("it exits"));
    assert_eq!(events.next().await.as_ref(), Some(&lost));
    let calling = client.call_tool("pid", json!({})).into_future();
    let retrying = tokio::select! {
        biased;
        event = events.next() => event,
        _ = calling => panic!("a process does not start so fast"),
    };
    assert_eq!(retrying, Some(ConnectionEvent::Retrying));
    assert_eq!(events.next().await, Some(lost));
    client.close().await;
    assert_eq!(events.next().await, Some(ConnectionEvent::Closed));
}

#[runtimes::test]
async fn a_client_that_does_not_reconnect_gives_up_at_once() {
    let (builder, mut events) = Client::builder("host", "1").connection_events();
    let client = builder
        .configure(|settings| settings.reconnect = Reconnect::never())
        .connect(serving())
        .await
        .expect("connects");
    let lost = client.call_tool("exit", json!({})).await;
    let lost = lost.expect_err("it exits");
    client.close().await;
    assert_eq!(events.next().await, Some(ConnectionEvent::Connected));
    assert_eq!(
        events.next().await,
        Some(ConnectionEvent::Lost(lost.clone()))
    );
    assert_eq!(events.next().await, Some(ConnectionEvent::GivenUp(lost)));
    assert_eq!(events.next().await, Some(ConnectionEvent::Closed));
}

#[runtimes::test]
async fn a_child_gets_no_descriptors_but_its_pipes() {
    let path = unique_path();
    let file = std::fs::File::create(&path).expect("a file");
    // Without the flag that the standard library sets for its own.
    let inheritable = rustix::io::dup(&file).expect("duplicates");
    let client = Client::connect(serving()).await.expect("connects");
    let folder = format!("/proc/{}/fd", pid(&client).await);
    let open = std::fs::read_dir(folder).expect("Linux");
    let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let open: Vec<_> = open.collect();
    assert!(open.len() >= 3, "{open:?}");
    assert!(!open.contains(&path), "{open:?}");
    client.close().await;
    drop(inheritable);
    std::fs::remove_file(&path).expect("removes");
}

#[runtimes::test]
async fn a_server_that_cannot_be_reached_has_no_connection_events() {
    let (builder, mut events) = Client::builder("host", "1").connection_events();
    let error = builder.connect(Command::new("/no/such/program")).await;
    error.expect_err("there is none");
    assert_eq!(events.next().await, None);
}

#[runtimes::test]
async fn does_not_restart_the_child_without_reconnecting() {
    let client = Client::builder("host", "1")
        .configure(|settings| settings.reconnect = Reconnect::never())
        .connect(serving())
        .await
        .expect("connects");
    client
        .call_tool("exit", json!({}))
        .await
        .expect_err("it exits");
    let error = client
        .call_tool("pid", json!({}))
        .await
        .expect_err("it is gone");
    assert!(
        matches!(error, ClientError::ServerExited { .. }),
        "{error:?}"
    );
}

#[runtimes::test]
async fn many_children_leak_no_descriptors() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let client = Client::connect(serving()).await.expect("connects");
    client.close().await;
    let before = descriptors();
    for _ in 0..20 {
        let client = Client::connect(serving()).await.expect("connects");
        client.list_tools().await.expect("a list");
        client.close().await;
    }
    // Other tests start and end children concurrently, so a few descriptors may be open.
    assert!(
        descriptors() <= before + 20,
        "{before} before, {} after",
        descriptors()
    );
}

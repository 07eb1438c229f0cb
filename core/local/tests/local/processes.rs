//! Processes that are killed and stopped in the middle. Each child is this test program, started to run only [`child`].
#![allow(
    clippy::print_stdout,
    reason = "the child tells the test what it has done"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline_local::Local;
use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::{LIFETIME, Scratch, Subscriber, load, read, save, try_save, until};

/// Environment variable that makes this process a child; its value is the directory.
const DIRECTORY: &str = "MCPLINE_TEST_LOCAL";

/// The entry point of children; not a test. Writes until it is killed.
#[tokio::test]
async fn child() {
    let Ok(path) = std::env::var(DIRECTORY) else {
        return;
    };
    let shared = Local::in_directory(path).expect("shared");
    let large = "x".repeat(200_000);
    for number in 0.. {
        let value = format!("{number} {large} {number}");
        // An operation fails if the process is stopped meanwhile, for longer than it may take.
        while try_save(&shared, "session", &value, LIFETIME)
            .await
            .is_err()
        {}
        let event = Bytes::from(format!("{number} {large}"));
        shared.events.append("session/1", number, event);
        while shared.events.flush().await.is_err() {}
        shared.bus.publish(Bytes::from(format!("message {number}")));
        println!("round {number}");
    }
}

struct Writer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn start(scratch: &Scratch) -> Self {
        let program = std::env::current_exe().expect("the program of the tests");
        let mut process = Command::new(program)
            .args(["--exact", "processes::child", "--nocapture"])
            .env(DIRECTORY, scratch.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, output }
    }

    /// Waits until the child has done this many rounds more.
    fn wait(&mut self, rounds: usize) {
        let lines = self.output.by_ref().lines();
        let done = lines.filter(|line| line.as_ref().expect("text").contains("round "));
        assert_eq!(done.take(rounds).count(), rounds, "the child has ended");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("signalled");
    }

    fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }
}

/// The number at both ends of a session that was written as a whole.
fn number_of(session: &[u8]) -> u64 {
    let text = std::str::from_utf8(session).expect("text");
    let parts: Vec<&str> = text.split(' ').collect();
    assert_eq!(parts.len(), 3);
    assert_eq!((parts[1].len(), parts[0]), (200_000, parts[2]));
    parts[0].parse().expect("a number")
}

#[tokio::test]
async fn what_a_killed_process_wrote_is_whole() {
    for rounds in [1, 2, 3, 5, 8, 13, 40] {
        let scratch = Scratch::new();
        let shared = scratch.share();
        let mut writer = Writer::start(&scratch);
        writer.wait(rounds);
        writer.kill();
        let done = rounds as u64 - 1;
        let session = load(&shared, "session").await.expect("saved");
        assert!(number_of(&session) >= done);
        let events = read(&shared, "session/1", done.saturating_sub(5)).await;
        for (number, event) in (done.saturating_sub(5) + 1..).zip(events.expect("kept")) {
            let text = std::str::from_utf8(&event).expect("text");
            assert_eq!(text.len(), number.to_string().len() + 1 + 200_000);
            assert!(text.starts_with(&format!("{number} ")));
        }
    }
}

#[tokio::test]
async fn the_others_go_on_without_a_killed_process() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let received = Subscriber::new(&b);
    let mut writer = Writer::start(&scratch);
    writer.wait(3);
    a.bus.publish(Bytes::from_static(b"before"));
    received.until_received("message 2").await;
    received.until_received("before").await;
    assert_eq!(scratch.files("bus").len(), 3);
    writer.kill();
    save(&a, "session", "continued", LIFETIME).await;
    assert_eq!(
        load(&b, "session").await.as_deref(),
        Some(&b"continued"[..])
    );
    a.bus.publish(Bytes::from_static(b"after"));
    received.until_received("after").await;
    until("its socket is removed", || async {
        a.bus.publish(Bytes::from_static(b"more"));
        scratch.files("bus").len() == 2
    })
    .await;
    // Another takes its place.
    let mut writer = Writer::start(&scratch);
    writer.wait(1);
    received.until_received("message 0").await;
    writer.kill();
}

#[tokio::test]
async fn a_stopped_process_blocks_no_other() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let received = Subscriber::new(&b);
    let mut writer = Writer::start(&scratch);
    writer.wait(3);
    writer.signal(Signal::STOP);
    let began = Instant::now();
    for number in 0..100 {
        save(&a, "session", &number.to_string(), LIFETIME).await;
        a.events
            .append("session/2", number, Bytes::from_static(b"event"));
        // More than the socket of the stopped process holds.
        a.bus.publish(Bytes::from(vec![b'x'; 100_000]));
    }
    a.bus.publish(Bytes::from_static(b"last"));
    received.until_received("last").await;
    assert_eq!(load(&b, "session").await.as_deref(), Some(&b"99"[..]));
    assert_eq!(
        read(&a, "session/2", 0).await.map(|kept| kept.len()),
        Some(99)
    );
    // No single operation timed out (2 s).
    assert!(began.elapsed() < Duration::from_secs(60));
    writer.signal(Signal::CONT);
    writer.wait(1);
    writer.kill();
}

#[tokio::test]
async fn a_directory_that_was_removed_is_created_again() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    save(&a, "one", "value", LIFETIME).await;
    // In one step, while both may write into it.
    let removed = Scratch::new();
    std::fs::rename(scratch.path(), removed.path().join("old")).expect("removed");
    assert_eq!(load(&b, "one").await, None);
    a.events.append("one/1", 0, Bytes::from_static(b"event"));
    save(&a, "one", "value", LIFETIME).await;
    assert!(load(&b, "one").await.is_some());
    assert_eq!(read(&a, "one/1", 0).await, Some(Vec::new()));
    // The sockets come back within a tick.
    let received = Subscriber::new(&b);
    until("messages are received again", || async {
        a.bus.publish(Bytes::from_static(b"message"));
        !received.received().is_empty()
    })
    .await;
}

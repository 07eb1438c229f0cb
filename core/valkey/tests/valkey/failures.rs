//! Behaviour while the server is down, paused, out of memory, slow or without its data, and after it recovers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline::sharing::{BucketPolicy, SaveOutcome, Sharing};

use crate::link::NarrowLink;
use crate::logged;
use crate::server::{
    LIFETIME, Server, Subscriber, TIMEOUT, connect_briefly, until, until_loaded, until_read,
};

async fn save(sharing: &Sharing, id: &str, value: &'static str) -> Result<(), String> {
    save_instead_of(sharing, id, value, "").await
}

async fn save_instead_of(
    sharing: &Sharing,
    id: &str,
    value: &'static str,
    replaces: &'static str,
) -> Result<(), String> {
    let [value, replaces] = [value, replaces].map(|text| Bytes::from_static(text.as_bytes()));
    let saved = sharing.sessions.save(id, value, replaces, LIFETIME).await;
    match saved.map_err(|error| error.to_string())? {
        SaveOutcome::Saved => Ok(()),
        SaveOutcome::Conflict(stored) => Err(format!("{stored:?} is stored")),
    }
}

/// Operations end within twice the timeout. The rest is for a busy machine.
const BOUND: Duration = TIMEOUT
    .saturating_mul(2)
    .saturating_add(Duration::from_secs(10));

/// All operations fail, typed and in time.
async fn all_fail(sharing: &Sharing) {
    let began = Instant::now();
    save(sharing, "failing", "value")
        .await
        .expect_err("not saved");
    sharing
        .sessions
        .load("failing")
        .await
        .expect_err("not loaded");
    sharing
        .events
        .read("failing/1", 0)
        .await
        .expect_err("not read");
    sharing
        .sessions
        .remove("failing")
        .await
        .expect_err("not removed");
    let policy = BucketPolicy {
        interval: LIFETIME,
        burst: 1,
    };
    let buckets = sharing.buckets.as_ref().expect("buckets");
    let taking = buckets.take("failing", policy, 1).await;
    taking.expect_err("nothing taken");
    assert!(began.elapsed() < BOUND * 4, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_written_to_once_it_is_back() {
    let mut server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    save(&a, "before", "value").await.expect("saves");
    server.kill();
    all_fail(&a).await;
    save(&a, "during", "value").await.expect_err("not yet");
    a.events.append("during/1", 0, Bytes::from_static(b"zero"));
    a.events.append("during/1", 1, Bytes::from_static(b"one"));
    for message in ["first", "second", "third"] {
        a.bus.publish(Bytes::from_static(message.as_bytes()));
    }
    server.run();
    until_loaded(&b, "during", Some("value")).await;
    until_read(&b, "during/1", 0, &["one"]).await;
    assert_eq!(at_b.until("third").await, ["first", "second", "third"]);
    // It keeps nothing on disk.
    until_loaded(&b, "before", None).await;
    until("saving succeeds", || async {
        save(&b, "after", "value").await.ok()
    })
    .await;
    until_loaded(&a, "after", Some("value")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_two_operations_fails_neither() {
    let mut server = Server::start();
    let a = connect_briefly(&server.url());
    save(&a, "one", "first").await.expect("saves");
    a.sessions.load("one").await.expect("loads");
    server.kill();
    server.run();
    save_instead_of(&a, "one", "second", "first")
        .await
        .expect("saves");
    let loaded = a.sessions.load("one").await.expect("loads");
    assert_eq!(loaded.as_deref(), Some(&b"second"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_later_is_found() {
    let mut server = Server::prepare(&[]);
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::local(&b.bus);
    all_fail(&a).await;
    server.run();
    until("saving succeeds", || async {
        save(&a, "one", "value").await.ok()
    })
    .await;
    until_loaded(&b, "one", Some("value")).await;
    until("messages arrive", || async {
        a.bus.publish(Bytes::from_static(b"message"));
        (!at_b.received().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_fails_operations_in_time_and_loses_nothing() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    a.events.append("one/1", 0, Bytes::from_static(b"zero"));
    until_read(&b, "one/1", 0, &[]).await;
    server.pause();
    all_fail(&a).await;
    // By now failures are immediate.
    let began = Instant::now();
    save(&a, "one", "value").await.expect_err("not saved");
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    a.events.append("one/1", 1, Bytes::from_static(b"one"));
    a.events.append("one/1", 2, Bytes::from_static(b"two"));
    a.bus.publish(Bytes::from_static(b"first"));
    a.bus.publish(Bytes::from_static(b"last"));
    server.resume();
    until_loaded(&b, "one", Some("value")).await;
    until_read(&b, "one/1", 0, &["one", "two"]).await;
    assert_eq!(at_b.until("last").await, ["first", "last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_to_a_paused_server_is_not_done_twice() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    // On a connection that exists, so that the server has these in its socket when it goes on.
    server.pause();
    for message in ["first", "second"] {
        a.bus.publish(Bytes::from_static(message.as_bytes()));
    }
    a.events.append("one/1", 0, Bytes::from_static(b"zero"));
    save(&a, "one", "value")
        .await
        .expect_err("not saved in time");
    a.bus.publish(Bytes::from_static(b"last"));
    server.resume();
    assert_eq!(at_b.until("last").await, ["first", "second", "last"]);
    until_read(&b, "one/1", 0, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_changes_while_its_save_may_be_executed_is_saved() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    save(&a, "one", "first").await.expect("saves");
    // The server has the second value in its socket when it goes on.
    server.pause();
    for value in ["second", "third", "fourth"] {
        save_instead_of(&a, "one", value, "first")
            .await
            .expect_err("not in time");
    }
    server.resume();
    until_loaded(&b, "one", Some("fourth")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_out_of_memory_refuses_writes_and_is_read() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    save(&a, "before", "value").await.expect("saves");
    let _: String = server.command("CONFIG SET maxmemory 1").await;
    let error = save(&a, "during", "value").await.expect_err("no memory");
    assert!(error.contains("refuses writes at present"), "{error}");
    a.events.append("during/1", 0, Bytes::from_static(b"zero"));
    a.bus.publish(Bytes::from_static(b"message"));
    until_loaded(&b, "before", Some("value")).await;
    let _: String = server.command("CONFIG SET maxmemory 0").await;
    until_loaded(&b, "during", Some("value")).await;
    until_read(&b, "during/1", 0, &[]).await;
    at_b.until("message").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_outage_is_logged_like_its_beginning() {
    logged::install();
    let server = Server::start();
    let a = connect_briefly(&server.url());
    let _: String = server.command("CONFIG SET maxmemory 1").await;
    save(&a, "one", "value").await.expect_err("no memory");
    let _: String = server.command("CONFIG SET maxmemory 0").await;
    // Other tests log the same lines.
    for line in [
        "cannot write shared state to Valkey; retrying",
        "Valkey can be written to again",
    ] {
        until(line, || async { logged::is_warned_of(line).then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_outage_is_logged_by_processes_that_only_read() {
    logged::install();
    let mut server = Server::start();
    let reads = server.connect();
    let _subscriber = Subscriber::local(&reads.bus);
    let beginning = "cannot receive messages from other processes over Valkey; retrying";
    let end = "messages from other processes over Valkey are received again";
    server.kill();
    until(beginning, || async {
        logged::is_warned_of(beginning).then_some(())
    })
    .await;
    server.run();
    // Other tests log the same lines.
    until(end, || async { logged::is_warned_of(end).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_do_not_overtake_one_that_is_written_again() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let _: String = server.command("CONFIG SET maxmemory 1").await;
    a.events.append("one/1", 0, Bytes::from_static(b"zero"));
    // Needs no memory, because the stream does not exist yet.
    a.events.end("one/1", 0);
    save(&a, "two", "value").await.expect_err("no memory");
    let _: String = server.command("CONFIG SET maxmemory 0").await;
    until("the stream ends", || async {
        let read = b.events.read("one/1", 0).await.ok()??;
        read.ended.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_operation_does_not_stop_the_next_ones() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let _: String = server
        .command("SET mcpline:1:{one}:streams unexpected")
        .await;
    a.events.append("one/1", 0, Bytes::from_static(b"zero"));
    save(&a, "one", "value").await.expect_err("refused");
    save(&a, "two", "value").await.expect("saves");
    until_loaded(&b, "one", Some("value")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_removed_while_memory_is_short_does_not_come_back() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    save(&a, "one", "first").await.expect("saves");
    let _: String = server.command("CONFIG SET maxmemory 1").await;
    save_instead_of(&a, "one", "second", "first")
        .await
        .expect_err("no memory");
    // Removing needs no memory, and gives some back.
    let _ = a.sessions.remove("one").await;
    until_loaded(&b, "one", None).await;
    let _: String = server.command("CONFIG SET maxmemory 0").await;
    until("saving succeeds", || async {
        save(&a, "two", "value").await.ok()
    })
    .await;
    assert_eq!(b.sessions.load("one").await.expect("loads"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_waited_for() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    save(&a, "one", "first").await.expect("saves");
    let pause = TIMEOUT / 4;
    let _: String = server
        .command(&format!("CLIENT PAUSE {} ALL", pause.as_millis()))
        .await;
    let (saved, loaded) = tokio::join!(
        save_instead_of(&a, "one", "second", "first"),
        b.sessions.load("one")
    );
    saved.expect("saves");
    assert!(loaded.expect("loads").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_becomes_a_replica_is_left_by_all_connections() {
    let server = Server::start();
    let a = connect_briefly(&server.url());
    let _local = Subscriber::local(&a.bus);
    save(&a, "one", "first").await.expect("saves");
    a.sessions.load("one").await.expect("loads");
    let clients = || async {
        let clients: String = server.command("CLIENT LIST").await;
        let ids = clients.split_whitespace();
        let ids: Vec<String> = ids
            .filter_map(|field| field.strip_prefix("id="))
            .map(str::to_owned)
            .collect();
        ids
    };
    let before = clients().await;
    assert!(before.len() >= 3, "{before:?}");
    // Its primary is unreachable, so that it stays as it is.
    let _: String = server.command("REPLICAOF 127.0.0.1 1").await;
    let error = save_instead_of(&a, "one", "second", "first")
        .await
        .expect_err("a replica");
    assert!(error.contains("is a replica"), "{error}");
    until("all connections are new", || async {
        a.sessions.load("one").await.expect("loads");
        let now = clients().await;
        (!now.iter().any(|client| before.contains(client))).then_some(())
    })
    .await;
    let _: String = server.command("REPLICAOF NO ONE").await;
    until("saving succeeds", || async {
        save_instead_of(&a, "one", "third", "first").await.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_are_loaded_again() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    save(&a, "one", "first").await.expect("saves");
    let _: String = server.command("SCRIPT FLUSH").await;
    a.events.append("one/1", 0, Bytes::from_static(b"zero"));
    a.events.append("one/1", 1, Bytes::from_static(b"one"));
    until_read(&b, "one/1", 0, &["one"]).await;
    save_instead_of(&a, "one", "second", "first")
        .await
        .expect("saves");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_data_does_not_stop_the_bus() {
    let server = Server::start();
    let (a, b) = (
        connect_briefly(&server.url()),
        connect_briefly(&server.url()),
    );
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    let _: String = server.command("FLUSHALL").await;
    let _: u64 = server.command("CLIENT KILL TYPE normal SKIPME yes").await;
    a.bus.publish(Bytes::from_static(b"message"));
    assert_eq!(at_b.until("message").await, ["message"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_read_in_time_does_not_hold_back_the_next_ones() {
    let server = Server::start();
    let link = NarrowLink::start(server.port, 2 * 1024 * 1024).await;
    let a = connect_briefly(&server.url());
    let b = connect_briefly(&link.url());
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    a.bus.publish(Bytes::from_static(b"first"));
    a.bus.publish(Bytes::from(vec![b'x'; 4 * 1024 * 1024]));
    a.bus.publish(Bytes::from_static(b"last"));
    assert_eq!(at_b.until("last").await, ["first", "last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_reported_without_it_and_may_become_right() {
    let server = Server::start();
    let _: String = server.command("CONFIG SET requirepass right").await;
    let url = |password: &str| format!("valkey://:{password}@127.0.0.1:{}", server.port);
    let wrong = connect_briefly(&url("secret"));
    let error = save(&wrong, "one", "value")
        .await
        .expect_err("a wrong password");
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    wrong
        .sessions
        .load("one")
        .await
        .expect_err("a wrong password");
    let right = connect_briefly(&url("right"));
    save(&right, "two", "value").await.expect("saves");
    let client = redis::Client::open(url("right")).expect("a client");
    let mut admin = client
        .get_multiplexed_async_connection()
        .await
        .expect("connects");
    let mut change = redis::cmd("CONFIG");
    change.arg("SET").arg("requirepass").arg("secret");
    let () = change.query_async(&mut admin).await.expect("changes");
    until_loaded(&wrong, "one", Some("value")).await;
}

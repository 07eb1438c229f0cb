//! The four traits, between two processes of a service.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline::Settings;
use mcpline::middleware::RateLimit;
use mcpline::protocol::vocabulary::Resource;
use mcpline::sharing::{
    BucketPolicy, LoggedEvents, SaveOutcome, SharedBuckets, Sharing, TakeOutcome, UseOutcome,
};
use mcpline::transport::MemoryTransport;
use mcpline_valkey::Valkey;

use crate::server::{
    LIFETIME, Server, Subscriber, WAIT_TIMEOUT, options, until, until_loaded, until_read,
};

async fn save(sharing: &Sharing, id: &str, value: &'static str, lifetime: Duration) {
    let value = Bytes::from_static(value.as_bytes());
    let stored = sharing.sessions.load(id).await.expect("loads");
    let replaces = stored.unwrap_or_default();
    let saved = sharing.sessions.save(id, value, replaces, lifetime).await;
    assert_eq!(saved.expect("saves"), SaveOutcome::Saved);
}

#[tokio::test]
async fn a_session_that_another_process_has_changed_is_not_replaced() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    let save = async |sharing: &Sharing, value: &'static str, replaces: &'static str| {
        let [value, replaces] = [value, replaces].map(|text| Bytes::from_static(text.as_bytes()));
        let saved = sharing
            .sessions
            .save("one", value, replaces, LIFETIME)
            .await;
        saved.expect("saves or not")
    };
    let conflict =
        |stored: &'static str| SaveOutcome::Conflict(Bytes::from_static(stored.as_bytes()));
    assert_eq!(save(&a, "first", "").await, SaveOutcome::Saved);
    assert_eq!(save(&a, "second", "first").await, SaveOutcome::Saved);
    assert_eq!(save(&b, "third", "first").await, conflict("second"));
    assert_eq!(save(&b, "first", "first").await, conflict("second"));
    until_loaded(&b, "one", Some("second")).await;
    // The same again only lives longer.
    assert_eq!(save(&a, "second", "first").await, SaveOutcome::Saved);
    assert_eq!(save(&b, "third", "second").await, SaveOutcome::Saved);
    until_loaded(&a, "one", Some("third")).await;
    b.sessions.remove("one").await.expect("removes");
    assert_eq!(save(&a, "fourth", "second").await, SaveOutcome::Saved);
    until_loaded(&a, "one", None).await;
}

#[tokio::test]
async fn a_session_is_found_by_other_processes_until_it_is_removed() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    assert_eq!(b.sessions.load("one").await.expect("loads"), None);
    save(&a, "one", "first", LIFETIME).await;
    save(&a, "one", "second", LIFETIME).await;
    let loaded = b.sessions.load("one").await.expect("loads");
    assert_eq!(loaded.as_deref(), Some(&b"second"[..]));
    b.sessions.remove("one").await.expect("removes");
    assert_eq!(a.sessions.load("one").await.expect("loads"), None);
}

#[tokio::test]
async fn a_key_is_used_once_by_all_processes() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    let record_use = async |process: &Sharing, key: &str, lifetime: Duration| {
        let used = process.sessions.record_use(key, lifetime).await;
        used.expect("records")
    };
    for number in 0..50 {
        let key = number.to_string();
        // The first two wait in the same queue.
        let (one, two, three) = tokio::join!(
            record_use(&a, &key, LIFETIME),
            record_use(&a, &key, LIFETIME),
            record_use(&b, &key, LIFETIME)
        );
        let first = [one, two, three]
            .iter()
            .filter(|&&used| used == UseOutcome::First)
            .count();
        assert_eq!(first, 1);
    }
    // A key may be that of a session.
    assert_eq!(b.sessions.load("1").await.expect("loads"), None);
    save(&a, "1", "value", LIFETIME).await;
    assert_eq!(record_use(&b, "1", LIFETIME).await, UseOutcome::Repeated);
    let short = Duration::from_millis(200);
    assert_eq!(record_use(&a, "short", short).await, UseOutcome::First);
    until("its lifetime is over", || async {
        let used = record_use(&b, "short", LIFETIME).await;
        (used == UseOutcome::First).then_some(())
    })
    .await;
}

fn buckets(sharing: &Sharing) -> &dyn SharedBuckets {
    sharing.buckets.as_deref().expect("buckets")
}

async fn take(sharing: &Sharing, key: &str, policy: BucketPolicy, tokens: u32) -> TakeOutcome {
    let taken = buckets(sharing).take(key, policy, tokens).await;
    taken.expect("takes")
}

#[tokio::test]
async fn all_processes_take_the_tokens_of_a_bucket_together() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    // None is added while the test runs.
    let policy = BucketPolicy {
        interval: LIFETIME,
        burst: 100,
    };
    let take_all = async |process: &Sharing| {
        let mut taken = 0;
        loop {
            match take(process, "one", policy, 3).await {
                TakeOutcome::Taken(tokens) => taken += tokens,
                TakeOutcome::Empty(wait) => {
                    let passed = LIFETIME - wait;
                    assert!(passed < Duration::from_secs(600), "{wait:?}");
                    return taken;
                }
            }
        }
    };
    let (at_a, at_b) = tokio::join!(take_all(&a), take_all(&b));
    assert_eq!(at_a + at_b, policy.burst);
    let giving = buckets(&a).give_back("one", policy, 2);
    giving.await.expect("gives back");
    assert_eq!(take_all(&b).await, 2);
    // It never has more than when it is full, and is not kept then.
    let giving = buckets(&a).give_back("one", policy, 200);
    giving.await.expect("gives back");
    let keys: Vec<String> = server.command("KEYS *bucket*").await;
    assert_eq!(keys, Vec::<String>::new());
    assert_eq!(take_all(&b).await, policy.burst);
}

#[tokio::test]
async fn a_bucket_gets_tokens_by_the_clock_of_the_server() {
    let server = Server::start();
    let a = server.connect();
    let policy = |millis: u64, burst: u32| BucketPolicy {
        interval: Duration::from_millis(millis),
        burst,
    };
    assert_eq!(
        take(&a, "short", policy(200, 2), 5).await,
        TakeOutcome::Taken(2)
    );
    until("there is another token", || async {
        let taken = take(&a, "short", policy(200, 2), 1).await;
        (taken == TakeOutcome::Taken(1)).then_some(())
    })
    .await;
    until("it is full and dropped", || async {
        let keys: Vec<String> = server.command("KEYS *bucket*").await;
        keys.is_empty().then_some(())
    })
    .await;
    // Intervals that are no whole numbers of microseconds lose no token, and neither do long ones.
    for (key, interval) in [("sevenths", LIFETIME / 7), ("huge", Duration::MAX / 1_000)] {
        let policy = BucketPolicy { interval, burst: 7 };
        for _ in 0..7 {
            assert_eq!(
                take(&a, key, policy, 1).await,
                TakeOutcome::Taken(1),
                "{key}"
            );
        }
        let empty = take(&a, key, policy, 1).await;
        assert!(matches!(empty, TakeOutcome::Empty(_)), "{key}");
    }
    // The time of another server that it was a replica of.
    let far = format!("SET mcpline:1:{{ahead}}:bucket {}", u64::MAX / 1_000);
    let _: String = server.command(&far).await;
    let TakeOutcome::Empty(wait) = take(&a, "ahead", policy(3_600_000, 2), 1).await else {
        panic!("it has no token");
    };
    assert!(wait <= LIFETIME, "{wait:?}");
    // Time fills it from then on.
    let mut remaining: Vec<Duration> = Vec::new();
    for _ in 0..2 {
        let TakeOutcome::Empty(wait) = take(&a, "ahead", policy(3_600_000, 2), 1).await else {
            panic!("it has no token");
        };
        remaining.push(wait);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(remaining[1] < remaining[0], "{remaining:?}");
}

/// Lists the resources of a server. Returns whether its limit admits that.
async fn list(client: &MemoryTransport) -> bool {
    client.send(
        r#"{"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}}"#,
    );
    let answer = client.receive().await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    let is_refused = answer.contains("too many requests");
    assert!(is_refused || answer.contains(r#""resources":"#), "{answer}");
    !is_refused
}

#[tokio::test]
async fn servers_reach_a_rate_limit_together() {
    let valkey = Server::start();
    let clients = [valkey.connect(), valkey.connect()].map(|sharing| {
        let mut settings = Settings::default();
        settings.sharing = Some(sharing);
        let limit = RateLimit::new(1, LIFETIME).with_burst(40).shared("lists");
        mcpline::Server::builder("limited", "1")
            .settings(settings)
            .build()
            .expect("a server")
            .resource(Resource::new("file:///a", "a"), || async { "a" })
            .middleware(limit)
            .connect()
    });
    let mut admitted = 0;
    let began = Instant::now();
    for client in clients.iter().cycle() {
        admitted += u32::from(list(client).await);
        if admitted == 40 {
            break;
        }
        assert!(began.elapsed() < WAIT_TIMEOUT, "{admitted} were admitted");
    }
    for client in &clients {
        assert!(!list(client).await);
    }
}

#[tokio::test]
async fn sessions_and_their_streams_end_with_their_lifetime() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    a.events.append("short/1", 0, Bytes::from_static(b"event"));
    save(&a, "short", "value", Duration::from_millis(200)).await;
    save(&a, "endless", "value", Duration::MAX).await;
    a.events
        .append("endless/1", 0, Bytes::from_static(b"event"));
    until_loaded(&b, "short", None).await;
    until("nothing of it is left", || async {
        let keys: Vec<String> = server.command("KEYS mcpline:1:{short}*").await;
        keys.is_empty().then_some(())
    })
    .await;
    assert!(b.sessions.load("endless").await.expect("loads").is_some());
    let left: i64 = server.command("PTTL mcpline:1:{endless}:streams:1").await;
    assert_eq!(left, -1);
}

#[tokio::test]
async fn every_key_has_a_lifetime() {
    let server = Server::start();
    let a = server.connect();
    let policy = BucketPolicy {
        interval: LIFETIME,
        burst: 1,
    };
    let _ = take(&a, "one", policy, 1).await;
    a.events
        .append("unsaved/1", 0, Bytes::from_static(b"event"));
    save(&a, "saved", "value", LIFETIME).await;
    a.events.append("saved/1", 0, Bytes::from_static(b"event"));
    a.bus.publish(Bytes::from_static(b"message"));
    // Written after all others.
    save(&a, "last", "value", LIFETIME).await;
    let keys: Vec<String> = server.command("KEYS *").await;
    assert_eq!(keys.len(), 9, "{keys:?}");
    for key in keys {
        let left: i64 = server.command(&format!("PTTL {key}")).await;
        assert!(left > 0, "{key}: {left}");
    }
}

#[tokio::test]
async fn a_stream_is_read_from_any_event_on() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    assert_eq!(b.events.read("one/1", 0).await.expect("reads"), None);
    for (number, event) in (4..).zip(["four", "", "six"]) {
        a.events
            .append("one/1", number, Bytes::from_static(event.as_bytes()));
    }
    until_read(&b, "one/1", 3, &["four", "", "six"]).await;
    until_read(&b, "one/1", 5, &["six"]).await;
    until_read(&b, "one/1", 6, &[]).await;
    for unknown in [2, 7, u64::MAX] {
        assert_eq!(b.events.read("one/1", unknown).await.expect("reads"), None);
    }
    a.events.end("one/1", 6);
    a.events.end("one/2", 0);
    until("it ends", || async {
        b.events.read("one/1", 6).await.ok()??.ended.then_some(())
    })
    .await;
    let rest = b.events.read("one/1", 5).await.expect("reads");
    assert_eq!(
        rest,
        Some(LoggedEvents::new(vec![Bytes::from_static(b"six")], true))
    );
    assert_eq!(b.events.read("one/2", 0).await.expect("reads"), None);
}

#[tokio::test]
async fn a_stream_whose_last_event_was_lost_does_not_end_without_it() {
    let server = Server::start();
    let a = server.connect();
    append(&a, "one/1", 0..3).await;
    append(&a, "one/2", 0..2).await;
    // Event 3 is lost.
    a.events.end("one/1", 3);
    save(&a, "last", "value", LIFETIME).await;
    for after in 0..3 {
        assert_eq!(a.events.read("one/1", after).await.expect("reads"), None);
    }
    // A client that has it has missed nothing.
    let rest = a.events.read("one/1", 3).await.expect("reads");
    assert_eq!(rest, Some(LoggedEvents::new(Vec::new(), true)));
    let total: String = server.command("HGET mcpline:1:{one}:streams *").await;
    assert_eq!(total, format!("2 {}", 2 * 228));
}

#[tokio::test]
async fn a_long_stream_is_read_in_parts() {
    let server = Server::start();
    let a = server.connect();
    let large = Bytes::from(vec![b'x'; 600 * 1024]);
    for number in 0..5 {
        a.events.append("large/1", number, large.clone());
    }
    for number in 0..1_000 {
        a.events.append("many/1", number, Bytes::new());
    }
    a.events.end("large/1", 4);
    a.events.end("many/1", 999);
    save(&a, "last", "value", LIFETIME).await;
    for (stream, last, most) in [("large/1", 4, 1), ("many/1", 999, 256)] {
        let mut after = 0;
        while after < last {
            let part = a.events.read(stream, after).await.expect("reads");
            let part = part.expect("it is kept");
            assert!((1..=most).contains(&part.events.len()), "{stream}");
            after += part.events.len() as u64;
            assert_eq!(part.ended, after == last, "{stream} after {after}");
        }
    }
}

#[tokio::test]
async fn a_removed_session_takes_its_streams_along() {
    let server = Server::start();
    let a = server.connect();
    for stream in ["one/0", "one/1.ab", "one-more/1"] {
        a.events.append(stream, 0, Bytes::from_static(b"event"));
    }
    save(&a, "one", "value", LIFETIME).await;
    a.sessions.remove("one").await.expect("removes");
    let keys: Vec<String> = server.command("KEYS mcpline:1:{one}*").await;
    assert_eq!(keys, ["mcpline:1:{one}"]);
    let left: u64 = server.command("PTTL mcpline:1:{one}").await;
    assert!(left <= 300_000, "{left}");
    until_read(&a, "one-more/1", 0, &[]).await;
}

#[tokio::test]
async fn a_removed_session_is_not_restored_by_another_process() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    save(&a, "one", "first", LIFETIME).await;
    a.sessions.remove("one").await.expect("removes");
    b.events.append("one/1", 0, Bytes::from_static(b"event"));
    save(&b, "one", "second", LIFETIME).await;
    assert_eq!(a.sessions.load("one").await.expect("loads"), None);
    assert_eq!(a.events.read("one/1", 0).await.expect("reads"), None);
}

#[tokio::test]
async fn a_stream_keeps_its_latest_events_within_its_limits() {
    let server = Server::start();
    let a = server.connect();
    for number in 0..1_500 {
        a.events.append("many/1", number, Bytes::new());
    }
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    for number in 0..8 {
        a.events.append("large/1", number, large.clone());
    }
    // However large, the latest event is kept.
    a.events.append("huge/1", 0, large.clone());
    a.events
        .append("huge/1", 1, Bytes::from(vec![b'x'; 5 * 1024 * 1024]));
    save(&a, "last", "value", LIFETIME).await;
    let count = |stream, after| count(&a, stream, after);
    assert_eq!(count("many/1", 1_499 - 1_024).await, Some(1_024));
    assert_eq!(count("many/1", 1_499 - 1_025).await, None);
    assert_eq!(count("large/1", 4).await, Some(3));
    assert_eq!(count("large/1", 3).await, None);
    assert_eq!(count("huge/1", 0).await, Some(1));
}

#[tokio::test]
async fn a_session_keeps_its_latest_streams_within_its_limits() {
    let server = Server::start();
    let a = server.connect();
    for stream in 0..100 {
        a.events.append(&format!("many/{stream}"), 0, Bytes::new());
    }
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    for number in 0..5 {
        for stream in 0..4 {
            a.events
                .append(&format!("large/{number}.{stream}"), 0, large.clone());
        }
    }
    save(&a, "last", "value", LIFETIME).await;
    let kept = |stream: String| {
        let events = a.events.clone();
        async move { events.read(&stream, 0).await.expect("reads").is_some() }
    };
    assert!(!kept("many/35".to_owned()).await);
    assert!(kept("many/36".to_owned()).await);
    // 15 of a little more than a MiB.
    assert!(!kept("large/1.0".to_owned()).await);
    assert!(kept("large/1.1".to_owned()).await);
    assert!(kept("large/4.3".to_owned()).await);
}

#[tokio::test]
async fn events_after_a_gap_cannot_be_resumed_from_before_it() {
    let server = Server::start();
    let a = server.connect();
    for number in [0, 1, 5, 6] {
        a.events
            .append("one/1", number, Bytes::from_static(b"event"));
    }
    // Written again after a lost response.
    a.events.append("one/1", 5, Bytes::from_static(b"again"));
    until_read(&a, "one/1", 4, &["event", "event"]).await;
    assert_eq!(a.events.read("one/1", 1).await.expect("reads"), None);
}

/// Counts the events after this one, in all parts.
async fn count(a: &Sharing, stream: &str, after: u64) -> Option<u64> {
    let mut next = after;
    loop {
        let part = a.events.read(stream, next).await.expect("reads")?;
        next += part.events.len() as u64;
        if !part.has_more {
            return Some(next - after);
        }
    }
}

/// Appends events with these numbers, and waits until they are written.
async fn append(a: &Sharing, stream: &str, numbers: std::ops::Range<u64>) {
    for number in numbers {
        a.events
            .append(stream, number, Bytes::from(vec![b'x'; 100]));
    }
    save(a, "last", "value", LIFETIME).await;
}

#[tokio::test]
async fn a_stream_goes_on_after_its_events_were_evicted_without_the_index() {
    let server = Server::start();
    let a = server.connect();
    append(&a, "one/1", 0..1_100).await;
    append(&a, "one/2", 0..10).await;
    let _: u64 = server.command("DEL mcpline:1:{one}:streams:1").await;
    append(&a, "one/1", 1_100..2_300).await;
    assert_eq!(
        a.events.read("one/1", 1_099).await.expect("reads"),
        None,
        "more events followed than are kept"
    );
    assert_eq!(count(&a, "one/1", 2_299 - 1_024).await, Some(1_024));
    let total: String = server.command("HGET mcpline:1:{one}:streams *").await;
    assert_eq!(total, format!("2 {}", (1_024 + 10) * 228));
}

#[tokio::test]
async fn a_stream_goes_on_after_its_index_was_evicted_without_the_events() {
    let server = Server::start();
    let a = server.connect();
    append(&a, "one/1", 0..1_020).await;
    let _: u64 = server.command("DEL mcpline:1:{one}:streams").await;
    append(&a, "one/1", 1_020..1_030).await;
    a.events.end("one/1", 1_029);
    append(&a, "one/2", 0..2).await;
    assert_eq!(a.events.read("one/1", 1_018).await.expect("reads"), None);
    let rest = a.events.read("one/1", 1_019).await.expect("reads");
    let rest = rest.expect("they are kept");
    assert_eq!((rest.events.len(), rest.ended), (10, true));
    let total: String = server.command("HGET mcpline:1:{one}:streams *").await;
    assert_eq!(total, format!("2 {}", 12 * 228));
}

#[tokio::test]
async fn the_bus_counts_its_bytes_again_after_a_key_was_evicted() {
    let server = Server::start();
    let a = server.connect();
    for key in ["mcpline:1:{bus}", "mcpline:1:{bus}:bytes"] {
        for _ in 0..3 {
            a.bus.publish(Bytes::from(vec![b'x'; 100]));
        }
        save(&a, "last", "value", LIFETIME).await;
        let _: u64 = server.command(&format!("DEL {key}")).await;
        a.bus.publish(Bytes::from(vec![b'x'; 100]));
        save(&a, "last", "value", LIFETIME).await;
        let events: usize = server.command("XLEN mcpline:1:{bus}").await;
        let bytes: usize = server.command("GET mcpline:1:{bus}:bytes").await;
        assert_eq!(bytes, events * 228, "without {key}");
    }
}

#[tokio::test]
async fn messages_reach_every_other_process_once_and_in_order() {
    let server = Server::start();
    let (a, b, c) = (server.connect(), server.connect(), server.connect());
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    let at_c = Subscriber::join(&c.bus, &a.bus).await;
    let at_a = Subscriber::local(&a.bus);
    at_b.until("ready").await;
    let messages: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    for message in &messages {
        a.bus.publish(Bytes::from(message.clone()));
    }
    assert_eq!(at_a.received(), messages, "in the same process at once");
    for subscriber in [&at_b, &at_c] {
        let mut received = subscriber.until("999").await;
        received.retain(|message| !message.starts_with("ready"));
        assert_eq!(received, messages);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_loaded_a_session_receives_what_is_published_afterwards() {
    let server = Server::start();
    let a = server.connect();
    save(&a, "one", "value", LIFETIME).await;
    for number in 0..50 {
        let message = number.to_string();
        let starting = server.connect();
        let subscriber = Subscriber::local(&starting.bus);
        starting.sessions.load("one").await.expect("loads");
        a.bus.publish(Bytes::from(message.clone()));
        subscriber.until(&message).await;
    }
}

#[tokio::test]
async fn the_bus_is_bounded() {
    let server = Server::start();
    let a = server.connect();
    for _ in 0..11_000 {
        a.bus.publish(Bytes::new());
    }
    save(&a, "last", "value", LIFETIME).await;
    let events: u64 = server.command("XLEN mcpline:1:{bus}").await;
    assert_eq!(events, 10_000);
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    for _ in 0..20 {
        a.bus.publish(large.clone());
    }
    save(&a, "last", "value", LIFETIME).await;
    let bytes: usize = server.command("GET mcpline:1:{bus}:bytes").await;
    assert!(bytes <= 16 * 1024 * 1024, "{bytes}");
    let events: u64 = server.command("XLEN mcpline:1:{bus}").await;
    assert_eq!(events, 15);
}

#[tokio::test]
async fn a_message_that_is_too_large_for_the_bus_is_dropped_and_the_next_one_arrives() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    a.bus.publish(Bytes::from(vec![b'x'; 17 * 1024 * 1024]));
    a.bus.publish(Bytes::from_static(b"next"));
    assert_eq!(at_b.until("next").await, ["next"]);
}

#[tokio::test]
async fn services_with_different_prefixes_do_not_see_each_other() {
    let server = Server::start();
    let a = server.connect();
    let mut options = options();
    options.key_prefix = "other".to_owned();
    let b = Valkey::connect(&server.url(), options).expect("valid");
    save(&a, "one", "value", LIFETIME).await;
    assert_eq!(b.sessions.load("one").await.expect("loads"), None);
}

#[tokio::test]
async fn flushing_waits_until_everything_is_written() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    for number in 0..1_000 {
        a.events
            .append("one/1", number, Bytes::from_static(b"event"));
    }
    a.events.flush().await.expect("writes");
    let last = b.events.read("one/1", 999).await.expect("reads");
    assert!(last.is_some());
    // Nothing is queued.
    a.events.flush().await.expect("writes");
}

#[tokio::test]
async fn what_is_queued_is_written_after_the_state_is_dropped() {
    let server = Server::start();
    let (a, b) = (server.connect(), server.connect());
    for number in 0..1_000 {
        a.events
            .append("one/1", number, Bytes::from_static(b"event"));
    }
    drop(a);
    until("the last event arrives", || async {
        b.events.read("one/1", 999).await.ok()?.map(|_| ())
    })
    .await;
}

#[test]
fn a_runtime_is_needed() {
    let error = Valkey::connect("valkey://localhost", options()).expect_err("no runtime");
    assert_eq!(error, mcpline_valkey::ValkeyError::NoRuntime);
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let invalid = |change: fn(&mut mcpline_valkey::ValkeyOptions)| {
        let mut options = options();
        change(&mut options);
        Valkey::connect("valkey://localhost", options)
            .expect_err("invalid")
            .to_string()
    };
    assert!(invalid(|options| options.key_prefix = String::new()).contains("`key_prefix`"));
    assert!(invalid(|options| options.key_prefix = "{tag}".to_owned()).contains("`key_prefix`"));
    assert!(invalid(|options| options.timeout = Duration::ZERO).contains("`timeout`"));
}

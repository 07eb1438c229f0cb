//! The four traits, between two processes of a service.

use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{
    BucketPolicy, LoggedEvents, SaveOutcome, SharedBuckets, Sharing, TakeOutcome, UseOutcome,
};

use crate::scratch::{LIFETIME, Scratch, Subscriber, load, read, save, until};

#[tokio::test]
async fn a_session_is_found_by_other_processes_until_it_is_removed() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    assert_eq!(load(&b, "one").await, None);
    save(&a, "one", "first", LIFETIME).await;
    save(&a, "one", "second", LIFETIME).await;
    assert_eq!(load(&b, "one").await.as_deref(), Some(&b"second"[..]));
    b.sessions.remove("one").await.expect("removes");
    assert_eq!(load(&a, "one").await, None);
    // One that was never saved.
    b.sessions.remove("two").await.expect("removes");
}

#[tokio::test]
async fn what_another_process_has_changed_is_not_replaced() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let save = async |sharing: &Sharing, value: &'static str, replaces: &'static str| {
        let [value, replaces] = [value, replaces].map(|text| Bytes::from_static(text.as_bytes()));
        let saved = sharing.sessions.save("one", value, replaces, LIFETIME);
        saved.await.expect("saves or not")
    };
    let conflict =
        |stored: &'static str| SaveOutcome::Conflict(Bytes::from_static(stored.as_bytes()));
    assert_eq!(save(&a, "first", "").await, SaveOutcome::Saved);
    assert_eq!(save(&a, "second", "first").await, SaveOutcome::Saved);
    assert_eq!(save(&b, "third", "first").await, conflict("second"));
    assert_eq!(load(&b, "one").await.as_deref(), Some(&b"second"[..]));
    // Again, as if the answer was lost.
    assert_eq!(save(&a, "second", "first").await, SaveOutcome::Saved);
    assert_eq!(save(&b, "third", "second").await, SaveOutcome::Saved);
    a.sessions.remove("one").await.expect("removes");
    assert_eq!(save(&b, "fourth", "first").await, SaveOutcome::Saved);
    assert_eq!(load(&b, "one").await, None);
}

#[tokio::test]
async fn no_change_is_lost_if_processes_save_at_the_same_time() {
    let scratch = Scratch::new();
    let processes = [0, 1, 2].map(|number| (number, scratch.share()));
    save(&processes[0].1, "counter", "0 by 0", LIFETIME).await;
    let counted = |stored: &[u8]| -> u32 {
        let text = std::str::from_utf8(stored).expect("text");
        let (number, _) = text.split_once(' ').expect("a number and a process");
        number.parse().expect("a number")
    };
    let count = |(process, sharing): (u32, Sharing)| async move {
        for _ in 0..30 {
            loop {
                let stored = load(&sharing, "counter").await.expect("saved");
                // Different from what the others save.
                let next = format!("{} by {process}", counted(&stored) + 1);
                let saving = sharing
                    .sessions
                    .save("counter", Bytes::from(next), stored, LIFETIME);
                if saving.await.expect("saves or not") == SaveOutcome::Saved {
                    break;
                }
            }
        }
    };
    let [a, b, c] = processes.clone().map(count);
    tokio::join!(a, b, c);
    let stored = load(&processes[0].1, "counter").await.expect("saved");
    assert_eq!(counted(&stored), 90);
}

#[tokio::test]
async fn sessions_end_with_their_lifetime() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    save(&a, "short", "value", Duration::ZERO).await;
    save(&a, "endless", "value", Duration::MAX).await;
    assert_eq!(load(&b, "short").await, None);
    assert!(load(&b, "endless").await.is_some());
}

#[tokio::test]
async fn a_key_is_used_once_by_all_processes() {
    let scratch = Scratch::new();
    let processes = [(); 4].map(|()| scratch.share());
    for number in 0..50 {
        // A key may be that of a session.
        let key = number.to_string();
        save(&processes[0], &key, "value", LIFETIME).await;
        let [a, b, c, d] = &processes;
        let record_use = async |process: &Sharing| {
            let used = process.sessions.record_use(&key, LIFETIME).await;
            used.expect("records")
        };
        let (a, b, c, d) = tokio::join!(record_use(a), record_use(b), record_use(c), record_use(d));
        let first = [a, b, c, d]
            .iter()
            .filter(|&&used| used == UseOutcome::First)
            .count();
        assert_eq!(first, 1);
        assert!(load(&processes[1], &key).await.is_some());
    }
    let used = scratch.files("used");
    assert_eq!(used.len(), 50);
    assert!(
        used.iter()
            .all(|path| path.metadata().expect("a file").len() == 0)
    );
}

fn buckets(sharing: &Sharing) -> &dyn SharedBuckets {
    sharing.buckets.as_deref().expect("buckets")
}

/// A token each hour: none is added while a test runs.
const POLICY: BucketPolicy = BucketPolicy {
    interval: LIFETIME,
    burst: 100,
};

#[tokio::test]
async fn all_processes_take_the_tokens_of_a_bucket_together() {
    let scratch = Scratch::new();
    let processes = [(); 4].map(|()| scratch.share());
    let take_all = async |process: &Sharing| {
        let mut taken = 0;
        loop {
            match buckets(process).take("one", POLICY, 3).await {
                Ok(TakeOutcome::Taken(tokens)) => taken += tokens,
                Ok(TakeOutcome::Empty(wait)) => {
                    assert!(wait <= POLICY.interval);
                    return taken;
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    let [a, b, c, d] = &processes;
    let (at_a, at_b, at_c, at_d) = tokio::join!(take_all(a), take_all(b), take_all(c), take_all(d));
    assert_eq!(at_a + at_b + at_c + at_d, POLICY.burst);
    let giving = buckets(a).give_back("one", POLICY, 2);
    giving.await.expect("gives back");
    assert_eq!(take_all(b).await, 2);
    let other = buckets(b).take("two", POLICY, 1).await;
    assert_eq!(other.expect("takes"), TakeOutcome::Taken(1));
    let names = scratch.files("buckets");
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn ids_may_have_any_characters_and_are_not_stored() {
    let scratch = Scratch::new();
    let a = scratch.share();
    let ids = ["../../escaped", "", ".", "a\0b", "é", &"x".repeat(10_000)];
    for id in ids {
        save(&a, id, id, LIFETIME).await;
    }
    for id in ids {
        assert_eq!(load(&a, id).await.as_deref(), Some(id.as_bytes()));
    }
    let names: Vec<_> = scratch.files("sessions");
    assert_eq!(names.len(), ids.len());
    for name in names {
        let name = name.file_name().expect("a name").len();
        assert_eq!(name, 40, "a digest");
    }
}

#[tokio::test]
async fn a_removed_session_is_not_restored_by_another_process() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    save(&a, "one", "first", LIFETIME).await;
    a.events.append("one/1", 0, Bytes::from_static(b"event"));
    a.sessions.remove("one").await.expect("removes");
    b.events.append("one/1", 1, Bytes::from_static(b"event"));
    save(&b, "one", "second", LIFETIME).await;
    assert_eq!(load(&a, "one").await, None);
    assert_eq!(read(&b, "one/1", 0).await, None);
    assert!(scratch.files("sessions").is_empty());
    assert!(scratch.files("streams").is_empty());
}

#[tokio::test]
async fn a_session_that_is_saved_and_removed_at_the_same_time_is_gone() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    for number in 0..50 {
        let id = number.to_string();
        let saving = async {
            for _ in 0..4 {
                save(&a, &id, "value", LIFETIME).await;
            }
        };
        let (removed, ()) = tokio::join!(b.sessions.remove(&id), saving);
        removed.expect("removes");
        assert_eq!(load(&b, &id).await, None);
    }
    assert!(scratch.files("sessions").is_empty());
}

#[tokio::test]
async fn a_stream_is_read_from_any_event_on() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    assert_eq!(b.events.read("one/1", 0).await.expect("reads"), None);
    for (number, event) in (4..).zip(["four", "", "six"]) {
        a.events
            .append("one/1", number, Bytes::from_static(event.as_bytes()));
    }
    a.events.flush().await.expect("flushes");
    let events = |texts: &[&'static str]| {
        let events = texts.iter().map(|text| Bytes::from_static(text.as_bytes()));
        Some(events.collect::<Vec<_>>())
    };
    assert_eq!(read(&b, "one/1", 3).await, events(&["four", "", "six"]));
    assert_eq!(read(&b, "one/1", 5).await, events(&["six"]));
    assert_eq!(read(&b, "one/1", 6).await, events(&[]));
    for unknown in [2, 7, u64::MAX] {
        assert_eq!(read(&b, "one/1", unknown).await, None);
    }
    a.events.end("one/1", 6);
    a.events.end("one/2", 0);
    a.events.flush().await.expect("flushes");
    let rest = b.events.read("one/1", 5).await.expect("reads");
    assert_eq!(
        rest,
        Some(LoggedEvents::new(vec![Bytes::from_static(b"six")], true))
    );
    assert_eq!(b.events.read("one/2", 0).await.expect("reads"), None);
}

#[tokio::test]
async fn a_stream_whose_last_event_was_lost_does_not_end_without_it() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    for number in 0..3 {
        a.events
            .append("one/1", number, Bytes::from_static(b"event"));
    }
    // Event 3 is lost.
    a.events.end("one/1", 3);
    a.events.flush().await.expect("flushes");
    for after in 0..3 {
        assert_eq!(b.events.read("one/1", after).await.expect("reads"), None);
    }
    // A client that has it has missed nothing.
    let rest = b.events.read("one/1", 3).await.expect("reads");
    assert_eq!(rest, Some(LoggedEvents::new(Vec::new(), true)));
}

#[tokio::test]
async fn a_reader_that_goes_on_reads_only_what_is_new() {
    use std::io::Write as _;

    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let append = async |number| {
        let event = Bytes::from(format!("event {number}"));
        a.events.append("one/1", number, event);
        a.events.flush().await.expect("flushes");
    };
    for number in 0..3 {
        append(number).await;
    }
    assert_eq!(read(&b, "one/1", 0).await.map(|new| new.len()), Some(2));
    // The first event can no longer be read.
    let sessions = scratch.files("streams");
    let mut streams = std::fs::read_dir(&sessions[0]).expect("a directory");
    let stream = streams.next().expect("a stream").expect("an entry").path();
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(stream)
        .expect("opens");
    file.write_all(&[0xfe; 12]).expect("writes");
    assert_eq!(read(&b, "one/1", 2).await, Some(Vec::new()));
    append(3).await;
    append(4).await;
    for (after, new) in [(2, 2), (4, 0)] {
        let found = read(&b, "one/1", after).await;
        assert_eq!(found.map(|found| found.len()), Some(new), "after {after}");
    }
    a.events.end("one/1", 4);
    a.events.flush().await.expect("flushes");
    let end = b.events.read("one/1", 4).await.expect("reads");
    assert_eq!(end, Some(LoggedEvents::new(Vec::new(), true)));
}

#[tokio::test]
async fn a_removed_session_takes_its_streams_along() {
    let scratch = Scratch::new();
    let a = scratch.share();
    for stream in ["one/0", "one/1.ab", "one-more/1"] {
        a.events.append(stream, 0, Bytes::from_static(b"event"));
    }
    save(&a, "one", "value", LIFETIME).await;
    a.sessions.remove("one").await.expect("removes");
    assert_eq!(read(&a, "one/0", 0).await, None);
    assert_eq!(read(&a, "one/1.ab", 0).await, None);
    assert_eq!(read(&a, "one-more/1", 0).await, Some(Vec::new()));
}

#[tokio::test]
async fn a_stream_keeps_its_latest_events_within_its_limits() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    for number in 0..40 {
        a.events.append("large/1", number, large.clone());
        // Not all at once, which would exceed the limit of what waits.
        a.events.flush().await.expect("flushes");
        let bytes: u64 = scratch
            .files("streams")
            .iter()
            .flat_map(|session| std::fs::read_dir(session).expect("a directory"))
            .map(|entry| entry.expect("an entry").metadata().expect("there").len())
            .sum();
        assert!(bytes <= 9 * 1024 * 1024, "{bytes}");
        if let Some(before) = number.checked_sub(1) {
            let new = read(&b, "large/1", before).await;
            assert_eq!(new.map(|new| new.len()), Some(1), "after {before}");
        }
    }
    assert_eq!(
        read(&b, "large/1", 38).await.map(|kept| kept.len()),
        Some(1)
    );
    // A part, because events are held in memory.
    let part = b.events.read("large/1", 37).await.expect("reads");
    assert!(part.is_some_and(|part| part.has_more && part.events.len() == 1));
    assert_eq!(read(&b, "large/1", 10).await, None);
}

#[tokio::test]
async fn the_streams_of_a_session_have_a_limit() {
    let scratch = Scratch::new();
    let a = scratch.share();
    let event = Bytes::from(vec![b'x'; 1024 * 1024]);
    for stream in 0..40 {
        a.events
            .append(&format!("large/{stream}"), 0, event.clone());
        a.events.flush().await.expect("flushes");
    }
    for stream in 0..100 {
        a.events.append(&format!("many/{stream}"), 0, Bytes::new());
    }
    a.events.flush().await.expect("flushes");
    let sizes: Vec<usize> = scratch
        .files("streams")
        .iter()
        .map(|session| std::fs::read_dir(session).expect("a directory").count())
        .collect();
    assert_eq!(sizes.iter().max(), Some(&64), "{sizes:?}");
    assert_eq!(sizes.iter().min(), Some(&15), "{sizes:?}");
    assert_eq!(read(&a, "large/39", 0).await, Some(Vec::new()));
    assert_eq!(read(&a, "large/0", 0).await, None);
    assert_eq!(read(&a, "many/99", 0).await, Some(Vec::new()));
    assert_eq!(read(&a, "many/0", 0).await, None);
}

#[tokio::test]
async fn messages_reach_every_process_in_order_and_once() {
    let scratch = Scratch::new();
    let (a, b, c) = (scratch.share(), scratch.share(), scratch.share());
    let subscribers = [&a, &b, &c].map(Subscriber::new);
    let messages: Vec<Bytes> = (0..500)
        .map(|number| Bytes::from(number.to_string()))
        .collect();
    for message in &messages {
        a.bus.publish(message.clone());
    }
    a.bus.publish(Bytes::from_static(b"last"));
    for subscriber in &subscribers {
        subscriber.until_received("last").await;
        assert_eq!(subscriber.received()[..500], messages);
        assert_eq!(subscriber.received().len(), 501);
    }
}

#[tokio::test]
async fn messages_may_be_large() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let received = Subscriber::new(&b);
    let large = Bytes::from(vec![b'x'; 10 * 1024 * 1024]);
    a.bus.publish(large.clone());
    a.bus.publish(Bytes::from_static(b"last"));
    received.until_received("last").await;
    assert!(received.received()[0] == large);
}

#[tokio::test]
async fn a_process_receives_what_is_published_once_it_shares() {
    let scratch = Scratch::new();
    let a = scratch.share();
    for number in 0..20 {
        a.bus.publish(Bytes::from_static(b"before"));
        a.events.flush().await.expect("flushes");
        // At once, while the listing of the directory is fresh.
        let b = scratch.share();
        let received = Subscriber::new(&b);
        a.bus.publish(Bytes::from_static(b"after"));
        received.until_received("after").await;
        assert_eq!(received.received(), ["after"], "{number}");
    }
}

#[tokio::test]
async fn an_ended_process_leaves_no_socket() {
    let scratch = Scratch::new();
    let a = scratch.share();
    let b = scratch.share();
    assert_eq!(scratch.files("bus").len(), 2);
    drop(b);
    until("its socket is removed", || async {
        scratch.files("bus").len() == 1
    })
    .await;
    drop(a);
    until("all sockets are removed", || async {
        scratch.files("bus").is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_process_that_ends_has_written_everything() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(), scratch.share());
    let received = Subscriber::new(&b);
    for number in 0..300 {
        a.events
            .append("one/1", number, Bytes::from_static(b"event"));
        a.bus.publish(Bytes::from_static(b"message"));
    }
    a.bus.publish(Bytes::from_static(b"last"));
    drop(a);
    received.until_received("last").await;
    assert_eq!(read(&b, "one/1", 0).await.map(|kept| kept.len()), Some(299));
}

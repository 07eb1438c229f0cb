use std::time::Duration;

use bytes::Bytes;

use crate::sharing::{
    BucketPolicy, EventLog, LoggedEvents, MemorySharing, SaveOutcome, SessionStore, SharedBuckets,
    TakeOutcome, UseOutcome,
};

use super::buckets::MAX_BUCKETS;
use super::lock;
use super::removed_ids::{MAX_REMOVED_IDS, REMOVED_LIFETIME};
use super::sessions::{MAX_SESSION_BYTES, SESSION_MEMORY_BYTES};
use super::streams::{
    EVENT_MEMORY_BYTES, MAX_LOG_BYTES, MAX_STREAM_BYTES, MAX_STREAM_EVENTS, STREAM_MEMORY_BYTES,
};
use super::used_keys::MAX_USED_KEYS;

const LIFETIME: Duration = Duration::from_secs(3_600);

/// Size of a large message, whose memory all copies share.
const LARGE: usize = 1024 * 1024;

fn large() -> Bytes {
    Bytes::from(vec![b'x'; LARGE])
}

async fn save(memory: &MemorySharing, id: &str, session: Bytes, lifetime: Duration) {
    let saved = memory.save(id, session.clone(), session, lifetime).await;
    assert_eq!(saved.expect("saves"), SaveOutcome::Saved);
}

async fn is_held(memory: &MemorySharing, stream: &str, after: u64) -> bool {
    memory.read(stream, after).await.expect("reads").is_some()
}

#[tokio::test(start_paused = true)]
async fn sessions_past_the_byte_limit_drop_those_saved_longest_ago() {
    let memory = MemorySharing::default();
    let session = large();
    let fitting = MAX_SESSION_BYTES / (LARGE + SESSION_MEMORY_BYTES);
    for number in 0..fitting {
        save(&memory, &number.to_string(), session.clone(), LIFETIME).await;
    }
    // After saving it again it is no longer the oldest, and is counted once.
    save(&memory, "0", session.clone(), LIFETIME).await;
    assert!(memory.load("1").await.expect("loads").is_some());
    for number in fitting..3 * fitting / 2 {
        save(&memory, &number.to_string(), session.clone(), LIFETIME).await;
        assert!(lock(&memory.sessions).bytes() <= MAX_SESSION_BYTES);
    }
    assert!(memory.load("0").await.expect("loads").is_some());
    assert!(memory.load("1").await.expect("loads").is_none());
    for number in 0..3 * fitting / 2 {
        memory.remove(&number.to_string()).await.expect("removes");
    }
    assert_eq!(lock(&memory.sessions).bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn sessions_whose_lifetime_is_over_are_dropped_with_their_streams() {
    let memory = MemorySharing::default();
    save(&memory, "first", large(), LIFETIME).await;
    memory.append("first/1", 0, large());
    tokio::time::advance(LIFETIME).await;
    assert!(memory.load("first").await.expect("loads").is_none());
    save(&memory, "second", Bytes::new(), LIFETIME).await;
    assert_eq!(lock(&memory.sessions).bytes(), SESSION_MEMORY_BYTES);
    assert_eq!(lock(&memory.streams).bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn sessions_without_an_end_of_their_lifetime_are_kept() {
    let memory = MemorySharing::default();
    tokio::time::advance(LIFETIME).await;
    save(&memory, "endless", Bytes::new(), Duration::MAX).await;
    tokio::time::advance(LIFETIME).await;
    assert!(memory.load("endless").await.expect("loads").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_removed_is_not_saved_again() {
    let memory = MemorySharing::default();
    save(&memory, "ended", Bytes::new(), LIFETIME).await;
    memory.remove("ended").await.expect("removes");
    tokio::time::advance(REMOVED_LIFETIME - Duration::from_secs(1)).await;
    // No conflict, either.
    save(&memory, "ended", Bytes::new(), LIFETIME).await;
    save(&memory, "other", Bytes::new(), LIFETIME).await;
    assert!(memory.load("ended").await.expect("loads").is_none());
    assert!(memory.load("other").await.expect("loads").is_some());
    tokio::time::advance(Duration::from_secs(2)).await;
    save(&memory, "ended", Bytes::new(), LIFETIME).await;
    assert!(memory.load("ended").await.expect("loads").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_removed_sessions_that_are_remembered_have_a_limit() {
    let memory = MemorySharing::default();
    for number in 0..=MAX_REMOVED_IDS {
        memory.remove(&number.to_string()).await.expect("removes");
    }
    assert_eq!(lock(&memory.sessions).removed(), MAX_REMOVED_IDS);
    for (number, is_saved) in [(0, true), (1, false)] {
        let id = number.to_string();
        save(&memory, &id, Bytes::new(), LIFETIME).await;
        let loaded = memory.load(&id).await.expect("loads");
        assert_eq!(loaded.is_some(), is_saved, "{id}");
    }
}

async fn record_use(memory: &MemorySharing, key: &str, lifetime: Duration) -> UseOutcome {
    memory.record_use(key, lifetime).await.expect("records")
}

#[tokio::test(start_paused = true)]
async fn a_key_is_used_once_until_its_lifetime_is_over() {
    let memory = MemorySharing::default();
    // A key is no session.
    save(&memory, "key", Bytes::new(), LIFETIME).await;
    assert_eq!(
        record_use(&memory, "key", LIFETIME).await,
        UseOutcome::First
    );
    assert_eq!(
        record_use(&memory, "other", LIFETIME / 2).await,
        UseOutcome::First
    );
    tokio::time::advance(LIFETIME - Duration::from_secs(1)).await;
    for _ in 0..2 {
        // Which makes its lifetime no longer.
        let repeated = record_use(&memory, "key", LIFETIME).await;
        assert_eq!(repeated, UseOutcome::Repeated);
    }
    // The clock begins with the first test, which may be another one: a moment more.
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(
        record_use(&memory, "key", LIFETIME).await,
        UseOutcome::First
    );
    assert_eq!(lock(&memory.used).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn used_keys_have_a_limit_and_drop_no_sessions() {
    let memory = MemorySharing::default();
    save(&memory, "session", Bytes::new(), LIFETIME).await;
    for number in 0..=MAX_USED_KEYS {
        let key = number.to_string();
        assert_eq!(record_use(&memory, &key, LIFETIME).await, UseOutcome::First);
    }
    assert_eq!(lock(&memory.used).len(), MAX_USED_KEYS);
    assert!(memory.load("session").await.expect("loads").is_some());
    // The one whose lifetime ends first: of these, the first by name.
    assert_eq!(
        record_use(&memory, "1", LIFETIME).await,
        UseOutcome::Repeated
    );
    assert_eq!(record_use(&memory, "0", LIFETIME).await, UseOutcome::First);
}

#[tokio::test]
async fn a_stream_holds_its_latest_events_within_its_byte_limit() {
    let memory = MemorySharing::default();
    let event = large();
    let most = STREAM_MEMORY_BYTES + MAX_STREAM_BYTES;
    for number in 0..32 {
        memory.append("session/1", number, event.clone());
        assert!(lock(&memory.streams).bytes() <= most);
    }
    let fitting = (MAX_STREAM_BYTES / (LARGE + EVENT_MEMORY_BYTES)) as u64;
    assert!(is_held(&memory, "session/1", 31 - fitting).await);
    assert!(!is_held(&memory, "session/1", 30 - fitting).await);
    // The latest event is kept however large it is.
    memory.append("session/1", 32, vec![b'x'; 2 * MAX_STREAM_BYTES].into());
    let latest = memory.read("session/1", 31).await.expect("reads");
    assert_eq!(latest.expect("held").events.len(), 1);
}

#[tokio::test]
async fn events_without_bytes_are_bounded_by_their_number() {
    let memory = MemorySharing::default();
    for number in 0..2 * MAX_STREAM_EVENTS as u64 {
        memory.append("session/1", number, Bytes::new());
    }
    let most = STREAM_MEMORY_BYTES + MAX_STREAM_EVENTS * EVENT_MEMORY_BYTES;
    assert_eq!(lock(&memory.streams).bytes(), most);
}

#[tokio::test]
async fn streams_past_the_byte_limit_of_all_drop_the_oldest() {
    let memory = MemorySharing::default();
    let event = large();
    let streams = 2 * MAX_LOG_BYTES / LARGE;
    for stream in 0..streams {
        memory.append(&format!("session/{stream}"), 0, event.clone());
        assert!(lock(&memory.streams).bytes() <= MAX_LOG_BYTES);
    }
    assert!(!is_held(&memory, "session/0", 0).await);
    assert!(is_held(&memory, &format!("session/{}", streams - 1), 0).await);
    // A dropped stream that continues is kept from there on.
    memory.append("session/0", 7, event.clone());
    assert!(!is_held(&memory, "session/0", 5).await);
    assert!(is_held(&memory, "session/0", 6).await);
}

#[tokio::test]
async fn a_session_that_is_removed_takes_its_streams_along() {
    let memory = MemorySharing::default();
    for stream in ["one/0", "one/1.ab", "one-more/1", "two/1"] {
        memory.append(stream, 0, large());
    }
    memory.remove("one").await.expect("removes");
    assert!(!is_held(&memory, "one/0", 0).await);
    assert!(!is_held(&memory, "one/1.ab", 0).await);
    assert!(is_held(&memory, "one-more/1", 0).await);
    memory.remove("one-more").await.expect("removes");
    memory.remove("two").await.expect("removes");
    assert_eq!(lock(&memory.streams).bytes(), 0);
}

#[tokio::test]
async fn events_that_were_never_sent_are_not_read() {
    let memory = MemorySharing::default();
    memory.append("session/1", 0, Bytes::new());
    assert!(is_held(&memory, "session/1", 0).await);
    assert!(!is_held(&memory, "session/1", 1).await);
    assert!(!is_held(&memory, "session/1", u64::MAX).await);
}

#[tokio::test]
async fn a_stream_with_lost_events_is_not_continued_before_them() {
    let memory = MemorySharing::default();
    for number in [0, 1, 3] {
        memory.append("session/1", number, Bytes::new());
    }
    assert!(!is_held(&memory, "session/1", 1).await);
    assert!(is_held(&memory, "session/1", 2).await);
    // Event 4 is lost, and with it the end of the stream.
    memory.end("session/1", 4);
    assert!(!is_held(&memory, "session/1", 3).await);
    let end = memory.read("session/1", 4).await.expect("reads");
    assert_eq!(end, Some(LoggedEvents::new(Vec::new(), true)));
    assert_eq!(lock(&memory.streams).bytes(), STREAM_MEMORY_BYTES);
}

#[tokio::test(start_paused = true)]
async fn buckets_that_are_not_full_have_a_limit() {
    let memory = MemorySharing::default();
    let policy = BucketPolicy {
        interval: Duration::from_secs(60),
        burst: 2,
    };
    let take = async |number: usize| memory.take(&number.to_string(), policy, 1).await;
    for number in 0..MAX_BUCKETS {
        let taken = take(number).await.expect("takes");
        assert_eq!(taken, TakeOutcome::Taken(1));
    }
    take(MAX_BUCKETS).await.expect_err("there is no room");
    let known = take(0).await.expect("takes");
    assert_eq!(known, TakeOutcome::Taken(1));
    tokio::time::advance(policy.interval).await;
    let taken = take(MAX_BUCKETS).await.expect("takes");
    assert_eq!(taken, TakeOutcome::Taken(1));
}

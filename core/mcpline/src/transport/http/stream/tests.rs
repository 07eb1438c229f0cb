use std::sync::atomic::AtomicUsize;
use std::task::Poll;

use super::reader::READ_BYTES;
use super::*;
use crate::quota::ClientTable;

fn client() -> Arc<ClientQuota> {
    ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client()
}

fn stream() -> Arc<Stream> {
    Stream::transient(&HttpOptions::default(), &client())
}

#[test]
fn copies_of_a_kept_stream_are_bounded_by_what_its_client_may_use() {
    let client = ClientTable::new(1.0, 350_000, 8).sole_client();
    let name = StreamName {
        number: 1,
        process: None,
    };
    let stream = Stream::resumable(name, None, &HttpOptions::default(), &client);
    stream.prime();
    let event = Bytes::from(vec![b'1'; 100_000]);
    let status = crate::message_sink::ResponseStatus::Result;
    stream
        .message(MessageKind::Response(status), event)
        .expect("room");
    let cx = std::task::Context::from_waker(std::task::Waker::noop());
    let copy = || {
        let mut reader = stream.read(Some(0)).expect("kept");
        assert!(reader.take_rest().is_none(), "it goes on");
        match reader.poll(&cx) {
            Poll::Ready(bytes) => bytes,
            Poll::Pending => panic!("the event is there"),
        }
    };
    let copies = [copy(), copy()];
    assert!(copies.iter().all(Option::is_some));
    assert!(copy().is_none(), "there is no room for a third");
    assert!(client.held_bytes() < 350_000);
    drop(copies);
    assert!(copy().is_some(), "it comes back");
}

#[test]
fn the_rest_of_a_long_stream_is_not_returned_at_once() {
    let client = client();
    let name = StreamName {
        number: 1,
        process: None,
    };
    let stream = Stream::resumable(name, None, &HttpOptions::default(), &client);
    for _ in 0..10 {
        let event = Bytes::from(vec![b'1'; 100_000]);
        stream.message(MessageKind::Request, event).expect("room");
    }
    stream.end();
    let mut reader = stream.read(Some(0)).expect("kept");
    assert!(reader.take_rest().is_none());
    let mut reader = stream.read(Some(8)).expect("kept");
    assert!(
        reader
            .take_rest()
            .is_some_and(|rest| rest.len() < READ_BYTES)
    );
}

#[test]
fn small_events_are_charged_with_the_memory_that_they_take() {
    let client = client();
    let stream = Stream::transient(&HttpOptions::default(), &client);
    for _ in 0..1_000 {
        crate::message_sink::send(&stream, MessageKind::Notification, b"{}");
    }
    let place = size_of::<queue::RetainedEvent>();
    // `Bytes` stores its reference count beside the message.
    let header = size_of::<Vec<u8>>() + size_of::<AtomicUsize>();
    assert!(client.held_bytes() >= 1_000 * (place + header));
}

#[test]
fn limits_of_a_stream_hold_for_the_memory_of_its_events() {
    let limit = 64 * 1024;
    let options = HttpOptions {
        max_kept_events: usize::MAX,
        max_kept_bytes: limit,
        max_unread_bytes: limit,
        ..HttpOptions::default()
    };
    let name = StreamName {
        number: 1,
        process: None,
    };
    let (unread, kept) = (client(), client());
    let streams = [
        (&unread, Stream::transient(&options, &unread)),
        (&kept, Stream::resumable(name, None, &options, &kept)),
    ];
    for (client, stream) in &streams {
        let mut most = 0;
        for _ in 0..10_000 {
            crate::message_sink::send(stream, MessageKind::Request, b"{}");
            most = most.max(client.held_bytes());
        }
        assert!(most > limit / 2, "{most} bytes are held");
        assert!(most <= limit, "{most} bytes are held");
    }
    let [(_, unread), (_, kept)] = streams;
    assert!(unread.is_ended(), "its client does not read");
    assert!(!kept.is_ended(), "it keeps the latest");
}

#[test]
fn the_queue_of_a_stream_shrinks_with_its_events() {
    let stream = stream();
    let slots = || stream.lock().events.capacity();
    let fill = || {
        for _ in 0..10_000 {
            crate::message_sink::send(&stream, MessageKind::Request, b"{}");
        }
        assert!(slots() >= 10_000);
    };
    fill();
    let mut reader = stream.read(None).expect("a reader");
    while let Poll::Ready(Some(_)) = polled(&mut reader) {
        let events = stream.lock().events.len();
        assert!(slots() <= (4 * events).max(64), "{} slots", slots());
    }
    assert_eq!(stream.lock().events.len(), 0);
    fill();
    stream.overflow();
    assert_eq!(slots(), 0);
}

#[test]
fn a_reclaimed_stream_keeps_the_requests_that_were_never_read() {
    let client = ClientTable::new(1.0, 100_000, 8).sole_client();
    let name = StreamName {
        number: 0,
        process: None,
    };
    let stream = Stream::resumable(name, None, &HttpOptions::default(), &client);
    let send = |kind, text: &str| crate::message_sink::send(&stream, kind, text.as_bytes());
    send(MessageKind::Request, "read request");
    let mut reader = stream.read(None).expect("a reader");
    assert!(is_given(&mut reader, "read request"));
    drop(reader);
    for _ in 0..200 {
        send(MessageKind::Notification, "notification");
    }
    send(MessageKind::Request, "unread request");
    send(MessageKind::Notification, "notification");
    assert!(stream.reclaim(), "there is something to give back");
    assert_eq!(client.held_bytes(), "unread request".len() + 128);
    assert_eq!(stream.kept_bytes().0, client.held_bytes());
    assert!(stream.lock().events.capacity() <= 64);
    assert!(!stream.reclaim(), "a request that was never read stays");
    assert!(stream.read(Some(0)).is_none(), "it would miss some");
    send(MessageKind::Request, "next request");
    let mut reader = stream.read(None).expect("a reader");
    let Poll::Ready(Some(text)) = polled(&mut reader) else {
        panic!("the requests are there");
    };
    assert_eq!(text.matches("data:").count(), 2);
    // They follow 203 events with lower numbers.
    assert!(
        text.contains("id: 0-202\n") && text.contains("id: 0-203\n"),
        "{text}"
    );
    drop(reader);
    stream.end();
    assert!(stream.reclaim());
    assert_eq!(client.held_bytes(), 0);
}

fn polled(reader: &mut Reader) -> Poll<Option<String>> {
    let cx = std::task::Context::from_waker(std::task::Waker::noop());
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("text");
    reader.poll(&cx).map(|bytes| bytes.map(text))
}

fn general() -> Arc<Stream> {
    let name = StreamName {
        number: 0,
        process: None,
    };
    Stream::resumable(name, None, &HttpOptions::default(), &client())
}

fn is_given(reader: &mut Reader, message: &str) -> bool {
    matches!(polled(reader), Poll::Ready(Some(text)) if text.matches("data:").count() == 1 && text.contains(message))
}

#[test]
fn two_streams_of_a_session_do_not_close_each_other_and_each_message_is_on_one() {
    let stream = general();
    let send =
        |text: &str| crate::message_sink::send(&stream, MessageKind::Request, text.as_bytes());
    let mut first = stream.read(None).expect("a reader");
    assert_eq!(polled(&mut first), Poll::Pending);
    let mut second = stream.read(None).expect("a reader");
    send("one");
    assert_eq!(polled(&mut first), Poll::Pending);
    assert!(is_given(&mut second, "one"));
    assert_eq!(polled(&mut second), Poll::Pending);
    drop(second);
    assert!(stream.is_connected());
    send("two");
    assert!(is_given(&mut first, "two"));
    drop(first);
    assert!(!stream.is_connected());
}

#[test]
fn a_reader_that_was_not_polled_while_it_waited_repeats_nothing() {
    let stream = general();
    let mut first = stream.read(None).expect("a reader");
    let mut second = stream.read(None).expect("a reader");
    crate::message_sink::send(&stream, MessageKind::Request, b"one");
    assert!(is_given(&mut second, "one"));
    drop(second);
    assert_eq!(polled(&mut first), Poll::Pending);
    stream.end();
    assert_eq!(polled(&mut first), Poll::Ready(None));
}

#[test]
fn few_connections_of_a_session_wait_and_all_end_with_it() {
    let stream = general();
    let reader = |_| stream.read(None).expect("a reader");
    let mut readers: Vec<Reader> = (0..MAX_STANDBYS + 2).map(reader).collect();
    assert_eq!(polled(&mut readers[0]), Poll::Ready(None));
    for reader in &mut readers[1..] {
        assert_eq!(polled(reader), Poll::Pending);
    }
    stream.end();
    for reader in &mut readers {
        assert_eq!(polled(reader), Poll::Ready(None));
    }
}

#[test]
fn a_connection_with_an_expired_token_does_not_replace_another() {
    let stream = general();
    let mut first = stream.read(None).expect("a reader");
    let second = stream.read(None).expect("a reader");
    stream.extend_deadline(Some(1));
    assert_eq!(polled(&mut first), Poll::Ready(None));
    assert!(stream.is_connected(), "the second one has yet to look");
    drop(second);
    assert!(!stream.is_connected(), "the first one is over");
}

#[test]
fn a_stream_reports_the_loss_of_its_connection() {
    let (stream, lost) = (stream(), Arc::new(Mutex::new(false)));
    let record = lost.clone();
    stream.on_lost(move || *record.lock().unwrap() = true);
    drop(stream.read(None));
    assert!(*lost.lock().unwrap());
}

#[test]
fn a_stream_that_overflowed_before_the_callback_was_set_reports_its_loss() {
    let options = HttpOptions {
        max_unread_bytes: 1,
        ..HttpOptions::default()
    };
    let stream = Stream::transient(&options, &client());
    let reader = stream.read(None);
    for _ in 0..2 {
        crate::message_sink::send(&stream, MessageKind::Request, b"{}");
    }
    assert!(stream.is_ended());
    let lost = Arc::new(Mutex::new(false));
    let record = lost.clone();
    stream.on_lost(move || *record.lock().unwrap() = true);
    drop(reader);
    assert!(*lost.lock().unwrap());
}

#[test]
fn an_ended_stream_drops_its_loss_callback() {
    let (stream, held) = (stream(), Arc::new(()));
    let reader = stream.read(None);
    let kept = held.clone();
    stream.on_lost(move || drop(kept));
    assert_eq!(Arc::strong_count(&held), 2);
    stream.end();
    assert_eq!(Arc::strong_count(&held), 1);
    drop(reader);
}

#[test]
fn an_ended_stream_accepts_no_loss_callback() {
    let (stream, held) = (stream(), Arc::new(()));
    stream.end();
    let kept = held.clone();
    stream.on_lost(move || drop(kept));
    assert_eq!(Arc::strong_count(&held), 1);
}

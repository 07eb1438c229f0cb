//! Models of event streams and of the answers to POSTs. Writers, the end of a stream, its readers, one of whom takes it over
//! from the other, the loss of a connection, and the moment at which a silent exchange becomes a stream meet. Each event is
//! given to one reader, in order; a reader that waits is woken; whoever waits for the loss of a connection learns of it once, or
//! is let go of; an exchange has one outcome, and the response is in it.

use std::future::poll_fn;

use bytes::Bytes;
use shuttle::future::block_on;
use shuttle::thread;

use crate::message_sink::{self, Kind, MessageSink, Status};
use crate::models::{Record, check};
use crate::quota::{ClientQuota, ClientTable};
use crate::server::models::Threads;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::exchange::{Exchange, Outcome};
use super::options::HttpOptions;
use super::stream::{Reader, Stream, StreamName};

fn client() -> Arc<ClientQuota> {
    ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client()
}

fn resumable() -> Arc<Stream> {
    let name = StreamName {
        number: 1,
        process: None,
    };
    Stream::resumable(name, None, &HttpOptions::default(), &client())
}

fn transient() -> Arc<Stream> {
    Stream::transient(&HttpOptions::default(), &client())
}

/// The next events, as the body of a response has them.
fn next(reader: &mut Reader) -> Option<Bytes> {
    block_on(poll_fn(|cx| reader.poll(cx)))
}

/// The messages in events, which are numbers here.
fn numbers(events: &[u8]) -> Vec<u32> {
    let text = std::str::from_utf8(events).expect("UTF-8");
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| data.parse().ok())
        .collect()
}

/// Everything until the reader is told that nothing follows for it.
fn read_all(reader: &mut Reader) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(events) = next(reader) {
        all.extend(numbers(&events));
    }
    all
}

fn write(sink: &dyn MessageSink, kind: Kind, number: u32) {
    message_sink::send(sink, kind, number.to_string().as_bytes());
}

const RESPONSE: Kind = Kind::Response(Status::Result);

/// A second reader takes the stream over while it is written to and ended.
#[test]
fn a_takeover_meets_writes_and_the_end() {
    check(|| {
        let stream = resumable();
        let writing = stream.clone();
        let writer = thread::spawn(move || {
            for number in 0..3 {
                write(&writing, Kind::Notification, number);
            }
            writing.end();
        });
        let mut first = stream.read(None).expect("a reader");
        let reading = thread::spawn(move || read_all(&mut first));
        let mut second = stream.read(None).expect("a reader");
        let late = read_all(&mut second);
        let early = reading.join().expect("no panic");
        writer.join().expect("no panic");
        assert_eq!([early, late].concat(), [0, 1, 2]);
        drop(second);
        assert!(!stream.is_connected());
    });
}

/// A connection is dropped while another one takes the stream over.
#[test]
fn a_takeover_meets_the_end_of_the_connection_before() {
    check(|| {
        let stream = resumable();
        let first = stream.read(None).expect("a reader");
        let writing = stream.clone();
        let threads = Threads::default();
        threads.start(move || drop(first));
        threads.start(move || {
            write(&writing, Kind::Notification, 0);
            writing.end();
        });
        let mut second = stream.read(None).expect("a reader");
        assert!(stream.is_connected());
        assert_eq!(read_all(&mut second), [0]);
        threads.join();
    });
}

/// A handler closes the connection of its stream, which goes on with the next one.
#[test]
fn a_close_of_the_connection_meets_its_reader_and_writes() {
    check(|| {
        let stream = resumable();
        let closed: Arc<Record<()>> = Arc::default();
        let (writing, back) = (stream.clone(), closed.clone());
        let threads = Threads::default();
        threads.start(move || {
            write(&writing, Kind::Notification, 0);
            writing.close_connection();
            back.wait_for(0);
            write(&writing, Kind::Notification, 1);
            writing.end();
        });
        let mut all = Vec::new();
        // The connection that is closed, and the one that its client comes back with.
        for _ in 0..2 {
            all.extend(read_all(&mut stream.read(None).expect("a reader")));
            closed.add(());
        }
        threads.join();
        assert_eq!(all, [0, 1]);
    });
}

/// A connection is lost while a stream ends, and while somebody asks to be told.
#[test]
fn the_loss_of_a_connection_meets_the_end_of_its_stream() {
    check(|| {
        let stream = transient();
        let (told, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let reader = stream.read(None).expect("a reader");
        let (count, kept) = (told.clone(), held.clone());
        stream.on_lost(move || {
            count.fetch_add(1, Ordering::SeqCst);
            drop(kept);
        });
        let threads = Threads::default();
        let ending = stream.clone();
        threads.start(move || {
            write(&ending, RESPONSE, 0);
            ending.end();
        });
        threads.start(move || drop(reader));
        threads.join();
        assert!(told.load(Ordering::SeqCst) <= 1);
        assert_eq!(Arc::strong_count(&held), 1, "nothing is kept");
    });
}

/// A client that reads too little of what it asks for loses its connection, as if it had gone. Whoever waits for that learns
/// of it, though he may say so only when it has happened.
#[test]
fn a_stream_that_overflows_tells_of_its_loss() {
    check(|| {
        let options = HttpOptions {
            max_unread_bytes: 1,
            ..HttpOptions::default()
        };
        let stream = Stream::transient(&options, &client());
        let told = Arc::new(AtomicUsize::new(0));
        let reader = stream.read(None).expect("a reader");
        let threads = Threads::default();
        let writing = stream.clone();
        threads.start(move || {
            write(&writing, Kind::Request, 10);
            write(&writing, Kind::Request, 11);
        });
        let count = told.clone();
        stream.on_lost(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        threads.join();
        drop(reader);
        assert_eq!(told.load(Ordering::SeqCst), 1);
    });
}

/// An exchange whose stream, should it become one, is of the kind that ends with its connection.
fn exchange() -> Arc<Exchange> {
    let client = client();
    let quota = client.clone();
    Exchange::new(client, None, move || {
        Stream::transient(&HttpOptions::default(), &quota)
    })
}

/// What the client of the POST gets: the messages, in one body or as events; `None` if it gets nothing.
fn outcome(exchange: &Exchange) -> Option<Vec<u32>> {
    match block_on(poll_fn(|cx| exchange.poll(cx))) {
        Outcome::Json(body, _) => {
            let body = std::str::from_utf8(&body).expect("UTF-8");
            Some(vec![body.parse().expect("a number")])
        }
        Outcome::Stream(stream) => Some(read_all(&mut stream.read(None).expect("a reader"))),
        Outcome::Nothing => None,
    }
}

/// The response meets the moment at which the silence has lasted too long.
#[test]
fn a_response_meets_the_end_of_the_silence() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (answering, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || write(&*answering, RESPONSE, 1));
        threads.start(move || breaking.break_silence());
        assert_eq!(outcome(&exchange), Some(vec![1]));
        threads.join();
        assert!(exchange.is_answered());
    });
}

/// The same with notifications of the handler's before the response.
#[test]
fn notifications_meet_the_end_of_the_silence() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (answering, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || {
            write(&*answering, Kind::Notification, 1);
            write(&*answering, Kind::Notification, 2);
            write(&*answering, RESPONSE, 3);
        });
        threads.start(move || breaking.break_silence());
        assert_eq!(outcome(&exchange), Some(vec![1, 2, 3]));
        threads.join();
        assert!(exchange.is_answered());
    });
}

/// The request is cancelled: its client gets nothing, or a stream that ends.
#[test]
fn a_cancellation_meets_the_end_of_the_silence() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (cancelling, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || {
            write(&*cancelling, Kind::Notification, 1);
            cancelling.abandon();
        });
        threads.start(move || breaking.break_silence());
        assert_eq!(outcome(&exchange), Some(vec![1]));
        threads.join();
        let silent = self::exchange();
        let (cancelling, breaking) = (silent.clone(), silent.clone());
        threads.start(move || cancelling.abandon());
        threads.start(move || breaking.break_silence());
        assert!(outcome(&silent).is_none_or(|messages| messages.is_empty()));
        threads.join();
        assert!(silent.is_answered());
    });
}

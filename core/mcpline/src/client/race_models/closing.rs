//! Models of a client's end. Concurrent `close` calls race each other and a failing session: each returns only when no
//! link is left.

use shuttle::future::{block_on, yield_now};

use crate::client::link_shutdown::{LinkShutdown, link_shutdown};
use crate::race_models::spawn;

use super::*;

/// A link whose task takes a while to end.
struct SlowLink {
    closing: LinkShutdown,
    running: Arc<AtomicUsize>,
}

impl SlowLink {
    /// Counts as running until it has ended.
    fn open(count: &Arc<AtomicUsize>) -> Arc<Self> {
        let (closing, running) = link_shutdown();
        count.fetch_add(1, Ordering::SeqCst);
        let counted = count.clone();
        spawn(async move {
            running.stop.stopped().await;
            for _ in 0..2 {
                yield_now().await;
            }
            counted.fetch_sub(1, Ordering::SeqCst);
            drop(running);
        });
        let running = count.clone();
        Arc::new(Self { closing, running })
    }
}

impl Link for SlowLink {
    fn send(&self, _: Outgoing) {}

    fn abandon(&self, _: u64) {}

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        let count = self.running.load(Ordering::SeqCst);
        assert!(count <= 2, "{count} links");
        self.closing.close()
    }
}

/// A client with an open session, and that session.
fn connected(links: &Arc<AtomicUsize>) -> (Arc<Inner>, Arc<Session>) {
    let client = client(Handlers::default());
    let opened = NegotiatedSession {
        revision: Revision::V2025_11_25,
        capabilities: ServerCapabilities::default(),
        info: None,
        instructions: None,
        initialized: None,
        next_id: 1,
    };
    let session = Session::start(opened, SlowLink::open(links), &client);
    block_on(client.adopt_session(session.clone())).expect("it is open");
    (client, session)
}

#[test]
fn all_who_close_wait_for_the_end_of_the_link() {
    check(|| {
        let links = Arc::new(AtomicUsize::new(0));
        let (client, session) = connected(&links);
        let threads = Threads::default();
        for _ in 0..2 {
            let (client, links) = (client.clone(), links.clone());
            threads.start(move || {
                block_on(client.close());
                assert_eq!(links.load(Ordering::SeqCst), 0);
            });
        }
        drop((client, session));
        threads.join();
    });
}

#[test]
fn all_who_close_wait_for_a_link_that_is_being_closed() {
    check(|| {
        let links = Arc::new(AtomicUsize::new(0));
        let (client, session) = connected(&links);
        // The server does not answer any more.
        session.end(&ClientError::Closed);
        client.close_link(session.link.clone());
        let threads = Threads::default();
        for _ in 0..2 {
            let (client, links) = (client.clone(), links.clone());
            threads.start(move || {
                block_on(client.close());
                assert_eq!(links.load(Ordering::SeqCst), 0);
            });
        }
        drop((client, session));
        threads.join();
    });
}

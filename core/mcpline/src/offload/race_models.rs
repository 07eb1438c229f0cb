//! Models of turns: computations wait, end and are given up concurrently.

use crate::fair_queue::PeerId;
use crate::race_models::{check, settle, spawn};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

use super::fair_semaphore::FairSemaphore;

/// Each computation gets its turn, never more than allowed run at once, and nothing is left of them.
#[test]
fn turns_race_computations_that_wait_and_give_up() {
    check(|| {
        const AT_ONCE: usize = 2;
        let turns = FairSemaphore::new(AT_ONCE);
        let (running, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let peers = [PeerId::new(), PeerId::new()];
        let mut last = None;
        for number in 0..5 {
            let (turns, running, done) = (turns.clone(), running.clone(), done.clone());
            last = Some(spawn(async move {
                let turn = turns.wait(peers[number % 2]).await.expect("never closed");
                assert!(running.fetch_add(1, Ordering::SeqCst) < AT_ONCE);
                running.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        // One is given up at an arbitrary moment.
        last.expect("there are five").abort();
        settle();
        assert!(done.load(Ordering::SeqCst) >= 4);
        assert!(turns.is_idle(AT_ONCE));
    });
}

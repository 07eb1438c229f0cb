//! Turns of computations, or of requests to a service that accepts few at once: peers take turns, however many entries
//! one has.

use tokio::sync::oneshot;

use crate::fair_queue::{FairQueue, PeerId};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits how many computations run at once. Those that wait are kept by peer, only while they wait; limits of calls
/// bound them.
#[derive(Debug)]
pub(crate) struct FairSemaphore(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Number of further computations that may run. None waits unless this is 0.
    free: usize,
    waiting: FairQueue<oneshot::Sender<Turn>>,
}

/// Permission to compute. Passed to the next in turn on drop.
#[derive(Debug)]
pub(crate) struct Turn(Option<Arc<FairSemaphore>>);

impl FairSemaphore {
    pub(crate) fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            free: at_once,
            waiting: FairQueue::default(),
        })))
    }

    /// Waits for a turn. Dropping the future stops waiting.
    pub(crate) async fn wait(self: &Arc<Self>, peer: PeerId) -> Option<Turn> {
        let (number, turn) = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn(Some(self.clone())));
            }
            let (give, turn) = oneshot::channel();
            (state.waiting.push(peer, give), turn)
        };
        let _leaving = WaitGuard {
            turns: self,
            peer,
            number,
        };
        turn.await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether nothing runs and nothing is kept, if `at_once` may run.
    #[cfg(test)]
    pub(crate) fn is_idle(&self, at_once: usize) -> bool {
        let state = self.lock();
        state.free == at_once && state.waiting.is_empty()
    }

    /// Returns how many wait.
    #[cfg(test)]
    pub(crate) fn count_waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut held = self.0.take();
        while let Some(turns) = held {
            let next = {
                let mut state = turns.lock();
                let next = state.waiting.pop();
                if next.is_none() {
                    state.free += 1;
                }
                next
            };
            // Not while the turns are locked: one that stopped waiting returns its turn here.
            held = next.and_then(|next| next.send(Self(Some(turns))).err()?.0.take());
        }
    }
}

/// Removes the entry of a waiting computation, however the wait ends.
struct WaitGuard<'t> {
    turns: &'t FairSemaphore,
    peer: PeerId,
    number: u64,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let left = self.turns.lock().waiting.remove(self.peer, self.number);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A computation of a peer that waits for its turn.
    struct Wait {
        peer: usize,
        turn: Pin<Box<dyn Future<Output = Option<Turn>>>>,
    }

    /// Creates this many waiting computations for each of these peers, in this order.
    fn waits(turns: &Arc<FairSemaphore>, peers: &[PeerId], counts: &[(usize, usize)]) -> Vec<Wait> {
        let whose = counts
            .iter()
            .flat_map(|(peer, count)| std::iter::repeat_n(*peer, *count));
        let mut waits = Vec::new();
        for peer in whose {
            let (turns, key) = (turns.clone(), peers[peer]);
            let mut turn = Box::pin(async move { turns.wait(key).await });
            assert!(poll(turn.as_mut()).is_none(), "there is no room");
            waits.push(Wait { peer, turn });
        }
        waits
    }

    fn poll(wait: Pin<&mut (impl Future<Output = Option<Turn>> + ?Sized)>) -> Option<Turn> {
        match wait.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn.expect("it is never closed")),
            Poll::Pending => None,
        }
    }

    fn first(turns: &Arc<FairSemaphore>) -> Turn {
        let wait = std::pin::pin!(turns.wait(PeerId::new()));
        poll(wait).expect("there is room")
    }

    /// Returns the peers in the order of their turns, each of which ends immediately.
    fn order(waits: Vec<Wait>) -> Vec<usize> {
        let mut waits: Vec<_> = waits.into_iter().map(Some).collect();
        let mut order = Vec::new();
        while waits.iter().any(Option::is_some) {
            let before = order.len();
            for entry in &mut waits {
                let Some(wait) = entry else { continue };
                if let Some(turn) = poll(wait.turn.as_mut()) {
                    order.push(wait.peer);
                    *entry = None;
                    drop(turn);
                    break;
                }
            }
            assert!(order.len() > before, "a turn was lost");
        }
        order
    }

    #[test]
    fn a_peer_with_many_computations_has_no_more_turns_than_others() {
        let turns = FairSemaphore::new(1);
        let running = first(&turns);
        let peers = [PeerId::new(), PeerId::new(), PeerId::new()];
        let waits = waits(&turns, &peers, &[(0, 300), (1, 2), (2, 1)]);
        assert_eq!(turns.count_waiting(), 303);
        drop(running);
        let order = order(waits);
        assert_eq!(order[..7], [0, 1, 2, 0, 1, 0, 0]);
        assert!(turns.is_idle(1));
    }

    #[test]
    fn computations_that_stop_waiting_leave_nothing_behind() {
        let turns = FairSemaphore::new(1);
        let running = first(&turns);
        let peers = [PeerId::new(), PeerId::new()];
        let mut waits = waits(&turns, &peers, &[(0, 3), (1, 2)]);
        drop(waits.remove(1));
        drop(waits.pop());
        drop(waits.pop());
        assert_eq!(turns.count_waiting(), 2);
        drop(running);
        // The turn was given to one that goes away before it takes it.
        drop(waits.remove(0));
        assert_eq!(order(waits), [0]);
        assert!(turns.is_idle(1));
    }
}

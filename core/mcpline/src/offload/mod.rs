//! Work that takes long to compute, away from the threads that serve connections.

#[cfg(all(test, mcpline_models))]
mod models;
pub(crate) mod turns;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::background;
use crate::sync::Arc;
use crate::turn_queue::PeerId;

use turns::Turns;

/// How many computations run at once, in all of the process: one for each processor, so that more of them end no
/// sooner, and leave room for the threads that serve connections. The others wait for their turn, and peers have theirs one
/// after the other: who has many computations waits longer, not its neighbours.
static TURNS: LazyLock<Arc<Turns>> =
    LazyLock::new(|| Turns::new(std::thread::available_parallelism().map_or(2, usize::from)));

/// What has a flag that a computation looks at, to end early once it is set.
pub(crate) trait HasInterruptFlag: Send + Sync + 'static {
    fn interrupt(&self) -> &AtomicBool;
}

impl HasInterruptFlag for AtomicBool {
    fn interrupt(&self) -> &AtomicBool {
        self
    }
}

/// Computes something for a peer on a thread of its own. If the future is dropped before it is ready, the computation is
/// interrupted. `None` if it panicked, or the runtime is ending.
pub(crate) async fn compute<T: Send + 'static>(
    peer: PeerId,
    flag: Arc<impl HasInterruptFlag>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Option<T> {
    let turn = TURNS.wait(peer).await?;
    let mut dropping = Dropping {
        flag: flag.clone(),
        is_done: false,
    };
    let outcome = background::blocking(move || {
        let outcome = work(flag.interrupt());
        drop(turn);
        outcome
    })
    .await;
    dropping.is_done = true;
    outcome
}

/// Sets the flag when it is dropped before the computation is done.
struct Dropping<I: HasInterruptFlag> {
    flag: Arc<I>,
    is_done: bool,
}

impl<I: HasInterruptFlag> Drop for Dropping<I> {
    fn drop(&mut self) {
        if !self.is_done {
            self.flag.interrupt().store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[runtimes::test]
    async fn a_computation_runs_on_another_thread() {
        let here = std::thread::current().id();
        let there = compute(PeerId::new(), Arc::new(AtomicBool::new(false)), |_| {
            std::thread::current().id()
        });
        assert_ne!(there.await, Some(here));
    }

    #[runtimes::test]
    async fn a_dropped_future_interrupts_its_computation() {
        let (started, start) = tokio::sync::oneshot::channel();
        let (ended, end) = mpsc::channel();
        let computing = compute(
            PeerId::new(),
            Arc::new(AtomicBool::new(false)),
            move |interrupt| {
                let _ = started.send(());
                while !interrupt.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                let _ = ended.send(());
            },
        );
        tokio::select! {
            _ = computing => panic!("it ends only when it is interrupted"),
            started = start => started.expect("it runs"),
        }
        end.recv().expect("it was interrupted");
    }
}

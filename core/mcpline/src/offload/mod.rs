//! Runs long computations off the I/O threads.

pub(crate) mod fair_semaphore;
#[cfg(all(test, mcpline_models))]
mod race_models;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::background;
use crate::fair_queue::PeerId;
use crate::sync::Arc;

use fair_semaphore::FairSemaphore;

/// The turns of computations in this process: at most one per processor runs at once, because more of them would not
/// finish earlier, and to leave room for I/O threads. The others wait, and peers take turns: a peer with many
/// computations only delays its own.
static TURNS: LazyLock<Arc<FairSemaphore>> = LazyLock::new(|| {
    FairSemaphore::new(std::thread::available_parallelism().map_or(2, usize::from))
});

/// A value with a flag that interrupts computations once it is set.
pub(crate) trait HasInterruptFlag: Send + Sync + 'static {
    fn interrupt(&self) -> &AtomicBool;
}

impl HasInterruptFlag for AtomicBool {
    fn interrupt(&self) -> &AtomicBool {
        self
    }
}

/// Computes something for a peer on a thread of its own. Dropping the future interrupts the computation. Returns `None`
/// if it panicked or the runtime is shutting down.
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

/// Sets the flag when it is dropped before the computation has finished.
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

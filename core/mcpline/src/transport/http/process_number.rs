//! The number that distinguishes this process from others that serve the same sessions.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpline_runtime::clock;

/// A random number of this process. A process that is forked afterwards has another one: it has the memory of its parent, and its
/// streams must not have the names of its parent's streams.
#[derive(Debug, Default)]
pub(super) struct ProcessNumber {
    /// The process id, then the number; 0 if there is none yet. One word, because a lock that another thread holds stays locked
    /// in a forked process.
    known: AtomicU64,
}

impl ProcessNumber {
    /// Returns the number of this process, which is never 0.
    pub(super) fn get(&self) -> u32 {
        self.of(process::id())
    }

    /// Returns the number of the process with this id.
    fn of(&self, id: u32) -> u32 {
        let known = self.known.load(Ordering::Relaxed);
        if (known >> 32) == u64::from(id) && known as u32 != 0 {
            return known as u32;
        }
        let number = u32::from_le_bytes(clock::random()).max(1);
        let own = u64::from(id) << 32 | u64::from(number);
        match self
            .known
            .compare_exchange(known, own, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => number,
            // Another thread was faster.
            Err(other) => other as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_number_and_a_forked_one_has_another() {
        let of_parent = ProcessNumber::default();
        let parent = of_parent.get();
        assert_eq!(of_parent.get(), parent);
        // What a forked process finds in its memory.
        let forked = || ProcessNumber {
            known: AtomicU64::new(of_parent.known.load(Ordering::Relaxed)),
        };
        let (first, second) = (forked(), forked());
        let (a, b) = (process::id() + 1, process::id() + 2);
        let numbers = [parent, first.of(a), second.of(b)];
        assert_eq!(first.of(a), numbers[1], "it keeps its number");
        assert!(numbers.iter().all(|number| *number != 0));
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2]);
    }
}

//! What all parts of a run share: its time, its random numbers, its trace and what it found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::plant::Plant;
use crate::random::Random;
use crate::replica::Replicas;
use crate::shared_state::Store;

/// Violations that a run reports; more would only repeat them.
const MAX_VIOLATIONS: usize = 20;

/// Size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) replicas: u64,
    pub(crate) sessions: u64,
    /// Operations of each session.
    pub(crate) steps: u64,
    /// Sessions that exist at the same time.
    pub(crate) concurrent: u64,
}

/// One run.
pub(crate) struct World {
    pub(crate) size: Size,
    pub(crate) plant: Option<Plant>,
    pub(crate) store: Store,
    pub(crate) replicas: Replicas,
    began: Instant,
    prints_trace: bool,
    state: Mutex<State>,
}

struct State {
    random: Random,
    /// FNV-1a of all events.
    trace: u64,
    violations: Vec<String>,
    /// How often the handler ran for each call that has not been checked yet.
    executions: HashMap<u64, u64>,
    counts: Counts,
    next_number: u64,
    /// When the faults ended.
    calm_since: Option<Duration>,
}

/// What happened in a run.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) sessions: u64,
    pub(crate) answers: u64,
    pub(crate) retries: u64,
    pub(crate) resumed: u64,
    pub(crate) input_responses: u64,
    pub(crate) kills: u64,
    pub(crate) shutdowns: u64,
    pub(crate) partitions: u64,
    pub(crate) delays: u64,
}

impl World {
    pub(crate) fn new(
        seed: u64,
        size: Size,
        plant: Option<Plant>,
        prints_trace: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            size,
            plant,
            store: Store::default(),
            replicas: Replicas::default(),
            began: Instant::now(),
            prints_trace,
            state: Mutex::new(State {
                random: Random::new(seed),
                trace: 0xcbf2_9ce4_8422_2325,
                violations: Vec::new(),
                executions: HashMap::new(),
                counts: Counts::default(),
                next_number: 0,
                calm_since: None,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        self.lock().random.between(from, to)
    }

    /// Returns true in `share` of 1,000 cases.
    pub(crate) fn happens(&self, share: u64) -> bool {
        self.between(1, 1_000) <= share
    }

    pub(crate) fn is_planted(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    /// Waits for a time between these, in milliseconds.
    pub(crate) async fn pause(&self, from: u64, to: u64) {
        let pause = Duration::from_millis(self.between(from, to));
        tokio::time::sleep(pause).await;
    }

    /// Returns a number that is used once in a run.
    pub(crate) fn number(&self) -> u64 {
        let mut state = self.lock();
        state.next_number += 1;
        state.next_number
    }

    /// Adds an event to the trace.
    pub(crate) fn trace(&self, event: std::fmt::Arguments<'_>) {
        let line = format!("{:>9} {event}", self.now().as_millis());
        if self.prints_trace {
            eprintln!("{line}");
        }
        let mut state = self.lock();
        for byte in line.bytes() {
            state.trace = (state.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Reports what must not happen.
    pub(crate) fn violation(&self, what: std::fmt::Arguments<'_>) {
        self.trace(format_args!("VIOLATION {what}"));
        let line = format!("at {} ms: {what}", self.now().as_millis());
        let mut state = self.lock();
        if state.violations.len() < MAX_VIOLATIONS {
            state.violations.push(line);
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock().counts);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Records that the handler of a call ran.
    pub(crate) fn note_execution(&self, call: u64) {
        *self.lock().executions.entry(call).or_default() += 1;
    }

    /// Returns how often the handler of a call ran, and forgets it.
    pub(crate) fn take_executions(&self, call: u64) -> u64 {
        self.lock().executions.remove(&call).unwrap_or_default()
    }

    /// Ends the faults.
    pub(crate) fn calm_down(&self) {
        self.trace(format_args!("faults end"));
        let now = self.now();
        self.lock().calm_since = Some(now);
    }

    /// Whether faults may happen.
    pub(crate) fn has_faults(&self) -> bool {
        self.lock().calm_since.is_none()
    }

    /// Returns the violations and the hash of the trace.
    pub(crate) fn result(&self) -> (Vec<String>, u64) {
        let state = self.lock();
        (state.violations.clone(), state.trace)
    }
}

//! One run, in a process of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::client::Client;
use crate::faults;
use crate::plant::Plant;
use crate::replica::{INPUT_REQUEST_TIMEOUT, SESSION_IDLE_TIMEOUT, STATE_LIFETIME};
use crate::system;
use crate::world::{Counts, Size, World};

/// The stack of the thread of a run, which is not the main thread: the address of its stack depends on the environment.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// What a run found.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) trace: u64,
    pub(crate) counts: Counts,
    pub(crate) virtual_time: Duration,
}

/// Simulates a service until all clients are done and everything has been released.
///
/// # Panics
///
/// If a thread or a runtime cannot be created, or the code under test panics.
pub(crate) fn run(seed: u64, size: Size, plant: Option<Plant>, prints_trace: bool) -> Outcome {
    system::simulate(seed);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let running = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(simulate(seed, size, plant, prints_trace))
    });
    running.expect("a thread").join().expect("no panic")
}

async fn simulate(seed: u64, size: Size, plant: Option<Plant>, prints_trace: bool) -> Outcome {
    let world = World::new(seed, size, plant, prints_trace);
    for _ in 0..size.replicas {
        world.replicas.start(&world);
    }
    let faults = tokio::spawn(faults::cause(world.clone()));
    let places = Arc::new(Semaphore::new(size.concurrent as usize));
    let mut slots: Vec<u64> = (0..size.concurrent).rev().collect();
    let (returned, mut free) = tokio::sync::mpsc::unbounded_channel();
    // The last clients see how everything recovers.
    let last_with_faults = size.sessions - size.sessions / 5;
    for session in 0..size.sessions {
        let place = places.clone().acquire_owned().await.expect("not closed");
        while let Ok(slot) = free.try_recv() {
            slots.push(slot);
        }
        if session == last_with_faults {
            world.calm_down();
        }
        let slot = slots.pop().expect("as many as places");
        let (world, returned) = (world.clone(), returned.clone());
        tokio::spawn(async move {
            Client::run(world, slot).await;
            // The receiver lives as long as the run.
            let _ = returned.send(slot);
            drop(place);
        });
    }
    let _all = places.acquire_many(size.concurrent as u32).await;
    if world.has_faults() {
        world.calm_down();
    }
    faults.await.expect("no panic");
    // Whatever still waits ends.
    let longest = SESSION_IDLE_TIMEOUT
        .max(STATE_LIFETIME)
        .max(INPUT_REQUEST_TIMEOUT);
    tokio::time::sleep(2 * longest).await;
    world.replicas.check_released(&world);
    let (violations, trace) = world.result();
    Outcome {
        violations,
        trace,
        counts: world.counts(),
        virtual_time: world.now(),
    }
}

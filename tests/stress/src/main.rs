//! Races events of a request on several threads, many times, and counts requests that are never answered.
//!
//! ```text
//! cargo run --release -p stress -- [ROUNDS] [SCENARIO...]
//! ```
//!
//! Prints a line per scenario and exits with a non-zero code if a round was not answered. Everything happens within the
//! process, on a runtime with four workers, so that no socket delays the events that race.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

mod scenarios;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scenarios::Scenario;

/// Number of threads that the events race on, and of concurrent rounds.
const WORKERS: usize = 4;
const TASKS: u64 = 16;

/// A round that takes longer counts as not answered. Rounds take microseconds; a busy machine may delay a few for a
/// second.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of rounds, which takes seconds.
const ROUNDS: u64 = 20_000;

fn main() -> ExitCode {
    let mut rounds = ROUNDS;
    let mut chosen = Vec::new();
    for argument in std::env::args().skip(1) {
        match (argument.parse(), Scenario::named(&argument)) {
            (Ok(number), _) => rounds = number,
            (_, Some(scenario)) => chosen.push(scenario),
            _ => {
                let names: Vec<_> = Scenario::ALL.iter().map(|all| all.name()).collect();
                println!("usage: stress [ROUNDS] [{}]", names.join("|"));
                return ExitCode::from(2);
            }
        }
    }
    if chosen.is_empty() {
        chosen.extend(Scenario::ALL);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_time()
        .build()
        .expect("a runtime");
    let mut lost = 0;
    for scenario in chosen {
        let begun = Instant::now();
        let unanswered = runtime.block_on(run(scenario, rounds));
        let seconds = begun.elapsed().as_secs_f64();
        let name = scenario.name();
        println!("{name}: {unanswered} of {rounds} rounds unanswered, {seconds:.1} s");
        lost += unanswered;
    }
    match lost {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs the rounds of a scenario, some concurrently, and returns how many were not answered.
async fn run(scenario: Scenario, rounds: u64) -> u64 {
    let rig = Arc::new(scenarios::Rig::new());
    let left = Arc::new(AtomicU64::new(rounds));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| tokio::spawn(rounds_of_one_task(scenario, rig.clone(), left.clone())))
        .collect();
    let mut unanswered = 0;
    for task in tasks {
        unanswered += task.await.expect("no panic");
    }
    unanswered
}

async fn rounds_of_one_task(
    scenario: Scenario,
    rig: Arc<scenarios::Rig>,
    left: Arc<AtomicU64>,
) -> u64 {
    let client = rig.client().await;
    let mut unanswered = 0;
    let take = |left: u64| left.checked_sub(1);
    while let Ok(number) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        let round = scenario.round(&client, number);
        if tokio::time::timeout(TEST_TIMEOUT, round).await.is_err() {
            unanswered += 1;
        }
    }
    unanswered
}

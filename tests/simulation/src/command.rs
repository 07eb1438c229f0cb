//! The command line. Each run is a process of its own, so that nothing of one run changes the next.

use std::process::{Command, ExitCode, Stdio};

use crate::plant::Plant;
use crate::world::Size;
use crate::{run, system};

const HELP: &str = "\
Simulates replicas that share sessions, and their clients, with faults in virtual time.

usage: simulation [--seed N | --seeds A..B] [--replicas N] [--sessions N] [--steps N] [--concurrent N]
                  [--plant NAME] [--trace]

  --seed N        runs one seed (default: 1)
  --seeds A..B    runs the seeds from A to B, without B
  --replicas N    number of replicas (default: 5)
  --sessions N    number of sessions of a run (default: 200)
  --steps N       operations of each session (default: 8)
  --concurrent N  number of sessions that exist at the same time (default: 50)
  --plant NAME    plants a fault in the shared state, which the checks must find, and ends with the first seed that finds it:
                  store-not-atomic, store-keeps-removed, bus-drops, log-loses-tail or log-repeats
  --trace         prints all events to stderr

Exits with 1 if a seed failed, or if none found the planted fault.";

/// The argument of the processes that run one seed.
const CHILD: &str = "--child";

struct Arguments {
    seeds: std::ops::Range<u64>,
    size: Size,
    plant: Option<Plant>,
    prints_trace: bool,
    is_child: bool,
}

pub(crate) fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given.iter().any(|argument| argument == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match parse(&given) {
        Ok(arguments) if arguments.is_child => run_here(&arguments),
        Ok(arguments) => run_all(&arguments, &given),
        Err(reason) => {
            eprintln!("{reason}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(given: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        seeds: 1..2,
        size: Size {
            replicas: 5,
            sessions: 200,
            steps: 8,
            concurrent: 50,
        },
        plant: None,
        prints_trace: false,
        is_child: false,
    };
    let mut given = given.iter();
    while let Some(option) = given.next() {
        match option.as_str() {
            "--trace" => arguments.prints_trace = true,
            CHILD => arguments.is_child = true,
            "--plant" => {
                let name = value(option, given.next())?;
                let plant = Plant::named(name);
                arguments.plant = Some(plant.ok_or_else(|| format!("--plant: no fault {name}"))?);
            }
            "--seeds" => {
                let range = value(option, given.next())?;
                let parsed = range.split_once("..").and_then(|(from, to)| {
                    Some(from.parse::<u64>().ok()?..to.parse::<u64>().ok()?)
                });
                arguments.seeds = parsed.ok_or("--seeds takes a range such as 1..20")?;
            }
            "--seed" => {
                let seed = number(option, given.next())?;
                arguments.seeds = seed..seed.saturating_add(1);
            }
            "--replicas" => arguments.size.replicas = number(option, given.next())?.max(1),
            "--sessions" => arguments.size.sessions = number(option, given.next())?.max(1),
            "--steps" => arguments.size.steps = number(option, given.next())?.max(1),
            "--concurrent" => arguments.size.concurrent = number(option, given.next())?.max(1),
            _ => return Err(format!("unknown option {option}")),
        }
    }
    Ok(arguments)
}

fn value<'a>(option: &str, value: Option<&'a String>) -> Result<&'a str, String> {
    let value = value.ok_or_else(|| format!("{option} takes a value"))?;
    Ok(value)
}

fn number(option: &str, given: Option<&String>) -> Result<u64, String> {
    let value = value(option, given)?;
    let parsed = value.parse();
    parsed.map_err(|_| format!("{option} takes a number, not {value}"))
}

/// Runs one seed and prints what it found.
fn run_here(arguments: &Arguments) -> ExitCode {
    let seed = arguments.seeds.start;
    let outcome = run::run(
        seed,
        arguments.size,
        arguments.plant,
        arguments.prints_trace,
    );
    let counts = outcome.counts;
    println!(
        "seed {seed}: trace {:016x}, {} s, {} sessions, {} answers, {} retries, {} streams resumed, {} input responses, \
         {} kills, {} shutdowns, {} partitions, {} bus delays",
        outcome.trace,
        outcome.virtual_time.as_secs(),
        counts.sessions,
        counts.answers,
        counts.retries,
        counts.resumed,
        counts.input_responses,
        counts.kills,
        counts.shutdowns,
        counts.partitions,
        counts.delays,
    );
    for violation in &outcome.violations {
        println!("  {violation}");
    }
    match outcome.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs each seed in a process of its own.
fn run_all(arguments: &Arguments, given: &[String]) -> ExitCode {
    if let Err(error) = system::fix_addresses() {
        eprintln!("note: runs may differ, because addresses are random here: {error}");
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("cannot find this program: {error}");
            return ExitCode::from(2);
        }
    };
    let (mut passed, mut failed) = (0_u64, 0_u64);
    for seed in arguments.seeds.clone() {
        let child = Command::new(&program)
            .args(given)
            .args(["--seed", &seed.to_string(), CHILD])
            .env_clear()
            .stdin(Stdio::null())
            .status();
        match child {
            Ok(status) if status.success() => passed += 1,
            Ok(_) => failed += 1,
            Err(error) => {
                eprintln!("cannot start seed {seed}: {error}");
                failed += 1;
            }
        }
        if failed > 0
            && let Some(plant) = arguments.plant
        {
            println!(
                "{}: found by seed {seed}, after {passed} that did not find it",
                plant.name()
            );
            break;
        }
    }
    println!("{passed} passed, {failed} failed");
    // A planted fault must be found.
    match (failed > 0) == arguments.plant.is_some() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

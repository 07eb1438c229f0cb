//! Compares our validator with the crate `jsonschema` on random schemas and values, reproducible by a seed.
//!
//!     schema-compare [--schemas N] [--seed N] [--only N]
//!
//! `--schemas` is the number of schemas in each dialect, with some values each. A difference is minimised and printed
//! with the number of its schema, which `--only` repeats. `known.rs` has the known differences with their reasons.

#![expect(clippy::print_stdout, reason = "a test runner reports there")]

mod known;
mod random;
mod schemas;
mod shrink;
mod values;
mod verdict;

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::Value;

use known::KNOWN;
use random::Random;
use verdict::{Both, Verdict};

/// The dialects to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Draft7,
    Draft202012,
}

impl Dialect {
    fn uri(self) -> &'static str {
        match self {
            Self::Draft7 => "http://json-schema.org/draft-07/schema#",
            Self::Draft202012 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The keyword that contains schemas for references.
    fn definitions(self) -> &'static str {
        match self {
            Self::Draft7 => "definitions",
            Self::Draft202012 => "$defs",
        }
    }
}

/// Number of values for each schema.
const VALUES: usize = 12;

/// Maximum number of differences to print.
const PRINTED: usize = 20;

struct Arguments {
    schemas: u64,
    seed: u64,
    only: Option<u64>,
}

#[derive(Default)]
struct Tally {
    agreed: BTreeMap<String, usize>,
    known: BTreeMap<&'static str, usize>,
    unexplained: usize,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(name) => {
            eprintln!("{name}: not an option, or not a number");
            return ExitCode::from(2);
        }
    };
    // Panics of either validator are verdicts.
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    for dialect in [Dialect::Draft202012, Dialect::Draft7] {
        for case in 0..arguments.schemas {
            if arguments.only.is_none_or(|only| only == case) {
                compare(dialect, arguments.seed, case, &mut tally);
            }
        }
    }
    let Tally {
        agreed,
        known,
        unexplained,
    } = &tally;
    for (reason, count) in known {
        println!("{count:7}  differ: {reason}");
    }
    for (verdict, count) in agreed {
        println!("{count:7}  agreed: {verdict}");
    }
    let gone = stale();
    println!(
        "{} verdicts agreed, {} differ for known reasons, {unexplained} unexplained",
        agreed.values().sum::<usize>(),
        known.values().sum::<usize>(),
    );
    // If a generator's values were all valid, or all invalid, the comparison would be worthless.
    let few = ["valid", "invalid", "schema refused"].iter().any(|it| {
        let total = agreed.values().sum::<usize>();
        agreed.get(*it).copied().unwrap_or_default() < total / 100
    });
    if few && arguments.only.is_none() {
        println!("the verdicts are too much alike: this run shows nothing");
        return ExitCode::FAILURE;
    }
    if *unexplained > 0 || gone > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        schemas: 2_000,
        seed: 1,
        only: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let number = given.next().and_then(|number| number.parse().ok());
        match (name.as_str(), number) {
            ("--schemas", Some(number)) => found.schemas = number,
            ("--seed", Some(number)) => found.seed = number,
            ("--only", Some(number)) => found.only = Some(number),
            _ => return Err(name),
        }
    }
    if let Some(only) = found.only {
        found.schemas = found.schemas.max(only + 1);
    }
    Ok(found)
}

fn compare(dialect: Dialect, seed: u64, case: u64, tally: &mut Tally) {
    let mut random = Random::of(seed, case);
    let schema = schemas::schema(&mut random, dialect);
    let both = Both::compile(dialect, &schema);
    for _ in 0..VALUES {
        let value = values::for_schema(&mut random, &schema, 3);
        let verdicts = both.of(&value);
        if verdicts.0 == verdicts.1 {
            *tally.agreed.entry(verdicts.0.to_string()).or_default() += 1;
            continue;
        }
        let (small, value) = shrink::shrink(&schema, &value, |schema, value| {
            Both::compile(dialect, schema).of(value) == verdicts
        });
        if let Some(known) = KNOWN
            .iter()
            .find(|known| (known.explains)(&small, &value, verdicts))
        {
            *tally.known.entry(known.reason).or_default() += 1;
        } else {
            tally.unexplained += 1;
            if tally.unexplained <= PRINTED {
                println!(
                    "{dialect:?}, schema {case}: ours {}, theirs {}\n    {small}\n    {value}",
                    verdicts.0, verdicts.1
                );
            }
        }
        if verdicts.0 == Verdict::Refused || verdicts.1 == Verdict::Refused {
            // The other values would be refused, too.
            break;
        }
    }
}

/// Counts the differences of the table that no longer exist.
fn stale() -> usize {
    let is_gone = |known: &&known::Known| {
        let schema: Value = serde_json::from_str(known.schema).expect("a schema");
        let value: Value = serde_json::from_str(known.value).expect("a value");
        let verdicts = Both::compile(known.dialect, &schema).of(&value);
        verdicts.0 == verdicts.1 || !(known.explains)(&schema, &value, verdicts)
    };
    let gone: Vec<_> = KNOWN.iter().filter(is_gone).collect();
    for known in &gone {
        println!("no longer differs as the table says: {}", known.reason);
    }
    gone.len()
}

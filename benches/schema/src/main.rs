//! Times `mcpline-schema` against the crates `jsonschema` and `boon`, and prints the table of `core/schema/README.md`.
//!
//! Each cell is the median of several batches; the three validators take turns, so that other load on the machine
//! affects all of them.

mod cases;

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;

use cases::Case;

/// The number of batches per cell.
const BATCHES: usize = 15;

/// The minimum duration of a batch, unless one run takes longer.
const BATCH: Duration = Duration::from_millis(20);

fn main() {
    println!("| | ours | jsonschema | boon | jsonschema/ours | boon/ours |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for case in cases::all() {
        measure(&case);
    }
}

fn measure(case: &Case) {
    let ours = mcpline_schema::Validator::compile(&case.schema).expect("a schema");
    let theirs = jsonschema::validator_for(&case.schema).expect("a schema");
    let (boon, index) = boon_compiled(&case.schema);
    for (value, is_valid) in [(&case.valid, true), (&case.invalid, false)] {
        assert_eq!(ours.validate(value).is_ok(), is_valid, "{}", case.name);
        assert_eq!(theirs.is_valid(value), is_valid, "{}", case.name);
        assert_eq!(
            boon.validate(value, index).is_ok(),
            is_valid,
            "{}",
            case.name
        );
    }
    row(
        &format!("{}: compile", case.name),
        [
            &|| drop(black_box(mcpline_schema::Validator::compile(&case.schema))),
            &|| drop(black_box(jsonschema::validator_for(&case.schema))),
            &|| drop(black_box(boon_compiled(&case.schema))),
        ],
    );
    for (value, which) in [(&case.valid, "valid"), (&case.invalid, "invalid")] {
        row(
            &format!("{}: validate, {which}", case.name),
            [
                &|| drop(black_box(ours.validate(black_box(value)))),
                &|| drop(black_box(theirs.validate(black_box(value)))),
                &|| drop(black_box(boon.validate(black_box(value), index))),
            ],
        );
    }
}

fn boon_compiled(schema: &Value) -> (boon::Schemas, boon::SchemaIndex) {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let place = "https://schemas.example/schema.json";
    compiler
        .add_resource(place, schema.clone())
        .expect("a resource");
    let index = compiler.compile(place, &mut schemas).expect("a schema");
    (schemas, index)
}

/// Prints the medians of three validators, `mcpline-schema` first.
fn row(name: &str, runs: [&dyn Fn(); 3]) {
    let counts = runs.map(|run| {
        let start = Instant::now();
        let mut count: u32 = 0;
        while start.elapsed() < BATCH {
            run();
            count += 1;
        }
        count
    });
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..BATCHES {
        for (index, run) in runs.iter().enumerate() {
            let start = Instant::now();
            for _ in 0..counts[index] {
                run();
            }
            times[index].push(start.elapsed().as_secs_f64() / f64::from(counts[index]));
        }
    }
    let [ours, theirs, boon] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!(
        "| {name} | {} | {} | {} | {:.2} | {:.2} |",
        shown(ours),
        shown(theirs),
        shown(boon),
        theirs / ours,
        boon / ours
    );
}

fn shown(seconds: f64) -> String {
    match seconds {
        ..1e-6 => format!("{:.0} ns", seconds * 1e9),
        ..1e-3 => format!("{:.1} µs", seconds * 1e6),
        _ => format!("{:.2} ms", seconds * 1e3),
    }
}

//! `oidc-interop PROVIDER`: tests our client and our server with another party's authorization server, which `run`
//! started. `PROVIDER` is the line that it printed.
//!
//! Runs each behaviour with a server and a client of its own, and prints those that failed. The last line is `N passed,
//! N failed`.

mod behaviours;
mod browser;
mod world;

use std::io::{Write, stdout};
use std::panic;
use std::process::ExitCode;
use std::time::Duration;

use world::Provider;

/// A behaviour that takes longer counts as hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let said = std::env::args().nth(1).unwrap_or_default();
    let Ok(provider) = serde_json::from_str::<Provider>(&said) else {
        eprintln!("usage: oidc-interop PROVIDER [PART OF A NAME]");
        return ExitCode::from(2);
    };
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    // Failures are reported once, below.
    panic::set_hook(Box::new(|_| {}));
    for (name, behaviour) in behaviours::all() {
        if !name.contains(&wanted) {
            continue;
        }
        let running = tokio::spawn(behaviour(provider.clone()));
        let outcome = match tokio::time::timeout(TEST_TIMEOUT, running).await {
            Err(_) => Err(format!("no end within {} s", TEST_TIMEOUT.as_secs())),
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panicked)) => Err(panicked.to_string()),
        };
        match outcome {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                say(&format!("  FAILED {name}: {why}"));
            }
        }
    }
    say(&format!("{passed} passed, {failed} failed"));
    if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn say(line: &str) {
    // If this fails, the caller is gone.
    let _ = writeln!(stdout(), "{line}");
}

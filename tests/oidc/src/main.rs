//! `oidc-interop PROVIDER`: our client and our server with an authorization server of somebody else's, which `run` started;
//! `PROVIDER` is the line that it said then.
//!
//! Plays each behaviour with a server and a client of its own, prints those that failed, and closes with
//! `N passed, N failed`.

mod behaviours;
mod browser;
mod world;

use std::io::{Write, stdout};
use std::panic;
use std::process::ExitCode;
use std::time::Duration;

use world::Provider;

/// A behaviour that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let said = std::env::args().nth(1).unwrap_or_default();
    let Ok(provider) = serde_json::from_str::<Provider>(&said) else {
        eprintln!("usage: oidc-interop PROVIDER [PART OF A NAME]");
        return ExitCode::from(2);
    };
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    // A failure is told below, once.
    panic::set_hook(Box::new(|_| {}));
    for (name, behaviour) in behaviours::all() {
        if !name.contains(&wanted) {
            continue;
        }
        let running = tokio::spawn(behaviour(provider.clone()));
        let outcome = match tokio::time::timeout(PATIENCE, running).await {
            Err(_) => Err(format!("no end within {} s", PATIENCE.as_secs())),
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
    // Nobody is there to hear of it if this fails.
    let _ = writeln!(stdout(), "{line}");
}

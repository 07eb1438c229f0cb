//! Options of a server process.

use std::collections::HashMap;

use serde::Deserialize;

use crate::client::{Command, Stderr};
use crate::error::Error;

use super::options_macro::options;
use super::seconds;

options! {
    /// A [`Command`] from foreign code. `program` is required; other absent members keep their defaults.
    #[derive(Default)]
    pub struct ProgramOptions {
        program: String,
        arguments: Vec<String>,
        env: HashMap<String, String>,
        inherit_env: bool,
        cwd: Option<String>,
        stderr: StderrMode,
        exit_timeout: Option<f64>,
    }
    needs program;
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum StderrMode {
    #[default]
    Capture,
    Inherit,
    Null,
}

/// Omits what may be secret.
impl std::fmt::Debug for ProgramOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramOptions")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl ProgramOptions {
    /// Converts into a command, which is started for each connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn command(self) -> Result<Command, Error> {
        let mut command = Command::new(self.program)
            .args(self.arguments)
            .inherit_env(self.inherit_env)
            .stderr(match self.stderr {
                StderrMode::Capture => Stderr::Capture,
                StderrMode::Inherit => Stderr::Inherit,
                StderrMode::Null => Stderr::Null,
            });
        for (name, value) in self.env {
            command = command.env(name, value);
        }
        if let Some(directory) = self.cwd {
            command = command.current_dir(directory);
        }
        if let Some(exit_timeout) = self.exit_timeout {
            command = command.exit_timeout(seconds(exit_timeout)?);
        }
        Ok(command)
    }
}

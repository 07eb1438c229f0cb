//! What to start, and how.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// A program that is a server over stdin and stdout.
///
/// It gets a process group of its own, and of the environment only what is not secret by custom (`HOME`, `LANG`,
/// `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and the `LC_…`), besides what it is given.
#[derive(Clone)]
pub struct Command {
    pub(super) program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherit: bool,
    directory: Option<PathBuf>,
    stderr: Stderr,
    listener: Option<StderrListener>,
    pub(super) grace: Duration,
}

/// Hears each line of a child's stderr.
pub(super) type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// Where a child's stderr goes. None of these ever blocks the child or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stderr {
    /// It is read. Its last lines are part of the error when the child ends; each line goes to the log and to
    /// [`Command::on_stderr`].
    #[default]
    Capture,
    /// It is this process's own.
    Inherit,
    /// It is dropped.
    Null,
}

/// What a child gets of the environment unless it is told otherwise.
const INHERITED: &[&str] = &[
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

impl Command {
    /// A program, by path or by a name to be found in `PATH`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherit: false,
            directory: None,
            stderr: Stderr::default(),
            listener: None,
            grace: Duration::from_secs(2),
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Whether it gets this process's whole environment, secrets included. `false` by default.
    #[must_use]
    pub fn inherit_env(mut self, inherit: bool) -> Self {
        self.inherit = inherit;
        self
    }

    /// Its working directory; this process's own by default.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Where its stderr goes.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Has `listener` hear each line of its stderr, which must be captured. Called on an I/O thread: it must not block.
    #[must_use]
    pub fn on_stderr(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// How long it has to leave once its stdin is closed, and again after a SIGTERM. 2 s by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    pub(super) fn stderr_listener(&self) -> Option<StderrListener> {
        self.listener.clone()
    }

    /// The same for the standard library.
    pub(super) fn to_std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match self.stderr {
                Stderr::Capture => Stdio::piped(),
                Stderr::Inherit => Stdio::inherit(),
                Stderr::Null => Stdio::null(),
            });
        if !self.inherit {
            let kept = |name: &OsStr| {
                let name = name.to_string_lossy();
                INHERITED.contains(&&*name) || name.starts_with("LC_")
            };
            command.env_clear();
            command.envs(std::env::vars_os().filter(|(name, _)| kept(name)));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

impl std::fmt::Debug for Command {
    /// Without the environment: it may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("directory", &self.directory)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

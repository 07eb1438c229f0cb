//! Programs to start as servers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::limits::MAX_LINE;

/// A program that serves over standard input and output.
///
/// It runs in its own process group, on Windows in its own job without a console window, and ends with this process. Of
/// this process's environment it inherits only variables that normally hold no secrets (`HOME`, `LANG`, `LOGNAME`, `PATH`,
/// `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and `LC_…`; on Windows those that name the system's and the user's folders, `PATH`
/// and `PATHEXT`, and the processor's), besides those that are set.
#[derive(Clone)]
pub struct Command {
    pub(super) program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherit: bool,
    directory: Option<PathBuf>,
    stderr: Stderr,
    listener: Option<StderrListener>,
    pub(super) exit_timeout: Duration,
    /// [`ClientSettings::max_line_bytes`](crate::client::ClientSettings::max_line_bytes) of the client that starts it.
    pub(in crate::client) max_line_bytes: usize,
}

/// Receives each line of a child's stderr.
pub(super) type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the standard error of a server process goes. No option blocks the process or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// Read by the client. Lines are logged and passed to [`Command::on_stderr`]; errors contain the last lines when
    /// the process exits.
    #[default]
    Capture,
    /// The standard error of this process.
    Inherit,
    /// Discarded.
    Null,
}

/// Environment variables that a child inherits by default.
#[cfg(not(windows))]
const INHERITED: &[&str] = &[
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// Environment variables that a child inherits by default. Without some of them programs do not even find the system's
/// libraries.
#[cfg(windows)]
const INHERITED: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROCESSOR_IDENTIFIER",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TZ",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Returns whether a child inherits a variable by default.
fn is_inherited(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    INHERITED.iter().any(|each| is_same_variable(each, &name)) || name.starts_with("LC_")
}

/// Compares names of environment variables. Windows ignores their case.
fn is_same_variable(one: &str, other: &str) -> bool {
    if cfg!(windows) {
        one.eq_ignore_ascii_case(other)
    } else {
        one == other
    }
}

impl Command {
    /// Creates a command. `program` is a path, or a name to look up in `PATH`, on Windows with the extensions of `PATHEXT`: `npx` finds
    /// `npx.cmd`. The current directory is not searched.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherit: false,
            directory: None,
            stderr: Stderr::default(),
            listener: None,
            exit_timeout: Duration::from_secs(2),
            max_line_bytes: MAX_LINE,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets whether the program inherits the whole environment, including secrets. Default: `false`.
    #[must_use]
    pub fn inherit_env(mut self, inherit: bool) -> Self {
        self.inherit = inherit;
        self
    }

    /// Returns what a start that failed is due to. The system has the same error for a program and for a working directory that
    /// does not exist.
    pub(super) fn unusable_part(&self) -> String {
        let directory = self.directory.as_deref();
        match directory.filter(|directory| !directory.is_dir()) {
            Some(directory) => format!("the working directory {}", directory.display()),
            None => self.program.display().to_string(),
        }
    }

    /// Sets the working directory. Default: that of this process.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets where its standard error goes. Default: [`Stderr::Capture`].
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets the listener for lines on standard error, which must be captured. It runs on an I/O thread and must not
    /// block.
    #[must_use]
    pub fn on_stderr(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets how long the program may take to exit after its standard input is closed, and again after SIGTERM, which
    /// Windows lacks. Default: 2 seconds.
    #[must_use]
    pub fn exit_timeout(mut self, exit_timeout: Duration) -> Self {
        self.exit_timeout = exit_timeout;
        self
    }

    pub(super) fn stderr_listener(&self) -> Option<StderrListener> {
        self.listener.clone()
    }

    /// Converts into a command of the standard library.
    ///
    /// # Errors
    ///
    /// The program is not found, on Windows.
    pub(super) fn to_std(&self) -> io::Result<std::process::Command> {
        let mut command = std::process::Command::new(self.program_file()?);
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
            command.env_clear();
            command.envs(std::env::vars_os().filter(|(name, _)| is_inherited(name)));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Ok(command)
    }
}

#[cfg(not(windows))]
impl Command {
    /// The system looks it up.
    #[expect(clippy::unnecessary_wraps, reason = "as on Windows")]
    fn program_file(&self) -> io::Result<&std::path::Path> {
        Ok(&self.program)
    }
}

#[cfg(windows)]
impl Command {
    fn program_file(&self) -> io::Result<PathBuf> {
        super::program::find(&self.program, |name| {
            let is_named = |known: &OsStr| is_same_variable(name, &known.to_string_lossy());
            let own = self.environment.iter().rev();
            let own = own
                .filter(|(known, _)| is_named(known))
                .map(|(_, value)| value.clone())
                .next();
            own.or_else(|| std::env::var_os(name))
        })
    }
}

impl std::fmt::Debug for Command {
    /// Omits the environment, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("directory", &self.directory)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

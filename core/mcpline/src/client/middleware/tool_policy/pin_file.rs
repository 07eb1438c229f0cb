//! The file of pinned definitions: a JSON object with a line for each tool.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(windows)]
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pins::{Definitions, MAX_BYTES};

/// How long a writer waits for others. Each takes milliseconds; a process that is stopped while it writes does not stop others for
/// longer.
#[cfg(windows)]
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a file, which need not exist.
pub(super) fn read(file: &Path) -> io::Result<Definitions> {
    let text = match std::fs::metadata(file) {
        Ok(of) if of.len() > 2 * MAX_BYTES as u64 => {
            let reason = format!("it has more than {} bytes", 2 * MAX_BYTES);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(_) => std::fs::read_to_string(file)?,
        // Windows also finds no file in what is not a directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match file.parent() {
                Some(parent) if parent.is_file() => Err(io::ErrorKind::NotADirectory.into()),
                _ => Ok(Definitions::new()),
            };
        }
        Err(error) => return Err(error),
    };
    Ok(
        serde_json::from_str::<std::collections::BTreeMap<String, Value>>(&text)?
            .into_iter()
            .map(|(name, definition)| (name, Arc::new(definition)))
            .collect(),
    )
}

/// Adds definitions to the file, and returns all that it has then. A tool that the file has keeps its definition there, unless
/// it is one of `accepted`.
///
/// The file is replaced as a whole: a reader sees the old or the new text. Other writers wait meanwhile, on Unix and Windows.
pub(super) fn add(
    file: &Path,
    definitions: &Definitions,
    accepted: &HashSet<String>,
) -> io::Result<Definitions> {
    // A link stays a link.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(directory)?;
    let _lock = lock(&sibling_path(directory, &file, "lock"))?;
    let mut all = read(&file)?;
    for (name, definition) in definitions {
        if accepted.contains(name) || !all.contains_key(name) {
            all.insert(name.clone(), definition.clone());
        }
    }
    let mut text = String::from("{");
    for (index, (name, definition)) in all.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push_str(": ");
        text.push_str(&definition.to_string());
    }
    text.push_str("\n}\n");
    replace(directory, &file, &text)?;
    Ok(all)
}

fn sibling_path(directory: &Path, file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{suffix}"));
    directory.join(name)
}

/// Waits until no other writer has the lock file open: Windows can refuse to share it.
#[cfg(windows)]
fn lock(file: &Path) -> io::Result<File> {
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = private_file_options();
    options.create(true).truncate(false);
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match options.open(file) {
            Err(error)
                if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

/// Waits until no other writer holds the lock, which ends when the file is closed.
#[cfg(not(windows))]
fn lock(file: &Path) -> io::Result<File> {
    let lock = private_file_options()
        .create(true)
        .truncate(false)
        .open(file)?;
    #[cfg(all(unix, feature = "stdio"))]
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(lock)
}

fn replace(directory: &Path, file: &Path, text: &str) -> io::Result<()> {
    // The names of temporary files are used once.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let new = sibling_path(
        directory,
        file,
        &format!("{}.{number}.new", std::process::id()),
    );
    // One that a killed process has left.
    let _ = std::fs::remove_file(&new);
    let written = private_file_options()
        .create_new(true)
        .open(&new)
        .and_then(|mut out| {
            if let Ok(before) = std::fs::metadata(file) {
                out.set_permissions(before.permissions())?;
            }
            out.write_all(text.as_bytes())?;
            out.sync_all()
        })
        .and_then(|()| std::fs::rename(&new, file));
    written.inspect_err(|_| {
        // The error of writing says more.
        let _ = std::fs::remove_file(&new);
    })
}

/// Returns options for a file that only its owner can read, unless it exists.
fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

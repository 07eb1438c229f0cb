//! A file that lines are appended to, its rotation, and the thread that writes to it.

mod writer;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(crate) use writer::LogWriter;

/// A file that lines are appended to.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    /// The size at which it is rotated; 0: never.
    pub(crate) max_bytes: u64,
    /// Number of rotated files that are kept.
    pub(crate) max_files: u32,
    /// `None` after a rotation that failed.
    file: Option<File>,
    /// Whether it ends within a line that could not be written as a whole.
    is_torn: bool,
    /// Its length after the latest write. If it has another one, another process has written since.
    length: Option<u64>,
}

impl LogFile {
    /// Opens or creates a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // The program may change its directory later.
        let path = std::path::absolute(path)?;
        let file = open(&path)?;
        let is_torn = ends_within_line(&path, &file);
        Ok(Self {
            path,
            max_bytes: 0,
            max_files: 0,
            file: Some(file),
            is_torn,
            length: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines, each with its line feed, with as few writes as the size of the file permits. Returns the number of lines
    /// that were written as a whole, and the error of the next one.
    pub(super) fn append(&mut self, lines: &[Vec<u8>]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while let Some(first) = lines.get(written) {
            let room = match self.prepare(first.len() as u64) {
                Ok(room) => room,
                Err(error) => return (written, Err(error)),
            };
            let mut buffer = Vec::new();
            if self.is_torn {
                buffer.push(b'\n');
            }
            let begin = buffer.len();
            let mut ends = Vec::new();
            for line in &lines[written..] {
                let is_first = ends.is_empty();
                if !is_first && (buffer.len() + line.len()) as u64 > room {
                    break;
                }
                buffer.extend_from_slice(line);
                ends.push(buffer.len());
            }
            let (bytes, outcome) = self.write(&buffer);
            written += ends.iter().filter(|end| **end <= bytes).count();
            if bytes > 0 {
                self.is_torn = bytes > begin && !ends.contains(&bytes);
            }
            self.length = self
                .file
                .as_ref()
                .and_then(|file| file.metadata().ok())
                .map(|metadata| metadata.len());
            if outcome.is_err() {
                // Other processes that share the file do not know that a line is not finished.
                if self.is_torn && self.write(b"\n").1.is_ok() {
                    (self.is_torn, self.length) = (false, None);
                }
                return (written, outcome);
            }
        }
        (written, Ok(()))
    }

    /// Opens the file if it is not open or was deleted, and rotates it if a line has no room. Returns its room.
    fn prepare(&mut self, line: u64) -> io::Result<u64> {
        let metadata = self.open_metadata()?;
        if self.max_bytes == 0 || !metadata.is_file() {
            return Ok(u64::MAX);
        }
        let mut length = metadata.len();
        if length > 0 && length + line > self.max_bytes {
            // Windows renames no open file.
            self.file = None;
            self.rotate()?;
            length = self.open_metadata()?.len();
        }
        Ok(self.max_bytes.saturating_sub(length))
    }

    /// Opens the file if it is not open, was deleted or was renamed. Returns its metadata: other processes may have written, too.
    fn open_metadata(&mut self) -> io::Result<Metadata> {
        if let Some(file) = &self.file {
            let metadata = file.metadata()?;
            if is_at(&self.path, &metadata) {
                if self.length.is_some_and(|length| length != metadata.len()) {
                    self.is_torn = ends_within_line(&self.path, file);
                    self.length = None;
                }
                return Ok(metadata);
            }
        }
        let file = open(&self.path)?;
        self.is_torn = ends_within_line(&self.path, &file);
        self.length = None;
        self.file.insert(file).metadata()
    }

    /// Renames the file to `path.1`, `path.1` to `path.2` and so on. The oldest one is deleted.
    fn rotate(&self) -> io::Result<()> {
        if self.max_files == 0 {
            return accept_absence(fs::remove_file(&self.path));
        }
        for number in (1..self.max_files).rev() {
            accept_absence(fs::rename(self.rotated(number), self.rotated(number + 1)))?;
        }
        accept_absence(fs::rename(&self.path, self.rotated(1)))
    }

    fn rotated(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Writes bytes, with one system call unless the system takes less. Returns how many were written.
    fn write(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        match &mut self.file {
            Some(file) => write(file, bytes),
            None => (0, Err(io::ErrorKind::NotFound.into())),
        }
    }
}

fn write(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn open(path: &Path) -> io::Result<File> {
    // Opening one waits for a reader.
    #[cfg(unix)]
    if fs::metadata(path)
        .is_ok_and(|metadata| std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type()))
    {
        return Err(io::Error::other("it is a FIFO"));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Records may be confidential.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn accept_absence(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Whether this is the file at a path: it was neither deleted nor renamed, as programs that rotate logs do.
fn is_at(path: &Path, file: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        let number = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        fs::metadata(path).is_ok_and(|at_path| number(&at_path) == number(file))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, file);
        true
    }
}

/// Whether the file does not end with a line feed: a process ended while it wrote. If the file cannot be read, this is not
/// known.
fn ends_within_line(path: &Path, file: &File) -> bool {
    let ending = || -> io::Result<bool> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(false);
        }
        let mut file = File::open(path)?;
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    };
    ending().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `room` bytes, five at a time.
    struct Small {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(5).min(self.room - self.taken.len());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_the_system_does_not_take_at_once_is_written_later() {
        let mut small = Small {
            taken: Vec::new(),
            room: 12,
        };
        let (written, outcome) = write(&mut small, b"one\ntwo\n");
        assert!(outcome.is_ok());
        assert_eq!((written, &*small.taken), (8, &b"one\ntwo\n"[..]));
        let (written, outcome) = write(&mut small, b"three\n");
        assert_eq!(
            outcome.expect_err("full").kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(written, 4);
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        let folder = std::env::temp_dir().join(format!("mcpline-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        test(&folder.join("log"));
        let _ = fs::remove_dir_all(&folder);
    }

    fn append(file: &mut LogFile, line: &str) {
        let (written, outcome) = file.append(&[line.into()]);
        outcome.expect("written");
        assert_eq!(written, 1);
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn a_line_that_a_process_has_not_finished_stays_alone() {
        in_folder("torn", |path| {
            fs::write(path, "one\ntw").expect("written");
            let mut file = LogFile::open(path).expect("opens");
            append(&mut file, "three\n");
            append(&mut file, "four\n");
            assert_eq!(read(path), "one\ntw\nthree\nfour\n");
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_deleted_file_is_created_again() {
        in_folder("deleted", |path| {
            let mut file = LogFile::open(path).expect("opens");
            append(&mut file, "one\n");
            fs::remove_file(path).expect("deleted");
            append(&mut file, "two\n");
            assert_eq!(read(path), "two\n");
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_renamed_file_is_left() {
        in_folder("renamed", |path| {
            let mut file = LogFile::open(path).expect("opens");
            append(&mut file, "one\n");
            fs::rename(path, file.rotated(1)).expect("renamed");
            append(&mut file, "two\n");
            assert_eq!(read(path), "two\n");
            fs::rename(path, file.rotated(1)).expect("renamed");
            fs::write(path, "created\n").expect("written");
            append(&mut file, "three\n");
            assert_eq!(read(path), "created\nthree\n");
        });
    }

    #[test]
    fn a_line_that_another_process_has_not_finished_stays_alone() {
        in_folder("other", |path| {
            let mut file = LogFile::open(path).expect("opens");
            append(&mut file, "one\n");
            let mut other = open(path).expect("opens");
            other.write_all(b"tw").expect("written");
            append(&mut file, "three\n");
            other.write_all(b"four\n").expect("written");
            append(&mut file, "five\n");
            assert_eq!(read(path), "one\ntw\nthree\nfour\nfive\n");
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_refused() {
        in_folder("fifo", |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo runs").success());
            let error = LogFile::open(path).expect_err("a FIFO");
            assert_eq!(error.to_string(), "it is a FIFO");
        });
    }

    #[test]
    fn several_files_may_be_open_for_the_same_path() {
        in_folder("shared", |path| {
            let mut files = [
                LogFile::open(path).expect("opens"),
                LogFile::open(path).expect("opens"),
            ];
            for line in ["one\n", "two\n", "three\n"] {
                append(&mut files[0], line);
                append(&mut files[1], line);
            }
            assert_eq!(read(path), "one\none\ntwo\ntwo\nthree\nthree\n");
        });
    }

    #[test]
    fn lines_are_divided_between_files_and_none_is_too_large_for_one() {
        in_folder("divided", |path| {
            let mut file = LogFile::open(path).expect("opens");
            (file.max_bytes, file.max_files) = (8, 3);
            let lines = ["one\n", "two\n", "a long one\n", "four\n", "5\n"].map(Vec::from);
            let (written, outcome) = file.append(&lines);
            outcome.expect("written");
            assert_eq!(written, 5);
            assert_eq!(read(path), "four\n5\n");
            assert_eq!(read(&file.rotated(1)), "a long one\n");
            assert_eq!(read(&file.rotated(2)), "one\ntwo\n");
            (file.max_bytes, file.max_files) = (1, 0);
            append(&mut file, "six\n");
            assert_eq!(read(path), "six\n");
            assert_eq!(read(&file.rotated(1)), "a long one\n");
        });
    }

    #[test]
    fn a_rotation_that_fails_is_tried_again() {
        in_folder("stuck", |path| {
            let mut file = LogFile::open(path).expect("opens");
            (file.max_bytes, file.max_files) = (4, 1);
            append(&mut file, "one\n");
            // A folder with something in it is in the way.
            fs::create_dir_all(file.rotated(1).join("in")).expect("a folder");
            let (written, outcome) = file.append(&[b"two\n".to_vec()]);
            assert_eq!((written, outcome.is_err()), (0, true));
            fs::remove_dir_all(file.rotated(1)).expect("removed");
            append(&mut file, "two\n");
            assert_eq!(read(path), "two\n");
            assert_eq!(read(&file.rotated(1)), "one\n");
        });
    }
}

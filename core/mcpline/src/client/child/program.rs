//! Finds the file of a program (Windows).
//!
//! The system adds only `.exe` to a name without an extension, but `npx`, `uvx` and other launchers are batch files. It also searches the
//! current directory first, where an attacker may have placed a file. This module searches like a shell, but not in the current
//! directory: it tries the name with each extension of `PATHEXT` in each folder of `PATH`. The standard library quotes the arguments of
//! batch files, and refuses arguments that cannot be quoted.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Extensions where the environment has no `PATHEXT`.
const EXTENSIONS: &str = ".COM;.EXE;.BAT;.CMD";

/// Returns the file of a program. `variable` looks up a variable of the environment in which the program will run.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`]: no folder has a program of this name. The system is not asked, because it looks in further folders.
pub(super) fn find(
    program: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> io::Result<PathBuf> {
    let extensions = extensions(variable("PATHEXT"));
    // A path, which may lack the extension.
    if program.components().count() > 1 || program.has_root() {
        return Ok(find_with_extension(program, &extensions).unwrap_or_else(|| program.to_owned()));
    }
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // An empty entry, or one such as `.`, means the current directory.
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| find_with_extension(&folder.join(program), &extensions))
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn extensions(variable: Option<OsString>) -> Vec<OsString> {
    let variable = variable.unwrap_or_else(|| EXTENSIONS.into());
    let variable = variable.to_string_lossy();
    let known = |each: &&str| each.len() > 1 && each.starts_with('.');
    variable
        .split(';')
        .filter(known)
        .map(OsString::from)
        .collect()
}

/// Returns the file with this name, or with this name and one of the extensions.
fn find_with_extension(file: &Path, extensions: &[OsString]) -> Option<PathBuf> {
    let has_known = file.extension().is_some_and(|own| {
        let own = own.to_string_lossy();
        extensions
            .iter()
            .any(|each| each.to_string_lossy()[1..].eq_ignore_ascii_case(&own))
    });
    // A file without an extension that can be run is a shell script for other systems: npm puts one beside each batch file.
    if has_known && file.is_file() {
        return Some(file.to_owned());
    }
    extensions
        .iter()
        .map(|extension| with_suffix(file, extension))
        .find(|candidate| candidate.is_file())
}

fn with_suffix(file: &Path, suffix: &OsStr) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, files: &[&str]) -> Self {
            let path = std::env::temp_dir().join(format!("mcpline-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            for file in files {
                std::fs::write(path.join(file), "").expect("a file");
            }
            Self(path)
        }

        fn find(&self, program: &str) -> PathBuf {
            find(Path::new(program), |name| match name {
                "PATH" => Some(self.0.clone().into()),
                _ => Some(".EXE;.CMD".into()),
            })
            .expect("found")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn finds_the_batch_file_beside_a_script_for_other_systems() {
        let folder = Folder::with("batch", &["npx", "npx.CMD"]);
        assert_eq!(folder.find("npx"), folder.0.join("npx.CMD"));
    }

    #[test]
    fn the_order_of_extensions_decides() {
        let folder = Folder::with("order", &["tool.CMD", "tool.EXE"]);
        assert_eq!(folder.find("tool"), folder.0.join("tool.EXE"));
        assert_eq!(folder.find("tool.cmd").extension(), Some(OsStr::new("cmd")));
    }

    #[test]
    fn completes_paths() {
        let folder = Folder::with("paths", &["server.CMD"]);
        let path = folder.0.join("server");
        let found = find(&path, |_| None).expect("found");
        assert_eq!(found, folder.0.join("server.CMD"));
    }

    #[test]
    fn does_not_look_into_the_current_directory() {
        let variable = |name: &str| (name == "PATH").then(|| ".;;target".into());
        let error = find(Path::new("cargo"), variable).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

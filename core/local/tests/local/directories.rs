//! Directories that are refused, and those of names.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};

use mcpline_local::{Local, LocalError};

use crate::scratch::{Scratch, set_mode};

/// Why a directory is refused.
fn refused(path: &std::path::Path) -> String {
    match Local::in_directory(path) {
        Err(LocalError::UnsafeDirectory { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_is_created_for_its_user_only() {
    let scratch = Scratch::new();
    let path = scratch.path().join("service");
    let _shared = Local::in_directory(&path).expect("shared");
    for folder in [path.clone(), path.join("1"), path.join("1/sessions")] {
        let mode = fs::metadata(&folder).expect("there").mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
    }
}

#[test]
fn a_directory_that_others_can_read_is_refused() {
    let scratch = Scratch::new();
    for mode in [0o750, 0o755, 0o701] {
        set_mode(scratch.path(), mode);
        assert!(refused(scratch.path()).contains("must have mode 700"));
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let scratch = Scratch::new();
    // Only root can give a directory away. For other users, root's is another user's.
    let is_given = chown(scratch.path(), Some(12_345), None).is_ok();
    let path = match is_given {
        true => scratch.path(),
        false => std::path::Path::new("/usr/lib"),
    };
    let reason = refused(path);
    assert!(reason.starts_with("belongs to user"), "{reason}");
}

#[test]
fn a_link_or_a_file_is_refused() {
    let scratch = Scratch::new();
    let real = scratch.path().join("real");
    fs::create_dir(&real).expect("created");
    set_mode(&real, 0o700);
    let link = scratch.path().join("link");
    symlink(&real, &link).expect("linked");
    assert_eq!(refused(&link), "is not a directory");
    // The system follows a link before a slash.
    for end in ["", ".", "./"] {
        assert_eq!(refused(&link.join(end)), "is not a directory", "{end}");
    }
    let file = scratch.path().join("file");
    fs::write(&file, "").expect("written");
    assert_eq!(refused(&file), "is not a directory");
}

#[test]
fn a_relative_path_is_refused() {
    let scratch = Scratch::new();
    for path in ["service".into(), scratch.path().join("../service")] {
        assert_eq!(refused(&path), "must be an absolute path without `..`");
    }
}

#[test]
fn a_directory_that_others_can_replace_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path().join("service");
    set_mode(scratch.path(), 0o777);
    assert!(refused(&path).contains("can replace"));
    // As in the directory for temporary files.
    set_mode(scratch.path(), 0o1777);
    Local::in_directory(&path).expect("shared");
    set_mode(scratch.path(), 0o700);
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_an_error() {
    let scratch = Scratch::new();
    let path = scratch.path().join("x".repeat(100));
    let error = Local::in_directory(&path).unwrap_err();
    assert!(matches!(error, LocalError::Unusable { .. }), "{error}");
}

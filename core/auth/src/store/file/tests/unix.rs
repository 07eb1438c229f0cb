//! What only Unix has: modes, other users, symbolic links, and a disk that fills up.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permitted");
}

#[runtimes::test]
async fn only_the_owner_has_permissions() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    let _held = store.lock("k").await.expect("locked");
    assert_eq!(mode(&scratch.path()), 0o700);
    let mut files = 0;
    for entry in fs::read_dir(scratch.path()).expect("read") {
        assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
        files += 1;
    }
    assert_eq!(files, 2, "a value and a lock, and nothing left over");
}

#[runtimes::test]
async fn a_file_that_others_can_read_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    for loose in [0o640, 0o604, 0o620, 0o602] {
        set_mode(&scratch.file("k"), loose);
        let failed = store.load("k").await.expect_err("refused");
        assert_eq!(failed.code(), "unsafe", "{loose:o}");
    }
    // Saving makes it safe again: it creates a new file.
    store.save("k", b"w").await.expect("saved");
    assert_eq!(
        store.load("k").await.expect("loaded").as_deref(),
        Some(&b"w"[..])
    );
}

#[runtimes::test]
async fn symbolic_links_are_refused_and_never_written_through() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    let target = scratch.0.join("target");
    fs::rename(scratch.file("k"), &target).expect("moved");
    symlink(&target, scratch.file("k")).expect("linked");
    assert_eq!(code(store.load("k").await), "unsafe");
    let before = fs::read(&target).expect("read");
    store
        .save("k", b"w")
        .await
        .expect("saved in place of the link");
    assert_eq!(fs::read(&target).expect("read"), before);
    assert_eq!(
        store.load("k").await.expect("loaded").as_deref(),
        Some(&b"w"[..])
    );

    let lock = scratch.path().join(format!("{}.lock", file_name("k")));
    symlink(scratch.0.join("victim"), lock).expect("linked");
    assert_eq!(code(store.lock("k").await), "unsafe");
    assert!(!scratch.0.join("victim").exists());

    let linked = scratch.0.join("linked");
    symlink(scratch.path(), &linked).expect("linked");
    let through = FileStore::new(&linked);
    assert_eq!(code(through.load("k").await), "unsafe");
    assert_eq!(code(through.save("k", b"v").await), "unsafe");
}

#[runtimes::test]
async fn a_directory_that_others_can_write_to_is_refused() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    for loose in [0o770, 0o707, 0o1777] {
        set_mode(&scratch.path(), loose);
        assert_eq!(code(store.load("k").await), "unsafe", "{loose:o}");
        assert_eq!(code(store.save("k", b"v").await), "unsafe", "{loose:o}");
        assert_eq!(code(store.remove("k").await), "unsafe", "{loose:o}");
        assert_eq!(code(store.lock("k").await), "unsafe", "{loose:o}");
    }
    set_mode(&scratch.path(), 0o755);
    store.load("k").await.expect("others see names at most");
}

#[runtimes::test]
async fn rejects_files_of_another_user() {
    if rustix::process::geteuid().is_root() {
        let scratch = Scratch::new();
        let store = scratch.store();
        store.save("k", b"v").await.expect("saved");
        std::os::unix::fs::chown(scratch.file("k"), Some(65534), None).expect("given away");
        assert_eq!(code(store.load("k").await), "unsafe");
        std::os::unix::fs::chown(scratch.path(), Some(65534), None).expect("given away");
        assert_eq!(code(store.save("k", b"v").await), "unsafe");
    } else {
        assert_eq!(code(FileStore::new("/").load("k").await), "unsafe");
    }
}

#[runtimes::test]
async fn rejects_non_files_without_blocking() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("other", b"v").await.expect("saved");
    fs::create_dir(scratch.file("directory")).expect("made");
    assert_eq!(code(store.load("directory").await), "unsafe");
    let pipe = scratch.file("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode);
    made.expect("made");
    assert_eq!(code(store.load("pipe").await), "unsafe");
    fs::write(scratch.0.join("file"), "").expect("written");
    let store = FileStore::new(scratch.0.join("file"));
    assert_eq!(code(store.load("k").await), "unsafe");
}

/// Runs the test `test` in another process with a file size limit of `blocks` blocks of 512 bytes, like a disk that fills up during a write.
fn another_process_with_little_room(test: &str, path: &Path, blocks: usize) -> Child {
    let program = std::env::current_exe().expect("the program of the tests");
    let mut shell = Command::new("sh");
    // Without the trap, the signal would kill the process.
    let limited = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    shell.args(["-c", limited, "sh", &blocks.to_string()]);
    shell.arg(program);
    run_by(shell, test, path)
}

/// A value that a disk with too little room cuts short: four blocks and a few bytes.
const LONG_VALUE: [u8; 2048] = [b'x'; 2048];

// The test starts itself by this name as a child process.
#[tokio::test]
async fn a_disk_that_fills_up_at_any_point_leaves_the_value_that_was_there() {
    if let Ok(path) = std::env::var(CHILD) {
        let saved = FileStore::new(&path).save("k", &LONG_VALUE).await;
        // The name of an empty file carries the outcome: output and exit code belong to the test runner.
        let outcome = Path::new(&path).with_extension(code(saved));
        fs::write(outcome, "").expect("written");
        return;
    }
    let name = "unix::a_disk_that_fills_up_at_any_point_leaves_the_value_that_was_there";
    for blocks in 0..=5 {
        let scratch = Scratch::new();
        scratch.store().save("k", b"old").await.expect("saved");
        let mut child = another_process_with_little_room(name, &scratch.path(), blocks);
        assert!(child.wait().expect("ended").success(), "{blocks} blocks");
        let (outcome, value) = match blocks {
            5 => ("ok", &LONG_VALUE[..]),
            _ => ("file", &b"old"[..]),
        };
        assert!(
            scratch.path().with_extension(outcome).exists(),
            "{blocks} blocks"
        );
        let loaded = scratch.store().load("k").await.expect("whole");
        assert_eq!(loaded.as_deref(), Some(value), "{blocks} blocks");
        assert_eq!(files(&scratch.path()), 1, "{blocks} blocks");
    }
}

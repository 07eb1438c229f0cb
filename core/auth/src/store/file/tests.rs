//! The file store, also with other processes and other users.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("entropy");
        let path = std::env::temp_dir().join(format!("mcpline-store-{}", hex(&random)));
        fs::create_dir(&path).expect("made");
        Self(path)
    }

    /// The path of a store that doesn't exist yet.
    fn path(&self) -> PathBuf {
        self.0.join("deep/tokens")
    }

    fn store(&self) -> FileStore {
        FileStore::new(self.path())
    }

    fn file(&self, key: &str) -> PathBuf {
        self.path().join(file_name(key))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permitted");
}

fn code<T>(result: Result<T, StoreError>) -> &'static str {
    result.err().map_or("ok", |error| error.code())
}

#[runtimes::test]
async fn what_was_saved_is_loaded_by_another_store_until_it_is_removed() {
    let scratch = Scratch::new();
    let store = scratch.store();
    assert_eq!(store.load("k").await.expect("loaded"), None);
    store
        .remove("k")
        .await
        .expect("nothing there, nothing wrong");
    assert!(!scratch.path().exists(), "reading makes nothing");
    store.save("k", b"one").await.expect("saved");
    store.save("k", b"two\n\0").await.expect("saved");
    let other = scratch.store();
    assert_eq!(
        other.load("k").await.expect("loaded").as_deref(),
        Some(&b"two\n\0"[..])
    );
    other.remove("k").await.expect("removed");
    other.remove("k").await.expect("removed again");
    assert_eq!(store.load("k").await.expect("loaded"), None);
    store.save("k", b"").await.expect("saved");
    assert_eq!(store.load("k").await.expect("loaded"), Some(Vec::new()));
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
async fn keys_are_any_text_and_stay_apart() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let long = "x".repeat(5000);
    let keys = [
        "",
        "/",
        "..",
        "../../etc/passwd",
        "a/b",
        "a\\b",
        "a\0b",
        "A",
        "a",
        "https://server.example/mcp?a=b#c",
        "ключ 🔑",
        "con",
        "x.lock",
        &long,
    ];
    for key in keys {
        store.save(key, key.as_bytes()).await.expect("saved");
    }
    for key in keys {
        let value = store.load(key).await.expect("loaded");
        assert_eq!(value.as_deref(), Some(key.as_bytes()));
    }
    let files = fs::read_dir(scratch.path()).expect("read").count();
    assert_eq!(files, keys.len());
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

#[runtimes::test]
async fn rejects_truncated_values() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store
        .save("k", b"a token of some length")
        .await
        .expect("saved");
    let whole = fs::read(scratch.file("k")).expect("read");
    for length in 0..whole.len() {
        fs::write(scratch.file("k"), &whole[..length]).expect("written");
        assert_eq!(code(store.load("k").await), "damaged", "{length}");
    }
    fs::write(scratch.file("k"), [&whole[..], b"x"].concat()).expect("written");
    assert_eq!(code(store.load("k").await), "damaged");
    fs::write(scratch.file("k"), vec![b'x'; 3 * LARGEST]).expect("written");
    assert_eq!(code(store.load("k").await), "damaged");
    store.save("k", b"new").await.expect("saved");
    assert_eq!(
        store.load("k").await.expect("loaded").as_deref(),
        Some(&b"new"[..])
    );
    let large = vec![0; LARGEST + 1];
    assert_eq!(code(store.save("k", &large).await), "other");
    store
        .save("k", &large[..LARGEST])
        .await
        .expect("the largest there may be");
    assert_eq!(
        store.load("k").await.expect("loaded").map(|v| v.len()),
        Some(LARGEST)
    );
}

#[runtimes::test]
async fn removes_old_temporary_files() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"v").await.expect("saved");
    let left = |name: &str| {
        scratch
            .path()
            .join(format!("{}.{name}.new", file_name("k")))
    };
    for name in ["young", "old"] {
        fs::write(left(name), "half").expect("written");
    }
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    fs::File::open(left("old"))
        .and_then(|file| file.set_modified(old))
        .expect("aged");
    assert_eq!(
        store.load("k").await.expect("loaded").as_deref(),
        Some(&b"v"[..])
    );
    store.save("k", b"w").await.expect("saved");
    assert!(left("young").exists(), "somebody may be writing it");
    assert!(!left("old").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_readers_see_whole_values() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", &[0; 3000]).await.expect("saved");
    let tasks: Vec<_> = (0..40u8)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.save("k", &[number; 3000]).await.expect("saved");
                let value = store.load("k").await.expect("loaded").expect("there");
                assert_eq!(value.len(), 3000);
                assert!(value.iter().all(|byte| *byte == value[0]));
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("whole");
    }
    let files = fs::read_dir(scratch.path()).expect("read").count();
    assert_eq!(files, 1, "nothing is left over");
}

#[runtimes::test]
async fn one_at_a_time_holds_the_lock_of_a_key() {
    let scratch = Scratch::new();
    let holders = Arc::new(AtomicUsize::new(0));
    let shared = scratch.store();
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            // Some wait in the queue of their store, some at the lock file.
            let store = if number % 4 == 0 {
                scratch.store()
            } else {
                shared.clone()
            };
            let holders = holders.clone();
            tokio::spawn(async move {
                let held = store.lock("k").await.expect("locked");
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                holders.fetch_sub(1, Ordering::SeqCst);
                drop(held);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("held alone");
    }
    let _one = shared.lock("one").await.expect("locked");
    let _other = shared.lock("other").await.expect("not held up by another");
}

#[runtimes::test]
async fn times_out_waiting_for_a_lock() {
    let scratch = Scratch::new();
    let _held = scratch.store().lock("k").await.expect("locked");
    let elsewhere = scratch.store().patience(Duration::from_millis(20));
    assert_eq!(code(elsewhere.lock("k").await), "locked");
    let in_line = elsewhere.clone();
    let (one, other) = tokio::join!(elsewhere.lock("k"), in_line.lock("k"));
    assert_eq!((code(one), code(other)), ("locked", "locked"));
}

const TIMES: usize = 25;

/// Run by the child processes of the test below: increments a number in a file, which fails if two do it at once.
async fn count_up(path: &str) {
    let store = FileStore::new(path);
    let counter = Path::new(path).with_extension("counter");
    for _ in 0..TIMES {
        let held = store.lock("k").await.expect("locked");
        let count: usize =
            fs::read_to_string(&counter).map_or(0, |text| text.parse().expect("a number"));
        tokio::task::yield_now().await;
        fs::write(&counter, (count + 1).to_string()).expect("written");
        drop(held);
    }
}

/// Runs the test `test` in another process.
fn another_process(test: &str, path: &Path) -> Child {
    let program = std::env::current_exe().expect("the program of the tests");
    run_by(Command::new(program), test, path)
}

/// Does the same with a file size limit of `blocks` blocks of 512 bytes, like a disk that fills up during a write.
fn another_process_with_little_room(test: &str, path: &Path, blocks: usize) -> Child {
    let program = std::env::current_exe().expect("the program of the tests");
    let mut shell = Command::new("sh");
    // Without the trap, the signal would kill the process.
    let limited = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    shell.args(["-c", limited, "sh", &blocks.to_string()]);
    shell.arg(program);
    run_by(shell, test, path)
}

fn run_by(mut command: Command, test: &str, path: &Path) -> Child {
    command
        .args(["--exact", &format!("store::file::tests::{test}")])
        .env(CHILD, path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started")
}

const CHILD: &str = "MCPLINE_TEST_STORE";

// The test starts itself by this name as a child process.
#[tokio::test]
async fn processes_exclude_each_other() {
    if let Ok(path) = std::env::var(CHILD) {
        count_up(&path).await;
        return;
    }
    let scratch = Scratch::new();
    let children: Vec<_> = (0..3)
        .map(|_| another_process("processes_exclude_each_other", &scratch.path()))
        .collect();
    for mut child in children {
        assert!(child.wait().expect("ended").success());
    }
    let counted = fs::read_to_string(scratch.path().with_extension("counter"));
    assert_eq!(counted.expect("read"), (3 * TIMES).to_string());
}

// The test starts itself by this name as a child process.
#[tokio::test]
async fn the_lock_of_a_process_that_was_killed_is_free() {
    if let Ok(path) = std::env::var(CHILD) {
        let _held = FileStore::new(&path).lock("k").await.expect("locked");
        fs::write(Path::new(&path).with_extension("held"), "").expect("written");
        return std::future::pending().await;
    }
    let scratch = Scratch::new();
    let name = "the_lock_of_a_process_that_was_killed_is_free";
    let mut child = another_process(name, &scratch.path());
    while !scratch.path().with_extension("held").exists() {
        assert!(child.try_wait().expect("waited").is_none());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let impatient = scratch.store().patience(Duration::from_millis(1));
    assert_eq!(code(impatient.lock("k").await), "locked");
    child.kill().expect("killed");
    child.wait().expect("ended");
    scratch.store().lock("k").await.expect("free");
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
    let name = "a_disk_that_fills_up_at_any_point_leaves_the_value_that_was_there";
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

#[runtimes::test]
async fn failed_save_leaves_no_temporary_file() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("other", b"1").await.expect("saved");
    fs::create_dir(scratch.file("k")).expect("made");
    assert_eq!(code(store.save("k", b"2").await), "file");
    assert_eq!(code(store.remove("k").await), "file");
    fs::remove_dir(scratch.file("k")).expect("removed");
    assert_eq!(files(&scratch.path()), 1);
    store.save("k", b"3").await.expect("saved");
}

fn files(directory: &Path) -> usize {
    fs::read_dir(directory).expect("read").count()
}

#[runtimes::test]
async fn values_are_not_shown() {
    let scratch = Scratch::new();
    let store = scratch.store();
    store.save("k", b"secret").await.expect("saved");
    assert!(!format!("{store:?}").contains("secret"));
    fs::write(scratch.file("k"), "secret, damaged").expect("written");
    let failed = store.load("k").await.expect_err("damaged");
    assert!(!format!("{failed} {failed:?}").contains("secret"));
}

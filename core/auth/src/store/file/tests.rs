//! The file store, also with other processes.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs;
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
    let elsewhere = scratch.store().lock_timeout(Duration::from_millis(20));
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
    let brief = scratch.store().lock_timeout(Duration::from_millis(1));
    assert_eq!(code(brief.lock("k").await), "locked");
    child.kill().expect("killed");
    child.wait().expect("ended");
    scratch.store().lock("k").await.expect("free");
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

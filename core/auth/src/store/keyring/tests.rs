//! The keyring store over a keyring in memory. `tests/keyring` runs it over a real one.

use std::collections::HashMap;

use keyring_core::{Error, mock};

use super::*;

/// A keyring in memory that several stores may share.
fn keyring() -> Arc<mock::Store> {
    mock::Store::new().expect("made")
}

fn store(keyring: &Arc<mock::Store>, piece: usize) -> KeyringStore {
    let mut store = KeyringStore::new("mcpline tests");
    let system: Arc<CredentialStore> = keyring.clone();
    store.system = Arc::new(Mutex::new(Some(system)));
    store.piece = piece;
    store.lock_files = None;
    store
}

/// The keyring's secrets by name.
fn kept(keyring: &mock::Store) -> HashMap<String, Vec<u8>> {
    let mut entries = keyring.inner.lock().expect("unpoisoned");
    let entries = entries.get_mut().iter();
    let kept = entries.filter_map(|entry| {
        let mut data = entry.inner.lock().expect("unpoisoned");
        let secret = data.get_mut().secret.clone()?;
        assert_eq!(entry.specifiers.0, "mcpline tests");
        Some((entry.specifiers.1.clone(), secret))
    });
    kept.collect()
}

fn fail_next(keyring: &mock::Store, name: &str, error: Error) {
    let mut entries = keyring.inner.lock().expect("unpoisoned");
    let entry = entries
        .get_mut()
        .iter()
        .find(|entry| entry.specifiers.1 == name)
        .expect("an entry");
    entry.set_error(error);
}

async fn load(store: &KeyringStore, key: &str) -> Option<Vec<u8>> {
    store.load(key).await.expect("loaded")
}

#[runtimes::test]
async fn what_was_saved_is_loaded_until_it_is_removed() {
    let keyring = keyring();
    let first = store(&keyring, 10_000);
    let second = store(&keyring, 10_000);
    assert_eq!(load(&first, "k").await, None);
    first
        .remove("k")
        .await
        .expect("nothing there, nothing wrong");
    for value in [&b"one"[..], b"", b"\0\xff\n"] {
        first.save("k", value).await.expect("saved");
        assert_eq!(load(&second, "k").await.as_deref(), Some(value));
    }
    second.remove("k").await.expect("removed");
    assert_eq!(load(&first, "k").await, None);
    assert!(kept(&keyring).is_empty());
}

#[runtimes::test]
async fn a_value_that_is_too_long_for_the_system_is_kept_in_pieces() {
    let keyring = keyring();
    let store = store(&keyring, 256);
    let long: Vec<u8> = (0..2000u32).map(|number| (number % 251) as u8).collect();
    for length in [100, 256, 257, 512, 2000, 300, 10] {
        store.save("k", &long[..length]).await.expect("saved");
        assert_eq!(load(&store, "k").await.as_deref(), Some(&long[..length]));
        let kept = kept(&keyring);
        assert!(kept.values().all(|secret| secret.len() <= 256));
        let pieces = if length <= 100 {
            0
        } else {
            length.div_ceil(256)
        };
        assert_eq!(kept.len(), 1 + pieces, "nothing is left of the one before");
    }
    store.save("k", &long).await.expect("saved");
    store.remove("k").await.expect("removed");
    assert!(kept(&keyring).is_empty());
    let failed = store.save("k", &vec![0; 1024 * 1024 + 1]).await;
    assert_eq!(failed.expect_err("too long").code(), "other");
}

#[runtimes::test]
async fn keys_are_any_text_and_stay_apart() {
    let keyring = keyring();
    let store = store(&keyring, 256);
    let long = "x".repeat(5000);
    let keys = [
        "",
        " ",
        "a",
        "A",
        "a b",
        "a\0",
        "ü",
        "https://h.example/mcp",
        &long,
    ];
    for key in keys {
        store.save(key, key.as_bytes()).await.expect("saved");
    }
    for key in keys {
        assert_eq!(load(&store, key).await.as_deref(), Some(key.as_bytes()));
    }
    let kept = kept(&keyring);
    assert!(
        kept.contains_key("https://h.example/mcp"),
        "people recognise it"
    );
    let plain = |name: &String| name.len() < 300 && name.is_ascii() && !name.contains('\0');
    assert!(kept.keys().all(plain));
}

#[runtimes::test]
async fn rejects_truncated_values() {
    let keyring = keyring();
    let store = store(&keyring, 256);
    store.save("k", &[7; 1000]).await.expect("saved");
    let piece = kept(&keyring)
        .into_keys()
        .find(|name| name.ends_with(" 2"))
        .expect("a piece");
    let system: Arc<CredentialStore> = keyring.clone();
    let entry = system.build("mcpline tests", &piece, None).expect("built");
    entry.delete_credential().expect("deleted");
    let failed = store.load("k").await.expect_err("damaged");
    assert_eq!(failed.code(), "damaged");
    let head = system.build("mcpline tests", "k", None).expect("built");
    for foreign in ["", "a password", "mcpline 1\n", "mcpline 1 99999999 a b\n"] {
        head.set_secret(foreign.as_bytes()).expect("set");
        let failed = store.load("k").await.expect_err("damaged");
        assert_eq!(failed.code(), "damaged", "{foreign}");
    }
    store.save("k", b"new").await.expect("saved over it");
    assert_eq!(load(&store, "k").await.as_deref(), Some(&b"new"[..]));
}

#[runtimes::test]
async fn a_keyring_that_refuses_is_an_error_that_shows_no_value() {
    let keyring = keyring();
    let store = store(&keyring, 10_000);
    store.save("k", b"secret").await.expect("saved");
    let locked = || Error::NoStorageAccess("the user said no".into());
    fail_next(&keyring, "k", locked());
    let failed = store.load("k").await.expect_err("refused");
    assert_eq!(failed.code(), "keyring");
    assert!(failed.to_string().contains("the user said no"), "{failed}");
    fail_next(&keyring, "k", Error::BadEncoding(b"secret".to_vec()));
    let failed = store.load("k").await.expect_err("refused");
    assert!(!format!("{failed} {failed:?} {store:?}").contains("secret"));
    assert_eq!(load(&store, "k").await.as_deref(), Some(&b"secret"[..]));
}

#[runtimes::test]
async fn a_keyring_that_failed_is_connected_to_anew() {
    let keyring = keyring();
    let store = store(&keyring, 10_000);
    store.save("k", b"v").await.expect("saved");
    fail_next(&keyring, "k", Error::PlatformFailure("it has gone".into()));
    store.load("k").await.expect_err("failed");
    assert!(store.system.lock().expect("unpoisoned").is_none());
}

// On a single runtime: the directory is named after the process.
#[tokio::test]
async fn the_lock_of_a_key_excludes_other_stores_of_the_same_service() {
    let directory = std::env::temp_dir().join(format!("mcpline-keyring-{}", std::process::id()));
    let keyring = keyring();
    let first = store(&keyring, 10_000).lock_directory(&directory);
    let mut second = store(&keyring, 10_000).lock_directory(&directory);
    let brief = FileStore::new(&directory).lock_timeout(Duration::from_millis(10));
    second.lock_files = Some(brief);
    let held = first.lock("k").await.expect("locked");
    let failed = second.lock("k").await.err().expect("held by the other");
    assert_eq!(failed.code(), "locked");
    drop(held);
    drop(second.lock("k").await.expect("free"));
    let _ = std::fs::remove_dir_all(directory);
}

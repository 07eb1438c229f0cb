//! The system's own keyring. `tests/keyring/run` runs this where there is one that may be written to.

use mcpline::auth::{KeyringStore, TokenStore};

#[tokio::test(flavor = "multi_thread")]
async fn the_systems_keyring_keeps_what_it_is_given() {
    let store = KeyringStore::new("mcpline's own tests");
    let key = "https://server.example/mcp";
    store.remove(key).await.expect("removed");
    assert_eq!(store.load(key).await.expect("loaded"), None);
    let large: Vec<u8> = (0..20_000u32).map(|number| (number % 256) as u8).collect();
    for value in [&b"one"[..], b"", &large] {
        let held = store.lock(key).await.expect("locked");
        store.save(key, value).await.expect("saved");
        drop(held);
        // Another program would connect anew.
        let other = KeyringStore::new("mcpline's own tests");
        let loaded = other.load(key).await.expect("loaded");
        assert_eq!(loaded.as_deref(), Some(value));
    }
    let other = KeyringStore::new("somebody else");
    assert_eq!(other.load(key).await.expect("loaded"), None);
    store.remove(key).await.expect("removed");
    assert_eq!(store.load(key).await.expect("loaded"), None);
}

#[tokio::test]
async fn many_at_a_time_are_served_from_a_runtime_of_one_thread() {
    let store = KeyringStore::new("mcpline's own tests");
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = format!("key {number}");
                store.save(&key, key.as_bytes()).await.expect("saved");
                let loaded = store.load(&key).await.expect("loaded");
                assert_eq!(loaded.as_deref(), Some(key.as_bytes()));
                store.remove(&key).await.expect("removed");
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("kept apart");
    }
}

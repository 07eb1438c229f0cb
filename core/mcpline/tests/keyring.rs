//! The system's keyring. `tests/keyring/run` runs these tests where there is a writable one.

use mcpline::auth::{KeyringStore, TokenStore};

#[tokio::test(flavor = "multi_thread")]
async fn stores_and_loads_values_in_the_systems_keyring() {
    let store = KeyringStore::new("mcpline's own tests");
    let key = "https://server.example/mcp";
    store.remove(key).await.expect("removed");
    assert_eq!(store.load(key).await.expect("loaded"), None);
    let large: Vec<u8> = (0..20_000u32).map(|number| (number % 256) as u8).collect();
    for value in [&b"one"[..], b"", &large] {
        let held = store.lock(key).await.expect("locked");
        store.save(key, value).await.expect("saved");
        drop(held);
        // Another program would open a new connection.
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
async fn serves_concurrent_requests_on_a_single_threaded_runtime() {
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

//! A token store that fails at any of its uses: the client gets a typed error or continues without storing, and keeps
//! every token that was issued to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use authorization_server::{Config, ResourceConfig};
use mcpline::auth::{AuthError, BoxFuture, MemoryStore, StoreError, TokenStore};
use mcpline::client::{ClientError, HttpSettings};
use tokio::sync::Notify;

use super::world::{World, call};

/// Fails at the use with this number, and if it `lasts`, at all later ones until it is mended.
struct Fault {
    at: usize,
    lasts: bool,
    uses: AtomicUsize,
    mended_at: AtomicUsize,
}

impl Fault {
    fn strikes(&self) -> bool {
        let number = self.uses.fetch_add(1, Ordering::SeqCst);
        match self.lasts {
            true => (self.at..self.mended_at.load(Ordering::SeqCst)).contains(&number),
            false => number == self.at,
        }
    }

    fn was_reached(&self) -> bool {
        self.uses.load(Ordering::SeqCst) > self.at
    }

    fn mend(&self) {
        self.mended_at.store(0, Ordering::SeqCst);
    }
}

struct FaultyStore {
    sound: MemoryStore,
    fault: Arc<Fault>,
}

impl FaultyStore {
    fn unless_it_fails<'a, T: Send + 'a>(
        &self,
        sound: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        match self.fault.strikes() {
            true => Box::pin(async { Err(StoreError::other("the disk is full")) }),
            false => sound,
        }
    }
}

impl TokenStore for FaultyStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.unless_it_fails(self.sound.load(key))
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.unless_it_fails(self.sound.save(key, value))
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.unless_it_fails(self.sound.remove(key))
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        self.unless_it_fails(self.sound.lock(key))
    }
}

/// Attempts something, and again after mending the store if the store failed: then it must succeed.
async fn attempt<T, E: std::fmt::Debug>(
    fault: &Fault,
    what: &str,
    attempt: impl AsyncFn() -> Result<T, E>,
    is_of_store: impl Fn(&E) -> bool,
) -> T {
    let named = format!("use {}, {what}", fault.at);
    let in_time = async || {
        tokio::time::timeout(Duration::from_secs(60), attempt())
            .await
            .unwrap_or_else(|_| panic!("{named}: it hangs"))
    };
    match in_time().await {
        Ok(outcome) => outcome,
        Err(error) => {
            assert!(
                fault.was_reached() && is_of_store(&error),
                "{named}: {error:?}"
            );
            fault.mend();
            let again = in_time().await;
            again.unwrap_or_else(|error| panic!("{named}, again: {error:?}"))
        }
    }
}

fn is_of_store(error: &ClientError) -> bool {
    matches!(error, ClientError::AuthorizationFailed(error) if is_store_error(error))
}

fn is_store_error(error: &AuthError) -> bool {
    matches!(error, AuthError::TokenStoreFailed(_))
}

/// Signs in, refreshes twice, steps up, refreshes, signs out and in again. Users sign in exactly as often as with a
/// sound store.
async fn play(fault: &Arc<Fault>) {
    let guarded = ResourceConfig {
        scope: Some("look".into()),
        needed: [("tools/call edit".to_owned(), "edit".to_owned())].into(),
        ..ResourceConfig::default()
    };
    let world = World::start(Config::default(), guarded).await;
    let store = FaultyStore {
        sound: MemoryStore::new(),
        fault: fault.clone(),
    };
    let oauth = world.oauth().store(store).build();
    let connect = async || world.connect(oauth.clone()).await;
    let client = attempt(fault, "sign-in", connect, is_of_store).await;
    let expect_sign_ins = |sign_ins: usize, what: &str| {
        assert_eq!(world.sign_ins(), sign_ins, "use {}, {what}", fault.at);
    };
    let calls = async |tool: &str, what: &str| {
        attempt(fault, what, async || call(&client, tool).await, is_of_store).await;
    };
    calls("look", "first call").await;
    expect_sign_ins(1, "sign-in");
    for what in ["first refresh", "second refresh"] {
        world.issuer.revoke_access_tokens();
        calls("look", what).await;
        expect_sign_ins(1, what);
    }
    calls("edit", "step-up").await;
    expect_sign_ins(2, "step-up");
    world.issuer.revoke_access_tokens();
    calls("edit", "refresh after step-up").await;
    expect_sign_ins(2, "refresh after step-up");
    let settings = HttpSettings::default();
    let url = world.resource.url();
    let sign_out = async || oauth.sign_out(&url, &settings).await;
    attempt(fault, "sign-out", sign_out, is_store_error).await;
    calls("look", "sign-in after sign-out").await;
    expect_sign_ins(3, "sign-in after sign-out");
    client.close().await;
}

async fn play_with_every_fault(lasts: bool) {
    let mut at = 0;
    loop {
        let fault = Arc::new(Fault {
            at,
            lasts,
            uses: AtomicUsize::new(0),
            mended_at: AtomicUsize::new(usize::MAX),
        });
        play(&fault).await;
        if !fault.was_reached() {
            break;
        }
        at += 1;
    }
    assert!(at > 20, "{at} uses were made to fail");
}

#[runtimes::test]
async fn no_token_is_lost_by_a_store_that_fails_once() {
    play_with_every_fault(false).await;
}

#[runtimes::test]
async fn no_token_is_lost_by_a_store_that_fails_for_a_while() {
    play_with_every_fault(true).await;
}

/// Never finishes saving the first tokens.
struct HangingStore {
    sound: MemoryStore,
    saving: Arc<Notify>,
    hangs: AtomicBool,
}

impl TokenStore for HangingStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.sound.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        if key.starts_with("tokens") && self.hangs.swap(false, Ordering::SeqCst) {
            self.saving.notify_one();
            return Box::pin(std::future::pending());
        }
        self.sound.save(key, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.sound.remove(key)
    }
}

#[runtimes::test]
async fn tokens_survive_a_connection_aborted_while_they_are_saved() {
    let world = Arc::new(World::exemplary().await);
    let saving = Arc::new(Notify::new());
    let store = HangingStore {
        sound: MemoryStore::new(),
        saving: saving.clone(),
        hangs: AtomicBool::new(true),
    };
    let oauth = world.oauth().store(store).build();
    let (server, account) = (world.clone(), oauth.clone());
    let connecting = tokio::spawn(async move { server.connect(account).await.map(drop) });
    saving.notified().await;
    connecting.abort();
    // The first connection no longer uses the account when the second signs in.
    assert!(connecting.await.is_err());
    let client = world.connect(oauth).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 1);
}

/// Removes no tokens.
struct KeepingStore(MemoryStore);

impl TokenStore for KeepingStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.save(key, value)
    }

    fn remove<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Err(StoreError::other("the disk is read-only")) })
    }
}

#[runtimes::test]
async fn does_not_use_signed_out_tokens_that_can_not_be_removed() {
    let world = World::exemplary().await;
    let store = Arc::new(KeepingStore(MemoryStore::new()));
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await
        .expect("connected");
    client.close().await;
    assert_eq!(world.sign_ins(), 1);
    // As in another process: only the store has the tokens.
    let oauth = world.oauth().store(store).build();
    let signed_out = oauth
        .sign_out(&world.resource.url(), &HttpSettings::default())
        .await;
    assert!(matches!(signed_out, Err(AuthError::TokenStoreFailed(_))));
    let client = world.connect(oauth).await.expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    assert_eq!(world.grants("refresh_token"), 0);
}

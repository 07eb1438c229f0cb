//! Token stores of the host.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::RpcError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::auth::{BoxFuture, MemoryStore, StoreError, TokenStore};
use crate::background;
use crate::error::Error;

use super::{HostRequest, HostRequestHandlers, IgnoredAnswer};

/// Stores tokens with requests to the host. Within this process, operations of one group exclude each other; across
/// processes the host's own locks do, if it has any.
pub(in crate::foreign) struct HostStore {
    load: Arc<HostRequest>,
    save: Arc<HostRequest>,
    remove: Arc<HostRequest>,
    /// Only its locks are used.
    line: MemoryStore,
    group: String,
    locks: Option<HostLocks>,
}

#[derive(Clone)]
struct HostLocks {
    lock: Arc<HostRequest>,
    unlock: Arc<HostRequest>,
}

impl HostStore {
    pub(in crate::foreign) fn new(
        request_handlers: HostRequestHandlers<'_>,
        has_locks: bool,
        group: Option<String>,
    ) -> Result<Self, Error> {
        /// The locks of all groups.
        static LINES: LazyLock<MemoryStore> = LazyLock::new(MemoryStore::new);
        let request = |method| HostRequest::new(request_handlers, method);
        let locks = has_locks.then(|| -> Result<_, Error> {
            Ok(HostLocks {
                lock: request("auth/store/lock")?,
                unlock: request("auth/store/unlock")?,
            })
        });
        Ok(Self {
            load: request("auth/store/load")?,
            save: request("auth/store/save")?,
            remove: request("auth/store/remove")?,
            line: match &group {
                Some(_) => LINES.clone(),
                None => MemoryStore::new(),
            },
            group: group.unwrap_or_default(),
            locks: locks.transpose()?,
        })
    }
}

impl TokenStore for HostStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        #[derive(Deserialize)]
        struct LoadResult {
            value: Option<String>,
        }
        Box::pin(async move {
            let loaded: LoadResult = self
                .load
                .call_host(json!({ "key": key }))
                .await
                .map_err(failed)?;
            let decoded = loaded.value.map(|value| STANDARD.decode(value)).transpose();
            decoded.map_err(|_| {
                StoreError::Damaged("the value that the token store returned is not valid base64")
            })
        })
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        let params = json!({ "key": key, "value": STANDARD.encode(value) });
        Box::pin(async move {
            self.save
                .call_host(params)
                .await
                .map_err(failed)
                .map(discard_answer)
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let params = json!({ "key": key });
        Box::pin(async move {
            self.remove
                .call_host(params)
                .await
                .map_err(failed)
                .map(discard_answer)
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        #[derive(Deserialize)]
        struct LockResult {
            lock: Value,
        }
        Box::pin(async move {
            // One request of this process at a time, because the host may use a thread for each that waits.
            let turn = self.line.lock(&format!("{}\n{key}", self.group)).await?;
            let Some(HostLocks { lock, unlock }) = self.locks.clone() else {
                return Ok(turn);
            };
            let request_params = json!({ "key": key });
            let key = key.to_owned();
            let runtime = Handle::current();
            // In a task of its own, so that a lock that arrives after its caller has gone is released.
            let locking = tokio::spawn(async move {
                let locked: LockResult = lock.call_host(request_params).await.map_err(failed)?;
                Ok(HeldLock {
                    unlock,
                    params: json!({ "key": key, "lock": locked.lock }),
                    runtime,
                    turn: Some(turn),
                })
            });
            let held: Result<HeldLock, StoreError> = locking
                .await
                .unwrap_or_else(|error| Err(StoreError::other(error)));
            held.map(|held| Box::new(held) as Box<dyn Send>)
        })
    }
}

/// A lock of the host, which is notified on release.
struct HeldLock {
    unlock: Arc<HostRequest>,
    params: Value,
    runtime: Handle,
    /// Kept until the host has released the lock.
    turn: Option<Box<dyn Send>>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let (unlock, params) = (self.unlock.clone(), self.params.take());
        let turn = self.turn.take();
        background::spawn(&self.runtime, async move {
            if let Err(error) = unlock.call_host::<IgnoredAnswer>(params).await {
                tracing::warn!(%error, "the token store failed to release a lock");
            }
            drop(turn);
        });
    }
}

fn failed(error: RpcError) -> StoreError {
    StoreError::other(error.message)
}

fn discard_answer(_: IgnoredAnswer) {}

//! The tokens of one account at one server, and their renewal.
//!
//! Requests use a snapshot of the tokens. A request that needs another token joins the running renewal or starts one.
//! Renewals are separate tasks, so that a cancelled request doesn't abort a sign-in that others wait for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::background::{self, AbortHandle};
use mcpline_runtime::clock;
use tokio::sync::watch;

use crate::AuthError;
use crate::error_chain::with_sources;
use crate::token::Tokens;

use super::flow::Flow;
use super::oauth::OAuth;
use super::record::Record;
use super::request_authorizer::RequestAuthorizer;

/// How many aborted renewals of other clients a request waits for before it gives up. Usually it is one: a client is
/// closed once.
const MAX_ABORTED_RENEWALS: usize = 8;

/// Manages the tokens of one account at one server.
pub(crate) struct TokenManager {
    oauth: OAuth,
    /// The server's URL, without credentials.
    server: String,
    state: Arc<Mutex<TokenState>>,
}

/// A token manager and its state. The state outlives the last client that uses it if the store doesn't hold the same.
pub(super) struct TokenManagerEntry {
    account: Weak<TokenManager>,
    state: Arc<Mutex<TokenState>>,
}

#[derive(Default)]
struct TokenState {
    /// Whether the store has been read.
    loaded: bool,
    record: Option<Arc<Record>>,
    /// Whether the record's tokens can be sent. Tokens that can't be renewed can't, but they still say which scopes
    /// were requested.
    usable: bool,
    /// The tokens in the store when it was last used.
    in_store: Option<Tokens>,
    /// Tokens that the store may still hold because saving newer ones or removing these failed. They are never used
    /// again.
    outdated: Option<Tokens>,
    /// Whether the last save or removal in the store failed, so that only this state is current.
    differs: bool,
    /// Counts the tokens, so that a rejected request can see whether there are newer ones.
    generation: u64,
    renewal: Option<TokenRenewal>,
}

struct TokenRenewal {
    ended: watch::Receiver<Option<Result<RenewalOutcome, AuthError>>>,
    task: AbortHandle,
    /// The address of the authorizer that started it.
    owner: usize,
}

/// How a renewal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenewalOutcome {
    /// Read the store only, or found tokens that another client had renewed.
    Looked,
    /// Refreshed the tokens.
    Refreshed,
    /// Obtained new ones from the authorization server.
    Authorized,
}

/// What a request needs from a renewal.
#[derive(Debug, Clone)]
pub(super) enum TokenNeed {
    /// The tokens in the store.
    Stored,
    /// A replacement for a token that is about to expire.
    Fresh,
    /// A replacement for the token of this generation, which was rejected.
    Other {
        generation: u64,
        challenge: Option<Challenge>,
        /// Whether a refreshed token was rejected too, so that another refresh is useless.
        in_vain: bool,
    },
    /// A token with more scopes than the one of this generation.
    More {
        generation: u64,
        challenge: Challenge,
        needed: Scopes,
    },
}

/// The tokens at one moment.
pub(super) struct TokenSnapshot {
    pub(super) generation: u64,
    pub(super) record: Option<Arc<Record>>,
}

impl TokenManagerEntry {
    /// The token manager, if a client uses it.
    pub(super) fn account(&self) -> Option<Arc<TokenManager>> {
        self.account.upgrade()
    }

    /// Whether the entry must be kept: the token manager is in use, or the store doesn't hold the current tokens.
    pub(super) fn is_needed(&self) -> bool {
        // A renewal holds the manager until its new tokens are in the state.
        self.account.strong_count() > 0
            || self
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .differs
    }
}

impl TokenManager {
    /// Creates the token manager for a server, with the state of an earlier one if there is any.
    pub(super) fn new(oauth: OAuth, server: &str, known: Option<&TokenManagerEntry>) -> Arc<Self> {
        Arc::new(Self {
            oauth,
            server: server.to_owned(),
            state: known.map(|known| known.state.clone()).unwrap_or_default(),
        })
    }

    /// The entry that lets a later token manager share this state.
    pub(super) fn registry_entry(self: &Arc<Self>) -> TokenManagerEntry {
        TokenManagerEntry {
            account: Arc::downgrade(self),
            state: self.state.clone(),
        }
    }

    /// Whether the user allowed servers to name private addresses.
    pub(super) fn allows_private_addresses(&self) -> bool {
        self.oauth.0.allow_private_addresses
    }

    fn lock(&self) -> MutexGuard<'_, TokenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the current tokens.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Returns the tokens to send now, if nothing has to be done first.
    pub(super) fn ready(&self) -> Option<TokenSnapshot> {
        let state = self.lock();
        let fresh = |record: &Arc<Record>| record.tokens.is_fresh(clock::unix_now());
        let ready = !state.usable || state.record.as_ref().is_none_or(fresh);
        (state.loaded && ready).then(|| state.snapshot())
    }

    /// Returns the tokens to send now, renewed if they are about to expire. The snapshot is empty if there are none.
    pub(super) async fn tokens(
        self: &Arc<Self>,
        authorizer: &Arc<RequestAuthorizer>,
    ) -> Result<TokenSnapshot, AuthError> {
        if !self.lock().loaded {
            self.renew(authorizer, TokenNeed::Stored).await?;
        }
        let stale = {
            let state = self.lock();
            let stale =
                |record: &&Arc<Record>| state.usable && !record.tokens.is_fresh(clock::unix_now());
            state.record.as_ref().filter(stale).cloned()
        };
        if let Some(stale) = stale {
            if stale.tokens.refresh_token.is_some() {
                let renewed = self.renew(authorizer, TokenNeed::Fresh).await;
                let lapsed = stale
                    .tokens
                    .expires_at
                    .is_some_and(|at| at <= clock::unix_now());
                // While the token is still valid for some seconds, an outage of the authorization server is no reason
                // to fail.
                if lapsed {
                    renewed?;
                }
            } else if stale
                .tokens
                .expires_at
                .is_some_and(|at| at <= clock::unix_now())
            {
                // It can't be refreshed: the server's challenge will start a new authorization.
                self.lock().usable = false;
            }
        }
        Ok(self.lock().snapshot())
    }

    /// All scopes that have been requested so far.
    pub(super) fn requested(&self) -> Scopes {
        let state = self.lock();
        state
            .record
            .as_ref()
            .map(|record| record.requested.union(&record.tokens.scopes))
            .unwrap_or_default()
    }

    /// Starts a renewal, or waits for the running one.
    pub(super) async fn renew(
        self: &Arc<Self>,
        authorizer: &Arc<RequestAuthorizer>,
        need: TokenNeed,
    ) -> Result<RenewalOutcome, AuthError> {
        for _ in 0..MAX_ABORTED_RENEWALS {
            let mut ended = {
                let mut state = self.lock();
                if state.meets(&need) {
                    return Ok(RenewalOutcome::Looked);
                }
                match &state.renewal {
                    Some(renewal) => renewal.ended.clone(),
                    None => self.start(&mut state, authorizer, need.clone()),
                }
            };
            let outcome = ended
                .wait_for(Option::is_some)
                .await
                .map(|outcome| outcome.clone());
            match outcome {
                Ok(Some(outcome)) => return outcome,
                // Another client started the renewal and was closed.
                _ => continue,
            }
        }
        Err(AuthError::AuthorizationIncomplete(
            "other clients started the sign-in, and were closed before it ended; try again"
                .to_owned(),
        ))
    }

    fn start(
        self: &Arc<Self>,
        state: &mut TokenState,
        authorizer: &Arc<RequestAuthorizer>,
        need: TokenNeed,
    ) -> watch::Receiver<Option<Result<RenewalOutcome, AuthError>>> {
        let (land, ended) = watch::channel(None);
        let (account, attending) = (self.clone(), authorizer.clone());
        let task = background::spawn(authorizer.handle(), async move {
            let end = RenewalGuard(&account);
            let outcome = account.run_renewal(&attending, need).await;
            drop(end);
            // The waiting request may be gone.
            let _ = land.send(Some(outcome));
        });
        state.renewal = Some(TokenRenewal {
            ended: ended.clone(),
            task: task.abort_handle(),
            owner: Arc::as_ptr(authorizer) as usize,
        });
        ended
    }

    /// Aborts the renewal that a closed client's authorizer started.
    pub(super) fn abort_renewal_of(&self, authorizer: &RequestAuthorizer) {
        let state = self.lock();
        let owner = std::ptr::from_ref(authorizer) as usize;
        if let Some(renewal) = state
            .renewal
            .as_ref()
            .filter(|renewal| renewal.owner == owner)
        {
            renewal.task.abort();
        }
    }

    async fn run_renewal(
        &self,
        authorizer: &RequestAuthorizer,
        need: TokenNeed,
    ) -> Result<RenewalOutcome, AuthError> {
        let flow = Flow {
            oauth: &self.oauth.0,
            server: &self.server,
            authorizer,
        };
        let before = self.lock().record.clone();
        let stored = self.stored(&flow).await?;
        if self.adopt(stored, before.as_deref(), &need) {
            return Ok(RenewalOutcome::Looked);
        }
        let (challenge, more) = match &need {
            TokenNeed::Stored => return Ok(RenewalOutcome::Looked),
            TokenNeed::Fresh => (None, None),
            TokenNeed::Other { challenge, .. } => (challenge.as_ref(), None),
            TokenNeed::More {
                challenge, needed, ..
            } => (Some(challenge), Some(needed)),
        };
        if more.is_none() && self.refresh(&flow, &need).await? {
            return Ok(RenewalOutcome::Refreshed);
        }
        if matches!(need, TokenNeed::Fresh) {
            // The request is sent without a token, and the server's challenge says what it requires.
            return Ok(RenewalOutcome::Looked);
        }
        let before = self.lock().record.clone();
        let record = flow.authorize(challenge, before.as_deref(), more).await?;
        self.keep(&flow, record).await;
        Ok(RenewalOutcome::Authorized)
    }

    /// Returns the stored record, unless it is older than the one held here.
    async fn stored(&self, flow: &Flow<'_>) -> Result<Option<Record>, AuthError> {
        let stored = flow.load().await?;
        let mut state = self.lock();
        state.in_store = stored.as_ref().map(|stored| stored.tokens.clone());
        Ok(stored.filter(|stored| state.outdated.as_ref() != Some(&stored.tokens)))
    }

    /// Uses the stored record if it meets the need, and returns whether it does.
    fn adopt(&self, stored: Option<Record>, before: Option<&Record>, need: &TokenNeed) -> bool {
        let mut state = self.lock();
        let first = !std::mem::replace(&mut state.loaded, true);
        let Some(stored) = stored else {
            return first && matches!(need, TokenNeed::Stored);
        };
        let other = before.is_none_or(|before| before.tokens != stored.tokens);
        let fresh = stored.tokens.is_fresh(clock::unix_now());
        let does = match need {
            TokenNeed::Stored => true,
            TokenNeed::Fresh | TokenNeed::Other { .. } => other && fresh,
            TokenNeed::More { needed, .. } => {
                other && fresh && stored.tokens.scopes.contains_all(needed)
            }
        };
        if other && (first || does) {
            state.set_record(stored);
        }
        does
    }

    /// Refreshes the tokens, and returns whether there are new ones. If not, the old ones are not sent again.
    async fn refresh(&self, flow: &Flow<'_>, need: &TokenNeed) -> Result<bool, AuthError> {
        let in_vain = matches!(need, TokenNeed::Other { in_vain: true, .. });
        let record = self.lock().record.clone();
        let Some(record) =
            record.filter(|record| record.tokens.refresh_token.is_some() && !in_vain)
        else {
            return Ok(false);
        };
        let held = flow.lock().await?;
        // The previous holder of the lock may have refreshed them.
        let stored = self.stored(flow).await?;
        if self.adopt(stored, Some(&record), need) {
            return Ok(true);
        }
        match flow.refresh(&record).await {
            Ok(renewed) => {
                self.keep(flow, renewed).await;
                drop(held);
                Ok(true)
            }
            Err(AuthError::AuthorizationServerError { error, .. }) if !is_temporary(&error) => {
                tracing::debug!(error, "the refresh token is no longer valid");
                self.lock().usable = false;
                flow.forget().await;
                if error == "invalid_client" {
                    flow.forget_registration(&record.server.issuer).await;
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn keep(&self, flow: &Flow<'_>, record: Record) {
        // Saved first: if the process is killed in between, the only refresh token would be lost.
        let mut issued = UnsavedTokens {
            account: self,
            record: Some(record),
            is_saved: false,
        };
        if let Some(record) = &issued.record {
            issued.is_saved = flow.save(record).await;
        }
    }

    /// Revokes the tokens and deletes them.
    pub(super) async fn sign_out(&self, authorizer: &RequestAuthorizer) -> Result<(), AuthError> {
        let flow = Flow {
            oauth: &self.oauth.0,
            server: &self.server,
            authorizer,
        };
        let own = self.lock().record.clone();
        let record = match own {
            Some(record) => Ok(Some(record)),
            None => self.stored(&flow).await.map(|stored| stored.map(Arc::new)),
        };
        let given_back = match record {
            Ok(Some(record)) => flow.revoke(&record).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.forget().await?;
        given_back
    }

    /// Deletes the tokens.
    pub(super) async fn forget(&self) -> Result<(), AuthError> {
        let key = self.oauth.0.token_key(&self.server);
        {
            let mut state = self.lock();
            state.record = None;
            state.usable = false;
            state.generation += 1;
        }
        let removed = self.oauth.0.store.remove(&key).await;
        self.lock().note_stored(None, removed.is_ok());
        removed.map_err(|error| AuthError::TokenStoreFailed(with_sources(&error)))
    }
}

impl TokenState {
    fn snapshot(&self) -> TokenSnapshot {
        TokenSnapshot {
            generation: self.generation,
            record: self.record.clone().filter(|_| self.usable),
        }
    }

    /// Records whether the store took these tokens, or removed all if `None`.
    fn note_stored(&mut self, tokens: Option<&Tokens>, succeeded: bool) {
        self.differs = !succeeded;
        if succeeded {
            self.in_store = tokens.cloned();
            self.outdated = None;
        } else {
            self.outdated.clone_from(&self.in_store);
        }
    }

    /// Replaces the tokens by new ones.
    fn set_record(&mut self, record: Record) {
        self.record = Some(Arc::new(record));
        self.usable = true;
        self.generation += 1;
    }

    /// Whether the state meets the need by now.
    fn meets(&self, need: &TokenNeed) -> bool {
        match need {
            TokenNeed::Stored => self.loaded,
            TokenNeed::Fresh => {
                let fresh = |record: &Arc<Record>| record.tokens.is_fresh(clock::unix_now());
                !self.usable || self.record.as_ref().is_none_or(fresh)
            }
            TokenNeed::Other { generation, .. } | TokenNeed::More { generation, .. } => {
                self.usable && self.generation != *generation
            }
        }
    }
}

/// Whether a token error is temporary.
fn is_temporary(error: &str) -> bool {
    matches!(
        error,
        "server_error" | "temporarily_unavailable" | "slow_down"
    )
}

/// Newly issued tokens. On drop they become the account's, even if saving them fails or the renewal is aborted.
struct UnsavedTokens<'a> {
    account: &'a TokenManager,
    record: Option<Record>,
    is_saved: bool,
}

impl Drop for UnsavedTokens<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let mut state = self.account.lock();
            state.note_stored(Some(&record.tokens), self.is_saved);
            state.set_record(record);
        }
    }
}

/// Removes the renewal from the account on drop, however it ends.
struct RenewalGuard<'a>(&'a TokenManager);

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().renewal = None;
    }
}

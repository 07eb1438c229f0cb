//! One account at one server: its tokens, and the one renewal at a time that renews them.
//!
//! Requests look at a snapshot. Whoever finds it lacking joins the renewal that is under way, or starts one; renewals are
//! tasks of their own, so that a request that is given up takes nobody's consent with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::background::{self, AbortHandle};
use mcpline_runtime::clock;
use tokio::sync::watch;

use crate::AuthError;
use crate::token::Tokens;

use super::flow::Flow;
use super::oauth::OAuth;
use super::record::Record;
use super::request_authorizer::RequestAuthorizer;

/// How many renewals of others may be aborted before a request gives up. One is the rule: a client is closed once.
const MAX_FLIGHTS: usize = 8;

/// One account at one server.
pub(crate) struct TokenManager {
    oauth: OAuth,
    /// The server's URL, without credentials.
    server: String,
    state: Arc<Mutex<TokenState>>,
}

/// An account and its state, which outlives the last client that uses it if the store doesn't hold the same.
pub(super) struct TokenManagerEntry {
    account: Weak<TokenManager>,
    state: Arc<Mutex<TokenState>>,
}

#[derive(Default)]
struct TokenState {
    /// Whether the store was looked into.
    loaded: bool,
    record: Option<Arc<Record>>,
    /// Whether the record's tokens are worth showing: those that can't be renewed aren't, but tell what was asked for.
    usable: bool,
    /// What the store held when it was last used.
    in_store: Option<Tokens>,
    /// What the store may hold still because it failed to save newer tokens, or to remove these: never taken up again.
    outdated: Option<Tokens>,
    /// Whether the store failed to save or to remove what it was to: then it is only known here.
    differs: bool,
    /// Counts the tokens, so that whoever is refused knows whether there are newer ones.
    generation: u64,
    renewal: Option<TokenRenewal>,
}

struct TokenRenewal {
    ended: watch::Receiver<Option<Result<RenewalOutcome, AuthError>>>,
    task: AbortHandle,
    /// The authorizer that started it.
    owner: usize,
}

/// How a renewal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenewalOutcome {
    /// Looked into the store, or found that others had been there.
    Looked,
    /// Renewed the tokens.
    Refreshed,
    /// Had new ones granted.
    Authorized,
}

/// What a request needs of a renewal.
#[derive(Debug, Clone)]
pub(super) enum TokenNeed {
    /// Whatever is in the store.
    Stored,
    /// A token in place of one that lapses.
    Fresh,
    /// A token in place of the one of this generation, which was refused.
    Other {
        generation: u64,
        challenge: Option<Challenge>,
        /// Whether a refreshed one was refused in its turn: another refresh helps nothing.
        in_vain: bool,
    },
    /// A token for more than the one of this generation.
    More {
        generation: u64,
        challenge: Challenge,
        needed: Scopes,
    },
}

/// The tokens at one moment.
pub(super) struct Snapshot {
    pub(super) generation: u64,
    pub(super) record: Option<Arc<Record>>,
}

impl TokenManagerEntry {
    /// The account, if somebody uses it.
    pub(super) fn account(&self) -> Option<Arc<TokenManager>> {
        self.account.upgrade()
    }

    /// Whether it has to be remembered: the account is used, or the store doesn't know the same.
    pub(super) fn is_needed(&self) -> bool {
        // A renewal holds the account until the tokens that it was issued are in the state.
        self.account.strong_count() > 0
            || self
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .differs
    }
}

impl TokenManager {
    /// The account at a server, of which this is known from before.
    pub(super) fn new(oauth: OAuth, server: &str, known: Option<&TokenManagerEntry>) -> Arc<Self> {
        Arc::new(Self {
            oauth,
            server: server.to_owned(),
            state: known.map(|known| known.state.clone()).unwrap_or_default(),
        })
    }

    /// What is to be remembered of it.
    pub(super) fn known(self: &Arc<Self>) -> TokenManagerEntry {
        TokenManagerEntry {
            account: Arc::downgrade(self),
            state: self.state.clone(),
        }
    }

    /// Whether the user said that servers may name private addresses.
    pub(super) fn allows_private_addresses(&self) -> bool {
        self.oauth.0.allow_private_addresses
    }

    fn lock(&self) -> MutexGuard<'_, TokenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the tokens.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// The tokens to show now, if nothing has to be done about them.
    pub(super) fn ready(&self) -> Option<Snapshot> {
        let state = self.lock();
        let fresh = |record: &Arc<Record>| record.tokens.is_fresh(clock::unix_now());
        let ready = !state.usable || state.record.as_ref().is_none_or(fresh);
        (state.loaded && ready).then(|| state.snapshot())
    }

    /// The tokens to show now, renewed if that is due; none if there are none.
    pub(super) async fn tokens(
        self: &Arc<Self>,
        authorizer: &Arc<RequestAuthorizer>,
    ) -> Result<Snapshot, AuthError> {
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
                // While it is good for some seconds yet, an outage of the authorization server is no reason to fail.
                if lapsed {
                    renewed?;
                }
            } else if stale
                .tokens
                .expires_at
                .is_some_and(|at| at <= clock::unix_now())
            {
                // Nothing renews it: the server will ask for another.
                self.lock().usable = false;
            }
        }
        Ok(self.lock().snapshot())
    }

    /// What has been asked for so far.
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
        for _ in 0..MAX_FLIGHTS {
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
                // The client that it was for was closed. Ours wasn't.
                _ => continue,
            }
        }
        Err(AuthError::AuthorizationIncomplete(
            "the sign-in was interrupted too often".to_owned(),
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
            let end = EndOfRenewal(&account);
            let outcome = account.run_renewal(&attending, need).await;
            drop(end);
            // Nobody may be waiting any more.
            let _ = land.send(Some(outcome));
        });
        state.renewal = Some(TokenRenewal {
            ended: ended.clone(),
            task: task.abort_handle(),
            owner: Arc::as_ptr(authorizer) as usize,
        });
        ended
    }

    /// The authorizer's client is closed: what it started ends.
    pub(super) fn leave(&self, authorizer: &RequestAuthorizer) {
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
            // The request goes out without, and the server says what it wants.
            return Ok(RenewalOutcome::Looked);
        }
        let before = self.lock().record.clone();
        let record = flow.authorize(challenge, before.as_deref(), more).await?;
        self.keep(&flow, record).await;
        Ok(RenewalOutcome::Authorized)
    }

    /// What is in the store, unless it is older than what is known here.
    async fn stored(&self, flow: &Flow<'_>) -> Result<Option<Record>, AuthError> {
        let stored = flow.load().await?;
        let mut state = self.lock();
        state.in_store = stored.as_ref().map(|stored| stored.tokens.clone());
        Ok(stored.filter(|stored| state.outdated.as_ref() != Some(&stored.tokens)))
    }

    /// Takes what is in the store, if it does what is wanted.
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
            state.take(stored);
        }
        does
    }

    /// Renews the tokens with the refresh token. Whether there are new ones; if not, the old ones are not shown again.
    async fn refresh(&self, flow: &Flow<'_>, need: &TokenNeed) -> Result<bool, AuthError> {
        let in_vain = matches!(need, TokenNeed::Other { in_vain: true, .. });
        let record = self.lock().record.clone();
        let Some(record) =
            record.filter(|record| record.tokens.refresh_token.is_some() && !in_vain)
        else {
            return Ok(false);
        };
        let held = flow.lock().await?;
        // Whoever held it before may have done it for us all.
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
            Err(AuthError::AuthorizationServerError { error, .. }) if !is_passing(&error) => {
                tracing::debug!(error, "a refresh token is good no longer");
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
        // First in the store: who is killed in between would have lost the only refresh token.
        let mut issued = UnsavedTokens {
            account: self,
            record: Some(record),
            is_saved: false,
        };
        if let Some(record) = &issued.record {
            issued.is_saved = flow.save(record).await;
        }
    }

    /// Gives the tokens back, and forgets them.
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
            Ok(Some(record)) => flow.give_back(&record).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.forget().await?;
        given_back
    }

    /// Forgets the tokens.
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
        removed.map_err(|error| AuthError::TokenStoreFailed(error.to_string()))
    }
}

impl TokenState {
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            generation: self.generation,
            record: self.record.clone().filter(|_| self.usable),
        }
    }

    /// The store was to hold these tokens, or none, and does or failed.
    fn note_stored(&mut self, tokens: Option<&Tokens>, succeeded: bool) {
        self.differs = !succeeded;
        if succeeded {
            self.in_store = tokens.cloned();
            self.outdated = None;
        } else {
            self.outdated.clone_from(&self.in_store);
        }
    }

    fn take(&mut self, record: Record) {
        self.record = Some(Arc::new(record));
        self.usable = true;
        self.generation += 1;
    }

    /// Whether what is wanted has come about meanwhile.
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

/// Whether asking again later may help.
fn is_passing(error: &str) -> bool {
    matches!(
        error,
        "server_error" | "temporarily_unavailable" | "slow_down"
    )
}

/// Tokens that were just issued. However saving them ends, also with its renewal, they are the account's.
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
            state.take(record);
        }
    }
}

/// Removes the renewal from the account when it ends, however it ends.
struct EndOfRenewal<'a>(&'a TokenManager);

impl Drop for EndOfRenewal<'_> {
    fn drop(&mut self) {
        self.0.lock().renewal = None;
    }
}

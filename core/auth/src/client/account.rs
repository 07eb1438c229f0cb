//! One account at one server: its tokens, and the one flight at a time that renews them.
//!
//! Requests look at a snapshot. Whoever finds it lacking joins the flight that is under way, or starts one; flights are
//! tasks of their own, so that a request that is given up takes nobody's consent with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::background::{self, AbortHandle};
use mcpline_runtime::clock;
use tokio::sync::watch;

use crate::AuthError;
use crate::token::Tokens;

use super::attendant::Attendant;
use super::flow::Flow;
use super::oauth::OAuth;
use super::record::Record;

/// How many flights of others may end in mid-air before a request gives up. One is the rule: a client is closed once.
const MAX_FLIGHTS: usize = 8;

/// One account at one server.
pub(crate) struct Account {
    oauth: OAuth,
    /// The server's URL, without credentials.
    server: String,
    state: Arc<Mutex<State>>,
}

/// An account and its state, which outlives the last client that uses it if the store doesn't hold the same.
pub(super) struct Known {
    account: Weak<Account>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
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
    flight: Option<Flight>,
}

struct Flight {
    landed: watch::Receiver<Option<Result<Did, AuthError>>>,
    task: AbortHandle,
    /// The attendant that started it.
    owner: usize,
}

/// What a flight did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// Looked into the store, or found that others had been there.
    Looked,
    /// Renewed the tokens.
    Refreshed,
    /// Had new ones granted.
    Authorized,
}

/// What is wanted of a flight.
#[derive(Debug, Clone)]
pub(super) enum Want {
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

impl Known {
    /// The account, if somebody uses it.
    pub(super) fn account(&self) -> Option<Arc<Account>> {
        self.account.upgrade()
    }

    /// Whether it has to be remembered: the account is used, or the store doesn't know the same.
    pub(super) fn is_needed(&self) -> bool {
        // A flight holds the account until the tokens that it was issued are in the state.
        self.account.strong_count() > 0
            || self
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .differs
    }
}

impl Account {
    /// The account at a server, of which this is known from before.
    pub(super) fn new(oauth: OAuth, server: &str, known: Option<&Known>) -> Arc<Self> {
        Arc::new(Self {
            oauth,
            server: server.to_owned(),
            state: known.map(|known| known.state.clone()).unwrap_or_default(),
        })
    }

    /// What is to be remembered of it.
    pub(super) fn known(self: &Arc<Self>) -> Known {
        Known {
            account: Arc::downgrade(self),
            state: self.state.clone(),
        }
    }

    /// Whether the user said that servers may name private addresses.
    pub(super) fn allows_private_addresses(&self) -> bool {
        self.oauth.0.allow_private_addresses
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
        attendant: &Arc<Attendant>,
    ) -> Result<Snapshot, AuthError> {
        if !self.lock().loaded {
            self.renew(attendant, Want::Stored).await?;
        }
        let stale = {
            let state = self.lock();
            let stale =
                |record: &&Arc<Record>| state.usable && !record.tokens.is_fresh(clock::unix_now());
            state.record.as_ref().filter(stale).cloned()
        };
        if let Some(stale) = stale {
            if stale.tokens.refresh_token.is_some() {
                let renewed = self.renew(attendant, Want::Fresh).await;
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

    /// Has a flight do what is wanted, or joins the one that is under way.
    pub(super) async fn renew(
        self: &Arc<Self>,
        attendant: &Arc<Attendant>,
        want: Want,
    ) -> Result<Did, AuthError> {
        for _ in 0..MAX_FLIGHTS {
            let mut landed = {
                let mut state = self.lock();
                if state.meets(&want) {
                    return Ok(Did::Looked);
                }
                match &state.flight {
                    Some(flight) => flight.landed.clone(),
                    None => self.start(&mut state, attendant, want.clone()),
                }
            };
            let outcome = landed
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
        state: &mut State,
        attendant: &Arc<Attendant>,
        want: Want,
    ) -> watch::Receiver<Option<Result<Did, AuthError>>> {
        let (land, landed) = watch::channel(None);
        let (account, attending) = (self.clone(), attendant.clone());
        let task = background::spawn(attendant.handle(), async move {
            let landing = Landing(&account);
            let outcome = account.fly(&attending, want).await;
            drop(landing);
            // Nobody may be waiting any more.
            let _ = land.send(Some(outcome));
        });
        state.flight = Some(Flight {
            landed: landed.clone(),
            task: task.abort_handle(),
            owner: Arc::as_ptr(attendant) as usize,
        });
        landed
    }

    /// The attendant's client is closed: what it started ends.
    pub(super) fn leave(&self, attendant: &Attendant) {
        let state = self.lock();
        let owner = std::ptr::from_ref(attendant) as usize;
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.owner == owner) {
            flight.task.abort();
        }
    }

    async fn fly(&self, attendant: &Attendant, want: Want) -> Result<Did, AuthError> {
        let flow = Flow {
            oauth: &self.oauth.0,
            server: &self.server,
            attendant,
        };
        let before = self.lock().record.clone();
        let stored = self.stored(&flow).await?;
        if self.adopt(stored, before.as_deref(), &want) {
            return Ok(Did::Looked);
        }
        let (challenge, more) = match &want {
            Want::Stored => return Ok(Did::Looked),
            Want::Fresh => (None, None),
            Want::Other { challenge, .. } => (challenge.as_ref(), None),
            Want::More {
                challenge, needed, ..
            } => (Some(challenge), Some(needed)),
        };
        if more.is_none() && self.refresh(&flow, &want).await? {
            return Ok(Did::Refreshed);
        }
        if matches!(want, Want::Fresh) {
            // The request goes out without, and the server says what it wants.
            return Ok(Did::Looked);
        }
        let before = self.lock().record.clone();
        let record = flow.authorize(challenge, before.as_deref(), more).await?;
        self.keep(&flow, record).await;
        Ok(Did::Authorized)
    }

    /// What is in the store, unless it is older than what is known here.
    async fn stored(&self, flow: &Flow<'_>) -> Result<Option<Record>, AuthError> {
        let stored = flow.load().await?;
        let mut state = self.lock();
        state.in_store = stored.as_ref().map(|stored| stored.tokens.clone());
        Ok(stored.filter(|stored| state.outdated.as_ref() != Some(&stored.tokens)))
    }

    /// Takes what is in the store, if it does what is wanted.
    fn adopt(&self, stored: Option<Record>, before: Option<&Record>, want: &Want) -> bool {
        let mut state = self.lock();
        let first = !std::mem::replace(&mut state.loaded, true);
        let Some(stored) = stored else {
            return first && matches!(want, Want::Stored);
        };
        let other = before.is_none_or(|before| before.tokens != stored.tokens);
        let fresh = stored.tokens.is_fresh(clock::unix_now());
        let does = match want {
            Want::Stored => true,
            Want::Fresh | Want::Other { .. } => other && fresh,
            Want::More { needed, .. } => {
                other && fresh && stored.tokens.scopes.contains_all(needed)
            }
        };
        if other && (first || does) {
            state.take(stored);
        }
        does
    }

    /// Renews the tokens with the refresh token. Whether there are new ones; if not, the old ones are not shown again.
    async fn refresh(&self, flow: &Flow<'_>, want: &Want) -> Result<bool, AuthError> {
        let in_vain = matches!(want, Want::Other { in_vain: true, .. });
        let record = self.lock().record.clone();
        let Some(record) =
            record.filter(|record| record.tokens.refresh_token.is_some() && !in_vain)
        else {
            return Ok(false);
        };
        let held = flow.lock().await?;
        // Whoever held it before may have done it for us all.
        let stored = self.stored(flow).await?;
        if self.adopt(stored, Some(&record), want) {
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
        let mut issued = Issued {
            account: self,
            record: Some(record),
            is_saved: false,
        };
        if let Some(record) = &issued.record {
            issued.is_saved = flow.save(record).await;
        }
    }

    /// Gives the tokens back, and forgets them.
    pub(super) async fn sign_out(&self, attendant: &Attendant) -> Result<(), AuthError> {
        let flow = Flow {
            oauth: &self.oauth.0,
            server: &self.server,
            attendant,
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

impl State {
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
    fn meets(&self, want: &Want) -> bool {
        match want {
            Want::Stored => self.loaded,
            Want::Fresh => {
                let fresh = |record: &Arc<Record>| record.tokens.is_fresh(clock::unix_now());
                !self.usable || self.record.as_ref().is_none_or(fresh)
            }
            Want::Other { generation, .. } | Want::More { generation, .. } => {
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

/// Tokens that were just issued. However saving them ends, also with its flight, they are the account's.
struct Issued<'a> {
    account: &'a Account,
    record: Option<Record>,
    is_saved: bool,
}

impl Drop for Issued<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let mut state = self.account.lock();
            state.note_stored(Some(&record.tokens), self.is_saved);
            state.take(record);
        }
    }
}

/// Takes a flight off the board, in whatever way it ends.
struct Landing<'a>(&'a Account);

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.0.lock().flight = None;
    }
}

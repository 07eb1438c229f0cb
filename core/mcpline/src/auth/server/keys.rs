//! The keys of an authorization server: found, fetched, kept, and fetched again when they change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpline_protocol::auth::AuthError;
use mcpline_protocol::auth::fetch::{FetchRequest, FetchResponse};
use mcpline_protocol::auth::jose::JwkSet;
use mcpline_protocol::auth::metadata::ServerMetadata;
use mcpline_protocol::auth::url::Url;
use mcpline_protocol::auth::well_known;
use mcpline_protocol::wire::Raw;
use tokio::sync::OwnedMutexGuard;

use crate::background::{self, JoinHandle};
use crate::clock;

use super::Fetch;

/// How long keys are fresh whose server doesn't say: a key that was taken back is refused after that much.
const USUAL: Duration = Duration::from_secs(600);
/// The bounds of what a server may say: less would have us fetch with every request, more would keep a lost key alive.
const FRESH: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(86_400);
/// How long keys are used on while fresh ones can't be had. Past an hour nobody has a token left that was issued before
/// the server was lost.
const STALE: Duration = Duration::from_secs(3_600);
/// How long after a fetch another one may be, however many tokens name unknown keys: whoever makes up key ids doesn't
/// make us flood the server.
const PAUSE: Duration = Duration::from_secs(30);
/// The same while there are no keys at all, and every request fails.
const SHORT_PAUSE: Duration = Duration::from_secs(2);
/// How long a fetch may take: requests wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the keys of an issuer are.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Keys {
    /// Where the issuer's metadata says (RFC 8414, OpenID Connect Discovery).
    #[default]
    Discovered,
    /// At this URL.
    At(String),
    /// These, for ever.
    These(JwkSet),
}

/// The keys of one issuer.
pub(super) struct KeyCache {
    issuer: Option<Url>,
    source: Keys,
    fetch: Fetch,
    state: Mutex<State>,
    /// Held by whoever fetches; all others wait for what comes of it.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<JwkSet>>,
    fresh_until: Duration,
    usable_until: Duration,
    /// When they were fetched last, or it was tried.
    tried: Option<Duration>,
}

impl KeyCache {
    pub(super) fn new(issuer: Option<Url>, source: Keys, fetch: Fetch) -> Arc<Self> {
        let state = match &source {
            Keys::These(keys) => State {
                keys: Some(Arc::new(keys.clone())),
                fresh_until: Duration::MAX,
                usable_until: Duration::MAX,
                tried: None,
            },
            _ => State::default(),
        };
        Arc::new(Self {
            issuer,
            source,
            fetch,
            state: Mutex::new(state),
            flight: Arc::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys, if they are there and fresh.
    pub(super) fn fresh(&self) -> Option<Arc<JwkSet>> {
        let state = self.lock();
        let keys = state.keys.as_ref()?;
        (clock::now() < state.fresh_until).then(|| keys.clone())
    }

    /// The keys, fetched if they aren't there, aren't fresh, or don't have the one that a token names.
    ///
    /// # Errors
    ///
    /// If there are none, and none can be had.
    pub(super) async fn get(self: &Arc<Self>, id: Option<&str>) -> Result<Arc<JwkSet>, String> {
        let has = |keys: &Arc<JwkSet>| id.is_none_or(|id| keys.has(id));
        if let Some(keys) = self.fresh().filter(has) {
            return Ok(keys);
        }
        if matches!(self.source, Keys::These(_)) {
            return self.usable();
        }
        if let Ok(keys) = self.usable()
            && has(&keys)
        {
            // Nobody waits while the keys that are there will do.
            if let Ok(turn) = self.flight.clone().try_lock_owned()
                && self.may_fetch()
            {
                self.begin(turn);
            }
            return Ok(keys);
        }
        let turn = self.flight.clone().lock_owned().await;
        if let Some(keys) = self.fresh().filter(has) {
            return Ok(keys);
        }
        if self.may_fetch() {
            // It doesn't panic; if the runtime ends, so does whoever asks.
            let _ = self.begin(turn).await;
        }
        self.usable()
    }

    /// Other keys than these, fetched now unless that was done lately.
    pub(super) async fn newer(self: &Arc<Self>, than: &Arc<JwkSet>) -> Option<Arc<JwkSet>> {
        if matches!(self.source, Keys::These(_)) {
            return None;
        }
        let turn = self.flight.clone().lock_owned().await;
        let other = |keys: &Arc<JwkSet>| !Arc::ptr_eq(keys, than);
        if let Some(keys) = self.fresh().filter(other) {
            return Some(keys);
        }
        if self.may_fetch() {
            // As above.
            let _ = self.begin(turn).await;
        }
        self.fresh().filter(other)
    }

    /// Fetches, in a task: whoever asked may go away, and others wait for the same.
    fn begin(self: &Arc<Self>, turn: OwnedMutexGuard<()>) -> JoinHandle<()> {
        let this = self.clone();
        background::spawn_here(async move {
            if tokio::time::timeout(PATIENCE, this.fetch()).await.is_err() {
                let issuer = this.issuer.as_ref().map(Url::as_str);
                tracing::warn!(
                    issuer,
                    "an authorization server took too long to send its keys"
                );
            }
            drop(turn);
        })
    }

    fn usable(&self) -> Result<Arc<JwkSet>, String> {
        let state = self.lock();
        state
            .keys
            .clone()
            .filter(|_| clock::now() < state.usable_until)
            .ok_or_else(|| "the keys of the authorization server can't be had".to_owned())
    }

    /// Whether it is time to fetch; if so, it is noted.
    fn may_fetch(&self) -> bool {
        let mut state = self.lock();
        let pause = if state.keys.is_some() {
            PAUSE
        } else {
            SHORT_PAUSE
        };
        let now = clock::now();
        let may = state.tried.is_none_or(|tried| now >= tried + pause);
        if may {
            state.tried = Some(now);
        }
        may
    }

    async fn fetch(&self) {
        let fetched = match (&self.source, &self.issuer) {
            (Keys::At(url), _) => self.fetch_set(url).await,
            (Keys::Discovered, Some(issuer)) => match self.discover(issuer).await {
                Ok(url) => self.fetch_set(&url).await,
                Err(error) => Err(error),
            },
            _ => return,
        };
        let (keys, fresh) = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                let issuer = self.issuer.as_ref().map(Url::as_str);
                tracing::warn!(
                    issuer,
                    error,
                    "the keys of an authorization server can't be had"
                );
                return;
            }
        };
        let now = clock::now();
        let mut state = self.lock();
        // What was verified by the same keys needn't be verified again.
        if state.keys.as_deref() != Some(&keys) {
            state.keys = Some(Arc::new(keys));
        }
        state.fresh_until = now + fresh;
        state.usable_until = now + fresh + STALE;
    }

    async fn fetch_set(&self, url: &str) -> Result<(JwkSet, Duration), String> {
        let response = self.ask(url).await?;
        let fresh = max_age(&response).unwrap_or(USUAL);
        let keys = JwkSet::parse(response.body).map_err(|error| format!("{url}: {error}"))?;
        Ok((keys, fresh.clamp(*FRESH.start(), *FRESH.end())))
    }

    /// Where the issuer's metadata says that its keys are. Metadata of another issuer is not used (RFC 8414, section
    /// 3.3).
    async fn discover(&self, issuer: &Url) -> Result<String, String> {
        let mut failed = String::new();
        for place in well_known::server_metadata(issuer) {
            match self.metadata(&place).await {
                Ok(metadata) if metadata.issuer != issuer.as_str() => {
                    failed = format!("{place} is of another issuer");
                }
                Ok(metadata) => {
                    let url = metadata
                        .jwks_uri
                        .ok_or_else(|| format!("{place} names no keys"))?;
                    return Url::secure("jwks_uri", &url)
                        .map(|_| url)
                        .map_err(|error| error.to_string());
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn metadata(&self, url: &str) -> Result<ServerMetadata, String> {
        let response = self.ask(url).await?;
        Raw::parse(response.body)
            .ok()
            .and_then(|document| document.decode().ok())
            .ok_or_else(|| format!("{url} is no metadata of an authorization server"))
    }

    async fn ask(&self, url: &str) -> Result<FetchResponse, String> {
        let response = (self.fetch)(FetchRequest::get(url)).await;
        let response = response.map_err(|error: AuthError| error.to_string())?;
        if response.status == 200 {
            Ok(response)
        } else {
            Err(format!("{url} answered {}", response.status))
        }
    }
}

/// How long a response may be kept (RFC 9111, section 5.2.2).
fn max_age(response: &FetchResponse) -> Option<Duration> {
    let directives = response.header("cache-control")?;
    let mut age = None;
    for directive in directives.split(',') {
        let directive = directive.trim().to_ascii_lowercase();
        if directive == "no-store" || directive == "no-cache" {
            return Some(Duration::ZERO);
        }
        if let Some(seconds) = directive.strip_prefix("max-age=") {
            age = seconds.trim_matches('"').parse().ok();
        }
    }
    age.map(Duration::from_secs)
}

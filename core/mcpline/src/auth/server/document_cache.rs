//! Caches a document of an authorization server: it is fetched once for all requests that wait, and again when it is no
//! longer fresh.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpline_auth::AuthError;
use mcpline_auth::fetch::{FetchRequest, FetchResponse};
use mcpline_auth::metadata::ServerMetadata;
use mcpline_auth::url::Url;
use mcpline_auth::well_known;
use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;
use tokio::sync::OwnedMutexGuard;

use crate::auth::BoxFuture;
use crate::background::{self, JoinHandle};

use super::Fetch;

/// How long a document is fresh by default: a revoked key is rejected after this time.
const USUAL: Duration = Duration::from_secs(600);
/// Bounds of the lifetime that a server sets: less would cause a fetch with every request, more would keep a lost key
/// alive.
const FRESH: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(86_400);
/// How long a stale document is used while no fresh one is available. After an hour no tokens are left that were issued
/// before the server was lost.
const STALE: Duration = Duration::from_secs(3_600);
/// Minimum time between fetches, whatever requests need: clients with invented key ids must not make us flood the
/// server.
const PAUSE: Duration = Duration::from_secs(30);
/// How long a fetch may take: requests wait for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A fetched document, and how long its server allows to keep it.
pub(super) type FetchedDocument<T> = Result<(T, Option<Duration>), String>;

/// Fetches a document.
type FetchDocument<T> = Box<dyn Fn() -> BoxFuture<'static, FetchedDocument<T>> + Send + Sync>;

/// The cache of one document.
pub(super) struct DocumentCache<T> {
    fetch: FetchDocument<T>,
    /// The issuer of the document, for the log.
    issuer: Option<String>,
    /// Delay after a failed fetch while there is no document at all.
    retry_pause: Duration,
    state: Mutex<State<T>>,
    /// Held during a fetch; all others wait for its outcome.
    flight: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    document: Option<Arc<T>>,
    fresh_until: Duration,
    usable_until: Duration,
    /// When the last fetch ended, whatever its outcome: requests that waited for it must not start another one.
    tried: Option<Duration>,
}

impl<T: PartialEq + Send + Sync + 'static> DocumentCache<T> {
    pub(super) fn new(
        issuer: Option<&Url>,
        retry_pause: Duration,
        fetch: FetchDocument<T>,
    ) -> Arc<Self> {
        Arc::new(Self {
            fetch,
            issuer: issuer.map(|issuer| issuer.as_str().to_owned()),
            retry_pause,
            state: Mutex::new(State {
                document: None,
                fresh_until: Duration::ZERO,
                usable_until: Duration::ZERO,
                tried: None,
            }),
            flight: Arc::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the document, if it is available and fresh.
    pub(super) fn fresh(&self) -> Option<Arc<T>> {
        let state = self.lock();
        let document = state.document.as_ref()?;
        (clock::now() < state.fresh_until).then(|| document.clone())
    }

    /// Returns the document, and fetches it if it is missing, not fresh or not `fit`. Returns `None` if none is
    /// available.
    pub(super) async fn get(self: &Arc<Self>, fit: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let is_fit = |document: &Arc<T>| fit(document);
        if let Some(document) = self.fresh().filter(is_fit) {
            return Some(document);
        }
        if let Some(document) = self.usable().filter(is_fit) {
            // Requests do not wait while the current document is usable.
            if let Ok(turn) = self.flight.clone().try_lock_owned()
                && self.may_fetch()
            {
                self.begin(turn);
            }
            return Some(document);
        }
        let turn = self.flight.clone().lock_owned().await;
        if let Some(document) = self.fresh().filter(is_fit) {
            return Some(document);
        }
        if self.may_fetch() {
            // The task does not panic; if the runtime shuts down, the caller ends as well.
            let _ = self.begin(turn).await;
        }
        self.usable()
    }

    /// Returns another document than this one, fetched now unless there was a fetch recently.
    pub(super) async fn fetch_newer(self: &Arc<Self>, than: &Arc<T>) -> Option<Arc<T>> {
        let turn = self.flight.clone().lock_owned().await;
        let other = |document: &Arc<T>| !Arc::ptr_eq(document, than);
        if let Some(document) = self.fresh().filter(other) {
            return Some(document);
        }
        if self.may_fetch() {
            // As above.
            let _ = self.begin(turn).await;
        }
        self.fresh().filter(other)
    }

    /// Fetches in a task, because the caller may be dropped while others wait for the outcome.
    fn begin(self: &Arc<Self>, turn: OwnedMutexGuard<()>) -> JoinHandle<()> {
        let this = self.clone();
        background::spawn_here(async move {
            let issuer = this.issuer.as_deref();
            match tokio::time::timeout(FETCH_TIMEOUT, (this.fetch)()).await {
                Ok(Ok((document, fresh))) => this.keep(document, fresh),
                Ok(Err(error)) => {
                    tracing::warn!(
                        issuer,
                        error,
                        "fetching a document of an authorization server failed"
                    );
                }
                Err(_) => tracing::warn!(
                    issuer,
                    seconds = FETCH_TIMEOUT.as_secs(),
                    "fetching a document of an authorization server took too long"
                ),
            }
            this.lock().tried = Some(clock::now());
            drop(turn);
        })
    }

    fn usable(&self) -> Option<Arc<T>> {
        let state = self.lock();
        let document = state.document.clone();
        document.filter(|_| clock::now() < state.usable_until)
    }

    /// Whether enough time has passed for another fetch.
    fn may_fetch(&self) -> bool {
        let state = self.lock();
        let pause = if state.document.is_some() {
            PAUSE
        } else {
            self.retry_pause
        };
        let now = clock::now();
        state.tried.is_none_or(|tried| now >= tried + pause)
    }

    fn keep(&self, document: T, fresh: Option<Duration>) {
        let fresh = fresh.unwrap_or(USUAL).clamp(*FRESH.start(), *FRESH.end());
        let now = clock::now();
        let mut state = self.lock();
        // An unchanged document keeps its identity, so that what was derived from it stays valid.
        if state.document.as_deref() != Some(&document) {
            state.document = Some(Arc::new(document));
        }
        state.fresh_until = now + fresh;
        state.usable_until = now + fresh + STALE;
    }
}

/// Fetches the issuer's metadata from the first well-known URL that has it. Metadata of another issuer is rejected (RFC
/// 8414, section 3.3).
pub(super) async fn fetch_metadata(fetch: &Fetch, issuer: &Url) -> FetchedDocument<ServerMetadata> {
    let mut failed = String::new();
    for place in well_known::server_metadata(issuer) {
        let response = match fetch_document(fetch, &place).await {
            Ok(response) => response,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        let fresh = max_age(&response);
        let document: Option<ServerMetadata> = Raw::parse(response.body)
            .ok()
            .and_then(|document| document.decode().ok());
        match document {
            Some(metadata) if metadata.issuer == issuer.as_str() => return Ok((metadata, fresh)),
            Some(_) => failed = format!("the `issuer` of {place} is not the configured one"),
            None => failed = format!("{place} is not metadata of an authorization server"),
        }
    }
    Err(failed)
}

/// Fetches a document.
pub(super) async fn fetch_document(fetch: &Fetch, url: &str) -> Result<FetchResponse, String> {
    let response = fetch(FetchRequest::get(url)).await;
    let response = response.map_err(|error: AuthError| error.to_string())?;
    if response.status == 200 {
        Ok(response)
    } else {
        Err(format!("{url} answered {}", response.status))
    }
}

/// Returns how long a response may be kept (RFC 9111, section 5.2.2).
pub(super) fn max_age(response: &FetchResponse) -> Option<Duration> {
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

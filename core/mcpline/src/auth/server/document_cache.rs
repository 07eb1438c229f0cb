//! A document that an authorization server publishes: fetched once for all who wait, kept, and fetched again when it is
//! no longer fresh.

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

/// How long a document is fresh whose server doesn't say: a key that was taken back is refused after that much.
const USUAL: Duration = Duration::from_secs(600);
/// The bounds of what a server may say: less would have us fetch with every request, more would keep a lost key alive.
const FRESH: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(86_400);
/// How long a document is used on while a fresh one can't be had. Past an hour nobody has a token left that was issued
/// before the server was lost.
const STALE: Duration = Duration::from_secs(3_600);
/// How long after a fetch another one may be, whatever requests ask for: whoever makes up key ids doesn't make us flood
/// the server.
const PAUSE: Duration = Duration::from_secs(30);
/// How long a fetch may take: requests wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was fetched, and for how long its server says that it may be kept.
pub(super) type Fetched<T> = Result<(T, Option<Duration>), String>;

/// How a document is fetched.
type FetchDocument<T> = Box<dyn Fn() -> BoxFuture<'static, Fetched<T>> + Send + Sync>;

/// The cache of one document.
pub(super) struct DocumentCache<T> {
    fetch: FetchDocument<T>,
    /// Whose document it is, for the log.
    issuer: Option<String>,
    /// How long after a failed fetch another one may be while there is no document at all.
    retry_pause: Duration,
    state: Mutex<State<T>>,
    /// Held by whoever fetches; all others wait for what comes of it.
    flight: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    document: Option<Arc<T>>,
    fresh_until: Duration,
    usable_until: Duration,
    /// When the last fetch ended, whatever came of it: whoever waited for it must not make the next one.
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

    /// The document, if it is there and fresh.
    pub(super) fn fresh(&self) -> Option<Arc<T>> {
        let state = self.lock();
        let document = state.document.as_ref()?;
        (clock::now() < state.fresh_until).then(|| document.clone())
    }

    /// The document, fetched if it isn't there, isn't fresh, or isn't `fit`. `None` if there is none, and none can be had.
    pub(super) async fn get(self: &Arc<Self>, fit: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let is_fit = |document: &Arc<T>| fit(document);
        if let Some(document) = self.fresh().filter(is_fit) {
            return Some(document);
        }
        if let Some(document) = self.usable().filter(is_fit) {
            // Nobody waits while the one that is there will do.
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
            // It doesn't panic; if the runtime ends, so does whoever asks.
            let _ = self.begin(turn).await;
        }
        self.usable()
    }

    /// Another document than this, fetched now unless that was done lately.
    pub(super) async fn newer(self: &Arc<Self>, than: &Arc<T>) -> Option<Arc<T>> {
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

    /// Fetches, in a task: whoever asked may go away, and others wait for the same.
    fn begin(self: &Arc<Self>, turn: OwnedMutexGuard<()>) -> JoinHandle<()> {
        let this = self.clone();
        background::spawn_here(async move {
            let issuer = this.issuer.as_deref();
            match tokio::time::timeout(PATIENCE, (this.fetch)()).await {
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
                    seconds = PATIENCE.as_secs(),
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

    /// Whether it is time to fetch.
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
        // What was made of the same document needn't be made again.
        if state.document.as_deref() != Some(&document) {
            state.document = Some(Arc::new(document));
        }
        state.fresh_until = now + fresh;
        state.usable_until = now + fresh + STALE;
    }
}

/// Fetches the issuer's metadata from the first of its well-known places that has it. Metadata of another issuer is not
/// used (RFC 8414, section 3.3).
pub(super) async fn fetch_metadata(fetch: &Fetch, issuer: &Url) -> Fetched<ServerMetadata> {
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
            Some(_) => failed = format!("{place} is of another issuer"),
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

/// How long a response may be kept (RFC 9111, section 5.2.2).
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

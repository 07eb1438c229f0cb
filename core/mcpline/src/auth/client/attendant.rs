//! Sees to the requests of one client: puts tokens in, and judges what comes back.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use mcpline_auth::Secret;
use mcpline_auth::error::AuthError;
use mcpline_auth::token::TokenType;
use mcpline_auth::url::Url;
use mcpline_jose::SigningKey;
use mcpline_jose::dpop::{self, ProofOf};
use mcpline_protocol::{Challenge, Scopes};
use ring::rand::SystemRandom;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::client_error::ClientError;
use crate::clock;
use crate::http_client::{
    AttemptOutcome, Attempts, Authorizer, Fetcher, HttpSettings, RequestTimer, is_public,
};

use super::account::{Account, Did, Want};
use super::bearer::Sourced;
use super::{BoxFuture, Kind};

/// How often one request may be refused and sent again. A refresh, a consent, and what others did in between.
const MAX_RENEWALS: u32 = 4;

/// How often one request may step up (2025-11-25, `basic/authorization`, step-up: no more than a few times).
const MAX_STEP_UPS: u32 = 2;

/// How often one request is sent again with another nonce.
const MAX_NONCES: u32 = 2;

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Sees to the requests of one client.
pub(crate) struct Attendant {
    tokens: From,
    server: String,
    settings: HttpSettings,
    handle: Handle,
    /// For public addresses alone, and for private ones too. Made when they are first needed: most tokens are good.
    fetchers: [OnceCell<Fetcher>; 2],
    /// Whether the server is at a private address.
    at_private: AtomicBool,
    /// The nonce that the server wants in proofs.
    nonce: Mutex<Option<String>>,
}

enum From {
    Fixed(Secret),
    Source(Arc<Sourced>),
    Account(Arc<Account>),
}

/// What a request was sent with.
#[derive(Default)]
pub(crate) struct Shown {
    number: u64,
    token: Option<(TokenType, Secret)>,
    key: Option<Arc<SigningKey>>,
    nonce: Option<String>,
}

/// What one request has been through.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    renewals: u32,
    step_ups: u32,
    nonces: u32,
    /// Whether a token was refreshed in its course.
    refreshed: bool,
    /// Whether consent was given in its course.
    authorized: bool,
}

/// An [`Attendant`] as HTTP uses it.
pub(crate) struct Requests(pub(crate) Arc<Attendant>);

impl Authorizer for Requests {
    fn authorization(&self) -> u64 {
        self.0.authorization()
    }

    fn attempts(&self) -> Box<dyn Attempts> {
        Box::new(RequestAttempts {
            attendant: self.0.clone(),
            rounds: Rounds::default(),
            shown: Shown::default(),
        })
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The attempts of one request, and what the latest was sent with.
struct RequestAttempts {
    attendant: Arc<Attendant>,
    rounds: Rounds,
    shown: Shown,
}

impl Attempts for RequestAttempts {
    fn prepare<'a>(
        &'a mut self,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<(), ClientError>> {
        Box::pin(async move {
            let shown = self.attendant.show(timer).await;
            self.shown = shown.map_err(ClientError::AuthorizationFailed)?;
            Ok(())
        })
    }

    fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str) {
        self.shown.put(headers, method, url);
    }

    fn judge<'a>(
        &'a mut self,
        head: &'a Parts,
        peer: Option<IpAddr>,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<AttemptOutcome, ClientError>> {
        Box::pin(async move {
            let (shown, rounds) = (&self.shown, &mut self.rounds);
            let judged = self.attendant.judge(head, peer, shown, rounds, timer);
            judged.await.map_err(ClientError::AuthorizationFailed)
        })
    }
}

impl Attendant {
    /// `server` is the URL that is connected to, without credentials.
    pub(crate) fn new(
        kind: &Kind,
        server: &str,
        settings: &HttpSettings,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            tokens: match kind {
                Kind::Fixed(token) => From::Fixed(token.clone()),
                Kind::Source(source) => From::Source(source.clone()),
                Kind::OAuth(oauth) => From::Account(oauth.account(server)),
            },
            server: server.to_owned(),
            settings: settings.clone(),
            handle,
            fetchers: Default::default(),
            at_private: AtomicBool::new(is_this_machine(server)),
            nonce: Mutex::new(None),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The client is closed.
    pub(crate) fn close(&self) {
        if let From::Account(account) = &self.tokens {
            account.leave(self);
        }
    }

    /// What fetches for this client. A server that is at a private address itself may name others that are: whoever
    /// connected to it let this machine in there. `trusted`: so it was when the tokens were granted.
    ///
    /// What counts is the address that the server was spoken to at. Its name alone tells nothing: whoever owns a name can have
    /// it resolved to one address now and to another one then.
    pub(super) async fn fetcher(&self, trusted: bool) -> Result<&Fetcher, AuthError> {
        let private = trusted || self.may_name_private();
        let make = || async {
            let made = Fetcher::new(&self.settings, self.handle.clone(), private);
            made.map_err(|error| AuthError::FetchFailed {
                url: self.server.clone(),
                reason: error.to_string(),
            })
        };
        self.fetchers[usize::from(private)]
            .get_or_try_init(make)
            .await
    }

    /// Whether what this server names may be at private addresses.
    pub(super) fn may_name_private(&self) -> bool {
        let allowed = match &self.tokens {
            From::Account(account) => account.allows_private_addresses(),
            _ => false,
        };
        allowed || self.at_private.load(Ordering::Relaxed)
    }

    /// A number that changes with every token that isn't the one before. Nothing tells whether a new one is the same
    /// user's.
    pub(crate) fn authorization(&self) -> u64 {
        match &self.tokens {
            From::Fixed(_) => 0,
            From::Source(source) => source.number(),
            From::Account(account) => account.generation(),
        }
    }

    /// What to send a request with.
    pub(crate) async fn show(
        self: &Arc<Self>,
        timer: &dyn RequestTimer,
    ) -> Result<Shown, AuthError> {
        let mut shown = Shown::default();
        match &self.tokens {
            From::Fixed(token) => shown.token = Some((TokenType::Bearer, token.clone())),
            From::Source(source) => {
                let _held = Held::new(timer);
                let (token, number) = source.token(&self.server).await?;
                (shown.token, shown.number) = (Some((TokenType::Bearer, token)), number);
            }
            From::Account(account) => {
                let tokens = match account.ready() {
                    Some(tokens) => tokens,
                    None => {
                        let _held = Held::new(timer);
                        account.tokens(self).await?
                    }
                };
                shown.number = tokens.generation;
                if let Some(record) = tokens.record {
                    let token = record.tokens.access_token.clone();
                    shown.token = Some((record.tokens.token_type, token));
                    shown.key.clone_from(&record.key);
                    shown.nonce = self.lock_nonce().clone();
                }
            }
        }
        Ok(shown)
    }

    /// What to do with the answer to a request that was sent with `shown`. Whatever is needed for the next attempt is done
    /// when this ends.
    pub(crate) async fn judge(
        self: &Arc<Self>,
        head: &Parts,
        peer: Option<IpAddr>,
        shown: &Shown,
        rounds: &mut Rounds,
        timer: &dyn RequestTimer,
    ) -> Result<AttemptOutcome, AuthError> {
        let other_nonce = self.note_nonce(head);
        if !matches!(
            head.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            return Ok(AttemptOutcome::Done);
        }
        self.note_peer(peer);
        let challenges = challenges(&head.headers);
        let error = |challenge: &&Challenge| challenge.get("error").map(str::to_owned);
        if challenges
            .iter()
            .any(|one| one.get("error") == Some(dpop::USE_NONCE))
        {
            rounds.nonces += 1;
            let again = other_nonce && rounds.nonces <= MAX_NONCES;
            return Ok(if again {
                AttemptOutcome::Retry
            } else {
                AttemptOutcome::Done
            });
        }
        let challenge = challenges
            .iter()
            .find(|one| one.is("bearer") || one.is("dpop"));
        if head.status == StatusCode::FORBIDDEN {
            let lacking =
                challenge.filter(|one| error(one).as_deref() == Some("insufficient_scope"));
            return match (lacking, &self.tokens) {
                (Some(challenge), From::Account(account)) => {
                    let _held = Held::new(timer);
                    self.step_up(account, challenge, shown, rounds).await
                }
                _ => Ok(AttemptOutcome::Done),
            };
        }
        rounds.renewals += 1;
        let description = || {
            let description = challenge.and_then(|one| one.get("error_description"));
            description.map(str::to_owned)
        };
        if rounds.authorized || rounds.renewals > MAX_RENEWALS {
            return Err(AuthError::TokenRejected {
                description: description(),
            });
        }
        let _held = Held::new(timer);
        match &self.tokens {
            From::Fixed(_) => return Ok(AttemptOutcome::Done),
            From::Source(source) => {
                // Once: a source that has nothing better would go on for ever.
                rounds.authorized = true;
                source.renew(&self.server, shown.number, challenge).await?;
            }
            From::Account(account) => {
                let want = Want::Other {
                    generation: shown.number,
                    challenge: challenge.cloned(),
                    in_vain: rounds.refreshed,
                };
                let did = account.renew(self, want).await?;
                rounds.refreshed |= did == Did::Refreshed;
                rounds.authorized = did == Did::Authorized;
            }
        }
        Ok(AttemptOutcome::Retry)
    }

    async fn step_up(
        self: &Arc<Self>,
        account: &Arc<Account>,
        challenge: &Challenge,
        shown: &Shown,
        rounds: &mut Rounds,
    ) -> Result<AttemptOutcome, AuthError> {
        let needed = challenge
            .get("scope")
            .map(Scopes::parse)
            .unwrap_or_default();
        rounds.step_ups += 1;
        // What was asked for and not granted will not be granted for being asked for again.
        let in_vain = rounds.step_ups > 1 && account.requested().contains_all(&needed);
        if needed.is_empty() || in_vain || rounds.step_ups > MAX_STEP_UPS {
            return Err(AuthError::InsufficientScope { needed });
        }
        let want = Want::More {
            generation: shown.number,
            challenge: challenge.clone(),
            needed,
        };
        account.renew(self, want).await?;
        Ok(AttemptOutcome::Retry)
    }

    /// Takes down where an answer came from; a proxy's address says nothing.
    fn note_peer(&self, peer: Option<IpAddr>) {
        if let Some(peer) = peer {
            self.at_private.store(!is_public(peer), Ordering::Relaxed);
        }
    }

    /// Takes down the nonce that an answer names. Whether it is another than before.
    fn note_nonce(&self, head: &Parts) -> bool {
        let Some(named) = head
            .headers
            .get(DPOP_NONCE)
            .and_then(|value| value.to_str().ok())
        else {
            return false;
        };
        let mut nonce = self.lock_nonce();
        let other = nonce.as_deref() != Some(named);
        *nonce = Some(named.to_owned());
        other
    }

    fn lock_nonce(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.nonce.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Puts the token into the head of a request.
    pub(crate) fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str) {
        let Some((kind, token)) = &self.token else {
            return;
        };
        // Tokens that can't be in a header were refused when they were taken.
        let Ok(mut value) = HeaderValue::from_str(&format!("{} {}", kind.scheme(), token.expose()))
        else {
            return;
        };
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        let (TokenType::Dpop, Some(key)) = (kind, &self.key) else {
            return;
        };
        let proof = ProofOf {
            method: method.as_str(),
            url,
            nonce: self.nonce.as_deref(),
            token: Some(token),
        };
        let proof = proof.sign(
            key,
            clock::unix_now(),
            clock::random(),
            &SystemRandom::new(),
        );
        // Without it the server refuses, and says why.
        if let Some(Ok(proof)) = proof.ok().map(|proof| HeaderValue::from_str(&proof)) {
            headers.insert(DPOP, proof);
        }
    }
}

/// Whether a URL names this machine, or a private address, in so many words.
fn is_this_machine(server: &str) -> bool {
    Url::parse("server", server).is_ok_and(|url| {
        let address = url.host().parse::<IpAddr>();
        url.is_loopback() || address.is_ok_and(|address| !is_public(address))
    })
}

fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    Challenge::read(&texts.join(", "))
}

/// Holds a request's time for as long as it lives.
struct Held<'p>(&'p dyn RequestTimer);

impl<'p> Held<'p> {
    fn new(timer: &'p dyn RequestTimer) -> Self {
        timer.hold(true);
        Self(timer)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

#[cfg(test)]
mod tests {
    use mcpline_auth::fetch::FetchRequest;
    use tokio::net::TcpListener;

    use crate::auth::OAuth;

    use super::*;

    /// What comes of fetching something from this machine on the word of `server`.
    async fn fetched(oauth: OAuth, server: &str) -> Result<u16, AuthError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let answering = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("sent");
        });
        let settings = HttpSettings::default();
        let attendant = Attendant::new(&Kind::OAuth(oauth), server, &settings, Handle::current());
        let request = FetchRequest::get(format!("http://127.0.0.1:{port}/secret"));
        let outcome = attendant.fetcher(false).await?.fetch(request).await;
        answering.abort();
        outcome.map(|response| response.status)
    }

    #[runtimes::test]
    async fn a_public_server_can_not_have_this_machine_call_private_addresses() {
        let public = "https://93.184.216.34/mcp";
        let oauth = || OAuth::builder("a test");
        let error = fetched(oauth().build(), public).await.expect_err("refused");
        assert_eq!(error.code(), "fetch_failed");
        assert!(error.to_string().contains("private address"), "{error}");
        let allowed = oauth().allow_private_addresses(true).build();
        assert_eq!(fetched(allowed, public).await, Ok(404));
    }

    #[runtimes::test]
    async fn what_a_server_may_name_depends_on_where_it_answers_and_not_on_what_its_name_says() {
        let oauth = Kind::OAuth(OAuth::builder("a test").build());
        let settings = HttpSettings::default();
        // A name of the test's own machine would resolve to a private address; this one is asked for nowhere.
        let server = "https://mcp.example.com/mcp";
        let attendant = Attendant::new(&oauth, server, &settings, Handle::current());
        assert!(!attendant.may_name_private());
        attendant.note_peer(Some([10, 1, 2, 3].into()));
        assert!(attendant.may_name_private());
        attendant.note_peer(None);
        assert!(attendant.may_name_private());
        attendant.note_peer(Some([93, 184, 216, 34].into()));
        assert!(!attendant.may_name_private());
    }

    #[runtimes::test]
    async fn a_server_on_this_machine_may_name_others_on_it() {
        for server in ["http://127.0.0.1:1/mcp", "http://localhost:1/mcp"] {
            let oauth = OAuth::builder("a test").build();
            assert_eq!(fetched(oauth, server).await, Ok(404), "{server}");
        }
    }
}

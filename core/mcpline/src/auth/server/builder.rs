//! The builder of a [`ResourceServer`].

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpline_auth::metadata::ResourceMetadata;
use mcpline_auth::url::Url;
use mcpline_auth::{AuthError, Secret, well_known};
use mcpline_jose::Algorithm;
use mcpline_protocol::Scopes;
use tokio::runtime::{self, Handle};

use crate::auth::BoxFuture;
use crate::caller::Caller;
use crate::error::Error;
use crate::http_client::{Fetcher, HttpSettings};

use super::authorization_server_redirects::AuthorizationServerRedirects;
use super::introspection::{Introspection, Introspector};
use super::keys::{KeyCache, Keys};
use super::resource_server::{
    Issuer, PublishedMetadata, ResourceServer, TokenRequirements, VerificationMethod,
    without_offline_access,
};
use super::{Fetch, proof_replay_cache, verified_tokens};

/// How long a verifier callback may take. A request waits for it, which must not take forever.
const VERIFIER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a verifier callback does not accept a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The token is invalid. The message is for the client's developer and must not contain secrets.
    #[error("the token is not accepted: {0}")]
    Invalid(String),
    /// The token cannot be verified at the moment. The message is for the log.
    #[error("the token can't be checked: {0}")]
    Unavailable(String),
}

/// A callback that verifies tokens.
pub(super) type Verifier =
    Arc<dyn Fn(Secret) -> BoxFuture<'static, Result<Caller, VerifyError>> + Send + Sync>;

/// A callback that returns further scopes that granted ones imply.
pub(super) type ScopeExpander = Arc<dyn Fn(&Scopes) -> Scopes + Send + Sync>;

/// Builds a [`ResourceServer`]; see [`ResourceServer::builder`].
#[must_use]
pub struct ResourceServerBuilder {
    /// `None` if a verifier alone is given.
    pub(crate) resource: Option<String>,
    pub(crate) issuers: Vec<(Option<String>, Keys)>,
    pub(crate) introspection: Option<Introspection>,
    verifier: Option<Verifier>,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) audiences: Vec<String>,
    required: Scopes,
    /// A value given as a scope that is not a valid one.
    unusable: Option<String>,
    pub(crate) supported: Option<Scopes>,
    implies: BTreeMap<String, Scopes>,
    expand: Option<ScopeExpander>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) skew: Duration,
    pub(crate) demands_proof: bool,
    pub(crate) metadata_url: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) documentation: Option<String>,
    pub(crate) http: HttpSettings,
}

impl ResourceServerBuilder {
    pub(crate) fn new(resource: Option<String>) -> Self {
        Self {
            resource,
            issuers: Vec::new(),
            introspection: None,
            verifier: None,
            authorization_servers: Vec::new(),
            audiences: Vec::new(),
            required: Scopes::new(),
            unusable: None,
            supported: None,
            implies: BTreeMap::new(),
            expand: None,
            algorithms: vec![
                Algorithm::Rs256,
                Algorithm::Es256,
                Algorithm::Ps256,
                Algorithm::EdDsa,
            ],
            skew: Duration::from_secs(60),
            demands_proof: false,
            metadata_url: None,
            name: None,
            documentation: None,
            http: HttpSettings::default(),
        }
    }

    /// Accepts signed tokens of this authorization server, with the keys from its metadata. Can be called several
    /// times.
    ///
    /// With a single authorization server, and if the server supports 2025-03-26, clients of that revision can sign in
    /// too:
    /// `/.well-known/oauth-authorization-server`, `/authorize`, `/token` and `/register` at the resource's origin lead
    /// them to it
    /// (2025-03-26, `basic/authorization`, server metadata discovery). If the server is mounted under a prefix, route
    /// these paths to it unchanged.
    pub fn issuer(self, issuer: impl Into<String>) -> Self {
        self.issuer_with_keys(issuer, Keys::Discovered)
    }

    /// Accepts signed tokens of this authorization server, with these keys.
    pub fn issuer_with_keys(mut self, issuer: impl Into<String>, keys: Keys) -> Self {
        self.issuers.push((Some(issuer.into()), keys));
        self
    }

    /// Accepts tokens signed with these keys, whatever their issuer.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.issuers.push((None, keys));
        self
    }

    /// Verifies tokens that no issuer signed with a request to the authorization server (RFC 7662).
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Verifies every token with a callback, instead of all other means. For tokens of an authorization server, also name
    /// that ([`authorization_server`](Self::authorization_server)), and check the audience in the callback; scopes,
    /// expiry and the possession of a key that its result contains are still checked. A callback that takes longer than
    /// 30 seconds is dropped, as if the token could not be verified.
    ///
    /// ```
    /// use mcpline::auth::{Caller, ResourceServer, VerifyError};
    ///
    /// let auth = ResourceServer::builder("https://mcp.example.com/mcp")
    ///     .authorization_server("https://auth.example.com")
    ///     .verifier(|token| async move {
    ///         match token.expose() {
    ///             "wonderland" => Ok(Caller::new().with_subject("alice")),
    ///             _ => Err(VerifyError::Invalid("unknown token".into())),
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpline::Error>(())
    /// ```
    pub fn verifier<F, Fut>(mut self, verify: F) -> Self
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Caller, VerifyError>> + Send + 'static,
    {
        self.verifier = Some(Arc::new(move |token| {
            let verified = verify(token);
            Box::pin(async move {
                let late = || VerifyError::Unavailable("the verifier timed out after 30 s".into());
                let verified = tokio::time::timeout(VERIFIER_TIMEOUT, verified).await;
                verified.unwrap_or_else(|_| Err(late()))
            })
        }));
        self
    }

    /// Adds an authorization server to the metadata, beside the [`issuer`](Self::issuer)s, for tokens that are verified
    /// by other means. The metadata must contain at least one (every revision since 2025-06-18, `basic/authorization`,
    /// authorization server location); without any, a verifier's tokens are not OAuth's, and there is no metadata.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Accepts tokens for this audience. Default: the resource, whose URL clients request tokens for (RFC 8707); values
    /// set here replace it.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the scopes that every request needs. Tools, resources and prompts may need further ones
    /// ([`ToolOptions::scopes`](crate::server::ToolOptions::scopes)).
    pub fn required_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        match Scopes::checked(scopes) {
            Ok(scopes) => self.required = scopes,
            Err(text) => self.unusable = Some(text),
        }
        self
    }

    /// Sets the scopes in the metadata: those for basic use, not all that exist (2025-11-25, `basic/authorization`,
    /// scope selection strategy). Default: the scopes that every request needs.
    pub fn supported_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.supported = Some(scopes.into_iter().collect());
        self
    }

    /// Declares that a scope includes others (2026-07-28, `basic/authorization`, scope challenge handling). Scopes that
    /// those include count too.
    pub fn implies<S: AsRef<str>>(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = S>,
    ) -> Self {
        self.imply(scope.into(), &implied.into_iter().collect());
        self
    }

    pub(crate) fn imply(&mut self, scope: String, implied: &Scopes) {
        let known = self.implies.entry(scope).or_default();
        *known = known.union(implied);
    }

    /// Sets a callback that returns the further scopes that granted ones imply, if a table is not enough.
    pub fn expand(mut self, expand: impl Fn(&Scopes) -> Scopes + Send + Sync + 'static) -> Self {
        self.expand = Some(Arc::new(expand));
        self
    }

    /// Sets the accepted signature algorithms of tokens and proofs. Default: `RS256`, `ES256`, `PS256` and `EdDSA`.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Sets how much the clocks of issuers and clients may differ from this one. Default: 60 seconds.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// Accepts only tokens that are bound to a key, with a proof of its possession (RFC 9449). Without this, such
    /// tokens are accepted beside others, and always need their proof.
    pub fn demand_proof_of_possession(mut self) -> Self {
        self.demands_proof = true;
        self
    }

    /// Sets where clients find the metadata, if not at the path that RFC 9728 specifies for the resource: for a mount
    /// that cannot serve that path, and whose clients follow the challenge.
    pub fn metadata_url(mut self, url: impl Into<String>) -> Self {
        self.metadata_url = Some(url.into());
        self
    }

    /// Sets the resource's display name in the metadata.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URL of the documentation for developers in the metadata.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Sets how authorization servers are reached: proxy, certificates. Since you choose their URLs, they may have
    /// private addresses.
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.http = settings;
        self
    }

    /// Builds the resource server.
    ///
    /// # Errors
    ///
    /// If there is no way to verify tokens, or no authorization server; if a URL is invalid, or is neither `https` nor
    /// on this machine; if a required scope is invalid; if the resource has a fragment (2025-06-18,
    /// `basic/authorization`, canonical server URI).
    pub fn build(self) -> Result<ResourceServer, Error> {
        let fetch = fetch_with(self.http.clone());
        self.build_with(fetch)
    }

    pub(super) fn build_with(self, fetch: Fetch) -> Result<ResourceServer, Error> {
        if let Some(text) = &self.unusable {
            return Err(Error::usage(format!(
                "{text:?} can't be a scope: scopes are visible ASCII without quotes and backslashes"
            )));
        }
        let resource = self
            .resource
            .as_deref()
            .map(|text| url("resource", text))
            .transpose()?;
        if let Some(resource) = &resource
            && resource.has_fragment()
        {
            return Err(Error::usage(format!(
                "the resource {} must not have a fragment",
                resource.as_str()
            )));
        }
        let published = match self.needs_metadata() {
            false => None,
            true => {
                let resource = resource.as_ref().ok_or_else(|| {
                    Error::usage(
                        "`resource` is missing: name the resource, the URL by which clients reach this server",
                    )
                })?;
                Some(self.published(resource)?)
            }
        };
        // With several issuers a client's choice is unknown, and clients of 2025-03-26 have no proofs. Clients find an
        // issuer at our own origin by themselves; leading them there would make us fetch from and redirect to
        // ourselves.
        let endpoints = match (&published, &resource) {
            (Some(published), Some(resource)) if !self.demands_proof => {
                redirects(&published.document, resource, &fetch)?
            }
            _ => None,
        };
        let audiences = match self.audiences.is_empty() {
            true => self.resource.into_iter().collect(),
            false => self.audiences,
        };
        let named = self.issuers.iter().filter_map(|(issuer, _)| issuer.clone());
        let issuer_names: Vec<String> = match named.collect::<Vec<_>>() {
            none if none.is_empty() => self.authorization_servers.clone(),
            named => named,
        };
        let method = match (self.verifier, self.issuers.is_empty(), self.introspection) {
            (Some(verifier), true, None) => VerificationMethod::Verifier(verifier),
            (Some(_), ..) => {
                return Err(Error::usage(
                    "set either a verifier, or issuers, keys and introspection: a verifier checks every token",
                ));
            }
            (None, true, None) => {
                return Err(Error::usage(
                    "no token verification is configured: set an issuer, keys, an introspection endpoint or a verifier",
                ));
            }
            (None, _, introspection) => VerificationMethod::Issuers {
                signed: issuers(self.issuers, &fetch)?,
                opaque: introspection
                    .map(|how| {
                        url("introspection endpoint", how.endpoint())?;
                        Ok::<_, Error>(Box::new(Introspector::new(how, fetch.clone())))
                    })
                    .transpose()?,
            },
        };
        Ok(ResourceServer {
            resource,
            published,
            method,
            endpoints,
            policy: TokenRequirements {
                issuers: issuer_names,
                audiences,
                required: self.required,
                implies: self.implies,
                expand: self.expand,
                algorithms: self.algorithms,
                skew: self.skew.as_secs(),
                demands_proof: self.demands_proof,
            },
            remembered: Mutex::new(verified_tokens::VerifiedTokens::default()),
            refused_tokens: Mutex::default(),
            proofs: Mutex::new(proof_replay_cache::ProofReplayCache::default()),
        })
    }

    /// Whether metadata is published that names the authorization servers. With a verifier alone, there is none.
    fn needs_metadata(&self) -> bool {
        let is_told = self.metadata_url.is_some() || self.demands_proof;
        self.verifier.is_none() || !self.authorization_servers.is_empty() || is_told
    }

    fn published(&self, resource: &Url) -> Result<PublishedMetadata, Error> {
        let address = match &self.metadata_url {
            Some(url) => url.clone(),
            // There is always one.
            None => well_known::resource_metadata(resource).swap_remove(0),
        };
        Ok(PublishedMetadata {
            document: self.metadata(resource)?,
            path: url("metadata_url", &address)?.path().to_owned(),
            url: address,
        })
    }

    fn metadata(&self, resource: &Url) -> Result<ResourceMetadata, Error> {
        let issuers = self
            .issuers
            .iter()
            .filter_map(|(issuer, _)| issuer.as_ref());
        let mut servers: Vec<String> = Vec::new();
        for server in issuers.chain(&self.authorization_servers) {
            url("issuer", server)?;
            if !servers.contains(server) {
                servers.push(server.clone());
            }
        }
        if servers.is_empty() {
            return Err(Error::usage(
                "no authorization server is configured: set `issuer` or `authorization_server`",
            ));
        }
        let names = |scopes: &Scopes| -> Vec<String> {
            without_offline_access(scopes)
                .iter()
                .map(str::to_owned)
                .collect()
        };
        let algorithms = self.algorithms.iter().map(ToString::to_string).collect();
        let mut metadata = ResourceMetadata::new(resource.as_str(), servers);
        metadata.scopes_supported = match &self.supported {
            Some(scopes) => Some(names(scopes)),
            None => (!self.required.is_empty()).then(|| names(&self.required)),
        };
        metadata.bearer_methods_supported = Some(vec!["header".into()]);
        metadata.dpop_signing_alg_values_supported = Some(algorithms);
        metadata.dpop_bound_access_tokens_required = self.demands_proof.then_some(true);
        metadata.resource_name = self.name.clone();
        metadata.resource_documentation = self.documentation.clone();
        Ok(metadata)
    }
}

impl fmt::Debug for ResourceServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerBuilder")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

/// Returns what leads clients of 2025-03-26 to the authorization server, if there is one at another origin.
fn redirects(
    metadata: &ResourceMetadata,
    resource: &Url,
    fetch: &Fetch,
) -> Result<Option<AuthorizationServerRedirects>, Error> {
    let [issuer] = metadata.authorization_servers.as_slice() else {
        return Ok(None);
    };
    let issuer = url("issuer", issuer)?;
    let scopes = metadata.scopes_supported.as_deref();
    Ok((!resource.same_origin(&issuer))
        .then(|| AuthorizationServerRedirects::new(resource, scopes, issuer, fetch.clone())))
}

fn url(what: &'static str, text: &str) -> Result<Url, Error> {
    Url::secure(what, text).map_err(|error| Error::usage(error.to_string()))
}

fn issuers(issuers: Vec<(Option<String>, Keys)>, fetch: &Fetch) -> Result<Vec<Issuer>, Error> {
    let mut found = Vec::with_capacity(issuers.len());
    for (name, keys) in issuers {
        let issuer = name
            .as_deref()
            .map(|name| url("issuer", name))
            .transpose()?;
        match (&keys, &issuer) {
            (Keys::At(place), _) => {
                url("URL of keys", place)?;
            }
            (Keys::Discovered, None) => {
                return Err(Error::usage(
                    "no source of keys: set an issuer, whose metadata names them, or the keys or their URL",
                ));
            }
            _ => {}
        }
        found.push(Issuer {
            name: name.map(|name| vec![name]).unwrap_or_default(),
            keys: KeyCache::new(issuer, keys, fetch.clone()),
        });
    }
    Ok(found)
}

/// Fetches on the runtime that a request is served on, over connections that are kept.
fn fetch_with(settings: HttpSettings) -> Fetch {
    let kept: Arc<Mutex<Option<(runtime::Id, Fetcher)>>> = Arc::default();
    Arc::new(move |request| {
        let handle = Handle::current();
        let fetcher = {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            match &*kept {
                Some((id, fetcher)) if *id == handle.id() => Ok(fetcher.clone()),
                _ => Fetcher::new(&settings, handle.clone(), true).inspect(|fetcher| {
                    *kept = Some((handle.id(), fetcher.clone()));
                }),
            }
        };
        let url = request.url.clone();
        Box::pin(async move {
            let fetcher = fetcher.map_err(|error| AuthError::FetchFailed {
                url,
                reason: error.to_string(),
            })?;
            fetcher.fetch(request).await
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_verifier_that_never_answers_times_out() {
        let builder = ResourceServer::builder("https://mcp.example.com/mcp")
            .verifier(|_| std::future::pending::<Result<Caller, VerifyError>>());
        let verify = builder.verifier.expect("there is one");
        let verified = verify(Secret::from("a-token")).await;
        assert!(matches!(verified, Err(VerifyError::Unavailable(_))));
    }
}

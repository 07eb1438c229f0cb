//! The authorization flow: discovery, registration, user consent, and the token endpoint.

use mcpline_jose::SigningKey;
use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::clock;
use ring::rand::SystemRandom;

use crate::assertion::client_assertion;
use crate::authorize::{AuthorizationRequest, OFFLINE_ACCESS};
use crate::discovery::{Discovery, DiscoveryResult, DiscoveryStep};
use crate::dpop::{self, DpopProofClaims};
use crate::error_chain::with_sources;
use crate::fetch::{FetchRequest, FetchResponse};
use crate::metadata::ServerMetadata;
use crate::registration::{
    ClientAuth, ClientRegistration, DynamicRegistration, check_redirect_uri,
};
use crate::store::StoreError;
use crate::token::{Grant, IdentityAssertionRequest, TokenEndpoint, TokenType, Tokens, revocation};
use crate::user_agent::{UserAgent, UserAgentError};
use crate::{AuthError, Secret};

use super::credentials::Enterprise;
use super::oauth::{GrantKind, OAuthSettings};
use super::record::{Record, fresh_key};
use super::request_authorizer::RequestAuthorizer;

/// An authorization flow for one server.
pub(super) struct Flow<'f> {
    pub(super) oauth: &'f OAuthSettings,
    pub(super) server: &'f str,
    pub(super) authorizer: &'f RequestAuthorizer,
}

/// A token endpoint with the parameters of its requests.
struct TokenRequester<'a> {
    server: &'a ServerMetadata,
    registration: &'a ClientRegistration,
    resource: &'a str,
    requested: &'a Scopes,
    key: Option<&'a SigningKey>,
    /// Whether private addresses were allowed when the endpoint was discovered.
    trusted: bool,
}

impl Flow<'_> {
    async fn fetch(
        &self,
        request: FetchRequest,
        trusted: bool,
    ) -> Result<FetchResponse, AuthError> {
        let fetch = self.authorizer.fetcher(trusted).await?;
        fetch(request).await
    }

    /// Obtains new tokens. `before` is the previous record, `more` the scopes that its tokens lacked.
    pub(super) async fn authorize(
        &self,
        challenge: Option<&Challenge>,
        before: Option<&Record>,
        more: Option<&Scopes>,
    ) -> Result<Record, AuthError> {
        let discovered = self.discover(challenge, before).await?;
        let scopes = self.scopes(&discovered, challenge, before, more);
        let key = match self.oauth.dpop {
            true => Some(fresh_key()?),
            false => None,
        };
        let mut granting = GrantFlow {
            flow: self,
            discovered: &discovered,
            scopes: &scopes,
            key: key.as_deref(),
        };
        let (registration, tokens) = match &self.oauth.grant {
            GrantKind::User(Some(user_agent)) => {
                granting.obtain_with_user_consent(&**user_agent).await?
            }
            GrantKind::User(None) => {
                return Err(AuthError::Unattended(
                    "set one, or use a grant that needs no user".to_owned(),
                ));
            }
            GrantKind::Client => {
                granting
                    .obtain_with_credentials(&Grant::ClientCredentials(&scopes))
                    .await?
            }
            GrantKind::Assertion(source) => {
                let word = Secret::from(source(discovered.server.issuer.clone()).await?);
                granting.obtain_with_assertion(&word).await?
            }
            GrantKind::Enterprise(enterprise) => {
                let word = granting.identity(enterprise).await?;
                granting.obtain_with_assertion(&word).await?
            }
        };
        if self.oauth.dpop && tokens.token_type != TokenType::Dpop {
            return Err(AuthError::CredentialsUnusable(format!(
                "the setting `dpop` requires DPoP, but the authorization server {} did not bind the token to a key",
                discovered.server.issuer
            )));
        }
        Ok(Record {
            resource: discovered.resource,
            server: discovered.server,
            registration,
            tokens,
            requested: scopes,
            key,
            trusted: self.authorizer.may_name_private(),
        })
    }

    /// Refreshes tokens.
    pub(super) async fn refresh(&self, record: &Record) -> Result<Record, AuthError> {
        let token = record.tokens.refresh_token.as_ref();
        let token = token.ok_or_else(|| {
            AuthError::CredentialsUnusable("there is no refresh token".to_owned())
        })?;
        let registration = self.with_secret(&record.registration, &record.server);
        let requester = TokenRequester {
            server: &record.server,
            registration: &registration,
            resource: &record.resource,
            requested: &record.requested,
            key: record.key.as_deref(),
            trusted: record.trusted,
        };
        let tokens = self
            .ask(&requester, &Grant::Refresh(token), Some(&record.tokens))
            .await?;
        Ok(Record {
            tokens,
            ..record.clone()
        })
    }

    /// Adds the configured client secret, which the store does not hold.
    fn with_secret(
        &self,
        registration: &ClientRegistration,
        server: &ServerMetadata,
    ) -> ClientRegistration {
        let own = self.oauth.credentials_of(&registration.issuer);
        match own.filter(|own| own.client_id == registration.client_id && !registration.dynamic) {
            Some(own) => own.registration(server),
            None => registration.clone(),
        }
    }

    async fn discover(
        &self,
        challenge: Option<&Challenge>,
        before: Option<&Record>,
    ) -> Result<DiscoveryResult, AuthError> {
        let known = self
            .oauth
            .credentials
            .iter()
            .filter_map(|own| own.issuer.clone());
        let preferred = known
            .chain(before.map(|record| record.server.issuer.clone()))
            .collect();
        let (mut discovery, mut step) = Discovery::start(self.server, challenge, preferred);
        loop {
            step = match step {
                DiscoveryStep::Fetch(request) => {
                    discovery.fetched(self.fetch(request, false).await)
                }
                DiscoveryStep::Found(discovered) => return Ok(*discovered),
                DiscoveryStep::Failed(error) => return Err(error),
            };
        }
    }

    /// Selects the scopes to request (2025-11-25, `basic/authorization`, scope selection strategy and step-up).
    fn scopes(
        &self,
        discovered: &DiscoveryResult,
        challenge: Option<&Challenge>,
        before: Option<&Record>,
        more: Option<&Scopes>,
    ) -> Scopes {
        let demanded = challenge
            .and_then(|challenge| challenge.get("scope"))
            .map(Scopes::parse);
        let basic = || {
            discovered
                .resource_metadata
                .as_ref()
                .and_then(|metadata| metadata.scopes())
        };
        let mut scopes = match more {
            Some(more) => more.clone(),
            None => demanded.or_else(basic).unwrap_or_default(),
        };
        scopes = scopes.union(&self.oauth.scopes);
        // Scopes that were requested from another issuer don't apply to this one.
        if let Some(before) =
            before.filter(|before| before.server.issuer == discovered.server.issuer)
        {
            scopes = before.requested.union(&scopes);
        }
        let for_user = matches!(self.oauth.grant, GrantKind::User(_));
        // On its own it would replace the scopes that a server grants by default.
        if for_user && !scopes.is_empty() && discovered.server.offers_scope(OFFLINE_ACCESS) {
            scopes.insert(OFFLINE_ACCESS);
        }
        scopes
    }

    /// Sends a token request, and repeats it once if the server requires a nonce (RFC 9449, section 8).
    async fn ask(
        &self,
        requester: &TokenRequester<'_>,
        grant: &Grant<'_>,
        before: Option<&Tokens>,
    ) -> Result<Tokens, AuthError> {
        let endpoint =
            TokenEndpoint::new(requester.server, requester.registration, requester.resource)?;
        let request = self.token_request(requester, &endpoint, grant, None)?;
        let mut response = self.fetch(request, requester.trusted).await?;
        if let Some(nonce) = dpop::demanded_nonce(&response).filter(|_| requester.key.is_some()) {
            let request = self.token_request(requester, &endpoint, grant, Some(nonce))?;
            response = self.fetch(request, requester.trusted).await?;
        }
        endpoint.read_response(&response, requester.requested, before, clock::unix_now())
    }

    fn token_request(
        &self,
        requester: &TokenRequester<'_>,
        endpoint: &TokenEndpoint<'_>,
        grant: &Grant<'_>,
        nonce: Option<&str>,
    ) -> Result<FetchRequest, AuthError> {
        let (entropy, now) = (SystemRandom::new(), clock::unix_now());
        let assertion = self.assertion(requester.registration)?;
        let request = endpoint.request(grant, assertion.as_deref());
        let Some(key) = requester.key else {
            return Ok(request);
        };
        let proof = DpopProofClaims {
            method: "POST",
            url: endpoint.url(),
            nonce,
            token: None,
        };
        let proof = proof.sign(key, now, clock::random(), &entropy)?;
        Ok(request.with(dpop::HEADER, proof))
    }

    /// Returns a client assertion if the client authenticates with its key.
    fn assertion(&self, registration: &ClientRegistration) -> Result<Option<String>, AuthError> {
        if registration.auth != ClientAuth::PrivateKeyJwt {
            return Ok(None);
        }
        let own = self.oauth.credentials_of(&registration.issuer);
        let key = own.and_then(|own| own.key.as_ref()).ok_or_else(|| {
            AuthError::CredentialsUnusable(
                "`credentials` have no private key, but the client authenticates with `private_key_jwt`"
                    .to_owned(),
            )
        })?;
        let (now, entropy) = (clock::unix_now(), SystemRandom::new());
        let (client_id, issuer) = (&registration.client_id, &registration.issuer);
        let id = key.id.as_deref();
        client_assertion(
            &key.key,
            id,
            client_id,
            issuer,
            now,
            clock::random(),
            &entropy,
        )
        .map(Some)
    }

    /// Revokes tokens, if the authorization server supports it (RFC 7009).
    pub(super) async fn revoke(&self, record: &Record) -> Result<(), AuthError> {
        let registration = self.with_secret(&record.registration, &record.server);
        let assertion = self.assertion(&registration)?;
        let request = revocation(
            &record.server,
            &registration,
            &record.tokens,
            assertion.as_deref(),
        );
        let Some(request) = request else {
            return Ok(());
        };
        let url = request.url.clone();
        let response = self.fetch(request, record.trusted).await?;
        match response.is_success() {
            true => Ok(()),
            false => Err(AuthError::InvalidResponse {
                url,
                reason: format!("HTTP status {} to a token revocation", response.status),
            }),
        }
    }

    // Token store

    /// Locks the tokens, so that no one else refreshes them at the same time.
    pub(super) async fn lock(&self) -> Result<Box<dyn Send>, AuthError> {
        let key = self.oauth.token_key(self.server);
        self.oauth.store.lock(&key).await.map_err(stored)
    }

    pub(super) async fn load(&self) -> Result<Option<Record>, AuthError> {
        let key = self.oauth.token_key(self.server);
        let Some(bytes) = self.load_undamaged(&key).await? else {
            return Ok(None);
        };
        let record = Record::from_bytes(&bytes);
        if record.is_none() {
            tracing::warn!(
                "ignoring the stored tokens for {}: cannot decode them; authorizing again",
                self.server
            );
        }
        // Without the configured credentials they can't be refreshed.
        Ok(record.filter(|record| self.is_ours(&record.registration)))
    }

    /// Returns the stored value of a key. A damaged value counts as missing: it can't be repaired and will be replaced.
    async fn load_undamaged(&self, key: &str) -> Result<Option<Vec<u8>>, AuthError> {
        match self.oauth.store.load(key).await {
            Err(StoreError::Damaged(what)) => {
                tracing::warn!(
                    "ignoring a damaged entry of the token store ({what}); it is replaced at the next save"
                );
                Ok(None)
            }
            kept => kept.map_err(stored),
        }
    }

    fn is_ours(&self, registration: &ClientRegistration) -> bool {
        let own = self.oauth.credentials_of(&registration.issuer);
        match own {
            Some(own) => own.client_id == registration.client_id,
            None => {
                registration.dynamic
                    || self.oauth.metadata_url.as_ref() == Some(&registration.client_id)
            }
        }
    }

    /// Saves a record and returns whether that succeeded. An unsaved record stays in use until the process ends.
    pub(super) async fn save(&self, record: &Record) -> bool {
        let key = self.oauth.token_key(self.server);
        let saved = self.oauth.store.save(&key, &record.to_bytes()).await;
        if let Err(error) = &saved {
            tracing::warn!(
                error = with_sources(error),
                "cannot save tokens in the store: the client must be authorized again after a restart"
            );
        }
        saved.is_ok()
    }

    pub(super) async fn forget(&self) {
        let key = self.oauth.token_key(self.server);
        if let Err(error) = self.oauth.store.remove(&key).await {
            tracing::warn!(
                error = with_sources(&error),
                "cannot remove tokens that are no longer valid from the token store"
            );
        }
    }

    pub(super) async fn forget_registration(&self, issuer: &str) {
        let key = self.oauth.registration_key(issuer);
        if let Err(error) = self.oauth.store.remove(&key).await {
            tracing::warn!(
                error = with_sources(&error),
                "cannot remove a client registration that the authorization server rejected from the token store"
            );
        }
    }

    async fn registration(&self, issuer: &str) -> Result<Option<ClientRegistration>, AuthError> {
        let key = self.oauth.registration_key(issuer);
        let bytes = self.load_undamaged(&key).await?;
        let kept =
            bytes.and_then(|bytes| serde_json::from_slice::<ClientRegistration>(&bytes).ok());
        let good = |kept: &ClientRegistration| {
            kept.issuer == issuer && !kept.has_lapsed(clock::unix_now())
        };
        Ok(kept.filter(good))
    }

    async fn save_registration(&self, registration: &ClientRegistration) {
        let key = self.oauth.registration_key(&registration.issuer);
        let bytes = serde_json::to_vec(registration).unwrap_or_default();
        if let Err(error) = self.oauth.store.save(&key, &bytes).await {
            tracing::warn!(
                error = with_sources(&error),
                "cannot save the client registration in the store: the client registers again after a restart"
            );
        }
    }
}

/// Obtains tokens from a discovered server.
struct GrantFlow<'g, 'f> {
    flow: &'g Flow<'f>,
    discovered: &'g DiscoveryResult,
    scopes: &'g Scopes,
    key: Option<&'g SigningKey>,
}

type GrantResult = Result<(ClientRegistration, Tokens), AuthError>;

impl GrantFlow<'_, '_> {
    /// Obtains tokens with the user's consent.
    async fn obtain_with_user_consent(&mut self, user_agent: &dyn UserAgent) -> GrantResult {
        if self.flow.oauth.require_pkce {
            self.discovered.check_pkce()?;
        }
        let server = &self.discovered.server;
        let known = self.configured_registration()?;
        let kept = match known {
            Some(_) => None,
            None => self.flow.registration(&server.issuer).await?,
        };
        let wanted = kept.as_ref().and_then(|kept| kept.redirect_uri.as_deref());
        let sign_in = user_agent.prepare(wanted).await.map_err(user)?;
        let redirect_uri = sign_in.redirect_uri().to_owned();
        // The user agent may be implemented by the host.
        check_redirect_uri(&redirect_uri)?;
        let fits = |kept: &ClientRegistration| {
            kept.redirect_uri.as_deref() == Some(&redirect_uri) && kept.covers(self.scopes)
        };
        let registration = match known.or(kept.filter(fits)) {
            Some(registration) => registration,
            None => self.register(&redirect_uri).await?,
        };
        let entropy = clock::random();
        let resource = &self.discovered.resource;
        let authorizing = AuthorizationRequest::start(
            server,
            &registration,
            &redirect_uri,
            resource,
            self.scopes,
            entropy,
        )?;
        let redirected = sign_in
            .open(authorizing.url().to_owned())
            .await
            .map_err(user)?;
        let granted = match authorizing.redirected(&redirected.url) {
            Ok(code) => self.ask(&registration, &Grant::Code(&code)).await,
            Err(error) => Err(error),
        };
        match granted {
            Ok(tokens) => {
                redirected.outcome.accept();
                Ok((registration, tokens))
            }
            Err(error) => {
                redirected.outcome.refuse(&error.to_string());
                if matches!(&error, AuthError::AuthorizationServerError { error, .. } if error == "invalid_client")
                {
                    self.flow.forget_registration(&server.issuer).await;
                }
                Err(error)
            }
        }
    }

    /// Obtains tokens on the client's own behalf.
    async fn obtain_with_credentials(&self, grant: &Grant<'_>) -> GrantResult {
        let registration = self
            .configured_registration()?
            .ok_or_else(|| self.unknown("set `credentials` for it"))?;
        let tokens = self.ask(&registration, grant).await?;
        Ok((registration, tokens))
    }

    /// Obtains tokens with a signed assertion in place of consent.
    async fn obtain_with_assertion(&self, word: &Secret) -> GrantResult {
        let grant = Grant::JwtBearer {
            assertion: word,
            scopes: self.scopes,
        };
        self.obtain_with_credentials(&grant).await
    }

    /// Obtains an identity assertion from an enterprise's identity provider (enterprise-managed authorization, section
    /// 4).
    async fn identity(&self, enterprise: &Enterprise) -> Result<Secret, AuthError> {
        let server = &self.discovered.server;
        let id_token =
            Secret::from((enterprise.id_token)(enterprise.token_endpoint.clone()).await?);
        let client = enterprise.registration();
        let assertion = IdentityAssertionRequest {
            token_endpoint: &enterprise.token_endpoint,
            client: &client,
            id_token: &id_token,
        };
        let request = assertion.request(&server.issuer, &self.discovered.resource, self.scopes);
        assertion.read_response(&self.flow.fetch(request, false).await?)
    }

    /// The client's existing identity at this server: its credentials, or the URL of its metadata.
    fn configured_registration(&self) -> Result<Option<ClientRegistration>, AuthError> {
        let (oauth, server) = (self.flow.oauth, &self.discovered.server);
        if let Some(own) = oauth.credentials_of(&server.issuer) {
            return Ok(Some(own.registration(server)));
        }
        if let (Some(url), Some(true)) = (
            &oauth.metadata_url,
            server.client_id_metadata_document_supported,
        ) {
            let registration =
                ClientRegistration::known(&server.issuer, url, None, ClientAuth::None);
            return Ok(Some(registration));
        }
        match &oauth.credentials[..] {
            // Credentials of another issuer must not be sent here, and registering silently would hide the mistake.
            [own, ..] if server.registration_endpoint.is_none() => {
                Err(AuthError::CredentialsIssuerMismatch {
                    registered: own.issuer.clone().unwrap_or_default(),
                    issuer: server.issuer.clone(),
                })
            }
            _ => Ok(None),
        }
    }

    async fn register(&self, redirect_uri: &str) -> Result<ClientRegistration, AuthError> {
        let (oauth, server) = (self.flow.oauth, &self.discovered.server);
        // The registration has to include scopes that a later step-up may request.
        let basic = self
            .discovered
            .resource_metadata
            .as_ref()
            .and_then(|metadata| metadata.scopes());
        let scopes = self.scopes.union(&basic.unwrap_or_default());
        let register = async |scopes: &Scopes| {
            let registering =
                DynamicRegistration::start(server, &oauth.client, redirect_uri, scopes);
            let (registering, request) = registering.ok_or_else(|| {
                self.unknown(
                    "it has no registration endpoint: register the client there, and set `credentials`",
                )
            })?;
            registering.read_response(&self.flow.fetch(request, false).await?)
        };
        let mut registered = register(&scopes).await;
        // Some servers accept only their own scopes here, but still grant the scopes of resources.
        if !scopes.is_empty() && registered.as_ref().is_err_and(is_about_metadata) {
            registered = register(&Scopes::new()).await;
        }
        let registration = registered?;
        self.flow.save_registration(&registration).await;
        Ok(registration)
    }

    async fn ask(
        &self,
        registration: &ClientRegistration,
        grant: &Grant<'_>,
    ) -> Result<Tokens, AuthError> {
        let requester = TokenRequester {
            server: &self.discovered.server,
            registration,
            resource: &self.discovered.resource,
            requested: self.scopes,
            key: self.key,
            trusted: false,
        };
        self.flow.ask(&requester, grant, None).await
    }

    fn unknown(&self, reason: &str) -> AuthError {
        AuthError::NotRegistered {
            issuer: self.discovered.server.issuer.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// Whether a registration was refused because of its metadata (RFC 7591, section 3.2.2) other than the redirect URI.
fn is_about_metadata(error: &AuthError) -> bool {
    let codes = ["invalid_client_metadata", "invalid_scope"];
    matches!(error, AuthError::AuthorizationServerError { error, .. } if codes.contains(&error.as_str()))
}

fn user(error: UserAgentError) -> AuthError {
    match error {
        UserAgentError::Unattended(why) => AuthError::Unattended(why.to_owned()),
        error => AuthError::AuthorizationIncomplete(with_sources(&error)),
    }
}

fn stored(error: StoreError) -> AuthError {
    AuthError::TokenStoreFailed(with_sources(&error))
}

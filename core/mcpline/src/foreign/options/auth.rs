//! Whose tokens a server accepts.

use std::collections::HashMap;
use std::fmt;

use mcpline_protocol::auth::jose::{Algorithm, JwkSet};
use mcpline_protocol::vocabulary::JsonObject;
use serde::Deserialize;

use crate::auth::{Authorized, Introspection, Keys, ResourceServer, ResourceServerBuilder};
use crate::client::{HttpSettings, Proxy};
use crate::error::Error;

use super::seconds;

/// A [`ResourceServer`] as foreign code gives it. The resource has to be given; whatever else is absent keeps the default.
///
/// The keys of `issuers` are discovered, unless `jwks_url` or `jwks` says which they are; without issuers these alone say
/// whose tokens are good. With `verifies` a callback of the caller's checks tokens instead.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceServerOptions {
    resource: String,
    #[serde(default)]
    issuers: Vec<String>,
    jwks_url: Option<String>,
    jwks: Option<JsonObject>,
    introspection: Option<IntrospectionOptions>,
    #[serde(default)]
    verifies: bool,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    required_scopes: Vec<String>,
    supported_scopes: Option<Vec<String>>,
    #[serde(default)]
    implied_scopes: HashMap<String, Vec<String>>,
    algorithms: Option<Vec<String>>,
    clock_skew: Option<f64>,
    #[serde(default)]
    demand_proof_of_possession: bool,
    metadata_url: Option<String>,
    name: Option<String>,
    documentation: Option<String>,
    proxy: Option<String>,
    tls_roots: Option<String>,
    #[serde(default)]
    only_these_roots: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IntrospectionOptions {
    endpoint: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    token: Option<String>,
    keep_for: Option<f64>,
    #[serde(default)]
    knows_audience: bool,
}

/// Without what may be secret.
impl fmt::Debug for ResourceServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerOptions")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl ResourceServerOptions {
    /// Whether the caller adds a [verifier](ResourceServerBuilder::verifier) before the server is built.
    pub fn verifies(&self) -> bool {
        self.verifies
    }

    /// A builder of all that was given.
    ///
    /// # Errors
    ///
    /// Misuse: a value can't be.
    pub fn builder(self) -> Result<ResourceServerBuilder, Error> {
        let keys = match (self.jwks_url, self.jwks) {
            (Some(_), Some(_)) => {
                return Err(Error::misuse(
                    "jwks_url and jwks are two answers to one question",
                ));
            }
            (Some(url), None) => Keys::At(url),
            (None, Some(set)) => {
                let set = serde_json::Value::Object(set).to_string();
                let set = JwkSet::parse(set);
                Keys::These(set.map_err(|error| Error::misuse(format!("jwks: {error}")))?)
            }
            (None, None) => Keys::Discovered,
        };
        let mut builder = ResourceServer::builder(self.resource)
            .required_scopes(self.required_scopes)
            .http(HttpSettings {
                proxy: match self.proxy.as_deref() {
                    None => Proxy::Environment,
                    Some("direct") => Proxy::Direct,
                    Some(url) => Proxy::Url(url.to_owned()),
                },
                tls_roots: self.tls_roots.map(String::into_bytes).unwrap_or_default(),
                only_these_roots: self.only_these_roots,
                ..HttpSettings::default()
            });
        if self.issuers.is_empty() && !matches!(keys, Keys::Discovered) {
            builder = builder.keys(keys.clone());
        }
        for issuer in self.issuers {
            builder = builder.issuer_with_keys(issuer, keys.clone());
        }
        for server in self.authorization_servers {
            builder = builder.authorization_server(server);
        }
        for audience in self.audiences {
            builder = builder.audience(audience);
        }
        for (scope, implied) in self.implied_scopes {
            builder = builder.implies(scope, implied);
        }
        if let Some(introspection) = self.introspection {
            builder = builder.introspection(introspection.read()?);
        }
        if let Some(scopes) = self.supported_scopes {
            builder = builder.supported_scopes(scopes);
        }
        if let Some(names) = self.algorithms {
            let algorithms = names.iter().map(|name| {
                let known = name.parse::<Algorithm>();
                known.map_err(|error| Error::misuse(format!("{name:?} is {error}")))
            });
            builder = builder.algorithms(algorithms.collect::<Result<Vec<_>, _>>()?);
        }
        if let Some(skew) = self.clock_skew {
            builder = builder.clock_skew(seconds(skew)?);
        }
        if self.demand_proof_of_possession {
            builder = builder.demand_proof_of_possession();
        }
        if let Some(url) = self.metadata_url {
            builder = builder.metadata_url(url);
        }
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(url) = self.documentation {
            builder = builder.documentation(url);
        }
        Ok(builder)
    }
}

impl IntrospectionOptions {
    fn read(self) -> Result<Introspection, Error> {
        let mut introspection = Introspection::new(self.endpoint);
        introspection = match (self.client_id, self.client_secret, self.token) {
            (Some(id), Some(secret), None) => introspection.with_client(id, secret),
            (None, None, Some(token)) => introspection.with_token(token),
            (None, None, None) => introspection,
            _ => {
                return Err(Error::misuse(
                    "introspection is asked as a client, with client_id and client_secret, or with a token",
                ));
            }
        };
        if let Some(time) = self.keep_for {
            introspection = introspection.keep_for(seconds(time)?);
        }
        if self.knows_audience {
            introspection = introspection.knows_audience();
        }
        Ok(introspection)
    }
}

/// An [`Authorized`] as a foreign verifier gives it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizedOptions {
    issuer: Option<String>,
    subject: Option<String>,
    client_id: Option<String>,
    scopes: Vec<String>,
    expires_at: Option<u64>,
    key_thumbprint: Option<String>,
    claims: JsonObject,
}

impl AuthorizedOptions {
    /// The caller.
    pub fn authorized(self) -> Authorized {
        let mut authorized = Authorized::new()
            .with_scopes(self.scopes)
            .with_claims(self.claims);
        if let Some(issuer) = self.issuer {
            authorized = authorized.with_issuer(issuer);
        }
        if let Some(subject) = self.subject {
            authorized = authorized.with_subject(subject);
        }
        if let Some(client_id) = self.client_id {
            authorized = authorized.with_client_id(client_id);
        }
        if let Some(expiry) = self.expires_at {
            authorized = authorized.with_expiry(expiry);
        }
        if let Some(thumbprint) = self.key_thumbprint {
            authorized = authorized.with_key_thumbprint(thumbprint);
        }
        authorized
    }
}

//! Options of a resource server: which tokens it accepts.

use std::collections::HashMap;
use std::fmt;
use std::mem::take;

use std::sync::Arc;

use mcpline_jose::{Algorithm, JwkSet};
use mcpline_protocol::vocabulary::JsonObject;

use crate::auth::{Introspection, Keys, ResourceServerBuilder};
use crate::error::Error;
use crate::http_client::{HttpSettings, Proxy};
use crate::transport::http::HttpOptions;

use super::http::HttpServingOptions;
use super::options_macro::options;
use super::{seconds, set_seconds};

options! {
    /// Options of a [`ResourceServer`](crate::auth::ResourceServer). `resource` is required unless `verifies` is set;
    /// other absent members keep their defaults.
    ///
    /// The keys of `issuers` are discovered, unless `jwks_url` or `jwks` provides them; without issuers these alone
    /// determine the accepted tokens. With `verifies` a callback verifies tokens instead.
    #[derive(Default)]
    pub struct ResourceServerOptions {
        resource: Option<String>,
        issuers: Vec<String>,
        jwks_url: Option<String>,
        jwks: Option<JsonObject>,
        introspection: Option<IntrospectionOptions>,
        verifies: bool,
        authorization_servers: Vec<String>,
        audiences: Vec<String>,
        required_scopes: Vec<String>,
        supported_scopes: Option<Vec<String>>,
        implied_scopes: HashMap<String, Vec<String>>,
        algorithms: Option<Vec<String>>,
        clock_skew: Option<f64>,
        demand_proof_of_possession: bool,
        metadata_url: Option<String>,
        name: Option<String>,
        documentation: Option<String>,
        proxy: Option<String>,
        tls_roots: Option<String>,
        only_tls_roots: bool,
    }
}

options! {
    #[derive(Default)]
    struct IntrospectionOptions {
        endpoint: String,
        client_id: Option<String>,
        client_secret: Option<String>,
        token: Option<String>,
        keep_for: Option<f64>,
        knows_audience: bool,
    }
    needs endpoint;
}

/// Omits what may be secret.
impl fmt::Debug for ResourceServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerOptions")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl ResourceServerOptions {
    /// Returns whether the caller has to add a [verifier](ResourceServerBuilder::verifier) before the server is built.
    pub fn verifies(&self) -> bool {
        self.verifies
    }

    /// Returns a builder with these options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn builder(mut self) -> Result<ResourceServerBuilder, Error> {
        let keys = self.keys()?;
        let mut builder = ResourceServerBuilder::new(self.resource.take())
            .required_scopes(take(&mut self.required_scopes));
        builder.http = HttpSettings {
            proxy: match self.proxy.as_deref() {
                None => Proxy::Environment,
                Some("direct") => Proxy::Direct,
                Some(url) => Proxy::Url(url.to_owned()),
            },
            tls_roots: self
                .tls_roots
                .take()
                .map(String::into_bytes)
                .unwrap_or_default(),
            only_tls_roots: self.only_tls_roots,
            ..HttpSettings::default()
        };
        if self.issuers.is_empty() && !matches!(keys, Keys::Discovered) {
            builder.issuers.push((None, keys.clone()));
        }
        for issuer in take(&mut self.issuers) {
            builder.issuers.push((Some(issuer), keys.clone()));
        }
        builder.authorization_servers = take(&mut self.authorization_servers);
        builder.audiences = take(&mut self.audiences);
        for (scope, implied) in take(&mut self.implied_scopes) {
            builder.imply(scope, &implied.iter().collect());
        }
        if let Some(introspection) = self.introspection.take() {
            builder.introspection = Some(introspection.read()?);
        }
        if let Some(scopes) = self.supported_scopes.take() {
            builder.supported = Some(scopes.iter().collect());
        }
        if let Some(names) = self.algorithms.take() {
            let algorithms = names.iter().map(|name| {
                let known = name.parse::<Algorithm>();
                known.map_err(|error| Error::usage(format!("`algorithms`: {name:?}: {error}")))
            });
            builder.algorithms = algorithms.collect::<Result<_, _>>()?;
        }
        set_seconds(&mut builder.skew, self.clock_skew)?;
        builder.demands_proof = self.demand_proof_of_possession;
        builder.metadata_url = self.metadata_url.take();
        builder.name = self.name.take();
        builder.documentation = self.documentation.take();
        Ok(builder)
    }

    fn keys(&mut self) -> Result<Keys, Error> {
        Ok(match (self.jwks_url.take(), self.jwks.take()) {
            (Some(_), Some(_)) => {
                return Err(Error::usage("set either `jwks_url` or `jwks`, not both"));
            }
            (Some(url), None) => Keys::At(url),
            (None, Some(set)) => {
                let set = serde_json::Value::Object(set).to_string();
                let set = JwkSet::parse(set);
                Keys::These(set.map_err(|error| Error::usage(format!("jwks: {error}")))?)
            }
            (None, None) => Keys::Discovered,
        })
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
                return Err(Error::usage(
                    "`introspection`: set `client_id` and `client_secret`, or only `token`, or none of them",
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

impl HttpServingOptions {
    /// Converts into the core's options, for servers without a verifier callback.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn options(self) -> Result<HttpOptions, Error> {
        self.options_with(|_| {
            Err(Error::usage(
                "`verifies` is set, but the server has no callback that verifies tokens",
            ))
        })
    }

    /// Converts into the core's options. `verify` adds the verifier callback, if the options have one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn options_with(
        mut self,
        verify: impl FnOnce(ResourceServerBuilder) -> Result<ResourceServerBuilder, Error>,
    ) -> Result<HttpOptions, Error> {
        let Some(auth) = self.auth.take() else {
            return self.unauthorized();
        };
        let verifies = auth.verifies();
        let mut builder = auth.builder()?;
        if verifies {
            builder = verify(builder)?;
        }
        let mut options = self.unauthorized()?;
        options.auth = Some(Arc::new(builder.build()?));
        Ok(options)
    }
}

//! Settings of an imported API, with their defaults and the reasons for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpline_openapi::{Credentials, ImportOptions};

use crate::http_client::HttpSettings;

use super::credential_provider::CredentialProvider;
use super::http_client::ApiHttpClient;

/// How the operations of an API become tools and resources, and how requests are sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenApiSettings {
    /// The URL that paths of the document are appended to. Default: `None`, the first server in the document. Servers in the
    /// document are reached at public addresses only; this one may have any address.
    pub base_url: Option<String>,
    /// Headers of every request. Tools have no arguments for parameters with these names. Default: none.
    pub headers: Vec<(String, String)>,
    /// Credentials for the security schemes of the document. Arguments never contain them. Default: none.
    pub credentials: Credentials,
    /// What provides credentials for each request, by the names of security schemes. They take the place of
    /// [`credentials`](Self::credentials). Default: none.
    pub credential_providers: BTreeMap<String, Arc<dyn CredentialProvider>>,
    /// What sends the requests. Default: `None`, the built-in HTTP client. Another one needs a base URL, or
    /// [`allow_private_addresses`](Self::allow_private_addresses), because the addresses that it connects to are not checked.
    pub http_client: Option<Arc<dyn ApiHttpClient>>,
    /// Names of tools and resources, by operation id, or by method and path (`GET /pets/{id}`). Default: the names of
    /// [`Operation::name`](super::Operation::name).
    pub names: BTreeMap<String, String>,
    /// The scheme of the URIs of resources. Default: `api`, as in `api://pets/{id}`.
    pub resource_scheme: String,
    /// How long a request may take, from the first credential that is provided to the end of the response. Default: 30 seconds,
    /// because a model and its user wait for it.
    pub timeout: Duration,
    /// The largest response, in bytes. A longer one makes the call fail. Default: 1 MiB; more than that is no use to a model.
    pub max_response_bytes: usize,
    /// The size of each schema of arguments or results, in bytes of JSON. Parts of larger ones are replaced by their types,
    /// the deepest first, and descriptions are cut. All schemas of an import together have at most 64 MiB. Default: 32 KiB.
    pub max_schema_bytes: usize,
    /// Whether tools have output schemas. Default: `true`. A response that does not match its schema is an error for the
    /// model, with the response in it.
    pub output_schemas: bool,
    /// Whether servers that the document names may have private addresses, or be reached through a proxy, which resolves names
    /// to addresses that are not known here. Default: `false`.
    pub allow_private_addresses: bool,
    /// The proxy, certificates, time to connect and redirects of the built-in HTTP client; other settings do not apply. Redirects to other origins are
    /// never followed, except from `http` at port 80 to `https` at port 443 of the same host.
    pub http: HttpSettings,
}

impl Default for OpenApiSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            headers: Vec::new(),
            credentials: Credentials::default(),
            credential_providers: BTreeMap::new(),
            http_client: None,
            names: BTreeMap::new(),
            resource_scheme: "api".to_owned(),
            timeout: Duration::from_secs(30),
            max_response_bytes: 1024 * 1024,
            max_schema_bytes: ImportOptions::default().max_schema_bytes,
            output_schemas: true,
            allow_private_addresses: false,
            http: HttpSettings::default(),
        }
    }
}

/// Omits what may be secret: the values of headers.
impl fmt::Debug for OpenApiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("OpenApiSettings")
            .field("headers", &headers)
            .field("credentials", &self.credentials)
            .field("credential_providers", &self.credential_providers.keys())
            .field("has_http_client", &self.http_client.is_some())
            .field("names", &self.names)
            .field("resource_scheme", &self.resource_scheme)
            .field("timeout", &self.timeout)
            .field("max_response_bytes", &self.max_response_bytes)
            .field("max_schema_bytes", &self.max_schema_bytes)
            .field("output_schemas", &self.output_schemas)
            .field("allow_private_addresses", &self.allow_private_addresses)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

//! Selects operations, and adds them to a server.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpline_openapi::limits::{MAX_IMPORT_CONVERTED_BYTES, MAX_IMPORT_SCHEMA_BYTES};
use mcpline_openapi::{
    Credential, Document, DocumentError, ImportOptions, ImportedOperation, Method, Operation,
};
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::vocabulary::{Resource, ResourceTemplate, Tool, ToolAnnotations};

use crate::error::Error;
use crate::http_client::target::Target;
use crate::server::{Definitions, Handler, ResourceOptions, Server, ToolOptions};

use super::api_client::ApiClient;
use super::credential_provider::{CredentialProvider, CredentialSources};
use super::handlers::{self, Endpoint};
use super::http_client::ApiHttpClient;
use super::settings::OpenApiSettings;

/// The longest summary that becomes a title, in bytes. A longer one is a description.
const MAX_TITLE_BYTES: usize = 100;

/// What an operation becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportAs {
    /// A tool.
    Tool,
    /// A resource, or a resource template if it has parameters. Only `GET` operations without a body, whose required
    /// parameters are simple ones of the path or the query, can be resources.
    Resource,
    /// Nothing.
    Nothing,
}

type Select = Box<dyn Fn(&Operation) -> ImportAs + Send + Sync>;

/// The operations of an API, to be [added](Server::add) to a server as tools and resources.
///
/// Every operation becomes a tool, unless [`select`](Self::select) says otherwise. Its tags are those of the document, so
/// that [`Server::disable`] finds them. The annotations of tools follow from the HTTP method.
///
/// Nothing is fetched when a document is imported. Schemas in other documents are read if they are given
/// ([`Document::with_other`]).
#[must_use = "operations do nothing until they are added to a server (`Server::add`)"]
pub struct OpenApi {
    document: Document,
    settings: OpenApiSettings,
    select: Select,
}

impl OpenApi {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it is not an OpenAPI document of version 3 in JSON.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        Document::from_json(json).map(Self::new).map_err(usage)
    }

    /// Imports a document.
    pub fn new(document: Document) -> Self {
        Self {
            document,
            settings: OpenApiSettings::default(),
            select: Box::new(|_| ImportAs::Tool),
        }
    }

    /// Sets the URL that paths are appended to ([`OpenApiSettings::base_url`]).
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = Some(url.into());
        self
    }

    /// Adds a header to every request.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a credential for a security scheme of the document.
    pub fn with_credential(mut self, scheme: impl Into<String>, credential: Credential) -> Self {
        self.settings.credentials = self.settings.credentials.with(scheme, credential);
        self
    }

    /// Sets what provides the credential for a security scheme of the document, for each request: an async closure, or a
    /// [`CredentialProvider`]. It takes the place of a fixed credential.
    ///
    /// ```
    /// use mcpline::Context;
    /// use mcpline::openapi::{Credential, OpenApi};
    ///
    /// # async fn fresh_token() -> std::io::Result<String> { Ok(String::new()) }
    /// # fn import(document: &[u8]) -> Result<OpenApi, mcpline::Error> {
    /// let api = OpenApi::from_json(document)?
    ///     .with_credential_provider("token", |_: Context| async {
    ///         Ok(Credential::Secret(fresh_token().await?))
    ///     });
    /// # Ok(api)
    /// # }
    /// ```
    pub fn with_credential_provider(
        mut self,
        scheme: impl Into<String>,
        provider: impl CredentialProvider,
    ) -> Self {
        let providers = &mut self.settings.credential_providers;
        providers.insert(scheme.into(), Arc::new(provider));
        self
    }

    /// Sets the HTTP client that sends the requests, in place of the built-in one: an async closure, or an [`ApiHttpClient`].
    /// It needs a base URL. The timeout and the limit of the response apply to it; [`OpenApiSettings::http`] does not.
    pub fn with_http_client(mut self, client: impl ApiHttpClient) -> Self {
        self.settings.http_client = Some(Arc::new(client));
        self
    }

    /// Names the tool or resource of an operation. `operation` is its id, or its method and path (`GET /pets/{id}`).
    pub fn with_name(mut self, operation: impl Into<String>, name: impl Into<String>) -> Self {
        self.settings.names.insert(operation.into(), name.into());
        self
    }

    /// Changes the settings.
    pub fn with_settings(mut self, change: impl FnOnce(&mut OpenApiSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Decides what each operation becomes.
    pub fn select(
        mut self,
        select: impl Fn(&Operation) -> ImportAs + Send + Sync + 'static,
    ) -> Self {
        self.select = Box::new(select);
        self
    }

    /// Returns the operations of the document, in its order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the document is not valid.
    pub fn operations(&self) -> Result<Vec<Operation>, Error> {
        self.document.operations().map_err(usage)
    }

    /// Adds the selected operations to a server, all or none. Returns the names of tools, and the URIs or templates of
    /// resources.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a setting, a selected operation or a name is invalid, a name is taken,
    /// or the server of an operation is not known.
    pub fn add_to_server(self, server: &Server) -> Result<Vec<String>, Error> {
        let selected = self.operations()?.into_iter().map(|operation| {
            let import_as = (self.select)(&operation);
            (operation, import_as)
        });
        let selected: Vec<_> = selected
            .filter(|(_, import_as)| *import_as != ImportAs::Nothing)
            .collect();
        let features = self.features(&selected)?;
        let mut added: Vec<Feature> = Vec::new();
        for feature in features {
            if let Err(error) = feature.add(server) {
                for feature in added {
                    feature.remove(server);
                }
                return Err(error);
            }
            added.push(feature);
        }
        Ok(added
            .into_iter()
            .map(|feature| feature.key().to_owned())
            .collect())
    }

    fn features(&self, selected: &[(Operation, ImportAs)]) -> Result<Vec<Feature>, Error> {
        let settings = &self.settings;
        self.document
            .check_credentials(&settings.credentials)
            .map_err(usage)?;
        for scheme in settings.credential_providers.keys() {
            self.document.check_scheme(scheme).map_err(usage)?;
        }
        self.check_names(selected)?;
        let api = Arc::new(ApiClient::new(settings)?);
        let credentials = Arc::new(CredentialSources {
            fixed: settings.credentials.clone(),
            providers: settings.credential_providers.clone(),
        });
        let mut options = ImportOptions::default();
        options.max_schema_bytes = settings.max_schema_bytes;
        options.output_schemas = settings.output_schemas;
        options.own_headers = settings
            .headers
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(client) = &settings.http_client {
            options.own_headers.extend(client.header_names());
        }
        let mut servers = BTreeSet::new();
        let mut without_credentials = 0_usize;
        let mut features = Vec::with_capacity(selected.len());
        let mut sizes = SchemaSizes::default();
        for (operation, import_as) in selected {
            let mut imported = self.document.import(operation, &options).map_err(|error| {
                let name = &operation.name;
                Error::usage(format!(
                    "{error}. Correct it, or leave {name:?} out with `select`"
                ))
            })?;
            sizes.add(operation, &imported)?;
            if *import_as == ImportAs::Resource {
                imported.output_schema = None;
            }
            let server = self.server_of(operation, &imported)?;
            if servers.insert(server.clone()) {
                check_server(&server)?;
            }
            let used = imported.used_schemes(&|scheme| credentials.has(scheme));
            if imported.needs_credentials && used.is_empty() {
                without_credentials += 1;
            }
            let endpoint = Endpoint {
                operation: imported,
                server,
                api: api.clone(),
                credentials: credentials.clone(),
            };
            let name = self.name_of(operation);
            features.push(match import_as {
                ImportAs::Resource => {
                    Feature::resource(operation, name, endpoint, &settings.resource_scheme)?
                }
                _ => Feature::tool(operation, name, endpoint),
            });
        }
        // A client of the program's own may add credentials.
        if without_credentials > 0
            && settings.http_client.is_none()
            && !settings
                .headers
                .iter()
                .any(|(name, _)| is_authorization(name))
        {
            tracing::warn!(
                operations = without_credentials,
                "some operations need credentials: set `credentials` by the names of their security schemes"
            );
        }
        Ok(features)
    }

    fn name_of(&self, operation: &Operation) -> String {
        let names = &self.settings.names;
        let by_id = operation.id.as_ref().and_then(|id| names.get(id));
        let name = by_id.or_else(|| names.get(&method_and_path(operation)));
        name.unwrap_or(&operation.name).clone()
    }

    /// Refuses names for operations that do not exist or are not selected.
    fn check_names(&self, selected: &[(Operation, ImportAs)]) -> Result<(), Error> {
        let is_operation = |key: &String| {
            selected.iter().any(|(operation, _)| {
                operation.id.as_ref() == Some(key) || method_and_path(operation) == *key
            })
        };
        match self.settings.names.keys().find(|key| !is_operation(key)) {
            None => Ok(()),
            Some(key) => Err(Error::usage(format!(
                "`names`: no selected operation has the id, or the method and path, {key:?}"
            ))),
        }
    }

    fn server_of(
        &self,
        operation: &Operation,
        imported: &ImportedOperation,
    ) -> Result<String, Error> {
        if let Some(base_url) = &self.settings.base_url {
            return Ok(base_url.trim_end_matches('/').to_owned());
        }
        imported.server.clone().ok_or_else(|| {
            Error::usage(format!(
                "the document names no server for {}: set `base_url`",
                method_and_path(operation)
            ))
        })
    }
}

impl Definitions for OpenApi {
    fn add_to(self, server: &Server) -> Result<(), Error> {
        self.add_to_server(server).map(drop)
    }
}

impl std::fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenApi")
            .field("title", &self.document.title())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The sizes of the schemas of one import.
#[derive(Default)]
struct SchemaSizes {
    bytes: usize,
    converted_bytes: usize,
}

impl SchemaSizes {
    /// Adds those of an operation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): all together are too large.
    fn add(&mut self, operation: &Operation, imported: &ImportedOperation) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(imported.schema_bytes);
        self.converted_bytes = self
            .converted_bytes
            .saturating_add(imported.converted_bytes);
        let (limit, name) = if self.bytes > MAX_IMPORT_SCHEMA_BYTES {
            (MAX_IMPORT_SCHEMA_BYTES, "MAX_IMPORT_SCHEMA_BYTES")
        } else if self.converted_bytes > MAX_IMPORT_CONVERTED_BYTES {
            (MAX_IMPORT_CONVERTED_BYTES, "MAX_IMPORT_CONVERTED_BYTES")
        } else {
            return Ok(());
        };
        Err(Error::usage(format!(
            "the schemas of the selected operations, up to {}, take more than {limit} bytes together (`{name}`): leave \
             operations out with `select`, or lower `max_schema_bytes`",
            method_and_path(operation)
        )))
    }
}

/// A feature that is ready to be added.
enum Feature {
    Tool(Box<Tool>, ToolOptions, Arc<dyn Handler>),
    Resource(Box<Resource>, ResourceOptions, Arc<dyn Handler>),
    Template(Box<ResourceTemplate>, ResourceOptions, Arc<dyn Handler>),
}

impl Feature {
    fn tool(operation: &Operation, name: String, mut endpoint: Endpoint) -> Self {
        let imported = &mut endpoint.operation;
        // The definition has the schemas, which may be large; the handler needs none.
        let mut tool = Tool::new(name, imported.input_schema.take());
        tool.output_schema = imported.output_schema.take();
        tool.title = title(operation);
        tool.description = Some(description(operation));
        tool.annotations = Some(annotations(operation.method));
        let mut options = ToolOptions::default().with_tags(&operation.tags);
        options.checks_output_itself = true;
        let handler = handlers::tool(Arc::new(endpoint));
        Self::Tool(Box::new(tool), options, handler)
    }

    fn resource(
        operation: &Operation,
        name: String,
        endpoint: Endpoint,
        scheme: &str,
    ) -> Result<Self, Error> {
        let template = endpoint.operation.resource_template(scheme).ok_or_else(|| {
            Error::usage(format!(
                "{} cannot be a resource: its request has a body, another method than GET, or parameters that a URI \
                 template cannot have. Select it as a tool",
                method_and_path(operation)
            ))
        })?;
        let schema = CompiledSchema::compile(&endpoint.operation.input_schema);
        let schema = schema.map_err(|error| {
            Error::usage(format!(
                "{}: the schema of its parameters is not valid: {error}",
                method_and_path(operation)
            ))
        })?;
        let handler = handlers::resource(Arc::new(endpoint), schema);
        let options = ResourceOptions::default().with_tags(&operation.tags);
        if template.contains('{') {
            let mut resource = ResourceTemplate::new(template, name);
            resource.title = title(operation);
            resource.description = Some(description(operation));
            return Ok(Self::Template(Box::new(resource), options, handler));
        }
        let mut resource = Resource::new(template, name);
        resource.title = title(operation);
        resource.description = Some(description(operation));
        Ok(Self::Resource(Box::new(resource), options, handler))
    }

    fn add(&self, server: &Server) -> Result<(), Error> {
        match self {
            Self::Tool(tool, options, handler) => {
                server.add_tool((**tool).clone(), options.clone(), handler.clone())
            }
            Self::Resource(resource, options, handler) => {
                server.add_resource_with((**resource).clone(), options.clone(), handler.clone())
            }
            Self::Template(template, options, handler) => server.add_resource_template_with(
                (**template).clone(),
                options.clone(),
                handler.clone(),
            ),
        }
    }

    fn remove(&self, server: &Server) {
        match self {
            Self::Tool(tool, ..) => server.remove_tool(&tool.name),
            Self::Resource(resource, ..) => server.remove_resource(&resource.uri),
            Self::Template(template, ..) => server.remove_resource_template(&template.uri_template),
        };
    }

    fn key(&self) -> &str {
        match self {
            Self::Tool(tool, ..) => &tool.name,
            Self::Resource(resource, ..) => &resource.uri,
            Self::Template(template, ..) => &template.uri_template,
        }
    }
}

fn title(operation: &Operation) -> Option<String> {
    let summary = operation.summary.clone();
    summary.filter(|summary| summary.len() <= MAX_TITLE_BYTES)
}

fn description(operation: &Operation) -> String {
    let description = operation.description.clone();
    let description = description.unwrap_or_else(|| method_and_path(operation));
    match operation.is_deprecated {
        true => format!("Deprecated. {description}"),
        false => description,
    }
}

/// Returns the hints that follow from the method. What `POST` and `PATCH` do is not known.
fn annotations(method: Method) -> ToolAnnotations {
    let mut annotations = ToolAnnotations::default().with_read_only_hint(method.is_safe());
    if !method.is_safe() && method.is_idempotent() {
        annotations.idempotent_hint = Some(true);
    }
    if method == Method::Delete {
        annotations.destructive_hint = Some(true);
    }
    annotations
}

fn method_and_path(operation: &Operation) -> String {
    format!("{} {}", operation.method.as_str(), operation.path)
}

fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

/// Refuses a server that no request can be sent to.
fn check_server(server: &str) -> Result<(), Error> {
    let target = Target::parse(&format!("{server}/"));
    target.map_err(|error| Error::usage(format!("`base_url`: {error}")))?;
    match server.contains(['?', '#']) {
        true => Err(Error::usage(format!(
            "`base_url`: {:?} has a query or a fragment, but paths are appended to it",
            mcpline_protocol::without_secrets(server)
        ))),
        false => Ok(()),
    }
}

fn usage(error: DocumentError) -> Error {
    Error::usage(error.to_string())
}

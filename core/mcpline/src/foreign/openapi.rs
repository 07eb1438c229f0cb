//! Import of an HTTP API from foreign code: its operations are listed, the author selects, and the selected ones are added.
//!
//! The author's own HTTP client, and functions that return credentials, are handlers: the binding registers them as it registers
//! those of features, and they run where these run.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use mcpline_protocol::wire::Raw;
use serde_json::{Value, json};

use crate::error::Error;
use crate::openapi::api_client::BodyLimits;
use crate::openapi::{
    ApiHttpClient, BoxError, CredentialFuture, CredentialProvider, Document, DocumentError,
    HttpResponseFuture, ImportAs, OpenApi, Operation,
};
use crate::server::{
    ApiFunction, ApiRequest, Context, Handler, HandlerError, Reply, Server, call_api_function,
};

use super::http_parts::header_pairs;
use super::options::{CredentialOption, OpenApiOptions, read};

/// Functions of the author that an import uses.
#[derive(Default)]
pub struct OpenApiFunctions {
    /// Sends the requests. Its calls have the kind [`CallKind::HttpClient`](crate::server::CallKind::HttpClient); see
    /// [`api_request`]. It replies with [`Reply::Http`].
    pub http_client: Option<Arc<dyn Handler>>,
    /// Names of headers that the HTTP client adds to every request.
    pub header_names: Vec<String>,
    /// Return the credential for a security scheme. Their calls have the kind
    /// [`CallKind::Credential`](crate::server::CallKind::Credential). They reply with [`Reply::Result`]: a JSON string, or an
    /// array of user name and password.
    pub credentials: Vec<(String, Arc<dyn Handler>)>,
}

impl std::fmt::Debug for OpenApiFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenApiFunctions").finish_non_exhaustive()
    }
}

/// An HTTP API whose operations can be added to a server.
#[derive(Debug)]
pub struct OpenApiImport {
    api: OpenApi,
    operations: Vec<Operation>,
}

impl OpenApiImport {
    /// Reads a document, in JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the document or an option is invalid, or there is an HTTP client beside
    /// settings of the built-in one.
    pub fn read(
        document: &[u8],
        mut options: OpenApiOptions,
        functions: OpenApiFunctions,
    ) -> Result<Self, Error> {
        if functions.http_client.is_some() {
            options.check_own_client()?;
        }
        let usage = |error: DocumentError| Error::usage(error.to_string());
        let mut document = Document::from_json(document).map_err(usage)?;
        if let Some(url) = options.document_url.take() {
            document = document.with_url(&url).map_err(usage)?;
        }
        for (uri, value) in std::mem::take(&mut options.external_documents) {
            document = document.with_other(&uri, value).map_err(usage)?;
        }
        let mut outcome = Ok(());
        let api =
            OpenApi::new(document).with_settings(|settings| outcome = options.apply(settings));
        outcome?;
        let api = with_functions(api, functions);
        Ok(Self {
            operations: api.operations()?,
            api,
        })
    }

    /// Returns the operations as a JSON array of objects with `id`, `method`, `path`, `name`, `summary`, `description`, `tags`
    /// and `deprecated`; what an operation does not have is `null`.
    pub fn operations(&self) -> Raw {
        let operations = self.operations.iter().map(|operation| {
            json!({
                "id": operation.id,
                "method": operation.method.as_str(),
                "path": operation.path,
                "name": operation.name,
                "summary": operation.summary,
                "description": operation.description,
                "tags": operation.tags,
                "deprecated": operation.is_deprecated,
            })
        });
        let operations = Value::Array(operations.collect()).to_string();
        Raw::from_trusted(operations.into_bytes())
    }

    /// Adds operations to a server, all or none. `selected` has one entry for each operation: `tool`, `resource`, or
    /// `nothing`. Returns the names of tools, and the URIs or templates of resources.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): an entry is none of these words, or as for
    /// [`OpenApi::add_to_server`].
    pub fn add(self, server: &Server, selected: &[String]) -> Result<Vec<String>, Error> {
        let words = selected.iter().map(|word| match &**word {
            "tool" => Ok(ImportAs::Tool),
            "resource" => Ok(ImportAs::Resource),
            "nothing" => Ok(ImportAs::Nothing),
            other => Err(Error::usage(format!(
                "`select` returned {other:?}: return `tool`, `resource` or `nothing`"
            ))),
        });
        let words: Vec<_> = words.collect::<Result<_, _>>()?;
        let selected: std::collections::HashMap<_, _> = self
            .operations
            .into_iter()
            .map(|operation| operation.name)
            .zip(words)
            .collect();
        let select = move |operation: &Operation| {
            let import_as = selected.get(&operation.name).copied();
            import_as.unwrap_or(ImportAs::Nothing)
        };
        self.api.select(select).add_to_server(server)
    }
}

fn with_functions(mut api: OpenApi, functions: OpenApiFunctions) -> OpenApi {
    if let Some(handler) = functions.http_client {
        api = api.with_http_client(ForeignHttpClient {
            handler,
            header_names: functions.header_names,
        });
    }
    for (scheme, handler) in functions.credentials {
        let provider = ForeignCredential {
            scheme: scheme.clone(),
            handler,
        };
        api = api.with_credential_provider(scheme, provider);
    }
    api
}

/// An HTTP client in foreign code.
struct ForeignHttpClient {
    handler: Arc<dyn Handler>,
    header_names: Vec<String>,
}

impl ApiHttpClient for ForeignHttpClient {
    fn send(&self, request: Request<Bytes>) -> HttpResponseFuture<'_> {
        Box::pin(async move {
            let extensions = request.extensions();
            let context = extensions.get::<Context>().cloned();
            let limits = extensions.get::<BodyLimits>().copied();
            let (Some(context), Some(limits)) = (context, limits) else {
                return Err("the request belongs to no call".into());
            };
            let request = Box::new(ApiRequest {
                request,
                // One byte more, so that longer bodies are recognized.
                max_body_bytes: limits.success.saturating_add(1),
                max_error_body_bytes: limits.error + 1,
            });
            let function = ApiFunction::HttpClient(request);
            match call_api_function(&context, self.handler.clone(), function).await? {
                Reply::Http(response) => Ok(response.map(Into::into)),
                _ => Err(wrong_reply("a response")),
            }
        })
    }

    fn header_names(&self) -> Vec<String> {
        self.header_names.clone()
    }
}

/// A function in foreign code that returns the credential for a security scheme.
struct ForeignCredential {
    scheme: String,
    handler: Arc<dyn Handler>,
}

impl CredentialProvider for ForeignCredential {
    fn credential(&self, context: Context) -> CredentialFuture<'_> {
        Box::pin(async move {
            let function = ApiFunction::Credential(self.scheme.clone());
            match call_api_function(&context, self.handler.clone(), function).await? {
                Reply::Result(credential) => {
                    let credential: CredentialOption =
                        read("the credential", credential.as_bytes())?;
                    Ok(credential.into())
                }
                _ => Err(wrong_reply("a credential")),
            }
        })
    }
}

fn wrong_reply(expected: &str) -> BoxError {
    HandlerError::Internal(format!("the function did not return {expected}")).into()
}

/// Returns the request that an HTTP client sends: its head as JSON, and its body. `None` for a call of another kind.
///
/// The head has `method`, `url`, `headers` (pairs of name, in lower case, and value), and the number of bytes of the
/// response's body that are of use, after which the client may stop reading: `max_body_bytes` of a response with a status from
/// 200 to 299, and `max_error_body_bytes` of others.
pub fn api_request(context: &Context) -> Option<(String, Bytes)> {
    let ApiRequest {
        request,
        max_body_bytes,
        max_error_body_bytes,
    } = context.api_request()?;
    let head = json!({
        "method": request.method().as_str(),
        "url": request.uri().to_string(),
        "headers": header_pairs(request.headers()),
        "max_body_bytes": max_body_bytes,
        "max_error_body_bytes": max_error_body_bytes,
    });
    Some((head.to_string(), request.body().clone()))
}

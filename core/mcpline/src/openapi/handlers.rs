//! The handlers of imported operations: a request from arguments, a result from the response.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_openapi::{ImportedOperation, Outcome, ResponseParts, status_text};
use mcpline_protocol::RpcError;
use mcpline_protocol::schema::{CompiledSchema, Violation};
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;
use serde_json::{Value, json};

use crate::fair_queue::PeerId;
use crate::offload;
use crate::server::{
    Call, Context, Handler, HandlerError, Reply, ResourceReply, ToolReply, handler as async_handler,
};

use super::api_client::{ApiClient, Response};
use super::credential_provider::CredentialSources;
use super::large_integers;

/// An operation with its server.
pub(super) struct Endpoint {
    pub(super) operation: ImportedOperation,
    pub(super) server: String,
    pub(super) api: Arc<ApiClient>,
    pub(super) credentials: Arc<CredentialSources>,
}

/// Why there is no response.
enum SendError {
    /// The arguments cannot be sent.
    Arguments(String),
    /// The outcome of the call.
    Failed(HandlerError),
}

impl Endpoint {
    async fn send(&self, context: &Context, arguments: &JsonObject) -> Result<Response, SendError> {
        let deadline = self.api.deadline();
        let credentials = self
            .credentials
            .of_request(&self.operation, context, deadline);
        let credentials = credentials.await.map_err(SendError::Failed)?;
        let request = self.operation.request(arguments, &credentials);
        let request = request.map_err(|error| SendError::Arguments(error.to_string()))?;
        let sent = self.api.send(context, &self.server, request, deadline);
        sent.await.map_err(SendError::Failed)
    }
}

impl Response {
    fn parts(&self) -> ResponseParts<'_> {
        ResponseParts {
            status: self.status,
            content_type: self.content_type.as_deref(),
            location: self.location.as_deref(),
            body: &self.body,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns the handler of a tool.
pub(super) fn tool(endpoint: Arc<Endpoint>) -> Arc<dyn Handler> {
    async_handler(move |call: &Call| {
        let endpoint = endpoint.clone();
        let are_exact = large_integers::check(call.arguments());
        let arguments = call.arguments().decode::<JsonObject>();
        let (has_schema, schema) = (call.has_output_schema(), call.output_schema());
        let (peer, context) = (call.quota_peer(), call.context());
        async move {
            if let Err(message) = are_exact {
                return Ok(Reply::Tool(ToolReply::error(&message)));
            }
            let arguments = arguments.map_err(|error| HandlerError::Internal(error.to_string()))?;
            let sent = endpoint.send(&context, &arguments).await;
            let response = sent.map_err(|error| match error {
                SendError::Arguments(reason) => {
                    HandlerError::Tool(format!("Invalid arguments: {reason}"))
                }
                SendError::Failed(error) => error,
            })?;
            Ok(Reply::Tool(
                tool_reply(&response, has_schema, schema, peer).await,
            ))
        }
    })
}

async fn tool_reply(
    response: &Response,
    has_schema: bool,
    schema: Option<CompiledSchema>,
    peer: PeerId,
) -> ToolReply {
    let outcome = response.parts().outcome();
    if let Outcome::Error(message) = outcome {
        return ToolReply::error(&message);
    }
    // Some APIs send JSON with another media type, or none.
    let is_json = outcome == Outcome::Json || (has_schema && matches!(outcome, Outcome::Text(_)));
    if is_json && let Ok(body) = Raw::parse(response.body.clone()) {
        if let Some(schema) = schema
            && let Err(violation) = validate(schema, &body, peer).await
        {
            return mismatch_reply(response, &violation.to_string());
        }
        return ToolReply {
            structured: Some(body),
            ..ToolReply::default()
        };
    }
    if has_schema {
        let found = match &response.content_type {
            Some(found) => format!("it is not JSON, but {found:?}"),
            None => "it is not JSON".to_owned(),
        };
        return mismatch_reply(response, &found);
    }
    let block = match outcome {
        Outcome::Text(text) | Outcome::Empty(text) => return ToolReply::text(&text),
        Outcome::Image(media_type) => media_block("image", &media_type, response),
        Outcome::Audio(media_type) => media_block("audio", &media_type, response),
        Outcome::Binary(media_type) => json!({
            "type": "resource",
            "resource": {
                "uri": "urn:mcpline:response",
                "mimeType": media_type,
                "blob": STANDARD.encode(&response.body),
            },
        }),
        // JSON that is not valid.
        _ => return ToolReply::text(&response.text()),
    };
    ToolReply {
        content: Raw::from_serialize(&[block]).ok(),
        ..ToolReply::default()
    }
}

fn media_block(kind: &str, media_type: &str, response: &Response) -> Value {
    json!({"type": kind, "mimeType": media_type, "data": STANDARD.encode(&response.body)})
}

/// Returns the reply for a response that is not what the document says. A result would have to match the output schema; an
/// error need not, and the model can read what the API has answered.
fn mismatch_reply(response: &Response, reason: &str) -> ToolReply {
    let status = status_text(response.status);
    let hint = "The request succeeded, but the response does not match the description of the API";
    ToolReply::error(&format!(
        "{status}. {hint} ({reason}). It is: {}",
        response.text()
    ))
}

/// Validates a response, on another thread if that takes long.
async fn validate(schema: CompiledSchema, body: &Raw, peer: PeerId) -> Result<(), Violation> {
    if let Some(outcome) = schema.validate_inline(body) {
        return outcome;
    }
    let body = body.clone();
    let flag = Arc::new(AtomicBool::new(false));
    let work = move |interrupt: &AtomicBool| schema.validate_until(&body, Some(interrupt));
    let outcome = offload::compute(peer, flag, work).await;
    outcome.unwrap_or_else(|| Err(Violation::unexplained("it could not be checked")))
}

/// Returns the handler of a resource or a resource template.
///
/// `schema` is that of its arguments: variables of a template are validated as the arguments of a tool are.
pub(super) fn resource(endpoint: Arc<Endpoint>, schema: CompiledSchema) -> Arc<dyn Handler> {
    async_handler(move |call: &Call| {
        let (endpoint, schema) = (endpoint.clone(), schema.clone());
        let variables = call.arguments().decode::<JsonObject>();
        let (uri, context) = (call.name(), call.context());
        let peer = call.quota_peer();
        async move {
            let variables = variables.unwrap_or_default();
            let arguments = endpoint.operation.arguments_of_resource(&variables);
            let given = Raw::from_serialize(&arguments);
            let given = given.map_err(|error| HandlerError::Internal(error.to_string()))?;
            validate(schema, &given, peer).await.map_err(|violation| {
                RpcError::invalid_params(format!("resource {uri:?}: {violation}"))
            })?;
            let sent = endpoint.send(&context, &arguments).await;
            let response = sent.map_err(|error| match error {
                SendError::Arguments(reason) => {
                    RpcError::invalid_params(format!("resource {uri:?}: {reason}")).into()
                }
                SendError::Failed(error) => error,
            })?;
            let not_found = [404, 410];
            if not_found.contains(&response.status) {
                return Err(RpcError::resource_not_found(context.revision(), Some(&uri)).into());
            }
            let contents = contents(&uri, &response).map_err(HandlerError::Tool)?;
            let contents = Raw::from_serialize(&[contents]);
            Ok(Reply::Resource(ResourceReply {
                contents: contents.map_err(|error| HandlerError::Internal(error.to_string()))?,
                cache: None,
                meta: None,
            }))
        }
    })
}

fn contents(uri: &str, response: &Response) -> Result<Value, String> {
    let media_type = |known: &str| response.content_type.as_deref().unwrap_or(known).to_owned();
    Ok(match response.parts().outcome() {
        Outcome::Error(message) => return Err(message),
        Outcome::Image(mime_type) | Outcome::Audio(mime_type) | Outcome::Binary(mime_type) => {
            json!({"uri": uri, "mimeType": mime_type, "blob": STANDARD.encode(&response.body)})
        }
        Outcome::Json => {
            json!({"uri": uri, "mimeType": media_type("application/json"), "text": response.text()})
        }
        _ => json!({"uri": uri, "mimeType": media_type("text/plain"), "text": response.text()}),
    })
}

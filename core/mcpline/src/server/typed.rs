//! Typed handlers in Rust: closures over your own types.

use std::future::Future;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::vocabulary::{
    CallToolResult, ContentBlock, GetPromptResult, PromptMessage, ReadResourceResult,
    ResourceContents, Role, TextContent,
};
use mcpline_protocol::wire::Raw;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::handler::{Handler, handler};
use super::reply::{
    CompletionReply, HandlerError, InputRequired, PromptReply, Reply, ResourceReply, ToolReply,
};
use super::{Call, Context};

/// Structured content of a tool, of any serializable type. If a tool's closure returns it, its output schema is
/// derived.
#[cfg(feature = "schemars")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Types that the closure of a tool can return.
pub trait IntoToolReply {
    /// Converts into a reply.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_tool_reply(self) -> Result<Reply, HandlerError>;

    /// Returns the output schema, if the type has one.
    fn output_schema() -> Option<Value> {
        None
    }
}

impl IntoToolReply for String {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply::text(&self)))
    }
}

impl IntoToolReply for &'static str {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply::text(self)))
    }
}

macro_rules! text_reply {
    ($($kind:ty),*) => {$(
        impl IntoToolReply for $kind {
            fn into_tool_reply(self) -> Result<Reply, HandlerError> {
                Ok(Reply::Tool(ToolReply::text(&self.to_string())))
            }
        }
    )*};
}

text_reply!(bool, i32, i64, u32, u64, usize, f32, f64);

impl IntoToolReply for () {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            content: Some(Raw::EMPTY_ARRAY),
            ..ToolReply::default()
        }))
    }
}

impl IntoToolReply for ToolReply {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(self))
    }
}

impl IntoToolReply for Reply {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl IntoToolReply for InputRequired {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::InputRequired(self))
    }
}

impl IntoToolReply for ContentBlock {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        vec![self].into_tool_reply()
    }
}

impl IntoToolReply for Vec<ContentBlock> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            content: Some(raw(&self)?),
            ..ToolReply::default()
        }))
    }
}

impl IntoToolReply for CallToolResult {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            content: Some(raw(&self.content)?),
            structured: self.structured_content.as_ref().map(raw).transpose()?,
            is_error: self.is_error == Some(true),
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

#[cfg(feature = "schemars")]
impl<T: Serialize + JsonSchema> IntoToolReply for Json<T> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            structured: Some(raw(&self.0)?),
            ..ToolReply::default()
        }))
    }

    fn output_schema() -> Option<Value> {
        Some(schema_of::<T>())
    }
}

impl<T: IntoToolReply, E: Into<HandlerError>> IntoToolReply for Result<T, E> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        self.map_err(Into::into)?.into_tool_reply()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

/// Types that the closure of a resource can return.
pub trait IntoResourceReply {
    /// Converts into a reply for the resource at `uri`. `mime_type`, the type in its definition, applies where the
    /// value has none.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_resource_reply(self, uri: &str, mime_type: Option<&str>)
    -> Result<Reply, HandlerError>;
}

impl IntoResourceReply for String {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        typed(ResourceContents::text(uri, self), mime_type).into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for &'static str {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        self.to_owned().into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for Vec<u8> {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        typed(
            ResourceContents::blob(uri, STANDARD.encode(self)),
            mime_type,
        )
        .into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for ResourceContents {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(Reply::Resource(ResourceReply {
            contents: raw(&[self])?,
            cache: None,
            meta: None,
        }))
    }
}

impl IntoResourceReply for ReadResourceResult {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(Reply::Resource(ResourceReply {
            contents: raw(&self.contents)?,
            cache: None,
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

impl IntoResourceReply for Reply {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoResourceReply, E: Into<HandlerError>> IntoResourceReply for Result<T, E> {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        self.map_err(Into::into)?
            .into_resource_reply(uri, mime_type)
    }
}

/// Types that the closure of a prompt can return.
pub trait IntoPromptReply {
    /// Converts into a reply.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_prompt_reply(self) -> Result<Reply, HandlerError>;
}

impl IntoPromptReply for String {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        vec![PromptMessage::new(Role::User, TextContent::new(self))].into_prompt_reply()
    }
}

impl IntoPromptReply for &str {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        self.to_owned().into_prompt_reply()
    }
}

impl IntoPromptReply for Vec<PromptMessage> {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Prompt(PromptReply {
            messages: raw(&self)?,
            description: None,
            meta: None,
        }))
    }
}

impl IntoPromptReply for GetPromptResult {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Prompt(PromptReply {
            messages: raw(&self.messages)?,
            description: self.description,
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

impl IntoPromptReply for InputRequired {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::InputRequired(self))
    }
}

impl IntoPromptReply for Reply {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoPromptReply, E: Into<HandlerError>> IntoPromptReply for Result<T, E> {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        self.map_err(Into::into)?.into_prompt_reply()
    }
}

/// Returns the JSON Schema of a type: self-contained, 2020-12.
#[cfg(feature = "schemars")]
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    if let Some(members) = value.as_object_mut() {
        members.remove("title");
        if members.get("type").is_none() && members.is_empty() {
            members.insert("type".into(), "object".into());
        }
    }
    value
}

/// Decodes arguments, which are an object, also if the type takes none (`()`) or is optional.
fn decode<T: DeserializeOwned>(arguments: &Raw) -> Result<T, serde_json::Error> {
    let error = match arguments.decode() {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    if size_of::<T>() == 0
        || arguments
            .members()
            .is_some_and(|mut members| members.next().is_none())
    {
        // A unit, which serde writes as `null`, or `None`.
        return serde_json::from_str("null").map_err(|_| error);
    }
    Err(error)
}

/// Wraps the closure of a tool in a handler.
pub(super) fn tool_handler<A, F, Fut, R>(run: F) -> Arc<dyn Handler>
where
    A: DeserializeOwned,
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoToolReply,
{
    handler(move |call: &Call| {
        let running = decode::<A>(call.arguments()).map(|arguments| run(arguments, call.context()));
        async move {
            match running {
                Ok(running) => running.await.into_tool_reply(),
                Err(error) => Err(HandlerError::Tool(format!("Invalid arguments: {error}"))),
            }
        }
    })
}

/// Wraps the closure of a custom request in a handler.
pub(super) fn request_handler<P, F, Fut, R, E>(run: F) -> Arc<dyn Handler>
where
    P: DeserializeOwned,
    F: Fn(P, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    R: Serialize,
    E: Into<HandlerError>,
{
    handler(move |call: &Call| {
        let running = decode::<P>(call.arguments()).map(|params| run(params, call.context()));
        async move {
            match running {
                Ok(running) => Ok(Reply::Result(raw(&running.await.map_err(Into::into)?)?)),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("params: {error}")),
                )),
            }
        }
    })
}

/// Wraps the closure of a custom notification in a handler.
pub(super) fn notification_handler<P, F, Fut>(run: F) -> Arc<dyn Handler>
where
    P: DeserializeOwned,
    F: Fn(P, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    handler(move |call: &Call| {
        let running = decode::<P>(call.arguments()).map(|params| run(params, call.context()));
        async move {
            match running {
                Ok(running) => {
                    running.await;
                    Ok(Reply::Result(Raw::EMPTY_OBJECT))
                }
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("params: {error}")),
                )),
            }
        }
    })
}

/// Wraps the closure of a prompt in a handler.
pub(super) fn prompt_handler<A, F, Fut, R>(run: F) -> Arc<dyn Handler>
where
    A: DeserializeOwned,
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoPromptReply,
{
    handler(move |call: &Call| {
        let running = decode::<A>(call.arguments()).map(|arguments| run(arguments, call.context()));
        async move {
            match running {
                Ok(running) => running.await.into_prompt_reply(),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!(
                        "Invalid arguments: {error}"
                    )),
                )),
            }
        }
    })
}

/// Wraps the closure of a resource, or of a template with `variables`, in a handler.
pub(super) fn resource_handler<V, F, Fut, R>(mime_type: Option<String>, run: F) -> Arc<dyn Handler>
where
    V: DeserializeOwned,
    F: Fn(V, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoResourceReply,
{
    handler(move |call: &Call| {
        let uri = call.name();
        let mime_type = mime_type.clone();
        let running = decode::<V>(call.arguments()).map(|variables| run(variables, call.context()));
        async move {
            match running {
                Ok(running) => running
                    .await
                    .into_resource_reply(&uri, mime_type.as_deref()),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("{uri}: {error}")),
                )),
            }
        }
    })
}

/// Wraps the closure of a completion in a handler.
pub(super) fn completion_handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<String>> + Send + 'static,
{
    handler(move |call: &Call| {
        let asked = call.arguments().decode().unwrap_or_default();
        let running = run(asked, call.context());
        async move {
            Ok(Reply::Completion(CompletionReply {
                values: running.await,
                ..CompletionReply::default()
            }))
        }
    })
}

/// Wraps the closure of a session event in a handler.
pub(super) fn event_handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    handler(move |call: &Call| {
        let running = run(call.context());
        async move {
            running.await;
            Ok(Reply::Tool(ToolReply::default()))
        }
    })
}

/// Returns the contents with the resource's declared type.
fn typed(contents: ResourceContents, mime_type: Option<&str>) -> ResourceContents {
    match mime_type {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    }
}

fn raw(value: &impl Serialize) -> Result<Raw, HandlerError> {
    Raw::from_serialize(value)
        .map_err(|error| HandlerError::Internal(format!("a result does not serialize: {error}")))
}

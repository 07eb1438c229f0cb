//! Typed requests for the features of a server.

use std::collections::BTreeMap;

use mcpline_protocol::Raw;
use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::vocabulary::{
    CallToolResult, CompleteParams, CompleteResult, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use mcpline_protocol::wire::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::client_error::ClientError;

use super::Client;
use super::cursors::Cursors;
use super::offloaded_decoding::decode_offloaded;
use super::settings::RequestOptions;

macro_rules! list {
    ($all:ident, $all_with:ident, $page:ident, $method:literal, $result:ident . $items:ident : $item:ty) => {
        #[doc = concat!("Returns all pages of `", $method, "`.")]
        ///
        /// # Errors
        ///
        /// [`ClientError`]; also if the list never ends.
        pub async fn $all(&self) -> Result<Vec<$item>, ClientError> {
            self.$all_with(&RequestOptions::new()).await
        }

        #[doc = concat!("[`Client::", stringify!($all), "`] with options, which apply to each page.")]
        ///
        /// # Errors
        ///
        /// [`ClientError`]; also if the list never ends.
        pub async fn $all_with(&self, options: &RequestOptions) -> Result<Vec<$item>, ClientError> {
            let mut items = Vec::new();
            let mut cursors = Cursors::new($method);
            let mut cursor = None;
            loop {
                let mut page = self.$page(cursor.as_deref(), options).await?;
                items.append(&mut page.$items);
                if !cursors.follow(page.next_cursor.as_deref())? {
                    return Ok(items);
                }
                cursor = page.next_cursor;
            }
        }

        #[doc = concat!("Returns one page of `", $method, "`: the first, or the one at the `cursor` of the page before.")]
        /// Any string is a cursor, including the empty one; [`Cursors`] says when to stop.
        ///
        /// # Errors
        ///
        /// [`ClientError`].
        pub async fn $page(
            &self,
            cursor: Option<&str>,
            options: &RequestOptions,
        ) -> Result<$result, ClientError> {
            let params = cursor.map(|cursor| json!({"cursor": cursor}));
            self.typed($method, params.as_ref(), options).await
        }
    };
}

impl Client {
    list!(list_tools, list_tools_with, list_tools_page, "tools/list", ListToolsResult.tools: Tool);
    list!(list_resources, list_resources_with, list_resources_page, "resources/list", ListResourcesResult.resources: Resource);
    list!(list_resource_templates, list_resource_templates_with, list_resource_templates_page, "resources/templates/list",
          ListResourceTemplatesResult.resource_templates: ResourceTemplate);
    list!(list_prompts, list_prompts_with, list_prompts_page, "prompts/list", ListPromptsResult.prompts: Prompt);

    /// Calls a tool. `arguments` is a JSON object. A result with `is_error` is not an error here: the model reads it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; also if the structured content does not match the tool's output schema.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, ClientError> {
        self.call_tool_with(name, arguments, &RequestOptions::new())
            .await
    }

    /// [`Client::call_tool`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Client::call_tool`].
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &RequestOptions,
    ) -> Result<CallToolResult, ClientError> {
        #[derive(Serialize)]
        struct Params<'p, A> {
            name: &'p str,
            arguments: A,
        }
        self.typed("tools/call", Some(&Params { name, arguments }), options)
            .await
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ClientError> {
        self.read_resource_with(uri, &RequestOptions::new()).await
    }

    /// [`Client::read_resource`] with options.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn read_resource_with(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<ReadResourceResult, ClientError> {
        let params = json!({"uri": uri});
        self.typed("resources/read", Some(&params), options).await
    }

    /// Gets a prompt with these arguments.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<GetPromptResult, ClientError> {
        self.get_prompt_with(name, arguments, &RequestOptions::new())
            .await
    }

    /// [`Client::get_prompt`] with options.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn get_prompt_with(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
        options: &RequestOptions,
    ) -> Result<GetPromptResult, ClientError> {
        let params = match arguments.is_empty() {
            true => json!({"name": name}),
            false => json!({"name": name, "arguments": arguments}),
        };
        self.typed("prompts/get", Some(&params), options).await
    }

    /// Completes an argument of a prompt or a variable of a resource template.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn complete(&self, params: &CompleteParams) -> Result<CompleteResult, ClientError> {
        self.complete_with(params, &RequestOptions::new()).await
    }

    /// [`Client::complete`] with options.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn complete_with(
        &self,
        params: &CompleteParams,
        options: &RequestOptions,
    ) -> Result<CompleteResult, ClientError> {
        self.typed("completion/complete", Some(params), options)
            .await
    }

    /// Sets the least severe level of log messages that the server should send, also on new connections.
    ///
    /// On handshake revisions this sends `logging/setLevel`; on 2026-07-28 further requests contain the level.
    ///
    /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), ClientError> {
        self.set_log_level_with(level, &RequestOptions::new()).await
    }

    /// [`Client::set_log_level`] with options.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn set_log_level_with(
        &self,
        level: LoggingLevel,
        options: &RequestOptions,
    ) -> Result<(), ClientError> {
        let session = self.inner().session().await?;
        session.check_capability(&Method::LoggingSetLevel, &self.inner().settings)?;
        if session.revision().features().set_level {
            let params = json!({"level": level});
            self.typed::<serde_json::Value>("logging/setLevel", Some(&params), options)
                .await?;
        }
        self.inner().set_log_level(level);
        Ok(())
    }

    /// Checks that the server responds: `ping`, or `server/discover` on 2026-07-28.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn ping(&self) -> Result<(), ClientError> {
        self.ping_with(&RequestOptions::new()).await
    }

    /// [`Client::ping`] with options.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn ping_with(&self, options: &RequestOptions) -> Result<(), ClientError> {
        let session = self.inner().session().await?;
        let method = match session.revision().features().ping {
            true => "ping",
            false => "server/discover",
        };
        let result: Result<serde_json::Value, _> = self.typed(method, None::<&()>, options).await;
        result.map(|_| ())
    }

    /// Subscribes to updates to a resource (`notifications/resources/updated`), also on new connections.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSupported`] if the server declares that it does not report updates; other [`ClientError`]s.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ClientError> {
        self.subscribe_with(uri, &RequestOptions::new()).await
    }

    /// [`Client::subscribe`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Client::subscribe`].
    pub async fn subscribe_with(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<(), ClientError> {
        self.subscription("resources/subscribe", uri, true, options)
            .await
    }

    /// Unsubscribes from updates to a resource.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), ClientError> {
        self.unsubscribe_with(uri, &RequestOptions::new()).await
    }

    /// [`Client::unsubscribe`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Client::unsubscribe`].
    pub async fn unsubscribe_with(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<(), ClientError> {
        self.subscription("resources/unsubscribe", uri, false, options)
            .await
    }

    async fn subscription(
        &self,
        method: &str,
        uri: &str,
        wanted: bool,
        options: &RequestOptions,
    ) -> Result<(), ClientError> {
        let session = self.inner().session().await?;
        let features = session.revision().features();
        if features.listen {
            if wanted {
                session.check_capability(&Method::ResourcesSubscribe, &self.inner().settings)?;
            }
            let timeouts = options.timeouts.unwrap_or(self.inner().settings.timeouts);
            return self.inner().subscriptions.set(uri, wanted, timeouts).await;
        }
        let params = json!({"uri": uri});
        self.typed::<serde_json::Value>(method, Some(&params), options)
            .await?;
        self.inner().subscriptions.record_confirmed(uri, wanted);
        Ok(())
    }

    /// Notifies the server that the roots changed. Does nothing on 2026-07-28, which has no such message.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSupported`] if the client has not declared `roots.listChanged`; other [`ClientError`]s.
    pub async fn roots_changed(&self) -> Result<(), ClientError> {
        self.inner().handlers.check_roots_change()?;
        let session = self.inner().session().await?;
        if session.revision().features().roots_list_changed {
            session.notify("notifications/roots/list_changed", None)?;
        }
        Ok(())
    }

    /// Sends a request with typed parameters and result.
    pub(super) async fn typed<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &str,
        params: Option<&impl Serialize>,
        options: &RequestOptions,
    ) -> Result<R, ClientError> {
        let params = params.map(Raw::from_serialize).transpose();
        let params = params.map_err(|error| ClientError::Usage(error.to_string()))?;
        let result = self.request(method, params.as_ref(), options).await?;
        let decoded = match result.as_bytes().len() <= MAX_INLINE_DECODED_BYTES {
            true => result.decode(),
            false => Box::pin(decode_offloaded(self.inner().handlers.peer, result))
                .await
                .ok_or(ClientError::Closed)?,
        };
        decoded.map_err(|error| ClientError::InvalidResponse {
            reason: format!("the result of {method}: {error}"),
        })
    }
}

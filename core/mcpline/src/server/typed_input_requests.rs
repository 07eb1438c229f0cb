//! Typed input requests: forms, URL elicitations, sampling, roots.

use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::vocabulary::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, Extra,
    FormSchema, ListRootsResult, Root,
};
use mcpline_protocol::wire::Raw;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::input_requests::{InputRequest, InputRequestMethod};
use crate::error::Error;

use super::context::Context;

impl InputRequest {
    /// Creates an elicitation (`client/elicitation`), in form or URL mode.
    pub fn elicit(params: &ElicitParams) -> Self {
        Self::new(InputRequestMethod::Elicit, written(params))
    }

    /// Creates a sampling request (`client/sampling`).
    pub fn sample(params: &CreateMessageParams) -> Self {
        Self::new(InputRequestMethod::Sample, written(params))
    }

    /// Creates a request for the client's root directories (`client/roots`).
    pub fn list_roots() -> Self {
        Self::new(InputRequestMethod::ListRoots, None)
    }

    /// Creates a custom request: see [`Context::send_request`].
    ///
    /// # Errors
    ///
    /// As for [`InputRequestMethod::custom`].
    pub fn custom(method: &str, params: Option<Raw>) -> Result<Self, Error> {
        Ok(Self::new(InputRequestMethod::custom(method)?, params))
    }
}

impl Context {
    /// Asks the user for input, in form or URL mode, and waits; see [`Context::request_input_with`]. The content of an accepted
    /// form matches the requested schema.
    ///
    /// # Errors
    ///
    /// [`InputRequestError`]: the client does not support the request, answered with an error, or took too long; or the
    /// call was cancelled. A user who declines is not an error.
    pub async fn elicit(&self, params: &ElicitParams) -> Result<ElicitResult, InputRequestError> {
        read(
            &InputRequestMethod::Elicit,
            &self.request_input(InputRequest::elicit(params)).await?,
        )
    }

    /// Asks the user to fill in a form with the fields of a type: strings, numbers, booleans, enumerations and lists of
    /// enumerations. Returns `None` if the user declines.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`]; also if the type has other fields.
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    pub async fn elicit_as<T>(
        &self,
        message: impl Into<String>,
    ) -> Result<Option<T>, InputRequestError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let answer = self
            .elicit(&ElicitParams::form(message, form_of::<T>()?))
            .await?;
        if answer.action != ElicitAction::Accept {
            return Ok(None);
        }
        let content = serde_json::Value::Object(answer.content.unwrap_or_default());
        serde_json::from_value(content)
            .map(Some)
            .map_err(|error| invalid(&InputRequestMethod::Elicit, &error))
    }

    /// Requests a completion from the client's model and waits for it.
    ///
    /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`].
    pub async fn sample(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, InputRequestError> {
        read(
            &InputRequestMethod::Sample,
            &self.request_input(InputRequest::sample(params)).await?,
        )
    }

    /// Sends a custom request to the client and waits for its result, a JSON object; see [`Context::request_input_with`].
    /// `params` is a JSON object.
    ///
    /// No capability says whether a client supports the method, and a 2026-07-28 client that does not know it fails the
    /// whole call. Send custom requests only to clients that declare an extension with this method.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`]; also if the method cannot be custom ([`InputRequestMethod::custom`]).
    pub async fn send_request(
        &self,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<Raw, InputRequestError> {
        let input_request = InputRequest::custom(method, params.cloned());
        self.request_input(
            input_request.map_err(|error| InputRequestError::InvalidParams(error.to_string()))?,
        )
        .await
    }

    /// Requests the client's root directories and waits for them.
    ///
    /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`].
    pub async fn list_roots(&self) -> Result<Vec<Root>, InputRequestError> {
        let answer = self.request_input(InputRequest::list_roots()).await?;
        let listed: ListRootsResult = read(&InputRequestMethod::ListRoots, &answer)?;
        Ok(listed.roots)
    }
}

/// Converts a type into a form with its fields. Forms cannot express anything else of its schema
/// (`client/elicitation`).
#[cfg(feature = "schemars")]
fn form_of<T: JsonSchema>() -> Result<FormSchema, InputRequestError> {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    let fields = schema.get_mut("properties");
    if let Some(fields) = fields.and_then(serde_json::Value::as_object_mut) {
        fields.values_mut().for_each(without_null_type);
    }
    serde_json::from_value::<FormSchema>(schema)
        .map(|mut form| {
            form.extra = Extra::new();
            form
        })
        .map_err(|error| {
            let name = T::schema_name();
            InputRequestError::InvalidParams(format!("{name} is not a form: {error}"))
        })
}

/// Removes `null` from a field's types: forms have no null, and optional fields are those that are not required.
fn without_null_type(field: &mut serde_json::Value) {
    let Some(kinds) = field.get_mut("type") else {
        return;
    };
    if let Some(options) = kinds.as_array_mut() {
        options.retain(|kind| kind != "null");
        if options.len() == 1 {
            *kinds = options.remove(0);
        }
    }
}

fn written(params: &impl Serialize) -> Option<Raw> {
    // Cannot fail: the vocabulary's types have string keys and no values that JSON cannot express.
    Raw::from_serialize(params).ok()
}

fn read<T: DeserializeOwned>(
    method: &InputRequestMethod,
    answer: &Raw,
) -> Result<T, InputRequestError> {
    answer.decode().map_err(|error| invalid(method, &error))
}

fn invalid(method: &InputRequestMethod, error: &dyn std::fmt::Display) -> InputRequestError {
    InputRequestError::InvalidResponse {
        method: method.name(),
        reason: error.to_string(),
    }
}

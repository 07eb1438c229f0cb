//! Questions to the client as types: forms, visits, sampling, roots.

use mcpline_protocol::session::AskError;
use mcpline_protocol::vocabulary::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ListRootsResult, Root,
};
use mcpline_protocol::wire::Raw;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::asking::Ask;
use super::context::Context;
use super::reply::AskMethod;

impl Ask {
    /// Input from the user (`client/elicitation`): by a form, or by a visit to a URL.
    pub fn elicit(params: &ElicitParams) -> Self {
        Self::new(AskMethod::Elicit, written(params))
    }

    /// A completion by the client's model (`client/sampling`).
    pub fn sample(params: &CreateMessageParams) -> Self {
        Self::new(AskMethod::Sample, written(params))
    }

    /// The client's root directories (`client/roots`).
    pub fn list_roots() -> Self {
        Self::new(AskMethod::ListRoots, None)
    }
}

impl Context {
    /// Asks the user for input and awaits it, by a form or by a visit to a URL; see [`Context::ask_with`]
    /// for how. The content of an accepted form fits the schema that was asked with.
    ///
    /// # Errors
    ///
    /// [`AskError`]: the client can't be asked this, refused, took too long, or the request was cancelled. A
    /// user who declines is no error.
    pub async fn elicit(&self, params: &ElicitParams) -> Result<ElicitResult, AskError> {
        read(&self.ask(Ask::elicit(params)).await?)
    }

    /// Has the client's model complete a conversation and awaits what it says.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`].
    pub async fn sample(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        read(&self.ask(Ask::sample(params)).await?)
    }

    /// Asks for the client's root directories and awaits them.
    ///
    /// # Errors
    ///
    /// As for [`Context::elicit`].
    pub async fn list_roots(&self) -> Result<Vec<Root>, AskError> {
        let listed: ListRootsResult = read(&self.ask(Ask::list_roots()).await?)?;
        Ok(listed.roots)
    }
}

fn written(params: &impl Serialize) -> Option<Raw> {
    // The vocabulary's types have string keys and nothing else that JSON couldn't hold.
    Raw::from_serialize(params).ok()
}

fn read<T: DeserializeOwned>(answer: &Raw) -> Result<T, AskError> {
    answer
        .decode()
        .map_err(|error| AskError::Invalid(error.to_string()))
}

//! Credentials that a program computes for each request, such as tokens that expire.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcpline_openapi::{Credential, Credentials, ImportedOperation};
use tokio::time::{Instant, timeout_at};

use crate::server::{Context, HandlerError};

use super::failure::failed;
use super::http_client::BoxError;

/// A credential that is being computed.
pub type CredentialFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Credential, BoxError>> + Send + 'a>>;

/// Provides the credential of a security scheme for each request, such as a token that expires, or one of the caller.
///
/// Async functions and closures over the [`Context`] of the call implement it. Set it with
/// [`OpenApi::with_credential_provider`](super::OpenApi::with_credential_provider).
pub trait CredentialProvider: Send + Sync + 'static {
    /// Returns the credential for one request. It is called for each request whose operation uses the scheme, and keeps a
    /// token for as long as it is valid.
    ///
    /// The time counts towards the timeout of the request. The future is dropped when the call is cancelled.
    ///
    /// # Errors
    ///
    /// The request is not sent, and the call fails with a message that does not contain the error, which is logged, and sent in
    /// debug mode only. A [`HandlerError`] is the outcome of the call instead: for example, one that asks the user to sign
    /// in first ([`HandlerError::UrlElicitationRequired`]).
    fn credential(&self, context: Context) -> CredentialFuture<'_>;
}

impl<F, Fut> CredentialProvider for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Credential, BoxError>> + Send + 'static,
{
    fn credential(&self, context: Context) -> CredentialFuture<'_> {
        Box::pin(self(context))
    }
}

/// The credentials of an import.
pub(super) struct CredentialSources {
    pub(super) fixed: Credentials,
    pub(super) providers: BTreeMap<String, Arc<dyn CredentialProvider>>,
}

impl CredentialSources {
    /// Whether there is a credential for a scheme.
    pub(super) fn has(&self, scheme: &str) -> bool {
        self.fixed.contains(scheme) || self.providers.contains_key(scheme)
    }

    /// Returns the credentials for one request.
    ///
    /// # Errors
    ///
    /// A provider has failed, or did not return in time.
    pub(super) async fn of_request(
        &self,
        operation: &ImportedOperation,
        context: &Context,
        deadline: Instant,
    ) -> Result<Cow<'_, Credentials>, HandlerError> {
        let mut credentials = Cow::Borrowed(&self.fixed);
        if self.providers.is_empty() {
            return Ok(credentials);
        }
        for scheme in operation.used_schemes(&|scheme| self.has(scheme)) {
            let Some(provider) = self.providers.get(scheme) else {
                continue;
            };
            let message = || format!("The credential {scheme:?} for the API could not be obtained");
            let provided = provider.credential(context.clone());
            let provided = timeout_at(deadline, provided)
                .await
                .map_err(|_| HandlerError::Tool(format!("{} in time (`timeout`)", message())))?;
            let credential = provided.map_err(|error| failed(context, message(), error))?;
            operation
                .check_credential(scheme, &credential)
                .map_err(|reason| failed(context, message(), reason.into()))?;
            let others = credentials.into_owned();
            credentials = Cow::Owned(others.with(scheme, credential));
        }
        Ok(credentials)
    }
}

//! Options of a caller that foreign code has authenticated.

use mcpline_protocol::vocabulary::JsonObject;

use crate::server::Caller;

use super::options_macro::options;

options! {
    /// A [`Caller`] from foreign code.
    #[derive(Debug, Default)]
    pub struct CallerOptions {
        issuer: Option<String>,
        subject: Option<String>,
        client_id: Option<String>,
        audience: Vec<String>,
        scopes: Vec<String>,
        expires_at: Option<u64>,
        key_thumbprint: Option<String>,
        claims: JsonObject,
    }
}

impl CallerOptions {
    /// Converts into the core's caller.
    pub fn authorized(self) -> Caller {
        let mut authorized = Caller::new()
            .with_audience(self.audience)
            .with_scopes(self.scopes)
            .with_claims(self.claims);
        if let Some(issuer) = self.issuer {
            authorized = authorized.with_issuer(issuer);
        }
        if let Some(subject) = self.subject {
            authorized = authorized.with_subject(subject);
        }
        if let Some(client_id) = self.client_id {
            authorized = authorized.with_client_id(client_id);
        }
        if let Some(expiry) = self.expires_at {
            authorized = authorized.with_expiry(expiry);
        }
        if let Some(thumbprint) = self.key_thumbprint {
            authorized = authorized.with_key_thumbprint(thumbprint);
        }
        authorized
    }
}

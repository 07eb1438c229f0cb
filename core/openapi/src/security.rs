//! Security schemes, and the credentials that an author has for them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::document::Document;
use crate::error::DocumentError;
use crate::operation::Operation;
use crate::reference::DocumentLocation;

/// A credential for one security scheme.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// An API key, or the token of a `bearer`, `oauth2` or `openIdConnect` scheme.
    Secret(String),
    /// User name and password of a `basic` scheme.
    Basic {
        /// The user name, without `:`.
        username: String,
        /// The password.
        password: String,
    },
}

/// Omits the secret.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "Secret(…)",
            Self::Basic { .. } => "Basic(…)",
        })
    }
}

/// Credentials, by the names of security schemes in `components.securitySchemes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials(BTreeMap<String, Credential>);

impl Credentials {
    /// Adds a credential.
    #[must_use]
    pub fn with(mut self, scheme: impl Into<String>, credential: Credential) -> Self {
        self.0.insert(scheme.into(), credential);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is one for a scheme.
    pub fn contains(&self, scheme: &str) -> bool {
        self.0.contains_key(scheme)
    }
}

/// A security scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub(crate) name: String,
    pub(crate) kind: SchemeKind,
}

impl Scheme {
    /// Checks that the scheme can have a credential.
    fn check_type(&self) -> Result<(), String> {
        match self.kind {
            SchemeKind::Other => Err("schemes of this type are not supported".to_owned()),
            _ => Ok(()),
        }
    }

    /// Checks that a credential has the form that the scheme needs. The error does not contain the value, which is secret.
    pub(crate) fn check(&self, credential: &Credential) -> Result<(), String> {
        self.check_type()?;
        let texts = match (&self.kind, credential) {
            (SchemeKind::Basic, Credential::Basic { username, password }) => {
                if username.contains(':') {
                    return Err("a user name cannot contain `:`".to_owned());
                }
                vec![username, password]
            }
            (SchemeKind::Basic, Credential::Secret(_)) => {
                return Err("the scheme needs a user name and a password".to_owned());
            }
            (_, Credential::Basic { .. }) => {
                return Err("the scheme needs one secret, such as a token".to_owned());
            }
            (_, Credential::Secret(secret)) if secret.is_empty() => {
                return Err("it is empty".to_owned());
            }
            (_, Credential::Secret(secret)) => vec![secret],
        };
        match texts.iter().any(|text| text.chars().any(char::is_control)) {
            true => Err("it contains a control character".to_owned()),
            false => Ok(()),
        }
    }
}

/// Finds the scheme of a credential.
fn known<'s>(schemes: &'s BTreeMap<String, Scheme>, name: &str) -> Result<&'s Scheme, String> {
    schemes.get(name).ok_or_else(|| {
        let known: Vec<_> = schemes.keys().map(|name| format!("{name:?}")).collect();
        format!(
            "the document has no such security scheme; it has {}",
            match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            }
        )
    })
}

fn credential_error(name: &str, reason: String) -> DocumentError {
    DocumentError::new(format!("credentials[{name:?}]"), reason)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemeKind {
    Header(String),
    Query(String),
    Cookie(String),
    Basic,
    Bearer,
    /// A scheme that no credential can be given for, such as `mutualTLS`.
    Other,
}

/// Where a request carries credentials.
#[derive(Default)]
pub(crate) struct RequestCredentials {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) cookies: Vec<(String, String)>,
}

impl Document {
    /// Checks that there is a scheme for each credential, and that it has the right form.
    ///
    /// # Errors
    ///
    /// A scheme does not exist, or takes another kind of credential; a value has characters that no header can have.
    pub fn check_credentials(&self, credentials: &Credentials) -> Result<(), DocumentError> {
        let schemes = self.schemes()?;
        for (name, credential) in &credentials.0 {
            let checked = known(&schemes, name).and_then(|scheme| scheme.check(credential));
            checked.map_err(|reason| credential_error(name, reason))?;
        }
        Ok(())
    }

    /// Checks that there is a scheme with this name, and that credentials can be given for it.
    ///
    /// # Errors
    ///
    /// It does not exist, or is of a type that is not supported.
    pub fn check_scheme(&self, name: &str) -> Result<(), DocumentError> {
        let schemes = self.schemes()?;
        let checked = known(&schemes, name).and_then(Scheme::check_type);
        checked.map_err(|reason| credential_error(name, reason))
    }

    fn schemes(&self) -> Result<BTreeMap<String, Scheme>, DocumentError> {
        let place = DocumentLocation::new(0, "/components/securitySchemes");
        let Some(Value::Object(schemes)) = self.at(&place) else {
            return Ok(BTreeMap::new());
        };
        let read = |name: &String| Ok((name.clone(), self.scheme(name, &place.child(name))?));
        schemes.keys().map(read).collect()
    }

    fn scheme(&self, name: &str, place: &DocumentLocation) -> Result<Scheme, DocumentError> {
        let (_, scheme) = self.object(place)?;
        let text = |member: &str| {
            scheme
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let kind = match text("type") {
            "apiKey" => {
                let key = text("name").to_owned();
                match text("in") {
                    "header" => SchemeKind::Header(key),
                    "query" => SchemeKind::Query(key),
                    "cookie" => SchemeKind::Cookie(key),
                    _ => SchemeKind::Other,
                }
            }
            "http" if text("scheme").eq_ignore_ascii_case("basic") => SchemeKind::Basic,
            "http" if text("scheme").eq_ignore_ascii_case("bearer") => SchemeKind::Bearer,
            "oauth2" | "openIdConnect" => SchemeKind::Bearer,
            _ => SchemeKind::Other,
        };
        Ok(Scheme {
            name: name.to_owned(),
            kind,
        })
    }

    /// Returns the alternatives of schemes that an operation requires; none if it requires none.
    pub(crate) fn security_of(
        &self,
        operation: &Operation,
    ) -> Result<Vec<Vec<Scheme>>, DocumentError> {
        let own = operation.place.child("security");
        let place = match self.at(&own) {
            Some(_) => own,
            None => DocumentLocation::new(0, "/security"),
        };
        let Some(Value::Array(alternatives)) = self.at(&place) else {
            return Ok(Vec::new());
        };
        let schemes = self.schemes()?;
        let mut all = Vec::new();
        for (index, alternative) in alternatives.iter().enumerate() {
            let names = alternative
                .as_object()
                .into_iter()
                .flat_map(|names| names.keys());
            let mut required = Vec::new();
            for name in names {
                let Some(scheme) = schemes.get(name) else {
                    let place = place.child(&index.to_string());
                    let reason = format!("there is no security scheme {name:?}");
                    return Err(self.error(&place, reason));
                };
                required.push(scheme.clone());
            }
            all.push(required);
        }
        Ok(all)
    }
}

/// Returns what the first alternative puts into a request that there are credentials for. Without one, the request is sent
/// as it is: the author may have set a header.
pub(crate) fn apply(alternatives: &[Vec<Scheme>], credentials: &Credentials) -> RequestCredentials {
    let mut applied = RequestCredentials::default();
    let is_available = |scheme: &str| credentials.contains(scheme);
    for scheme in first_available(alternatives, &is_available)
        .into_iter()
        .flatten()
    {
        let Some(credential) = credentials.0.get(&scheme.name) else {
            continue;
        };
        let authorization = |value: String| ("Authorization".to_owned(), value);
        match (&scheme.kind, credential) {
            (SchemeKind::Header(name), Credential::Secret(secret)) => {
                applied.headers.push((name.clone(), secret.clone()));
            }
            (SchemeKind::Query(name), Credential::Secret(secret)) => {
                applied.query.push((name.clone(), secret.clone()));
            }
            (SchemeKind::Cookie(name), Credential::Secret(secret)) => {
                applied.cookies.push((name.clone(), secret.clone()));
            }
            (SchemeKind::Bearer, Credential::Secret(secret)) => {
                applied
                    .headers
                    .push(authorization(format!("Bearer {secret}")));
            }
            (SchemeKind::Basic, Credential::Basic { username, password }) => {
                let encoded = STANDARD.encode(format!("{username}:{password}"));
                applied
                    .headers
                    .push(authorization(format!("Basic {encoded}")));
            }
            // `check_credentials` refuses the others.
            _ => {}
        }
    }
    applied
}

/// Returns the first alternative that there are credentials for. One without schemes is that of anonymous callers.
pub(crate) fn first_available<'s>(
    alternatives: &'s [Vec<Scheme>],
    is_available: &dyn Fn(&str) -> bool,
) -> Option<&'s Vec<Scheme>> {
    let is_met = |schemes: &&Vec<Scheme>| {
        let mut all = schemes.iter();
        !schemes.is_empty() && all.all(|scheme| is_available(&scheme.name))
    };
    alternatives.iter().find(is_met)
}

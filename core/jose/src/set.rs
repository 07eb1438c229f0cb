//! Key sets that authorization servers publish (RFC 7517, section 5).

use bytes::Bytes;
use serde_json::Value;

use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;

use crate::limits::{MAX_KEYS, MAX_SET_LEN};
use crate::{Algorithm, JoseError, Jwk};

/// How many keys are tried for a token without a `kid`.
const TRIED: usize = 8;

/// Public keys that may have signed a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<Jwk>,
}

impl JwkSet {
    /// A set of these keys.
    pub fn of(keys: impl IntoIterator<Item = Jwk>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
        }
    }

    /// Parses a published key set. Keys of an unsupported type or for another use are left out (RFC 7517, section 5),
    /// and so are invalid keys: one mistake should not lock out everyone.
    ///
    /// # Errors
    ///
    /// If it is not a JSON object with an array `keys`, has duplicate members anywhere, or exceeds [`MAX_SET_LEN`] or
    /// [`MAX_KEYS`].
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, JoseError> {
        let bytes = bytes.into();
        if bytes.len() > MAX_SET_LEN {
            return Err(JoseError::SetTooLong);
        }
        // The scan rejects duplicate members at any level.
        let set: JsonObject = Raw::parse(bytes)
            .map_err(|_| JoseError::MalformedSet("it is not JSON"))?
            .decode()
            .map_err(|_| JoseError::MalformedSet("it is not an object"))?;
        let Some(Value::Array(keys)) = set.get("keys") else {
            return Err(JoseError::MalformedSet("keys must be an array"));
        };
        if keys.len() > MAX_KEYS {
            return Err(JoseError::TooManyKeys);
        }
        let usable = keys
            .iter()
            .filter_map(|key| Jwk::parse(key.as_object()?).ok());
        Ok(Self::of(usable))
    }

    /// The usable keys.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Whether there is a key with this id.
    pub fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.key_id() == Some(id))
    }

    /// The keys that may have signed a token with this `kid` and `alg`. Ids need not be unique (RFC 7517, section 4.5).
    /// A key without an id is used for tokens whose id no other key has.
    pub fn find<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a Jwk> {
        let named = id.is_some_and(|id| self.has(id));
        self.keys
            .iter()
            .filter(move |key| match id {
                Some(id) if named => key.key_id() == Some(id),
                Some(_) => key.key_id().is_none(),
                None => true,
            })
            .filter(move |key| key.supports_algorithm(algorithm))
            .take(TRIED)
    }
}

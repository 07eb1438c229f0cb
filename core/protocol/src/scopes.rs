//! Sets of scopes (RFC 6749, section 3.3).

use std::fmt;

use crate::error::{ErrorCode, RpcError};

/// Unique scopes in the order in which they were named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// No scopes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a list separated by spaces, like a `scope` parameter. Invalid scope tokens are left out.
    pub fn parse(text: &str) -> Self {
        text.split(' ').collect()
    }

    /// Takes scopes that protect something: none may be left out silently.
    ///
    /// # Errors
    ///
    /// The first text that is not a valid scope token.
    pub fn checked<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let mut all = Self::default();
        for scope in scopes {
            let scope = scope.as_ref();
            if !is_scope(scope) {
                return Err(scope.to_owned());
            }
            all.insert(scope);
        }
        Ok(all)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of scopes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this scope is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|own| own == scope)
    }

    /// Whether all these scopes are in the set.
    pub fn contains_all(&self, others: &Self) -> bool {
        others.iter().all(|scope| self.contains(scope))
    }

    /// These scopes, then those of `others` that are new.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        self.iter().chain(others.iter()).collect()
    }

    /// Iterates over the scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds a scope, unless it is there already or invalid.
    pub fn insert(&mut self, scope: &str) {
        if is_scope(scope) && !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }
}

/// Visible ASCII except `"` and `\`: other characters in a scope could end the header or the parameter that it is sent
/// in.
fn is_scope(text: &str) -> bool {
    let allowed = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.bytes().all(allowed)
}

impl<S: AsRef<str>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        let mut all = Self::default();
        for scope in scopes {
            all.insert(scope.as_ref());
        }
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl serde::Serialize for Scopes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Scopes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

impl RpcError {
    /// An [`INSUFFICIENT_SCOPE`](ErrorCode::INSUFFICIENT_SCOPE), with the required scopes as data.
    pub fn insufficient_scope(needed: &Scopes) -> Self {
        Self::new(
            ErrorCode::INSUFFICIENT_SCOPE,
            format!("Insufficient scope: this needs {needed}"),
        )
        .with_data(&serde_json::json!({ "requiredScopes": needed.iter().collect::<Vec<_>>() }))
    }

    /// The scopes that an [`insufficient_scope`](Self::insufficient_scope) error names.
    pub fn required_scopes(&self) -> Option<Scopes> {
        let named = self.data.as_ref()?.member("requiredScopes")?;
        let named: Vec<String> = named.decode().ok()?;
        Some(named.iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_keeps_the_order_and_names_each_once() {
        let union =
            Scopes::parse("files:read profile").union(&Scopes::parse("files:write profile"));
        assert_eq!(union.to_string(), "files:read profile files:write");
        assert!(union.contains_all(&Scopes::parse("profile files:write")));
        assert!(!union.contains_all(&Scopes::parse("admin")));
    }

    #[test]
    fn rejects_scopes_that_could_break_a_header() {
        let scopes = Scopes::parse("good  a\"b c\\d tab\there line\nfeed é");
        assert_eq!(scopes.to_string(), "good");
        assert_eq!(
            Scopes::checked(["good", "two words"]),
            Err("two words".into())
        );
        assert_eq!(Scopes::checked([""]), Err(String::new()));
        assert_eq!(Scopes::checked(["good", "good"]), Ok(Scopes::parse("good")));
    }
}

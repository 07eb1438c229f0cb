//! Token claims and their validation (RFC 7519, section 4; RFC 9068; RFC 7662, section 2.2).
//!
//! A signature proves who made a token. Its claims say whether it may be used here and now, and each of them has to be
//! checked against something that doesn't come from the token (OAuth 2.1, section 5.2; RFC 8707; every revision since
//! 2025-06-18, `basic/authorization`, token handling).

use serde_json::Value;

use mcpline_protocol::vocabulary::JsonObject;

use mcpline_protocol::Scopes;

/// What a token's claims must match to be accepted.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequirements<'e> {
    /// Accepted issuers. If empty, any issuer is accepted, because the keys identify it.
    pub issuers: &'e [String],
    /// Accepted audiences: a token's audience must contain one of them.
    pub audiences: &'e [String],
    /// Allowed clock skew between issuer and server, in seconds.
    pub skew: u64,
    /// The current time, in seconds since 1970.
    pub now: u64,
}

/// Why a token with a valid signature is rejected. Contains nothing of what the token holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// A claim has a wrong type.
    #[error("the token's claim {0} is malformed")]
    Malformed(&'static str),
    /// It was issued by another issuer, or names none.
    #[error("the token was issued by another authorization server, or its `iss` is missing")]
    Issuer,
    /// It is for another audience, or names none (RFC 8707, RFC 9068, section 4).
    #[error("the token was issued for another resource, or its `aud` is missing")]
    Audience,
    /// It has no expiry.
    #[error("the token has no expiry (`exp`)")]
    NoExpiry,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not valid yet, or the clock of its issuer is ahead.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It is not an access token (RFC 8725, section 3.11).
    #[error("the token is not an access token (`typ`)")]
    NotAccessToken,
    /// It is bound to something whose possession can't be proven here (RFC 8705).
    #[error("the token's binding (`cnf`) is not supported: only DPoP (`jkt`) is")]
    Binding,
}

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Claims {
    /// `iss`: who issued it.
    pub issuer: Option<String>,
    /// `sub`: the user or client that it is about.
    pub subject: Option<String>,
    /// `client_id`, or `azp`: the client that it was issued to.
    pub client_id: Option<String>,
    /// `aud`: the resources that it is for.
    pub audience: Vec<String>,
    /// `exp`: when it expires, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// `nbf`: when it becomes valid.
    pub not_before: Option<u64>,
    /// `iat`: when it was issued.
    pub issued_at: Option<u64>,
    /// `scope`, or `scp`: what it grants.
    pub scopes: Scopes,
    /// `cnf.jkt`: the thumbprint of the key whose possession must be proven (RFC 9449, section 6).
    pub key_thumbprint: Option<String>,
    /// All claims.
    pub all: JsonObject,
}

impl Claims {
    /// Reads the claims that this crate understands.
    ///
    /// # Errors
    ///
    /// If a claim has a wrong type, or the token is bound to something other than a key (`cnf` without `jkt`).
    pub fn read(all: JsonObject) -> Result<Self, ClaimError> {
        let client_id = text(&all, "client_id")?;
        let client_id = match client_id {
            Some(client_id) => Some(client_id),
            None => text(&all, "azp")?,
        };
        Ok(Self {
            issuer: text(&all, "iss")?,
            subject: text(&all, "sub")?,
            client_id,
            audience: texts(&all, "aud", None)?,
            expires_at: time(&all, "exp")?,
            not_before: time(&all, "nbf")?,
            issued_at: time(&all, "iat")?,
            // Some issuers send a list where a string is required, and `scp` in place of `scope`.
            scopes: texts(&all, "scope", Some(' '))?
                .into_iter()
                .chain(texts(&all, "scp", Some(' '))?)
                .collect(),
            key_thumbprint: key_thumbprint(&all)?,
            all,
        })
    }

    /// Validates the claims of a signed token, which must expire.
    ///
    /// # Errors
    ///
    /// The first rule that the token breaks.
    pub fn check(&self, expected: &ClaimRequirements<'_>) -> Result<(), ClaimError> {
        self.check_issuer(expected)?;
        self.check_audience(expected)?;
        if self.expires_at.is_none() {
            return Err(ClaimError::NoExpiry);
        }
        self.check_time(expected)
    }

    /// Checks the issuer. Issuers are compared character by character (RFC 9207, section 2.4).
    ///
    /// # Errors
    ///
    /// [`ClaimError::Issuer`]
    pub fn check_issuer(&self, expected: &ClaimRequirements<'_>) -> Result<(), ClaimError> {
        let known = self
            .issuer
            .as_ref()
            .is_some_and(|issuer| expected.issuers.contains(issuer));
        if known || expected.issuers.is_empty() {
            Ok(())
        } else {
            Err(ClaimError::Issuer)
        }
    }

    /// Checks the audience.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Audience`]
    pub fn check_audience(&self, expected: &ClaimRequirements<'_>) -> Result<(), ClaimError> {
        let ours = |audience: &String| expected.audiences.iter().any(|own| same(own, audience));
        if self.audience.iter().any(ours) {
            Ok(())
        } else {
            Err(ClaimError::Audience)
        }
    }

    /// Checks that the token is valid now, by those of `exp`, `nbf` and `iat` that are present.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Expired`], [`ClaimError::NotYetValid`]
    pub fn check_time(&self, expected: &ClaimRequirements<'_>) -> Result<(), ClaimError> {
        let ClaimRequirements { now, skew, .. } = *expected;
        if self
            .expires_at
            .is_some_and(|expiry| now >= expiry.saturating_add(skew))
        {
            return Err(ClaimError::Expired);
        }
        let begins = self.not_before.max(self.issued_at);
        if begins.is_some_and(|begin| begin > now.saturating_add(skew)) {
            return Err(ClaimError::NotYetValid);
        }
        Ok(())
    }
}

/// Checks that a token's `typ` is not that of another kind of token, such as a proof, a logout token or an event. ID
/// tokens mostly don't set it; their audience is the client.
///
/// # Errors
///
/// [`ClaimError::NotAccessToken`]
pub fn check_typ(kind: Option<&str>) -> Result<(), ClaimError> {
    match kind {
        None => Ok(()),
        Some(kind) if kind.eq_ignore_ascii_case("at+jwt") || kind.eq_ignore_ascii_case("JWT") => {
            Ok(())
        }
        Some(_) => Err(ClaimError::NotAccessToken),
    }
}

/// Whether two resources are the same. For a URL, scheme and host are case-insensitive (2025-06-18,
/// `basic/authorization`, canonical server URI), and a missing path equals an empty one (RFC 3986, section 6.2.3). Any
/// other name is case-sensitive, but a trailing slash is ignored because some issuers add one.
fn same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Some(one), Some(other)) = (resource_parts(one), resource_parts(other)) else {
        return same_but_for_slash(one, other);
    };
    one.0.eq_ignore_ascii_case(other.0) && one.1.eq_ignore_ascii_case(other.1) && one.2 == other.2
}

/// Whether two names without a path are equal except for a trailing slash.
fn same_but_for_slash(one: &str, other: &str) -> bool {
    let one = one.strip_suffix('/').unwrap_or(one);
    let other = other.strip_suffix('/').unwrap_or(other);
    let rest = one.split_once("://").map_or(one, |(_, rest)| rest);
    one == other && !rest.contains('/')
}

/// Splits a web address into scheme, authority, and path with query and fragment; an empty path gives an empty string.
fn resource_parts(text: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // User information before an `@` is case-sensitive.
    let is_plain = is_web && !place.contains('@');
    is_plain.then_some((scheme, place, if path == "/" { "" } else { path }))
}

fn text(claims: &JsonObject, name: &'static str) -> Result<Option<String>, ClaimError> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ClaimError::Malformed(name)),
    }
}

/// A string, or a list of strings.
fn texts(
    claims: &JsonObject,
    name: &'static str,
    separator: Option<char>,
) -> Result<Vec<String>, ClaimError> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(match separator {
            Some(separator) => text.split(separator).map(str::to_owned).collect(),
            None => vec![text.clone()],
        }),
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| entry.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or(ClaimError::Malformed(name)),
        Some(_) => Err(ClaimError::Malformed(name)),
    }
}

/// A time in seconds since 1970, possibly with a fraction (RFC 7519, section 2).
fn time(claims: &JsonObject, name: &'static str) -> Result<Option<u64>, ClaimError> {
    let malformed = ClaimError::Malformed(name);
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match (number.as_u64(), number.as_f64()) {
            (Some(seconds), _) => Ok(Some(seconds)),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between zero and the year 292 billion"
            )]
            (None, Some(seconds)) if (0.0..9e18).contains(&seconds) => Ok(Some(seconds as u64)),
            _ => Err(malformed),
        },
        Some(_) => Err(malformed),
    }
}

fn key_thumbprint(claims: &JsonObject) -> Result<Option<String>, ClaimError> {
    match claims.get("cnf") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(cnf)) => match cnf.get("jkt") {
            Some(Value::String(thumbprint)) => Ok(Some(thumbprint.clone())),
            _ => Err(ClaimError::Binding),
        },
        Some(_) => Err(ClaimError::Malformed("cnf")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn read(claims: &Value) -> Result<Claims, ClaimError> {
        Claims::read(claims.as_object().expect("an object").clone())
    }

    fn validate(change: impl FnOnce(&mut Value)) -> Result<(), ClaimError> {
        let mut claims = json!({
            "iss": "https://issuer.example",
            "aud": "https://mcp.example.com/mcp",
            "exp": NOW + 10,
        });
        change(&mut claims);
        read(&claims)?.check(&ClaimRequirements {
            issuers: &["https://issuer.example".to_owned()],
            audiences: &["https://mcp.example.com/mcp".to_owned()],
            skew: 60,
            now: NOW,
        })
    }

    #[test]
    fn accepts_valid_token_of_expected_issuer_and_audience() {
        assert_eq!(validate(|_| {}), Ok(()));
        let several = json!(["https://other.example", "https://mcp.example.com/mcp"]);
        assert_eq!(validate(|claims| claims["aud"] = several), Ok(()));
    }

    #[test]
    fn rejects_tokens_of_similar_issuers() {
        for issuer in [
            json!("https://issuer.example/"),
            json!("https://Issuer.example"),
            json!("http://issuer.example"),
            json!(""),
            Value::Null,
        ] {
            let result = validate(|claims| claims["iss"] = issuer);
            assert_eq!(result, Err(ClaimError::Issuer));
        }
    }

    #[test]
    fn rejects_tokens_for_another_audience_or_none() {
        for audience in [
            json!("https://mcp.example.com"),
            json!("https://mcp.example.com/mcp/"),
            json!("https://mcp.example.com/mcp2"),
            json!("https://mcp.example.com/MCP"),
            json!("http://mcp.example.com/mcp"),
            json!("https://mcp.example.com:8443/mcp"),
            json!("https://a@mcp.example.com/mcp"),
            json!(["https://other.example"]),
            json!([]),
            Value::Null,
        ] {
            let result = validate(|claims| claims["aud"] = audience);
            assert_eq!(result, Err(ClaimError::Audience));
        }
    }

    #[test]
    fn scheme_and_host_of_an_audience_may_be_in_upper_case() {
        let audience = json!("HTTPS://MCP.Example.com/mcp");
        assert_eq!(validate(|claims| claims["aud"] = audience), Ok(()));
        assert!(!same("api://Client", "api://client"));
        assert!(!same("HTTPS://me@example.com", "https://Me@example.com"));
    }

    #[test]
    fn resource_without_a_path_may_end_with_a_slash() {
        assert!(same("https://mcp.example.com", "https://mcp.example.com/"));
        assert!(same("https://mcp.example.com/", "https://mcp.example.com"));
        assert!(!same(
            "https://mcp.example.com/a",
            "https://mcp.example.com/a/"
        ));
        assert!(!same(
            "https://mcp.example.com",
            "https://mcp.example.com//"
        ));
    }

    #[test]
    fn audience_that_is_not_a_web_address_may_end_with_a_slash() {
        assert!(same("api://my-client", "api://my-client/"));
        assert!(same("api://my-client/", "api://my-client"));
        assert!(same("my-api", "my-api/"));
        assert!(same("my-api/", "my-api"));
        assert!(!same("api://my-client", "api://My-Client/"));
        assert!(!same("my-api", "My-API/"));
        assert!(!same("api://my-client", "api://my-client//"));
        assert!(!same("api://my-client/a", "api://my-client/a/"));
        assert!(!same("my-api", "api://my-api/"));
    }

    #[test]
    fn checks_expiry_and_not_before_with_clock_skew() {
        let at = |name: &str, time: Value| validate(|claims| claims[name] = time);
        assert_eq!(at("exp", json!(NOW - 59)), Ok(()));
        assert_eq!(at("exp", json!(NOW - 60)), Err(ClaimError::Expired));
        assert_eq!(at("exp", json!(0)), Err(ClaimError::Expired));
        assert_eq!(at("exp", Value::Null), Err(ClaimError::NoExpiry));
        assert_eq!(at("nbf", json!(NOW + 60)), Ok(()));
        assert_eq!(at("nbf", json!(NOW + 61)), Err(ClaimError::NotYetValid));
        assert_eq!(at("iat", json!(NOW + 61)), Err(ClaimError::NotYetValid));
        assert_eq!(at("exp", json!(1_800_000_001.5)), Ok(()));
        assert_eq!(at("exp", json!(u64::MAX)), Ok(()));
    }

    #[test]
    fn claims_of_a_wrong_type_are_refused() {
        for (name, value) in [
            ("exp", json!("1800000010")),
            ("exp", json!(-1)),
            ("exp", json!(1e300)),
            ("nbf", json!([])),
            ("iat", json!(true)),
            ("iss", json!(["https://issuer.example"])),
            ("sub", json!(7)),
            ("aud", json!({})),
            ("aud", json!(["https://mcp.example.com/mcp", 7])),
            ("scope", json!(7)),
            ("cnf", json!("x")),
        ] {
            let result = validate(|claims| claims[name] = value);
            assert_eq!(result, Err(ClaimError::Malformed(name)), "{name}");
        }
    }

    #[test]
    fn rejects_tokens_with_unsupported_binding() {
        let bound = json!({ "x5t#S256": "AAAA" });
        assert_eq!(
            validate(|claims| claims["cnf"] = bound),
            Err(ClaimError::Binding)
        );
    }

    #[test]
    fn reads_scopes_in_every_form_that_issuers_use() {
        let scopes = |claims: Value| read(&claims).expect("claims").scopes.to_string();
        assert_eq!(scopes(json!({ "scope": "a b" })), "a b");
        assert_eq!(scopes(json!({ "scope": ["a", "b"] })), "a b");
        assert_eq!(scopes(json!({ "scp": "a b" })), "a b");
        assert_eq!(scopes(json!({ "scp": ["a"], "scope": "b a" })), "b a");
        assert_eq!(scopes(json!({})), "");
    }

    #[test]
    fn rejects_other_kinds_of_tokens() {
        for kind in [
            None,
            Some("at+jwt"),
            Some("AT+JWT"),
            Some("JWT"),
            Some("jwt"),
        ] {
            assert_eq!(check_typ(kind), Ok(()));
        }
        for kind in [
            "dpop+jwt",
            "logout+jwt",
            "secevent+jwt",
            "token-introspection+jwt",
            "",
        ] {
            assert_eq!(check_typ(Some(kind)), Err(ClaimError::NotAccessToken));
        }
    }
}

//! Names of secrets: of members of JSON objects, headers, variables and query parameters.

/// Names whose values are not shown: those that end so, also in the plural, without regard to case and to characters other
/// than letters and digits. The guides list them.
const ENDINGS: [&str; 20] = [
    "accesskey",
    "apikey",
    "auth",
    "authorization",
    "codeverifier",
    "connectionstring",
    "cookie",
    "credential",
    "encryptionkey",
    "jwt",
    "otp",
    "passcode",
    "passphrase",
    "privatekey",
    "pwd",
    "requeststate",
    "signingkey",
    "token",
    "tokenhash",
    "tokenvalue",
];

/// Names that contain one of these are secret as well: `password2`, `secret_key`.
const PARTS: [&str; 3] = ["passwd", "password", "secret"];

/// Short names, which many other words end with: `pin` and `spin`.
const WHOLE: [&str; 3] = ["bearer", "pass", "pin"];

/// A member of the protocol that ends like a secret and is none.
const PROGRESS_TOKEN: &str = "progresstoken";

/// Whether a value belongs to a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Public,
    /// Also the name of a count, such as `tokens`: secret if the value contains a text.
    SecretText,
    Secret,
}

/// Returns whether the values of this name are secret.
pub(crate) fn secrecy(name: &str) -> Secrecy {
    let name: String = name
        .chars()
        .filter(|char| char.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let ends = ENDINGS.iter().any(|ending| singular.ends_with(ending)) && name != PROGRESS_TOKEN;
    let without_titles = name.replace("secretar", "");
    let contains = PARTS.iter().any(|part| without_titles.contains(part));
    if ends && name.ends_with("tokens") && !contains {
        Secrecy::SecretText
    } else if ends || contains || WHOLE.contains(&singular) || WHOLE.contains(&name.as_str()) {
        Secrecy::Secret
    } else {
        Secrecy::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_names_of_secrets_are_known() {
        for name in [
            "access_token",
            "api key",
            "api.key",
            "api/key",
            "apiKeys",
            "api\u{200b}key",
            "Authorization",
            "auth",
            "bearer",
            "clientSecret",
            "code_verifier",
            "connection_string",
            "db-passwords",
            "encryption_key",
            "jwt",
            "otp",
            "pass",
            "passcode",
            "password2",
            "passwordHash",
            "password_confirmation",
            "pin",
            "requestState",
            "secret",
            "secretKey",
            "secret_key",
            "secrets",
            "Set-Cookie",
            "signing_key",
            "token_value",
            "X-API-KEY",
        ] {
            assert_eq!(secrecy(name), Secrecy::Secret, "{name}");
        }
        for name in ["tokens", "accessTokens", "max_tokens"] {
            assert_eq!(secrecy(name), Secrecy::SecretText, "{name}");
        }
    }

    #[test]
    fn other_names_are_public() {
        for name in [
            "",
            "author",
            "compass",
            "key",
            "name",
            "nextCursor",
            "progressToken",
            "secretary",
            "shipping",
            "spin",
            "tokenUrl",
            "token_type",
            "tokenizer",
            "undersecretaries",
        ] {
            assert_eq!(secrecy(name), Secrecy::Public, "{name}");
        }
    }
}

//! `WWW-Authenticate` challenges (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section 5.1; RFC 9449,
//! section 7.1).

use std::fmt::Write as _;

/// The longest header that is read: challenges are short, so a longer one can be ignored.
const MAX_HEADER: usize = 16 * 1024;

/// One challenge: a scheme and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// The scheme as written, such as `Bearer`, `DPoP` or `Basic`.
    pub scheme: String,
    /// Names in lower case and unquoted values, in their original order.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge without parameters.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self {
            scheme: scheme.into(),
            parameters: Vec::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// The value of a parameter; the first one if it is repeated.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the scheme is this one, ignoring case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Parses the challenges of a header; join several headers with commas. Malformed parts are skipped: a server with
    /// a garbled header still rejected the request.
    pub fn read(header: &str) -> Vec<Self> {
        let mut reader = Reader {
            rest: header
                .get(..MAX_HEADER.min(header.len()))
                .unwrap_or_default(),
        };
        let mut challenges: Vec<Self> = Vec::new();
        loop {
            reader.skip(|c| c == ',' || c.is_ascii_whitespace());
            let Some(word) = reader.token() else {
                // Neither a scheme nor a parameter: skip to the next comma.
                match reader.rest.find(',') {
                    Some(comma) => reader.rest = &reader.rest[comma..],
                    None => return challenges,
                }
                continue;
            };
            let before = reader.rest;
            reader.skip(|c| c.is_ascii_whitespace());
            match (reader.rest.strip_prefix('='), challenges.last_mut()) {
                (Some(value), Some(challenge)) if !value.starts_with('=') => {
                    reader.rest = value;
                    reader.skip(|c| c.is_ascii_whitespace());
                    if let Some(value) = reader.value() {
                        let name = word.to_ascii_lowercase();
                        challenge.parameters.push((name, value));
                    }
                }
                _ => {
                    reader.rest = before;
                    reader.token68();
                    challenges.push(Self::new(word));
                }
            }
        }
    }

    /// The header's value. Invalid characters are left out, so that no foreign text can end the header or the
    /// parameter.
    pub fn to_header(&self) -> String {
        let mut header = self.scheme.clone();
        for (number, (name, value)) in self.parameters.iter().enumerate() {
            let separator = if number == 0 { " " } else { ", " };
            let _ = write!(header, "{separator}{name}=\"");
            for c in value.chars() {
                match c {
                    '"' | '\\' => {
                        header.push('\\');
                        header.push(c);
                    }
                    ' '..='~' => header.push(c),
                    _ => {}
                }
            }
            header.push('"');
        }
        header
    }
}

struct Reader<'h> {
    rest: &'h str,
}

impl<'h> Reader<'h> {
    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    fn token(&mut self) -> Option<&'h str> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let end = self.rest.bytes().position(|byte| !is_token(byte));
        let (token, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Skips the token68 that some schemes have in place of parameters: `Negotiate abc==`.
    fn token68(&mut self) {
        let rest = self.rest.trim_start_matches(' ');
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let value = word.trim_end_matches('=');
        let alone = after.trim_start().is_empty() || after.trim_start().starts_with(',');
        if !value.is_empty() && !value.contains(['=', '"']) && alone {
            self.rest = after;
        }
    }

    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            // Some servers leave out the quotes of URLs.
            let end = self.rest.find([',', ' ', '\t']).unwrap_or(self.rest.len());
            let (value, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(value.to_owned());
        };
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                _ => value.push(c),
            }
        }
        self.rest = "";
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_bearer_challenge_are_read() {
        let header = "Bearer error=\"insufficient_scope\",\n  scope=\"files:read files:write\", \
                      Resource_Metadata = \"https://mcp.example.com/.well-known/oauth-protected-resource\", \
                      error_description=\"say \\\"please\\\"\"";
        let challenges = Challenge::read(header);
        assert_eq!(challenges.len(), 1);
        let challenge = &challenges[0];
        assert!(challenge.is("bearer"));
        assert_eq!(challenge.get("scope"), Some("files:read files:write"));
        assert_eq!(challenge.get("error_description"), Some("say \"please\""));
        assert_eq!(
            challenge.get("resource_metadata"),
            Some("https://mcp.example.com/.well-known/oauth-protected-resource")
        );
        assert_eq!(challenge.get("realm"), None);
    }

    #[test]
    fn separates_several_challenges() {
        let header = "Negotiate abc==, Basic realm=\"a, b\", DPoP algs=\"ES256\", error=use_dpop_nonce, Bearer";
        let challenges = Challenge::read(header);
        let schemes: Vec<_> = challenges.iter().map(|one| one.scheme.as_str()).collect();
        assert_eq!(schemes, ["Negotiate", "Basic", "DPoP", "Bearer"]);
        assert_eq!(challenges[1].get("realm"), Some("a, b"));
        assert_eq!(challenges[2].get("error"), Some("use_dpop_nonce"));
    }

    #[test]
    fn garbled_headers_are_read_as_far_as_they_can_be() {
        for header in [
            "",
            ",,,",
            "=",
            "Bearer scope=\"never ends",
            "\u{1F512}",
            "Bearer =, x",
            "\"\"\"",
        ] {
            for challenge in Challenge::read(header) {
                assert_eq!(challenge.get("scope"), None, "{header}");
            }
        }
        let challenges = Challenge::read("\u{1F512}, Bearer scope=a");
        assert_eq!(challenges[0].get("scope"), Some("a"));
    }

    #[test]
    fn written_challenges_round_trip_and_cannot_inject_parameters() {
        let evil = "x\r\nSet-Cookie: a=b\", scope=\"admin\\";
        let written = Challenge::new("Bearer")
            .with("error", "invalid_token")
            .with("error_description", evil)
            .to_header();
        assert!(!written.contains(['\r', '\n']), "{written}");
        let read = Challenge::read(&written);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].get("scope"), None);
        assert_eq!(
            read[0].get("error_description"),
            Some("xSet-Cookie: a=b\", scope=\"admin\\")
        );
    }
}

//! Configuration files of hosts: the server that one entry of `mcp.json` describes.
//!
//! The format has no specification. Read here is what the common hosts write: the object `mcpServers`, or VS Code's
//! `servers`, with comments and trailing commas, and variables of the environment in its strings.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;

use super::address::Address;

/// Maximum length of a configuration file in bytes: those of hosts have some KB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A server as a configuration file describes it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfiguredServer {
    /// A program to start.
    #[non_exhaustive]
    Program {
        /// Path of the program, or a name to look up in `PATH`.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Environment variables in addition to those that it inherits.
        env: Vec<(String, String)>,
        /// Its working directory, or that of this process.
        cwd: Option<String>,
    },
    /// A URL.
    #[non_exhaustive]
    Url {
        /// The URL.
        url: String,
        /// Headers for every request.
        headers: Vec<(String, String)>,
    },
}

/// Omits what may be secret: the environment and the values of headers.
impl std::fmt::Debug for ConfiguredServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { program, .. } => f
                .debug_struct("Program")
                .field("program", program)
                .finish_non_exhaustive(),
            Self::Url { .. } => f.debug_struct("Url").finish_non_exhaustive(),
        }
    }
}

impl ConfiguredServer {
    /// Reads a server from a configuration file. This blocks the thread for the time of reading a file.
    ///
    /// `name` selects one of several servers. The file has the object `mcpServers`, or `servers` as VS Code writes it. A
    /// server has `command` with `args`, `env` and `cwd`, or `url` with `headers`; `type`, if present, is `stdio`,
    /// `http`, `streamable-http` or `sse`. In these strings `${NAME}` and `${env:NAME}` stand for a variable of this
    /// process's environment, and `${NAME:-text}` for `text` if it is not set. Relative paths are relative to the working
    /// directory of this process. Members that only hosts use are ignored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the file cannot be read or has another form; there is no such
    /// server, or there are several and `name` is `None`; the server is disabled; a variable is not set; or a string needs
    /// a value that only the file's host knows, such as `${input:token}`.
    pub fn read(path: impl AsRef<Path>, name: Option<&str>) -> Result<Self, Error> {
        let path = path.as_ref();
        let named = |reason: &dyn std::fmt::Display| {
            Error::usage(format!("configuration {}: {reason}", path.display()))
        };
        let text = read_text(path).map_err(|error| named(&error))?;
        let environment = |name: &str| std::env::var(name).ok();
        Self::parse(&text, name, &environment).map_err(|reason| named(&reason))
    }

    fn parse(
        text: &str,
        name: Option<&str>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let json = without_comments(text.trim_start_matches('\u{feff}'));
        let file: ConfigFile = serde_json::from_str(&json).map_err(|error| {
            // The texts of other errors contain values, which may be secrets.
            match error.is_data() {
                true => "has another form: it must be an object whose `mcpServers` or `servers` is an object".into(),
                false => error.to_string(),
            }
        })?;
        let servers = match (file.mcp_servers, file.servers) {
            (Some(servers), None) | (None, Some(servers)) => servers,
            (Some(_), Some(_)) => {
                return Err("has both `mcpServers` and `servers`: keep one of them".to_owned());
            }
            (None, None) => return Err("has neither `mcpServers` nor `servers`".to_owned()),
        };
        let (name, entry) = select(&servers, name)?;
        check_form(entry)
            .and_then(|()| Entry::deserialize(entry).map_err(|error| error.to_string()))
            .and_then(|entry| entry.server(environment))
            .map_err(|reason| format!("server {name:?}: {reason}"))
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): this build lacks the feature of the transport: `stdio` or `http`.
    pub fn address(self) -> Result<Address, Error> {
        match self {
            #[cfg(feature = "stdio")]
            Self::Program {
                program,
                arguments,
                env,
                cwd,
            } => {
                let mut command = super::Command::new(program).args(arguments);
                for (name, value) in env {
                    command = command.env(name, value);
                }
                if let Some(directory) = cwd {
                    command = command.current_dir(directory);
                }
                Ok(Address::Command(command))
            }
            #[cfg(feature = "http")]
            Self::Url { url, headers } => {
                let settings = super::HttpSettings {
                    headers,
                    ..super::HttpSettings::default()
                };
                Ok(Address::Url(url, settings))
            }
            #[cfg(not(all(feature = "stdio", feature = "http")))]
            _ => Err(Error::usage(
                "this build lacks the transport of the configured server: enable the feature `stdio` for programs, or `http` for URLs",
            )),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigFile {
    mcp_servers: Option<Map<String, Value>>,
    servers: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type")]
    transport: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Map<String, Value>,
    env_file: Option<Value>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
}

/// Reads a file, which is a few KB long in practice. A limit, because a path may lead to something endless.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE_BYTES {
        true => Err(std::io::Error::other(format!(
            "is longer than {MAX_FILE_BYTES} bytes"
        ))),
        false => Ok(text),
    }
}

/// Says which member of a server's entry has another type. Errors of the decoder would show its value, which may be a secret.
fn check_form(entry: &Value) -> Result<(), String> {
    let members = entry.as_object().ok_or("must be an object")?;
    let is_text_list = |value: &Value| {
        let items = value.as_array();
        items.is_some_and(|items| items.iter().all(Value::is_string))
    };
    for (name, value) in members {
        let (fits, form) = match name.as_str() {
            "type" | "command" | "cwd" | "url" => {
                (value.is_string() || value.is_null(), "a string")
            }
            "args" => (is_text_list(value), "a list of strings"),
            "env" | "headers" => (value.is_object(), "an object"),
            _ => continue,
        };
        if !fits {
            return Err(format!("`{name}` must be {form}"));
        }
    }
    Ok(())
}

/// Returns the server with this name, or the only one that is not disabled.
fn select<'a>(
    servers: &'a Map<String, Value>,
    name: Option<&'a str>,
) -> Result<(&'a str, &'a Value), String> {
    let is_disabled = |entry: &Value| entry.get("disabled") == Some(&Value::Bool(true));
    let enabled = || servers.iter().filter(|(_, entry)| !is_disabled(entry));
    let names = || {
        let names: Vec<_> = enabled().map(|(name, _)| format!("{name:?}")).collect();
        names.join(", ")
    };
    if let Some(name) = name {
        return match servers.get(name) {
            Some(entry) if is_disabled(entry) => Err(format!("server {name:?} is disabled")),
            Some(entry) => Ok((name, entry)),
            None => Err(format!("has no server {name:?}; there are: {}", names())),
        };
    }
    let mut candidates = enabled();
    match (candidates.next(), candidates.next()) {
        (Some((name, entry)), None) => Ok((name, entry)),
        (None, _) => Err("has no enabled server".to_owned()),
        (Some(_), Some(_)) => Err(format!(
            "has several servers, name one of them: {}",
            names()
        )),
    }
}

impl Entry {
    fn server(
        self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ConfiguredServer, String> {
        let expand = |what: &str, text: &str| {
            expanded(text, environment).map_err(|reason| format!("`{what}`: {reason}"))
        };
        let is_program = match (&self.command, &self.url) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => return Err("must have either `command` or `url`".to_owned()),
        };
        match (self.transport.as_deref(), is_program) {
            (None | Some("stdio"), true) => {}
            (None | Some("http" | "streamable-http" | "streamableHttp" | "sse"), false) => {}
            (Some(transport), _) => {
                return Err(format!(
                    "`type` is {transport:?}: with `command` it is \"stdio\", with `url` \"http\" or \"sse\""
                ));
            }
        }
        if self.env_file.is_some_and(|file| !file.is_null()) {
            return Err(
                "`envFile` is not supported: name the variables in `env`, or set them in this process"
                    .to_owned(),
            );
        }
        if let Some(program) = self.command {
            let arguments = self.args.iter().map(|argument| expand("args", argument));
            return Ok(ConfiguredServer::Program {
                program: expand("command", &program)?,
                arguments: arguments.collect::<Result<_, _>>()?,
                env: pairs("env", &self.env, expand)?,
                cwd: self.cwd.map(|cwd| expand("cwd", &cwd)).transpose()?,
            });
        }
        Ok(ConfiguredServer::Url {
            url: expand("url", &self.url.unwrap_or_default())?,
            headers: pairs("headers", &self.headers, expand)?,
        })
    }
}

/// Returns the pairs of an object whose values are texts or numbers; `null` leaves a name out.
fn pairs(
    what: &str,
    object: &Map<String, Value>,
    expand: impl Fn(&str, &str) -> Result<String, String>,
) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::with_capacity(object.len());
    for (name, value) in object {
        let place = format!("{what}.{name}");
        let value = match value {
            Value::String(text) => expand(&place, text)?,
            Value::Number(number) => number.to_string(),
            Value::Null => continue,
            _ => return Err(format!("`{place}` must be a string")),
        };
        pairs.push((name.clone(), value));
    }
    Ok(pairs)
}

/// Replaces the variables in a text.
fn expanded(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let (inner, after) = after
            .split_once('}')
            .ok_or("a variable `${…}` has no closing brace")?;
        let reference = inner.strip_prefix("env:").unwrap_or(inner);
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let is_name = |(index, byte): (usize, u8)| {
            byte == b'_' || byte.is_ascii_alphabetic() || (index > 0 && byte.is_ascii_digit())
        };
        if name.is_empty() || !name.bytes().enumerate().all(is_name) {
            return Err(format!(
                "`${{{inner}}}` is not an environment variable: only the application that the file was written for can resolve it; write the value, or `${{env:NAME}}`"
            ));
        }
        match (environment(name), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!("the environment variable {name} is not set"));
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Replaces comments and trailing commas, which JSON does not have and editors write, by spaces, so that errors name the
/// place in the file.
fn without_comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut at = 0;
    let mut last_comma = None;
    let blank = |out: &mut [u8]| {
        for byte in out {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    };
    while at < out.len() {
        let end = match &out[at..] {
            [b'"', ..] => {
                last_comma = None;
                end_of_string(&out, at)
            }
            [b'/', b'/', ..] => {
                let line = out[at..].iter().position(|byte| *byte == b'\n');
                let end = line.map_or(out.len(), |length| at + length);
                blank(&mut out[at..end]);
                end
            }
            [b'/', b'*', ..] => {
                let close = out[at + 2..].windows(2).position(|pair| pair == b"*/");
                let end = close.map_or(out.len(), |length| at + 2 + length + 2);
                blank(&mut out[at..end]);
                end
            }
            [b',', ..] => {
                last_comma = Some(at);
                at + 1
            }
            [b'}' | b']', ..] => {
                if let Some(comma) = last_comma.take() {
                    out[comma] = b' ';
                }
                at + 1
            }
            [byte, ..] => {
                if !byte.is_ascii_whitespace() {
                    last_comma = None;
                }
                at + 1
            }
            [] => break,
        };
        at = end;
    }
    // Only whole comments and commas were replaced, by ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the place after the string that begins at `at`.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, name: Option<&str>) -> Result<ConfiguredServer, String> {
        let environment = |name: &str| match name {
            "TOKEN" => Some("secret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        ConfiguredServer::parse(text, name, &environment)
    }

    fn refusal(text: &str, name: Option<&str>) -> String {
        parse(text, name).expect_err(text)
    }

    fn entry(members: &str) -> String {
        format!(r#"{{"mcpServers": {{"one": {{{members}}}}}}}"#)
    }

    #[test]
    fn a_program_has_arguments_environment_and_directory() {
        let members = r#""command": "uvx", "args": ["weather", "--key=${TOKEN}"], "cwd": "/tmp/${EMPTY}x",
            "env": {"KEY": "a${env:TOKEN}b", "PORT": 80, "UNSET": null}, "autoApprove": ["all"], "timeout": 60"#;
        let expected = ConfiguredServer::Program {
            program: "uvx".into(),
            arguments: vec!["weather".into(), "--key=secret".into()],
            env: vec![
                ("KEY".into(), "asecretb".into()),
                ("PORT".into(), "80".into()),
            ],
            cwd: Some("/tmp/x".into()),
        };
        assert_eq!(parse(&entry(members), None), Ok(expected.clone()));
        let typed = entry(&format!(r#"{members}, "type": "stdio""#));
        assert_eq!(parse(&typed, Some("one")), Ok(expected));
    }

    #[test]
    fn a_url_has_headers_in_the_format_of_vs_code() {
        let text = r#"{
            // Asked for by the editor.
            "inputs": [{"id": "token"},],
            "servers": {
                "docs": {
                    "type": "http", /* Streamable HTTP */
                    "url": "https://example.com/mcp?a=//b",
                    "headers": {"Authorization": "Bearer ${TOKEN}", "X-Other": "${NONE:-none, }",},
                },
            },
        }"#;
        let expected = ConfiguredServer::Url {
            url: "https://example.com/mcp?a=//b".into(),
            headers: vec![
                ("Authorization".into(), "Bearer secret".into()),
                ("X-Other".into(), "none, ".into()),
            ],
        };
        assert_eq!(parse(text, None), Ok(expected));
    }

    #[test]
    fn one_of_several_servers_is_named() {
        let text = r#"{"mcpServers": {
            "one": {"command": "a"}, "two": {"command": "b"}, "off": {"command": "c", "disabled": true}}}"#;
        assert_eq!(
            refusal(text, None),
            r#"has several servers, name one of them: "one", "two""#
        );
        assert_eq!(
            refusal(text, Some("three")),
            r#"has no server "three"; there are: "one", "two""#
        );
        assert_eq!(refusal(text, Some("off")), r#"server "off" is disabled"#);
        assert!(parse(text, Some("two")).is_ok());
        let rest = r#"{"mcpServers": {"one": {"command": "a"}, "off": {"command": "c", "disabled": true}}}"#;
        assert!(parse(rest, None).is_ok());
    }

    #[test]
    fn what_cannot_be_followed_is_refused_with_its_place() {
        for (members, reason) in [
            (r#""args": []"#, "must have either `command` or `url`"),
            (
                r#""command": "a", "url": "b""#,
                "must have either `command` or `url`",
            ),
            (r#""command": "a", "type": "http""#, "`type` is \"http\""),
            (r#""url": "a", "type": "ws""#, "`type` is \"ws\""),
            (
                r#""command": "a", "args": [1]"#,
                "`args` must be a list of strings",
            ),
            (
                r#""command": "a", "env": {"K": ["x"]}"#,
                "`env.K` must be a string",
            ),
            (
                r#""command": "a", "envFile": ".env""#,
                "`envFile` is not supported",
            ),
            (
                r#""command": "a", "env": {"K": "${NONE}"}"#,
                "`env.K`: the environment variable NONE is not set",
            ),
            (
                r#""url": "${env:NONE}""#,
                "`url`: the environment variable NONE is not set",
            ),
            (
                r#""url": "${input:token}""#,
                "`url`: `${input:token}` is not an environment variable",
            ),
            (r#""command": "${workspaceFolder"#, "EOF"),
            (
                r#""command": "${TOKEN""#,
                "`command`: a variable `${…}` has no closing brace",
            ),
        ] {
            let error = refusal(&entry(members), None);
            assert!(error.contains(reason), "{members}: {error}");
        }
        assert!(refusal("{}", None).contains("neither"));
        assert!(refusal(r#"{"servers": {}, "mcpServers": {}}"#, None).contains("both"));
        assert!(refusal(r#"{"servers": {}}"#, None).contains("no enabled server"));
        assert!(refusal("[", None).contains("line 1 column 1"));
        assert!(refusal("// only\n/* a comment", None).contains("EOF"));
    }

    #[test]
    fn secrets_are_not_shown() {
        for members in [
            r#""url": "a", "headers": "Authorization: secret""#,
            r#""command": "a", "env": "KEY=secret""#,
            r#""command": "a", "args": "--key=secret""#,
        ] {
            let error = refusal(&entry(members), None);
            assert!(error.contains("must be"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!refusal(r#"{"servers": "secret"}"#, None).contains("secret"));
        let server = parse(&entry(r#""url": "a", "headers": {"K": "${TOKEN}"}"#), None);
        assert!(!format!("{server:?}").contains("secret"));
    }
}

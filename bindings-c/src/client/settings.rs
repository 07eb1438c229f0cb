//! The functions of the header that configure a client before connecting.

#[cfg(any(feature = "http", feature = "stdio"))]
use std::ffi::OsString;
use std::ffi::c_char;

#[cfg(any(feature = "http", feature = "stdio"))]
use mcpline::foreign::client::TargetSettings;
use mcpline::foreign::client::{ClientConfiguration, Target};
use mcpline::foreign::options::{BuiltInClientMiddleware, ClientOptions, read};
use mcpline::protocol::wire::Raw;
use serde_json::{Map, Value};

use crate::event_loop::{Loop, mcpl_loop};
use crate::server::{Server, decoded, mcpl_server};
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text;

use super::handle::{Client, mcpl_client};
use super::request_options::seconds;

/// Sets the options of the core and the client's description. Invalid options change nothing.
fn set_options(configuration: &mut ClientConfiguration, options: &str) -> FaultResult {
    let mut options: Map<String, Value> = read("the options", options.as_bytes())?;
    let mut object = |name: &str| match options.remove(name) {
        Some(Value::Object(members)) => Ok(members),
        None => Ok(Map::new()),
        Some(_) => Err(Fault::invalid(format!("`{name}` must be an object"))),
    };
    let (info, capabilities) = (object("info")?, object("capabilities")?);
    let middleware = options.remove("middleware");
    let middleware: Vec<BuiltInClientMiddleware> = match &middleware {
        Some(given) => decoded("`middleware`", given)?,
        None => Vec::new(),
    };
    let settings: ClientOptions = decoded("the options", &Value::from(options))?;
    let settings = settings.settings()?;
    let host = &mut configuration.host;
    let known = Raw::from_serialize(&host.info);
    let known = known.map_err(|error| Fault::invalid(error.to_string()))?;
    let mut described: Map<String, Value> = read("the description", known.as_bytes())?;
    described.extend(info);
    let info = decoded("`info`", &Value::from(described))?;
    let before = (
        std::mem::replace(&mut host.info, info),
        std::mem::replace(&mut host.capabilities, capabilities),
        std::mem::replace(&mut host.middleware, middleware),
    );
    if let Err(error) = configuration.check_host() {
        let host = &mut configuration.host;
        (host.info, host.capabilities, host.middleware) = before;
        return Err(error.into());
    }
    configuration.settings = settings;
    Ok(())
}

/// Returns the target for a URL, with options as JSON.
#[cfg(feature = "http")]
pub(super) fn url_target(url: &str, options: Option<&str>) -> FaultResult<Target> {
    let options = options.unwrap_or("{}").as_bytes();
    Ok(Target::read("url", OsString::from(url), options)?)
}

/// Returns the target for a program and its arguments, with options as JSON.
#[cfg(feature = "stdio")]
pub(super) fn program_target(
    mut command: Vec<String>,
    options: Option<&str>,
) -> FaultResult<Target> {
    if command.is_empty() {
        return Err(Fault::invalid(
            "the command is empty: its first element must be the program",
        ));
    }
    let mut options: Map<String, Value> = read("the options", options.unwrap_or("{}").as_bytes())?;
    for name in ["program", "arguments"] {
        if options.contains_key(name) {
            return Err(Fault::invalid(format!(
                "the options must not contain `{name}`: it is taken from the command"
            )));
        }
    }
    options.insert("program".into(), command.remove(0).into());
    options.insert("arguments".into(), command.into());
    let options = Value::from(options).to_string();
    Ok(Target::read(
        "program",
        OsString::new(),
        options.as_bytes(),
    )?)
}

/// Sets the target. The previous one is released without a lock held.
pub(super) fn set_target(client: &Client, target: Target) -> FaultResult {
    let before = client.configure(|configuration| Ok(configuration.target.replace(target)));
    before.map(drop)
}

/// Sets the options of a client. Call it before connecting.
///
/// - `json`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. All members are optional; times
///   are in seconds:
///   - `info`: members of the client's `Implementation`, such as `title`, `icons` and `websiteUrl`. They are added to name
///     and version, or replace them.
///   - `capabilities`: capabilities that override those that callbacks declare, member by member; `null` removes one.
///   - `revisions`: an array of the revisions that the client may use, such as `["2025-11-25"]`; all by default.
///   - `era`: the era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as
///     the revisions up to 2025-11-25 require; `"modern"` expects 2026-07-28. By default `server/discover` probes.
///   - `probe_timeout` (3), `open_timeout` (30): timeouts of the probe and of the rest of the handshake.
///   - `timeout` (60), `total_timeout` (3600): how long a request may go without a response or progress, and in total.
///   - `ping_interval` (never), `ping_timeout` (30): how long the connection may be idle before the client sends a ping
///     (2024-11-05 to 2025-11-25; 2026-07-28 has no `ping`), and the timeout of the answer. Without an answer the connection
///     counts as lost: this is logged, and requests in flight fail with `MCPL_CONNECTION_LOST`.
///   - `max_input_rounds` (10): how many times the server may return input requests for one request.
///   - `max_list_bytes` (33554432): the maximum size of all pages of a list, in bytes.
///   - `max_line_bytes` (16777216): the maximum length of a message from a server over stdio or a Unix socket, in bytes. A longer
///     message is skipped with a warning, and a request that it answers times out.
///   - `check_output` (`true`): whether structured content is validated against the output schema of its tool.
///   - `trust_tool_annotations` (`false`): whether to trust the annotations of the server's tools: calls of read-only and
///     idempotent tools are then sent again after a lost connection.
///   - `allow_undeclared_capabilities` (`false`): whether to send requests for capabilities that the server does not declare,
///     instead of failing with `MCPL_NOT_SUPPORTED`. Servers that use the official Python SDK before version 2 declare
///     `"subscribe": false` even if they handle `resources/subscribe`.
///   - `cache` (`true`): whether to cache lists and resources for as long as the server allows (2026-07-28).
///   - `reconnect_attempts` (5), `reconnect_delay` (0.2), `reconnect_max_delay` (10): attempts to reconnect after the connection
///     is lost, and the delays before the first and the later ones; 0 attempts disable reconnecting.
///   - `listen` (`true`): whether to subscribe to changes on 2026-07-28 if there is a callback for notifications.
///   - `metrics` (`false`): whether to record metrics, which `mcpl_client_metrics` returns. Needs a library with the feature
///     `metrics`.
///   - `traffic_file`: the path of a file that all messages are appended to as JSON lines, without secrets, for development
///     (docs/traffic-files.md; the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none).
///   - `span_contents` (`false`): whether spans of tool calls contain their arguments and results, without obvious secrets. Spans
///     need a library that was built with the feature `otlp`.
///   - `middleware`: an array of what is put around the client's requests, the outermost first. Each entry is an object with one
///     of the members
///     - `retry`: `attempts` (3), `first_delay` (0.2), `max_delay` (10), `tools` (names of tools that may run twice). Sends
///       requests again that the server has not performed, or that may be performed twice;
///     - `circuit_breaker`: `failures` (5), `reset` (30). After so many failures in a row, requests fail with
///       `MCPL_SERVER_UNREACHABLE` for that time, and nothing is sent;
///     - `tool_policy`: `allowed`, `denied`, `approval` (names of tools, in which `*` stands for any characters), `pin` (`false`),
///       `pin_file`. Calls of the tools in `approval` need that of `mcpl_client_on_tool_call`, which runs for no others then.
///       Calls of other tools fail with `MCPL_TOOL_CALL_REFUSED`, and lists do not have them. With pins, so do calls of a tool
///       whose definition has changed since it was first listed; `pin_file` keeps the definitions;
///     - `audit_log`: as of `mcpl_server_add_built_in_middleware`, with a record of each request that the client sends. A
///       request whose record cannot be written fails with `MCPL_TRANSPORT_ERROR`;
///     - `redaction`, if the library was built with this feature: as of `mcpl_server_add_built_in_middleware`, for results before
///       the caller gets them, and with `arguments` for arguments before they are sent.
///
/// A further call replaces all options except `info`, whose members are merged.
///
/// Returns `MCPL_USAGE_ERROR`, and changes nothing, if an option is invalid or the client is connecting or connected. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_options(
    client: *mut mcpl_client,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let options = unsafe { text::json("the options", json, length)? };
        client.configure(|configuration| set_options(configuration, options.as_str()))
    })
}

/// Sets how long requests wait for a response. Call it before connecting, and after `mcpl_client_set_options`, which replaces
/// it. The same as its options `timeout` and `total_timeout`.
///
/// - `timeout_ms`: how long a request may go without a response or progress, in milliseconds. 0: 60 s; negative: no limit.
/// - `total_timeout_ms`: how long a request may take in total, in milliseconds. 0: an hour, or `timeout_ms` if that is longer;
///   negative: no limit.
///
/// Returns `MCPL_USAGE_ERROR` if the client is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_set_timeout_ms(
    client: *mut mcpl_client,
    timeout_ms: i64,
    total_timeout_ms: i64,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let (idle, total) = (seconds(timeout_ms), seconds(total_timeout_ms));
        client.configure(|configuration| Ok(configuration.set_timeouts(idle, total)?))
    })
}

/// Changes settings of the target. `NULL` removes a value.
///
/// # Safety
///
/// The strings are `NULL` or end with a zero byte.
#[cfg(any(feature = "http", feature = "stdio"))]
unsafe fn set_named(
    client: *mut mcpl_client,
    (what, name): (&str, *const c_char),
    value: *const c_char,
    set: fn(&mut TargetSettings, &str, Option<&str>),
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: guaranteed by the caller.
        let (name, value) =
            unsafe { (text::name(what, name)?, text::optional("the value", value)?) };
        client.configure(|configuration| {
            set(&mut configuration.target_settings, name, value);
            Ok(())
        })
    })
}

/// Changes one setting of the target. `NULL` removes it.
///
/// # Safety
///
/// The string is `NULL` or ends with a zero byte.
#[cfg(any(feature = "auth", feature = "stdio"))]
unsafe fn set_only(
    client: *mut mcpl_client,
    (what, value): (&str, *const c_char),
    set: fn(&mut TargetSettings, Option<&str>),
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: guaranteed by the caller.
        let value = unsafe { text::optional(what, value)? };
        client.configure(|configuration| {
            set(&mut configuration.target_settings, value);
            Ok(())
        })
    })
}

/// Sets the access token that is sent with each request to a server at a URL. Call it before connecting; it applies to any
/// URL, whether that is set before or afterwards, and replaces `auth` in its options.
///
/// - `token`: the token, without `Bearer`; or `NULL` to remove it. Copied.
///
/// Other servers get no token. Returns `MCPL_USAGE_ERROR` if the token is not UTF-8 or the client is connecting or connected.
/// Any thread.
#[cfg(feature = "auth")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_bearer(
    client: *mut mcpl_client,
    token: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { set_only(client, ("the token", token), TargetSettings::set_bearer) }
}

/// Sets a header that is sent with each request to a server at a URL. Call it before connecting; it applies to any URL,
/// whether that is set before or afterwards, and replaces a header of the same name in its options.
///
/// - `name`: the name; upper and lower case are the same. Copied.
/// - `value`: the value, or `NULL` to remove what this function has set. Copied.
///
/// Other servers get no headers. Returns `MCPL_USAGE_ERROR` if an argument is not UTF-8, `name` is `NULL` or the client is
/// connecting or connected; a header that HTTP does not allow is reported when the client connects. Any thread.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_header(
    client: *mut mcpl_client,
    name: *const c_char,
    value: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_named(
            client,
            ("the name", name),
            value,
            TargetSettings::set_header,
        )
    }
}

/// Sets an environment variable of the process that the client starts. Call it before connecting; it applies to any command,
/// whether that is set before or afterwards, and replaces a variable of the same name in its options.
///
/// - `name`: the name. Copied.
/// - `value`: the value, or `NULL` to remove what this function has set. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is not UTF-8, `name` is `NULL` or the client is connecting or connected. Any
/// thread.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_env(
    client: *mut mcpl_client,
    name: *const c_char,
    value: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_named(
            client,
            ("the name", name),
            value,
            TargetSettings::set_environment_variable,
        )
    }
}

/// Sets the working directory of the process that the client starts. Call it before connecting; it applies to any command,
/// whether that is set before or afterwards, and replaces `cwd` in its options.
///
/// - `path`: the path, or `NULL` to remove what this function has set. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if the path is not UTF-8 or the client is connecting or connected; a directory that does not
/// exist is reported when the client connects. Any thread.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_cwd(
    client: *mut mcpl_client,
    path: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { set_only(client, ("the path", path), TargetSettings::set_directory) }
}

/// Runs all callbacks of a client on the thread that dispatches a loop. Call it once, before connecting.
///
/// Keep the loop as long as the client: after the loop is freed, callbacks run on worker threads.
///
/// Returns `MCPL_USAGE_ERROR` if the client already uses a loop or is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_use_loop(
    client: *mut mcpl_client,
    r#loop: *mut mcpl_loop,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let events = Loop::get(r#loop)?;
        client.configure(|_| client.owner().use_loop(events))
    })
}

/// Sets the URL of the server. Call it before connecting; it replaces the server that was set before.
///
/// The client uses Streamable HTTP, or HTTP+SSE if the server supports nothing else (`basic/transports`).
///
/// - `url`: such as `"https://example.org/mcp"`.
/// - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults; times are in seconds:
///   - `headers`: headers to add to each request, an array of pairs: `[["authorization", "Bearer ..."]]`.
///   - `proxy`: a URL, or `"direct"` for none; by default the environment decides (`HTTPS_PROXY` and the like).
///   - `tls_roots`: more certificates to trust, as PEM; `only_tls_roots` (`false`): whether to trust no others.
///   - `connect_timeout` (10), `max_redirects` (5), `max_body_bytes` (16 MiB): limits.
///   - `resume_attempts` (5), `resume_delay` (0.5), `resume_max_delay` (30): attempts to resume a broken stream, and their delays.
///   - `auth`: how the client is authorized (`basic/authorization`): `{"bearer": token}`, `{"source": {}}` for tokens that the
///     program returns, or `{"oauth": {...}}` with
///     - `client_name`, required: the name shown to users; `scopes`: requested in addition to those that the server requires.
///     - `user_agent`: `{"loopback": {}}` (the system's browser; `redirect_uri`, `timeout` (300), `browser`: `"system"`, `"none"`
///       or `"host"`, `unopened` (`false`): whether to pass URLs to the program for which no browser was opened),
///       `{"terminal": {}}` (`redirect_uri`, `timeout`) or `{"host": {"redirect_uri": ...}}`. Without one, no user is prompted.
///     - `store`: `"memory"` (the default), `{"file": directory}`, `{"keyring": name}` where the build has it (`FEATURES=keyring`), or
///       `{"host": {}}` (`locks` (`false`)).
///     - `credentials`: an array of existing registrations: `client_id`, `issuer`, `secret`, `private_key` (PEM),
///       `algorithm`, `key_id`, `auth`; or `client_id_metadata_url`.
///     - `grant`: `"user"` (the default), `"client_credentials"`, `"workload_identity"`, or `{"enterprise": {...}}` with
///       `token_endpoint`, `client_id`, `secret`.
///     - `client_uri`, `logo_uri`, `software_id`, `software_version`, `account`, `dpop` (`false`), `require_pkce` (`true`),
///       `allow_private_addresses` (`false`).
///
///     Values `"host"` and `source` call the handler of `mcpl_client_on_authorize`.
///
/// Both are copied. Returns `MCPL_USAGE_ERROR` if an option is invalid or the client is connecting or connected; an invalid
/// URL is reported when the client connects. Any thread.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_url(
    client: *mut mcpl_client,
    url: *const c_char,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let (url, options) = unsafe {
            (
                text::name("the URL", url)?,
                text::optional("the options", options)?,
            )
        };
        set_target(&client, url_target(url, options)?)
    })
}

/// Sets the command that starts the server (`basic/transports`, stdio). Call it before connecting; it replaces the server
/// that was set before.
///
/// When the client closes, it closes the process's stdin, then asks the process to terminate, then kills it and its
/// children. The process also ends if this process ends for any reason.
///
/// - `argv`, `count`: the program, a path or a name to look up in `PATH`, and its arguments, each ending with a zero byte;
///   and their number.
/// - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults:
///   - `env`: an object of environment variables to add. Of this process's environment the server gets `PATH`, `HOME`, `LANG`
///     and the like, or everything with `inherit_env`.
///   - `cwd`: the working directory.
///   - `stderr`: `"capture"` (the default: the last lines become part of the error if the process exits, and
///     `mcpl_client_on_stderr` receives them), `"inherit"` or `"null"`.
///   - `exit_timeout` (2): how many seconds the process may take to exit.
///
/// Everything is copied. Returns `MCPL_USAGE_ERROR` if `argv` is empty, an option is invalid or the client is connecting or
/// connected; a program that cannot be started is reported when the client connects. Any thread.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_command(
    client: *mut mcpl_client,
    argv: *const *const c_char,
    count: usize,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let (command, options) = unsafe {
            (
                text::list("the command", argv, count)?,
                text::optional("the options", options)?,
            )
        };
        set_target(&client, program_target(command, options)?)
    })
}

/// Sets the Unix socket of the server, for newline-delimited messages. Call it before connecting; it replaces the server
/// that was set before.
///
/// - `path`: the path of the socket, ending with a zero byte. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if `path` is `NULL` or not UTF-8, or the client is connecting or connected. Any thread.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_socket(
    client: *mut mcpl_client,
    path: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let path = unsafe { text::name("the path", path)? };
        set_target(&client, Target::read("socket", path.into(), b"")?)
    })
}

/// Sets a server in this process, which needs no transport of its own. Call it before connecting; it replaces the server
/// that was set before.
///
/// Keep the server as long as the client: after it is closed, requests to it fail.
///
/// Returns `MCPL_STALE_HANDLE` if the server was freed, and `MCPL_USAGE_ERROR` if the client is connecting or connected. Any
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_set_server(
    client: *mut mcpl_client,
    server: *mut mcpl_server,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let server = Server::get(server)?;
        set_target(&client, server.core().into())
    })
}

/// Sets a server in this process like `mcpl_client_set_server`, and what its handlers see of the client.
///
/// - `options`: a JSON object that ends with a zero byte, or `NULL` for none. Copied.
///   - `principal`: the client's identity, as a token or a transport would authenticate it: `subject`, `issuer`,
///     `client_id`, `audience`, `scopes`, `claims`, `expires_at` (seconds since 1970). Scopes hold as over HTTP. Without it
///     the client may use everything.
///   - `headers`: an array of pairs of name and value, which `mcpl_call_info` shows. The server itself does not read them.
///
/// Returns `MCPL_STALE_HANDLE` if the server was freed, and `MCPL_USAGE_ERROR` if an option is invalid or the client is
/// connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_server_with(
    client: *mut mcpl_client,
    server: *mut mcpl_server,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let options = unsafe { text::optional("the options", options)? };
        let options = options.unwrap_or("{}").as_bytes();
        set_target(&client, Target::server(server.core(), options)?)
    })
}

/// Sets a server that a host's configuration file describes, such as `mcp.json`. Call it before connecting; it replaces the
/// server that was set before.
///
/// The file has the object `mcpServers`, or `servers` as VS Code writes it. A server has `command` with `args`, `env` and
/// `cwd`, or `url` with `headers`; `type`, if present, is `stdio`, `http`, `streamable-http` or `sse`. In these strings
/// `${NAME}` and `${env:NAME}` stand for an environment variable, and `${NAME:-text}` for `text` if it is not set. Comments
/// and trailing commas are allowed; members that only hosts use are ignored.
///
/// - `path`: the path of the file, ending with a zero byte.
/// - `name`: the name of the server, ending with a zero byte, or `NULL` for the only one that is not disabled.
///
/// Both are copied. Returns `MCPL_USAGE_ERROR` if the file cannot be read, has another form or has no such server; if it has
/// several and `name` is `NULL`; if an environment variable is not set; or if the client is connecting or connected. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_config(
    client: *mut mcpl_client,
    path: *const c_char,
    name: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let (path, name) = unsafe {
            (
                text::name("the path", path)?,
                text::optional("the name", name)?,
            )
        };
        set_target(&client, Target::of_configured_server(path, name)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::MCPL_USAGE_ERROR;

    fn refused<T>(outcome: FaultResult<T>) -> String {
        let fault = outcome.err().unwrap();
        assert_eq!(fault.status, MCPL_USAGE_ERROR);
        fault.message
    }

    #[test]
    fn invalid_options_change_nothing() {
        let mut configuration = ClientConfiguration::default();
        let mut set = |options| set_options(&mut configuration, options);
        set(r#"{"info":{"title":"Host"},"timeout":2,"middleware":[{"retry":{}}]}"#).unwrap();
        for unfit in [
            r#"{"tiemout":1}"#,
            r#"{"timeout":-1}"#,
            r#"{"info":1}"#,
            r#"{"info":{"name":1}}"#,
            r#"{"capabilities":[]}"#,
            r#"{"capabilities":{"roots":1}}"#,
            r#"{"middleware":{}}"#,
            r#"{"middleware":[{}]}"#,
            r#"{"middleware":[{"retry":{"attempts":0}}]}"#,
            r#"{"middleware":[{"audit_log":{"path":""}}]}"#,
            r#"{"middleware":[{"redaction":{}}]}"#,
            "[]",
        ] {
            refused(set(unfit));
        }
        assert_eq!(configuration.host.info.title.as_deref(), Some("Host"));
        assert_eq!(configuration.settings.timeouts.idle.as_secs(), 2);
        assert_eq!(configuration.host.middleware.len(), 1);
    }

    #[test]
    fn validates_a_target_when_it_is_set() {
        assert!(url_target("http://localhost/mcp", Some(r#"{"headers":[["a","b"]]}"#)).is_ok());
        refused(url_target(
            "http://localhost/mcp",
            Some(r#"{"haeders":[]}"#),
        ));
        let command = || vec!["true".to_owned(), "-x".to_owned()];
        assert!(program_target(command(), Some(r#"{"env":{"A":"b"},"stderr":"null"}"#)).is_ok());
        assert!(program_target(command(), None).is_ok());
        refused(program_target(Vec::new(), None));
        refused(program_target(command(), Some(r#"{"arguments":[]}"#)));
        refused(program_target(command(), Some(r#"{"exit_timeout":-1}"#)));
    }
}

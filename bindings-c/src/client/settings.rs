//! What C calls, before connecting, to say how and where to.

use std::ffi::c_char;

use crate::event_loop::{Loop, mcpl_loop};
use crate::server::{Server, mcpl_server};
use crate::status::{Done, entry, mcpl_status};
use crate::text;

use super::handle::{Client, mcpl_client};
use super::plan::Target;

/// Sets options. Before connecting.
///
/// - `json`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), which is copied. All members may be left
///   out, and have their defaults then; times are in seconds:
///   - `info`: more that the host says of itself, an `Implementation`: `title`, `icons`, `websiteUrl` and so on. Its members
///     are added to name and version, or replace them.
///   - `capabilities`: more that the host can do, beyond what callbacks declare, in its place member by member; `null` takes
///     one away.
///   - `revisions`: an array of the revisions that may be spoken, such as `["2025-11-25"]`; all five by default.
///   - `era`: the era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as the
///     revisions up to 2025-11-25 demand; `"modern"` expects 2026-07-28. By default `server/discover` probes.
///   - `probe_timeout` (3), `open_timeout` (30): how long opening waits for the answer to a probe, and to what follows.
///   - `timeout` (60), `total_timeout` (3600): how long requests wait without a sign of life, and in all.
///   - `ping_interval` (never), `ping_timeout` (30): after how much silence the server is pinged (2024-11-05 to 2025-11-25;
///     there is no `ping` on 2026-07-28), and how long the answer may take. Without one the connection ends as if it had been
///     lost, which is logged: requests in flight fail with `MCPL_CONNECTION_LOST`.
///   - `max_rounds` (10): how often a server may ask for input in the course of one request.
///   - `max_list_bytes` (33554432): how many bytes the pages of one list may have together.
///   - `check_output` (`true`): whether structured content is held against the output schema of its tool.
///   - `trusted` (`false`): whether what the server's tools say of themselves is believed (their annotations): then a call
///     that was lost is sent again where the tool says that it changes nothing, or nothing more the second time.
///   - `allow_undeclared_capabilities` (`false`): whether requests are sent that need a capability which the server has not
///     declared, in place of `MCPL_NOT_SUPPORTED`. Known to declare less than they have: servers of the official Python
///     SDK before version 2, which say `"subscribe": false` though they may have a handler of `resources/subscribe`.
///   - `cache` (`true`): whether lists and reads are kept for as long as their server says (2026-07-28).
///   - `reconnect_attempts` (5), `reconnect_delay` (0.2), `reconnect_max_delay` (10): what happens when the connection is
///     lost; with 0 attempts it stays lost.
///   - `listen` (`true`): whether to listen for changes on 2026-07-28 while there is a callback for notifications.
///
/// A further call replaces all of them but `info`, whose members stay until they are replaced.
///
/// Any thread. Returns `MCPL_USAGE_ERROR`, and changes nothing, if the options are not these or the client connects
/// already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_options(
    client: *mut mcpl_client,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let options = unsafe { text::json("the options", json, length)? };
        client.plan(|plan| plan.set_options(options.as_str()))
    })
}

/// Has all callbacks of a client run on the thread that dispatches this loop. Before connecting, once.
///
/// Any thread. The loop should outlive the client: once it is freed, callbacks run on worker threads. Returns
/// `MCPL_USAGE_ERROR` if the client uses a loop already or connects already.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_use_loop(
    client: *mut mcpl_client,
    loop_: *mut mcpl_loop,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let events = Loop::get(loop_)?;
        client.plan(|_| client.owner().use_loop(events))
    })
}

/// The server is behind a URL, over HTTP: Streamable HTTP of every revision, or HTTP+SSE where nothing else is served
/// (every revision, `basic/transports`). Before connecting; replaces what was set before.
///
/// - `url`: such as `"https://example.org/mcp"`.
/// - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults; times are in seconds:
///   - `headers`: an array of pairs that each request gets, `[["authorization", "Bearer ..."]]`.
///   - `proxy`: a URL, or `"direct"` for none; by default what the environment says.
///   - `tls_roots`: more certificates to trust, as PEM; `only_these_roots` (`false`): whether to trust no others.
///   - `connect_timeout` (10), `max_redirects` (5), `body_limit` (16 MiB): limits.
///   - `resume_attempts` (5), `resume_delay` (0.5), `resume_max_delay` (30): how streams that broke are resumed.
///   - `auth`: how the client is authorized (`basic/authorization`): `{"bearer": token}`, `{"source": {}}` for tokens that the
///     host is asked for, or `{"oauth": {...}}` with
///     - `client_name`, which has to be given: what users are shown; `scopes` beside those that the server demands.
///     - `user_agent`: `{"loopback": {}}` (the system's browser; `redirect_uri`, `timeout` (300), `browser`: `"system"`, `"none"`
///       or `"host"`, `unopened` (`false`): whether the host is told of a URL that no browser was opened for),
///       `{"terminal": {}}` (`redirect_uri`, `timeout`) or `{"host": {"redirect_uri": ...}}`. Without one nobody is asked.
///     - `store`: `"memory"` (the default), `{"file": directory}`, `{"keyring": name}` where the build has it (`FEATURES=keyring`), or
///       `{"host": {}}` (`locks` (`false`)).
///     - `credentials`: an array of what the client is known by already: `client_id`, `issuer`, `secret`, `private_key` (PEM),
///       `algorithm`, `key_id`, `auth`; or `client_id_metadata_url`.
///     - `grant`: `"user"` (the default), `"client_credentials"`, `"workload_identity"`, or `{"enterprise": {...}}` with
///       `token_endpoint`, `client_id`, `secret`.
///     - `client_uri`, `logo_uri`, `software_id`, `software_version`, `account`, `dpop` (`false`), `require_pkce` (`true`),
///       `allow_private_addresses` (`false`).
///
///     What the host is asked is answered by what `mcpl_client_on_authorize` was given.
///
/// Both are copied. Any thread. Returns `MCPL_USAGE_ERROR` if the options are not these or the client connects already;
/// a URL that is none is told when it connects.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_url(
    client: *mut mcpl_client,
    url: *const c_char,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let (url, options) = unsafe {
            (
                text::name("the URL", url)?,
                text::optional("the options", options)?,
            )
        };
        set_target(&client, Target::url(url, options)?)
    })
}

/// The server is a program that is started, and spoken to over its stdin and stdout (every revision,
/// `basic/transports`, stdio). It ends with the connection: first its stdin is closed, after a while it is told to end,
/// then killed, with its children; also when this process ends in whatever way. Before connecting; replaces what was set
/// before.
///
/// - `argv`, `count`: the program, by path or by a name to be found in `PATH`, and its arguments, each ended with a zero
///   byte.
/// - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults:
///   - `env`: an object of environment variables. Of this process's own it gets only what is not secret by custom (`PATH`,
///     `HOME`, `LANG` and the like), or with `inherit_env` all.
///   - `cwd`: its working directory.
///   - `stderr`: `"capture"` (the default: its last lines are part of the error when it ends, and `mcpl_client_on_stderr`
///     hears them), `"inherit"` or `"null"`.
///   - `grace` (2): how many seconds it has to leave.
///
/// All is copied. Any thread. Returns `MCPL_USAGE_ERROR` if there is no program, the options are not these or the
/// client connects already; that a program can't be started is told when the client connects.
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
        // SAFETY: the header demands it.
        let (command, options) = unsafe {
            (
                text::list("the command", argv, count)?,
                text::optional("the options", options)?,
            )
        };
        set_target(&client, Target::program(command, options)?)
    })
}

/// The server listens on a Unix socket, for messages that end with a line break. Before connecting; replaces what was set
/// before.
///
/// - `path`: the socket's, which is copied.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the path is `NULL` or not UTF-8, or the client connects already.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_socket(
    client: *mut mcpl_client,
    path: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let path = unsafe { text::name("the path", path)? };
        set_target(&client, Target::Socket(path.into()))
    })
}

/// The server is one in this process, which needn't be served otherwise. Before connecting; replaces what was set before.
///
/// Any thread. The server should outlive the client: once it is closed its handlers don't run any more, and what is asked
/// of it fails. Returns `MCPL_STALE_HANDLE` if it was freed, and `MCPL_USAGE_ERROR` if the client connects already.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_set_server(
    client: *mut mcpl_client,
    server: *mut mcpl_server,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        let server = Server::get(server)?;
        set_target(&client, Target::Server(server.core.clone()))
    })
}

/// What was set before is released where nothing is locked.
pub(super) fn set_target(client: &Client, target: Target) -> Done {
    let before = client.plan(|plan| Ok(plan.target.replace(target)));
    before.map(drop)
}

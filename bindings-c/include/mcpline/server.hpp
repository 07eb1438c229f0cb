/// \file
/// Servers: registering handlers, and serving.

#ifndef MCPLINE_SERVER_HPP
#define MCPLINE_SERVER_HPP

#include <chrono>

#include "call.hpp"
#include "channel.hpp"
#include "sharing.hpp"
#ifdef MCPLINE_HAS_CLIENT
#include "input_request.hpp"
#endif

MCPLINE_BEGIN_NAMESPACE

/// How the server runs a handler.
struct HandlerOptions {
  /// Runs the handler on the I/O thread. Only for handlers that never wait.
  bool on_io_thread = false;
  /// Never runs the handler twice for one request: a retry (2026-07-28) that reaches another process fails instead.
  bool run_once = false;
  /// Calls of a tool per second that the whole server accepts. 0: the server's `tool_rate`.
  std::uint32_t calls_per_second = 0;
  /// Calls that may arrive at once within that rate. 0: as many as `calls_per_second`.
  std::uint32_t burst = 0;
  /// Scopes that a caller needs, all of them, separated by spaces. Where callers are authenticated, what a caller may
  /// not use is missing from lists.
  std::string scopes = {};
  /// Identifier of the extension that a custom method belongs to. The server must declare it; clients that do not are
  /// rejected.
  std::string extension = {};
  /// Names of variables of a resource template that may have any value, separated by spaces. A URI in which another
  /// variable contains a `..` segment, an absolute path or the character NUL is answered with an error.
  std::string unchecked_variables = {};
  /// How long a call of a tool may take. Zero: no limit. When the time is over, the client gets a tool error that says
  /// so, and the call is cancelled (`Call::is_cancelled`, `Call::on_cancel`). The time does not pass while an input
  /// request of the call is open.
  std::chrono::milliseconds timeout = std::chrono::milliseconds::zero();
  /// How long clients may cache the contents of a resource (2026-07-28); zero: not at all. Without it, as the server's
  /// `resource_cache` says.
  std::optional<std::chrono::milliseconds> cache_ttl = std::nullopt;
  /// Whether shared caches may store the contents, for `cache_ttl`, which it needs. Without effect if there are
  /// `scopes`.
  bool shared_cache = false;

  /// Returns the C structure. It refers to the strings of this object.
  mcpl_handler_options table() const {
    mcpl_handler_options options{};
    options.size = sizeof(options);
    options.flags = (on_io_thread ? static_cast<std::uint32_t>(MCPL_HANDLER_INLINE) : 0U) |
                    (run_once ? static_cast<std::uint32_t>(MCPL_HANDLER_RUN_ONCE) : 0U) |
                    (shared_cache ? static_cast<std::uint32_t>(MCPL_HANDLER_SHARED_CACHE) : 0U) |
                    (cache_ttl ? static_cast<std::uint32_t>(MCPL_HANDLER_CACHE) : 0U);
    options.calls_per_second = calls_per_second;
    options.burst = burst;
    options.scopes = scopes.empty() ? nullptr : scopes.c_str();
    options.unchecked_variables = unchecked_variables.empty() ? nullptr : unchecked_variables.c_str();
    options.timeout_ms = timeout.count() < 0 ? 0U : static_cast<std::uint64_t>(timeout.count());
    options.cache_ttl_ms = cache_ttl && cache_ttl->count() > 0 ? static_cast<std::uint64_t>(cache_ttl->count()) : 0U;
    options.extension = extension.empty() ? nullptr : extension.c_str();
    return options;
  }
};

/// What `Server::run_…` does on SIGINT and SIGTERM.
enum class Signals {
  /// They stop the server (`Server::stop_on_signals`). For programs that are nothing but a server.
  stop,
  /// The program handles them and calls `Server::stop`, but not from a signal handler.
  leave,
};

/// A server. The destructor stops all transports, waits up to `shutdown_timeout` for calls in flight and for running
/// callbacks, and then destroys the handlers. Any thread.
///
/// A handler takes `(Call &, const Json &arguments)` or fewer of these, and returns its result: a string, Bytes,
/// Content, Structured, Result or InputRequired, or a Json or nlohmann::json, which becomes structured content of a
/// tool, the result of a custom request, and text elsewhere. A handler that takes `(Call, …)` keeps the call and
/// answers later. A handler may also return an error (ToolError, RpcError, ResourceNotFound or Error), a std::variant
/// of these and results, or an Expected.
///
/// The arguments match the schema. They are valid until the handler returns; use Json::owned to keep them.
class Server {
public:
#if MCPLINE_EXCEPTIONS
  /// Creates a server with default options. `name` and `version` are sent to clients.
  Server(std::string_view name, std::string_view version) : Server(create(name, version)) {}
#endif

  /// Creates a server with default options. `name` and `version` are sent to clients.
  static Fallible<Server> create(std::string_view name, std::string_view version) {
    mcpl_server *const server = mcpl_server_new(detail::CString(name).get(), detail::CString(version).get());
    MCPLINE_CHECK_HANDLE(server);
    return Server(server);
  }

  /// Creates a server with options. `info` is an Implementation of the specification (name, version, title, …); for
  /// `options` see mcpl_server_new_with.
  static Fallible<Server> with(const JsonText &info, const JsonText &options = nullptr) {
    mcpl_server *const server = mcpl_server_new_with(info.data(), info.size(), options.data(), options.size());
    MCPLINE_CHECK_HANDLE(server);
    return Server(server);
  }

  /// Takes ownership of a C handle.
  explicit Server(mcpl_server *server) noexcept : server_(server, &mcpl_server_free) {}

  /// Sets the title, a name for people. Call it before features are added and the server is served.
  Fallible<void> set_title(std::string_view title) {
    return detail::done(mcpl_server_set_title(server_.get(), detail::CString(title).or_null()));
  }

  /// Sets how to use the server, for the model. Call it before features are added and the server is served.
  Fallible<void> set_instructions(std::string_view instructions) {
    return detail::done(mcpl_server_set_instructions(server_.get(), detail::CString(instructions).or_null()));
  }

  /// Sets how long calls in flight may continue when the server stops; `no_timeout` is no limit. Call it before
  /// features are added and the server is served.
  Fallible<void> set_shutdown_timeout(Milliseconds timeout) {
    return detail::done(mcpl_server_set_shutdown_timeout_ms(server_.get(), timeout.count()));
  }

  /// Sets how many calls may be in flight in all sessions together. Call it before features are added and the server is
  /// served.
  Fallible<void> set_max_calls(std::size_t count) {
    return detail::done(mcpl_server_set_max_calls(server_.get(), count));
  }

  /// Sets how often each tool may be called: see mcpl_server_set_tool_rate. Call it before features are added and the
  /// server is served.
  Fallible<void> set_tool_rate(std::uint32_t calls_per_second, std::uint32_t burst = 0) {
    return detail::done(mcpl_server_set_tool_rate(server_.get(), calls_per_second, burst));
  }

#if defined(MCPLINE_HAS_HTTP)
  /// Shares sessions, event streams and notifications with other servers over objects of the program. Call it before
  /// features are added and the server is served. The server destroys its references after the last call.
  ///
  /// Fails with `MCPL_USAGE_ERROR` if a part is missing, or the server has the option `sharing` or is in use.
  Fallible<void> set_sharing(Sharing sharing) {
    const mcpl_sharing functions = detail::SharingFunctions::table(sharing);
    return detail::done(
        mcpl_server_set_sharing(server_.get(), &functions, new Sharing(std::move(sharing)), &detail::destroy<Sharing>));
  }

  /// Checks that the shared state that was set does what its classes say; for a test of the program: see
  /// mcpl_server_check_sharing. Waits until everything was checked. Only in a library that was built with the feature
  /// `sharing-check`.
  Fallible<void> check_sharing() {
    return detail::done(mcpl_server_check_sharing(server_.get(), nullptr, nullptr, nullptr));
  }

  /// The same with the shared state as another process has it, with connections of its own to the same database.
  Fallible<void> check_sharing(Sharing other) {
    const mcpl_sharing functions = detail::SharingFunctions::table(other);
    return detail::done(
        mcpl_server_check_sharing(server_.get(), &functions, new Sharing(std::move(other)), &detail::destroy<Sharing>));
  }

  /// Sets the path of the MCP endpoint of HTTP servers that are started afterwards: see mcpl_server_set_http_path.
  Fallible<void> set_http_path(std::string_view path) {
    return detail::done(mcpl_server_set_http_path(server_.get(), detail::CString(path).get()));
  }

  /// Accepts a `Host` header at HTTP servers that are started afterwards: see mcpl_server_add_allowed_host.
  Fallible<void> add_allowed_host(std::string_view host) {
    return detail::done(mcpl_server_add_allowed_host(server_.get(), detail::CString(host).get()));
  }

  /// Accepts an `Origin` header at HTTP servers that are started afterwards: see mcpl_server_add_allowed_origin.
  Fallible<void> add_allowed_origin(std::string_view origin) {
    return detail::done(mcpl_server_add_allowed_origin(server_.get(), detail::CString(origin).get()));
  }
#endif

  /// Runs all callbacks of the server on the thread that dispatches `loop`. Call it before the server is served.
  Fallible<void> use_loop(Loop &loop) { return detail::done(mcpl_server_use_loop(server_.get(), loop.get())); }

  /// Adds a tool. `input_schema` is a JSON Schema of the arguments, or nullptr if there are none.
  template <class F>
  Fallible<void> add_tool(std::string_view name, std::string_view description, const JsonText &input_schema,
                          F &&handler) {
    const std::string schema = input_schema.text();
    const detail::CString named(name), described(description);
    return detail::done(mcpl_server_add_tool(
        server_.get(), named.get(), described.get(), input_schema.data() == nullptr ? nullptr : schema.c_str(),
        &detail::handle<detail::Feature::tool, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a tool by its complete definition: a Tool of the specification.
  template <class F>
  Fallible<void> add_tool(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    return add_with<detail::Feature::tool>(&mcpl_server_add_tool_with, definition, options, std::forward<F>(handler));
  }

  /// Adds a resource. `mime_type` may be empty.
  template <class F>
  Fallible<void> add_resource(std::string_view uri, std::string_view name, std::string_view mime_type, F &&handler) {
    const detail::CString addressed(uri), named(name), typed(mime_type);
    return detail::done(mcpl_server_add_resource(server_.get(), addressed.get(), named.get(), typed.or_null(),
                                                 &detail::handle<detail::Feature::resource, std::decay_t<F>>,
                                                 new std::decay_t<F>(std::forward<F>(handler)),
                                                 &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a resource by its complete definition: a Resource of the specification.
  template <class F>
  Fallible<void> add_resource(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    return add_with<detail::Feature::resource>(&mcpl_server_add_resource_with, definition, options,
                                               std::forward<F>(handler));
  }

  /// Adds a resource template (RFC 6570). The handler's arguments are the variables; Call::name returns the URI.
  template <class F>
  Fallible<void> add_resource_template(std::string_view uri_template, std::string_view name, std::string_view mime_type,
                                       F &&handler) {
    const detail::CString addressed(uri_template), named(name), typed(mime_type);
    return detail::done(mcpl_server_add_resource_template(server_.get(), addressed.get(), named.get(), typed.or_null(),
                                                          &detail::handle<detail::Feature::resource, std::decay_t<F>>,
                                                          new std::decay_t<F>(std::forward<F>(handler)),
                                                          &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a resource template by its complete definition: a ResourceTemplate of the specification.
  template <class F>
  Fallible<void> add_resource_template(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    return add_with<detail::Feature::resource>(&mcpl_server_add_resource_template_with, definition, options,
                                               std::forward<F>(handler));
  }

  /// Sets the handler that lists resources of a template. It returns a std::vector<std::string> of URIs, or a Json
  /// array of Resource. They follow the registered resources in `resources/list`, on its last page; call
  /// `notify_resource_list_changed` when they change.
  template <class F> Fallible<void> set_resource_template_list(std::string_view uri_template, F &&handler) {
    return detail::done(mcpl_server_set_resource_template_list(
        server_.get(), detail::CString(uri_template).get(),
        &detail::handle<detail::Feature::resource_list, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a prompt. `arguments` is an array of PromptArgument, or nullptr for none.
  template <class F>
  Fallible<void> add_prompt(std::string_view name, std::string_view description, const JsonText &arguments,
                            F &&handler) {
    const std::string listed = arguments.text();
    const detail::CString named(name), described(description);
    return detail::done(mcpl_server_add_prompt(
        server_.get(), named.get(), described.get(), arguments.data() == nullptr ? nullptr : listed.c_str(),
        &detail::handle<detail::Feature::prompt, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a prompt by its complete definition: a Prompt of the specification.
  template <class F>
  Fallible<void> add_prompt(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    return add_with<detail::Feature::prompt>(&mcpl_server_add_prompt_with, definition, options,
                                             std::forward<F>(handler));
  }

  /// Handles requests of a custom method. `params_schema` is the JSON Schema of the parameters, or nullptr for any. The
  /// handler's arguments are the parameters; it returns the result, an object, as Json, nlohmann::json or Result.
  template <class F>
  Fallible<void> on_request(std::string_view method, const JsonText &params_schema, F &&handler,
                            const HandlerOptions &options = {}) {
    const std::string schema = params_schema.text();
    const mcpl_handler_options table = options.table();
    return detail::done(mcpl_server_on_request(
        server_.get(), detail::CString(method).get(), params_schema.data() == nullptr ? nullptr : schema.c_str(),
        &table, &detail::handle<detail::Feature::request, std::decay_t<F>>,
        new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Puts a handler around the requests that the server answers; see mcpl_server_add_middleware. `scope` is an object
  /// with any of the members `methods`, `kinds`, `names` and `tags`, or nullptr for all requests. The handler takes
  /// `(Call &, const Json &request)`, passes the request on with Call::next, and returns the result as Json,
  /// nlohmann::json or Result.
  template <class F>
  Fallible<void> add_middleware(const JsonText &scope, F &&handler, const HandlerOptions &options = {}) {
    const mcpl_handler_options table = options.table();
    return detail::done(mcpl_server_add_middleware(
        server_.get(), scope.data(), scope.size(), &table, &detail::handle<detail::Feature::request, std::decay_t<F>>,
        new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Adds a middleware that the library provides; see mcpl_server_add_built_in_middleware.
  Fallible<void> add_built_in_middleware(const JsonText &definition, const JsonText &scope = nullptr) {
    return detail::done(mcpl_server_add_built_in_middleware(server_.get(), definition.data(), definition.size(),
                                                            scope.data(), scope.size()));
  }

  /// Handles notifications of a custom method. `params_schema` is the JSON Schema of the parameters, or nullptr for
  /// any. A handler takes `(Call &, const Json &params)`. Its result is ignored; its error goes to the diagnostics.
  template <class F>
  Fallible<void> on_notification(std::string_view method, const JsonText &params_schema, F &&handler,
                                 const HandlerOptions &options = {}) {
    const std::string schema = params_schema.text();
    const mcpl_handler_options table = options.table();
    return detail::done(mcpl_server_on_notification(
        server_.get(), detail::CString(method).get(), params_schema.data() == nullptr ? nullptr : schema.c_str(),
        &table, &detail::handle_notification<std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Completes an argument of a prompt (by name) or a variable of a resource template (by its URI template) from a
  /// list.
  Fallible<void> add_candidates(std::string_view reference, std::string_view argument,
                                const std::vector<std::string> &candidates) {
    std::vector<const char *> pointers;
    pointers.reserve(candidates.size());
    for (const std::string &candidate : candidates) {
      pointers.push_back(candidate.c_str());
    }
    return detail::done(mcpl_server_add_candidates(server_.get(), detail::CString(reference).get(),
                                                   detail::CString(argument).get(), pointers.data(), pointers.size()));
  }

  /// Completes an argument or a variable with a handler. Its arguments are `{"ref", "argument", "context"}`, and it may
  /// return a std::vector<std::string>.
  template <class F> Fallible<void> add_completion(std::string_view reference, std::string_view argument, F &&handler) {
    const detail::CString referred(reference), argued(argument);
    return detail::done(mcpl_server_add_completion(
        server_.get(), referred.get(), argued.get(), &detail::handle<detail::Feature::completion, std::decay_t<F>>,
        new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Sets the handler for completions of all arguments that have no completion of their own.
  template <class F> Fallible<void> set_completion(F &&handler) {
    return detail::done(
        mcpl_server_set_completion(server_.get(), &detail::handle<detail::Feature::completion, std::decay_t<F>>,
                                   new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Sets the handler that is called for each session after its handshake: `handler(Call &)` (revisions up to
  /// 2025-11-25).
  ///
  /// The call belongs to no request. It can send input requests until the handler returns, or, if the handler moved it
  /// away, until it is ended. The handler's result is ignored; its error goes to the diagnostics.
  template <class F> Fallible<void> on_initialized(F &&handler) {
    return detail::done(mcpl_server_on_initialized(server_.get(), &detail::handle_event<std::decay_t<F>>,
                                                   new std::decay_t<F>(std::forward<F>(handler)),
                                                   &detail::destroy<std::decay_t<F>>));
  }

  /// Sets the handler that is called when a client that declared roots reports a change: `handler(Call &)`. Get the new
  /// list with `Call::list_roots`. The handler's result is ignored; its error goes to the diagnostics.
  template <class F> Fallible<void> on_roots_changed(F &&handler) {
    return detail::done(mcpl_server_on_roots_changed(server_.get(), &detail::handle_event<std::decay_t<F>>,
                                                     new std::decay_t<F>(std::forward<F>(handler)),
                                                     &detail::destroy<std::decay_t<F>>));
  }

  /// Removes a tool.
  Fallible<void> remove_tool(std::string_view name) {
    return detail::done(mcpl_server_remove_tool(server_.get(), detail::CString(name).get()));
  }

  /// Removes a resource or a resource template.
  Fallible<void> remove_resource(std::string_view uri) {
    return detail::done(mcpl_server_remove_resource(server_.get(), detail::CString(uri).get()));
  }

  /// Removes a prompt.
  Fallible<void> remove_prompt(std::string_view name) {
    return detail::done(mcpl_server_remove_prompt(server_.get(), detail::CString(name).get()));
  }

  /// Removes the handler of a custom request.
  Fallible<void> remove_request_handler(std::string_view method) {
    return detail::done(mcpl_server_remove_request_handler(server_.get(), detail::CString(method).get()));
  }

  /// Removes the handler of a custom notification. Calls in flight continue.
  Fallible<void> remove_notification_handler(std::string_view method) {
    return detail::done(mcpl_server_remove_notification_handler(server_.get(), detail::CString(method).get()));
  }

  /// Returns a snapshot of what the server holds now: see mcpl_server_stats.
  Fallible<Json> stats() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_server_stats(server_.get(), &text, &length));
    return Json(detail::taken(text, length));
  }

  /// Returns the metrics of the server in the text format of Prometheus. Empty if the option `metrics` is off.
  Fallible<std::string> metrics() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_server_metrics(server_.get(), &text, &length));
    return detail::taken(text, length);
  }

  /// Notifies the subscribers of a resource that it changed.
  Fallible<void> notify_resource_updated(std::string_view uri) {
    return detail::done(mcpl_server_notify_resource_updated(server_.get(), detail::CString(uri).get()));
  }

  /// Notifies clients that the list of resources changed: for `set_resource_template_list`. When resources are
  /// registered or removed, the server does so by itself.
  Fallible<void> notify_resource_list_changed() {
    return detail::done(mcpl_server_notify_resource_list_changed(server_.get()));
  }

  /// Notifies the client that a URL elicitation is complete.
  Fallible<void> notify_elicitation_complete(std::string_view elicitation_id) {
    return detail::done(mcpl_server_notify_elicitation_complete(server_.get(), detail::CString(elicitation_id).get()));
  }

#if defined(MCPLINE_HAS_STDIO)
  /// Serves over standard input and output until the client disconnects, `stop`, SIGINT or SIGTERM.
  Fallible<void> run_stdio(Signals on_signals = Signals::stop) {
    MCPLINE_CHECK_RESULT(heed(on_signals));
    return detail::done(mcpl_server_run_stdio(server_.get()));
  }
#endif

#if defined(MCPLINE_HAS_UNIX)
  /// Serves on a Unix socket until `stop`, SIGINT or SIGTERM: each connection is a client. For `options` see
  /// mcpl_server_run_unix.
  Fallible<void> run_unix(std::string_view path, const JsonText &options = nullptr,
                          Signals on_signals = Signals::stop) {
    MCPLINE_CHECK_RESULT(heed(on_signals));
    const std::string text = options.text();
    return detail::done(mcpl_server_run_unix(server_.get(), detail::CString(path).get(),
                                             options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Serves over HTTP until `stop`, SIGINT or SIGTERM: Streamable HTTP at /mcp, HTTP+SSE at /sse. For `options` see
  /// mcpl_server_run_http.
  Fallible<void> run_http(std::string_view host, std::uint16_t port, const JsonText &options = nullptr,
                          Signals on_signals = Signals::stop) {
    MCPLINE_CHECK_RESULT(heed(on_signals));
    const std::string text = options.text();
    return detail::done(mcpl_server_run_http(server_.get(), detail::CString(host).get(), port,
                                             options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_STDIO)
  /// Serves over standard input and output in the background.
  Fallible<void> start_stdio() { return detail::done(mcpl_server_start_stdio(server_.get())); }
#endif

#if defined(MCPLINE_HAS_UNIX)
  /// Serves on a Unix socket in the background. Returns as soon as the server listens.
  Fallible<void> start_unix(std::string_view path, const JsonText &options = nullptr) {
    const std::string text = options.text();
    return detail::done(mcpl_server_start_unix(server_.get(), detail::CString(path).get(),
                                               options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_AUTH) && defined(MCPLINE_HAS_CLIENT)
  /// Verifies access tokens with a handler, where `auth` in the HTTP options has `"verifies": true`.
  ///
  /// A handler takes `(InputRequest &, const Json &params)` or fewer of these; `token` is in the parameters. It returns
  /// the token's properties as JSON (`mcpl_server_on_verify`), or throws an RpcError with code -1 for an invalid token.
  template <class F> Fallible<void> on_verify(F &&handler) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_server_on_verify(server_.get(), &detail::input_request<UserData>,
                                              new UserData(std::forward<F>(handler)), &detail::destroy<UserData>));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Serves over HTTP in the background. Returns the TCP port; for `port` 0 the system chooses one.
  Fallible<std::uint16_t> start_http(std::string_view host, std::uint16_t port, const JsonText &options = nullptr) {
    const std::string text = options.text();
    std::uint16_t bound = 0;
    MCPLINE_CHECK(mcpl_server_start_http(server_.get(), detail::CString(host).get(), port,
                                         options.data() == nullptr ? nullptr : text.c_str(), &bound));
    return bound;
  }
#endif

  /// Serves one client over a transport that the program provides. `principal` is the authenticated client, as JSON
  /// (`mcpl_server_serve_channel`); without one the client may use everything.
  Fallible<Channel> serve(std::unique_ptr<Transport> transport, std::string_view principal = {}) {
    using UserData = std::unique_ptr<Transport>;
    const mcpl_channel_functions functions = detail::TransportFunctions::table(false);
    mcpl_channel *const channel =
        mcpl_server_serve_channel(server_.get(), &functions, principal.data(), principal.size(),
                                  new UserData(std::move(transport)), &detail::destroy<UserData>);
    MCPLINE_CHECK_HANDLE(channel);
    return Channel(channel);
  }

  /// Stops the server on SIGINT and SIGTERM. From now on these signals no longer end the process.
  Fallible<void> stop_on_signals() { return detail::done(mcpl_server_stop_on_signals(server_.get())); }

  /// Stops all transports without waiting. Calls in flight may continue for `shutdown_timeout`; then they are cancelled
  /// and answered with an error. Any thread, but not from a signal handler.
  Fallible<void> stop() { return detail::done(mcpl_server_stop(server_.get())); }

  /// Waits until all transports have ended; returns false after `timeout`.
  Fallible<bool> wait(Milliseconds timeout = no_timeout) {
    const mcpl_status status = mcpl_server_wait(server_.get(), timeout.count());
    if (status == MCPL_WAIT_TIMED_OUT) {
      return false;
    }
    MCPLINE_CHECK(status);
    return true;
  }

  /// Sets the callback that is called each time the last transport has ended: `ended(std::optional<Error>)`, without an
  /// error after a normal end.
  template <class F> Fallible<void> on_end(F &&ended) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_server_on_end(
        server_.get(),
        [](mcpl_server *, const mcpl_error *error, void *user) {
          detail::guarded([&]() -> decltype(auto) {
            return (*static_cast<UserData *>(user))(error == nullptr ? std::nullopt : std::optional(Error(error)));
          });
        },
        new UserData(std::forward<F>(ended)), &detail::destroy<UserData>));
  }

  /// Stops the server and waits until it has ended and none of its callbacks runs; none runs afterwards. The destructor
  /// does the same but cannot report an error.
  Fallible<void> close() { return detail::done(mcpl_server_close(server_.get())); }

  /// Returns the C handle, which this object still owns.
  mcpl_server *get() const noexcept { return server_.get(); }

private:
  Fallible<void> heed(Signals on_signals) { return on_signals == Signals::stop ? stop_on_signals() : Fallible<void>(); }

  template <detail::Feature feature, class Add, class F>
  Fallible<void> add_with(Add add, const JsonText &definition, const HandlerOptions &options, F &&handler) {
    using UserData = std::decay_t<F>;
    const mcpl_handler_options table = options.table();
    return detail::done(add(server_.get(), definition.data(), definition.size(), &table,
                            &detail::handle<feature, UserData>, new UserData(std::forward<F>(handler)),
                            &detail::destroy<UserData>));
  }

  std::unique_ptr<mcpl_server, decltype(&mcpl_server_free)> server_;
};

MCPLINE_END_NAMESPACE

#endif

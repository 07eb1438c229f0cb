/// \file
/// Servers: what they offer, by callables, and how they serve it.

#ifndef MCPLINE_SERVER_HPP
#define MCPLINE_SERVER_HPP

#include "call.hpp"
#include "channel.hpp"
#ifdef MCPLINE_HAS_CLIENT
#include "question.hpp"
#endif

namespace mcpline {

/// How a handler is run.
struct HandlerOptions {
  /// On the I/O thread, without a change of threads: for handlers that never wait.
  bool on_io_thread = false;
  /// Never run anew for one request (asking in mid-call, on 2026-07-28, may need that).
  bool run_once = false;
  /// Tools: how many calls per second all clients together may make; 0 for the server's `tool_rate`.
  std::uint32_t calls_per_second = 0;
  /// How many of them at once; 0 for as many as come per second.
  std::uint32_t burst = 0;
  /// What a caller over HTTP must be allowed, where the server has `auth` among its options of HTTP: scopes with a
  /// space between each. Who lacks one finds it in no list.
  std::string scopes = {};
  /// The identifier of the extension that a custom method belongs to, one that the server declares; clients that do not
  /// declare it are refused.
  std::string extension = {};

  /// As C has it.
  mcpl_handler_options table() const {
    mcpl_handler_options options{};
    options.size = sizeof(options);
    options.flags = (on_io_thread ? static_cast<std::uint32_t>(MCPL_HANDLER_INLINE) : 0U) |
                    (run_once ? static_cast<std::uint32_t>(MCPL_HANDLER_RUN_ONCE) : 0U);
    options.calls_per_second = calls_per_second;
    options.burst = burst;
    options.scopes = scopes.empty() ? nullptr : scopes.c_str();
    options.extension = extension.empty() ? nullptr : extension.c_str();
    return options;
  }
};

/// What `Server::run_…` does about SIGINT and SIGTERM.
enum class Signals {
  /// They stop the server (`Server::stop_on_signals`): for programs that are nothing but the server.
  stop,
  /// They are the program's: have it call `Server::stop`, but not from within the signal's handler.
  leave,
};

/// A server. Its destructor stops serving, lets calls in flight end, waits for callbacks that run, and then destroys
/// the handlers. Any thread.
///
/// A handler takes `(Call &, const Json &arguments)` or fewer of these, and returns its answer: a string, Bytes,
/// Content, Structured, Result or Questions; a Json or nlohmann::json, which a tool gives as structured content, a
/// custom request as its result and others as text. Or it takes `(Call, …)`, keeps the call and answers later. The
/// arguments fit the schema already; they are valid until the handler returns, longer after Json::owned.
class Server {
public:
  /// A server that offers nothing yet.
  Server(std::string_view name, std::string_view version)
      : server_(detail::checked(mcpl_server_new(detail::Short(name).get(), detail::Short(version).get())),
                &mcpl_server_free) {}

  /// `info` is an Implementation (name, version, title, …); `options` are those of mcpl_server_new_with.
  static Server with(const JsonText &info, const JsonText &options = nullptr) {
    return Server(detail::checked(mcpl_server_new_with(info.data(), info.size(), options.data(), options.size())));
  }

  /// Takes over a C handle.
  explicit Server(mcpl_server *server) noexcept : server_(server, &mcpl_server_free) {}

  /// Has callbacks run on the thread that dispatches `loop`. Before it serves.
  void use_loop(Loop &loop) { detail::check(mcpl_server_use_loop(server_.get(), loop.get())); }

  /// A tool; `input_schema` is a JSON Schema, nullptr for no arguments.
  template <class F>
  void add_tool(std::string_view name, std::string_view description, const JsonText &input_schema, F &&handler) {
    const std::string schema = input_schema.text();
    const detail::Short named(name), described(description);
    detail::check(mcpl_server_add_tool(
        server_.get(), named.get(), described.get(), input_schema.data() == nullptr ? nullptr : schema.c_str(),
        &detail::handle<detail::Feature::tool, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// A tool by its whole definition (a Tool of the protocol).
  template <class F> void add_tool(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    add_with<detail::Feature::tool>(&mcpl_server_add_tool_with, definition, options, std::forward<F>(handler));
  }

  /// A resource; `mime_type` may be empty.
  template <class F>
  void add_resource(std::string_view uri, std::string_view name, std::string_view mime_type, F &&handler) {
    const detail::Short addressed(uri), named(name), typed(mime_type);
    detail::check(mcpl_server_add_resource(server_.get(), addressed.get(), named.get(), typed.or_null(),
                                           &detail::handle<detail::Feature::resource, std::decay_t<F>>,
                                           new std::decay_t<F>(std::forward<F>(handler)),
                                           &detail::destroy<std::decay_t<F>>));
  }

  /// A resource by its whole definition (a Resource).
  template <class F> void add_resource(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    add_with<detail::Feature::resource>(&mcpl_server_add_resource_with, definition, options, std::forward<F>(handler));
  }

  /// Resources by a URI template (RFC 6570): the arguments are its variables, Call::name is the URI.
  template <class F>
  void add_resource_template(std::string_view uri_template, std::string_view name, std::string_view mime_type,
                             F &&handler) {
    const detail::Short addressed(uri_template), named(name), typed(mime_type);
    detail::check(mcpl_server_add_resource_template(server_.get(), addressed.get(), named.get(), typed.or_null(),
                                                    &detail::handle<detail::Feature::resource, std::decay_t<F>>,
                                                    new std::decay_t<F>(std::forward<F>(handler)),
                                                    &detail::destroy<std::decay_t<F>>));
  }

  /// Resources by a template's whole definition (a ResourceTemplate).
  template <class F>
  void add_resource_template(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    add_with<detail::Feature::resource>(&mcpl_server_add_resource_template_with, definition, options,
                                        std::forward<F>(handler));
  }

  /// A prompt; `arguments` is an array of PromptArgument, nullptr for none.
  template <class F>
  void add_prompt(std::string_view name, std::string_view description, const JsonText &arguments, F &&handler) {
    const std::string listed = arguments.text();
    const detail::Short named(name), described(description);
    detail::check(mcpl_server_add_prompt(
        server_.get(), named.get(), described.get(), arguments.data() == nullptr ? nullptr : listed.c_str(),
        &detail::handle<detail::Feature::prompt, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// A prompt by its whole definition (a Prompt).
  template <class F> void add_prompt(const JsonText &definition, F &&handler, const HandlerOptions &options = {}) {
    add_with<detail::Feature::prompt>(&mcpl_server_add_prompt_with, definition, options, std::forward<F>(handler));
  }

  /// Serves requests of a method that no revision of the protocol defines; `params_schema` is the JSON Schema of their
  /// parameters, nullptr for any. The handler's arguments are the parameters; it returns the result, an object, as
  /// Json, nlohmann::json or Result.
  template <class F>
  void on_request(std::string_view method, const JsonText &params_schema, F &&handler,
                  const HandlerOptions &options = {}) {
    const std::string schema = params_schema.text();
    const mcpl_handler_options table = options.table();
    detail::check(mcpl_server_on_request(
        server_.get(), detail::Short(method).get(), params_schema.data() == nullptr ? nullptr : schema.c_str(), &table,
        &detail::handle<detail::Feature::request, std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Handles notifications of a method that no revision of the protocol defines; `params_schema` is the JSON Schema of
  /// their parameters, nullptr for any. A handler takes `(Call &, const Json &params)`; its result is ignored.
  template <class F>
  void on_notification(std::string_view method, const JsonText &params_schema, F &&handler,
                       const HandlerOptions &options = {}) {
    const std::string schema = params_schema.text();
    const mcpl_handler_options table = options.table();
    detail::check(mcpl_server_on_notification(
        server_.get(), detail::Short(method).get(), params_schema.data() == nullptr ? nullptr : schema.c_str(), &table,
        &detail::handle_notification<std::decay_t<F>>, new std::decay_t<F>(std::forward<F>(handler)),
        &detail::destroy<std::decay_t<F>>));
  }

  /// Completes an argument of a prompt (by name) or a variable of a template (by its URI template) from a list.
  void add_candidates(std::string_view reference, std::string_view argument,
                      const std::vector<std::string> &candidates) {
    std::vector<const char *> pointers;
    pointers.reserve(candidates.size());
    for (const std::string &candidate : candidates) {
      pointers.push_back(candidate.c_str());
    }
    detail::check(mcpl_server_add_candidates(server_.get(), detail::Short(reference).get(),
                                             detail::Short(argument).get(), pointers.data(), pointers.size()));
  }

  /// Likewise by a handler, which is given `{"ref", "argument", "context"}` and may return a std::vector<std::string>.
  template <class F> void add_completion(std::string_view reference, std::string_view argument, F &&handler) {
    const detail::Short referred(reference), argued(argument);
    detail::check(mcpl_server_add_completion(
        server_.get(), referred.get(), argued.get(), &detail::handle<detail::Feature::completion, std::decay_t<F>>,
        new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Completes whatever has no completion of its own.
  template <class F> void set_completion(F &&handler) {
    detail::check(
        mcpl_server_set_completion(server_.get(), &detail::handle<detail::Feature::completion, std::decay_t<F>>,
                                   new std::decay_t<F>(std::forward<F>(handler)), &detail::destroy<std::decay_t<F>>));
  }

  /// Calls `handler(Call &)` for each session whose handshake is complete (revisions up to 2025-11-25). The call is
  /// outside of any request: it asks the client until the handler returns, or, if the handler moved it away, until it
  /// is ended.
  template <class F> void on_initialized(F &&handler) {
    detail::check(mcpl_server_on_initialized(server_.get(), &detail::handle_event<std::decay_t<F>>,
                                             new std::decay_t<F>(std::forward<F>(handler)),
                                             &detail::destroy<std::decay_t<F>>));
  }

  /// Likewise when a client that declared roots tells that they changed: ask for them with `Call::list_roots`.
  template <class F> void on_roots_changed(F &&handler) {
    detail::check(mcpl_server_on_roots_changed(server_.get(), &detail::handle_event<std::decay_t<F>>,
                                               new std::decay_t<F>(std::forward<F>(handler)),
                                               &detail::destroy<std::decay_t<F>>));
  }

  /// Takes a tool away.
  void remove_tool(std::string_view name) {
    detail::check(mcpl_server_remove_tool(server_.get(), detail::Short(name).get()));
  }

  /// Takes a resource or a template away.
  void remove_resource(std::string_view uri) {
    detail::check(mcpl_server_remove_resource(server_.get(), detail::Short(uri).get()));
  }

  /// Takes a prompt away.
  void remove_prompt(std::string_view name) {
    detail::check(mcpl_server_remove_prompt(server_.get(), detail::Short(name).get()));
  }

  /// Takes the handler of a custom request away.
  void remove_request_handler(std::string_view method) {
    detail::check(mcpl_server_remove_request_handler(server_.get(), detail::Short(method).get()));
  }

  /// Removes the handler of a custom notification. Those that run go on.
  void remove_notification_handler(std::string_view method) {
    detail::check(mcpl_server_remove_notification_handler(server_.get(), detail::Short(method).get()));
  }

  /// Tells those who have subscribed that a resource is another now.
  void notify_resource_updated(std::string_view uri) {
    detail::check(mcpl_server_notify_resource_updated(server_.get(), detail::Short(uri).get()));
  }

  /// Tells clients that what an elicitation by URL was about is done.
  void notify_elicitation_complete(std::string_view elicitation_id) {
    detail::check(mcpl_server_notify_elicitation_complete(server_.get(), detail::Short(elicitation_id).get()));
  }

#if defined(MCPLINE_HAS_STDIO)
  /// Serves stdin and stdout until the client is gone, until `stop`, or until SIGINT or SIGTERM.
  void run_stdio(Signals signals = Signals::stop) {
    heed(signals);
    detail::check(mcpl_server_run_stdio(server_.get()));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Serves HTTP until `stop`, or until SIGINT or SIGTERM: Streamable HTTP at /mcp, HTTP+SSE at /sse. `options` as
  /// mcpl_server_run_http has them.
  void run_http(std::string_view host, std::uint16_t port, const JsonText &options = nullptr,
                Signals signals = Signals::stop) {
    heed(signals);
    const std::string text = options.text();
    detail::check(mcpl_server_run_http(server_.get(), detail::Short(host).get(), port,
                                       options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_STDIO)
  /// Serves stdin and stdout in the background.
  void start_stdio() { detail::check(mcpl_server_start_stdio(server_.get())); }
#endif

#if defined(MCPLINE_HAS_AUTH) && defined(MCPLINE_HAS_CLIENT)
  /// Checks every token, where the `auth` among the options of HTTP has `"verifies": true`. A handler takes
  /// `(Question &, const Json &params)` or fewer of these, with the `token` among the parameters, and returns what the
  /// token says as JSON (`mcpl_server_on_verify`); an RpcError with the code -1 says that it isn't good.
  template <class F> void on_verify(F &&handler) {
    using Kept = std::decay_t<F>;
    detail::check(mcpl_server_on_verify(server_.get(), &detail::question<Kept>, new Kept(std::forward<F>(handler)),
                                        &detail::destroy<Kept>));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Serves HTTP in the background; returns the port, which is a free one for 0.
  std::uint16_t start_http(std::string_view host, std::uint16_t port, const JsonText &options = nullptr) {
    const std::string text = options.text();
    std::uint16_t bound = 0;
    detail::check(mcpl_server_start_http(server_.get(), detail::Short(host).get(), port,
                                         options.data() == nullptr ? nullptr : text.c_str(), &bound));
    return bound;
  }
#endif

  /// Serves one client by a transport of the program's own. `principal` is who the client is, as JSON
  /// (`mcpl_server_serve_channel`); a client of whom nothing is known may do everything.
  Channel serve(std::unique_ptr<Transport> transport, std::string_view principal = {}) {
    using Kept = std::unique_ptr<Transport>;
    const mcpl_channel_functions functions = detail::TransportFunctions::table(false);
    return Channel(
        detail::checked(mcpl_server_serve_channel(server_.get(), &functions, principal.data(), principal.size(),
                                                  new Kept(std::move(transport)), &detail::destroy<Kept>)));
  }

  /// From now on SIGINT and SIGTERM stop it, and end the process in no other way any more.
  void stop_on_signals() { detail::check(mcpl_server_stop_on_signals(server_.get())); }

  /// Begins to stop: calls in flight get the grace period, then they are cancelled and answered with an error. Any
  /// thread, but no signal handler.
  void stop() { detail::check(mcpl_server_stop(server_.get())); }

  /// Waits until nothing is served any more; false if something still is after `timeout`.
  bool wait(Milliseconds timeout = forever) {
    const mcpl_status status = mcpl_server_wait(server_.get(), timeout.count());
    if (status == MCPL_WAIT_TIMED_OUT) {
      return false;
    }
    detail::check(status);
    return true;
  }

  /// Runs `ended(std::optional<Error>)` each time that the last transport has ended, with what it ended with, if not in
  /// order.
  template <class F> void on_end(F &&ended) {
    using Kept = std::decay_t<F>;
    detail::check(mcpl_server_on_end(
        server_.get(),
        [](mcpl_server *, const mcpl_error *error, void *user) {
          detail::guarded([&] {
            (*static_cast<Kept *>(user))(error == nullptr ? std::nullopt : std::optional<Error>(Error(error)));
          });
        },
        new Kept(std::forward<F>(ended)), &detail::destroy<Kept>));
  }

  /// Stops, waits, and waits for callbacks that run; no callback runs afterwards. The destructor does as much, but
  /// can't tell what went wrong.
  void close() { detail::check(mcpl_server_close(server_.get())); }

  /// The C handle, which stays this object's.
  mcpl_server *get() const noexcept { return server_.get(); }

private:
  void heed(Signals signals) {
    if (signals == Signals::stop) {
      stop_on_signals();
    }
  }

  template <detail::Feature feature, class Add, class F>
  void add_with(Add add, const JsonText &definition, const HandlerOptions &options, F &&handler) {
    using Kept = std::decay_t<F>;
    const mcpl_handler_options table = options.table();
    detail::check(add(server_.get(), definition.data(), definition.size(), &table, &detail::handle<feature, Kept>,
                      new Kept(std::forward<F>(handler)), &detail::destroy<Kept>));
  }

  std::unique_ptr<mcpl_server, decltype(&mcpl_server_free)> server_;
};

} // namespace mcpline

#endif

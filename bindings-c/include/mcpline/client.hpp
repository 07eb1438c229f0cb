/// \file
/// Clients: connecting, sending requests, and handling what servers send.

#ifndef MCPLINE_CLIENT_HPP
#define MCPLINE_CLIENT_HPP

#include <optional>

#include "channel.hpp"
#include "input_request.hpp"
#include "request.hpp"
#include "server.hpp"

MCPLINE_BEGIN_NAMESPACE

/// A client: a connection to one server, which it restores after a loss. The destructor closes the connection, waits
/// for running callbacks, and then destroys the handlers.
///
/// Functions that send a request wait for its result. Their `_async` versions return a Pending (a std::future<Json>),
/// or, if the last argument is a callable, call it with a `const Outcome &` and return a Request. Results are JSON as
/// defined by the protocol; lists contain all pages, as one array. Any thread.
class Client {
  template <class F> using Callback = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &, const Outcome &>, int>;

public:
#if MCPLINE_EXCEPTIONS
  /// Creates an unconnected client. `name` and `version` are sent to servers.
  Client(std::string_view name, std::string_view version) : Client(create(name, version)) {}
#endif

  /// Creates an unconnected client. `name` and `version` are sent to servers.
  static Fallible<Client> create(std::string_view name, std::string_view version) {
    mcpl_client *const client = mcpl_client_new(detail::CString(name).get(), detail::CString(version).get());
    MCPLINE_CHECK_HANDLE(client);
    return Client(client);
  }

  /// Takes ownership of a C handle.
  explicit Client(mcpl_client *client) noexcept : client_(client, &mcpl_client_free) {}

  /// Sets options: see mcpl_client_set_options. Call it before connecting.
  Fallible<void> set_options(const JsonText &options) {
    return detail::done(mcpl_client_set_options(client_.get(), options.data(), options.size()));
  }

  /// Sets how long requests wait without progress and in total: see mcpl_client_set_timeout_ms. Zero is the default;
  /// `no_timeout` is no limit. Call it before connecting, and after `set_options`.
  Fallible<void> set_timeout(Milliseconds timeout, Milliseconds total_timeout = {}) {
    return detail::done(mcpl_client_set_timeout_ms(client_.get(), timeout.count(), total_timeout.count()));
  }

#if defined(MCPLINE_HAS_AUTH)
  /// Sets the access token for servers at a URL, without `Bearer`. Call it before connecting.
  Fallible<void> set_bearer(std::string_view token) {
    return detail::done(mcpl_client_set_bearer(client_.get(), detail::CString(token).get()));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Sets a header for servers at a URL. Call it before connecting.
  Fallible<void> set_header(std::string_view name, std::string_view value) {
    return detail::done(
        mcpl_client_set_header(client_.get(), detail::CString(name).get(), detail::CString(value).get()));
  }
#endif

#if defined(MCPLINE_HAS_STDIO)
  /// Sets an environment variable of the process that the client starts. Call it before connecting.
  Fallible<void> set_env(std::string_view name, std::string_view value) {
    return detail::done(mcpl_client_set_env(client_.get(), detail::CString(name).get(), detail::CString(value).get()));
  }

  /// Sets the working directory of the process that the client starts. Call it before connecting.
  Fallible<void> set_cwd(std::string_view path) {
    return detail::done(mcpl_client_set_cwd(client_.get(), detail::CString(path).get()));
  }
#endif

  /// Runs all callbacks of the client on the thread that dispatches `loop`. Call it before connecting.
  Fallible<void> use_loop(Loop &loop) { return detail::done(mcpl_client_use_loop(client_.get(), loop.get())); }

  /// Sets the handler for elicitation. Call it before connecting.
  ///
  /// A handler takes `(InputRequest &, const Json &params)` or fewer of these and returns the result as JSON, or takes
  /// `(InputRequest, const Json &)` and answers later.
  template <class F> Fallible<void> on_elicit(F &&handler) {
    return on_input_request(&mcpl_client_on_elicit, std::forward<F>(handler));
  }

  /// Sets the handler for sampling; handlers are as in `on_elicit`. Call it before connecting.
  ///
  /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
  template <class F> Fallible<void> on_sample(F &&handler) {
    return on_input_request(&mcpl_client_on_sample, std::forward<F>(handler));
  }

  /// Sets the handler for requests for root directories; handlers are as in `on_elicit`. Call it before connecting.
  ///
  /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
  template <class F> Fallible<void> on_list_roots(F &&handler) {
    return on_input_request(&mcpl_client_on_list_roots, std::forward<F>(handler));
  }

  /// Sets the handler for requests of a custom method (`mcpl_client_on_request`). Handlers are as in `on_elicit` and
  /// return an object. Call it before connecting.
  template <class F> Fallible<void> on_request(std::string_view method, F &&handler) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_request(client_.get(), detail::CString(method).get(),
                                               &detail::input_request<UserData>, new UserData(std::forward<F>(handler)),
                                               &detail::destroy<UserData>));
  }

  /// Sets the handler for a result type that an extension defines (`mcpl_client_on_result_type`). Handlers are as in
  /// `on_elicit` and return the method's result. Call it before connecting.
  template <class F> Fallible<void> on_result_type(std::string_view result_type, F &&handler) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_result_type(client_.get(), detail::CString(result_type).get(),
                                                   &detail::input_request<UserData>,
                                                   new UserData(std::forward<F>(handler)), &detail::destroy<UserData>));
  }

  /// Sets the handler that is called before each tool call is sent (`mcpl_client_on_tool_call`). It returns `"{}"` to
  /// allow the call, or throws an RpcError whose message is the reason for the refusal. Call it before connecting.
  template <class F> Fallible<void> on_tool_call(F &&handler) {
    return on_input_request(&mcpl_client_on_tool_call, std::forward<F>(handler));
  }

  /// Sets the handler that is called with the outcome of each tool call (`mcpl_client_on_tool_outcome`). It returns
  /// `"{}"`. Call it before connecting.
  template <class F> Fallible<void> on_tool_outcome(F &&handler) {
    return on_input_request(&mcpl_client_on_tool_outcome, std::forward<F>(handler));
  }

#if defined(MCPLINE_HAS_AUTH)
  /// Sets the handler for the host's part in authorization; `method` in its parameters names the request
  /// (`mcpl_client_on_authorize`). Call it before connecting.
  template <class F> Fallible<void> on_authorize(F &&handler) {
    return on_input_request(&mcpl_client_on_authorize, std::forward<F>(handler));
  }
#endif

  /// Sets the callback for notifications of the server: `listener(std::string_view method, const Json &params)`. It
  /// runs for one notification at a time. Call it before connecting.
  template <class F> Fallible<void> on_notification(F &&listener) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_notification(
        client_.get(),
        [](mcpl_client *, const char *method, const char *params, std::size_t length, void *user) {
          detail::guarded(
              [&] { return (*static_cast<UserData *>(user))(std::string_view(method), json_or_null(params, length)); });
        },
        new UserData(std::forward<F>(listener)), &detail::destroy<UserData>));
  }

  /// Sets the callback for log messages of the server: `listener(mcpl_log_level, std::string_view logger, const Json
  /// &data)`. It runs for one message at a time. Call it before connecting.
  ///
  /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
  template <class F> Fallible<void> on_log(F &&listener) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_log(
        client_.get(),
        [](mcpl_client *, mcpl_log_level level, const char *logger, const char *data, std::size_t length, void *user) {
          detail::guarded([&]() -> decltype(auto) {
            return (*static_cast<UserData *>(user))(level, std::string_view(logger == nullptr ? "" : logger),
                                                    json_or_null(data, length));
          });
        },
        new UserData(std::forward<F>(listener)), &detail::destroy<UserData>));
  }

  /// Sets the callback for changes of the connection: `listener(mcpl_connection_event, const std::optional<Error> &)`.
  /// The error says why there is no connection, if it was lost or given up; other changes have none. It runs for one
  /// change at a time. Call it before connecting.
  template <class F> Fallible<void> on_connection(F &&listener) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_connection(
        client_.get(),
        [](mcpl_client *, mcpl_connection_event event, const mcpl_error *error, void *user) {
          detail::guarded([&] {
            std::optional<Error> lost;
            if (error != nullptr) {
              lost.emplace(error);
            }
            return (*static_cast<UserData *>(user))(event, std::as_const(lost));
          });
        },
        new UserData(std::forward<F>(listener)), &detail::destroy<UserData>));
  }

#if defined(MCPLINE_HAS_STDIO)
  /// Sets the callback for lines that the server process writes to stderr: `listener(std::string_view line)`. It runs
  /// for one line at a time. Call it before connecting.
  template <class F> Fallible<void> on_stderr(F &&listener) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_client_on_stderr(
        client_.get(),
        [](mcpl_client *, const char *line, std::size_t length, void *user) {
          detail::guarded(
              [&]() -> decltype(auto) { return (*static_cast<UserData *>(user))(std::string_view(line, length)); });
        },
        new UserData(std::forward<F>(listener)), &detail::destroy<UserData>));
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Connects to a URL: `set_url` and `open`.
  Fallible<void> connect(std::string_view url) {
    MCPLINE_CHECK_RESULT(set_url(url));
    return open();
  }
#endif

  /// Connects to a server in this process: `set_server` and `open`.
  Fallible<void> connect(Server &server) {
    MCPLINE_CHECK_RESULT(set_server(server));
    return open();
  }

  /// Connects over a transport that the program provides: `set_transport` and `open`.
  Fallible<void> connect(std::unique_ptr<Transport> transport) {
    MCPLINE_CHECK_RESULT(set_transport(std::move(transport)));
    return open();
  }

#if defined(MCPLINE_HAS_STDIO)
  /// Starts a program and connects to its standard input and output: `set_command` and `open`.
  Fallible<void> spawn(const std::vector<std::string> &command) {
    MCPLINE_CHECK_RESULT(set_command(command));
    return open();
  }
#endif

#if defined(MCPLINE_HAS_HTTP)
  /// Sets the target of `open`: a URL. For `options` see mcpl_client_set_url.
  Fallible<void> set_url(std::string_view url, const JsonText &options = nullptr) {
    const std::string text = options.text();
    return detail::done(mcpl_client_set_url(client_.get(), detail::CString(url).get(),
                                            options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_STDIO)
  /// Sets the target of `open`: a program with its arguments, which `open` starts. For `options` see
  /// mcpl_client_set_command.
  Fallible<void> set_command(const std::vector<std::string> &command, const JsonText &options = nullptr) {
    std::vector<const char *> pointers;
    pointers.reserve(command.size());
    for (const std::string &word : command) {
      pointers.push_back(word.c_str());
    }
    const std::string text = options.text();
    return detail::done(mcpl_client_set_command(client_.get(), pointers.data(), pointers.size(),
                                                options.data() == nullptr ? nullptr : text.c_str()));
  }
#endif

#if defined(MCPLINE_HAS_STDIO)
  /// Sets the target of `open`: the path of a Unix socket.
  Fallible<void> set_socket(std::string_view path) {
    return detail::done(mcpl_client_set_socket(client_.get(), detail::CString(path).get()));
  }
#endif

  /// Sets the target of `open`: a server in this process.
  Fallible<void> set_server(Server &server) {
    return detail::done(mcpl_client_set_server(client_.get(), server.get()));
  }

  /// Sets the target of `open`: a server in this process, whose handlers see the principal and the headers in
  /// `options`; see mcpl_client_set_server_with.
  Fallible<void> set_server(Server &server, const JsonText &options) {
    return detail::done(
        mcpl_client_set_server_with(client_.get(), server.get(), detail::CString(options.text()).get()));
  }

  /// Sets the target of `open`: a server in the configuration file of a host; see mcpl_client_set_config.
  Fallible<void> set_config(std::string_view path, std::string_view name = {}) {
    return detail::done(
        mcpl_client_set_config(client_.get(), detail::CString(path).get(), detail::CString(name).or_null()));
  }

  /// Returns the id of the server's process, if the client has started it and is connected to it; otherwise 0.
  std::uint32_t pid() const noexcept { return mcpl_client_pid(client_.get()); }

  /// Returns a snapshot of what the client holds now: see mcpl_client_stats.
  Fallible<Json> stats() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_client_stats(client_.get(), &text, &length));
    return Json(detail::taken(text, length));
  }

  /// Returns the metrics of the client in the text format of Prometheus. Empty if the option `metrics` is off.
  Fallible<std::string> metrics() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_client_metrics(client_.get(), &text, &length));
    return detail::taken(text, length);
  }

  /// Sets the target of `open`: a transport that the program provides.
  Fallible<void> set_transport(std::unique_ptr<Transport> transport) {
    using UserData = std::unique_ptr<Transport>;
    const mcpl_channel_functions functions = detail::TransportFunctions::table(true);
    return detail::done(mcpl_client_set_channel(client_.get(), &functions, new UserData(std::move(transport)),
                                                &detail::destroy<UserData>));
  }

  /// Connects to the target that was set, and negotiates the protocol revision.
  Fallible<void> open() { return detail::done(mcpl_client_open(client_.get())); }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> open_async() {
    return later({}, [&](const mcpl_request_options *, mcpl_result_callback done, void *user, mcpl_request **request) {
      return mcpl_client_open_async(client_.get(), done, user, request);
    });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the client is connected or has failed to connect.
  template <class F, Callback<F> = 0> Fallible<Request> open_async(F &&done) {
    return begin(std::forward<F>(done), {},
                 [&](const mcpl_request_options *, mcpl_result_callback callback, void *user, mcpl_request **request) {
                   return mcpl_client_open_async(client_.get(), callback, user, request);
                 });
  }

  /// Returns information about the server: `{"protocolVersion", "serverInfo", "serverCapabilities", "instructions"}`.
  Fallible<Json> info() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_client_info(client_.get(), &text, &length));
    return Json(detail::taken(text, length));
  }

  /// Sends a request and returns its result. `params` is an object, or nullptr for none.
  Fallible<Json> request(std::string_view method, const JsonText &params,
                         const RequestOptions &options = detail::default_options()) {
    const detail::CString called(method);
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_request(client_.get(), called.get(), params.data(), params.size(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> request_async(std::string_view method, const JsonText &params,
                                        const RequestOptions &options = detail::default_options()) {
    const detail::CString called(method);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_request_async(client_.get(), called.get(), params.data(), params.size(), table,
                                                    done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> request_async(std::string_view method, const JsonText &params, F &&done,
                                  const RequestOptions &options = detail::default_options()) {
    const detail::CString called(method);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_request_async(client_.get(), called.get(), params.data(), params.size(), table, callback,
                                           user, request);
        });
  }

  /// Calls a tool and returns its CallToolResult. `arguments` is an object, or nullptr for none.
  Fallible<Json> call_tool(std::string_view name, const JsonText &arguments,
                           const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_call_tool(client_.get(), called.get(), arguments.data(), arguments.size(), table, result,
                                   length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> call_tool_async(std::string_view name, const JsonText &arguments,
                                          const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_call_tool_async(client_.get(), called.get(), arguments.data(), arguments.size(),
                                                      table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> call_tool_async(std::string_view name, const JsonText &arguments, F &&done,
                                    const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_call_tool_async(client_.get(), called.get(), arguments.data(), arguments.size(), table,
                                             callback, user, request);
        });
  }

  /// Lists all tools of the server, as an array of Tool.
  Fallible<Json> list_tools(const RequestOptions &options = detail::default_options()) {
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_list_tools(client_.get(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> list_tools_async(const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_list_tools_async(client_.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> list_tools_async(F &&done, const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_list_tools_async(client_.get(), table, callback, user, request);
        });
  }

  /// Lists all resources of the server, as an array of Resource.
  Fallible<Json> list_resources(const RequestOptions &options = detail::default_options()) {
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_list_resources(client_.get(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> list_resources_async(const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_list_resources_async(client_.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> list_resources_async(F &&done, const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_list_resources_async(client_.get(), table, callback, user, request);
        });
  }

  /// Lists all resource templates of the server, as an array of ResourceTemplate.
  Fallible<Json> list_resource_templates(const RequestOptions &options = detail::default_options()) {
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_list_resource_templates(client_.get(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> list_resource_templates_async(const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_list_resource_templates_async(client_.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> list_resource_templates_async(F &&done, const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_list_resource_templates_async(client_.get(), table, callback, user, request);
        });
  }

  /// Lists all prompts of the server, as an array of Prompt.
  Fallible<Json> list_prompts(const RequestOptions &options = detail::default_options()) {
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_list_prompts(client_.get(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> list_prompts_async(const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_list_prompts_async(client_.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> list_prompts_async(F &&done, const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_list_prompts_async(client_.get(), table, callback, user, request);
        });
  }

  /// Reads a resource and returns a ReadResourceResult.
  Fallible<Json> read_resource(std::string_view uri, const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_read_resource(client_.get(), address.get(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> read_resource_async(std::string_view uri,
                                              const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_read_resource_async(client_.get(), address.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> read_resource_async(std::string_view uri, F &&done,
                                        const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_read_resource_async(client_.get(), address.get(), table, callback, user, request);
        });
  }

  /// Gets a prompt and returns a GetPromptResult. `arguments` is an object of strings, or nullptr for none.
  Fallible<Json> get_prompt(std::string_view name, const JsonText &arguments,
                            const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_get_prompt(client_.get(), called.get(), arguments.data(), arguments.size(), table, result,
                                    length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> get_prompt_async(std::string_view name, const JsonText &arguments,
                                           const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_get_prompt_async(client_.get(), called.get(), arguments.data(), arguments.size(),
                                                       table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> get_prompt_async(std::string_view name, const JsonText &arguments, F &&done,
                                     const RequestOptions &options = detail::default_options()) {
    const detail::CString called(name);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_get_prompt_async(client_.get(), called.get(), arguments.data(), arguments.size(), table,
                                              callback, user, request);
        });
  }

  /// Completes an argument and returns a CompleteResult. `params` are the parameters of `completion/complete`.
  Fallible<Json> complete(const JsonText &params, const RequestOptions &options = detail::default_options()) {
    return wait(options, [&](const mcpl_request_options *table, char **result, std::size_t *length) {
      return mcpl_client_complete(client_.get(), params.data(), params.size(), table, result, length);
    });
  }

  /// Asynchronous version that returns a future.
  Fallible<Pending<Json>> complete_async(const JsonText &params,
                                         const RequestOptions &options = detail::default_options()) {
    return later(
        options, [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
          return mcpl_client_complete_async(client_.get(), params.data(), params.size(), table, done, user, request);
        });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> complete_async(const JsonText &params, F &&done,
                                   const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_complete_async(client_.get(), params.data(), params.size(), table, callback, user,
                                            request);
        });
  }

  /// Checks that the server responds.
  Fallible<void> ping(const RequestOptions &options = detail::default_options()) {
    return perform(options, [&](const mcpl_request_options *table) { return mcpl_client_ping(client_.get(), table); });
  }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> ping_async(const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_ping_async(client_.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> ping_async(F &&done, const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_ping_async(client_.get(), table, callback, user, request);
        });
  }

  /// Sets the minimum level of log messages that the server sends.
  ///
  /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
  Fallible<void> set_log_level(mcpl_log_level least, const RequestOptions &options = detail::default_options()) {
    return perform(options, [&](const mcpl_request_options *table) {
      return mcpl_client_set_log_level(client_.get(), least, table);
    });
  }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> set_log_level_async(mcpl_log_level least,
                                              const RequestOptions &options = detail::default_options()) {
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_set_log_level_async(client_.get(), least, table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> set_log_level_async(mcpl_log_level least, F &&done,
                                        const RequestOptions &options = detail::default_options()) {
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_set_log_level_async(client_.get(), least, table, callback, user, request);
        });
  }

  /// Subscribes to updates to a resource.
  Fallible<void> subscribe(std::string_view uri, const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return perform(options, [&](const mcpl_request_options *table) {
      return mcpl_client_subscribe(client_.get(), address.get(), table);
    });
  }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> subscribe_async(std::string_view uri,
                                          const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_subscribe_async(client_.get(), address.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> subscribe_async(std::string_view uri, F &&done,
                                    const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_subscribe_async(client_.get(), address.get(), table, callback, user, request);
        });
  }

  /// Unsubscribes from updates to a resource.
  Fallible<void> unsubscribe(std::string_view uri, const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return perform(options, [&](const mcpl_request_options *table) {
      return mcpl_client_unsubscribe(client_.get(), address.get(), table);
    });
  }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> unsubscribe_async(std::string_view uri,
                                            const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return later(options,
                 [&](const mcpl_request_options *table, mcpl_result_callback done, void *user, mcpl_request **request) {
                   return mcpl_client_unsubscribe_async(client_.get(), address.get(), table, done, user, request);
                 });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> unsubscribe_async(std::string_view uri, F &&done,
                                      const RequestOptions &options = detail::default_options()) {
    const detail::CString address(uri);
    return begin(
        std::forward<F>(done), options,
        [&](const mcpl_request_options *table, mcpl_result_callback callback, void *user, mcpl_request **request) {
          return mcpl_client_unsubscribe_async(client_.get(), address.get(), table, callback, user, request);
        });
  }

  /// Notifies the server that the root directories changed.
  Fallible<void> roots_changed() { return detail::done(mcpl_client_roots_changed(client_.get())); }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> roots_changed_async() {
    return later({}, [&](const mcpl_request_options *, mcpl_result_callback done, void *user, mcpl_request **request) {
      return mcpl_client_roots_changed_async(client_.get(), done, user, request);
    });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0> Fallible<Request> roots_changed_async(F &&done) {
    return begin(std::forward<F>(done), {},
                 [&](const mcpl_request_options *, mcpl_result_callback callback, void *user, mcpl_request **request) {
                   return mcpl_client_roots_changed_async(client_.get(), callback, user, request);
                 });
  }

  /// Sends a notification. `params` is an object, or nullptr for none.
  Fallible<void> notify(std::string_view method, const JsonText &params) {
    const detail::CString called(method);
    return detail::done(mcpl_client_notify(client_.get(), called.get(), params.data(), params.size()));
  }

  /// Asynchronous version that returns a future; its value is null.
  Fallible<Pending<Json>> notify_async(std::string_view method, const JsonText &params) {
    const detail::CString called(method);
    return later({}, [&](const mcpl_request_options *, mcpl_result_callback done, void *user, mcpl_request **request) {
      return mcpl_client_notify_async(client_.get(), called.get(), params.data(), params.size(), done, user, request);
    });
  }

  /// Asynchronous version that calls `done(const Outcome &)` when the request ends.
  template <class F, Callback<F> = 0>
  Fallible<Request> notify_async(std::string_view method, const JsonText &params, F &&done) {
    const detail::CString called(method);
    return begin(std::forward<F>(done), {},
                 [&](const mcpl_request_options *, mcpl_result_callback callback, void *user, mcpl_request **request) {
                   return mcpl_client_notify_async(client_.get(), called.get(), params.data(), params.size(), callback,
                                                   user, request);
                 });
  }

  /// Closes the connection and waits for running callbacks. Open requests fail with `MCPL_CLOSED`, and no callback runs
  /// afterwards. The destructor does the same but cannot report an error.
  Fallible<void> close() { return detail::done(mcpl_client_close(client_.get())); }

  /// Returns the C handle, which this object still owns.
  mcpl_client *get() const noexcept { return client_.get(); }

private:
  static Json json_or_null(const char *text, std::size_t length) {
    return text == nullptr || length == 0 ? Json() : Json::view(std::string_view(text, length));
  }

  template <class Register, class F> Fallible<void> on_input_request(Register registered, F &&handler) {
    using UserData = std::decay_t<F>;
    return detail::done(registered(client_.get(), &detail::input_request<UserData>,
                                   new UserData(std::forward<F>(handler)), &detail::destroy<UserData>));
  }

  template <class Start> Fallible<void> perform(const RequestOptions &options, Start &&start) {
    const detail::OptionsTable<const RequestOptions> table(options, &options);
    return detail::done(start(&table.table));
  }

  template <class Start> Fallible<Json> wait(const RequestOptions &options, Start &&start) {
    const detail::OptionsTable<const RequestOptions> table(options, &options);
    char *result = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(start(&table.table, &result, &length));
    return Json(detail::taken(result, length));
  }

  template <class F, class Start> Fallible<Request> begin(F &&done, const RequestOptions &options, Start &&start) {
    using Holder = detail::RequestCallbacks<std::decay_t<F>>;
    auto holder = std::make_unique<Holder>(Holder{std::forward<F>(done), options.progress});
    const detail::OptionsTable<Holder> table(options, holder.get());
    mcpl_request *request = nullptr;
    const mcpl_status status = start(
        &table.table,
        [](mcpl_request *, const mcpl_error *error, const char *result, std::size_t length, void *user) {
          const std::unique_ptr<Holder> mine(static_cast<Holder *>(user));
          detail::guarded([&]() -> decltype(auto) { return mine->done(Outcome(error, result, length)); });
        },
        holder.get(), &request);
    MCPLINE_CHECK(status);
    // The callback owns it, and may have run already.
    (void)holder.release();
    return Request(request);
  }

  template <class Start> Fallible<Pending<Json>> later(const RequestOptions &options, Start &&start) {
    detail::Fulfil fulfil;
    std::future<Fallible<Json>> future = fulfil.promise.get_future();
    std::shared_ptr<detail::Continuation> continuation = fulfil.continuation;
    MCPLINE_TAKE(request, begin(std::move(fulfil), options, std::forward<Start>(start)));
    return Pending<Json>(std::move(future), request, std::move(continuation));
  }

  std::unique_ptr<mcpl_client, decltype(&mcpl_client_free)> client_;
};

MCPLINE_END_NAMESPACE

#endif

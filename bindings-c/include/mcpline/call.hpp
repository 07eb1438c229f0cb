/// \file
/// One call of a server's handler: its arguments, what it may send meanwhile, and its result.

#ifndef MCPLINE_CALL_HPP
#define MCPLINE_CALL_HPP

#include <cmath>
#include <optional>

#include "loop.hpp"
#include "request_outcome.hpp"

MCPLINE_BEGIN_NAMESPACE

/// Binary data. From a resource it is the content, from a tool an image or audio. If `mime_type` is empty, the
/// definition's type is used.
struct Bytes {
  /// The data.
  std::string bytes;
  /// MIME type, such as "image/png".
  std::string mime_type{};
};

/// The main array of a result: content blocks (tool), messages (prompt) or contents (resource).
struct Content {
  /// The array.
  Json json;
};

/// Structured content of a tool. Clients without support for it receive it as text as well.
struct Structured {
  /// The object.
  Json json;
};

/// A complete result, as defined by the protocol.
struct Result {
  /// A CallToolResult, ReadResourceResult, GetPromptResult or CompleteResult, or the result of a custom request.
  Json json;
};

/// Input requests to the client. The handler is called again with the answers; see Call::info ("inputResponses").
struct InputRequired {
  /// `{"requests": [[key, method, params], …], "state": "…"}`
  Json json;
};

#if defined(MCPLINE_HAS_HTTP)
/// A session that a store has; see SessionStore.
struct StoredSession {
  /// The session, as it was stored.
  std::string_view bytes;
};

/// A part of a stream; see EventLog.
struct LoggedEvents {
  /// The events, one after the other.
  std::vector<std::string_view> events;
  /// Whether the stream ended after them.
  bool ended = false;
  /// Whether further events are stored already: then the next part is read. There must be events.
  bool has_more = false;
};
#endif

/// One call of a handler. Move it to answer later, from any thread. A call that is destroyed without an answer fails.
///
/// A call can be answered once; functions that use it after it has ended fail with `MCPL_STALE_HANDLE`. Any thread, one
/// at a time.
class Call {
public:
  /// Takes ownership of a C handle.
  explicit Call(mcpl_call *call) noexcept : call_(call) {}

  /// Moves the call.
  Call(Call &&other) noexcept : call_(other.release()) {}

  /// Moves the call; the one held before is failed if it has not been ended.
  Call &operator=(Call &&other) noexcept {
    if (this != &other) {
      drop();
      call_ = other.release();
    }
    return *this;
  }

  /// Fails the call if it has not been ended.
  ~Call() { drop(); }

  /// Returns the name of the tool or prompt, the URI of the resource, or the method of the custom request.
  Fallible<std::string> name() const {
    char *name = nullptr;
    MCPLINE_CHECK(mcpl_call_name(used(), &name));
    return detail::taken(name);
  }

  /// Returns the arguments; valid until the call ends.
  Fallible<Json> arguments() const {
    const char *arguments = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_arguments(used(), &arguments, &length));
    return Json::view(std::string_view(arguments, length));
  }

  /// Returns the context of the request: see mcpl_call_info.
  Fallible<Json> info() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_info(used(), &text, &length));
    return Json(detail::taken(text, length));
  }

  /// Returns the trace context of the request, without a value if the client has sent none: see
  /// mcpl_call_trace_context.
  Fallible<std::optional<Json>> trace_context() const {
    char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_trace_context(used(), &text, &length));
    return text == nullptr ? std::optional<Json>() : std::optional(Json(detail::taken(text, length)));
  }

  /// Checks that the caller has these scopes, separated by spaces; see mcpl_call_require_scopes.
  ///
  /// Fails with `MCPL_RPC_ERROR` if not. Pass the Error on: the client then gets the challenge for the scopes.
  Fallible<void> require_scopes(std::string_view scopes) const {
    return detail::done(mcpl_call_require_scopes(used(), detail::CString(scopes).get()));
  }

  /// Returns whether the request was cancelled or the call has ended.
  bool is_cancelled() const noexcept { return mcpl_call_is_cancelled(used()); }

  /// Calls `cancelled()` when the call is cancelled, at most once.
  template <class F> Fallible<void> on_cancel(F &&cancelled) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_call_on_cancel(
        call_,
        [](mcpl_call *, void *user) {
          detail::guarded([&]() -> decltype(auto) { return (*static_cast<UserData *>(user))(); });
        },
        new UserData(std::forward<F>(cancelled)), &detail::destroy<UserData>));
  }

  /// Reports progress, if the client requested it. `total` is NAN if unknown.
  Fallible<void> progress(double progress, double total = std::nan(""), std::string_view message = {}) {
    return detail::done(mcpl_call_progress(used(), progress, total, detail::CString(message).or_null()));
  }

  /// Sends a log message with JSON data to the client.
  ///
  /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
  Fallible<void> log(mcpl_log_level level, const JsonText &data, std::string_view logger = {}) {
    return detail::done(mcpl_call_log(used(), level, detail::CString(logger).or_null(), data.data(), data.size()));
  }

  /// Sends a log message with text to the client.
  Fallible<void> log_text(mcpl_log_level level, std::string_view text, std::string_view logger = {}) {
    return detail::done(mcpl_call_log_text(used(), level, detail::CString(logger).or_null(), text.data(), text.size()));
  }

  /// Sends a custom notification on the call's stream. `params` is an object, or nullptr for none.
  Fallible<void> notify(std::string_view method, const JsonText &params = nullptr) {
    return detail::done(mcpl_call_notify(used(), detail::CString(method).get(), params.data(), params.size()));
  }

  /// Closes the HTTP response stream while the call continues; the client reconnects for the rest (2025-11-25).
  Fallible<void> close_stream() { return detail::done(mcpl_call_close_stream(used())); }

  /// Sends an input request to the client and waits for the answer.
  ///
  /// Fails with `MCPL_WOULD_DEADLOCK` on threads that must not wait (inline handlers, within a dispatch); use
  /// `request_input_then` there. Keys must differ within a handler; empty keys are numbered.
  Fallible<Json> request_input(mcpl_input_request_method method, const JsonText &params = nullptr,
                               std::string_view key = {}) {
    char *result = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_request_input_wait(used(), detail::CString(key).or_null(), method, params.data(),
                                               params.size(), &result, &length));
    return Json(detail::taken(result, length));
  }

  /// Asks the user to fill in a form and waits; returns an ElicitResult, such as `{"action": "accept", "content":
  /// {…}}`.
  Fallible<Json> elicit(std::string_view message, const JsonText &schema) {
    MCPLINE_TAKE(params, elicitation(message, schema));
    return request_input(MCPL_INPUT_REQUEST_METHOD_ELICIT, params);
  }

  /// Requests a completion from the client's model and waits. `params` are the parameters of `sampling/createMessage`;
  /// returns a CreateMessageResult.
  ///
  /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
  Fallible<Json> sample(const JsonText &params) { return request_input(MCPL_INPUT_REQUEST_METHOD_SAMPLE, params); }

  /// Requests the client's root directories and waits; returns a ListRootsResult.
  ///
  /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
  Fallible<Json> list_roots() { return request_input(MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS); }

  /// Sends a custom request to the client and waits for its result, an object; see mcpl_call_send_request. Waits as
  /// `ask` does.
  Fallible<Json> send_request(std::string_view method, const JsonText &params = nullptr, std::string_view key = {}) {
    char *result = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_send_request_wait(used(), detail::CString(key).or_null(), detail::CString(method).get(),
                                              params.data(), params.size(), &result, &length));
    return Json(detail::taken(result, length));
  }

  /// In a middleware: passes the request on and waits for the result; see mcpl_call_next. `params` replace the
  /// parameters; nullptr for the received ones. Fails with the Error of the request, which the middleware may pass
  /// on. Waits as `ask` does.
  Fallible<Json> next(const JsonText &params = nullptr) {
    char *result = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_call_next_wait(used(), params.data(), params.size(), &result, &length));
    return Json(detail::taken(result, length));
  }

  /// Returns the parameters of a form elicitation, for `request_input_then`.
  static Fallible<Json> elicitation(std::string_view message, const JsonText &schema) {
    Writer writer;
    writer.begin_object().name("message").put(message).name("requestedSchema");
    writer.put_json(std::string_view(schema.data(), schema.size()));
    return writer.end_object().json();
  }

  /// Sends an input request to the client and returns at once. `then(Call &, const Outcome &)` continues the call; like
  /// a handler, it may return the result or throw. This object no longer holds the call.
  template <class F>
  Fallible<void> request_input_then(mcpl_input_request_method method, const JsonText &params, F &&then,
                                    std::string_view key = {});

  /// Replies with text: one text block (tool), one user message (prompt), or the text of a resource.
  Fallible<void> reply(std::string_view text) { return end(mcpl_call_reply_text(used(), text.data(), text.size())); }

  /// Replies with binary data: an image or audio (tool), or a blob (resource).
  Fallible<void> reply(const Bytes &bytes) {
    return end(mcpl_call_reply_bytes(used(), bytes.bytes.data(), bytes.bytes.size(),
                                     detail::CString(bytes.mime_type).or_null()));
  }

  /// Replies with content blocks (tool), messages (prompt) or contents (resource).
  Fallible<void> reply(const Content &content) {
    return end(mcpl_call_reply_content(used(), content.json.text().data(), content.json.text().size()));
  }

  /// Replies with structured content.
  Fallible<void> reply(const Structured &structured) {
    return end(mcpl_call_reply_structured(used(), structured.json.text().data(), structured.json.text().size()));
  }

  /// Replies with a complete result.
  Fallible<void> reply(const Result &result) {
    return end(mcpl_call_reply_result(used(), result.json.text().data(), result.json.text().size()));
  }

  /// Replies with input requests.
  Fallible<void> reply(const InputRequired &required) {
    return end(mcpl_call_reply_input_required(used(), required.json.text().data(), required.json.text().size()));
  }

  /// Replies with completion values, or with the URIs of the resources that a template lists.
  Fallible<void> reply(const std::vector<std::string> &candidates) {
    std::vector<const char *> pointers;
    pointers.reserve(candidates.size());
    for (const std::string &candidate : candidates) {
      pointers.push_back(candidate.c_str());
    }
    return end(mcpl_call_reply_values(used(), pointers.data(), pointers.size()));
  }

#if defined(MCPLINE_HAS_HTTP)
  /// Replies to a function of a SessionStore, EventLog or Bus: it is done, or `load` and `read` have found nothing.
  Fallible<void> done() { return end(mcpl_call_reply_done(used())); }

  /// Replies to SessionStore::load with the session, or to SessionStore::save with what another process has stored.
  Fallible<void> reply(const StoredSession &session) {
    return end(mcpl_call_reply_session(used(), session.bytes.data(), session.bytes.size()));
  }

  /// Replies to EventLog::read.
  Fallible<void> reply(const LoggedEvents &part) {
    std::vector<mcpl_bytes> events;
    events.reserve(part.events.size());
    for (const std::string_view event : part.events) {
      events.push_back({event.data(), event.size()});
    }
    return end(mcpl_call_reply_events(used(), events.data(), events.size(), part.ended, part.has_more));
  }
#endif

  /// Fails with an error message for the model.
  Fallible<void> fail(std::string_view message) { return end(mcpl_call_fail(used(), message.data(), message.size())); }

  /// Fails with a JSON-RPC error.
  Fallible<void> fail_rpc(std::int64_t code, std::string_view message, const JsonText &data = nullptr) {
    return end(mcpl_call_fail_rpc(used(), code, detail::CString(message).get(), data.data(), data.size()));
  }

  /// Fails with an internal error: `message` goes to the diagnostics and is not sent to the client.
  Fallible<void> fail_internal(std::string_view message) {
    return end(mcpl_call_fail_internal(used(), detail::CString(message).get()));
  }

  /// Fails because the resource does not exist: the one with this URI, or without a URI the one that the client reads.
  Fallible<void> fail_resource_not_found(std::string_view uri = {}) {
    return end(mcpl_call_fail_resource_not_found(used(), detail::CString(uri).or_null()));
  }

  /// Fails because the user must open URLs first: an array of `elicitation/create` parameters in URL mode.
  Fallible<void> fail_url_elicitation_required(const JsonText &elicitations) {
    return end(mcpl_call_fail_url_elicitation_required(used(), elicitations.data(), elicitations.size()));
  }

  /// Returns the C handle, which this object still owns.
  mcpl_call *get() const noexcept { return call_; }

  /// Releases the C handle to the caller, who must end the call.
  mcpl_call *release() noexcept {
    if (call_ != nullptr) {
      // Fails if the call has ended, which is fine.
      (void)mcpl_call_keep(call_);
    }
    return std::exchange(call_, nullptr);
  }

private:
  Fallible<void> end(mcpl_status status) {
    if (status == MCPL_OK) {
      ended_ = std::exchange(call_, nullptr);
    }
    return detail::done(status);
  }

  /// The handle for a function: that of the call that was ended, so that the function fails with `MCPL_STALE_HANDLE`.
  mcpl_call *used() const noexcept { return call_ != nullptr ? call_ : ended_; }

  void drop() noexcept {
    if (call_ != nullptr) {
      // Fails with MCPL_STALE_HANDLE if the call was answered, which is fine.
      (void)mcpl_call_fail_internal(call_, "the handler ended without a result");
      call_ = nullptr;
    }
  }

  mcpl_call *call_;
  mcpl_call *ended_ = nullptr;
};

namespace detail {

/// The kind of a handler; it decides what a Json result means.
enum class Feature { tool, resource, prompt, completion, resource_list, request };

/// Whether a handler that returns this fails its call.
template <class T>
inline constexpr bool is_error = std::is_same_v<T, ToolError> || std::is_same_v<T, RpcError> ||
                                 std::is_same_v<T, ResourceNotFound> || std::is_same_v<T, Error>;

/// Reports an error of a handler that has ended its call, or moved it away.
inline void report_late([[maybe_unused]] const char *message) noexcept {
#if MCPLINE_EXCEPTIONS
  if (std::current_exception() != nullptr) {
    report_unhandled();
    return;
  }
#endif
  std::fprintf(stderr, "mcpline: a handler failed after its call had ended: %s\n", message);
}

// Each of these ends a call with an error. `cause` is the error that the continuation received.

inline mcpl_status end_with(mcpl_call *handle, const mcpl_error *, const ToolError &error) noexcept {
  return mcpl_call_fail(handle, error.what(), MCPL_AUTO_LENGTH);
}

inline mcpl_status end_with(mcpl_call *handle, const mcpl_error *, const RpcError &error) noexcept {
  const bool none = error.data().empty();
  return mcpl_call_fail_rpc(handle, error.code(), error.what(), none ? nullptr : error.data().data(),
                            error.data().size());
}

inline mcpl_status end_with(mcpl_call *handle, const mcpl_error *, const ResourceNotFound &error) noexcept {
  return mcpl_call_fail_resource_not_found(handle, error.uri().empty() ? nullptr : error.uri().c_str());
}

inline mcpl_status end_with(mcpl_call *handle, const mcpl_error *cause, const Error &error) noexcept {
  // Passes on the full error of the failed input request, if it is still available.
  const mcpl_error *const kept = cause != nullptr ? cause : mcpl_last_error();
  const bool same =
      mcpl_error_status(kept) == error.status() && error.what() == std::string_view(mcpl_error_message(kept));
  return same ? mcpl_call_fail_with(handle, kept) : mcpl_call_fail_internal(handle, error.what());
}

inline mcpl_status end_with(mcpl_call *handle, const mcpl_error *, const char *message) noexcept {
  return mcpl_call_fail_internal(handle, message);
}

/// Fails the call.
template <class E> void fail(Call &call, const mcpl_error *cause, const E &error) noexcept {
  if (call.get() == nullptr) {
    // The handler has answered or moved the call away.
    if constexpr (std::is_convertible_v<const E &, const char *>) {
      report_late(error);
    } else {
      report_late(error.what());
    }
    return;
  }
  mcpl_call *const handle = call.release();
  if (end_with(handle, cause, error) == MCPL_USAGE_ERROR) {
    // The message or the data cannot be sent: not UTF-8, not JSON.
    (void)mcpl_call_fail_internal(handle, "the handler failed with an error whose message or data is not valid");
  }
}

/// Replies with the return value of a handler, or fails with the error that it returned.
template <Feature feature, class R> Fallible<void> answer(Call &call, const mcpl_error *cause, R &&result) {
  using T = std::decay_t<R>;
#if MCPLINE_NLOHMANN_JSON
  if constexpr (std::is_same_v<T, nlohmann::json> || std::is_same_v<T, nlohmann::ordered_json>) {
    return answer<feature>(call, cause, Json(result.dump()));
  } else
#endif
      if constexpr (std::is_same_v<T, Json>) {
    if constexpr (feature == Feature::tool) {
      return call.reply(Structured{std::forward<R>(result)});
    } else if constexpr (feature == Feature::completion || feature == Feature::request) {
      return call.reply(Result{std::forward<R>(result)});
    } else if constexpr (feature == Feature::resource_list) {
      return call.reply(Content{std::forward<R>(result)});
    } else {
      return call.reply(result.text());
    }
  } else if constexpr (is_error<T>) {
    fail(call, cause, result);
    return Fallible<void>();
  } else if constexpr (std::is_same_v<T, Expected<void>>) {
    // The handler has answered by itself, unless it has failed.
    if (!result) {
      fail(call, cause, result.error());
    }
    return Fallible<void>();
  } else if constexpr (is_expected<T>) {
    return result ? answer<feature>(call, cause, *std::forward<R>(result))
                  : answer<feature>(call, cause, result.error());
  } else if constexpr (is_variant<T>) {
    return std::visit([&](auto &&one) { return answer<feature>(call, cause, std::forward<decltype(one)>(one)); },
                      std::forward<R>(result));
  } else {
    return call.reply(std::forward<R>(result));
  }
}

/// Whether a handler can be called with these arguments.
template <class F, class... Given> inline constexpr bool takes = std::is_invocable_v<F &, Given...>;

/// Runs a body that may return the result, and ends the call with that result or the error.
template <Feature feature, class Body> void attend(Call &call, const mcpl_error *cause, Body &&body) noexcept {
#if MCPLINE_EXCEPTIONS
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
    } else {
      answer<feature>(call, cause, body());
    }
  } catch (const ToolError &error) {
    fail(call, cause, error);
  } catch (const RpcError &error) {
    fail(call, cause, error);
  } catch (const ResourceNotFound &error) {
    fail(call, cause, error);
  } catch (const Error &error) {
    fail(call, cause, error);
  } catch (const std::exception &error) {
    fail(call, cause, error.what());
  } catch (...) {
    fail(call, cause, "the handler threw an exception that is not a std::exception");
  }
#else
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
  } else if (const Expected<void> answered = answer<feature>(call, cause, body()); !answered) {
    fail(call, cause, answered.error());
  }
#endif
}

/// A handler with any of the signatures `(Call &, Json)`, `(Call, Json)`, `(Call &)`, `(Call)`, `(Json)` and `()`.
template <Feature feature, class F>
void handle(mcpl_call *handle, const char *arguments, std::size_t length, void *user) noexcept {
  F &function = *static_cast<F *>(user);
  Call call(handle);
  [[maybe_unused]] const Json given = Json::view(std::string_view(arguments, length));
  attend<feature>(call, nullptr, [&] {
    if constexpr (takes<F, Call &, const Json &>) {
      return function(call, given);
    } else if constexpr (takes<F, Call, const Json &>) {
      static_assert(std::is_void_v<decltype(function(std::move(call), given))>,
                    "a handler that takes its Call over answers with it, and returns nothing");
      return function(std::move(call), given);
    } else if constexpr (takes<F, const Json &>) {
      return function(given);
    } else if constexpr (takes<F, Call &>) {
      return function(call);
    } else if constexpr (takes<F, Call>) {
      static_assert(std::is_void_v<decltype(function(std::move(call)))>,
                    "a handler that takes its Call over answers with it, and returns nothing");
      return function(std::move(call));
    } else {
      static_assert(takes<F>, "a handler takes (Call &, Json), (Call, Json), (Json), (Call &), (Call) or nothing");
      return function();
    }
  });
}

/// Ends the call of an event or a notification. The result of its handler is ignored, unless it is an error.
template <class R> void conclude(Call &call, const R &result) {
  with_returned_error(result, [&call](const auto &error) {
    if constexpr (is_error<std::decay_t<decltype(error)>>) {
      fail(call, nullptr, error);
    } else {
      fail(call, nullptr, error.what());
    }
  });
  if (call.get() != nullptr) {
    (void)call.reply("");
  }
}

/// A handler of a session event: `(Call &)`.
template <class F> void handle_event(mcpl_call *handle, const char *, std::size_t, void *user) noexcept {
  Call call(handle);
  attend<Feature::tool>(call, nullptr, [&] {
    F &function = *static_cast<F *>(user);
    if constexpr (std::is_void_v<decltype(function(call))>) {
      function(call);
      conclude(call, nullptr);
    } else {
      conclude(call, function(call));
    }
  });
}

/// A handler of a custom notification: `(Call &, const Json &params)`.
template <class F>
void handle_notification(mcpl_call *handle, const char *params, std::size_t length, void *user) noexcept {
  Call call(handle);
  const Json given = Json::view(std::string_view(params, length));
  attend<Feature::tool>(call, nullptr, [&] {
    F &function = *static_cast<F *>(user);
    if constexpr (std::is_void_v<decltype(function(call, given))>) {
      function(call, given);
      conclude(call, nullptr);
    } else {
      conclude(call, function(call, given));
    }
  });
}

} // namespace detail

template <class F>
Fallible<void> Call::request_input_then(mcpl_input_request_method method, const JsonText &params, F &&then,
                                        std::string_view key) {
  using UserData = std::decay_t<F>;
  const detail::CString named(key);
  auto kept = std::make_unique<UserData>(std::forward<F>(then));
  // The continuation may run and end the call before this returns: this object no longer owns it.
  mcpl_call *const waiting = release();
  const mcpl_status status = mcpl_call_request_input(
      waiting, named.or_null(), method, params.data(), params.size(),
      [](mcpl_call *handle, const mcpl_error *error, const char *result, std::size_t length, void *user) {
        Call call(handle);
        detail::attend<detail::Feature::tool>(
            call, error, [&] { return (*static_cast<UserData *>(user))(call, Outcome(error, result, length)); });
      },
      kept.release(), &detail::destroy<UserData>);
  if (status != MCPL_OK) {
    call_ = waiting;
  }
  return detail::done(status);
}

MCPLINE_END_NAMESPACE

#endif

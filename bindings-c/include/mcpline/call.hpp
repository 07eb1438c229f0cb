/// \file
/// One call of a server's handler: what it is about, what can be done in the middle of it, and its answer.

#ifndef MCPLINE_CALL_HPP
#define MCPLINE_CALL_HPP

#include <cmath>

#include "loop.hpp"
#include "outcome.hpp"

namespace mcpline {

/// What a handler may return besides a string: bytes, of the definition's type if `mime_type` is empty. From a resource
/// they are its content, from a tool an image or a sound.
struct Bytes {
  /// The bytes.
  std::string bytes;
  /// Their type, as "image/png".
  std::string mime_type{};
};

/// An array: of content blocks (tool), of messages (prompt), of contents (resource).
struct Content {
  /// The array.
  Json json;
};

/// A tool's structured content, which clients that don't know such are given as text as well.
struct Structured {
  /// The object.
  Json json;
};

/// A whole result as the protocol has it.
struct Result {
  /// A CallToolResult, ReadResourceResult, GetPromptResult or CompleteResult, or a custom request's result.
  Json json;
};

/// Questions to the client; the handler is called again with the answers, see Call::info ("inputResponses").
struct Questions {
  /// `{"requests": [[key, method, params], …], "state": "…"}`
  Json json;
};

/// One call. It belongs to whoever holds it: a handler that wants to answer later, from any thread, moves it away. One
/// that goes without an answer fails the call, so that no client waits in vain.
///
/// Whoever has answered can't again: that, like anything asked of a call that has ended, is an Error with
/// `MCPL_STALE_HANDLE`. All threads may use it, one at a time.
class Call {
public:
  /// Takes over a C handle.
  explicit Call(mcpl_call *call) noexcept : call_(call) {}

  /// Moves.
  Call(Call &&other) noexcept : call_(other.release()) {}

  /// Moves; what was held before goes.
  Call &operator=(Call &&other) noexcept {
    if (this != &other) {
      drop();
      call_ = other.release();
    }
    return *this;
  }

  /// Fails the call if nobody has answered it.
  ~Call() { drop(); }

  /// The tool's or prompt's name, the resource's URI, or the custom request's method.
  std::string name() const {
    char *name = nullptr;
    detail::check(mcpl_call_name(call_, &name));
    return detail::taken(name);
  }

  /// The arguments; valid until the call ends.
  Json arguments() const {
    const char *arguments = nullptr;
    std::size_t length = 0;
    detail::check(mcpl_call_arguments(call_, &arguments, &length));
    return Json::view(std::string_view(arguments, length));
  }

  /// Who calls and how: see mcpl_call_info.
  Json info() const {
    char *text = nullptr;
    std::size_t length = 0;
    detail::check(mcpl_call_info(call_, &text, &length));
    return Json(detail::taken(text, length));
  }

  /// Whether nobody waits for the answer any more.
  bool is_cancelled() const noexcept { return mcpl_call_is_cancelled(call_); }

  /// Runs `cancelled()` once if the call is cancelled.
  template <class F> void on_cancel(F &&cancelled) {
    using Kept = std::decay_t<F>;
    detail::check(mcpl_call_on_cancel(
        call_, [](mcpl_call *, void *user) { detail::guarded([&] { (*static_cast<Kept *>(user))(); }); },
        new Kept(std::forward<F>(cancelled)), &detail::destroy<Kept>));
  }

  /// Tells how far it is, if the client wants to know; `total` is NAN where nobody knows it.
  void progress(double progress, double total = std::nan(""), std::string_view message = {}) {
    detail::check(mcpl_call_progress(call_, progress, total, detail::Short(message).or_null()));
  }

  /// Logs JSON to the client.
  /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
  void log(mcpl_log_level level, const JsonText &data, std::string_view logger = {}) {
    detail::check(mcpl_call_log(call_, level, detail::Short(logger).or_null(), data.data(), data.size()));
  }

  /// Logs words to the client.
  void log_text(mcpl_log_level level, std::string_view text, std::string_view logger = {}) {
    detail::check(mcpl_call_log_text(call_, level, detail::Short(logger).or_null(), text.data(), text.size()));
  }

  /// Sends a notification that no revision of the protocol defines, on the stream of the call. `params` is an object.
  void notify(std::string_view method, const JsonText &params = nullptr) {
    detail::check(mcpl_call_notify(call_, detail::Short(method).get(), params.data(), params.size()));
  }

  /// Ends the response's stream for now, where the transport has that; the client comes back for the rest.
  void close_stream() { detail::check(mcpl_call_close_stream(call_)); }

  /// Asks the client and waits for the answer. Not on a thread that must not wait (inline handlers, within a dispatch):
  /// that is an Error with `MCPL_WOULD_DEADLOCK`; use `ask_then` there. Questions of one handler have different keys,
  /// or none.
  Json ask(mcpl_ask what, const JsonText &params = nullptr, std::string_view key = {}) {
    char *result = nullptr;
    std::size_t length = 0;
    detail::check(
        mcpl_call_ask_wait(call_, detail::Short(key).or_null(), what, params.data(), params.size(), &result, &length));
    return Json(detail::taken(result, length));
  }

  /// Asks the user to fill in a form, and waits: an ElicitResult, `{"action": "accept", "content": {…}}`.
  Json elicit(std::string_view message, const JsonText &schema) {
    return ask(MCPL_ASK_ELICIT, elicitation(message, schema));
  }

  /// Asks the client's model, and waits: `params` is CreateMessageRequest's, the result a CreateMessageResult.
  /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
  Json sample(const JsonText &params) { return ask(MCPL_ASK_SAMPLE, params); }

  /// Asks for the client's directories, and waits: a ListRootsResult.
  /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
  Json list_roots() { return ask(MCPL_ASK_LIST_ROOTS); }

  /// Sends the client a request of a method that no revision of the protocol defines, and waits for its result, an
  /// object; see mcpl_call_send_request. It waits as `ask` does.
  Json send_request(std::string_view method, const JsonText &params = nullptr, std::string_view key = {}) {
    char *result = nullptr;
    std::size_t length = 0;
    detail::check(mcpl_call_send_request_wait(call_, detail::Short(key).or_null(), detail::Short(method).get(),
                                              params.data(), params.size(), &result, &length));
    return Json(detail::taken(result, length));
  }

  /// The parameters of a question by form, for `ask_then`.
  static Json elicitation(std::string_view message, const JsonText &schema) {
    Writer writer;
    writer.begin_object().name("message").put(message).name("requestedSchema");
    writer.put_json(std::string_view(schema.data(), schema.size()));
    return writer.end_object().json();
  }

  /// Asks the client without waiting: `then(Call &, const Outcome &)` goes on with the call and is to it what a handler
  /// is, so it may return the answer or throw. This object holds no call any more.
  template <class F> void ask_then(mcpl_ask what, const JsonText &params, F &&then, std::string_view key = {});

  /// One text (tool), one message of the user (prompt), the text (resource).
  void reply(std::string_view text) { end(mcpl_call_reply_text(call_, text.data(), text.size())); }

  /// An image, a sound, a blob.
  void reply(const Bytes &bytes) {
    end(mcpl_call_reply_bytes(call_, bytes.bytes.data(), bytes.bytes.size(), detail::Short(bytes.mime_type).or_null()));
  }

  /// Content blocks, messages or contents.
  void reply(const Content &content) {
    end(mcpl_call_reply_content(call_, content.json.text().data(), content.json.text().size()));
  }

  /// Structured content.
  void reply(const Structured &structured) {
    end(mcpl_call_reply_structured(call_, structured.json.text().data(), structured.json.text().size()));
  }

  /// A whole result.
  void reply(const Result &result) {
    end(mcpl_call_reply_result(call_, result.json.text().data(), result.json.text().size()));
  }

  /// Questions.
  void reply(const Questions &questions) {
    end(mcpl_call_reply_questions(call_, questions.json.text().data(), questions.json.text().size()));
  }

  /// Candidates (completion).
  void reply(const std::vector<std::string> &candidates) {
    std::vector<const char *> pointers;
    pointers.reserve(candidates.size());
    for (const std::string &candidate : candidates) {
      pointers.push_back(candidate.c_str());
    }
    end(mcpl_call_reply_values(call_, pointers.data(), pointers.size()));
  }

  /// Fails in words for the model.
  void fail(std::string_view message) { end(mcpl_call_fail(call_, message.data(), message.size())); }

  /// Fails with a JSON-RPC error.
  void fail_rpc(std::int64_t code, std::string_view message, const JsonText &data = nullptr) {
    end(mcpl_call_fail_rpc(call_, code, detail::Short(message).get(), data.data(), data.size()));
  }

  /// Fails: `message` goes to the diagnostics, the client learns only that something went wrong.
  void fail_internal(std::string_view message) { end(mcpl_call_fail_internal(call_, detail::Short(message).get())); }

  /// Fails because the user has to go to these URLs first: an array of parameters of elicitation in URL mode.
  void fail_visits(const JsonText &visits) { end(mcpl_call_fail_visits(call_, visits.data(), visits.size())); }

  /// The C handle, which stays this object's.
  mcpl_call *get() const noexcept { return call_; }

  /// The C handle, which the caller now has to answer with; this object holds none any more.
  mcpl_call *release() noexcept { return std::exchange(call_, nullptr); }

private:
  void end(mcpl_status status) {
    detail::check(status);
    call_ = nullptr;
  }

  void drop() noexcept {
    if (call_ != nullptr) {
      // Fails with MCPL_STALE_HANDLE if somebody has answered, which is what is wanted.
      (void)mcpl_call_fail_internal(call_, "the handler went without an answer");
      call_ = nullptr;
    }
  }

  mcpl_call *call_;
};

namespace detail {

/// What a handler is for: it decides what its result means.
enum class Feature { tool, resource, prompt, completion, request };

/// Answers with what a handler has returned.
template <Feature feature, class R> void answer(Call &call, R &&result) {
  using T = std::decay_t<R>;
#if MCPLINE_NLOHMANN_JSON
  if constexpr (std::is_same_v<T, nlohmann::json> || std::is_same_v<T, nlohmann::ordered_json>) {
    answer<feature>(call, Json(result.dump()));
  } else
#endif
      if constexpr (std::is_same_v<T, Json>) {
    if constexpr (feature == Feature::tool) {
      call.reply(Structured{std::forward<R>(result)});
    } else if constexpr (feature == Feature::completion || feature == Feature::request) {
      call.reply(Result{std::forward<R>(result)});
    } else {
      call.reply(result.text());
    }
  } else {
    call.reply(std::forward<R>(result));
  }
}

/// Fails the call with the exception that is being handled. `cause` is the failure that a continuation was told.
inline void fail(Call &call, const mcpl_error *cause) noexcept {
  if (call.get() == nullptr) {
    // The handler has answered or moved the call away: there is nobody to tell.
    tell_unhandled();
    return;
  }
  mcpl_call *const handle = call.release();
  mcpl_status status = MCPL_OK;
  try {
    throw;
  } catch (const ToolError &error) {
    status = mcpl_call_fail(handle, error.what(), MCPL_AUTO_LENGTH);
  } catch (const RpcError &error) {
    const bool none = error.data().empty();
    status = mcpl_call_fail_rpc(handle, error.code(), error.what(), none ? nullptr : error.data().data(),
                                error.data().size());
  } catch (const Error &error) {
    // Passes on why a question had no answer, with all that is known of it, if it is still known.
    const mcpl_error *const told = cause != nullptr ? cause : mcpl_last_error();
    const bool same =
        mcpl_error_status(told) == error.status() && error.what() == std::string_view(mcpl_error_message(told));
    status = same ? mcpl_call_fail_with(handle, told) : mcpl_call_fail_internal(handle, error.what());
  } catch (const std::exception &error) {
    status = mcpl_call_fail_internal(handle, error.what());
  } catch (...) {
    status = mcpl_call_fail_internal(handle, "the handler threw something that is no std::exception");
  }
  if (status == MCPL_USAGE_ERROR) {
    // The words or the data can't be sent: not UTF-8, not JSON.
    (void)mcpl_call_fail_internal(handle, "the handler failed in words that can't be sent");
  }
}

/// Whether a handler takes these, and what it returns.
template <class F, class... Given> inline constexpr bool takes = std::is_invocable_v<F &, Given...>;

/// Runs a body that may return the answer, and ends the call with it or with what it throws.
template <Feature feature, class Body> void attend(Call &call, const mcpl_error *cause, Body &&body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
    } else {
      answer<feature>(call, body());
    }
  } catch (...) {
    fail(call, cause);
  }
}

/// A handler of whatever signature: `(Call &, Json)`, `(Call, Json)`, `(Call &)`, `(Call)`, `(Json)` or `()`.
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

/// A handler of a session's event: `(Call &)`. Nobody waits for what it returns.
template <class F> void handle_event(mcpl_call *handle, const char *, std::size_t, void *user) noexcept {
  Call call(handle);
  attend<Feature::tool>(call, nullptr, [&] {
    (*static_cast<F *>(user))(call);
    if (call.get() != nullptr) {
      call.reply("");
    }
  });
}

/// A handler of a custom notification: `(Call &, const Json &params)`. What it returns is ignored.
template <class F>
void handle_notification(mcpl_call *handle, const char *params, std::size_t length, void *user) noexcept {
  Call call(handle);
  const Json given = Json::view(std::string_view(params, length));
  attend<Feature::tool>(call, nullptr, [&] {
    (*static_cast<F *>(user))(call, given);
    if (call.get() != nullptr) {
      call.reply("");
    }
  });
}

} // namespace detail

template <class F> void Call::ask_then(mcpl_ask what, const JsonText &params, F &&then, std::string_view key) {
  using Kept = std::decay_t<F>;
  const detail::Short named(key);
  auto kept = std::make_unique<Kept>(std::forward<F>(then));
  // The continuation may have run and ended the call before this returns: from here on it isn't ours.
  mcpl_call *const asking = release();
  const mcpl_status status = mcpl_call_ask(
      asking, named.or_null(), what, params.data(), params.size(),
      [](mcpl_call *handle, const mcpl_error *error, const char *result, std::size_t length, void *user) {
        Call call(handle);
        detail::attend<detail::Feature::tool>(
            call, error, [&] { return (*static_cast<Kept *>(user))(call, Outcome(error, result, length)); });
      },
      kept.release(), &detail::destroy<Kept>);
  if (status != MCPL_OK) {
    call_ = asking;
    throw Error(mcpl_last_error());
  }
}

} // namespace mcpline

#endif

/// \file
/// Input requests that a client's host answers.

#ifndef MCPLINE_QUESTION_HPP
#define MCPLINE_QUESTION_HPP

#include "call.hpp"

namespace mcpline {

/// An input request of the server. Move it to answer later, from any thread. One that is destroyed without an answer is
/// answered with an error.
class Question {
public:
  /// Takes ownership of a C handle.
  explicit Question(mcpl_question *question) noexcept : question_(question) {}

  /// Moves the input request.
  Question(Question &&other) noexcept : question_(other.release()) {}

  /// Moves the input request; the one held before is answered with an error if it has not been answered.
  Question &operator=(Question &&other) noexcept {
    if (this != &other) {
      drop();
      question_ = other.release();
    }
    return *this;
  }

  /// Answers with an error if the input request has not been answered.
  ~Question() { drop(); }

  /// Answers with a result: an ElicitResult, a CreateMessageResult or a ListRootsResult.
  void answer(const JsonText &result) { end(mcpl_question_answer(question_, result.data(), result.size())); }

  /// Answers with a JSON-RPC error.
  void refuse(std::int64_t code, std::string_view message, const JsonText &data = nullptr) {
    end(mcpl_question_refuse(question_, code, detail::Short(message).get(), data.data(), data.size()));
  }

  /// Returns whether the server no longer waits for the answer.
  bool is_withdrawn() const noexcept { return mcpl_question_is_withdrawn(question_); }

  /// Calls `withdrawn()` when the server no longer waits for the answer, at most once.
  template <class F> void on_withdrawn(F &&withdrawn) {
    using Kept = std::decay_t<F>;
    detail::check(mcpl_question_on_withdrawn(
        question_, [](mcpl_question *, void *user) { detail::guarded([&] { (*static_cast<Kept *>(user))(); }); },
        new Kept(std::forward<F>(withdrawn)), &detail::destroy<Kept>));
  }

  /// Returns the C handle, which this object still owns.
  mcpl_question *get() const noexcept { return question_; }

  /// Releases the C handle to the caller, who must answer the input request.
  mcpl_question *release() noexcept { return std::exchange(question_, nullptr); }

private:
  void end(mcpl_status status) {
    detail::check(status);
    question_ = nullptr;
  }

  void drop() noexcept {
    if (question_ != nullptr) {
      (void)mcpl_question_refuse(question_, -32603, "the question was not answered", nullptr, 0);
      question_ = nullptr;
    }
  }

  mcpl_question *question_;
};

namespace detail {

/// A handler with any of the signatures `(Question &, Json)`, `(Question, Json)`, `(Json)` and `()`.
template <class F> void question(mcpl_question *handle, const char *params, std::size_t length, void *user) noexcept {
  F &function = *static_cast<F *>(user);
  Question question(handle);
  [[maybe_unused]] const Json given = Json::view(std::string_view(params, length));
  const auto refuse = [&](std::int64_t code, const char *message, std::string_view data) noexcept {
    mcpl_question *const refused = question.release();
    if (refused == nullptr) {
      tell_unhandled();
    } else if (mcpl_question_refuse(refused, code, message, data.empty() ? nullptr : data.data(), data.size()) ==
               MCPL_USAGE_ERROR) {
      (void)mcpl_question_refuse(refused, -32603, "refused in words that can't be sent", nullptr, 0);
    }
  };
  const auto invoke = [&] {
    if constexpr (takes<F, Question &, const Json &>) {
      return function(question, given);
    } else if constexpr (takes<F, Question, const Json &>) {
      return function(std::move(question), given);
    } else if constexpr (takes<F, const Json &>) {
      return function(given);
    } else {
      static_assert(takes<F>, "a handler takes (Question &, Json), (Question, Json), (Json) or nothing");
      return function();
    }
  };
  try {
    if constexpr (std::is_void_v<decltype(invoke())>) {
      invoke();
    } else {
      question.answer(invoke());
    }
  } catch (const RpcError &error) {
    refuse(error.code(), error.what(), error.data());
  } catch (const std::exception &error) {
    refuse(-32603, error.what(), {});
  } catch (...) {
    refuse(-32603, "the handler threw an exception that is not a std::exception", {});
  }
}

} // namespace detail

} // namespace mcpline

#endif

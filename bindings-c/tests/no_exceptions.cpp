// The C++ layer without exceptions and RTTI: functions return an Expected, and handlers return their errors.

#include <mcpline.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>

#if MCPLINE_EXCEPTIONS
#error "this program is compiled with -fno-exceptions"
#endif

namespace {

using namespace mcpline;

#define CHECK(condition) check(static_cast<bool>(condition), __LINE__, #condition)

void check(bool truth, int line, const char *what) {
  if (!truth) {
    std::cerr << "no_exceptions.cpp:" << line << ": not so: " << what << std::endl;
    std::abort();
  }
}

#define FAILS(status_, expression)                                                                                     \
  [&] {                                                                                                                \
    const auto failure = (expression);                                                                                 \
    check(!failure, __LINE__, #expression);                                                                            \
    check(failure.error().status() == (status_), __LINE__, failure.error().what());                                    \
    return failure.error();                                                                                            \
  }()

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string text_of(const Expected<Json> &result) { return *result->string("/content/0/text"); }

/// A server and a client of it.
struct Pair {
  Server server = *Server::create("server", "1");
  Client client = *Client::create("client", "1");

  void join() { CHECK(client.connect(server)); }
};

void functions_return_values_and_errors() {
  const Json json(std::string(R"({"cities": [{"name": "Oslo"}, {"name": "Rome"}], "days": 3})"));
  CHECK(*json.string("/cities/0/name") == "Oslo");
  CHECK(json.int64("/days").value_or(0) == 3 && json.int64("/weeks").value_or(7) == 7);
  CHECK(*json.int64_or("/weeks", 8) == 8);
  FAILS(MCPL_NOT_FOUND, json.string("/cities/2/name"));
  FAILS(MCPL_USAGE_ERROR, json.int64("/cities"));
  FAILS(MCPL_USAGE_ERROR, json.string(std::string_view("/a\0b", 4)));
  CHECK(json.has("/days") && !json.has("/weeks") && !Json(std::string("{")).has("/days"));
  const auto found = json.find("/weeks");
  CHECK(found && !found->has_value());
  const auto cities = json.elements("/cities");
  CHECK(cities && cities->size() == 2 && *(*cities)[1].string("/name") == "Rome");
  CHECK(json.members()->size() == 2);
  FAILS(MCPL_NOT_FOUND, json.members("/none"));
  Writer writer;
  FAILS(MCPL_USAGE_ERROR, writer.begin_object().json());
  CHECK(object({{"city", "Oslo"}, {"days", array({1, nullptr})}}).text() == R"({"city":"Oslo","days":[1,null]})");
  // Not UTF-8: what gets it fails.
  FAILS(MCPL_USAGE_ERROR, object({{"city", "\xff"}}).string("/city"));
  FAILS(MCPL_USAGE_ERROR, Server::with("{"));
  CHECK(Server::with(R"({"name": "server", "version": "1"})"));
  FAILS(MCPL_USAGE_ERROR, Server::create(std::string_view("a\0b", 3), "1"));
  const auto loop = Loop::create();
  CHECK(loop && loop->fd().value_or(-1) >= 0);
}

void handlers_return_their_errors() {
  Pair pair;
  using Text = std::variant<std::string, ToolError, RpcError>;
  CHECK(pair.server.add_tool("choose", "Chooses", nullptr, [](Call &, const Json &arguments) -> Text {
    const std::string which = *arguments.string_or("/which", "");
    if (which == "tool") {
      return ToolError("no such city");
    }
    if (which == "rpc") {
      return RpcError(-5, "refused", R"({"why": 1})");
    }
    return "chosen: " + which;
  }));
  CHECK(pair.server.add_tool("pass", "Passes errors on", nullptr, [](Call &call) -> Expected<std::string> {
    const auto answered = call.elicit("?", R"({"type": "object", "properties": {}})");
    if (!answered) {
      return answered.error();
    }
    return *answered->string("/action");
  }));
  CHECK(pair.server.add_tool("reply", "Replies", nullptr, [](Call &call) { return call.reply("by itself"); }));
  CHECK(pair.server.add_tool("garble", "Replies in no UTF-8", nullptr, [] { return std::string("\xff"); }));
  CHECK(pair.server.add_resource("test://none", "none", "", [] { return ResourceNotFound(); }));
  FAILS(MCPL_USAGE_ERROR, pair.server.add_tool("reply", "Twice", nullptr, [] { return "again"; }));
  std::atomic<bool> answers{true};
  CHECK(pair.client.on_elicit([&]() -> std::variant<Json, RpcError> {
    if (answers) {
      return object({{"action", "decline"}});
    }
    return RpcError(-7, "not now");
  }));
  pair.join();
  CHECK(text_of(pair.client.call_tool("choose", R"({"which": "a"})")) == "chosen: a");
  const auto failed = pair.client.call_tool("choose", R"({"which": "tool"})");
  CHECK(failed && *failed->boolean("/isError") && text_of(failed) == "no such city");
  const Error refused = FAILS(MCPL_RPC_ERROR, pair.client.call_tool("choose", R"({"which": "rpc"})"));
  CHECK(refused.rpc_code() == -5 && contains(refused.details(), "why"));
  CHECK(text_of(pair.client.call_tool("pass", nullptr)) == "decline");
  answers = false;
  const auto passed = pair.client.call_tool("pass", nullptr);
  CHECK(passed ? contains(passed->text(), "not now") : contains(passed.error().what(), "not now"));
  CHECK(text_of(pair.client.call_tool("reply", nullptr)) == "by itself");
  const auto garbled = pair.client.call_tool("garble", nullptr);
  CHECK(!garbled || *garbled->boolean("/isError"));
  CHECK(FAILS(MCPL_RPC_ERROR, pair.client.read_resource("test://none")).rpc_code() == -32602);
  FAILS(MCPL_NOT_SUPPORTED, pair.client.get_prompt("none", nullptr));
  CHECK(pair.client.ping());
}

/// Keeps the diagnostics of the library, and waits for one.
class Diagnostics {
public:
  Diagnostics() {
    CHECK(set_diagnostics(MCPL_LOG_ERROR, [kept = kept_](mcpl_log_level, std::string_view, std::string_view message) {
      const std::lock_guard<std::mutex> lock(kept->mutex);
      kept->text += message;
      kept->changed.notify_all();
    }));
  }
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;
  ~Diagnostics() { CHECK(clear_diagnostics()); }

  void wait_for(std::string_view part) const {
    std::unique_lock<std::mutex> lock(kept_->mutex);
    const bool found =
        kept_->changed.wait_for(lock, std::chrono::minutes(5), [&] { return contains(kept_->text, part); });
    check(found, __LINE__, kept_->text.c_str());
  }

private:
  struct Kept {
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;
  };

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

void errors_of_handlers_without_a_response_are_diagnostics() {
  const Diagnostics diagnostics;
  Pair pair;
  CHECK(pair.server.on_initialized([](Call &call) -> Expected<void> {
    const auto roots = call.list_roots();
    return roots ? Expected<void>() : roots.error();
  }));
  CHECK(pair.server.on_roots_changed([](Call &) { return ToolError("the new roots are gone"); }));
  using Taken = std::variant<std::string, RpcError, std::runtime_error>;
  CHECK(pair.server.on_notification("acme/note", nullptr, [](Call &, const Json &params) -> Taken {
    const std::string which = *params.string_or("/which", "");
    if (which == "rpc") {
      return RpcError(-5, "the note is too long");
    }
    if (which == "other") {
      return std::runtime_error("the disk is full");
    }
    return which;
  }));
  CHECK(pair.client.on_list_roots([] { return RpcError(-7, "there is no project yet"); }));
  CHECK(pair.client.set_options(R"({"revisions": ["2025-11-25"]})"));
  pair.join();
  diagnostics.wait_for("there is no project yet");
  CHECK(pair.client.notify("acme/note", R"({"which": "fine"})"));
  CHECK(pair.client.notify("acme/note", R"({"which": "rpc"})"));
  diagnostics.wait_for("the note is too long");
  CHECK(pair.client.notify("acme/note", R"({"which": "other"})"));
  diagnostics.wait_for("the disk is full");
  CHECK(pair.client.roots_changed());
  diagnostics.wait_for("the new roots are gone");
}

void requests_end_later() {
  Pair pair;
  CHECK(pair.server.add_tool("echo", "Echoes", nullptr, [](const Json &arguments) { return arguments; }));
  pair.join();
  auto pending = pair.client.call_tool_async("echo", R"({"a": 1})");
  CHECK(pending);
  const Expected<Json> result = pending->get();
  CHECK(*result->int64("/structuredContent/a") == 1);
  FAILS(MCPL_RPC_ERROR, pair.client.call_tool_async("none", nullptr)->get());
  std::mutex mutex;
  std::condition_variable ended;
  int count = 0;
  CHECK(pair.client.ping_async([&](const Outcome &outcome) {
    const std::lock_guard<std::mutex> lock(mutex);
    CHECK(outcome.has_value());
    ++count;
    ended.notify_all();
  }));
  std::unique_lock<std::mutex> lock(mutex);
  CHECK(ended.wait_for(lock, std::chrono::minutes(5), [&] { return count == 1; }));
  lock.unlock();
  CHECK(pair.client.close());
  FAILS(MCPL_CLOSED, pair.client.ping());
  FAILS(MCPL_CLOSED, pair.client.ping_async());
}

/// One end of a connection in memory, which fails when it is told to.
class Cable : public Transport {
public:
  struct Ends {
    std::mutex mutex;
    Channel server, client;
  };

  Cable(std::shared_ptr<Ends> ends, bool serving) : ends_(std::move(ends)), serving_(serving) {}

  void open(Channel channel) override {
    {
      const std::lock_guard<std::mutex> lock(ends_->mutex);
      ends_->client = channel;
    }
    CHECK(channel.opened());
  }

  bool send(Channel, std::string_view message) override {
    Channel other;
    {
      const std::lock_guard<std::mutex> lock(ends_->mutex);
      other = serving_ ? ends_->client : ends_->server;
    }
    return other.receive(message).value_or(true);
  }

private:
  std::shared_ptr<Ends> ends_;
  bool serving_;
};

void transports_are_classes() {
  Pair pair;
  const auto ends = std::make_shared<Cable::Ends>();
  CHECK(pair.server.add_tool("a", "d", nullptr, [] { return "across"; }));
  {
    const std::lock_guard<std::mutex> lock(ends->mutex);
    ends->server = *pair.server.serve(std::make_unique<Cable>(ends, true));
  }
  CHECK(pair.client.connect(std::make_unique<Cable>(ends, false)));
  CHECK(text_of(pair.client.call_tool("a", nullptr)) == "across");
  CHECK(ends->client.hang_up("the cable broke"));
  CHECK(pair.client.close());
  FAILS(MCPL_STALE_HANDLE, ends->client.writable());
}

} // namespace

int main() {
  const std::pair<const char *, void (*)()> tests[] = {
      {"functions_return_values_and_errors", functions_return_values_and_errors},
      {"handlers_return_their_errors", handlers_return_their_errors},
      {"errors_of_handlers_without_a_response_are_diagnostics", errors_of_handlers_without_a_response_are_diagnostics},
      {"requests_end_later", requests_end_later},
      {"transports_are_classes", transports_are_classes},
  };
  for (const auto &[name, run] : tests) {
    std::cerr << name << std::endl;
    run();
  }
  std::cout << std::size(tests) << " passed, 0 failed" << std::endl;
  return 0;
}

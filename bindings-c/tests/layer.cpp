// The C++ layer over the real library: handlers of every signature, exceptions, ownership, futures and callbacks.

#if __has_include(<nlohmann/json.hpp>)
#define MCPLINE_NLOHMANN_JSON 1
#endif
#include <mcpline.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace mcpline;

#define CHECK(condition) check((condition), __LINE__, #condition)

void check(bool truth, int line, const char *what) {
  if (!truth) {
    std::cerr << "layer.cpp:" << line << ": not so: " << what << std::endl;
    std::abort();
  }
}

#define THROWS(status_, expression)                                                                                    \
  [&] {                                                                                                                \
    try {                                                                                                              \
      (void)(expression);                                                                                              \
    } catch (const Error &error) {                                                                                     \
      check(error.status() == (status_), __LINE__, error.what());                                                      \
      return error;                                                                                                    \
    }                                                                                                                  \
    check(false, __LINE__, #expression " throws");                                                                     \
    std::abort();                                                                                                      \
  }()

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string text_of(const Json &result) { return result.string("/content/0/text"); }

/// Counts its live instances.
struct Counted {
  static inline std::atomic<int> alive{0};
  Counted() { ++alive; }
  Counted(const Counted &) { ++alive; }
  ~Counted() { --alive; }
};

/// Passes one value at a time between threads.
template <class T> class Box {
public:
  void put(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_.emplace(std::move(value));
    changed_.notify_all();
  }

  T take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return value_.has_value(); });
    T taken = std::move(*value_);
    value_.reset();
    return taken;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

/// A server and a client of it.
struct Pair {
  Server server{"server", "1"};
  Client client{"client", "1"};

  Pair &joined() {
    client.connect(server);
    return *this;
  }
};

const Json any = object({{"type", "object"}});
const Json form = object({{"type", "object"}, {"properties", object({{"name", object({{"type", "string"}})}})}});

void handlers_accept_every_signature() {
  Pair pair;
  auto owned = std::make_unique<int>(42);
  pair.server.add_tool("both", "d", any,
                       [](Call &call, const Json &arguments) { return call.name() + std::string(arguments.text()); });
  pair.server.add_tool("arguments", "d", any, [owned = std::move(owned)](const Json &arguments) {
    return std::to_string(*owned + arguments.int64("/n"));
  });
  pair.server.add_tool("call", "d", any, [](Call &call) { return call.info().string("/client/name"); });
  pair.server.add_tool("nothing", "d", nullptr, [] { return "nothing"; });
  pair.server.add_tool("taken", "d", any, [](Call call, const Json &) {
    std::thread([call = std::move(call)]() mutable { call.reply("later"); }).detach();
  });
  pair.joined();
  CHECK(text_of(pair.client.call_tool("both", R"({"a":1})")) == "both{\"a\":1}");
  CHECK(text_of(pair.client.call_tool("arguments", object({{"n", 1}}))) == "43");
  CHECK(text_of(pair.client.call_tool("call", nullptr)) == "client");
  CHECK(text_of(pair.client.call_tool("nothing", nullptr)) == "nothing");
  CHECK(text_of(pair.client.call_tool("taken", nullptr)) == "later");
}

void handlers_return_every_result_type() {
  Pair pair;
  pair.server.add_tool("structured", "d", nullptr, [] { return object({{"n", 1}}); });
  pair.server.add_tool("content", "d", nullptr, [] {
    return Content{array({object({{"type", "text"}, {"text", "a"}}), object({{"type", "text"}, {"text", "b"}})})};
  });
  pair.server.add_tool("bytes", "d", nullptr, [] { return Bytes{std::string("\0\1", 2), "image/png"}; });
  pair.server.add_tool("result", "d", nullptr, [] { return Result{Json(R"({"content":[],"isError":true})")}; });
  pair.server.add_resource("a://text", "text", "text/plain", [] { return "text"; });
  pair.server.add_resource("a://json", "json", "application/json", [] { return array({1, 2.5, true, nullptr, "x"}); });
  pair.server.add_resource("a://bytes", "bytes", "image/png", [] { return Bytes{"abc"}; });
  pair.server.add_resource_template("b://{c}", "c", "", [](const Json &arguments) { return arguments.string("/c"); });
  pair.server.add_resource_template("missing://{c}", "c", "", []() -> std::string { throw ResourceNotFound(); });
  pair.server.add_resource("a://missing", "a", "", []() -> std::string { throw ResourceNotFound("b://gone"); });
  HandlerOptions unchecked;
  unchecked.unchecked_variables = "c";
  pair.server.add_resource_template(
      R"({"uriTemplate":"any://{c}","name":"any"})", [](const Json &arguments) { return arguments.string("/c"); },
      unchecked);
  HandlerOptions cached;
  cached.cache_ttl = std::chrono::minutes(1);
  cached.shared_cache = true;
  pair.server.add_resource(R"({"uri":"a://cached","name":"cached"})", [] { return "cached"; }, cached);
  pair.server.add_prompt("ask", "d", nullptr, [] { return "a message"; });
  pair.server.add_completion("b://{c}", "c", [](const Json &arguments) {
    return std::vector<std::string>{arguments.string("/argument/value") + "!"};
  });
  pair.server.set_resource_template_list("b://{c}", [] { return std::vector<std::string>{"b://x", "c://x"}; });
  pair.server.set_resource_template_list(
      "any://{c}", [](Call &call) { return array({object({{"uri", "any://x"}, {"name", call.name()}})}); });
  pair.joined();
  CHECK(pair.client.call_tool("structured", nullptr).int64("/structuredContent/n") == 1);
  CHECK(pair.client.call_tool("content", nullptr).count("/content") == 2);
  CHECK(pair.client.call_tool("bytes", nullptr).string("/content/0/data") == "AAE=");
  CHECK(pair.client.call_tool("result", nullptr).boolean("/isError"));
  CHECK(pair.client.read_resource("a://text").string("/contents/0/text") == "text");
  CHECK(pair.client.read_resource("a://json").string("/contents/0/text") == "[1,2.5,true,null,\"x\"]");
  CHECK(pair.client.read_resource("a://bytes").string("/contents/0/blob") == "YWJj");
  CHECK(pair.client.read_resource("b://x").string("/contents/0/text") == "x");
  const Json cached_result = pair.client.read_resource("a://cached");
  CHECK(cached_result.int64("/ttlMs") == 60000);
  CHECK(cached_result.string("/cacheScope") == "public");
  CHECK(pair.client.read_resource("b://x").int64("/ttlMs") == 0);
  CHECK(pair.client.read_resource("any://..%2Fx").string("/contents/0/text") == "../x");
  THROWS(MCPL_RPC_ERROR, pair.client.read_resource("b://..%2Fx"));
  const auto missed = [&pair](const char *uri) {
    try {
      pair.client.read_resource(uri);
    } catch (const Error &error) {
      return error.details();
    }
    return std::string();
  };
  CHECK(missed("missing://x").find(R"("data":{"uri":"missing://x"})") != std::string::npos);
  CHECK(missed("a://missing").find(R"("data":{"uri":"b://gone"})") != std::string::npos);
  CHECK(contains(pair.client.get_prompt("ask", nullptr), "a message"));
  CHECK(contains(pair.client.complete(R"({"ref":{"type":"ref/resource","uri":"b://{c}"},
                                          "argument":{"name":"c","value":"z"}})"),
                 "z!"));
  CHECK(pair.client.list_resources().count() == 7);
  CHECK(pair.client.list_resources().elements().at(5).string("/uri") == "b://x");
  CHECK(pair.client.list_resources().elements().at(6).string("/name") == "any://{c}");
  CHECK(pair.client.list_resource_templates().count() == 3);
  CHECK(pair.client.list_prompts().elements().at(0).string("/name") == "ask");
}

void custom_requests_are_served() {
  // Declared before the client, which may deliver notifications until it is closed.
  Box<std::string> searching, note;
  Pair pair;
  const Json schema = object({{"type", "object"},
                              {"properties", object({{"query", object({{"type", "string"}})}})},
                              {"required", array({"query"})}});
  HandlerOptions inline_;
  inline_.on_io_thread = true;
  pair.server.on_request("acme/search", schema, [](Call &call, const Json &params) {
    call.notify("acme/searching", params);
    if (params.string("/query").empty()) {
      throw RpcError(-1, "empty");
    }
    return object({{"hits", array({params.string("/query")})}});
  });
  pair.server.on_request(
      "acme/name", nullptr, [](Call &call) { return Result{object({{"name", call.name()}})}; }, inline_);
  pair.server.on_request("acme/later", nullptr, [](Call call) {
    std::thread([call = std::move(call)]() mutable { call.reply(Result{object({{"later", true}})}); }).detach();
  });
  pair.server.on_request("acme/ask", nullptr, [](Call &call) {
    call.request_input_then(MCPL_INPUT_REQUEST_METHOD_ELICIT, Call::elicitation("Who?", form),
                            [](Call &, const Outcome &answer) { return Result{answer.value().at("/content")}; });
  });
  pair.server.on_request("acme/text", nullptr, [] { return "text"; });
  pair.server.on_request("acme/list", nullptr, [] { return array({1}); });
  pair.server.on_request("acme/notify", nullptr, [](Call &call) {
    THROWS(MCPL_USAGE_ERROR, (call.notify("tools/call"), 0));
    THROWS(MCPL_USAGE_ERROR, (call.notify("acme/note", array({1})), 0));
    call.notify("acme/note");
    return object({});
  });
  pair.client.on_notification([&](std::string_view method, const Json &params) {
    if (method == "acme/searching") {
      searching.put(params.string("/query"));
    } else if (method == "acme/note") {
      note.put(std::string(params.text()));
    }
  });
  pair.client.on_elicit(
      [](const Json &) { return object({{"action", "accept"}, {"content", object({{"name", "Ada"}})}}); });
  pair.joined();
  CHECK(pair.client.request("acme/search", R"({"query":"tea"})").string("/hits/0") == "tea");
  CHECK(searching.take() == "tea");
  CHECK(pair.client.request("acme/name", nullptr).string("/name") == "acme/name");
  CHECK(pair.client.request("acme/later", nullptr).boolean("/later"));
  CHECK(pair.client.request("acme/ask", nullptr).string("/name") == "Ada");
  CHECK(pair.client.request("acme/notify", nullptr).kind() == MCPL_JSON_OBJECT);
  note.take();
  const std::tuple<const char *, const char *, std::int64_t> refused[] = {
      {"acme/search", R"({"query":""})", -1},
      {"acme/search", R"({"query":7})", -32602},
      {"acme/text", "{}", -32603},
      {"acme/list", "{}", -32603},
      {"acme/none", "{}", -32601},
  };
  for (const auto &[method, params, code] : refused) {
    CHECK(THROWS(MCPL_RPC_ERROR, pair.client.request(method, params)).rpc_code() == code);
  }
  THROWS(MCPL_USAGE_ERROR,
         (pair.server.on_request("tools/call", nullptr, [counted = Counted()] { return object({}); }), 0));
  CHECK(Counted::alive == 0);
  pair.server.remove_request_handler("acme/name");
  THROWS(MCPL_NOT_FOUND, (pair.server.remove_request_handler("acme/name"), 0));
  CHECK(THROWS(MCPL_RPC_ERROR, pair.client.request("acme/name", nullptr)).rpc_code() == -32601);
#if MCPLINE_NLOHMANN_JSON
  pair.server.on_request("acme/sum", nlohmann::json{{"type", "object"}}, [](const nlohmann::json &params) {
    return nlohmann::json{{"sum", params.at("a").get<int>() + params.at("b").get<int>()}};
  });
  CHECK(pair.client.request("acme/sum", R"({"a":1,"b":2})").int64("/sum") == 3);
#endif
}

void middleware_surrounds_requests() {
  Pair pair;
  pair.server.add_tool("echo", "Echo", R"({"type": "object"})", [](const Json &arguments) {
    if (arguments.string("/word").empty()) {
      throw RpcError(-31000, "empty");
    }
    return arguments.string("/word");
  });
  pair.server.add_middleware(R"({"methods": ["tools/call"]})", [](Call &call, const Json &request) {
    if (request.string("/params/arguments/word") == "secret") {
      throw ToolError("not today");
    }
    return call.next();
  });
  pair.joined();
  CHECK(pair.client.call_tool("echo", R"({"word": "tea"})").string("/content/0/text") == "tea");
  CHECK(pair.client.call_tool("echo", R"({"word": "secret"})").string("/content/0/text") == "not today");
  CHECK(THROWS(MCPL_RPC_ERROR, pair.client.call_tool("echo", R"({"word": ""})")).rpc_code() == -31000);
  THROWS(MCPL_USAGE_ERROR,
         (pair.server.add_middleware(R"({"methods": ["ping"]})", [counted = Counted()] { return object({}); }), 0));
  CHECK(Counted::alive == 0);
}

void custom_notifications_are_handled_and_clients_serve_custom_requests() {
  Box<std::string> notes;
  Pair pair;
  pair.server.on_notification("acme/note", R"({"type": "object", "required": ["text"]})",
                              [&](Call &call, const Json &params) {
                                CHECK(call.name() == "acme/note");
                                notes.put(params.string("/text"));
                              });
  pair.server.on_notification("acme/throw", nullptr,
                              [](Call &, const Json &) { throw std::runtime_error("a detail"); });
  THROWS(MCPL_USAGE_ERROR,
         (pair.server.on_notification("tools/call", nullptr, [counted = Counted()](Call &, const Json &) {}), 0));
  CHECK(Counted::alive == 0);
  pair.server.on_request("acme/choose", nullptr, [](Call &call, const Json &params) {
    THROWS(MCPL_USAGE_ERROR, (call.send_request("tools/call"), 0));
    return call.send_request("acme/pick", params);
  });
  pair.client.on_request("acme/pick", [](const Json &params) { return object({{"picked", params.at("/from/0")}}); });
  THROWS(MCPL_USAGE_ERROR, (pair.client.on_request("tools/call", [](const Json &) { return object({}); }), 0));
  pair.joined();
  pair.client.notify("acme/throw", nullptr);
  pair.client.notify("acme/note", R"({"number": 1})");
  pair.client.notify("acme/note", R"({"text": "a"})");
  CHECK(notes.take() == "a");
  CHECK(pair.client.request("acme/choose", R"({"from": [7]})").int64("/picked") == 7);
  pair.server.remove_notification_handler("acme/note");
  THROWS(MCPL_NOT_FOUND, (pair.server.remove_notification_handler("acme/note"), 0));
}

void exceptions_fail_only_their_call() {
  Pair pair;
  pair.server.add_tool("tool", "d", nullptr, [] { throw ToolError("try again"); });
  pair.server.add_tool("rpc", "d", nullptr, [] { throw RpcError(-32123, "refused", "[1]"); });
  pair.server.add_tool("internal", "d", nullptr, [] { throw std::runtime_error("a secret"); });
  pair.server.add_tool("odd", "d", nullptr, [] { throw 42; });
  pair.server.add_tool("words", "d", nullptr, [] { throw ToolError("\xff"); });
  pair.server.add_tool("bad", "d", nullptr, [] { return std::string("\xff"); });
  pair.joined();
  const Json result = pair.client.call_tool("tool", nullptr);
  CHECK(result.boolean("/isError") && text_of(result) == "try again");
  const Error refused = THROWS(MCPL_RPC_ERROR, pair.client.call_tool("rpc", nullptr));
  CHECK(refused.rpc_code() == -32123 && contains(refused.what(), "refused") && contains(refused.details(), "[1]"));
  for (const char *name : {"internal", "odd", "words", "bad"}) {
    std::string said;
    try {
      said = pair.client.call_tool(name, nullptr);
      CHECK(contains(said, "\"isError\":true"));
    } catch (const Error &error) {
      CHECK(error.status() == MCPL_RPC_ERROR);
      said = error.details();
    }
    CHECK(!contains(said, "secret"));
  }
  CHECK(text_of(pair.client.call_tool("tool", nullptr)) == "try again");
}

void a_call_that_is_dropped_fails() {
  Pair pair;
  pair.server.add_tool("drop", "d", nullptr, [](Call) {});
  pair.joined();
  try {
    CHECK(pair.client.call_tool("drop", nullptr).boolean("/isError"));
  } catch (const Error &error) {
    CHECK(error.status() == MCPL_RPC_ERROR);
  }
}

void structures_with_a_size_have_initial_values() {
  constexpr mcpl_handler_options handler = MCPL_HANDLER_OPTIONS_INIT;
  constexpr mcpl_request_options request = MCPL_REQUEST_OPTIONS_INIT;
  constexpr mcpl_channel_functions channel = MCPL_CHANNEL_FUNCTIONS_INIT;
  constexpr mcpl_sharing sharing = MCPL_SHARING_INIT;
  CHECK(handler.size == sizeof handler && request.size == sizeof request && channel.size == sizeof channel);
  CHECK(sharing.size == sizeof sharing && sharing.timeout_ms == 0 && sharing.unsubscribe == nullptr);
}

void a_call_is_answered_once() {
  Pair pair;
  Box<mcpl_status> second;
  pair.server.add_tool("twice", "d", nullptr, [&](Call call) {
    mcpl_call *const handle = call.get();
    call.reply("once");
    THROWS(MCPL_STALE_HANDLE, call.reply("again"));
    THROWS(MCPL_STALE_HANDLE, call.progress(1));
    CHECK(call.is_cancelled() && call.get() == nullptr);
    Call again(handle);
    second.put(THROWS(MCPL_STALE_HANDLE, again.reply("again")).status());
  });
  pair.joined();
  CHECK(text_of(pair.client.call_tool("twice", nullptr)) == "once");
  CHECK(second.take() == MCPL_STALE_HANDLE);
}

void requesting_input_waits_or_continues() {
  Pair pair;
  pair.server.add_tool("wait", "d", nullptr, [](Call &call) {
    return call.elicit("Who?", form).string("/content/name") + call.list_roots().string("/roots/0/uri") +
           call.sample(R"({"messages":[],"maxTokens":1})").string("/content/text");
  });
  pair.server.add_tool(R"({"name":"continue","inputSchema":{"type":"object"}})",
                       [](Call &call) {
                         THROWS(MCPL_WOULD_DEADLOCK, call.list_roots());
                         call.request_input_then(MCPL_INPUT_REQUEST_METHOD_ELICIT, Call::elicitation("Who?", form),
                                                 [](Call &later, const Outcome &outcome) {
                                                   const std::string name = outcome.value().string("/content/name");
                                                   later.request_input_then(
                                                       MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, nullptr,
                                                       [name](Call &, const Outcome &roots) {
                                                         return name + roots.value().string("/roots/0/uri");
                                                       });
                                                 });
                       },
                       {/*on_io_thread=*/true});
  pair.server.add_tool("refused", "d", nullptr, [](Call &call) {
    call.request_input_then(MCPL_INPUT_REQUEST_METHOD_SAMPLE, R"({"messages":[],"maxTokens":2})",
                            [](Call &, const Outcome &outcome) { return outcome.value().string("/content/text"); });
  });
  pair.client.on_elicit([](const Json &params) {
    CHECK(params.string("/message") == "Who?");
    return object({{"action", "accept"}, {"content", object({{"name", "Ada"}})}});
  });
  pair.client.on_sample([](InputRequest &, const Json &params) {
    if (params.int64("/maxTokens") == 2) {
      throw RpcError(-1, "no");
    }
    return R"({"role":"assistant","model":"m","content":{"type":"text","text":"hello"}})";
  });
  pair.client.on_list_roots([](InputRequest input_request, const Json &) {
    std::thread([input_request = std::move(input_request)]() mutable {
      input_request.answer(R"({"roots":[{"uri":"/x/../here"}]})");
    }).detach();
  });
  pair.joined();
  CHECK(text_of(pair.client.call_tool("wait", nullptr)) == "Adafile:///herehello");
  CHECK(text_of(pair.client.call_tool("continue", nullptr)) == "Adafile:///here");
  try {
    CHECK(pair.client.call_tool("refused", nullptr).boolean("/isError"));
  } catch (const Error &error) {
    CHECK(error.status() == MCPL_INPUT_REQUEST_FAILED);
  }
}

void a_server_requests_input_outside_of_calls() {
  Pair pair;
  Box<std::string> begun, changed;
  pair.server.on_initialized([&](Call &call) { begun.put(call.list_roots().string("/roots/0/uri")); });
  pair.server.on_roots_changed([&](Call &call) { changed.put(call.list_roots().string("/roots/0/uri")); });
  pair.client.set_options(R"({"revisions":["2025-11-25"]})");
  pair.client.on_list_roots([](InputRequest &, const Json &) { return R"({"roots":[{"uri":"/here"}]})"; });
  pair.joined();
  CHECK(begun.take() == "file:///here");
  pair.client.roots_changed();
  CHECK(changed.take() == "file:///here");
}

void tool_calls_need_approval() {
  Pair pair;
  std::string names;
  pair.server.add_tool("a", "A", nullptr, [](Call &, const Json &) { return "done"; });
  pair.client.on_tool_call([](InputRequest &, const Json &call) {
    if (call.string("/arguments/text") == "no") {
      throw RpcError(-1, "not today");
    }
    return "{}";
  });
  pair.client.on_tool_outcome([&names](InputRequest &, const Json &outcome) {
    names += outcome.string("/call/name");
    return "{}";
  });
  pair.joined();
  CHECK(text_of(pair.client.call_tool("a", R"({"text":"yes"})")) == "done");
  THROWS(MCPL_TOOL_CALL_REFUSED, pair.client.call_tool("a", R"({"text":"no"})"));
  CHECK(names == "aa");
}

void requests_are_futures_or_call_back() {
  Pair pair;
  Box<Call> kept;
  std::atomic<int> progressed{0};
  pair.server.add_tool("echo", "d", any, [](Call &call, const Json &arguments) {
    call.progress(1, 2, "half");
    return std::string(arguments.text());
  });
  pair.server.add_tool("keep", "d", nullptr, [&](Call call) {
    call.on_cancel([] {});
    kept.put(std::move(call));
  });
  pair.joined();
  RequestOptions options;
  options.progress = [&](double done, double total, std::string_view message) {
    CHECK(done == 1 && total == 2 && message == "half");
    ++progressed;
  };
  std::future<Json> first = pair.client.call_tool_async("echo", R"({"n":1})", options);
  Pending<Json> second = pair.client.list_tools_async();
  CHECK(text_of(first.get()) == R"({"n":1})");
  CHECK(progressed == 1);
  CHECK(second.get().count() == 2);
  CHECK(!second.cancel());
  Box<std::string> text;
  pair.client.call_tool_async("echo", nullptr, [&, counted = Counted()](const Outcome &outcome) {
    text.put(outcome ? text_of(outcome.value()) : outcome.error().what());
  });
  CHECK(text.take() == "{}");
  pair.client.ping_async().get();
  Pending<Json> cancelled = pair.client.call_tool_async("keep", nullptr);
  Call call = kept.take();
  CHECK(!call.is_cancelled());
  CHECK(cancelled.cancel());
  THROWS(MCPL_REQUEST_CANCELLED, cancelled.get());
  const Error unknown = THROWS(MCPL_RPC_ERROR, pair.client.request_async("no/such", nullptr).get());
  CHECK(unknown.rpc_code() == -32601);
  THROWS(MCPL_USAGE_ERROR, pair.client.call_tool_async("echo", "[]"));
  pair.client.close();
  CHECK(Counted::alive == 0);
}

void destroys_the_captures_of_lambdas() {
  CHECK(Counted::alive == 0);
  {
    Pair pair;
    pair.server.add_tool("a", "d", nullptr, [counted = Counted()] { return "a"; });
    pair.server.on_end([counted = Counted()](const std::optional<Error> &) {});
    pair.client.on_notification([counted = Counted()](std::string_view, const Json &) {});
    pair.client.on_connection([counted = Counted()](mcpl_connection_event, const std::optional<Error> &) {});
    THROWS(MCPL_USAGE_ERROR, (pair.server.add_tool("b", "d", "{", [counted = Counted()] { return "b"; }), 0));
    pair.joined();
    CHECK(text_of(pair.client.call_tool("a", nullptr)) == "a");
    CHECK(Counted::alive == 4);
    pair.server.remove_tool("a");
    THROWS(MCPL_NOT_FOUND, (pair.server.remove_tool("a"), 0));
  }
  CHECK(Counted::alive == 0);
}

void reports_errors_of_callbacks_without_a_response() {
  Pair pair;
  Box<std::string> message;
  set_unhandled([&](std::exception_ptr exception) {
    try {
      std::rethrow_exception(std::move(exception));
    } catch (const std::exception &error) {
      message.put(error.what());
    }
  });
  pair.joined();
  pair.client.ping_async([](const Outcome &) { throw std::runtime_error("thrown"); });
  CHECK(message.take() == "thrown");
  pair.client.ping_async([](const Outcome &) { return Error(MCPL_USAGE_ERROR, "returned"); });
  CHECK(message.take() == "returned");
  pair.client.ping_async([](const Outcome &) -> Expected<void> { return Error(MCPL_USAGE_ERROR, "expected"); });
  CHECK(message.take() == "expected");
  set_unhandled({});
}

void settings_of_servers_are_functions() {
  Pair pair;
  pair.server.set_title("A server");
  pair.server.set_instructions("Call it.");
  pair.server.set_shutdown_timeout(std::chrono::seconds(1));
  pair.server.set_shutdown_timeout(no_timeout);
  pair.server.set_max_calls(10);
  pair.server.set_tool_rate(100);
  pair.server.add_tool("a", "d", nullptr, [] { return "called"; });
  THROWS(MCPL_USAGE_ERROR, (pair.server.set_title("Another"), 0));
  pair.server.set_http_path("/tools");
  pair.server.add_allowed_host("server.example");
  pair.server.add_allowed_origin("https://app.example");
  pair.client.connect("http://127.0.0.1:" + std::to_string(pair.server.start_http("127.0.0.1", 0)) + "/tools");
  const Json info = pair.client.info();
  CHECK(info.string("/serverInfo/title") == "A server" && info.string("/instructions") == "Call it.");
  CHECK(text_of(pair.client.call_tool("a", nullptr)) == "called");
  pair.client.close();
  pair.server.set_http_path("no path");
  THROWS(MCPL_USAGE_ERROR, pair.server.start_http("127.0.0.1", 0));
}

void handlers_may_return_errors() {
  Pair pair;
  using Text = std::variant<std::string, ToolError, RpcError>;
  pair.server.add_tool("choose", "d", nullptr, [](const Json &arguments) -> Text {
    const std::string which = arguments.string_or("/which", "");
    if (which == "tool") {
      return ToolError("no such city");
    }
    return which == "rpc" ? Text(RpcError(-5, "refused")) : Text("chosen: " + which);
  });
  pair.server.add_tool("expected", "d", nullptr, [](const Json &arguments) -> Expected<std::string> {
    if (arguments.has("/fails")) {
      return Error(MCPL_NOT_FOUND, "nothing there");
    }
    return "as expected";
  });
  pair.joined();
  CHECK(text_of(pair.client.call_tool("choose", R"({"which":"a"})")) == "chosen: a");
  CHECK(text_of(pair.client.call_tool("choose", R"({"which":"tool"})")) == "no such city");
  CHECK(THROWS(MCPL_RPC_ERROR, pair.client.call_tool("choose", R"({"which":"rpc"})")).rpc_code() == -5);
  CHECK(text_of(pair.client.call_tool("expected", nullptr)) == "as expected");
  // Such an error may tell more than clients may know.
  CHECK(!contains(pair.client.call_tool("expected", R"({"fails":true})").text(), "nothing there"));
  const Expected<int> none = Error(MCPL_NOT_FOUND, "nothing there");
  THROWS(MCPL_NOT_FOUND, none.value());
  CHECK(none.value_or(7) == 7 && Expected<int>(8).value() == 8);
}

/// One end of a connection in memory; the other end receives what it sends.
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
    channel.opened();
  }

  bool send(Channel, std::string_view message) override {
    Channel other;
    {
      const std::lock_guard<std::mutex> lock(ends_->mutex);
      other = serving_ ? ends_->client : ends_->server;
    }
    return other.receive(message);
  }

private:
  std::shared_ptr<Ends> ends_;
  bool serving_;
  Counted counted_;
};

void transports_are_classes() {
  {
    Pair pair;
    const auto ends = std::make_shared<Cable::Ends>();
    pair.server.add_tool("a", "d", nullptr, [] { return "across"; });
    {
      const std::lock_guard<std::mutex> lock(ends->mutex);
      ends->server = pair.server.serve(std::make_unique<Cable>(ends, true));
    }
    pair.client.connect(std::make_unique<Cable>(ends, false));
    CHECK(text_of(pair.client.call_tool("a", nullptr)) == "across");
    CHECK(Counted::alive == 2);
    pair.client.close();
  }
  CHECK(Counted::alive == 0);
}

/// What a slow transport has done.
struct SlowLog {
  std::mutex mutex;
  std::condition_variable changed;
  int refused = 0, taken = 0, ready = 0, closed = 0;

  void add(int SlowLog::*count) {
    const std::lock_guard<std::mutex> lock(mutex);
    ++(this->*count);
    changed.notify_all();
  }

  void wait(int SlowLog::*count, int least) {
    std::unique_lock<std::mutex> lock(mutex);
    CHECK(changed.wait_for(lock, std::chrono::minutes(5), [&] { return this->*count >= least; }));
  }
};

/// Refuses each message once, and throws for the one that says so.
class SlowTransport : public Transport {
public:
  explicit SlowTransport(std::shared_ptr<SlowLog> log) : log_(std::move(log)) {}

  void open(Channel channel) override {
    // More than waits in a channel that is not open yet.
    const std::string message(33 << 20, 'x');
    CHECK(channel.receive(message));
    CHECK(!channel.receive("{}"));
    channel.opened();
  }

  bool send(Channel, std::string_view message) override {
    if (waiting_.empty()) {
      waiting_ = message;
      log_->add(&SlowLog::refused);
      return false;
    }
    CHECK(waiting_ == message);
    waiting_.clear();
    log_->add(&SlowLog::taken);
    return true;
  }

  void ready(Channel channel) override {
    CHECK(channel.receive("{}"));
    log_->add(&SlowLog::ready);
    throw std::runtime_error("the cable broke");
  }

  void close(Channel) override { log_->add(&SlowLog::closed); }

private:
  std::shared_ptr<SlowLog> log_;
  std::string waiting_;
  Counted counted_;
};

void transports_may_be_busy() {
  const auto log = std::make_shared<SlowLog>();
  {
    Server server("server", "1");
    const Channel channel = server.serve(std::make_unique<SlowTransport>(log));
    for (int count = 1; count <= 3; ++count) {
      CHECK(channel.receive(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"));
      log->wait(&SlowLog::refused, count);
      CHECK(log->taken == count - 1);
      channel.writable();
      log->wait(&SlowLog::taken, count);
    }
    server.close();
    THROWS(MCPL_STALE_HANDLE, (channel.writable(), 0));
  }
  const auto client_log = std::make_shared<SlowLog>();
  {
    Client client("client", "1");
    client.set_options(R"({"revisions":["2025-11-25"],"reconnect_attempts":0})");
    client.set_transport(std::make_unique<SlowTransport>(client_log));
    try {
      client.open();
      CHECK(false);
    } catch (const Error &error) {
      CHECK(contains(error.what(), "the cable broke"));
    }
  }
  CHECK(log->closed == 1 && client_log->closed == 1 && client_log->ready == 1);
  CHECK(Counted::alive == 0);
}

/// A store, log and bus in memory.
class MemoryStore : public SessionStore, public EventLog, public Bus {
public:
  ~MemoryStore() override {
    for (std::thread &thread : threads_) {
      thread.join();
    }
  }

  void save(Call &call, std::string_view id, std::string_view session, std::string_view replaces,
            std::optional<std::chrono::milliseconds> lifetime) override {
    CHECK(lifetime && lifetime->count() > 0);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string &stored = sessions_[std::string(id)];
    if (!stored.empty() && stored != session && stored != replaces) {
      call.reply(StoredSession{stored});
      return;
    }
    stored = session;
    call.done();
  }

  void load(Call &call, std::string_view id) override {
    if (is_broken) {
      throw std::runtime_error("the disk is full");
    }
    // Answers later; the arguments are valid until then.
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back([this, id, open = std::move(call)]() mutable {
      const std::lock_guard<std::mutex> locked(mutex_);
      const auto found = sessions_.find(std::string(id));
      found == sessions_.end() ? open.done() : open.reply(StoredSession{found->second});
    });
  }

  void remove(Call &call, std::string_view id) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions_.erase(std::string(id));
    call.done();
  }

  void append(Call &call, std::string_view stream, std::uint64_t number,
              const std::vector<std::string_view> &events) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto &stored = streams_[std::string(stream)];
    for (const std::string_view event : events) {
      stored[number++] = event;
    }
    call.done();
  }

  void end(Call &call, std::string_view stream, std::uint64_t last) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    CHECK(streams_[std::string(stream)].count(last) == 1);
    ended_.put(std::string(stream));
    call.done();
  }

  void read(Call &call, std::string_view stream, std::uint64_t after) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto &stored = streams_[std::string(stream)];
    LoggedEvents part;
    for (auto at = stored.upper_bound(after); at != stored.end(); ++at) {
      part.events.emplace_back(at->second);
    }
    part.ended = true;
    call.reply(part);
  }

  void publish(Call &call, std::string_view message) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const BusReceiver receiver : receivers_) {
      receiver.receive(message);
    }
    call.done();
  }

  void subscribe(Call &call, BusReceiver receiver) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    receivers_.push_back(receiver);
    call.done();
  }

  void unsubscribe(Call &call, BusReceiver receiver) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t before = receivers_.size();
    receivers_.erase(std::remove(receivers_.begin(), receivers_.end(), receiver), receivers_.end());
    CHECK(receivers_.size() == before - 1);
    call.done();
  }

  /// Waits until a stream has ended.
  void wait_for_end() { ended_.take(); }

  std::atomic<bool> is_broken{false};

private:
  std::mutex mutex_;
  std::map<std::string, std::string> sessions_;
  std::map<std::string, std::map<std::uint64_t, std::string>> streams_;
  std::vector<BusReceiver> receivers_;
  std::vector<std::thread> threads_;
  Box<std::string> ended_;
};

/// Sends a request to a server, and returns the response with its head.
std::string response_of(std::uint16_t port, const std::string &head, const std::string &body) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(connect(connection, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
  const std::string request = head + "Host: 127.0.0.1:" + std::to_string(port) +
                              "\r\nConnection: close\r\nContent-Type: application/json\r\n"
                              "Accept: application/json, text/event-stream\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  CHECK(send(connection, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()));
  std::string response;
  char part[4096];
  for (ssize_t count = 0; (count = recv(connection, part, sizeof part, 0)) > 0;) {
    response.append(part, static_cast<std::size_t>(count));
  }
  close(connection);
  return response;
}

/// Returns the value of a field of a response, which ends with its line.
std::string field(const std::string &response, const std::string &name) {
  const std::size_t begin = response.rfind(name);
  CHECK(begin != std::string::npos);
  const std::size_t end = response.find_first_of("\r\n", begin);
  return response.substr(begin + name.size(), end - begin - name.size());
}

void stores_are_classes() {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<Server> servers;
  std::vector<std::uint16_t> ports;
  for (int index = 0; index < 2; index++) {
    Server &server = servers.emplace_back("replica", "1");
    THROWS(MCPL_USAGE_ERROR, server.set_sharing({store, nullptr, store}));
    server.set_sharing({store, store, store});
    server.add_tool("report", "d", nullptr, [](Call &call) {
      call.progress(1);
      return "done";
    });
    ports.push_back(server.start_http("127.0.0.1", 0));
    THROWS(MCPL_USAGE_ERROR, server.set_sharing({store, store, store}));
  }
  const std::string post = "POST /mcp HTTP/1.1\r\n";
  const std::string hello = R"({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": )"
                            R"("2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})";
  const std::string session = "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: " +
                              field(response_of(ports[0], post, hello), "mcp-session-id: ") + "\r\n";
  const std::string initialized = R"({"jsonrpc": "2.0", "method": "notifications/initialized"})";
  CHECK(contains(response_of(ports[0], post + session, initialized), "202"));
  const std::string call = R"({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "report", )"
                           R"("arguments": {}, "_meta": {"progressToken": 1}}})";
  store->is_broken = true;
  CHECK(contains(response_of(ports[1], post + session, call), "HTTP/1.1 503"));
  store->is_broken = false;
  const std::string streamed = response_of(ports[1], post + session, call);
  CHECK(contains(streamed, "done"));
  store->wait_for_end();
  const std::string last = field(streamed, "id: ");
  const std::string resume = "GET /mcp HTTP/1.1\r\nLast-Event-ID: " + last.substr(0, last.find('-')) + "-0\r\n";
  const std::string resumed = response_of(ports[0], resume + session, "");
  CHECK(contains(resumed, "\"progress\":1") && contains(resumed, "done"));
  CHECK(contains(response_of(ports[0], "DELETE /mcp HTTP/1.1\r\n" + session, ""), "HTTP/1.1 20"));
  servers.clear();
  CHECK(store.use_count() == 1);
}

void the_check_of_a_store_throws() {
  const auto store = std::make_shared<MemoryStore>();
  store->is_broken = true;
  {
    Server server("replica", "1");
    THROWS(MCPL_USAGE_ERROR, server.check_sharing());
    server.set_sharing({store, store, store});
    THROWS(MCPL_USAGE_ERROR, server.check_sharing());
    Server apart("replica", "1");
    apart.set_sharing({store, store, store});
    THROWS(MCPL_USAGE_ERROR, apart.check_sharing({store, nullptr, store}));
    THROWS(MCPL_USAGE_ERROR, apart.check_sharing({store, store, store}));
  }
  CHECK(store.use_count() == 1);
}

void a_callable_verifies_tokens_and_scopes_limit_what_callers_see() {
  Pair pair;
  HandlerOptions needs;
  needs.scopes = "edit";
  pair.server.add_tool("look", "d", nullptr, [](Call &call) { return call.info().string("/auth/subject"); });
  pair.server.add_tool(R"({"name":"edit","inputSchema":{"type":"object"}})", [] { return "edited"; }, needs);
  pair.server.on_request("acme/edit", nullptr, [] { return object({{"edited", true}}); }, needs);
  pair.server.add_tool("erase", "d", nullptr, [](Call &call) {
    call.require_scopes("edit");
    return "erased";
  });
  pair.server.on_verify([](const Json &params) {
    const std::string token = params.string("/token");
    if (token != "sesame" && token != "editor") {
      throw RpcError(-1, "it is nobody's");
    }
    return std::string(token == "editor" ? R"({"subject":"bob","scopes":["edit"]})" : R"({"subject":"alice"})");
  });
  const std::uint16_t port = pair.server.start_http(
      "127.0.0.1", 0,
      R"({"auth":{"resource":"http://localhost/mcp","authorization_servers":["https://auth.example.com"],"verifies":true}})");
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/mcp";
  const std::pair<const char *, const char *> callers[] = {{"sesame", "alice"}, {"editor", "bob"}};
  for (const auto &[token, name] : callers) {
    Client client("client", "1");
    client.set_bearer(token);
    client.set_header("x-unused", "a");
    client.set_timeout(std::chrono::minutes(1));
    client.connect(url);
    CHECK(text_of(client.call_tool("look", nullptr)) == name);
    const bool edits = std::string_view(token) == "editor";
    CHECK(contains(client.list_tools().text(), "\"edit\"") == edits);
    if (edits) {
      CHECK(text_of(client.call_tool("edit", nullptr)) == "edited");
      CHECK(text_of(client.call_tool("erase", nullptr)) == "erased");
      CHECK(client.request("acme/edit", nullptr).boolean("/edited"));
    } else {
      THROWS(MCPL_AUTHORIZATION_FAILED, client.call_tool("edit", nullptr));
      THROWS(MCPL_AUTHORIZATION_FAILED, client.call_tool("erase", nullptr));
      THROWS(MCPL_AUTHORIZATION_FAILED, client.request("acme/edit", nullptr));
    }
  }
  Client stranger("client", "1");
  stranger.set_url(url, R"({"auth":{"bearer":"guessed"}})");
  THROWS(MCPL_AUTHORIZATION_FAILED, (stranger.open(), 0));
}

void a_server_listens_on_a_unix_socket() {
  char folder[] = "/tmp/mcpline-unix-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/s";
  Pair pair;
  pair.server.add_tool("a", "d", nullptr, [] { return "an answer"; });
  pair.server.start_unix(path, R"({"max_connections":8})");
  THROWS(MCPL_TRANSPORT_ERROR, (pair.server.start_unix(path), 0));
  pair.client.set_socket(path);
  pair.client.open();
  CHECK(text_of(pair.client.call_tool("a", nullptr)) == "an answer");
  pair.client.close();
  pair.server.close();
  CHECK(rmdir(folder) == 0);
}

void a_loop_runs_callbacks_here() {
  Loop loop;
  Pair pair;
  const std::thread::id here = std::this_thread::get_id();
  pair.server.use_loop(loop);
  pair.client.use_loop(loop);
  pair.server.add_tool("a", "d", nullptr, [&] {
    CHECK(std::this_thread::get_id() == here);
    return "here";
  });
  bool done = false;
  pair.client.set_server(pair.server);
  pair.client.open_async([&](const Outcome &opened) {
    opened.value();
    pair.client.call_tool_async("a", nullptr, [&](const Outcome &outcome) {
      CHECK(text_of(outcome.value()) == "here");
      done = true;
    });
  });
  CHECK(loop.fd() >= 0);
  while (!done) {
    loop.wait();
    loop.dispatch();
  }
  CHECK(!loop.wait(Milliseconds(0)));
}

void json_is_read_and_written() {
  const Json json = object({{"text", "a\"\n"},
                            {"number", 2.5},
                            {"whole", 7U},
                            {"truth", true},
                            {"none", nullptr},
                            {"list", array({1, "two", object({{"three", 3}})})}});
  CHECK(json.string("/text") == "a\"\n");
  CHECK(json.number("/number") == 2.5 && json.int64("/whole") == 7 && json.boolean("/truth"));
  CHECK(json.at("/none").kind() == MCPL_JSON_NULL && json.kind() == MCPL_JSON_OBJECT);
  CHECK(json.count("/list") == 3 && json.elements("/list")[2].int64("/three") == 3);
  CHECK(json.members().size() == 6 && json.members()[1].first == "number");
  CHECK(!json.find("/missing") && json.string_or("/missing", "otherwise") == "otherwise");
  CHECK(json.int64_or("/whole", 1) == 7);
  THROWS(MCPL_NOT_FOUND, json.string("/missing"));
  THROWS(MCPL_USAGE_ERROR, json.string("/number"));
  THROWS(MCPL_USAGE_ERROR, Writer().begin_object().text());
  Json part;
  {
    const Json whole(std::string(R"({"a":{"b":"kept"}})"));
    part = whole.at("/a");
  }
  CHECK(part.string("/b") == "kept");
  CHECK(Writer().put_base64("abc", 3).text() == "\"YWJj\"");
  CHECK(Writer().put(18446744073709551615ULL).text() == "18446744073709551615");
#if MCPLINE_NLOHMANN_JSON
  Pair pair;
  pair.server.add_tool("sum", "d", nlohmann::json{{"type", "object"}}, [](const nlohmann::json &arguments) {
    return nlohmann::json{{"sum", arguments.at("a").get<int>() + arguments.at("b").get<int>()}};
  });
  pair.joined();
  CHECK(pair.client.call_tool("sum", nlohmann::json{{"a", 1}, {"b", 2}}).parsed()["structuredContent"]["sum"] == 3);
  CHECK(object({{"n", nlohmann::json{1, 2}}}).text() == "{\"n\":[1,2]}");
  CHECK(json.at("/list/0").as<int>() == 1);
#endif
}

void a_client_reports_changes_of_its_connection() {
  std::vector<mcpl_connection_event> events;
  Pair pair;
  pair.client.on_connection([&](mcpl_connection_event event, const std::optional<Error> &lost) {
    CHECK(!lost);
    events.push_back(event);
  });
  pair.joined();
  pair.client.close();
  CHECK((events == std::vector{MCPL_CONNECTION_EVENT_CONNECTED, MCPL_CONNECTION_EVENT_CLOSED}));
}

void misuse_is_an_exception() {
  THROWS(MCPL_USAGE_ERROR, Server("\xff", "1"));
  THROWS(MCPL_USAGE_ERROR, Server(std::string_view("a\0b", 3), "1"));
  THROWS(MCPL_USAGE_ERROR, Server::with("{}"));
  Server server = Server::with(R"({"name":"a","version":"1","title":"A"})", R"({"instructions":"Read this."})");
  Client client("client", "1");
  client.connect(server);
  CHECK(client.info().string("/instructions") == "Read this.");
  Server moved = std::move(server);
  mcpline::RequestOptions options;
  options.timeout = std::chrono::seconds(60);
  client.ping();
  client.ping(options);
  client.ping_async(options).get();
  moved.close();
  const Error closed = THROWS(MCPL_CLOSED, (client.close(), client.ping(), 0));
  CHECK(std::string(closed.what()).empty() == false && closed.rpc_code() == 0);
}

} // namespace

int main() {
  const std::pair<const char *, void (*)()> tests[] = {
#define TEST(name) {#name, name}
      TEST(handlers_accept_every_signature),
      TEST(handlers_return_every_result_type),
      TEST(middleware_surrounds_requests),
      TEST(custom_notifications_are_handled_and_clients_serve_custom_requests),
      TEST(custom_requests_are_served),
      TEST(exceptions_fail_only_their_call),
      TEST(a_call_that_is_dropped_fails),
      TEST(structures_with_a_size_have_initial_values),
      TEST(a_call_is_answered_once),
      TEST(requesting_input_waits_or_continues),
      TEST(a_server_requests_input_outside_of_calls),
      TEST(tool_calls_need_approval),
      TEST(requests_are_futures_or_call_back),
      TEST(a_client_reports_changes_of_its_connection),
      TEST(destroys_the_captures_of_lambdas),
      TEST(reports_errors_of_callbacks_without_a_response),
      TEST(settings_of_servers_are_functions),
      TEST(handlers_may_return_errors),
      TEST(transports_are_classes),
      TEST(transports_may_be_busy),
      TEST(stores_are_classes),
      TEST(the_check_of_a_store_throws),
      TEST(a_callable_verifies_tokens_and_scopes_limit_what_callers_see),
      TEST(a_server_listens_on_a_unix_socket),
      TEST(a_loop_runs_callbacks_here),
      TEST(json_is_read_and_written),
      TEST(misuse_is_an_exception),
  };
  int passed = 0;
  for (const auto &[name, run] : tests) {
    std::cerr << name << std::endl;
    run();
    ++passed;
  }
  std::cout << passed << " passed, 0 failed" << std::endl;
  return EXIT_SUCCESS;
}

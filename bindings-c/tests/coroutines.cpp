// Coroutines that wait for requests of a client.

#include <mcpline.hpp>

#include <atomic>
#include <cstdlib>
#include <future>
#include <iostream>
#include <thread>

namespace {

using namespace mcpline;

#define CHECK(condition) check((condition), __LINE__, #condition)

void check(bool truth, int line, const char *what) {
  if (!truth) {
    std::cerr << "coroutines.cpp:" << line << ": not so: " << what << std::endl;
    std::abort();
  }
}

/// A coroutine that starts at once and releases itself at its end.
struct Started {
  struct promise_type {
    Started get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }
  };
};

/// A coroutine that its owner destroys.
struct Owned {
  struct promise_type {
    Owned get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }
  };

  std::coroutine_handle<promise_type> coroutine;
};

/// A server and a client of it. The tool `wait` ends when `released` is set.
struct Pair {
  Server server{"server", "1"};
  Client client{"client", "1"};
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();

  Pair() {
    server.add_tool("echo", "d", R"({"type":"object"})",
                    [](const Json &arguments) { return arguments.string("/text"); });
    server.add_tool("wait", "d", nullptr, [release = release] {
      release.wait();
      return "released";
    });
    server.add_tool("fail", "d", nullptr, []() -> std::string { throw RpcError(7, "no"); });
  }

  Pair &joined() {
    client.connect(server);
    return *this;
  }

  ~Pair() {
    try {
      released.set_value();
    } catch (const std::future_error &) {
      // It is set.
    }
  }
};

// Outside of coroutines: GCC 12 refuses a list of initializers beside `co_await`.
Json text(const std::string &said) { return object({{"text", said}}); }

std::string text_of(const Json &result) { return result.string("/content/0/text"); }

Started call_several(Client &client, std::promise<std::string> &result) {
  Json arguments = text("one");
  const Json first = co_await client.call_tool_async("echo", arguments);
  arguments = text(text_of(first) + ", two");
  const Json second = co_await client.call_tool_async("echo", arguments);
  result.set_value(text_of(second));
}

void a_coroutine_goes_on_with_results() {
  Pair pair;
  pair.joined();
  std::promise<std::string> result;
  call_several(pair.client, result);
  CHECK(result.get_future().get() == "one, two");
}

Started call_and_fail(Client &client, std::promise<std::int64_t> &code) {
  try {
    (void)co_await client.call_tool_async("fail", nullptr);
    code.set_value(0);
  } catch (const Error &error) {
    code.set_value(error.rpc_code());
  }
}

void a_coroutine_gets_an_error() {
  Pair pair;
  pair.joined();
  std::promise<std::int64_t> code;
  call_and_fail(pair.client, code);
  CHECK(code.get_future().get() == 7);
}

Started wait_for(Pending<Json> pending, std::promise<mcpl_status> &status) {
  try {
    (void)co_await pending;
    status.set_value(MCPL_OK);
  } catch (const Error &error) {
    status.set_value(error.status());
  }
}

void a_request_that_has_ended_does_not_suspend() {
  Pair pair;
  pair.joined();
  Pending<Json> pending = pair.client.call_tool_async("echo", text("one"));
  pending.wait();
  std::promise<mcpl_status> status;
  wait_for(std::move(pending), status);
  std::future<mcpl_status> known = status.get_future();
  CHECK(known.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  CHECK(known.get() == MCPL_OK);
}

void a_cancelled_request_is_an_error() {
  Pair pair;
  pair.joined();
  Pending<Json> pending = pair.client.call_tool_async("wait", nullptr);
  CHECK(pending.cancel());
  std::promise<mcpl_status> status;
  wait_for(std::move(pending), status);
  CHECK(status.get_future().get() == MCPL_REQUEST_CANCELLED);
}

Started note_thread(Client &client, std::thread::id &resumed, bool &done) {
  const Json arguments = text("one");
  (void)co_await client.call_tool_async("echo", arguments);
  resumed = std::this_thread::get_id();
  done = true;
}

void a_coroutine_goes_on_where_the_loop_is_dispatched() {
  Loop loop;
  Pair pair;
  pair.client.use_loop(loop);
  pair.joined();
  std::thread::id resumed;
  bool done = false;
  note_thread(pair.client, resumed, done);
  while (!done) {
    loop.wait();
    loop.dispatch();
  }
  CHECK(resumed == std::this_thread::get_id());
}

Owned wait_forever(Client &client, bool &went_on) {
  (void)co_await client.call_tool_async("wait", nullptr);
  went_on = true;
}

void a_coroutine_that_is_destroyed_while_it_waits_does_not_go_on() {
  Loop loop;
  Pair pair;
  pair.client.use_loop(loop);
  pair.joined();
  bool went_on = false;
  wait_forever(pair.client, went_on).coroutine.destroy();
  pair.released.set_value();
  bool ended = false;
  pair.client.call_tool_async("wait", nullptr, [&](const Outcome &) { ended = true; });
  while (!ended) {
    loop.wait();
    loop.dispatch();
  }
  pair.client.close();
  CHECK(!went_on);
}

Started open_and_close(std::unique_ptr<Client> client, Server &server, std::promise<std::string> &name) {
  client->set_server(server);
  (void)co_await client->open_async();
  std::string found = client->info().string("/serverInfo/name");
  // Within the callback.
  client.reset();
  name.set_value(std::move(found));
}

void a_coroutine_connects_and_frees_its_client() {
  Pair pair;
  std::promise<std::string> name;
  open_and_close(std::make_unique<Client>("client", "1"), pair.server, name);
  CHECK(name.get_future().get() == "server");
}

} // namespace

int main() {
  const std::pair<const char *, void (*)()> tests[] = {
#define TEST(name) {#name, name}
      // The first: it ends before the threads of its client have, and valgrind must find none when the program ends.
      TEST(a_coroutine_connects_and_frees_its_client),
      TEST(a_coroutine_goes_on_with_results),
      TEST(a_coroutine_gets_an_error),
      TEST(a_request_that_has_ended_does_not_suspend),
      TEST(a_cancelled_request_is_an_error),
      TEST(a_coroutine_goes_on_where_the_loop_is_dispatched),
      TEST(a_coroutine_that_is_destroyed_while_it_waits_does_not_go_on),
  };
  int passed = 0;
  for (const auto &[name, test] : tests) {
    test();
    passed += 1;
  }
  std::cout << passed << " passed, 0 failed" << std::endl;
}

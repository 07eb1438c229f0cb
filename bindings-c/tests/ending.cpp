// Ends of a process with servers and clients in static and thread-local storage. Each way of ending is a process of its
// own: this program, with the way as its argument.

#include <mcpline.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using mcpline::Call;
using mcpline::Client;
using mcpline::Error;
using mcpline::Json;
using mcpline::Loop;
using mcpline::Outcome;
using mcpline::Server;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      std::cerr << "ending.cpp:" << __LINE__ << ": not so: " << #condition << std::endl;                               \
      std::abort();                                                                                                    \
    }                                                                                                                  \
  } while (0)

/// An event that other threads wait for. Never destroyed, because they may outlive static objects.
class Event {
public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

Event &started = *new Event;
Event &goes_on = *new Event;
Event &finished = *new Event;

/// What a way of ending adds to the static objects, which are destroyed in reverse order: first `release`, then the
/// server, the client and the loop, last the state.
struct State {
  ~State() {
    if (check) {
      CHECK(has_ended && server_ended);
    }
    alive = false;
  }

  std::string text = "state that a handler uses, too long for a small string";
  bool check = false;
  std::atomic<bool> alive{true};
  std::atomic<bool> has_ended{false};
  bool server_ended = false;
};

struct Owned {
  explicit Owned(std::atomic<bool> &has_ended) : ended(&has_ended) {}
  ~Owned() { *ended = true; }
  std::atomic<bool> *ended;
};

struct Release {
  ~Release() {
    if (releases) {
      goes_on.set();
    }
  }
  bool releases = false;
};

State state;
std::optional<Loop> loop;
std::optional<Client> client;
std::optional<Server> server;
Release release;

/// Uses what the library keeps for each thread: a failure, a callback, a finalizer, a close.
void use_this_thread() {
  try {
    Client("test", "1").open();
    CHECK(false);
  } catch (const Error &error) {
    CHECK(error.status() == MCPL_USAGE_ERROR);
  }
  Server other("other", "1");
  Loop events;
  other.use_loop(events);
  other.add_tool("a", "d", nullptr, [] { return "b"; });
  Client one("test", "1");
  one.use_loop(events);
  one.connect(other);
  CHECK(one.call_tool("a", nullptr).string("/content/0/text") == "b");
  one.close();
}

void serve() {
  server.emplace("server", "1");
  client.emplace("client", "1");
}

/// main returns while a handler of a static server runs: the server's destructor waits for it.
void static_server() {
  serve();
  server->add_tool("wait", "d", nullptr, [] {
    started.set();
    goes_on.wait();
    CHECK(state.alive);
    state.server_ended = !state.text.empty();
    return "done";
  });
  client->connect(*server);
  client->call_tool_async("wait", nullptr, [](const Outcome &) {
    CHECK(state.alive);
    state.has_ended = true;
  });
  use_this_thread();
  started.wait();
  state.check = true;
  release.releases = true;
}

/// A client in thread-local storage, which is destroyed after what the library keeps for the thread.
void thread_local_client() {
  std::atomic<bool> has_ended{false};
  server.emplace("server", "1");
  std::thread([&] {
    thread_local std::optional<Client> own;
    own.emplace("client", "1");
    own->on_elicit([owned = std::make_shared<Owned>(has_ended)](mcpline::InputRequest, const Json &) {});
    own->connect(*server);
    use_this_thread();
  }).join();
  CHECK(has_ended);
}

/// Calls the tool that ends this process.
void call_end() {
  client->call_tool_async("end", nullptr, [](const Outcome &) {});
  finished.wait();
}

/// A handler calls exit: the server is destroyed on the thread of its own handler.
void exit_in_handler() {
  serve();
  server->add_tool("end", "d", nullptr, [] { std::exit(EXIT_SUCCESS); });
  client->connect(*server);
  use_this_thread();
  call_end();
}

/// The same on the I/O thread.
void exit_in_inline_handler() {
  serve();
  mcpline::HandlerOptions options;
  options.on_io_thread = true;
  server->add_tool(R"({"name": "end", "inputSchema": {"type": "object"}})", [] { std::exit(EXIT_SUCCESS); }, options);
  client->connect(*server);
  call_end();
}

/// The same on the thread that dispatches a loop.
void exit_in_dispatch() {
  loop.emplace();
  serve();
  server->use_loop(*loop);
  client->use_loop(*loop);
  server->add_tool("end", "d", nullptr, [] { std::exit(EXIT_SUCCESS); });
  client->connect(*server);
  client->call_tool("end", nullptr);
  CHECK(false);
}

/// A callback of a client calls exit.
void exit_in_callback_of_client() {
  serve();
  server->add_tool("a", "d", nullptr, [] { return "b"; });
  client->connect(*server);
  client->call_tool_async("a", nullptr, [](const Outcome &) { std::exit(EXIT_SUCCESS); });
  finished.wait();
}

struct Way {
  const char *name;
  void (*end)();
};

#define WAY(name) {#name, name}

constexpr Way ways[] = {
    WAY(static_server),          WAY(thread_local_client), WAY(exit_in_handler),
    WAY(exit_in_inline_handler), WAY(exit_in_dispatch),    WAY(exit_in_callback_of_client),
};

/// Runs a way of ending in a process of its own.
void run(const char *program, const Way &way) {
  std::cerr << way.name << std::endl;
  const pid_t process = fork();
  if (process == 0) {
    execl(program, program, way.name, static_cast<char *>(nullptr));
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(process, &status, 0) == process);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

} // namespace

int main(int argc, char **argv) {
  int passed = 0;
  for (const Way &way : ways) {
    if (argc < 2) {
      run(argv[0], way);
      ++passed;
    } else if (std::strcmp(argv[1], way.name) == 0) {
      // Only prevents that a process which never ends outlives the test.
      alarm(300);
      way.end();
      return EXIT_SUCCESS;
    }
  }
  std::cout << passed << " passed, 0 failed" << std::endl;
  return passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

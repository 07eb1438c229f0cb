// A server and a client with custom requests and notifications.
//
//     custom-methods [--http PORT]                           the server; without a port it serves stdio
//     custom-methods --client PROGRAM-OR-URL [ARGUMENT…]     the client of such a server

#include <mcpline.hpp>

#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <queue>

namespace {

using mcpline::array;
using mcpline::Call;
using mcpline::Json;
using mcpline::object;

/// A queue of texts between threads.
class Texts {
public:
  void give(std::string text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push(std::move(text));
    given_.notify_one();
  }

  std::string take() {
    std::unique_lock<std::mutex> lock(mutex_);
    given_.wait(lock, [this] { return !texts_.empty(); });
    std::string text = std::move(texts_.front());
    texts_.pop();
    return text;
  }

private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::queue<std::string> texts_;
};

void serve(const char *port) {
  Texts notes;
  mcpline::Server server("custom-methods", "1.0.0");
  const Json schema = object({{"type", "object"},
                              {"properties", object({{"text", object({{"type", "string"}})}})},
                              {"required", array({"text"})}});
  // Returns the text, after progress and a custom notification.
  server.on_request("acme/echo", schema, [](Call &call, const Json &params) {
    const Json result = object({{"text", params.at("/text")}});
    call.progress(1, 2);
    call.notify("acme/echoing", result);
    return result;
  });
  server.on_notification("acme/note", schema,
                         [&notes](Call &, const Json &params) { notes.give(params.string("/text")); });
  // Returns the next note, or waits for one.
  server.on_request("acme/take", nullptr, [&notes](Call &, const Json &) { return object({{"text", notes.take()}}); });
  // Sends the client a custom request.
  server.on_request("acme/choose", nullptr, [](Call &call, const Json &) {
    const Json answer = call.send_request("acme/pick", object({{"from", array({"green", "black"})}}));
    return object({{"tea", answer.at("/picked")}});
  });
  if (port != nullptr) {
    server.run_http("127.0.0.1", static_cast<std::uint16_t>(std::stoi(port)));
  } else {
    server.run_stdio();
  }
}

/// Connects to the server, sends custom requests, and serves those of the server.
void call(char **begin, char **end) {
  Texts echoing;
  mcpline::Client client("host", "1.0.0");
  client.on_request("acme/pick", [](const Json &params) { return object({{"picked", params.at("/from/0")}}); });
  client.on_notification([&echoing](std::string_view method, const Json &params) {
    if (method == "acme/echoing") {
      echoing.give(params.string("/text"));
    }
  });
  if (std::string_view(*begin).substr(0, 4) == "http") {
    client.connect(*begin);
  } else {
    client.spawn({begin, end});
  }
  const Json echoed = client.request("acme/echo", object({{"text", "hello"}}));
  std::cout << "echoing: " << echoing.take() << '\n';
  std::cout << "echoed: " << echoed.string("/text") << '\n';
  client.notify("acme/note", object({{"text", "a note"}}));
  std::cout << "took: " << client.request("acme/take", nullptr).string("/text") << '\n';
  std::cout << "picked: " << client.request("acme/choose", nullptr).string("/tea") << '\n';
  client.close();
}

} // namespace

int main(int argc, char **argv) {
  try {
    const std::string_view mode = argc >= 3 ? argv[1] : "";
    if (mode == "--client") {
      call(argv + 2, argv + argc);
    } else {
      serve(mode == "--http" ? argv[2] : nullptr);
    }
    return EXIT_SUCCESS;
  } catch (const std::exception &error) {
    std::cerr << "custom-methods: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

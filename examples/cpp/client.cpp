// A client: starts a server or connects to one, lists, calls, waits for several results at once, shows progress, and
// answers the server's elicitation.
//
//     client PROGRAM-OR-URL [ARGUMENT…]      of a server like notes.cpp

#include <mcpline.hpp>

#include <cstdlib>
#include <iostream>
#include <mutex>

namespace {

using mcpline::Json;
using mcpline::object;

/// Callbacks run on the library's threads: the lock keeps lines apart.
void say(const std::string &line) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  std::cout << line << std::endl;
}

std::string text_of(const Json &result) { return result.string_or("/content/0/text", "(no text)"); }

void play(mcpline::Client &client) {
  say("connected to " + client.info().string("/serverInfo/name"));
  for (const Json &tool : client.list_tools().elements()) {
    say("  " + tool.string("/name") + ": " + tool.string_or("/description", ""));
  }

  // Two requests at once, as futures.
  auto first = client.call_tool_async("put", object({{"title", "one"}, {"text", "the first note"}}));
  auto second = client.call_tool_async("put", object({{"title", "two"}, {"text", "the second note"}}));
  say("wrote " + first.get().string("/structuredContent/title") + " and " +
      second.get().string("/structuredContent/title"));

  mcpline::RequestOptions options;
  options.progress = [](double progress, double total, std::string_view) {
    say("  " + std::to_string(static_cast<int>(progress)) + " of " + std::to_string(static_cast<int>(total)));
  };
  say("counted to " + text_of(client.call_tool("count", nullptr, options)));

  // A tool that fails returns a result with isError; a request that the server refuses throws.
  const Json missing = client.call_tool("get", object({{"title", "three"}}));
  say("failed as it should: " + text_of(missing));
  try {
    client.read_resource("note://nowhere/at/all");
  } catch (const mcpline::Error &error) {
    say("refused as it should be, with code " + std::to_string(error.rpc_code()));
  }

  // The server asks the user first.
  say("clear: " + text_of(client.call_tool("clear", nullptr)));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::cerr << "usage: client PROGRAM-OR-URL [ARGUMENT...]\n";
    return EXIT_FAILURE;
  }
  try {
    mcpline::Client client("client", "1.0.0");
    client.on_elicit([](const Json &params) {
      say("the server asks: " + params.string("/message") + " (yes)");
      return object({{"action", "accept"}, {"content", object({{"sure", true}})}});
    });
    if (std::string_view(argv[1]).substr(0, 4) == "http") {
      client.connect(argv[1]);
    } else {
      client.spawn({argv + 1, argv + argc});
    }
    play(client);
    client.close();
    return EXIT_SUCCESS;
  } catch (const mcpline::Error &error) {
    std::cerr << "client: " << mcpl_status_name(error.status()) << ": " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

// A server whose handlers are lambdas: tools with typed results, one with an elicitation, one that works in its own
// thread and can be cancelled, resources and completion.
//
//     notes          serves stdio
//     notes PORT     serves HTTP

#include <mcpline.hpp>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

namespace {

using mcpline::array;
using mcpline::Call;
using mcpline::Json;
using mcpline::object;

/// Handlers run in parallel, so shared state has a lock.
class Notes {
public:
  void put(const std::string &title, const std::string &text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    notes_[title] = text;
  }

  std::string get(const std::string &title) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = notes_.find(title);
    if (found == notes_.end()) {
      throw mcpline::ToolError("there is no note of that title");
    }
    return found->second;
  }

  std::vector<std::string> titles() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> titles;
    for (const auto &[title, text] : notes_) {
      titles.push_back(title);
    }
    return titles;
  }

  bool clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(notes_, {}).empty();
  }

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> notes_;
};

const Json text_schema = object({{"type", "string"}});

void offer(mcpline::Server &server, Notes &notes) {
  server.add_tool("put", "Writes a note",
                  object({{"type", "object"},
                          {"properties", object({{"title", text_schema}, {"text", text_schema}})},
                          {"required", array({"title", "text"})}}),
                  [&](const Json &arguments) {
                    notes.put(arguments.string("/title"), arguments.string("/text"));
                    return object({{"title", arguments.string("/title")}});
                  });

  // Exceptions fail the call: a ToolError with a text for the model.
  server.add_tool(
      "get", "Reads a note",
      object({{"type", "object"}, {"properties", object({{"title", text_schema}})}, {"required", array({"title"})}}),
      [&](const Json &arguments) { return notes.get(arguments.string("/title")); });

  // elicit blocks the handler's thread until the user has answered; request_input_then would not.
  server.add_tool("clear", "Throws all notes away", nullptr, [&](Call &call) {
    const Json answer =
        call.elicit("Throw all notes away?",
                    object({{"type", "object"}, {"properties", object({{"sure", object({{"type", "boolean"}})}})}}));
    if (answer.string("/action") != "accept" || !answer.boolean_or("/content/sure", false)) {
      return std::string("kept");
    }
    return std::string(notes.clear() ? "there were none" : "thrown away");
  });

  // A handler that takes the Call by value can answer later, on any thread.
  server.add_tool("count", "Counts slowly to ten", nullptr, [](Call call) {
    std::thread([call = std::move(call)]() mutable {
      for (int number = 1; number <= 10 && !call.is_cancelled(); ++number) {
        call.progress(number, 10);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      call.reply("ten");
    }).detach();
  });

  server.add_resource_template("note://{title}", "note", "text/plain",
                               [&](const Json &arguments) { return notes.get(arguments.string("/title")); });
  server.add_completion("note://{title}", "title", [&] { return notes.titles(); });
  server.add_prompt("summary", "Summarises all notes", nullptr, [&] {
    std::string words = "Summarise:";
    for (const std::string &title : notes.titles()) {
      words += "\n- " + notes.get(title);
    }
    return words;
  });
}

} // namespace

int main(int argc, char **argv) {
  try {
    Notes notes;
    notes.put("welcome", "Notes are kept until the server ends.");
    // The server's destructor waits for handlers, so it must run before that of the notes.
    mcpline::Server server("notes", "1.0.0");
    offer(server, notes);
    if (argc > 1) {
      server.stop_on_signals();
      const std::uint16_t port = server.start_http("127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[1])));
      std::cout << "listening on http://127.0.0.1:" << port << "/mcp" << std::endl;
      server.wait();
    } else {
      server.run_stdio();
    }
    return EXIT_SUCCESS;
  } catch (const mcpline::Error &error) {
    std::cerr << "notes: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

// A server of a request of its own, acme/echo.
//
//     custom-methods [--http PORT]      without a port it serves stdio

#include <mcpline.hpp>

#include <cstdlib>
#include <iostream>

using mcpline::array;
using mcpline::Call;
using mcpline::Json;
using mcpline::object;

int main(int argc, char **argv) {
  try {
    mcpline::Server server("custom-methods", "1.0.0");
    const Json schema = object({{"type", "object"},
                                {"properties", object({{"text", object({{"type", "string"}})}})},
                                {"required", array({"text"})}});
    server.on_request("acme/echo", schema, [](Call &call, const Json &params) {
      const Json result = object({{"text", params.at("/text")}});
      call.progress(1, 2);
      call.notify("acme/echoing", result);
      return result;
    });
    if (argc == 3 && std::string_view(argv[1]) == "--http") {
      server.run_http("127.0.0.1", static_cast<std::uint16_t>(std::stoi(argv[2])));
    } else {
      server.run_stdio();
    }
    return EXIT_SUCCESS;
  } catch (const std::exception &error) {
    std::cerr << "custom-methods: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

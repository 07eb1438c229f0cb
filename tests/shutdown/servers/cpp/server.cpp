// A server whose calls never end by themselves, over stdio, a Unix socket or HTTP.
#include <mcpline.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int count, char **arguments) {
    using mcpline::array;
    using mcpline::object;
    try {
        const char *info = R"({"name": "shutdown", "version": "1"})";
        const char *options = R"({"shutdown_timeout": 1})";
        mcpline::Server server(mcpl_server_new_with(info, MCPL_AUTO_LENGTH, options, MCPL_AUTO_LENGTH));
        const auto text = object({{"type", "string"}});
        server.add_tool(
            "waits", "Waits until it is cancelled",
            object({{"type", "object"}, {"properties", object({{"label", text}})}, {"required", array({"label"})}}),
            [](mcpline::Call call, const mcpline::Json &given) {
                const std::string label = given.string("/label");
                call.progress(0, 1);
                std::fprintf(stderr, "waiting %s\n", label.c_str());
                auto *waiting = new mcpline::Call(std::move(call));
                waiting->on_cancel([waiting, label] {
                    std::fprintf(stderr, "cancelled %s\n", label.c_str());
                    delete waiting;
                });
            });
        if (count < 3) {
            server.run_stdio();
        } else if (std::string(arguments[1]) == "unix") {
            server.run_unix(arguments[2]);
        } else {
            server.run_http("127.0.0.1", static_cast<std::uint16_t>(std::atoi(arguments[2])));
        }
        return EXIT_SUCCESS;
    } catch (const mcpline::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
}

/// \file
/// mcpline for C++17: servers and clients of the Model Context Protocol. Header-only, over mcpline.h.
///
/// \code
/// mcpline::Server server("weather", "1.0.0");
/// server.add_tool("forecast", "Forecast for a city",
///                 R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})",
///                 [](const mcpline::Json &arguments) { return "sunny in " + arguments.string("/city"); });
/// server.run_stdio();
/// \endcode
///
/// What holds everywhere:
///
/// - Objects own what they stand for and end it when they go; they can be moved, not copied.
/// - Functions throw mcpline::Error where the C function returns a status other than `MCPL_OK`.
/// - Callbacks are any callable, move-only ones too. They are kept by the library and destroyed when none of them runs
///   or will run any more. They run on the library's worker threads, or on the thread that dispatches the Loop that the
///   server or client uses; never two at a time where their documentation says so, else side by side.
/// - No exception leaves a callback into the library. A handler that throws fails its call: ToolError in words that the
///   model reads, RpcError as that JSON-RPC error, anything else as an internal failure that the client isn't told of.
///   What a callback throws that answers nobody goes to the function set by set_unhandled (by default: stderr).
/// - Where JSON is wanted, give text (anything that is a std::string_view), a Json, what object() and array() make,
///   or, if <nlohmann/json.hpp> can be included, a nlohmann::json. Define `MCPLINE_NLOHMANN_JSON` as 0 or 1 before the
///   include to decide that yourself.
///
/// The parts: `error`, `json` and `outcome`; `loop`; `server`, with `call` for its handlers; `client`, with `request`
/// and `question`; `channel` for transports of the program's own.

#ifndef MCPLINE_HPP
#define MCPLINE_HPP

#include "mcpline/call.hpp"
#include "mcpline/channel.hpp"
#include "mcpline/error.hpp"
#include "mcpline/json.hpp"
#include "mcpline/loop.hpp"
#include "mcpline/outcome.hpp"
#include "mcpline/server.hpp"

#ifdef MCPLINE_HAS_CLIENT
#include "mcpline/client.hpp"
#include "mcpline/question.hpp"
#include "mcpline/request.hpp"
#endif

#endif

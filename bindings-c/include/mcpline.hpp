/// \file
/// mcpline for C++17: Model Context Protocol servers and clients. A header-only layer over mcpline.h.
///
/// \code
/// mcpline::Server server("weather", "1.0.0");
/// server.add_tool("forecast", "Forecast for a city",
///                 R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})",
///                 [](const mcpline::Json &arguments) { return "sunny in " + arguments.string("/city"); });
/// server.run_stdio();
/// \endcode
///
/// Conventions:
///
/// - Objects own what they refer to and release it in their destructors. They can be moved, but not copied.
/// - Functions throw mcpline::Error where the C function returns a status other than `MCPL_OK`. Those that may fail
///   return a Fallible<T>, which is T.
/// - Without exceptions (`-fno-exceptions`, or `MCPLINE_EXCEPTIONS` defined as 0), Fallible<T> is Expected<T>:
///   the value or the Error. `create` replaces constructors that may fail, and handlers return their errors.
/// - Callbacks are any callables, including move-only ones. The library owns them and destroys them when they can no
///   longer run. They run on worker threads, or on the thread that dispatches the Loop of the server or client. They
///   run concurrently unless documented otherwise.
/// - Exceptions do not propagate from callbacks into the library. An exception in a handler fails its call: a ToolError
///   with a message for the model, an RpcError with that JSON-RPC error, any other with an internal error that hides
///   its message from the client. Exceptions of callbacks without a response go to the function set by set_unhandled
///   (default: stderr).
/// - JSON parameters accept text (anything convertible to std::string_view), Json, the results of object() and array(),
///   and nlohmann::json if `MCPLINE_NLOHMANN_JSON` is defined as 1 for all files of the program.
/// - Functions that end in `_async` return a future; in C++20 coroutines wait for it with `co_await`.
///
/// Headers: `error`, `json` and `request_outcome`; `loop`; `server`, and `call` for its handlers; `client`, with
/// `request` and `input_request`; `channel` for transports that the program provides; `sharing` for stores of its own.

#ifndef MCPLINE_HPP
#define MCPLINE_HPP

#include "mcpline/call.hpp"
#include "mcpline/channel.hpp"
#include "mcpline/error.hpp"
#include "mcpline/json.hpp"
#include "mcpline/loop.hpp"
#include "mcpline/request_outcome.hpp"
#include "mcpline/server.hpp"
#include "mcpline/sharing.hpp"

#ifdef MCPLINE_HAS_CLIENT
#include "mcpline/client.hpp"
#include "mcpline/input_request.hpp"
#include "mcpline/request.hpp"
#endif

#endif

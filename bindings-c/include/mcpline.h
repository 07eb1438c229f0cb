/** \file
 * Model Context Protocol servers and clients.
 *
 * Generated from bindings-c/src by tools/c-header: do not edit. See docs/guides/c.md for a guide.
 *
 * CONTENTS
 *
 * The types come first, then the functions in these sections:
 *
 * 1. Library: mcpl_set_diagnostics to mcpl_string_free
 * 2. Errors: mcpl_status_name to mcpl_error_details
 * 3. Event loops: mcpl_loop_new to mcpl_loop_free
 * 4. Servers: mcpl_server_new to mcpl_server_add_allowed_origin
 * 5. Serving: mcpl_server_serve_channel to mcpl_server_on_verify
 * 6. Shared state: mcpl_server_set_sharing to mcpl_call_reply_events
 * 7. Features of servers: mcpl_server_add_middleware to mcpl_server_remove_notification_handler
 * 8. Calls of handlers: mcpl_call_reply_text to mcpl_call_next_wait
 * 9. Channels: mcpl_channel_opened to mcpl_channel_hang_up
 * 10. Clients: mcpl_client_new to mcpl_client_info
 * 11. Settings of clients: mcpl_client_set_channel to mcpl_client_set_config
 * 12. Callbacks of clients: mcpl_client_on_elicit to mcpl_client_on_stderr
 * 13. Requests of clients: mcpl_client_request to mcpl_client_notify_async
 * 14. Input requests to clients: mcpl_input_request_answer to mcpl_input_request_on_cancel
 * 15. JSON: mcpl_json_find to mcpl_json_free
 *
 * RULES FOR ALL FUNCTIONS
 *
 * Threads. Every function may be called from any thread at any time, unless its documentation says otherwise.
 *
 * Handles. mcpl_server, mcpl_client, mcpl_call, mcpl_loop, mcpl_request, mcpl_input_request, mcpl_channel and mcpl_bus_receiver are
 * handles that the library looks up; they are never dereferenced. Functions return MCPL_STALE_HANDLE for the handle of an object
 * that has ended, and MCPL_USAGE_ERROR for NULL.
 *
 * Input strings. Names, URIs, paths and messages end with a zero byte. Text and JSON of any size are a pointer and a length
 * in bytes; the length MCPL_AUTO_LENGTH means that the string ends with a zero byte. Strings must be valid UTF-8, and JSON
 * must be valid JSON. The library copies its input before a function returns.
 *
 * Output strings. Strings passed to callbacks are valid until the callback returns; the arguments of a call are valid until
 * its handler has returned and the call has ended. A zero byte follows them, which their length does not count. Release
 * strings that functions return by a char ** with mcpl_string_free; on failure they are NULL and their length is 0.
 * Pointers to output lengths may be NULL.
 *
 * Errors. Functions return a status; functions that create an object return NULL on failure. mcpl_last_error returns the
 * details of the last failure on the calling thread. Functions of a client to be called before connecting return MCPL_CLOSED
 * once the client is closed.
 *
 * User data. The pointer `user` given with a callback is passed to each call of it, on any thread. Its finalizer, which may
 * be NULL, is called exactly once: see mcpl_finalizer.
 *
 * Callbacks run on worker threads. If the server or client uses an mcpl_loop, they run on the thread that dispatches it;
 * handlers with MCPL_HANDLER_INLINE run on the I/O thread. An HTTP server with the option `io_threads` has I/O threads of its own
 * beside that one. Callbacks run concurrently, except that the notifications of a client and the messages of a channel arrive
 * one at a time and in order. Callbacks may call every function, including those that wait, unless waiting would be a deadlock:
 * then these return MCPL_WOULD_DEADLOCK. A callback must not throw a C++ exception or be left by longjmp.
 *
 * Waiting. Functions that wait are documented as such. They return MCPL_WOULD_DEADLOCK on the I/O thread and within
 * mcpl_loop_dispatch (which callbacks may call again). On a loop's thread that is not dispatching, they dispatch the loop
 * while they wait: that of the server or client, or else the one that this thread created or dispatched last. A waiting worker
 * thread is replaced by another; if too many wait already, or too many requests are open, functions that wait for a result
 * return MCPL_LIMIT_EXCEEDED and have sent nothing. Functions that close something are never refused for that.
 *
 * Times. Parameters and members whose name ends in _ms are in milliseconds. Times in JSON are in seconds,
 * but where the specification has another unit.
 *
 * Features. The library can be built without some of its features: see mcpline/features.h. Neither the library nor this
 * header contains the functions of missing features.
 *
 * Processes. The library runs its own threads from the creation of the first server, client or loop until the last is
 * freed. In a child that is forked meanwhile, functions that return a status return MCPL_FORKED, those that create something
 * return NULL, and those that free objects do nothing, so that the child may exit; a callback that forks must not return in
 * the child. The child may use the library after exec, or if everything was freed before the fork. Processes that a client
 * starts get no descriptors but stdin, stdout and stderr (on Linux; elsewhere also those without FD_CLOEXEC).
 *
 * Signals. The library's threads block all signals but those that a thread causes itself (SIGSEGV and the like) and SIGPROF, so
 * that the program's threads get them. A process that a callback starts inherits this, unless it is started with another
 * mask (posix_spawnattr_setsigmask). The library handles no signal unless mcpl_server_stop_on_signals is called.
 *
 * Memory. The library takes its memory from malloc, so that a program which replaces malloc replaces it here. If an allocation
 * fails, a message goes to stderr and the process ends with SIGABRT; no function reports it. What peers send is limited in bytes
 * long before that.
 *
 * Stacks. Callbacks run on stacks of 2 MiB (mcpl_set_worker_stack_size), or on that of the thread that dispatches the loop. A
 * callback that needs more ends the process with SIGSEGV.
 *
 * Unloading. The library may be unloaded (dlclose) when all servers, clients and loops are freed: its threads have ended then.
 * An error of mcpl_last_error must not be used afterwards.
 *
 * Exit. Objects may be closed and freed at any time, also by atexit functions and by destructors of static and thread-local
 * objects. If a callback calls exit, its own server or client is closed in the background (see mcpl_server_free), and other
 * callbacks may still run while static objects are destroyed: stop the server and return from main instead.
 */

#ifndef MCPLINE_H
#define MCPLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpline/features.h"

/** Version of this header; `mcpl_version` returns that of the library. */
#define MCPL_VERSION_MAJOR 0
/** Minor version of this header. */
#define MCPL_VERSION_MINOR 1
/** Patch version of this header. */
#define MCPL_VERSION_PATCH 0
/** Version of this header as a number for comparisons: 10,203 for 1.2.3. */
#define MCPL_VERSION_NUMBER (MCPL_VERSION_MAJOR * 10000 + MCPL_VERSION_MINOR * 100 + MCPL_VERSION_PATCH)
/** Version of this header as text. */
#define MCPL_VERSION_STRING "0.1.0"

/** Marks the functions that the library exports. Define it before including this header to replace it. */
#ifndef MCPL_API
#if defined(_WIN32) && !defined(MCPL_STATIC)
#define MCPL_API __declspec(dllimport)
#elif defined(__GNUC__)
#define MCPL_API __attribute__((visibility("default")))
#else
#define MCPL_API
#endif
#endif

/** Marks functions whose result must be used: it is an object or a text to release. */
#ifndef MCPL_NODISCARD
#if defined(__GNUC__)
#define MCPL_NODISCARD __attribute__((warn_unused_result))
#else
#define MCPL_NODISCARD
#endif
#endif

/** Marks functions that a later version will not have; `text` names what replaces them. No function is deprecated yet. */
#ifndef MCPL_DEPRECATED
#if defined(__GNUC__)
#define MCPL_DEPRECATED(text) __attribute__((deprecated(text)))
#elif defined(_MSC_VER)
#define MCPL_DEPRECATED(text) __declspec(deprecated(text))
#else
#define MCPL_DEPRECATED(text)
#endif
#endif

/** \cond */
/* Checks that enums have 32 bits also where they cannot be declared so: the library would misread those of a compiler
 * with other sizes (`-fshort-enums`). */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define MCPL_ENUM_SIZE_CHECKED(type)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MCPL_ENUM_SIZE_CHECKED(type) _Static_assert(sizeof(type) == 4, #type " must have 32 bits");
#else
#define MCPL_ENUM_SIZE_CHECKED(type) typedef char type##_must_have_32_bits[sizeof(type) == 4 ? 1 : -1];
#endif
/** \endcond */

/** Length of a string that ends with a zero byte: the function determines it. */
#define MCPL_AUTO_LENGTH SIZE_MAX

/** Initial value of handler options: `mcpl_handler_options options = MCPL_HANDLER_OPTIONS_INIT;`. */
#define MCPL_HANDLER_OPTIONS_INIT {sizeof(mcpl_handler_options), 0, 0, 0, NULL, NULL, NULL, 0, 0}
/** Initial value of request options. */
#define MCPL_REQUEST_OPTIONS_INIT {sizeof(mcpl_request_options), 0, 0, NULL, NULL, NULL}
/** Initial value of the functions of a channel. */
#define MCPL_CHANNEL_FUNCTIONS_INIT {sizeof(mcpl_channel_functions), NULL, NULL, NULL, NULL}
/** Initial value of the functions that share state with other servers. */
#define MCPL_SHARING_INIT \
    {sizeof(mcpl_sharing), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}


/**
 * Runs the handler on the I/O thread, without waking a worker thread.
 *
 * Only for handlers that never wait: no other message is read or written meanwhile. `mcpl_call_request_input_wait` returns
 * `MCPL_WOULD_DEADLOCK` there. An HTTP server with the option `io_threads` may run it on several threads at the same time.
 */
#define MCPL_HANDLER_INLINE 1

/**
 * Never runs the handler twice for one request: a retry (2026-07-28) that reaches another process fails instead. Tools
 * and custom requests only.
 */
#define MCPL_HANDLER_RUN_ONCE 2

/**
 * Shared caches may store what the handler of a resource returns, for `cache_ttl_ms`: it is the same for all callers.
 * Without effect if the resource has `scopes`.
 */
#define MCPL_HANDLER_SHARED_CACHE 4

/**
 * `cache_ttl_ms` is set, also if it is 0: clients may not cache what the handler of a resource returns.
 */
#define MCPL_HANDLER_CACHE 8

/**
 * Result of a function. Every status but `MCPL_OK` is an error; `mcpl_last_error` returns its details.
 *
 * The statuses up to 100 exist in every language; `docs/errors.md` describes each of them.
 */
enum mcpl_status
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
  : int32_t
#endif
{
    /**
     * Success.
     */
    MCPL_OK = 0,
    /**
     * The peer returned a JSON-RPC error: see `mcpl_error_rpc_code`.
     */
    MCPL_RPC_ERROR = 1,
    /**
     * No response arrived in time. The request was cancelled; whether the peer performed it is unknown.
     */
    MCPL_REQUEST_TIMED_OUT = 2,
    /**
     * The request was cancelled by its sender.
     */
    MCPL_REQUEST_CANCELLED = 3,
    /**
     * The server responded with an HTTP status instead of a JSON-RPC message.
     */
    MCPL_HTTP_ERROR = 4,
    /**
     * The server could not be reached: no connection was made, or its process did not start. Nothing was sent.
     */
    MCPL_SERVER_UNREACHABLE = 5,
    /**
     * The server was reached, but the handshake (`server/discover` or `initialize`) failed: it was refused, or client
     * and server have no protocol revision in common.
     */
    MCPL_HANDSHAKE_FAILED = 6,
    /**
     * The server was reached, but did not respond to `initialize` or `server/discover` in time.
     */
    MCPL_HANDSHAKE_TIMED_OUT = 7,
    /**
     * The connection ended before the response arrived. Whether the peer performed the request is unknown.
     */
    MCPL_CONNECTION_LOST = 8,
    /**
     * The server no longer knows the session, or the cursor of a list belongs to an earlier session.
     */
    MCPL_SESSION_EXPIRED = 9,
    /**
     * The server's process exited.
     */
    MCPL_SERVER_EXITED = 10,
    /**
     * The server requires authorization, and no access token that it accepts could be obtained.
     */
    MCPL_AUTHORIZATION_FAILED = 11,
    /**
     * A response violates the protocol or a schema.
     */
    MCPL_INVALID_RESPONSE = 12,
    /**
     * An input request was answered with an error, or refused by a middleware: see `mcpl_error_rpc_code`.
     */
    MCPL_INPUT_REQUEST_FAILED = 13,
    /**
     * The host's callback refused the tool call. Nothing was sent.
     */
    MCPL_TOOL_CALL_REFUSED = 14,
    /**
     * The peer or the protocol revision does not support the operation. Nothing was sent.
     */
    MCPL_NOT_SUPPORTED = 15,
    /**
     * A limit of this library was reached.
     */
    MCPL_LIMIT_EXCEEDED = 16,
    /**
     * The client, the server or the connection was closed by this program.
     */
    MCPL_CLOSED = 17,
    /**
     * The library was used incorrectly: an argument is `NULL`, not UTF-8 or not JSON, a name is taken, a call is out of
     * order.
     */
    MCPL_USAGE_ERROR = 18,
    /**
     * The operating system reported an error of a socket, a pipe or a process.
     */
    MCPL_TRANSPORT_ERROR = 19,
    /**
     * A bug in mcpline.
     */
    MCPL_INTERNAL_ERROR = 20,
    /**
     * C only: the call, request or object behind the handle has ended, or was freed.
     */
    MCPL_STALE_HANDLE = 101,
    /**
     * C only: the function would wait on a thread on which waiting is a deadlock. Nothing was done.
     */
    MCPL_WOULD_DEADLOCK = 102,
    /**
     * C only: the maximum time to wait is over. The operation continues.
     */
    MCPL_WAIT_TIMED_OUT = 103,
    /**
     * C only: there is nothing of this name.
     */
    MCPL_NOT_FOUND = 104,
    /**
     * C only: this process was forked while the library was running. Nothing was done.
     */
    MCPL_FORKED = 105,
    /**
     * C only: the receiver did not take the message, because it cannot take more now. The message is delivered again later:
     *
     * - From `mcpl_channel_receive`: keep the message and stop reading from the transport, so that the peer has to wait as
     *   well. When `ready` of the channel's functions is called, deliver the same message first, then read on. A channel
     *   without `ready` tries again after a while.
     * - Returned by your own `send` of a channel: keep nothing, because the library keeps the message. Call
     *   `mcpl_channel_writable` once the transport takes messages again; `send` then gets the message once more.
     */
    MCPL_BUSY = 106,
};
#ifndef __cplusplus
/** See the enum. */
typedef enum mcpl_status mcpl_status;
#endif
MCPL_ENUM_SIZE_CHECKED(mcpl_status)

/**
 * Severity of a log message, in ascending order (RFC 5424).
 */
enum mcpl_log_level
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
  : int32_t
#endif
{
    /**
     * Detailed information for debugging.
     */
    MCPL_LOG_DEBUG = 0,
    /**
     * Normal operation.
     */
    MCPL_LOG_INFO = 1,
    /**
     * Normal but significant.
     */
    MCPL_LOG_NOTICE = 2,
    /**
     * A possible problem.
     */
    MCPL_LOG_WARNING = 3,
    /**
     * An operation failed.
     */
    MCPL_LOG_ERROR = 4,
    /**
     * A component failed.
     */
    MCPL_LOG_CRITICAL = 5,
    /**
     * Immediate action is required.
     */
    MCPL_LOG_ALERT = 6,
    /**
     * The system is unusable.
     */
    MCPL_LOG_EMERGENCY = 7,
};
#ifndef __cplusplus
/** See the enum. */
typedef enum mcpl_log_level mcpl_log_level;
#endif
MCPL_ENUM_SIZE_CHECKED(mcpl_log_level)

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Change of a client's connection. There is none before the first connection: the function that connects returns its
 * error.
 */
enum mcpl_connection_event
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
  : int32_t
#endif
{
    /**
     * The client has connected for the first time.
     */
    MCPL_CONNECTION_EVENT_CONNECTED = 0,
    /**
     * The connection or its session was lost, or could not be opened again. The next request opens a new one; a client
     * that listens for changes makes one attempt by itself.
     */
    MCPL_CONNECTION_EVENT_LOST = 1,
    /**
     * The client opens a new connection, possibly after a pause (`reconnect_delay`).
     */
    MCPL_CONNECTION_EVENT_RETRYING = 2,
    /**
     * A new connection has taken the place of the lost one.
     */
    MCPL_CONNECTION_EVENT_RESTORED = 3,
    /**
     * The client does not connect again for now: the last attempt that `reconnect_attempts` allows has failed. Requests
     * fail with its error; after 30 seconds, a request makes another attempt, unless none are allowed.
     */
    MCPL_CONNECTION_EVENT_GIVEN_UP = 4,
    /**
     * The client was closed. No event follows.
     */
    MCPL_CONNECTION_EVENT_CLOSED = 5,
};
#ifndef __cplusplus
/** See the enum. */
typedef enum mcpl_connection_event mcpl_connection_event;
#endif
MCPL_ENUM_SIZE_CHECKED(mcpl_connection_event)
#endif

/**
 * Types of JSON values.
 */
enum mcpl_json_kind
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
  : int32_t
#endif
{
    /**
     * `null`
     */
    MCPL_JSON_NULL = 0,
    /**
     * `true` or `false`
     */
    MCPL_JSON_BOOL = 1,
    /**
     * A number.
     */
    MCPL_JSON_NUMBER = 2,
    /**
     * A string.
     */
    MCPL_JSON_STRING = 3,
    /**
     * An array.
     */
    MCPL_JSON_ARRAY = 4,
    /**
     * An object.
     */
    MCPL_JSON_OBJECT = 5,
};
#ifndef __cplusplus
/** See the enum. */
typedef enum mcpl_json_kind mcpl_json_kind;
#endif
MCPL_ENUM_SIZE_CHECKED(mcpl_json_kind)

/**
 * Input requests that a server can send to its client.
 */
enum mcpl_input_request_method
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
  : int32_t
#endif
{
    /**
     * Asks the user for input, with a form or a URL: `elicitation/create` (`client/elicitation`).
     */
    MCPL_INPUT_REQUEST_METHOD_ELICIT = 0,
    /**
     * Asks the client's model for a completion: `sampling/createMessage` (`client/sampling`).
     *
     * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
     */
    MCPL_INPUT_REQUEST_METHOD_SAMPLE = 1,
    /**
     * Asks for the client's root directories: `roots/list` (`client/roots`).
     *
     * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
     */
    MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS = 2,
};
#ifndef __cplusplus
/** See the enum. */
typedef enum mcpl_input_request_method mcpl_input_request_method;
#endif
MCPL_ENUM_SIZE_CHECKED(mcpl_input_request_method)

#if defined(MCPLINE_HAS_HTTP)
/**
 * Passes messages of a bus to a server.
 *
 * The handle is valid on any thread from `subscribe` of `mcpl_sharing` until `unsubscribe` is called with it, or until
 * `subscribe` has failed and is called again; from then on `mcpl_bus_receive` returns `MCPL_STALE_HANDLE`. There is
 * nothing to release.
 */
typedef struct mcpl_bus_receiver mcpl_bus_receiver;
#endif

/**
 * A call of a handler: one request or notification that the handler has to end.
 *
 * The handle is valid on any thread until the call ends; from then on functions return `MCPL_STALE_HANDLE`. There is
 * nothing to release. A cancelled call stays open until the handler ends it.
 */
typedef struct mcpl_call mcpl_call;

/**
 * A connection over a transport that the program provides: it carries JSON-RPC messages one at a time.
 *
 * The handle is valid on any thread until the channel is closed; from then on functions return `MCPL_STALE_HANDLE`.
 * There is nothing to release.
 */
typedef struct mcpl_channel mcpl_channel;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * A client: a connection to one server, which reconnects if it is lost.
 *
 * Create it with `mcpl_client_new`, configure it with the functions that say "before connecting", connect it with
 * `mcpl_client_open`, `mcpl_client_connect` or `mcpl_client_spawn`, end it with `mcpl_client_close` and release it with
 * `mcpl_client_free`.
 *
 * The handle may be used from any thread at any time: after it is released, functions return `MCPL_STALE_HANDLE`.
 * Its callbacks run on worker threads, or on the thread that dispatches the loop that it uses
 * (`mcpl_client_use_loop`).
 */
typedef struct mcpl_client mcpl_client;
#endif

/**
 * Details of a failure. Returned by `mcpl_last_error` and passed to callbacks; the library owns it.
 */
typedef struct mcpl_error mcpl_error;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * An input request that a handler of this program answers.
 *
 * The handle may be used from any thread at any time: once the request is answered, refused or cancelled, functions
 * return `MCPL_STALE_HANDLE`. There is nothing to release. Open requests are cancelled when the client or server closes.
 */
typedef struct mcpl_input_request mcpl_input_request;
#endif

/**
 * A JSON writer, for programs without a JSON library.
 *
 * Created by `mcpl_json_new`, released by `mcpl_json_free`. Unlike the handles of this library it is a real pointer:
 * using it after its release is undefined behaviour. Use it on one thread at a time.
 *
 * A writer produces one value, usually an object:
 *
 * ```c
 * mcpl_json_begin_object(json);
 * mcpl_json_name(json, "sum");
 * mcpl_json_put_int64(json, 5);
 * mcpl_json_end_object(json);
 * mcpl_json_text(json, &text, &length);
 * ```
 *
 * The functions that write return no status. The writer keeps the first error and ignores everything after it;
 * `mcpl_json_text` returns the error.
 */
typedef struct mcpl_json mcpl_json;

/**
 * A queue of callbacks for programs with an event loop: callbacks run on the thread that dispatches the queue.
 *
 * Servers and clients use it after `mcpl_server_use_loop` or `mcpl_client_use_loop`. All their callbacks then run
 * within `mcpl_loop_dispatch`, and within waiting functions that are called on the dispatching thread.
 */
typedef struct mcpl_loop mcpl_loop;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * A request that was started by a function `..._async` and has not ended.
 *
 * The handle may be used from any thread at any time: once the request has ended, functions return
 * `MCPL_STALE_HANDLE`. There is nothing to release.
 */
typedef struct mcpl_request mcpl_request;
#endif

/**
 * A server: tools, resources, prompts and completions with handlers, served over any number of transports.
 *
 * The handle is valid on any thread until `mcpl_server_free`; from then on functions return `MCPL_STALE_HANDLE`.
 */
typedef struct mcpl_server mcpl_server;

/**
 * Called when the request of a call is cancelled. The handler must still end the call.
 */
typedef void (*mcpl_cancelled)(mcpl_call *call, void *user);

/**
 * Releases the `user` pointer of a callback.
 *
 * Called exactly once, when no callback that receives the pointer is running or will run again, also if the function
 * that was to register the callback fails. It runs where callbacks run, or on the thread of the function that ended
 * the registration.
 *
 * It may call every function. As within a callback, those that wait for the end of the same server or client return
 * `MCPL_WOULD_DEADLOCK`, and `mcpl_server_free` and `mcpl_client_free` close it in the background.
 */
typedef void (*mcpl_finalizer)(void *user);

/**
 * Callbacks of a channel. They run where callbacks run, one at a time and in order.
 *
 * Begin with `MCPL_CHANNEL_FUNCTIONS_INIT`, then set the functions.
 *
 * Both directions have backpressure. While `send` returns `MCPL_BUSY`, messages to the peer wait; while
 * `mcpl_channel_receive` returns it, messages from the peer wait. When more than 32 MiB wait for the peer, the library
 * takes no more messages from it, so that a peer which only sends does not fill the memory.
 */
typedef struct {
    /**
     * `sizeof(mcpl_channel_functions)`.
     */
    size_t size;
    /**
     * Opens a client's channel. Call `mcpl_channel_opened` when it is open or has failed, before or after the callback
     * returns.
     *
     * `NULL` if the channel is open from the start. Called again with another handle when the client reconnects.
     * Servers do not call it.
     */
    void (*open)(mcpl_channel *channel, void *user);
    /**
     * Sends one message to the peer. Required.
     *
     * `message` has `length` bytes and no line break; a zero byte follows. Valid until the callback returns.
     *
     * Returns `MCPL_OK` if the transport has taken the message. If it cannot take it now, returns `MCPL_BUSY` at once
     * instead of waiting, and calls `mcpl_channel_writable` when it can: then the same message is passed again, perhaps
     * at another address. Any other status is a failure, as if the callback called `mcpl_channel_hang_up` with its name.
     */
    mcpl_status (*send)(mcpl_channel *channel, const char *message, size_t length, void *user);
    /**
     * Called once after `mcpl_channel_receive` has returned `MCPL_BUSY`, when it takes messages again. May be `NULL`.
     */
    void (*ready)(mcpl_channel *channel, void *user);
    /**
     * Closes the channel. No callback of this channel is called afterwards. May be `NULL`.
     */
    void (*close)(mcpl_channel *channel, void *user);
} mcpl_channel_functions;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives the progress of a request (`basic/utilities/progress`). Runs where callbacks run; for one request one at a time,
 * in order, and never after the request has ended.
 *
 * - `request`: the request; `NULL` if its function waits for the result.
 * - `progress`: the current progress, which increases.
 * - `total`: the progress at the end; `NAN` if unknown.
 * - `message`: a description, or `NULL`. Valid until the callback returns.
 * - `user`: the pointer in the options.
 */
typedef void (*mcpl_progress)(mcpl_request *request,
                              double progress,
                              double total,
                              const char *message,
                              void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Options of one request.
 *
 * Begin with `MCPL_REQUEST_OPTIONS_INIT`, then set what you need. The options and what they point to are copied before the
 * function that takes them returns.
 */
typedef struct {
    /**
     * `sizeof(mcpl_request_options)`.
     */
    size_t size;
    /**
     * How long to wait without progress, in milliseconds. 0: the client's `timeout` (60 s by default); negative: no limit.
     */
    int64_t timeout_ms;
    /**
     * How long to wait in total, in milliseconds. 0: the client's `total_timeout` (an hour by default); negative: no
     * limit.
     */
    int64_t total_timeout_ms;
    /**
     * Further options: a JSON object that ends with a zero byte, or `NULL`. Members, all optional:
     *
     * - `meta`: an object whose members are added to the request's `_meta`.
     * - `log_level`: the minimum level of log messages during the request (2026-07-28): `"debug"` ... `"emergency"`.
     * - `reissue`: whether to send the request again, at most twice, if the connection is lost before the response:
     *   `"if-safe"` (the default: requests that only read, and, if `trust_tool_annotations` is on, calls of
     *   read-only and idempotent tools), `"always"` or `"never"`.
     * - `fresh`: `true` to bypass the cache.
     * - `manual_results`: `true` to return results with input requests instead of calling the handlers (2026-07-28).
     * - `timeout`, `total_timeout`: like the members above, in seconds.
     */
    const char *json;
    /**
     * Called with progress. If it is `NULL`, the server does not report progress.
     */
    mcpl_progress progress;
    /**
     * Passed to `progress`. Must be valid until the waiting function returns or the request's `mcpl_result_callback` is called.
     */
    void *user;
} mcpl_request_options;
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives the result of a request or its error. Called exactly once, where callbacks run.
 *
 * - `request`: the request, which has ended.
 * - `error`: `NULL` on success, else the error: `MCPL_REQUEST_CANCELLED` after `mcpl_request_cancel`, `MCPL_CLOSED` if the
 *   client was closed. Valid until the callback returns.
 * - `result`, `length`: the result as JSON and its length in bytes; a zero byte follows. `""` for functions without a
 *   result; `NULL` and 0 on failure. Valid until the callback returns.
 * - `user`: the pointer that was given to the function that started the request. The library does not use it afterwards.
 *
 * It is called after the last progress callback of the request has returned, and possibly before the function that
 * started the request returns. It is not called if that function failed. `mcpl_client_close` on the request's client
 * returns `MCPL_WOULD_DEADLOCK` within it.
 */
typedef void (*mcpl_result_callback)(mcpl_request *request,
                                     const mcpl_error *error,
                                     const char *result,
                                     size_t length,
                                     void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Handles input requests. Runs where callbacks run, for several requests concurrently.
 *
 * - `request`: answer it with `mcpl_input_request_answer` or `mcpl_input_request_refuse`, from any thread, before or after
 *   the callback returns.
 * - `params`, `length`: the parameters as JSON and their length in bytes; a zero byte follows. `"{}"` if there are none.
 *   Valid until the callback returns.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_input_request_handler)(mcpl_input_request *request,
                                           const char *params,
                                           size_t length,
                                           void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives notifications. Runs where callbacks run, for one notification of a client at a time, in the order of arrival.
 *
 * - `client`: the client that received it.
 * - `method`: such as `"notifications/tools/list_changed"`. Valid until the callback returns.
 * - `params`, `length`: the parameters as JSON and their length in bytes; a zero byte follows. `"{}"` if there are none.
 *   Valid until the callback returns.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_notification_listener)(mcpl_client *client,
                                           const char *method,
                                           const char *params,
                                           size_t length,
                                           void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives log messages (`server/utilities/logging`). Runs where callbacks run, one at a time, in order with the other
 * notifications.
 *
 * - `client`: the client that received it.
 * - `level`: the severity.
 * - `logger`: the name of the logger, or `NULL`. Valid until the callback returns.
 * - `data`, `length`: the logged JSON value and its length in bytes; a zero byte follows. Valid until the callback
 *   returns.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_log_listener)(mcpl_client *client,
                                  mcpl_log_level level,
                                  const char *logger,
                                  const char *data,
                                  size_t length,
                                  void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives changes of the connection. Runs where callbacks run, one at a time, in order. The first is connected, the last
 * closed. After a loss, attempts to connect again follow until one succeeds or the client gives up.
 *
 * Over HTTP a connection is the session of a handshake revision. 2026-07-28 has no sessions, so that a failed request does
 * not lose the connection.
 *
 * - `client`: the client. `mcpl_client_close` within the callback returns `MCPL_WOULD_DEADLOCK`.
 * - `event`: the change.
 * - `error`: why there is no connection, for `MCPL_CONNECTION_EVENT_LOST` and `MCPL_CONNECTION_EVENT_GIVEN_UP`; `NULL` for
 *   other changes. Valid until the callback returns.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_connection_listener)(mcpl_client *client,
                                         mcpl_connection_event event,
                                         const mcpl_error *error,
                                         void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Receives lines that the server process writes to stderr. Runs where callbacks run, one at a time, in order.
 *
 * - `client`: the client of the server process.
 * - `line`, `length`: the line as UTF-8 without its line break, and its length in bytes; a zero byte follows. Valid until
 *   the callback returns.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_stderr_listener)(mcpl_client *client, const char *line, size_t length, void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Called when an input request is cancelled.
 *
 * - `request`: the request, which has ended.
 * - `user`: the pointer that was given with the callback.
 */
typedef void (*mcpl_input_request_cancelled)(mcpl_input_request *request, void *user);
#endif

/**
 * Receives a diagnostic message of the library.
 *
 * - `level`: severity of the message.
 * - `target`: the part of the library that it comes from, `message`: its text. Both are valid until the callback
 *   returns.
 * - `user`: the pointer given with the callback.
 */
typedef void (*mcpl_diagnostics)(mcpl_log_level level, const char *target, const char *message, void *user);

/**
 * Called exactly once with the answer to an input request or a request that was passed on (`mcpl_call_next`), where
 * callbacks run.
 *
 * - `call`: the call that sent the request.
 * - `error`: `NULL` on success, else why there is no answer. Valid until the callback returns.
 * - `result`, `length`: the result as JSON (for an input request `ElicitResult`, `CreateMessageResult` or
 *   `ListRootsResult`) and its length in bytes; a zero byte follows. `NULL` on failure. Valid until the callback returns.
 * - `user`: the pointer given with the callback.
 *
 * A user who declines is a result, not an error.
 */
typedef void (*mcpl_response_callback)(mcpl_call *call,
                                       const mcpl_error *error,
                                       const char *result,
                                       size_t length,
                                       void *user);

/**
 * How the server runs a handler. Begin with `MCPL_HANDLER_OPTIONS_INIT`.
 */
typedef struct {
    /**
     * `sizeof(mcpl_handler_options)`.
     */
    size_t size;
    /**
     * Any of `MCPL_HANDLER_INLINE`, `MCPL_HANDLER_RUN_ONCE`, `MCPL_HANDLER_SHARED_CACHE` and `MCPL_HANDLER_CACHE`, combined
     * with `|`.
     */
    uint32_t flags;
    /**
     * Calls of a tool per second that the whole server accepts. 0: the server's `tool_rate`.
     */
    uint32_t calls_per_second;
    /**
     * Calls that may arrive at once within that rate. 0: as many as `calls_per_second`.
     */
    uint32_t burst;
    /**
     * Scopes that a caller needs, all of them, separated by spaces. `NULL`: none.
     *
     * For tools, resources, templates, prompts and custom methods of servers that authenticate callers. What a caller
     * may not use is missing from lists; using it fails with an error that names the required scopes.
     */
    const char *scopes;
    /**
     * Identifier of the extension that a custom method belongs to. `NULL`: none.
     *
     * The server must declare the extension (`extensions` of `mcpl_server_new_with`). If a client does not declare it,
     * requests fail with -32021 and notifications are dropped with a warning in the diagnostics. Tools, resources,
     * templates and prompts cannot have one.
     */
    const char *extension;
    /**
     * Names of variables of a resource template that may have any value, separated by spaces. `NULL`: none.
     *
     * A URI in which another variable contains a `..` segment, an absolute path or the character NUL is answered with
     * an error, and the handler is not run: joined to a directory, such a value names a file outside of it.
     */
    const char *unchecked_variables;
    /**
     * How long a call of a tool may take, in milliseconds. 0: no limit.
     *
     * When the time is over, the client gets a tool error that says so, and the call is cancelled as if the client had
     * cancelled the request (`mcpl_call_is_cancelled`, `mcpl_call_on_cancel`); completing it has no effect any more. The time
     * includes that in which the call waits for a worker thread, and does not pass while an input request of the call is
     * open (`mcpl_call_request_input`). Only tools have a timeout.
     */
    uint64_t timeout_ms;
    /**
     * How long clients may cache the contents of a resource, in milliseconds (2026-07-28); see
     * `MCPL_HANDLER_SHARED_CACHE`. 0 without `MCPL_HANDLER_CACHE`: the server's `resource_cache`. Resources and resource
     * templates have it.
     */
    uint64_t cache_ttl_ms;
} mcpl_handler_options;

/**
 * Handles one call of a tool, resource, prompt, completion, custom method or event.
 *
 * - `call`: the call. End it exactly once, with `mcpl_call_reply_...` or `mcpl_call_fail...`, from any thread, before
 *   the handler returns, or after it if `mcpl_call_keep` was called.
 * - `arguments`, `length`: a JSON object and its length in bytes; a zero byte follows. Valid until the handler has
 *   returned and the call has ended.
 * - `user`: the pointer given at registration.
 */
typedef void (*mcpl_handler)(mcpl_call *call, const char *arguments, size_t length, void *user);

/**
 * Called when the last transport of a server has ended.
 *
 * - `error`: `NULL` after a normal end, else why it failed. Valid until the callback returns.
 */
typedef void (*mcpl_server_ended)(mcpl_server *server, const mcpl_error *error, void *user);

#if defined(MCPLINE_HAS_HTTP)
/**
 * Bytes and their length. No zero byte needs to follow.
 */
typedef struct {
    /**
     * The bytes. May be `NULL` if there are none.
     */
    const void *data;
    /**
     * Their number.
     */
    size_t length;
} mcpl_bytes;
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * A store of sessions, a log of the events of streams, and a bus: what the processes of a service share, so that a client of
 * the revisions up to 2025-11-25 may reach any of them (docs/deployment.md, "Sessions in a store of your own").
 *
 * Begin with `MCPL_SHARING_INIT`, then set the functions: all of them are required.
 *
 * The functions get opaque bytes under opaque names, which only the library reads. Names end with a zero byte. The arguments
 * of a function are valid until it has returned and its call has ended.
 *
 * Calls. Each function ends its call exactly once, from any thread: with `mcpl_call_reply_session` or `mcpl_call_reply_events`
 * where the function says so, otherwise with `mcpl_call_reply_done`, or with `mcpl_call_fail`. To end it after the function has
 * returned, call `mcpl_call_keep` first. `mcpl_call_on_cancel` reports that the time is over; the call stays open until it is
 * ended. The call belongs to no client: it cannot send anything to one.
 *
 * Threads. The functions run where callbacks run, several at once: at most 16 calls for sessions, 5 that read streams, 8 that
 * write them and 3 of the bus are open. A function that waits for a database occupies a worker thread meanwhile: give the
 * database a timeout.
 *
 * Failures. After a failure, or without an answer in time, a process continues with the sessions that it has; requests of other
 * sessions get status 503. A diagnostic of level `MCPL_LOG_WARNING` has the message. A call that is not ended in time counts for
 * the limits until it is ended.
 *
 * Limits. Calls fail if 1,024 of them, or 32 MiB, wait or run. Above 32 MiB, the oldest events and messages that wait are
 * dropped, and messages that wait for 30 seconds.
 */
typedef struct {
    /**
     * `sizeof(mcpl_sharing)`.
     */
    size_t size;
    /**
     * How long a call may take, in milliseconds. 0: 2,000.
     */
    uint64_t timeout_ms;
    /**
     * Stores a session, unless another process has changed it.
     *
     * Store `session` if the store has `replaces`, `session` itself, or nothing under `id`: it may have lost what it had.
     * Otherwise change nothing, and reply with what is stored (`mcpl_call_reply_session`). Comparing and storing must be one
     * step, for example a transaction. A session that was removed in the last minutes should stay removed: reply as if it was
     * stored.
     *
     * If tokens are bound to keys (DPoP), each proof that was used is saved like a session, once, for some minutes. Its `id`
     * begins with `proof-`.
     *
     * `id` has at most 64 letters, digits, `-` and `_`. `lifetime_ms` is how long to keep the session at least; negative if it
     * does not end. A session in use is saved again before that time is over.
     */
    void (*save)(mcpl_call *call,
                 const char *id,
                 const void *session,
                 size_t session_length,
                 const void *replaces,
                 size_t replaces_length,
                 int64_t lifetime_ms,
                 void *user);
    /**
     * Replies with the session that was saved last (`mcpl_call_reply_session`). If there is none, or its lifetime is over, replies
     * with `mcpl_call_reply_done`.
     */
    void (*load)(mcpl_call *call, const char *id, void *user);
    /**
     * Removes a session, if it is there. Its id is never used again.
     */
    void (*remove)(mcpl_call *call, const char *id, void *user);
    /**
     * Adds events to the end of a stream, which may be new.
     *
     * The calls of `append` and `end` for one stream do not overlap: after a timeout, the next one begins once the previous one
     * has ended. `number` is that of the first event; each of the others has the next one. There are at most 256. If `number`
     * does not follow the last stored event, events were lost: what is stored before is of no use, and the stream begins anew.
     *
     * `stream` is the id of its session, a slash and a name within the session: at most 128 characters. Once a session is
     * removed or has expired, its streams are not read any more. Limit the size and the lifetime of streams: a server itself
     * keeps the latest 1,024 events or 4 MiB of each.
     */
    void (*append)(mcpl_call *call,
                   const char *stream,
                   uint64_t number,
                   const mcpl_bytes *events,
                   size_t count,
                   void *user);
    /**
     * Stores that no more events of a stream follow. Does nothing if the stream is unknown.
     *
     * `last` is the number of its last event. If the last stored event has another number, events were lost: remove the stream,
     * because a client must not take what is left for the whole stream.
     */
    void (*end)(mcpl_call *call, const char *stream, uint64_t last, void *user);
    /**
     * Replies with the events that follow the one with the number `after` (`mcpl_call_reply_events`): in order and without gaps,
     * beginning with `after + 1`. After the last event there are none. If the stream is unknown, some of the events are no longer
     * kept, or `after` is higher than the number of the last event, replies with `mcpl_call_reply_done`.
     */
    void (*read)(mcpl_call *call, const char *stream, uint64_t after, void *user);
    /**
     * Sends a message to every subscriber. Messages must arrive in their order. It does not matter whether the server that
     * publishes a message gets it too.
     *
     * Calls do not overlap, as those of `append`. A message has usually some 100 bytes, and up to 16 MiB.
     */
    void (*publish)(mcpl_call *call, const void *message, size_t length, void *user);
    /**
     * Subscribes: from now on pass each message to `mcpl_bus_receive`. End the call once messages arrive.
     *
     * Called when the server begins to be served. If it fails, it is called again some seconds later, with another receiver.
     */
    void (*subscribe)(mcpl_call *call, mcpl_bus_receiver *receiver, void *user);
    /**
     * Ends the subscription of a receiver, whose handle is no longer valid.
     *
     * Called when the server is no longer served, unless `subscribe` has failed: after that function has returned, but perhaps
     * before its call has ended. Then end both calls.
     */
    void (*unsubscribe)(mcpl_call *call, mcpl_bus_receiver *receiver, void *user);
} mcpl_sharing;
#endif

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * \defgroup mcpl_library 1. Library
 * @{
 */

/**
 * Sets the callback for diagnostics: rejected messages, failed handlers, broken transports. There is none by default.
 * For log messages to clients see `mcpl_call_log`.
 *
 * \param least an `mcpl_log_level`; messages below it are not delivered. The library's own messages go up to
 *   `MCPL_LOG_ERROR`.
 * \param write the callback, or `NULL` for none. It replaces the current one.
 * \param user,finalize passed to the callback, and its finalizer.
 *
 * Some diagnostics of level `MCPL_LOG_INFO` have a target of their own:
 *
 * - `mcpline::requests`: a request to a server has ended. With method, name, outcome, duration, client, session, trace id, and
 *   the issuer, subject and client id of the authenticated caller.
 * - `mcpline::requests::client`: a request of a client has ended. With direction (`sent`, or `received` for those that the
 *   client answers), method, name, outcome, duration, session, trace id, and the name and address of the server.
 * - `mcpline::traffic`: a message from a client or to it, in debug mode (the option `debug` of `mcpl_server_new_with`).
 *
 * The callback runs on any thread, also inside functions of this library, and on several threads at the same time. It must
 * not call functions of this library. The thread that reads and writes messages waits for it.
 *
 * Messages of `mcpline::traffic` are different:
 *
 * - One thread of their own delivers them, one at a time. Other threads do not wait for the callback.
 * - Up to 1,024 of them wait for the callback. Further ones are left out, and a diagnostic says how many.
 * - If no callback receives this level, they go to stderr.
 * - When the callback is replaced, those that wait are delivered to the current one first, for at most one second.
 *
 * \return `MCPL_USAGE_ERROR` if `least` is not a level. Any thread.
 */
MCPL_API
mcpl_status mcpl_set_diagnostics(mcpl_log_level least,
                                 mcpl_diagnostics write,
                                 void *user,
                                 mcpl_finalizer finalize);

/**
 * Sets the number of worker threads that run callbacks. Call it before the first server, client or loop is created.
 *
 * \param most the number of threads; 0 for the default: one per processor, at least four, and up to 32 more for clients
 *   none of whose callbacks runs while those of others occupy all threads.
 *
 * Workers that wait in a function of this library, such as `mcpl_call_request_input_wait`, do not count: others replace them. A
 * worker that finishes waiting continues alongside its replacement, so more callbacks than this can run at once for a
 * while. Callbacks therefore need locks for shared data even with one thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_set_worker_threads(uint32_t most);

/**
 * Sets the size of the stack of each worker thread. Call it before the first server, client or loop is created.
 *
 * \param bytes the size, at least 262,144; 0 for the default, 2 MiB.
 *
 * Handlers and other callbacks run on this stack, unless they run on a loop. One that needs more than the stack ends the
 * process with SIGSEGV, because the memory below it cannot be accessed; the thread is called `mcpline-worker`.
 *
 * \return `MCPL_USAGE_ERROR` if the size is too small.
 */
MCPL_API
mcpl_status mcpl_set_worker_stack_size(size_t bytes);

/**
 * Returns the version of the library, such as `"1.2.3"`. The string is static. Any thread.
 *
 * \return the version of the library, such as `"1.2.3"`.
 */
MCPL_API const char *mcpl_version(void);

/**
 * Begins to export the spans of requests to a collector of OpenTelemetry, with OTLP over HTTP, in the background.
 *
 * For programs that do not use OpenTelemetry themselves: the spans of servers and clients, by its semantic conventions for MCP. The
 * span of a call is the parent of those of requests that its handler sends on its thread, and `mcpl_call_trace_context` returns it
 * for others. Only in a library that was built with the feature `otlp`.
 *
 * \param options a JSON object, or `NULL` for none. What is left out is read from the environment variables of OpenTelemetry, as are
 *   `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and `OTEL_BSP_...`:
 *   - `endpoint`: URL of the collector (`OTEL_EXPORTER_OTLP_ENDPOINT`, else `"http://localhost:4318"`).
 *   - `headers`: an array of pairs of strings, such as a key for the collector (`OTEL_EXPORTER_OTLP_HEADERS`).
 *   - `service_name`: name of the program in traces (`OTEL_SERVICE_NAME`).
 *
 * Call it once, before `mcpl_set_diagnostics` and before the first server or client is created. End it with
 * `mcpl_stop_exporting_spans`. Returns `MCPL_USAGE_ERROR` if an option is invalid, it was called before, or the library was built
 * without the feature.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_export_spans(const char *options);

/**
 * Sends the spans that have ended, and ends the exporter. Without an exporter it does nothing.
 *
 * Call it at the end of the program, after servers and clients are freed. Waits for the collector for at most five seconds; if it has
 * not answered by then, the exporter's thread ends when its request does, at most ten seconds later.
 * \return `MCPL_TRANSPORT_ERROR` if the collector did not take them, and `MCPL_WOULD_DEADLOCK` within a callback. Any other thread.
 */
MCPL_API
mcpl_status mcpl_stop_exporting_spans(void);

/**
 * Releases a string that a function of this library returned. `NULL` is ignored. Any thread.
 *
 * \param text the text; `NULL` is ignored.
 */
MCPL_API void mcpl_string_free(char *text);

/** @} */

/**
 * \defgroup mcpl_errors 2. Errors
 * @{
 */

/**
 * Returns the name of a status, such as `"MCPL_REQUEST_TIMED_OUT"`, or `"unknown"`. The string is static. Any thread.
 *
 * \param status the status.
 *
 * \return the name of a status, such as `"MCPL_REQUEST_TIMED_OUT"`, or `"unknown"`.
 */
MCPL_API
const char *mcpl_status_name(mcpl_status status);

/**
 * Returns the details of the last failure on this thread. Its status is `MCPL_OK` if there was none.
 *
 * Valid until the next failure on this thread or the end of the thread. Successful functions do not change it.
 *
 * \return
 * `NULL` only in code that runs while a thread ends (destructors of thread-specific data and, on the main thread,
 * `atexit` functions and destructors of static C++ objects); the functions for errors treat it like an error with
 * status `MCPL_USAGE_ERROR`.
 */
MCPL_API
const mcpl_error *mcpl_last_error(void);

/**
 * Returns the status of an error, or `MCPL_USAGE_ERROR` for `NULL`.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return the status of an error, or `MCPL_USAGE_ERROR` for `NULL`.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API mcpl_status mcpl_error_status(const mcpl_error *error);

/**
 * Returns a description of the error for people, or `""` for `NULL`. Valid as long as the error.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return a description of the error for people, or `""` for `NULL`.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API const char *mcpl_error_message(const mcpl_error *error);

/**
 * Returns the code of the peer's JSON-RPC error, such as -32602, or 0 if there is none.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return the code of the peer's JSON-RPC error, such as -32602, or 0 if there is none.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API int64_t mcpl_error_rpc_code(const mcpl_error *error);

/**
 * Returns `true` if the peer certainly did not perform the request, so that it is safe to send it again. `false` for
 * `NULL`.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return `true` if the peer certainly did not perform the request, so that it is safe to send it again.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API
bool mcpl_error_is_retry_safe(const mcpl_error *error);

/**
 * Returns whether it is unknown if the peer performed the request. `false` for `NULL`.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return whether it is unknown if the peer performed the request.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API bool mcpl_error_is_outcome_unknown(const mcpl_error *error);

/**
 * Returns the method or action that failed, such as `"tools/call"` or `"connect"`, or `""` if unknown and for `NULL`.
 * Valid as long as the error.
 *
 * \param error the error; `NULL` is allowed.
 *
 * \return the method or action that failed, such as `"tools/call"` or `"connect"`, or `""` if unknown and for `NULL`.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API
const char *mcpl_error_operation(const mcpl_error *error);

/**
 * Returns all details of an error as a JSON object, or `"{}"` for `NULL`. Valid as long as the error.
 *
 * \param error the error; `NULL` is allowed.
 *
 * Members of the errors of requests:
 *
 * - `retry_safe`: see `mcpl_error_is_retry_safe`.
 * - `outcome_unknown`: see `mcpl_error_is_outcome_unknown`.
 * - `operation`: see `mcpl_error_operation`. Missing if unknown.
 * - `source`: the cause: a JSON-RPC error as an object with `code`, `message` and `data`, or a string. Missing if
 *   there is none.
 *
 * Members by status:
 *
 * - `MCPL_HTTP_ERROR`: `status`, `body` and `challenge`.
 * - `MCPL_SERVER_EXITED`: `exit`, and `stderr`, the last lines of standard error.
 * - Timeouts: `waited`, in seconds, and `in_all`: whether the total timeout elapsed.
 * - `MCPL_AUTHORIZATION_FAILED`: `reason`, a stable name.
 * - `MCPL_NOT_SUPPORTED`: `required`, the capabilities that the client lacks.
 *
 * \return all details of an error as a JSON object, or `"{}"` for `NULL`.
 *
 * Any thread, as long as the error is valid.
 */
MCPL_API
const char *mcpl_error_details(const mcpl_error *error);

/** @} */

/**
 * \defgroup mcpl_loops 3. Event loops
 * @{
 */

/**
 * Creates a loop. Release it with `mcpl_loop_free`.
 *
 * \return `NULL` if the system is out of file descriptors or threads; see `mcpl_last_error`. Any thread.
 */
MCPL_API MCPL_NODISCARD mcpl_loop *mcpl_loop_new(void);

/**
 * Returns a file descriptor that is readable while callbacks are queued, for `poll`, `select`, `epoll` and similar
 * functions. On Windows it is a socket, for `WSAPoll`, `select`, or an event that `WSAEventSelect` sets.
 *
 * \param loop the loop.
 *
 * Only poll it; do not read or close it. It is valid as long as the loop.
 *
 * \return -1 if the loop is `NULL` or was freed. Any thread.
 */
MCPL_API
int mcpl_loop_fd(mcpl_loop *loop);

/**
 * Runs queued callbacks on this thread, without waiting for more.
 *
 * \param loop the loop.
 * \param most how many callbacks to run at most; 0 for all that are queued now.
 * \param count set to the number of callbacks that ran. May be `NULL`.
 *
 * Only one thread at a time may dispatch a loop. A callback may dispatch it as well, for example while it shows a dialog
 * that has an event loop of its own: other callbacks run then, except those that must not overtake the one that runs, such
 * as the next notification of the same client.
 *
 * Functions that wait for results return `MCPL_WOULD_DEADLOCK` within a callback, and this one does on the I/O thread.
 * \return `MCPL_USAGE_ERROR` if another thread is dispatching.
 */
MCPL_API
mcpl_status mcpl_loop_dispatch(mcpl_loop *loop,
                               uint32_t most,
                               uint32_t *count);

/**
 * Waits until callbacks are queued, for programs that poll nothing else. Then call `mcpl_loop_dispatch`.
 *
 * \param loop the loop.
 * \param timeout_ms how long to wait at most, in milliseconds; negative for no limit.
 *
 * \return `MCPL_WAIT_TIMED_OUT` after that time, and `MCPL_WOULD_DEADLOCK` on the I/O thread.
 */
MCPL_API mcpl_status mcpl_loop_wait(mcpl_loop *loop, int64_t timeout_ms);

/**
 * Releases a loop. `NULL` is ignored.
 *
 * \param loop the loop.
 *
 * Call it on the thread that dispatches the loop, but not within a callback. Callbacks that are still queued, and
 * those of servers and clients that still use the loop, run on worker threads from then on.
 */
MCPL_API
void mcpl_loop_free(mcpl_loop *loop);

/** @} */

/**
 * \defgroup mcpl_servers 4. Servers
 * @{
 */

/**
 * Creates a server with default options. Release it with `mcpl_server_free`.
 *
 * \param name,version sent to clients; they end with a zero byte.
 *
 * \return `NULL` on failure; see `mcpl_last_error`. Any thread.
 */
MCPL_API MCPL_NODISCARD mcpl_server *mcpl_server_new(const char *name, const char *version);

/**
 * Creates a server with a complete description and options. Release it with `mcpl_server_free`.
 *
 * \param info,info_length an `Implementation` of the specification as JSON (`name`, `version`, and optionally
 *   `title`, `description`, `icons`, `websiteUrl`), and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param options,options_length JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for the defaults.
 *
 * All options are optional. Times are in seconds, sizes in bytes; rates are `[per second, burst]`. Defaults are in
 * parentheses.
 *
 * What the server offers:
 *
 * - `instructions`: how to use the server, for the model.
 * - `declare`: array of `tools`, `resources`, `prompts` and `completions`: features to declare before anything is
 *   registered.
 * - `extensions`, `experimental`: objects that map names to settings. `result_types`: an object that maps types of results to the
 *   extensions that they belong to.
 * - `revisions`: the protocol revisions to serve (all).
 * - `page_size`: entries per page of a list (1,000).
 * - `list_cache`, `resource_cache`: `[milliseconds, public]`: how long clients may cache lists and contents, and
 *   whether shared caches may (0, private; 2026-07-28).
 * - `check_output`: validate results against `outputSchema` (true).
 *
 * Input requests:
 *
 * - `input_request_idle_timeout`: how long one waits without progress from the client (600).
 * - `input_request_timeout`: how long one waits in total (3,600).
 * - `max_input_requests_per_call`: input requests per call on handshake revisions (1,000).
 * - `max_input_rounds`: rounds of input requests per call on 2026-07-28 (16).
 * - `max_state_bytes`, `state_lifetime`, `state_keys`: size (65,536) and lifetime (600) of the `requestState` that a client
 *   carries between rounds, and the secrets that seal it.
 * - `max_suspended_handlers`: handlers that may wait for the next round (10,000). Above it, the oldest handler of the client
 *   that has most is cancelled and runs again when its client retries.
 *
 * Several processes:
 *
 * - `sharing`: what they share sessions, event streams and notifications over, so that a client may reach any of them.
 *   `local`: the processes of one user on one machine; `local://NAME` separates services whose servers have the same name,
 *   and `local:///path` names the directory for it (not on Windows). `valkey://host:6379/0`, or `valkeys://` with TLS: a
 *   Valkey or Redis server; `?key_prefix=NAME` separates services that share it, and `timeout` is that of an operation in
 *   seconds (2). `MCPL_INVALID` unless the library has the feature `local` or `valkey`, which it lacks by default. A thread
 *   of the library does the I/O until the state is no longer used.
 *
 * Limits of the server:
 *
 * - `max_total_client_bytes`: bytes held for all clients together (512 MiB).
 * - `max_calls`: calls in flight in all sessions together (10,000).
 * - `client_share`: largest part that one client may use of these limits, of `max_suspended_handlers`, and over HTTP of
 *   connections and sessions (0.25). A client is an authenticated principal, or else an address. What exceeds a limit is refused
 *   as busy.
 * - `tool_rate`, `completion_rate`: calls of each tool, and completions (no limit).
 * - `shutdown_timeout`: how long calls in flight may continue when the server stops (5).
 * - `startup_message`: whether one diagnostic of level `MCPL_LOG_INFO` (`mcpl_set_diagnostics`) says that a transport is
 *   ready, with name, version, URL, revisions and number of features. By default over HTTP always, and over stdio if
 *   standard input is a terminal.
 * - `debug`: debug mode, for development only (true if the environment variable `MCPLINE_DEBUG` is `1`, otherwise false).
 *   Clients get the texts of internal errors (`mcpl_call_fail_internal`), results are validated even if `check_output` is
 *   false, and each message is a diagnostic of level `MCPL_LOG_INFO` with the target `mcpline::traffic`. A diagnostic of
 *   level `MCPL_LOG_WARNING` says that it is on. What no callback of `mcpl_set_diagnostics` receives goes to stderr.
 * - `metrics`: record metrics, which `mcpl_server_metrics` returns and the HTTP server serves at `metrics_path` (false). Needs a
 *   library with the feature `metrics`.
 * - `traffic_file`: the path of a file that all messages are appended to as JSON lines, without secrets, for development
 *   (docs/traffic-files.md; the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none).
 * - `span_contents`: whether spans of tool calls contain their arguments and results, without obvious secrets (false; spans
 *   need a library that was built with the feature `otlp`).
 *
 * Limits of each session:
 *
 * - `max_requests_in_flight`: requests in flight (1,024). `max_open_input_requests`: open input requests (64).
 *   `max_subscriptions` (1,024).
 * - `max_client_info_bytes`: client information and capabilities (65,536). `max_subscription_bytes`: URIs of
 *   subscriptions together (262,144).
 * - `progress_rate` ([20, 64]), `log_rate` ([50, 128]): progress and log notifications.
 * - `client_log_level`: the least level, such as `"warning"`, of the log messages that a client receives until it sets a level
 *   (revisions up to 2025-11-25; all levels).
 * - `ping_interval`: idle time after which a client is pinged (never). `max_missed_pings`: unanswered pings that end the
 *   session (3).
 * - `max_line_bytes`: size of a message on stdio (16 MiB). `max_batch_messages`: messages in a batch (100). `max_json_depth`:
 *   nesting of JSON (127, the maximum).
 *
 * \return `NULL` on failure; see `mcpl_last_error`. Any thread.
 */
MCPL_API
MCPL_NODISCARD
mcpl_server *mcpl_server_new_with(const char *info,
                                  size_t info_length,
                                  const char *options,
                                  size_t options_length);

/**
 * Sets the title of a server: a name for people. Call it before features are added and the server is served.
 *
 * \param server the server.
 * \param title the title, or `NULL` to remove it. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if the title is not UTF-8 or the server is in use. Any thread.
 */
MCPL_API mcpl_status mcpl_server_set_title(mcpl_server *server, const char *title);

/**
 * Sets the instructions of a server, which tell the model how to use it. Call it before features are added and the server is
 * served. The same as the option `instructions`.
 *
 * \param server the server.
 * \param instructions the text, or `NULL` to remove it. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if the text is not UTF-8 or the server is in use. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_set_instructions(mcpl_server *server,
                                         const char *instructions);

/**
 * Sets how long calls in flight may continue when a server stops. Call it before features are added and the server is served.
 * The same as the option `shutdown_timeout`.
 *
 * \param server the server.
 * \param timeout_ms the time in milliseconds; 0: calls are cancelled at once; negative: no limit.
 *
 * \return `MCPL_USAGE_ERROR` if the server is in use. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_set_shutdown_timeout_ms(mcpl_server *server,
                                                int64_t timeout_ms);

/**
 * Sets how many calls may be in flight in all sessions of a server together; further ones are refused as busy. Call it before
 * features are added and the server is served. The same as the option `max_calls`.
 *
 * \param server the server.
 * \param count the number. 10,000 by default.
 *
 * \return `MCPL_USAGE_ERROR` if the server is in use. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_set_max_calls(mcpl_server *server,
                                      size_t count);

/**
 * Sets how often each tool of a server may be called; further calls are refused as busy. Call it before features are added and
 * the server is served. The same as the option `tool_rate`.
 *
 * \param server the server.
 * \param calls_per_second calls per second that the whole server accepts.
 * \param burst calls that may arrive at once within that rate; 0: as many as `calls_per_second`.
 *
 * \return `MCPL_USAGE_ERROR` if the server is in use. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_set_tool_rate(mcpl_server *server,
                                      uint32_t calls_per_second,
                                      uint32_t burst);

/**
 * Runs all callbacks of the server on the thread that dispatches a loop.
 *
 * \param server the server.
 * \param loop the loop.
 *
 * Call it at most once, before the server is served.
 *
 * \return `MCPL_USAGE_ERROR` if the server uses a loop already.
 */
MCPL_API
mcpl_status mcpl_server_use_loop(mcpl_server *server,
                                 mcpl_loop *loop);

/**
 * Returns a snapshot of what a server holds now. It needs no option and costs requests nothing.
 *
 * \param server the server.
 * \param json,length set to a JSON object and its length in bytes: `uptime` in seconds; the numbers `max_connections`, `max_sessions`,
 *   `streams` and `requests_in_flight`; and `budgets`, an array of objects with `name`, `used` and `limit`. `NULL` and 0 on
 *   failure. Release it with `mcpl_string_free`.
 *
 * Any thread.
 *
 * \return a snapshot of what a server holds now.
 */
MCPL_API
mcpl_status mcpl_server_stats(mcpl_server *server,
                              char **json,
                              size_t *length);

/**
 * Returns the metrics of a server in the text format of Prometheus, version 0.0.4; the media type is
 * `text/plain; version=0.0.4`.
 *
 * \param server the server.
 * \param text,length set to the text and its length in bytes. Empty if the option `metrics` is off. `NULL` and 0 on failure.
 *   Release it with `mcpl_string_free`.
 *
 * Any thread.
 *
 * \return the metrics of a server in the text format of Prometheus, version 0.0.4.
 */
MCPL_API
mcpl_status mcpl_server_metrics(mcpl_server *server,
                                char **text,
                                size_t *length);

/**
 * Closes a server and waits until none of its callbacks runs.
 *
 * \param server the server.
 *
 * Stops all transports, waits up to `shutdown_timeout` for calls in flight, ends the calls that are still open, and runs
 * the finalizers of all callbacks. In debug mode it then waits up to one second until all messages are logged. If another thread
 * starts a transport at the same time, its function either returns `MCPL_OK`, and the transport is stopped, or it returns
 * `MCPL_CLOSED`, and nothing is started.
 *
 * If the server uses a loop, call it on the thread that dispatches the loop, or while that thread continues to
 * dispatch.
 *
 * \return `MCPL_WOULD_DEADLOCK` within one of the server's callbacks or finalizers, on the I/O thread and
 * within `mcpl_loop_dispatch`.
 */
MCPL_API
mcpl_status mcpl_server_close(mcpl_server *server);

/**
 * Closes a server, if it is not closed, and releases it. `NULL` is ignored.
 *
 * \param server the server.
 *
 * Where `mcpl_server_close` would return `MCPL_WOULD_DEADLOCK`, closing continues in the background: no further
 * callback starts, and each finalizer runs after the last callback that uses its pointer.
 *
 * Any thread.
 */
MCPL_API
void mcpl_server_free(mcpl_server *server);

#if defined(MCPLINE_HAS_HTTP)
/**
 * Sets the path of the MCP endpoint of a server's HTTP servers that are started afterwards. The same as their option `path`,
 * which it replaces.
 *
 * \param server the server.
 * \param path such as `"/mcp"`, the default. Copied.
 *
 * An invalid path is reported when an HTTP server is started. Any thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_set_http_path(mcpl_server *server,
                                      const char *path);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Accepts a `Host` header at a server's HTTP servers that are started afterwards. Added to their option `allowed_hosts`.
 *
 * \param server the server.
 * \param host the name without a port, such as `"mcp.example.com"`, or `"*.example.com"` for all names below. Copied.
 *
 * Any thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_add_allowed_host(mcpl_server *server,
                                         const char *host);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Accepts an `Origin` header at a server's HTTP servers that are started afterwards, and lets pages of this origin read the
 * responses (CORS). Added to their option `allowed_origins`.
 *
 * \param server the server.
 * \param origin the origin, such as `"https://app.example.com"`. Copied.
 *
 * An invalid origin is reported when an HTTP server is started. Any thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_add_allowed_origin(mcpl_server *server,
                                           const char *origin);
#endif

/** @} */

/**
 * \defgroup mcpl_serving 5. Serving
 * @{
 */

/**
 * Serves one client over a channel in the background, until either side closes it.
 *
 * \param server the server.
 *
 * Pass messages from the client to `mcpl_channel_receive`, and call `mcpl_channel_hang_up` when the client
 * disconnects.
 *
 * \param functions the functions `send`, which is called for each message to the client, and `close`. The library copies
 *   the structure.
 * \param principal,length the client that the transport has authenticated, and the length in bytes or
 *   `MCPL_AUTO_LENGTH`: a JSON object with any of `issuer`, `subject`, `client_id`, `audience` (array), `scopes` (array),
 *   `expires_at` (seconds since 1970) and `claims` (object). May be `NULL`. The principal stays the same while the
 *   channel is open.
 * \param user,finalize passed to the callbacks, and its finalizer, which runs after `close` or if this function
 *   fails.
 *
 * Handlers find the principal as `auth` in `mcpl_call_info`. Required scopes are enforced as over HTTP: features that
 * the principal may not use are missing from lists, and calls of them fail with error -31001. Limits per client apply
 * to all channels of a principal together. If `principal` is `NULL`, the client may use everything; this is right for
 * the parent process.
 *
 * \return `NULL` on failure; see `mcpl_last_error`. Any thread.
 */
MCPL_API
mcpl_channel *mcpl_server_serve_channel(mcpl_server *server,
                                        const mcpl_channel_functions *functions,
                                        const char *principal,
                                        size_t length,
                                        void *user,
                                        mcpl_finalizer finalize);

#if defined(MCPLINE_HAS_STDIO)
/**
 * Serves over the standard input and output of this process, and waits until the client disconnects or
 * `mcpl_server_stop` is called (`basic/transports`, stdio).
 *
 * \param server the server.
 *
 * Meanwhile, reads from the process's own standard input return end of file, and its standard output goes to standard
 * error, so that printed text does not mix with messages. SIGINT and SIGTERM end the process and its calls at once;
 * see `mcpl_server_stop_on_signals`. If the server uses a loop and this is the loop's thread, callbacks are dispatched
 * here. In debug mode it waits at the end, up to one second, until all messages are logged.
 *
 * \return `MCPL_TRANSPORT_ERROR` if the transport failed, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within
 * `mcpl_loop_dispatch`.
 */
MCPL_API
mcpl_status mcpl_server_run_stdio(mcpl_server *server);
#endif

#if defined(MCPLINE_HAS_STDIO)
/**
 * Serves over the standard input and output of this process in the background. Otherwise like `mcpl_server_run_stdio`.
 *
 * \param server the server.
 *
 * Any thread.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_run_stdio` returns.
 */
MCPL_API
mcpl_status mcpl_server_start_stdio(mcpl_server *server);
#endif

/**
 * Stops the server on SIGINT and SIGTERM, as `mcpl_server_stop` does, so that `mcpl_server_run_stdio`,
 * `mcpl_server_run_unix`, `mcpl_server_run_http` and `mcpl_server_wait` return. On Windows it stops on Ctrl-C, Ctrl-Break, and
 * when the console is closed, the user signs out or the system shuts down.
 *
 * \param server the server.
 *
 * For programs that are nothing but a server: from now on these signals no longer end the process, even after the
 * server is freed. In other programs call `mcpl_server_stop` from a thread that waits for signals.
 *
 * \return `MCPL_TRANSPORT_ERROR` if the signal handlers cannot be installed. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_stop_on_signals(mcpl_server *server);

/**
 * Stops all transports of the server, without waiting for their end. The server can be served again.
 *
 * \param server the server.
 *
 * Calls in flight have the server's `shutdown_timeout` to end. Then they are cancelled, and answered with an error that
 * says that the server is shutting down.
 *
 * Any thread, but not from a signal handler: this function takes locks. Use `mcpl_server_stop_on_signals`, or a thread
 * that waits for signals with `sigwait`.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_stop(mcpl_server *server);

/**
 * Waits until all transports of the server have ended.
 *
 * \param server the server.
 * \param timeout_ms how long to wait at most, in milliseconds; negative for no limit.
 *
 * \return `MCPL_WAIT_TIMED_OUT` after that time, `MCPL_TRANSPORT_ERROR` if a transport failed, and
 * `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`.
 */
MCPL_API mcpl_status mcpl_server_wait(mcpl_server *server, int64_t timeout_ms);

/**
 * Sets the callback that is called each time the server's last transport has ended, where callbacks run.
 *
 * \param server the server.
 * \param ended the callback. Replaces an earlier one.
 * \param user,finalize passed to the callback, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if `ended` is `NULL`. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_on_end(mcpl_server *server,
                               mcpl_server_ended ended,
                               void *user,
                               mcpl_finalizer finalize);

#if defined(MCPLINE_HAS_HTTP)
/**
 * Serves all revisions over HTTP, and waits until `mcpl_server_stop` is called (`basic/transports`).
 *
 * \param server the server.
 *
 * Streamable HTTP is served at `/mcp`, HTTP+SSE at `/sse` and `/messages`, checks at `/health` and `/ready`. SIGINT and
 * SIGTERM end the process and its calls at once; see `mcpl_server_stop_on_signals`.
 *
 * \param host name or address to listen on, such as `"127.0.0.1"`; or `"fd://3"` for a listening TCP socket that the process
 *   has inherited, such as the first one from systemd (not on Windows).
 * \param port TCP port; 0 for one that the system chooses. Not used with an inherited socket.
 * \param options JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional; times are
 *   in seconds, sizes in bytes:
 *   - `path` (`"/mcp"`), `sse_paths` (`["/sse", "/messages"]`), `serve_sse` (true), `health_path` (`"/health"`),
 *     `serve_health` (true), `ready_path` (`"/ready"`), `serve_ready` (true), `proxy_prefix`: where the server answers.
 *   - `allowed_hosts`, `allowed_origins`: accepted `Host` and `Origin` headers, besides those of loopback and of the
 *     bound address. Pages of the allowed origins may also read the responses (CORS).
 *   - `max_body_bytes` (16 MiB), `read_timeout` (30), `write_timeout` (30), `max_connections` (10,000): limits of connections.
 *   - `io_threads` (0): number of threads that read and write the connections, at most 1,024, for servers that need more than one
 *     core. They are I/O threads like the library's own, which does this if the number is 0. An inline handler may run on all of
 *     them at the same time.
 *   - `max_sessions` (10,000), `session_idle_timeout` (1,800): limits of sessions.
 *   - `stateless` (false): serve clients of handshake revisions without sessions, so that any process can answer any
 *     request. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of
 *     changes and resumable streams, and HTTP+SSE is not served.
 *   - `stream_upgrade_delay` (10): after this time without a message a waiting call becomes an event stream.
 *   - `keep_alive_interval` (15), `retry` (0.5), `max_kept_events` (1,024), `max_kept_bytes` (4 MiB), `max_unread_bytes` (16 MiB):
 *     event streams.
 *   - `metrics_path` (none): where the metrics of the server are served, if its option `metrics` is on.
 *   - `client_address_header`: the header in which a reverse proxy names the client's address.
 *   - `auth`: enables authorization; an object with `resource`, the URL under which clients know the server, and
 *     `issuers`, `jwks_url`, `jwks`, `introspection`, `authorization_servers`, `audiences`, `required_scopes`,
 *     `implied_scopes`, `algorithms`, `clock_skew` and others, like `ResourceServer` in other languages; `verifies`
 *     (true) verifies tokens with `mcpl_server_on_verify`, and needs nothing else if they are keys of your own.
 *
 * \return `MCPL_TRANSPORT_ERROR` if it cannot listen there, `MCPL_USAGE_ERROR` if an option is invalid, and
 * `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`.
 */
MCPL_API
mcpl_status mcpl_server_run_http(mcpl_server *server,
                                 const char *host,
                                 uint16_t port,
                                 const char *options);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Serves over HTTP in the background and returns as soon as the server listens. Otherwise like `mcpl_server_run_http`.
 *
 * \param server the server.
 * \param host name or address to listen on, such as `"127.0.0.1"`; or `"fd://3"` for a listening TCP socket that the process
 *   has inherited, such as the first one from systemd (not on Windows).
 * \param port TCP port; 0 for one that the system chooses. Not used with an inherited socket.
 * \param options JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional; times are
 *   in seconds, sizes in bytes:
 *   - `path` (`"/mcp"`), `sse_paths` (`["/sse", "/messages"]`), `serve_sse` (true), `health_path` (`"/health"`),
 *     `serve_health` (true), `ready_path` (`"/ready"`), `serve_ready` (true), `proxy_prefix`: where the server answers.
 *   - `allowed_hosts`, `allowed_origins`: accepted `Host` and `Origin` headers, besides those of loopback and of the
 *     bound address. Pages of the allowed origins may also read the responses (CORS).
 *   - `max_body_bytes` (16 MiB), `read_timeout` (30), `write_timeout` (30), `max_connections` (10,000): limits of connections.
 *   - `io_threads` (0): number of threads that read and write the connections, at most 1,024, for servers that need more than one
 *     core. They are I/O threads like the library's own, which does this if the number is 0. An inline handler may run on all of
 *     them at the same time.
 *   - `max_sessions` (10,000), `session_idle_timeout` (1,800): limits of sessions.
 *   - `stateless` (false): serve clients of handshake revisions without sessions, so that any process can answer any
 *     request. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of
 *     changes and resumable streams, and HTTP+SSE is not served.
 *   - `stream_upgrade_delay` (10): after this time without a message a waiting call becomes an event stream.
 *   - `keep_alive_interval` (15), `retry` (0.5), `max_kept_events` (1,024), `max_kept_bytes` (4 MiB), `max_unread_bytes` (16 MiB):
 *     event streams.
 *   - `metrics_path` (none): where the metrics of the server are served, if its option `metrics` is on.
 *   - `client_address_header`: the header in which a reverse proxy names the client's address.
 *   - `auth`: enables authorization; an object with `resource`, the URL under which clients know the server, and
 *     `issuers`, `jwks_url`, `jwks`, `introspection`, `authorization_servers`, `audiences`, `required_scopes`,
 *     `implied_scopes`, `algorithms`, `clock_skew` and others, like `ResourceServer` in other languages; `verifies`
 *     (true) verifies tokens with `mcpl_server_on_verify`, and needs nothing else if they are keys of your own.
 * \param bound_port set to the port that the server listens on, 0 on failure. May be `NULL`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_run_http` returns.
 *
 * Threads as for `mcpl_server_run_http`.
 */
MCPL_API
mcpl_status mcpl_server_start_http(mcpl_server *server,
                                   const char *host,
                                   uint16_t port,
                                   const char *options,
                                   uint16_t *bound_port);
#endif

#if defined(MCPLINE_HAS_UNIX)
/**
 * Serves on a Unix socket, and waits until `mcpl_server_stop` is called. Each connection is a client, and messages are
 * lines, as over stdio.
 *
 * \param server the server.
 *
 * The socket has its permissions before it can be connected to. A socket that an ended server has left at the path is
 * replaced; one that another server uses is not, and neither is a file of another kind. The socket is removed at the end.
 * Clients may use everything: the permissions of the socket decide who may connect. SIGINT and SIGTERM end the process
 * and its calls at once, and leave the socket; see `mcpl_server_stop_on_signals`.
 *
 * \param path path of the socket, ending with a zero byte.
 * \param options JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional:
 *   - `mode` (`"0600"`): permissions of the socket file, which say who may connect: octal digits, or a number. `"0660"`
 *     admits the group of the file too. The umask does not change them.
 *   - `max_connections` (256): maximum number of open connections; further ones are closed at once.
 *
 * \return `MCPL_TRANSPORT_ERROR` if the socket cannot be created or another server uses it, `MCPL_USAGE_ERROR` if the
 * path is too long for a socket or an option is invalid, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within
 * `mcpl_loop_dispatch`.
 */
MCPL_API
mcpl_status mcpl_server_run_unix(mcpl_server *server,
                                 const char *path,
                                 const char *options);
#endif

#if defined(MCPLINE_HAS_UNIX)
/**
 * Serves on a Unix socket in the background and returns as soon as the server listens. Otherwise like
 * `mcpl_server_run_unix`.
 *
 * \param server the server.
 * \param path path of the socket, ending with a zero byte.
 * \param options JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional:
 *   - `mode` (`"0600"`): permissions of the socket file, which say who may connect: octal digits, or a number. `"0660"`
 *     admits the group of the file too. The umask does not change them.
 *   - `max_connections` (256): maximum number of open connections; further ones are closed at once.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_run_unix` returns.
 *
 * Threads as for `mcpl_server_run_unix`.
 */
MCPL_API mcpl_status mcpl_server_start_unix(mcpl_server *server, const char *path, const char *options);
#endif

#if (defined(MCPLINE_HAS_AUTH) && defined(MCPLINE_HAS_CLIENT))
/**
 * Verifies access tokens with a callback instead of by the server (`basic/authorization`).
 *
 * \param server the server.
 *
 * Takes effect for servers that are started afterwards with `"verifies": true` in `auth` of their HTTP options.
 *
 * \param handler called with each token, as the parameters `{"token": "..."}`; see `mcpl_input_request_handler`. The
 *   token is secret and valid until the callback returns.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the server closes, another handler
 *   replaces this one, or this function fails.
 *
 * For a valid token answer with an object with any of `issuer`, `subject`, `client_id`, `audience` (array), `scopes`
 * (array), `expires_at` (seconds since 1970) and `claims` (object). For an invalid token answer with an error of code
 * -1. Any other code means that the token cannot be verified at the moment, and the request is answered with status
 * 503, as it is when no answer comes within 30 seconds.
 *
 * \return `MCPL_USAGE_ERROR` if `handler` is `NULL`. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_on_verify(mcpl_server *server,
                                  mcpl_input_request_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

/** @} */

/**
 * \defgroup mcpl_sharing 6. Shared state
 * @{
 */

#if defined(MCPLINE_HAS_HTTP)
/**
 * Shares sessions, event streams and notifications with other servers, over functions of the program. Call it before features
 * are added and the server is served.
 *
 * \param server the server.
 * \param sharing the functions. The library copies the structure.
 * \param user,finalize passed to the functions, and its finalizer, which runs when the server closes, other functions replace
 *   these, or this function fails.
 *
 * The functions are called while the server is served, for example by `mcpl_server_start_http`. A server that is not served does
 * not publish announcements to other processes.
 *
 * \return `MCPL_USAGE_ERROR` if a function is `NULL`, the server has the option `sharing`, or it is in use. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_set_sharing(mcpl_server *server,
                                    const mcpl_sharing *sharing,
                                    void *user,
                                    mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Checks that functions of the program do what `mcpl_sharing` says, with the requests that a server sends; for a test of the
 * program. Waits until everything was checked. Only in a library that was built with the feature `sharing-check`, which is not
 * one of the default features.
 *
 * \param server a server that is not in use, after `mcpl_server_set_sharing`. It runs the functions as its callbacks, and is in
 *   use from now on.
 * \param other the functions as another process has them, with connections of their own to the same database. Copied. `NULL`:
 *   those of the server.
 * \param user,finalize passed to the functions of `other`, and its finalizer, which runs when the server closes, or before
 *   this function returns if it calls none of them.
 *
 * It saves, changes and removes sessions, also at the same time, writes and reads streams, subscribes and publishes messages.
 * Use a database for tests: what is written under names that begin with `check-` may stay there.
 *
 * \return `MCPL_USAGE_ERROR` if a function fails, does not end its call in time or does something else: `mcpl_last_error`
 * begins with the name of the function, such as `sessions.save`, and says what is wrong. Also returns it if a function is
 * `NULL`, the server has no functions or is in use, or the library lacks the feature. Returns `MCPL_CLOSED` if the server is
 * stopped meanwhile, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`. Any other thread.
 */
MCPL_API
mcpl_status mcpl_server_check_sharing(mcpl_server *server,
                                      const mcpl_sharing *other,
                                      void *user,
                                      mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Passes a message of the bus to a server, unless the server itself has published it.
 *
 * \param receiver that of the subscription.
 * \param message,length the message and its length in bytes; `MCPL_AUTO_LENGTH` is not allowed. Copied. Messages of more than
 *   16 MiB, and those that mcpline has not published, are ignored with a diagnostic.
 *
 * \return `MCPL_STALE_HANDLE` once the subscription has ended. Does not wait. Any thread.
 */
MCPL_API
mcpl_status mcpl_bus_receive(mcpl_bus_receiver *receiver,
                             const void *message,
                             size_t length);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Ends a call of a function of `mcpl_sharing` that has done what is requested, or, for `load` and `read`, has found nothing.
 *
 * \param call the call.
 *
 * \return `MCPL_USAGE_ERROR` if another handler was called (the call stays open) and `MCPL_STALE_HANDLE` if the call has
 * ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_done(mcpl_call *call);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Ends a call of `load` or `save` of `mcpl_sharing` with the session that is stored. To `save`, it says that another process has
 * changed the session.
 *
 * \param call the call.
 * \param session,length the session and its length in bytes, at most 16 MiB; `MCPL_AUTO_LENGTH` is not allowed. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if another function or handler was called (the call stays open) and `MCPL_STALE_HANDLE` if the call
 * has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_session(mcpl_call *call,
                                    const void *session,
                                    size_t length);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * Ends a call of `read` of `mcpl_sharing` with events.
 *
 * \param call the call.
 * \param events,count the events, one after the other, and their number. Copied. May be `NULL` if there are none.
 * \param ended whether the stream ended after them (`end` of `mcpl_sharing`).
 * \param has_more whether further events are stored already: then `read` is called again for the next part. `count` must not be 0.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid, or another function or handler was called (the call stays open), and
 * `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_events(mcpl_call *call,
                                   const mcpl_bytes *events,
                                   size_t count,
                                   bool ended,
                                   bool has_more);
#endif

/** @} */

/**
 * \defgroup mcpl_features 7. Features of servers
 * @{
 */

/**
 * Puts a handler around the requests that the server answers: lists, calls of tools, reads of resources, requests for
 * prompts, completions and custom requests; and around other messages whose methods the scope names.
 *
 * \param server the server.
 * \param scope,length what it sees, as JSON, and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for all requests of
 *   clients. Copied. An object with any of the members `methods`, such as `["tools/call"]`, and for features `kinds` (`tool`,
 *   `resource`, `prompt`), `names` and `tags`, each an array of strings. `methods` may also name input requests
 *   (`elicitation/create`) and notifications (`notifications/message`) of handlers, and notifications of clients that have
 *   handlers.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 * \param handler called for each request. Its arguments are an object with the members `kind` (`request`, `input_request`,
 *   `sent_notification` or `received_notification`), `method`, `name` (the name of the tool or prompt, or the URI; absent for
 *   other methods) and `params`. The result is that of the client for an input request, and an empty object for a
 *   notification, which is dropped if it is not passed on. It passes the request on with `mcpl_call_next` or
 *   `mcpl_call_next_wait`, and ends its call with `mcpl_call_reply_result` and the whole result, or with an error, as other
 *   handlers do. It may also end the call without passing the request on.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * The first middleware is the outermost. One that is added while the server is running applies to later requests. An error
 * of `mcpl_call_fail` is for `tools/call` a result that the model reads, and for other methods a JSON-RPC error. If the
 * request ends early, the call is cancelled.
 *
 * \return `MCPL_USAGE_ERROR` if the scope is invalid or has a method that no middleware sees, or the server has 64, and
 * `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_middleware(mcpl_server *server,
                                       const char *scope,
                                       size_t length,
                                       const mcpl_handler_options *options,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Adds a middleware that the library provides, which runs without C code. Only in a library that was built with the feature
 * `middleware`, as the default one is.
 *
 * \param server the server.
 * \param definition,length which one, with its options, as JSON, and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. An
 *   object with exactly one of the members:
 *   - `rate_limit`: `requests` (per period), and optionally `period` (seconds, default 1), `burst` (requests at once), `per`:
 *     what is counted by, an array of `client`, `session` and `target`, and `shared`: a name under which all processes that
 *     share state (the option `sharing`) count together; without it, each process counts on its own. Further requests fail with
 *     -31000; `retryAfter` in the error's data says how many seconds to wait.
 *   - `concurrency_limit`: `max_running`, and optionally `max_waiting` (requests that wait, default 0) and `per`.
 *   - `response_cache`: `ttl` (seconds), and optionally `tools` (names of tools without effects, beside resources and prompts)
 *     and `max_bytes` (default 16 MiB). Results are forgotten when features of their kind change, and those of a resource with
 *     `mcpl_server_notify_resource_updated`.
 *   - `response_size_limit`: `max_bytes` of the result of a tool. The longest text of a larger one is cut. Optionally `pages`
 *     (whether clients can read what is cut, as resources that the result names; default `false`), `max_kept_bytes` (of all pages,
 *     default 16 MiB) and `lifetime` (seconds that they are kept, default 600).
 *   - `audit_log`: `path` of a file that a record of each request is appended to (docs/observability.md), and optionally
 *     `max_bytes` (size at which it is rotated, default 100 MiB; 0: never), `max_files` (rotated files that are kept, at most 1,000, default 10),
 *     `arguments` and `results` (whether records contain them, default `false`), `redact` (names of members whose values are
 *     replaced) and `required` (whether a request fails if its record cannot be written, default `true`).
 *   - `redaction`, if the library was built with this feature: `members` (names of members whose values are replaced),
 *     `patterns` (regular expressions whose matches are replaced), and optionally `replacement` (default `[redacted]`) and
 *     `arguments` (whether these are redacted as well, default `false`).
 *   - `tool_policy`: `allowed` (names of tools, in which `*` stands for any characters; default: all), `denied` (also if allowed),
 *     `approval` (tools before whose calls the server asks the user by an elicitation) and `exempt_scopes` (callers with all of
 *     these scopes may use every tool without approval; callers on stdio, on Unix sockets and on channels without a principal count as
 *     having all scopes; default: none are exempt). Denied tools are not listed, and calls of them fail as for a tool that does not exist.
 * \param scope,scope_length as for `mcpl_server_add_middleware`.
 *
 * \return `MCPL_USAGE_ERROR` if an option or the scope is invalid, the file of a log cannot be opened or the library lacks the
 * feature, and `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_built_in_middleware(mcpl_server *server,
                                                const char *definition,
                                                size_t length,
                                                const char *scope,
                                                size_t scope_length);

/**
 * Notifies the subscribers of a resource that it changed (`server/resources`, subscriptions).
 *
 * \param server the server.
 * \param uri the URI.
 *
 * Returns at once; the notifications are sent in the background. Any thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API mcpl_status mcpl_server_notify_resource_updated(mcpl_server *server, const char *uri);

/**
 * Notifies clients that the list of resources changed (`notifications/resources/list_changed`): for
 * `mcpl_server_set_resource_template_list`. When resources are registered or removed, the server does so by itself.
 *
 * \param server the server.
 *
 * Returns at once; the notifications are sent in the background. Any thread.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_notify_resource_list_changed(mcpl_server *server);

/**
 * Notifies the client that a URL elicitation is complete (2025-11-25, `client/elicitation`, completion notifications).
 *
 * \param server the server.
 * \param elicitation_id the id in the parameters of the elicitation.
 *
 * Does nothing on other revisions, and the second time. Any thread, also after the call has ended.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_notify_elicitation_complete(mcpl_server *server,
                                                    const char *elicitation_id);

/**
 * Adds a tool. Connected clients are notified.
 *
 * \param server the server.
 * \param name name of the tool.
 * \param description text for the model, or `NULL`.
 * \param input_schema JSON Schema of the arguments, of type `object`, or `NULL` if there are none. Arguments are
 *   validated before the handler is called.
 * \param handler called for each call of the tool.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if the name is taken or the schema is invalid, and `MCPL_CLOSED` if the server is closed.
 * Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_tool(mcpl_server *server,
                                 const char *name,
                                 const char *description,
                                 const char *input_schema,
                                 mcpl_handler handler,
                                 void *user,
                                 mcpl_finalizer finalize);

/**
 * Adds a tool by its complete definition. Otherwise like `mcpl_server_add_tool`.
 *
 * \param server the server.
 * \param handler called for each call of the tool.
 * \param user,finalize passed to the handler, and its finalizer.
 * \param definition,length a `Tool` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_add_tool` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_server_add_tool_with(mcpl_server *server,
                                      const char *definition,
                                      size_t length,
                                      const mcpl_handler_options *options,
                                      mcpl_handler handler,
                                      void *user,
                                      mcpl_finalizer finalize);

/**
 * Adds a resource. Connected clients are notified.
 *
 * \param server the server.
 * \param uri,name URI (RFC 3986) and name of the resource.
 * \param mime_type MIME type of its contents, or `NULL`.
 * \param handler called for each read, with the arguments `{}`.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if the URI is taken or invalid, and `MCPL_CLOSED` if the server is closed. Any thread,
 * also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_resource(mcpl_server *server,
                                     const char *uri,
                                     const char *name,
                                     const char *mime_type,
                                     mcpl_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);

/**
 * Adds a resource by its complete definition. Otherwise like `mcpl_server_add_resource`.
 *
 * \param server the server.
 * \param handler called for each read, with the arguments `{}`.
 * \param user,finalize passed to the handler, and its finalizer.
 * \param definition,length a `Resource` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_add_resource` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_server_add_resource_with(mcpl_server *server,
                                          const char *definition,
                                          size_t length,
                                          const mcpl_handler_options *options,
                                          mcpl_handler handler,
                                          void *user,
                                          mcpl_finalizer finalize);

/**
 * Adds a resource template. Connected clients are notified.
 *
 * \param server the server.
 * \param uri_template URI template (RFC 6570), such as `"users://{id}"`.
 * \param name name of the template.
 * \param mime_type MIME type of the contents, or `NULL`.
 * \param handler called for each read of a matching URI. Its arguments are the variables, as strings; `mcpl_call_name`
 *   returns the URI.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if the template is invalid or an equivalent one exists, and `MCPL_CLOSED` if the server
 * is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_resource_template(mcpl_server *server,
                                              const char *uri_template,
                                              const char *name,
                                              const char *mime_type,
                                              mcpl_handler handler,
                                              void *user,
                                              mcpl_finalizer finalize);

/**
 * Adds a resource template by its complete definition. Otherwise like `mcpl_server_add_resource_template`.
 *
 * \param server the server.
 * \param handler called for each read of a matching URI. Its arguments are the variables, as strings; `mcpl_call_name`
 *   returns the URI.
 * \param user,finalize passed to the handler, and its finalizer.
 * \param definition,length a `ResourceTemplate` of the specification as JSON and its length in bytes, or
 *   `MCPL_AUTO_LENGTH`.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_add_resource_template` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_server_add_resource_template_with(mcpl_server *server,
                                                   const char *definition,
                                                   size_t length,
                                                   const mcpl_handler_options *options,
                                                   mcpl_handler handler,
                                                   void *user,
                                                   mcpl_finalizer finalize);

/**
 * Sets the handler that lists resources of a template. They follow the registered resources in `resources/list`, on its
 * last page. Connected clients are notified.
 *
 * \param server the server.
 * \param uri_template the URI template, which is registered already.
 * \param handler called for each request of a client that may use the template. Its arguments are `{}`; `mcpl_call_name`
 *   returns the URI template. It ends its call with `mcpl_call_reply_content` and a JSON array of `Resource` or URIs, with
 *   `mcpl_call_reply_values` and URIs, or with `mcpl_call_reply_result` and a `ListResourcesResult`.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * Resources that do not match the template, or that are registered, are left out. An error of the handler is the error of
 * the request. Call `mcpl_server_notify_resource_list_changed` when the result changes. Replaces an earlier handler of the
 * same template.
 *
 * \return `MCPL_USAGE_ERROR` if there is no such template, and `MCPL_CLOSED` if the server is closed. Any thread, also
 * while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_set_resource_template_list(mcpl_server *server,
                                                   const char *uri_template,
                                                   mcpl_handler handler,
                                                   void *user,
                                                   mcpl_finalizer finalize);

/**
 * Adds a prompt. Connected clients are notified.
 *
 * \param server the server.
 * \param name name of the prompt.
 * \param description text for the user, or `NULL`.
 * \param arguments JSON array of `PromptArgument` (`name`, `description`, `required`) that ends with a zero byte, or
 *   `NULL` for none.
 * \param handler called for each use of the prompt. Its arguments are strings.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if the name is taken or `arguments` is invalid, and `MCPL_CLOSED` if the server is
 * closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_prompt(mcpl_server *server,
                                   const char *name,
                                   const char *description,
                                   const char *arguments,
                                   mcpl_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * Adds a prompt by its complete definition. Otherwise like `mcpl_server_add_prompt`.
 *
 * \param server the server.
 * \param handler called for each use of the prompt. Its arguments are strings.
 * \param user,finalize passed to the handler, and its finalizer.
 * \param definition,length a `Prompt` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 *
 * \return `MCPL_OK`, or a status that `mcpl_server_add_prompt` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_server_add_prompt_with(mcpl_server *server,
                                        const char *definition,
                                        size_t length,
                                        const mcpl_handler_options *options,
                                        mcpl_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);

/**
 * Handles requests of a custom method.
 *
 * \param server the server.
 * \param method a method that no protocol revision defines, such as `"acme/search"`.
 * \param params_schema JSON Schema of the parameters that ends with a zero byte, or `NULL` for any. Requests that do not
 *   match are answered with -32602.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 * \param handler called for each request, with the parameters without `_meta` as its arguments. It ends its call with
 *   `mcpl_call_reply_result` and any JSON object.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if the method has a handler or is defined by the protocol, or the schema is invalid, and
 * `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_on_request(mcpl_server *server,
                                   const char *method,
                                   const char *params_schema,
                                   const mcpl_handler_options *options,
                                   mcpl_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * Handles notifications of a custom method.
 *
 * \param server the server.
 * \param method a method that no protocol revision defines, such as `"acme/note"`.
 * \param params_schema JSON Schema of the parameters that ends with a zero byte, or `NULL` for any.
 * \param options how to run the handler, or `NULL` for the defaults. Copied.
 * \param handler called for each notification, with the parameters without `_meta` as its arguments. It ends its call
 *   with `mcpl_call_reply_text`; the text is ignored.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * Handlers start in the order in which notifications arrive, except after parameters that take long to validate, and
 * run concurrently. They are cancelled when the session ends. On handshake revisions they can send input requests and
 * log messages, like those of `mcpl_server_on_initialized`; on 2026-07-28 input requests fail.
 *
 * A notification is dropped with a warning in the diagnostics if its parameters do not match the schema, its client
 * lacks a required scope, or the client has too many calls in flight.
 *
 * \return `MCPL_USAGE_ERROR` if the method has a handler or is defined by the protocol, or the schema is invalid, and
 * `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_on_notification(mcpl_server *server,
                                        const char *method,
                                        const char *params_schema,
                                        const mcpl_handler_options *options,
                                        mcpl_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);

/**
 * Completes an argument of a prompt or a variable of a resource template from a fixed list
 * (`server/utilities/completion`).
 *
 * \param server the server.
 * \param reference name of the prompt, or the URI template.
 * \param argument name of the argument or variable.
 * \param candidates,count the possible values, as an array of strings that end with a zero byte. Copied. Those that
 *   match the typed text are sent, best match first.
 *
 * Replaces an earlier completion of the same argument. Any thread, also while the server is running.
 *
 * \return `MCPL_OK`, or the status of the failure.
 */
MCPL_API
mcpl_status mcpl_server_add_candidates(mcpl_server *server,
                                       const char *reference,
                                       const char *argument,
                                       const char *const *candidates,
                                       size_t count);

/**
 * Completes an argument of a prompt or a variable of a resource template with a handler
 * (`server/utilities/completion`).
 *
 * \param server the server.
 * \param reference name of the prompt, or the URI template.
 * \param argument name of the argument or variable.
 * \param handler called for each completion, with `ref`, `argument` and `context` as its arguments. It ends its call
 *   with `mcpl_call_reply_values` or `mcpl_call_reply_result`.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * Replaces an earlier completion of the same argument.
 *
 * \return `MCPL_CLOSED` if the server is closed. Any thread, also
 * while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_add_completion(mcpl_server *server,
                                       const char *reference,
                                       const char *argument,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Sets the handler for completions of all arguments that have no completion of their own.
 *
 * \param server the server.
 * \param handler called for each request.
 * \param user passed to the callback.
 * \param finalize the finalizer of `user`.
 *
 * The handler is called as described for `mcpl_server_add_completion`. Replaces an earlier handler.
 *
 * \return
 * `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
 */
MCPL_API
mcpl_status mcpl_server_set_completion(mcpl_server *server,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Sets the handler that is called for each session after its handshake (`basic/lifecycle`, revisions up to 2025-11-25;
 * 2026-07-28 has no sessions).
 *
 * \param server the server.
 *
 * Its call belongs to no request. The handler can send input requests with `mcpl_call_request_input` and `mcpl_call_request_input_wait`
 * until it ends the call, with `mcpl_call_reply_text` and any text, or the session ends. Over HTTP this requires an
 * open GET stream of the client.
 *
 * \param handler called once for each session.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * Replaces an earlier handler.
 *
 * \return `MCPL_CLOSED` if the server is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_on_initialized(mcpl_server *server,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Sets the handler that is called when a client that declared roots reports a change (`client/roots`, root list
 * changes, revisions up to 2025-11-25).
 *
 * \param server the server.
 *
 * Request the new list with `MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS`; the handler's call is like that of `mcpl_server_on_initialized`.
 * Changes that a session reports while its handler runs cause one more call afterwards.
 *
 * \param handler called after a change.
 * \param user,finalize passed to the handler, and its finalizer.
 *
 * Replaces an earlier handler.
 *
 * \return `MCPL_CLOSED` if the server is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_server_on_roots_changed(mcpl_server *server,
                                         mcpl_handler handler,
                                         void *user,
                                         mcpl_finalizer finalize);

/**
 * Removes a tool. Connected clients are notified; calls in flight continue.
 *
 * \param server the server.
 * \param name the name.
 *
 * \return `MCPL_NOT_FOUND` if there is no tool of this name. Any thread.
 */
MCPL_API mcpl_status mcpl_server_remove_tool(mcpl_server *server, const char *name);

/**
 * Removes a resource or resource template. Connected clients are notified; calls in flight continue.
 *
 * \param server the server.
 * \param uri the URI of the resource, or the URI template.
 *
 * \return `MCPL_NOT_FOUND` if there is none. Any thread.
 */
MCPL_API mcpl_status mcpl_server_remove_resource(mcpl_server *server, const char *uri);

/**
 * Removes a prompt. Connected clients are notified; calls in flight continue.
 *
 * \param server the server.
 * \param name the name.
 *
 * \return `MCPL_NOT_FOUND` if there is no prompt of this name. Any thread.
 */
MCPL_API mcpl_status mcpl_server_remove_prompt(mcpl_server *server, const char *name);

/**
 * Removes the handler of a custom request. Calls in flight continue.
 *
 * \param server the server.
 * \param method the method, such as `"acme/changed"`.
 *
 * \return `MCPL_NOT_FOUND` if the method has no handler. Any thread.
 */
MCPL_API mcpl_status mcpl_server_remove_request_handler(mcpl_server *server, const char *method);

/**
 * Removes the handler of a custom notification. Calls in flight continue.
 *
 * \param server the server.
 * \param method the method, such as `"acme/changed"`.
 *
 * \return `MCPL_NOT_FOUND` if the method has no handler. Any thread.
 */
MCPL_API mcpl_status mcpl_server_remove_notification_handler(mcpl_server *server, const char *method);

/** @} */

/**
 * \defgroup mcpl_calls 8. Calls of handlers
 * @{
 */

/**
 * Ends a call with text: a tool result with one text block, a prompt with one user message, or the text of a resource.
 *
 * \param call the call.
 * \param text,length UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * The MIME type of a resource is the one in its definition, or `text/plain`. Text for an event or a notification is
 * ignored. A cancelled call can be ended like any other; nothing is sent.
 *
 * \return `MCPL_USAGE_ERROR` for completions and custom requests (the call stays open) and `MCPL_STALE_HANDLE` if the
 * call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_text(mcpl_call *call,
                                 const char *text,
                                 size_t length);

/**
 * Ends a call with binary data: the `blob` of a resource, or an image or audio block of a tool. The data is sent as
 * base64.
 *
 * \param call the call.
 * \param bytes,length the data and its length in bytes; `MCPL_AUTO_LENGTH` is not allowed. Copied.
 * \param mime_type MIME type, or `NULL` for the one in the resource's definition (`application/octet-stream` if there is
 *   none). Tools accept `image/...` and `audio/...`.
 *
 * \return `MCPL_USAGE_ERROR` if a tool is given another MIME type, and for anything but tools and resources; the call
 * stays open. Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_bytes(mcpl_call *call,
                                  const void *bytes,
                                  size_t length,
                                  const char *mime_type);

/**
 * Ends a call with the main array of its result: `content` of a tool, `messages` of a prompt, `contents` of a
 * resource, or the resources that a template lists.
 *
 * \param call the call.
 * \param json,length JSON array and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * Returns `MCPL_USAGE_ERROR` if `json` is not a JSON array, or if something else was called; the call stays open.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_content(mcpl_call *call,
                                    const char *json,
                                    size_t length);

/**
 * Ends a tool call with structured content (`server/tools`, structured content).
 *
 * \param call the call.
 * \param json,length any JSON value and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. It should match the
 *   tool's `outputSchema`.
 *
 * Clients of revisions without structured content receive it as text.
 *
 * Returns `MCPL_USAGE_ERROR` if `json` is not valid JSON or no tool was called; the call stays open.
 *
 * \return
 * `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_structured(mcpl_call *call,
                                       const char *json,
                                       size_t length);

/**
 * Ends a call with a complete result object.
 *
 * \param call the call.
 * \param json,length JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. It is a `CallToolResult`,
 *   `ReadResourceResult`, `GetPromptResult`, `CompleteResult` or `ListResourcesResult` of the specification, depending on what was called;
 *   for a custom request, any object.
 *
 * Returns `MCPL_USAGE_ERROR` if `json` is not such an object; the call stays open.
 *
 * \return `MCPL_STALE_HANDLE` if the
 * call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_result(mcpl_call *call,
                                   const char *json,
                                   size_t length);

/**
 * Ends a completion call with completion values (`server/utilities/completion`), or the list of a template with the URIs
 * of its resources.
 *
 * \param call the call.
 * \param values,count the values, best match first, as an array of strings that end with a zero byte. Copied. Of a
 *   completion only the first 100 are sent, the limit of the protocol.
 *
 * Returns `MCPL_USAGE_ERROR` if the call is another one; the call stays open.
 *
 * \return `MCPL_STALE_HANDLE` if the
 * call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_values(mcpl_call *call,
                                   const char *const *values,
                                   size_t count);

/**
 * Ends this run of a handler with input requests; the handler is called again from the start with the answers.
 *
 * \param call the call.
 *
 * Use it instead of `mcpl_call_request_input` for handlers that keep no state between runs. It works with clients of every
 * revision.
 *
 * \param json,length `{"requests": [[key, method, params], ...], "state": "..."}` and its length in bytes, or
 *   `MCPL_AUTO_LENGTH`. `method` is `elicitation/create`, `sampling/createMessage` or `roots/list`. `params` may be
 *   `null`; `state`, a string, may be missing or `null`.
 *
 * In the next run `mcpl_call_info` contains `inputResponses`, the answers by key, and `requestState`, the state.
 *
 * Returns `MCPL_USAGE_ERROR` if `json` has another form; the call stays open.
 *
 * \return `MCPL_STALE_HANDLE` if the call
 * has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_reply_input_required(mcpl_call *call,
                                           const char *json,
                                           size_t length);

/**
 * Ends a call with an error message for the model: a tool result with `isError`.
 *
 * \param call the call.
 * \param message,length UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * Only tools have such a result. Other calls fail with an internal JSON-RPC error that contains the message.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API mcpl_status mcpl_call_fail(mcpl_call *call, const char *message, size_t length);

/**
 * Ends a call with a JSON-RPC error.
 *
 * \param call the call.
 * \param code the error code.
 * \param message UTF-8 text that ends with a zero byte.
 * \param data,data_length the error's `data` as JSON and its length in bytes, or `NULL`.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid (the call stays open) and `MCPL_STALE_HANDLE` if the call has
 * ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_fail_rpc(mcpl_call *call,
                               int64_t code,
                               const char *message,
                               const char *data,
                               size_t data_length);

/**
 * Ends a call with an internal error whose message is not sent to the client.
 *
 * \param call the call.
 * \param message text for the diagnostics (`mcpl_set_diagnostics`). The client only learns that the handler failed, except in
 *   debug mode (the option `debug` of `mcpl_server_new_with`).
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_fail_internal(mcpl_call *call,
                                    const char *message);

/**
 * Ends a call with an error of this library, such as that of a failed input request.
 *
 * \param call the call.
 * \param error the error that a callback received, or `mcpl_last_error()`.
 *
 * If the client lacks a capability the response is an error that names it (-32021 on 2026-07-28). The errors of
 * `mcpl_call_require_scopes` and `mcpl_call_next` with status `MCPL_RPC_ERROR` remain JSON-RPC errors. Of any other error
 * the response is the message, for the model.
 *
 * \return `MCPL_USAGE_ERROR` if `error` is `NULL` (the call stays open) and `MCPL_STALE_HANDLE` if the call has ended.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_call_fail_with(mcpl_call *call,
                                const mcpl_error *error);

/**
 * Ends a call because the resource does not exist. For handlers of resource templates, which match more than exists.
 *
 * \param call the call.
 * \param uri URI of the resource, which ends with a zero byte. Copied. `NULL` for the one that the client reads.
 *
 * The response is the error for a URI that no resource has, with the URI in its data: -32002, or -32602 on 2026-07-28
 * (`server/resources`, error handling). If the call is one of a tool, it is an error result that the model reads.
 *
 * \return `MCPL_USAGE_ERROR` if `uri` is not UTF-8 (the call stays open) and `MCPL_STALE_HANDLE` if the call has ended.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_call_fail_resource_not_found(mcpl_call *call,
                                              const char *uri);

/**
 * Ends a call because the user must open URLs first (`client/elicitation`, URL mode).
 *
 * \param call the call.
 * \param json,length JSON array of `elicitation/create` parameters in URL mode, and its length in bytes, or
 *   `MCPL_AUTO_LENGTH`.
 *
 * On 2025-11-25 the response is error -32042 (URL elicitation required), on 2026-07-28 it contains input requests; on
 * earlier revisions the URLs are listed in the message. Call `mcpl_server_notify_elicitation_complete` when the user
 * is done, so that the client tries again.
 *
 * \return `MCPL_USAGE_ERROR` if `json` is not such an array (the call stays open) and `MCPL_STALE_HANDLE` if the call
 * has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_fail_url_elicitation_required(mcpl_call *call,
                                                    const char *json,
                                                    size_t length);

/**
 * Returns the arguments of a call: a JSON object.
 *
 * \param call the call.
 *
 * For a resource template these are its variables; for a completion `ref`, `argument` and `context`; for a custom
 * request or notification its parameters without `_meta`.
 *
 * \param arguments,length set to the JSON text and its length in bytes; a zero byte follows. Valid until the call
 *   ends. Each may be `NULL`.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_arguments(mcpl_call *call,
                                const char **arguments,
                                size_t *length);

/**
 * Returns the name of the called tool or prompt, the URI of the resource, the URI template whose resources are listed, or
 * the method of the custom request or notification.
 *
 * \param call the call.
 * \param name set to the string; `""` for a completion. Release it with `mcpl_string_free`.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_name(mcpl_call *call,
                           char **name);

/**
 * Returns the context of a call's request as a JSON object.
 *
 * \param call the call.
 * \param json,length set to the JSON text and its length in bytes. Release it with `mcpl_string_free`.
 *
 * Members, `null` where they do not apply:
 *
 * - `revision`: the protocol revision.
 * - `transport`: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
 * - `client`, `clientCapabilities`: the client's `Implementation` and capabilities.
 * - `requestId`, `meta`: the id and the `_meta` of the request.
 * - `sessionId`, `headers`: HTTP only; `headers` is an array of pairs of name and value.
 * - `auth`: the authenticated caller: `issuer`, `subject`, `clientId`, `audience`, `scopes`, `expiresAt` (seconds
 *   since 1970) and `claims`. It never contains the token.
 * - `inputResponses`, `requestState`: the answers and the state after `mcpl_call_reply_input_required`.
 *
 * On 2026-07-28 the client answers input requests with a new request; from then on all of this describes the new
 * request.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_info(mcpl_call *call,
                           char **json,
                           size_t *length);

/**
 * Checks that the caller has these scopes, for requirements that depend on the arguments.
 *
 * \param call the call.
 * \param scopes all of them are required, separated by spaces.
 *
 * Declare fixed requirements with the feature instead (`scopes` of `mcpl_handler_options`). On stdio, and on other
 * transports without a principal, every caller has all scopes.
 *
 * \return `MCPL_OK` if the caller has them. If not, returns `MCPL_RPC_ERROR`, and the call stays open: end it with
 * `mcpl_call_fail_with(call, mcpl_last_error())`. Over HTTP the response then has status 403 and a challenge that names the
 * scopes, unless part of the response was sent; on other transports it is JSON-RPC error -31001 (2025-11-25,
 * `basic/authorization`, scope challenge handling).
 *
 * Returns `MCPL_USAGE_ERROR` if `scopes` is `NULL` or empty or contains what is not a scope, and `MCPL_STALE_HANDLE` if the call has
 * ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_require_scopes(mcpl_call *call,
                                     const char *scopes);

/**
 * Returns the trace context of a call's request, so that the spans of a program that uses OpenTelemetry belong to the trace of
 * its client (W3C Trace Context and Baggage; 2026-07-28, "Base protocol", `_meta`).
 *
 * \param call the call.
 * \param json,length set to a JSON object and its length in bytes, with `traceparent`, `tracestate` and `baggage` as far as the
 *   client has sent them and they are valid: in `_meta`, or else in the headers of the HTTP request. `NULL` and 0 if it has sent
 *   none. Release it with `mcpl_string_free`. To send it on, pass it as `meta` of `mcpl_request_options.json`.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_trace_context(mcpl_call *call,
                                    char **json,
                                    size_t *length);

/**
 * Keeps a call open when its handler returns, to end it later.
 *
 * \param call the call.
 *
 * Call it in the handler before another thread gets the call. Without it, a call that is open when its handler has returned,
 * and that waits for no answer (`mcpl_call_request_input`, `mcpl_call_send_request`, `mcpl_call_next`), fails with an internal error,
 * which the diagnostics report; so does a call that is open when the last callback with an answer has returned. Calling
 * it again is allowed.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_keep(mcpl_call *call);

/**
 * Returns whether the request was cancelled, by the client or because its connection ended. `true` if the call has
 * ended. Any thread.
 *
 * \param call the call.
 *
 * \return whether the request was cancelled, by the client or because its connection ended.
 */
MCPL_API
bool mcpl_call_is_cancelled(mcpl_call *call);

/**
 * Registers a callback for the cancellation of a call.
 *
 * \param call the call.
 * \param cancelled called at most once, where callbacks run; soon after this function if the request is already
 *   cancelled. Not called after the call has ended.
 * \param user,finalize passed to the callback, and its finalizer.
 *
 * \return `MCPL_USAGE_ERROR` if `cancelled` is `NULL` and `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_on_cancel(mcpl_call *call,
                                mcpl_cancelled cancelled,
                                void *user,
                                mcpl_finalizer finalize);

/**
 * Reports progress to the client (every revision, `basic/utilities/progress`).
 *
 * \param call the call.
 * \param progress a finite number that increases with each report.
 * \param total the value of `progress` at the end, or `NAN` if unknown.
 * \param message text for the user, or `NULL`.
 *
 * Does nothing if the client did not ask for progress. Reports above the server's `progress_rate` are dropped, except
 * that the last one is always sent.
 *
 * \return `MCPL_USAGE_ERROR` if a number is not finite and `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_progress(mcpl_call *call,
                               double progress,
                               double total,
                               const char *message);

/**
 * Sends a log message to the client, if the client requested messages of this level (`server/utilities/logging`).
 *
 * \param call the call.
 *
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * \param level an `mcpl_log_level`.
 * \param logger name of the logger, or `NULL`.
 * \param data,length any JSON value and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if `level` or `data` is invalid and `MCPL_STALE_HANDLE` if the call has ended. Any
 * thread.
 */
MCPL_API
mcpl_status mcpl_call_log(mcpl_call *call,
                          mcpl_log_level level,
                          const char *logger,
                          const char *data,
                          size_t length);

/**
 * Sends a log message to the client, like `mcpl_call_log`, with text as its data.
 *
 * \param call the call.
 * \param level an `mcpl_log_level`.
 * \param logger name of the logger, or `NULL`.
 * \param text,length UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * \return `MCPL_OK`, or a status that `mcpl_call_log` returns.
 *
 * Threads as for `mcpl_call_log`.
 */
MCPL_API
mcpl_status mcpl_call_log_text(mcpl_call *call,
                               mcpl_log_level level,
                               const char *logger,
                               const char *text,
                               size_t length);

/**
 * Sends a custom notification on the call's stream.
 *
 * \param call the call.
 * \param method a method that no protocol revision defines.
 * \param params,length JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for none. Copied.
 *
 * Does nothing if the request was cancelled, and on 2026-07-28 in the handler of a notification. Notifications may be
 * dropped if the client does not read its stream.
 *
 * \return `MCPL_USAGE_ERROR` if the protocol defines the method or `params` is not a JSON object, and
 * `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_notify(mcpl_call *call,
                             const char *method,
                             const char *params,
                             size_t length);

/**
 * Closes the HTTP response stream while the call continues; the client reconnects for the rest (2025-11-25,
 * `basic/transports`, polling).
 *
 * \param call the call.
 *
 * Does nothing on other revisions and transports.
 *
 * \return `MCPL_STALE_HANDLE` if the call has ended. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_close_stream(mcpl_call *call);

/**
 * Sends an input request to the client during a call and returns at once; `answer` is called with the answer. Works on
 * every revision.
 *
 * \param call the call.
 * \param key identifies the answer when the handler runs again, or `NULL` to use the request's number. Set it where the
 *   order of input requests can differ from run to run.
 * \param method an `mcpl_input_request_method`.
 * \param params,length the parameters of the request, a JSON object, and its length in bytes, or `MCPL_AUTO_LENGTH`;
 *   `NULL` for none. Copied.
 * \param answer called exactly once if this function succeeds.
 * \param user,finalize passed to `answer`, and its finalizer.
 *
 * The call stays open; the handler may return. On handshake revisions the input request is a JSON-RPC request. On
 * 2026-07-28 the client receives an `input_required` result and answers with a new request. If that request reaches
 * another process, the handler runs again there with the recorded answers; its input requests must therefore depend
 * only on its arguments and earlier answers. Input requests that are open at the same time are sent together.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid and `MCPL_STALE_HANDLE` if the call has ended; `answer` is not
 * called then. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_request_input(mcpl_call *call,
                                    const char *key,
                                    int32_t method,
                                    const char *params,
                                    size_t length,
                                    mcpl_response_callback answer,
                                    void *user,
                                    mcpl_finalizer finalize);

/**
 * Sends a custom request to the client during a call and returns at once; `answer` is called with the result, a JSON
 * object.
 *
 * \param call the call.
 * \param method a method that no protocol revision defines, such as `"acme/pick"`.
 * \param key,params,length,answer,user,finalize as for `mcpl_call_request_input`.
 *
 * No capability says whether a client supports the method, and a 2026-07-28 client that does not know it fails the
 * whole call. Send custom requests only to clients that declare an extension with this method.
 *
 * \return `MCPL_USAGE_ERROR` if the protocol defines the method or an argument is invalid, and `MCPL_STALE_HANDLE` if
 * the call has ended; `answer` is not called then. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_send_request(mcpl_call *call,
                                   const char *key,
                                   const char *method,
                                   const char *params,
                                   size_t length,
                                   mcpl_response_callback answer,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * Sends an input request like `mcpl_call_request_input` and waits for the answer.
 *
 * \param call the call.
 * \param key identifies the answer when the handler runs again, or `NULL` to use the request's number. Set it where the
 *   order of input requests can differ from run to run.
 * \param method an `mcpl_input_request_method`.
 * \param params,length the parameters of the request, a JSON object, and its length in bytes, or `MCPL_AUTO_LENGTH`;
 *   `NULL` for none. Copied.
 * \param result,result_length set to the client's result as JSON and its length in bytes. Release it with
 *   `mcpl_string_free`.
 *
 * Waits at most for the server's options `input_request_idle_timeout` and `input_request_timeout`. May be called on worker
 * threads, which are replaced while they wait, and on threads of the program.
 *
 * \return `MCPL_REQUEST_CANCELLED` if the request is cancelled meanwhile; `MCPL_WOULD_DEADLOCK` on the I/O thread
 * (inline handlers) and within `mcpl_loop_dispatch`; `MCPL_LIMIT_EXCEEDED` if 1,024 workers are waiting, or as many
 * for this client as are left for all other clients; `MCPL_STALE_HANDLE` if the call has ended.
 */
MCPL_API
mcpl_status mcpl_call_request_input_wait(mcpl_call *call,
                                         const char *key,
                                         int32_t method,
                                         const char *params,
                                         size_t length,
                                         char **result,
                                         size_t *result_length);

/**
 * Sends a custom request like `mcpl_call_send_request` and waits for the result, like `mcpl_call_request_input_wait`.
 *
 * \param call the call.
 * \param key,params,length as for `mcpl_call_request_input`.
 * \param method a method that no protocol revision defines, such as `"acme/pick"`.
 * \param result,result_length set to the client's result, a JSON object, and its length in bytes. Release it with
 *   `mcpl_string_free`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_call_send_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_call_send_request_wait(mcpl_call *call,
                                        const char *key,
                                        const char *method,
                                        const char *params,
                                        size_t length,
                                        char **result,
                                        size_t *result_length);

/**
 * Passes the request of a middleware's call on and returns at once; `answer` is called with the result.
 *
 * \param call the call.
 * \param params,length the parameters to pass on instead of the received ones, a JSON object, and its length in bytes, or
 *   `MCPL_AUTO_LENGTH`; `NULL` for the received ones. Copied.
 * \param answer called exactly once if this function succeeds, with the whole result. Its error has the status
 *   `MCPL_RPC_ERROR`; `mcpl_call_fail_with` passes it to the client.
 * \param user,finalize passed to `answer`, and its finalizer.
 *
 * May be called several times, to try again: each time the handler runs.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the call is not one of a middleware, and `MCPL_STALE_HANDLE` if
 * the call has ended; `answer` is not called then. Any thread.
 */
MCPL_API
mcpl_status mcpl_call_next(mcpl_call *call,
                           const char *params,
                           size_t length,
                           mcpl_response_callback answer,
                           void *user,
                           mcpl_finalizer finalize);

/**
 * Passes the request of a middleware's call on, like `mcpl_call_next`, and waits for the result.
 *
 * \param call the call.
 * \param params,length the parameters to pass on instead of the received ones, a JSON object, and its length in bytes, or
 *   `MCPL_AUTO_LENGTH`; `NULL` for the received ones. Copied.
 * \param result,result_length set to the whole result as JSON and its length in bytes. Release it with
 *   `mcpl_string_free`.
 *
 * May be called on worker threads, which are replaced while they wait, and on threads of the program. Fails as
 * `mcpl_call_request_input_wait` does, and with `MCPL_RPC_ERROR` if the request fails.
 *
 * \return `MCPL_OK`, or a status that `mcpl_call_next` returns.
 */
MCPL_API
mcpl_status mcpl_call_next_wait(mcpl_call *call,
                                const char *params,
                                size_t length,
                                char **result,
                                size_t *result_length);

/** @} */

/**
 * \defgroup mcpl_channels 9. Channels
 * @{
 */

/**
 * Reports the outcome of `open`.
 *
 * \param channel the channel.
 * \param failure `NULL` if the channel is open, else why it could not be opened.
 *
 * \return `MCPL_USAGE_ERROR` if the channel is not being opened and `MCPL_STALE_HANDLE` if it is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_channel_opened(mcpl_channel *channel,
                                const char *failure);

/**
 * Delivers a message from the peer.
 *
 * \param channel the channel.
 * \param message,length one JSON-RPC message and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. Invalid messages
 *   are answered or ignored as the protocol requires.
 *
 * \return `MCPL_BUSY` if more than 32 MiB are waiting, because the library is busy or the peer does not take its
 * messages. The message was not taken: stop reading, and deliver it again when `ready` of the channel's functions is
 * called (see `MCPL_BUSY`). Returns `MCPL_CLOSED` after `mcpl_channel_hang_up` and `MCPL_STALE_HANDLE` once the channel
 * is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_channel_receive(mcpl_channel *channel,
                                 const char *message,
                                 size_t length);

/**
 * Reports that the transport can take a message again, after `send` has returned `MCPL_BUSY`.
 *
 * \param channel the channel.
 *
 * May be called before `send` has returned, and without need: then `send` is called once more than necessary.
 *
 * \return `MCPL_STALE_HANDLE` if the channel is closed. Any thread.
 */
MCPL_API mcpl_status mcpl_channel_writable(mcpl_channel *channel);

/**
 * Reports that the peer has disconnected. Messages that it sent before are still processed; then the channel is
 * closed.
 *
 * \param channel the channel.
 * \param reason `NULL` for a normal end. Otherwise the transport failed for this reason, and open requests of a client
 *   fail with it.
 *
 * \return `MCPL_STALE_HANDLE` if the channel is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_channel_hang_up(mcpl_channel *channel,
                                 const char *reason);

/** @} */

/**
 * \defgroup mcpl_clients 10. Clients
 * @{
 */

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Creates a client, which is not connected.
 *
 * \param name,version of the program, as sent to servers. Add other members with `mcpl_client_set_options`.
 *
 * Release it with `mcpl_client_free`.
 *
 * \return `NULL` if an argument is `NULL` or not UTF-8, or no thread can be created; see
 * `mcpl_last_error`. Any thread.
 */
MCPL_API
MCPL_NODISCARD
mcpl_client *mcpl_client_new(const char *name,
                             const char *version);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Returns the id of the server's process, if the client has started it and is connected to it; otherwise, and for a handle
 * that was released, 0. Any thread.
 *
 * \param client the client.
 *
 * \return the id of the server's process, if the client has started it and is connected to it.
 */
MCPL_API
uint32_t mcpl_client_pid(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Returns a snapshot of what a client holds now. It needs no option and costs requests nothing.
 *
 * \param client the client.
 * \param json,length set to a JSON object and its length in bytes: `uptime` in seconds; `is_connected`; and the numbers
 *   `connections`, which have been opened so far, `requests_in_flight`, `cached_results` and `cached_bytes`. `NULL` and 0 on
 *   failure. Release it with `mcpl_string_free`.
 *
 * \return `MCPL_USAGE_ERROR` if the client was not opened, and `MCPL_CLOSED` if it was closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_stats(mcpl_client *client,
                              char **json,
                              size_t *length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Returns the metrics of a client in the text format of Prometheus, version 0.0.4; the media type is
 * `text/plain; version=0.0.4`.
 *
 * \param client the client.
 * \param text,length set to the text and its length in bytes. Empty if the option `metrics` is off. `NULL` and 0 on failure.
 *   Release it with `mcpl_string_free`.
 *
 * \return `MCPL_USAGE_ERROR` if the client was not opened, and `MCPL_CLOSED` if it was closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_metrics(mcpl_client *client,
                                char **text,
                                size_t *length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Closes a client and waits until its connection has ended and none of its callbacks runs.
 *
 * \param client the client.
 *
 * Closes the connection as the transport requires (a server process gets time to exit, then it is killed). Requests in
 * flight fail with `MCPL_CLOSED`. Notifications, log messages and lines of stderr that wait for their callbacks are delivered, at
 * most 4,096 and 32 MiB of them; while so many wait, further ones are dropped. Then the finalizers run; no callback is called after
 * that. The handle stays valid until `mcpl_client_free`; calling this function again is allowed.
 *
 * On the thread of the client's loop it dispatches the loop while it waits. If it is called on another thread, the loop's
 * thread must keep dispatching.
 *
 * \return `MCPL_WOULD_DEADLOCK`, and does nothing, within a callback or a finalizer of the client, on the I/O thread and
 * within a dispatch. Any other thread.
 */
MCPL_API
mcpl_status mcpl_client_close(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Releases a client, and closes it first if it is open. `NULL` is ignored.
 *
 * \param client the client.
 *
 * Where `mcpl_client_close` would return `MCPL_WOULD_DEADLOCK`, such as within a callback or a finalizer of the client, it is
 * closed in the background: callbacks that are about to run may still run, then the finalizers. Any thread.
 */
MCPL_API
void mcpl_client_free(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Connects to the server and waits until the connection is open.
 *
 * \param client the client.
 *
 * Set the server before, with `mcpl_client_set_url`, `mcpl_client_set_command` or another of these functions. The client
 * detects whether the server needs a handshake (up to 2025-11-25) or not (2026-07-28). After a failure you may call this
 * function again. Once connected, the client reconnects by itself if the connection is lost.
 *
 * Waits as long as the options `probe_timeout` and `open_timeout` allow.
 *
 * \return `MCPL_OK`, or
 *
 * - `MCPL_USAGE_ERROR` if no server was set, its URL is invalid, `ping_interval` or `ping_timeout` is 0, authorization needs
 *   the handler of `mcpl_client_on_authorize`, or the client is connecting or connected;
 * - `MCPL_SERVER_UNREACHABLE`, `MCPL_SERVER_EXITED` or `MCPL_HTTP_ERROR` if the server cannot be reached;
 * - `MCPL_HANDSHAKE_FAILED` if the server supports no revision that the client supports;
 * - `MCPL_HANDSHAKE_TIMED_OUT` if the server did not answer in time;
 * - `MCPL_AUTHORIZATION_FAILED` if the server requires a token and none was obtained;
 * - `MCPL_CLOSED` if the client is closed, before or while it waits;
 * - `MCPL_WOULD_DEADLOCK` on the I/O thread and within a dispatch.
 */
MCPL_API
mcpl_status mcpl_client_open(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_open`, but does not wait.
 *
 * \param client the client.
 * \param done,user a callback, and the pointer that it gets. Called with an empty result when the client is
 *   connected, or with the error; never called if this function fails.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * \return `MCPL_USAGE_ERROR` if `done` is `NULL`, no server was set, or the client is connecting or connected, and
 * `MCPL_CLOSED` if it is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_open_async(mcpl_client *client,
                                   mcpl_result_callback done,
                                   void *user,
                                   mcpl_request **request);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_HTTP))
/**
 * Connects to the server at a URL.
 *
 * \param client the client.
 * \param url the URL.
 *
 * Equal to `mcpl_client_set_url` without options, followed by `mcpl_client_open`. Waits, and returns errors, like these.
 *
 * \return `MCPL_OK`, or the status of the failure.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_connect(mcpl_client *client,
                                const char *url);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Starts a server process and connects to it.
 *
 * \param client the client.
 * \param argv the program and its arguments, each ending with a zero byte.
 * \param count their number.
 *
 * Equal to `mcpl_client_set_command` without options, followed by `mcpl_client_open`. Waits, and returns errors, like these.
 *
 * \return `MCPL_OK`, or the status of the failure.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_spawn(mcpl_client *client,
                              const char *const *argv,
                              size_t count);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Returns the server of a client and the protocol revision, as they were when it first connected. Fails if the client is not
 * connected.
 *
 * \param client the client.
 * \param json,length set to a JSON object and its length in bytes. Release it with `mcpl_string_free`. `NULL` and 0 on
 *   failure. Members: `protocolVersion`, the revision in use; `serverInfo`, the server's `Implementation`, or `null`;
 *   `serverCapabilities`; `instructions`, for the model, or `null`.
 *
 * \return `MCPL_USAGE_ERROR` if the client was not opened, `MCPL_CONNECTION_LOST` if its connection was lost and no request has
 * opened a new one, and `MCPL_CLOSED` if it is closed. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_info(mcpl_client *client,
                             char **json,
                             size_t *length);
#endif

/** @} */

/**
 * \defgroup mcpl_settings 11. Settings of clients
 * @{
 */

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets a transport that the program provides. Call it before connecting; it replaces the server that was set before.
 *
 * \param client the client.
 * \param functions the callbacks of the transport. Copied. `open` is called with a new channel for each connection; call
 *   `mcpl_channel_opened` from it or later. `send` is called with each message to the server, `close` last, when the
 *   connection ends. Pass messages from the server to `mcpl_channel_receive`, and call `mcpl_channel_hang_up` when the
 *   server disconnects.
 * \param user,finalize passed to the callbacks, and its finalizer, which runs when the client closes, another server
 *   is set, or this function fails.
 *
 * \return `MCPL_USAGE_ERROR` if `functions` or `send` is `NULL`, `size` is not set, or the client is connecting or connected.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_channel(mcpl_client *client,
                                    const mcpl_channel_functions *functions,
                                    void *user,
                                    mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the options of a client. Call it before connecting.
 *
 * \param client the client.
 * \param json,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. All members are optional; times
 *   are in seconds:
 *   - `info`: members of the client's `Implementation`, such as `title`, `icons` and `websiteUrl`. They are added to name
 *     and version, or replace them.
 *   - `capabilities`: capabilities that override those that callbacks declare, member by member; `null` removes one.
 *   - `revisions`: an array of the revisions that the client may use, such as `["2025-11-25"]`; all by default.
 *   - `era`: the era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as
 *     the revisions up to 2025-11-25 require; `"modern"` expects 2026-07-28. By default `server/discover` probes.
 *   - `probe_timeout` (3), `open_timeout` (30): timeouts of the probe and of the rest of the handshake.
 *   - `timeout` (60), `total_timeout` (3600): how long a request may go without a response or progress, and in total.
 *   - `ping_interval` (never), `ping_timeout` (30): how long the connection may be idle before the client sends a ping
 *     (2024-11-05 to 2025-11-25; 2026-07-28 has no `ping`), and the timeout of the answer. Without an answer the connection
 *     counts as lost: this is logged, and requests in flight fail with `MCPL_CONNECTION_LOST`.
 *   - `max_input_rounds` (10): how many times the server may return input requests for one request.
 *   - `max_list_bytes` (33554432): the maximum size of all pages of a list, in bytes.
 *   - `max_line_bytes` (16777216): the maximum length of a message from a server over stdio or a Unix socket, in bytes. A longer
 *     message is skipped with a warning, and a request that it answers times out.
 *   - `check_output` (`true`): whether structured content is validated against the output schema of its tool.
 *   - `trust_tool_annotations` (`false`): whether to trust the annotations of the server's tools: calls of read-only and
 *     idempotent tools are then sent again after a lost connection.
 *   - `allow_undeclared_capabilities` (`false`): whether to send requests for capabilities that the server does not declare,
 *     instead of failing with `MCPL_NOT_SUPPORTED`. Servers that use the official Python SDK before version 2 declare
 *     `"subscribe": false` even if they handle `resources/subscribe`.
 *   - `cache` (`true`): whether to cache lists and resources for as long as the server allows (2026-07-28).
 *   - `reconnect_attempts` (5), `reconnect_delay` (0.2), `reconnect_max_delay` (10): attempts to reconnect after the connection
 *     is lost, and the delays before the first and the later ones; 0 attempts disable reconnecting.
 *   - `listen` (`true`): whether to subscribe to changes on 2026-07-28 if there is a callback for notifications.
 *   - `metrics` (`false`): whether to record metrics, which `mcpl_client_metrics` returns. Needs a library with the feature
 *     `metrics`.
 *   - `traffic_file`: the path of a file that all messages are appended to as JSON lines, without secrets, for development
 *     (docs/traffic-files.md; the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none).
 *   - `span_contents` (`false`): whether spans of tool calls contain their arguments and results, without obvious secrets. Spans
 *     need a library that was built with the feature `otlp`.
 *   - `middleware`: an array of what is put around the client's requests, the outermost first. Each entry is an object with one
 *     of the members
 *     - `retry`: `attempts` (3), `first_delay` (0.2), `max_delay` (10), `tools` (names of tools that may run twice). Sends
 *       requests again that the server has not performed, or that may be performed twice;
 *     - `circuit_breaker`: `failures` (5), `reset` (30). After so many failures in a row, requests fail with
 *       `MCPL_SERVER_UNREACHABLE` for that time, and nothing is sent;
 *     - `tool_policy`: `allowed`, `denied`, `approval` (names of tools, in which `*` stands for any characters), `pin` (`false`),
 *       `pin_file`. Calls of the tools in `approval` need that of `mcpl_client_on_tool_call`, which runs for no others then.
 *       Calls of other tools fail with `MCPL_TOOL_CALL_REFUSED`, and lists do not have them. With pins, so do calls of a tool
 *       whose definition has changed since it was first listed; `pin_file` keeps the definitions;
 *     - `audit_log`: as of `mcpl_server_add_built_in_middleware`, with a record of each request that the client sends. A
 *       request whose record cannot be written fails with `MCPL_TRANSPORT_ERROR`;
 *     - `redaction`, if the library was built with this feature: as of `mcpl_server_add_built_in_middleware`, for results before
 *       the caller gets them, and with `arguments` for arguments before they are sent.
 *
 * A further call replaces all options except `info`, whose members are merged.
 *
 * \return `MCPL_USAGE_ERROR`, and changes nothing, if an option is invalid or the client is connecting or connected. Any
 * thread.
 */
MCPL_API
mcpl_status mcpl_client_set_options(mcpl_client *client,
                                    const char *json,
                                    size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets how long requests wait for a response. Call it before connecting, and after `mcpl_client_set_options`, which replaces
 * it. The same as its options `timeout` and `total_timeout`.
 *
 * \param client the client.
 * \param timeout_ms how long a request may go without a response or progress, in milliseconds. 0: 60 s; negative: no limit.
 * \param total_timeout_ms how long a request may take in total, in milliseconds. 0: an hour, or `timeout_ms` if that is longer;
 *   negative: no limit.
 *
 * \return `MCPL_USAGE_ERROR` if the client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_timeout_ms(mcpl_client *client,
                                       int64_t timeout_ms,
                                       int64_t total_timeout_ms);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_AUTH))
/**
 * Sets the access token that is sent with each request to a server at a URL. Call it before connecting; it applies to any
 * URL, whether that is set before or afterwards, and replaces `auth` in its options.
 *
 * \param client the client.
 * \param token the token, without `Bearer`; or `NULL` to remove it. Copied.
 *
 * Other servers get no token.
 *
 * \return `MCPL_USAGE_ERROR` if the token is not UTF-8 or the client is connecting or connected.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_bearer(mcpl_client *client,
                                   const char *token);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_HTTP))
/**
 * Sets a header that is sent with each request to a server at a URL. Call it before connecting; it applies to any URL,
 * whether that is set before or afterwards, and replaces a header of the same name in its options.
 *
 * \param client the client.
 * \param name the name; upper and lower case are the same. Copied.
 * \param value the value, or `NULL` to remove what this function has set. Copied.
 *
 * Other servers get no headers.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is not UTF-8, `name` is `NULL` or the client is
 * connecting or connected; a header that HTTP does not allow is reported when the client connects. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_header(mcpl_client *client,
                                   const char *name,
                                   const char *value);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Sets an environment variable of the process that the client starts. Call it before connecting; it applies to any command,
 * whether that is set before or afterwards, and replaces a variable of the same name in its options.
 *
 * \param client the client.
 * \param name the name. Copied.
 * \param value the value, or `NULL` to remove what this function has set. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is not UTF-8, `name` is `NULL` or the client is connecting or connected. Any
 * thread.
 */
MCPL_API
mcpl_status mcpl_client_set_env(mcpl_client *client,
                                const char *name,
                                const char *value);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Sets the working directory of the process that the client starts. Call it before connecting; it applies to any command,
 * whether that is set before or afterwards, and replaces `cwd` in its options.
 *
 * \param client the client.
 * \param path the path, or `NULL` to remove what this function has set. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if the path is not UTF-8 or the client is connecting or connected; a directory that does not
 * exist is reported when the client connects. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_cwd(mcpl_client *client,
                                const char *path);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Runs all callbacks of a client on the thread that dispatches a loop. Call it once, before connecting.
 *
 * \param client the client.
 * \param loop the loop.
 *
 * Keep the loop as long as the client: after the loop is freed, callbacks run on worker threads.
 *
 * \return `MCPL_USAGE_ERROR` if the client already uses a loop or is connecting or connected. Any thread.
 */
MCPL_API mcpl_status mcpl_client_use_loop(mcpl_client *client, mcpl_loop *loop);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_HTTP))
/**
 * Sets the URL of the server. Call it before connecting; it replaces the server that was set before.
 *
 * \param client the client.
 *
 * The client uses Streamable HTTP, or HTTP+SSE if the server supports nothing else (`basic/transports`).
 *
 * \param url such as `"https://example.org/mcp"`.
 * \param options a JSON object that ends with a zero byte, or `NULL` for defaults; times are in seconds:
 *   - `headers`: headers to add to each request, an array of pairs: `[["authorization", "Bearer ..."]]`.
 *   - `proxy`: a URL, or `"direct"` for none; by default the environment decides (`HTTPS_PROXY` and the like).
 *   - `tls_roots`: more certificates to trust, as PEM; `only_tls_roots` (`false`): whether to trust no others.
 *   - `connect_timeout` (10), `max_redirects` (5), `max_body_bytes` (16 MiB): limits.
 *   - `resume_attempts` (5), `resume_delay` (0.5), `resume_max_delay` (30): attempts to resume a broken stream, and their delays.
 *   - `auth`: how the client is authorized (`basic/authorization`): `{"bearer": token}`, `{"source": {}}` for tokens that the
 *     program returns, or `{"oauth": {...}}` with
 *     - `client_name`, required: the name shown to users; `scopes`: requested in addition to those that the server requires.
 *     - `user_agent`: `{"loopback": {}}` (the system's browser; `redirect_uri`, `timeout` (300), `browser`: `"system"`, `"none"`
 *       or `"host"`, `unopened` (`false`): whether to pass URLs to the program for which no browser was opened),
 *       `{"terminal": {}}` (`redirect_uri`, `timeout`) or `{"host": {"redirect_uri": ...}}`. Without one, no user is prompted.
 *     - `store`: `"memory"` (the default), `{"file": directory}`, `{"keyring": name}` where the build has it (`FEATURES=keyring`), or
 *       `{"host": {}}` (`locks` (`false`)).
 *     - `credentials`: an array of existing registrations: `client_id`, `issuer`, `secret`, `private_key` (PEM),
 *       `algorithm`, `key_id`, `auth`; or `client_id_metadata_url`.
 *     - `grant`: `"user"` (the default), `"client_credentials"`, `"workload_identity"`, or `{"enterprise": {...}}` with
 *       `token_endpoint`, `client_id`, `secret`.
 *     - `client_uri`, `logo_uri`, `software_id`, `software_version`, `account`, `dpop` (`false`), `require_pkce` (`true`),
 *       `allow_private_addresses` (`false`).
 *
 *     Values `"host"` and `source` call the handler of `mcpl_client_on_authorize`.
 *
 * Both are copied.
 *
 * \return `MCPL_USAGE_ERROR` if an option is invalid or the client is connecting or connected; an invalid
 * URL is reported when the client connects. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_url(mcpl_client *client,
                                const char *url,
                                const char *options);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Sets the command that starts the server (`basic/transports`, stdio). Call it before connecting; it replaces the server
 * that was set before.
 *
 * \param client the client.
 *
 * When the client closes, it closes the process's stdin, then asks the process to terminate, then kills it and its
 * children. The process also ends if this process ends for any reason.
 *
 * \param argv,count the program, a path or a name to look up in `PATH`, and its arguments, each ending with a zero byte;
 *   and their number.
 * \param options a JSON object that ends with a zero byte, or `NULL` for defaults:
 *   - `env`: an object of environment variables to add. Of this process's environment the server gets `PATH`, `HOME`, `LANG`
 *     and the like, or everything with `inherit_env`.
 *   - `cwd`: the working directory.
 *   - `stderr`: `"capture"` (the default: the last lines become part of the error if the process exits, and
 *     `mcpl_client_on_stderr` receives them), `"inherit"` or `"null"`.
 *   - `exit_timeout` (2): how many seconds the process may take to exit.
 *
 * Everything is copied.
 *
 * \return `MCPL_USAGE_ERROR` if `argv` is empty, an option is invalid or the client is connecting or
 * connected; a program that cannot be started is reported when the client connects. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_command(mcpl_client *client,
                                    const char *const *argv,
                                    size_t count,
                                    const char *options);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Sets the Unix socket of the server, for newline-delimited messages. Call it before connecting; it replaces the server
 * that was set before.
 *
 * \param client the client.
 * \param path the path of the socket, ending with a zero byte. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if `path` is `NULL` or not UTF-8, or the client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_socket(mcpl_client *client,
                                   const char *path);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets a server in this process, which needs no transport of its own. Call it before connecting; it replaces the server
 * that was set before.
 *
 * \param client the client.
 * \param server the server.
 *
 * Keep the server as long as the client: after it is closed, requests to it fail.
 *
 * \return `MCPL_STALE_HANDLE` if the server was freed, and `MCPL_USAGE_ERROR` if the client is connecting or connected. Any
 * thread.
 */
MCPL_API
mcpl_status mcpl_client_set_server(mcpl_client *client,
                                   mcpl_server *server);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets a server in this process like `mcpl_client_set_server`, and what its handlers see of the client.
 *
 * \param client the client.
 * \param server the server.
 * \param options a JSON object that ends with a zero byte, or `NULL` for none. Copied.
 *   - `principal`: the client's identity, as a token or a transport would authenticate it: `subject`, `issuer`,
 *     `client_id`, `audience`, `scopes`, `claims`, `expires_at` (seconds since 1970). Scopes hold as over HTTP. Without it
 *     the client may use everything.
 *   - `headers`: an array of pairs of name and value, which `mcpl_call_info` shows. The server itself does not read them.
 *
 * \return `MCPL_STALE_HANDLE` if the server was freed, and `MCPL_USAGE_ERROR` if an option is invalid or the client is
 * connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_server_with(mcpl_client *client,
                                        mcpl_server *server,
                                        const char *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets a server that a host's configuration file describes, such as `mcp.json`. Call it before connecting; it replaces the
 * server that was set before.
 *
 * \param client the client.
 *
 * The file has the object `mcpServers`, or `servers` as VS Code writes it. A server has `command` with `args`, `env` and
 * `cwd`, or `url` with `headers`; `type`, if present, is `stdio`, `http`, `streamable-http` or `sse`. In these strings
 * `${NAME}` and `${env:NAME}` stand for an environment variable, and `${NAME:-text}` for `text` if it is not set. Comments
 * and trailing commas are allowed; members that only hosts use are ignored.
 *
 * \param path the path of the file, ending with a zero byte.
 * \param name the name of the server, ending with a zero byte, or `NULL` for the only one that is not disabled.
 *
 * Both are copied.
 *
 * \return `MCPL_USAGE_ERROR` if the file cannot be read, has another form or has no such server; if it has
 * several and `name` is `NULL`; if an environment variable is not set; or if the client is connecting or connected. Any
 * thread.
 */
MCPL_API
mcpl_status mcpl_client_set_config(mcpl_client *client,
                                   const char *path,
                                   const char *name);
#endif

/** @} */

/**
 * \defgroup mcpl_callbacks 12. Callbacks of clients
 * @{
 */

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler for elicitation, forms and URLs, and declares the capability (`elicitation/create`;
 * `client/elicitation`). Call it before connecting.
 *
 * \param client the client.
 *
 * The handler is the same on all revisions, whether the server sends a request or returns input requests in a result
 * (2026-07-28).
 *
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * \return `MCPL_USAGE_ERROR` if `handler` is `NULL` or the client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_elicit(mcpl_client *client,
                                  mcpl_input_request_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler for sampling, and declares the capability (`sampling/createMessage`; `client/sampling`). Call it before
 * connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * If the user rejects the request, refuse it with code -1.
 * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
 *
 * For the parameters and errors see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_elicit` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_sample(mcpl_client *client,
                                  mcpl_input_request_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler that lists the root directories, and declares the capability (`roots/list`; `client/roots`). Call it
 * before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * Call `mcpl_client_roots_changed` when the list changes.
 * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
 *
 * Each `uri` in the answer is a `file://` URI or an absolute path, which is sent as such a URI.
 *
 * For the parameters and errors see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_elicit` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_list_roots(mcpl_client *client,
                                      mcpl_input_request_handler handler,
                                      void *user,
                                      mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler for requests of the server with a custom method, such as `"acme/pick"`. Call it before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * The handler answers with a JSON object. No capability is declared: declare the extension that defines the method in the
 * option `capabilities` (`mcpl_client_set_options`).
 *
 * \param method a method that no revision of the protocol defines, ending with a zero byte. A further call for the same
 *   method replaces its handler.
 *
 * For the other parameters see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_USAGE_ERROR` if the protocol defines the method, it begins with `notifications/`, `rpc.`, `auth/` or `host/`
 * (which are reserved), `handler` is `NULL`, or the client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_request(mcpl_client *client,
                                   const char *method,
                                   mcpl_input_request_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler that resolves results with a `resultType` of an extension (2026-07-28). Call it before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * The handler's parameters are the `method` and `params` of the request, and the `result` as received. It answers with the
 * ordinary result of the method, and may send requests to get it; the caller of the method receives only this result. If
 * it refuses, the call fails with `MCPL_INPUT_REQUEST_FAILED`. Requests with the option `manual_results` return the result as
 * received. Declare the extension in the option `capabilities` (`mcpl_client_set_options`).
 *
 * \param result_type the type, ending with a zero byte. A further call for the same type replaces its handler.
 *
 * For the other parameters see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_USAGE_ERROR` if the protocol defines the type (`complete`, `input_required`), `handler` is `NULL`, or the
 * client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_result_type(mcpl_client *client,
                                       const char *result_type,
                                       mcpl_input_request_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler that approves tool calls before they are sent, for the user's consent (`server/tools`, security
 * considerations). Call it before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * The handler's parameters are `id`, unique among the calls of this process, the `name` of the tool, its `arguments`, and
 * the `annotations` of the listed tool, if it was listed; trust these only if you trust the server. Any answer approves
 * the call. `mcpl_input_request_refuse` refuses it, with the message as the reason: the call fails with
 * `MCPL_TOOL_CALL_REFUSED`. The call's timeouts begin when it is sent.
 *
 * For the parameters of this function and its errors see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_elicit` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_tool_call(mcpl_client *client,
                                     mcpl_input_request_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the handler that receives the outcome of each tool call, for an audit log. Call it before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * The handler's parameters are the `call`, as in `mcpl_client_on_tool_call`, and either the `result` as the server sent it
 * or the `error`: its `kind`, such as `"request_timed_out"` (`"request_cancelled"` if the caller cancelled the call), and
 * its `message`. The caller gets the outcome when the handler has answered; the content of the answer is ignored.
 *
 * For the parameters of this function and its errors see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_elicit` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_tool_outcome(mcpl_client *client,
                                        mcpl_input_request_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_AUTH))
/**
 * Sets the handler for the parts of authorization that the `auth` options of `mcpl_client_set_url` leave to the program
 * (`basic/authorization`). Call it before connecting.
 *
 * \param client the client.
 * \param handler called with each input request; see `mcpl_input_request_handler`.
 * \param user,finalize passed to the handler, and its finalizer, which runs when the client closes, another handler
 *   replaces this one, or this function fails.
 *
 * The member `method` of the handler's parameters names the operation. If it is refused, requests that depend on it fail
 * with `MCPL_AUTHORIZATION_FAILED`.
 *
 * - `auth/token`: return a token for `server`. `refused`: whether the server rejected the previous token; `scopes`: the
 *   required scopes. Answer with `token`, and with `expires_in` in seconds if it expires.
 * - `auth/open`: send the user to `url`. Answer with `url`, the address of the redirect, including its query.
 * - `auth/browser`: open `url` in a browser. Answer with `{}`.
 * - `auth/unopened`: show the user the `url` for which no browser was opened, and the `reason`. Answer with `{}`.
 * - `auth/assertion`, `auth/id_token`: return the workload's assertion or the user's ID token for `audience`. Answer with
 *   a member `assertion` or `id_token`.
 * - `auth/store/load`: answer with the `value` that was saved under `key`, or without one.
 * - `auth/store/save`: save `value`, which is base64, under `key`. `auth/store/remove`: delete it.
 * - `auth/store/lock`: exclude other processes until `auth/store/unlock`. Answer with `lock`, which is passed to the latter.
 *
 * For the parameters of this function and its errors see `mcpl_client_on_elicit`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_elicit` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_authorize(mcpl_client *client,
                                     mcpl_input_request_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the callback for notifications of the server. Call it before connecting.
 *
 * \param client the client.
 *
 * It receives changes of lists and resources, log messages and custom notifications, but not progress: set `progress` in
 * the request's options for that. On 2026-07-28 the client subscribes to changes (`subscriptions/listen`) if this
 * callback is set.
 *
 * \param listener called with one notification at a time, in order; see `mcpl_notification_listener`.
 * \param user,finalize passed to the callback, and its finalizer, which runs when the client closes, another callback
 *   replaces this one, or this function fails.
 *
 * \return `MCPL_USAGE_ERROR` if `listener` is `NULL` or the client is connecting or connected. Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_notification(mcpl_client *client,
                                        mcpl_notification_listener listener,
                                        void *user,
                                        mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the callback for log messages of the server (`notifications/message`; `server/utilities/logging`). Call it before
 * connecting.
 *
 * \param client the client.
 * \param listener called with one notification at a time, in order; see `mcpl_notification_listener`.
 * \param user,finalize passed to the callback, and its finalizer, which runs when the client closes, another callback
 *   replaces this one, or this function fails.
 *
 * `mcpl_client_set_log_level` sets the minimum level.
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * For the parameters and errors see `mcpl_client_on_notification`, whose callback receives log messages, too.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_notification` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_log(mcpl_client *client,
                               mcpl_log_listener listener,
                               void *user,
                               mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the callback for changes of the connection, for hosts that show whether a server can be reached. Call it before
 * connecting.
 *
 * \param client the client.
 * \param listener called with one notification at a time, in order; see `mcpl_notification_listener`.
 * \param user,finalize passed to the callback, and its finalizer, which runs when the client closes, another callback
 *   replaces this one, or this function fails.
 *
 * `MCPL_CONNECTION_EVENT_CLOSED` is reported while `mcpl_client_close` waits, or in the background after `mcpl_client_free`.
 *
 * For the parameters and errors see `mcpl_client_on_notification`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_notification` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_connection(mcpl_client *client,
                                      mcpl_connection_listener listener,
                                      void *user,
                                      mcpl_finalizer finalize);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Sets the callback for lines that the server process writes to stderr. Call it before connecting.
 *
 * \param client the client.
 * \param listener called with one notification at a time, in order; see `mcpl_notification_listener`.
 * \param user,finalize passed to the callback, and its finalizer, which runs when the client closes, another callback
 *   replaces this one, or this function fails.
 *
 * Applies to servers that the client starts (`mcpl_client_set_command`, `mcpl_client_spawn`) with the option
 * `"stderr": "capture"`, the default.
 *
 * For the parameters and errors see `mcpl_client_on_notification`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_on_notification` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_on_stderr(mcpl_client *client,
                                  mcpl_stderr_listener listener,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

/** @} */

/**
 * \defgroup mcpl_requests 13. Requests of clients
 * @{
 */

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sends a request and waits for its result.
 *
 * \param client the client.
 * \param method such as `"tools/call"`, ending with a zero byte.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none. It may
 *   contain `_meta`; required members are added to it.
 * \param options request options, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is JSON, as the server sent it.
 *
 * Waits as long as `timeout` and `total_timeout` of the options or the client allow. Any thread.
 *
 * \return `MCPL_OK`, or
 *
 * - `MCPL_RPC_ERROR` if the server returned an error: see `mcpl_error_rpc_code` and `mcpl_error_details`;
 * - `MCPL_REQUEST_TIMED_OUT`, `MCPL_HTTP_ERROR`, `MCPL_CONNECTION_LOST` or `MCPL_SERVER_EXITED` if no response arrived:
 *   `mcpl_error_details` says whether it is safe to send the request again;
 * - `MCPL_INVALID_RESPONSE` if the response violates the protocol;
 * - `MCPL_INPUT_REQUEST_FAILED` if an input request of the server was not answered (2026-07-28);
 * - `MCPL_NOT_SUPPORTED` if the server or the revision does not support the method;
 * - `MCPL_SERVER_UNREACHABLE`, `MCPL_HANDSHAKE_FAILED` or `MCPL_HANDSHAKE_TIMED_OUT` if reconnecting failed;
 * - `MCPL_AUTHORIZATION_FAILED` if the server requires a token, or scopes, that were not obtained;
 * - `MCPL_SESSION_EXPIRED` if the server ended the session between the pages of a list, or again and again;
 * - `MCPL_TOOL_CALL_REFUSED` if the handler of `mcpl_client_on_tool_call` refused the tool call;
 * - `MCPL_LIMIT_EXCEEDED` if a limit was reached, such as that on the size of a list;
 * - `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, `MCPL_CLOSED` if it is closed, before
 *   or while it waits;
 * - `MCPL_WOULD_DEADLOCK` on the I/O thread and within a dispatch; nothing is sent.
 */
MCPL_API
mcpl_status mcpl_client_request(mcpl_client *client,
                                const char *method,
                                const char *params,
                                size_t length,
                                const mcpl_request_options *options,
                                char **result,
                                size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_request`, but does not wait.
 *
 * \param client the client.
 * \param method such as `"tools/call"`, ending with a zero byte.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none. It may
 *   contain `_meta`; required members are added to it.
 * \param options request options, or `NULL` for the client's settings.
 * \param done,user a callback that gets the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_request_async(mcpl_client *client,
                                      const char *method,
                                      const char *params,
                                      size_t length,
                                      const mcpl_request_options *options,
                                      mcpl_result_callback done,
                                      void *user,
                                      mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Calls a tool and waits for its result (`tools/call`; `server/tools`).
 *
 * \param client the client.
 * \param name the tool's name, ending with a zero byte.
 * \param arguments,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
 * \param options request options, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON `CallToolResult`. A result with `isError` is returned as a result, not as an error.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 * \return `MCPL_INVALID_RESPONSE` also if the structured content does not match the output schema of the listed tool.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_call_tool(mcpl_client *client,
                                  const char *name,
                                  const char *arguments,
                                  size_t length,
                                  const mcpl_request_options *options,
                                  char **result,
                                  size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_call_tool`, but does not wait.
 *
 * \param client the client.
 * \param name the tool's name, ending with a zero byte.
 * \param arguments,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
 * \param options request options, or `NULL` for the client's settings.
 * \param done,user a callback that gets the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_call_tool_async(mcpl_client *client,
                                        const char *name,
                                        const char *arguments,
                                        size_t length,
                                        const mcpl_request_options *options,
                                        mcpl_result_callback done,
                                        void *user,
                                        mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Reads a resource and waits for its contents (`resources/read`; `server/resources`).
 *
 * \param client the client.
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON `ReadResourceResult`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_read_resource(mcpl_client *client,
                                      const char *uri,
                                      const mcpl_request_options *options,
                                      char **result,
                                      size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_read_resource`, but does not wait.
 *
 * \param client the client.
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings.
 * \param done,user a callback that gets the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_read_resource_async(mcpl_client *client,
                                            const char *uri,
                                            const mcpl_request_options *options,
                                            mcpl_result_callback done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Gets a prompt with arguments and waits for it (`prompts/get`; `server/prompts`).
 *
 * \param client the client.
 * \param name the prompt's name, ending with a zero byte.
 * \param arguments,length a JSON object whose members are strings, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for
 *   none.
 * \param options request options, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON `GetPromptResult`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_get_prompt(mcpl_client *client,
                                   const char *name,
                                   const char *arguments,
                                   size_t length,
                                   const mcpl_request_options *options,
                                   char **result,
                                   size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_get_prompt`, but does not wait.
 *
 * \param client the client.
 * \param name the prompt's name, ending with a zero byte.
 * \param arguments,length a JSON object whose members are strings, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for
 *   none.
 * \param options request options, or `NULL` for the client's settings.
 * \param done,user a callback that gets the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_get_prompt_async(mcpl_client *client,
                                         const char *name,
                                         const char *arguments,
                                         size_t length,
                                         const mcpl_request_options *options,
                                         mcpl_result_callback done,
                                         void *user,
                                         mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Completes an argument of a prompt or resource template and waits for the values (`completion/complete`;
 * `server/utilities/completion`).
 *
 * \param client the client.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`: `ref`, the prompt or template;
 *   `argument`, with its `name` and the `value` typed so far; and optionally `context`.
 * \param options request options, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON `CompleteResult`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_complete(mcpl_client *client,
                                 const char *params,
                                 size_t length,
                                 const mcpl_request_options *options,
                                 char **result,
                                 size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_complete`, but does not wait.
 *
 * \param client the client.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`: `ref`, the prompt or template;
 *   `argument`, with its `name` and the `value` typed so far; and optionally `context`.
 * \param options request options, or `NULL` for the client's settings.
 * \param done,user a callback that gets the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_complete_async(mcpl_client *client,
                                       const char *params,
                                       size_t length,
                                       const mcpl_request_options *options,
                                       mcpl_result_callback done,
                                       void *user,
                                       mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all tools of a server (`tools/list`; `server/tools`) and waits for the list.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON array of `Tool` with the items of all pages. A list that is still valid in the cache
 * (2026-07-28) is returned without a request, unless the options set `fresh`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_INVALID_RESPONSE` also if the list does
 * not end.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_tools(mcpl_client *client,
                                   const mcpl_request_options *options,
                                   char **result,
                                   size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_list_tools`, but does not wait.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param done,user called with the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_tools_async(mcpl_client *client,
                                         const mcpl_request_options *options,
                                         mcpl_result_callback done,
                                         void *user,
                                         mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all resources of a server (`resources/list`; `server/resources`) and waits for the list.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON array of `Resource` with the items of all pages. A list that is still valid in the cache
 * (2026-07-28) is returned without a request, unless the options set `fresh`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_INVALID_RESPONSE` also if the list does
 * not end.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_resources(mcpl_client *client,
                                       const mcpl_request_options *options,
                                       char **result,
                                       size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_list_resources`, but does not wait.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param done,user called with the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_resources_async(mcpl_client *client,
                                             const mcpl_request_options *options,
                                             mcpl_result_callback done,
                                             void *user,
                                             mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all resource templates of a server (`resources/templates/list`; `server/resources`) and waits for the list.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON array of `ResourceTemplate` with the items of all pages. A list that is still valid in the
 * cache (2026-07-28) is returned without a request, unless the options set `fresh`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_INVALID_RESPONSE` also if the list does
 * not end.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_resource_templates(mcpl_client *client,
                                                const mcpl_request_options *options,
                                                char **result,
                                                size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_list_resource_templates`, but does not wait.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param done,user called with the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_resource_templates_async(mcpl_client *client,
                                                      const mcpl_request_options *options,
                                                      mcpl_result_callback done,
                                                      void *user,
                                                      mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all prompts of a server (`prompts/list`; `server/prompts`) and waits for the list.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param result,result_length set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
 *
 * The result is a JSON array of `Prompt` with the items of all pages. A list that is still valid in the cache
 * (2026-07-28) is returned without a request, unless the options set `fresh`.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_INVALID_RESPONSE` also if the list does
 * not end.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_prompts(mcpl_client *client,
                                     const mcpl_request_options *options,
                                     char **result,
                                     size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_list_prompts`, but does not wait.
 *
 * \param client the client.
 * \param options options of the request for each page, or `NULL` for the client's settings.
 * \param done,user called with the result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_list_prompts_async(mcpl_client *client,
                                           const mcpl_request_options *options,
                                           mcpl_result_callback done,
                                           void *user,
                                           mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Cancels a request (`basic/utilities/cancellation`).
 *
 * \param request the request.
 *
 * The server is notified, and the request's callback is called with `MCPL_REQUEST_CANCELLED`.
 *
 * \return `MCPL_STALE_HANDLE` if the request has ended; its callback was or will be called with the outcome. Does not wait.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_request_cancel(mcpl_request *request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Pings the server and waits for the answer (`ping`; `basic/utilities/ping`).
 *
 * \param client the client.
 *
 * On 2026-07-28, which has no `ping`, it sends `server/discover`.
 *
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API mcpl_status mcpl_client_ping(mcpl_client *client, const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_ping`, but does not wait.
 *
 * \param client the client.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_ping_async(mcpl_client *client,
                                   const mcpl_request_options *options,
                                   mcpl_result_callback done,
                                   void *user,
                                   mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the minimum level of log messages that the server sends, and waits until it is set (`server/utilities/logging`).
 *
 * \param client the client.
 *
 * It applies to the session, or on 2026-07-28 to each further request. The client sets it again after it reconnects.
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * \param level the minimum level, an `mcpl_log_level`.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_log_level(mcpl_client *client,
                                      mcpl_log_level level,
                                      const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_set_log_level`, but does not wait.
 *
 * \param client the client.
 * \param level the minimum level, an `mcpl_log_level`.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_set_log_level_async(mcpl_client *client,
                                            mcpl_log_level level,
                                            const mcpl_request_options *options,
                                            mcpl_result_callback done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Subscribes to updates of a resource and waits until that is done (`server/resources`, subscriptions).
 *
 * \param client the client.
 *
 * The callback of `mcpl_client_on_notification` receives `notifications/resources/updated`. The client subscribes again
 * after it reconnects.
 *
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_subscribe(mcpl_client *client,
                                  const char *uri,
                                  const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_subscribe`, but does not wait.
 *
 * \param client the client.
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_subscribe_async(mcpl_client *client,
                                        const char *uri,
                                        const mcpl_request_options *options,
                                        mcpl_result_callback done,
                                        void *user,
                                        mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Unsubscribes from updates of a resource and waits until that is done.
 *
 * \param client the client.
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_unsubscribe(mcpl_client *client,
                                    const char *uri,
                                    const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_unsubscribe`, but does not wait.
 *
 * \param client the client.
 * \param uri the resource's URI, ending with a zero byte.
 * \param options request options, or `NULL` for the client's settings. `progress` is not called.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_unsubscribe_async(mcpl_client *client,
                                          const char *uri,
                                          const mcpl_request_options *options,
                                          mcpl_result_callback done,
                                          void *user,
                                          mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Notifies the server that the list of roots has changed, and waits until the notification is sent (`client/roots`).
 *
 * \param client the client.
 *
 * On 2026-07-28, which has no such notification, nothing is sent.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_roots_changed(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_roots_changed`, but does not wait.
 *
 * \param client the client.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_roots_changed_async(mcpl_client *client,
                                            mcpl_result_callback done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sends a notification and waits until it is sent.
 *
 * \param client the client.
 * \param method such as `"notifications/x-mine"`, ending with a zero byte.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
 *
 * Waits, and returns errors, like `mcpl_client_request`.
 *
 * \return `MCPL_OK`, or a status that `mcpl_client_request` returns.
 *
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_notify(mcpl_client *client,
                               const char *method,
                               const char *params,
                               size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Like `mcpl_client_notify`, but does not wait.
 *
 * \param client the client.
 * \param method such as `"notifications/x-mine"`, ending with a zero byte.
 * \param params,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
 * \param done,user called when the operation has ended, with an empty result or the error, and the pointer passed to it.
 * \param request set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
 *   failure. The argument may be `NULL`.
 *
 * `done` is called exactly once if this function succeeds, and never if it fails.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
 * Any thread.
 */
MCPL_API
mcpl_status mcpl_client_notify_async(mcpl_client *client,
                                     const char *method,
                                     const char *params,
                                     size_t length,
                                     mcpl_result_callback done,
                                     void *user,
                                     mcpl_request **request);
#endif

/** @} */

/**
 * \defgroup mcpl_input_requests 14. Input requests to clients
 * @{
 */

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Answers an input request.
 *
 * \param request the request.
 * \param result,length a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`: an `ElicitResult`,
 *   `CreateMessageResult` or `ListRootsResult` (`client/elicitation`, `client/sampling`, `client/roots`). Copied.
 *
 * If the user declines or cancels, answer with an `ElicitResult` whose `action` says so. `content` is sent for accepted
 * forms only; fields that it omits get the defaults of the form. Absolute paths among the URIs of roots are sent as
 * `file://` URIs.
 *
 * \return `MCPL_USAGE_ERROR`, and the request stays open, if `result` is not a JSON object, the content of an accepted
 * form does not match the requested schema, the sampled message is invalid, or a root is neither an absolute path nor a
 * `file://` URI. Returns `MCPL_STALE_HANDLE` if the request has ended. Does not wait. Any thread.
 */
MCPL_API
mcpl_status mcpl_input_request_answer(mcpl_input_request *request,
                                      const char *result,
                                      size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Answers an input request with a JSON-RPC error. That of an extension's result type goes to the caller of this client.
 *
 * \param request the request.
 * \param code the error code, such as -1 if the user rejects sampling (`client/sampling`), or -32603 for a failure.
 * \param message the error message, ending with a zero byte. Copied.
 * \param data,data_length the error's `data` as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL`. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid (the request stays open) and `MCPL_STALE_HANDLE` if the request has
 * ended. Does not wait. Any thread.
 */
MCPL_API
mcpl_status mcpl_input_request_refuse(mcpl_input_request *request,
                                      int64_t code,
                                      const char *message,
                                      const char *data,
                                      size_t data_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Answers an input request with the error of another function.
 *
 * \param request the request.
 *
 * For the handler of an extension's result type (`mcpl_client_on_result_type`) whose own request failed: the call that
 * the result belongs to fails with the same status, message and details, except that it is not safe to send it again.
 * Any other input request is answered with the JSON-RPC error -32603 and the message.
 *
 * \param status,message see `mcpl_error_status` and `mcpl_error_message`. The message ends with a zero byte. Copied.
 * \param details see `mcpl_error_details`; or `NULL`. Copied.
 *
 * \return `MCPL_USAGE_ERROR` if an argument is invalid (the request stays open) and `MCPL_STALE_HANDLE` if the request has
 * ended. Does not wait. Any thread.
 */
MCPL_API
mcpl_status mcpl_input_request_fail(mcpl_input_request *request,
                                    mcpl_status status,
                                    const char *message,
                                    const char *details);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Returns whether an input request no longer needs an answer.
 *
 * \param request the request.
 *
 * `true` if the server cancelled it, if the client's request that led to it ended (2026-07-28), if the client is closed,
 * or if it was answered or refused. Any thread.
 *
 * \return whether an input request no longer needs an answer.
 */
MCPL_API
bool mcpl_input_request_is_cancelled(mcpl_input_request *request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets the callback for the cancellation of an input request, for example to close a dialog.
 *
 * \param request the request.
 * \param callback called at most once, where callbacks run. Not called if the request is answered or refused. Replaces the
 *   callback that was set before.
 * \param user,finalize passed to the callback, and its finalizer, which runs when the request has ended, when another
 *   callback replaces this one, or if this function fails.
 *
 * \return `MCPL_USAGE_ERROR` if `callback` is `NULL`, and `MCPL_STALE_HANDLE` if the request has ended; the callback is not
 * called then. Any thread.
 */
MCPL_API
mcpl_status mcpl_input_request_on_cancel(mcpl_input_request *request,
                                         mcpl_input_request_cancelled callback,
                                         void *user,
                                         mcpl_finalizer finalize);
#endif

/** @} */

/**
 * \defgroup mcpl_json 15. JSON
 * @{
 */

/**
 * Finds a value in a JSON text, without copying.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`. All of it is validated.
 * \param pointer JSON pointer (RFC 6901) that ends with a zero byte, such as `"/content/0/text"`. `""` is the whole
 *   text; write `~1` for a slash and `~0` for a tilde in a member name.
 * \param value,value_length set to the start of the value within `json` and to its length in bytes, without
 *   surrounding white space. No zero byte follows, and there is nothing to release: the value is valid as long as
 *   `json`. Each may be `NULL`. `NULL` and 0 on failure.
 *
 * The value can be passed to the other `mcpl_json_...` functions.
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if the text is not valid JSON (including
 * objects with duplicate member names) or the pointer is invalid. Any thread.
 */
MCPL_API
mcpl_status mcpl_json_find(const char *json,
                           size_t length,
                           const char *pointer,
                           const char **value,
                           size_t *value_length);

/**
 * Returns the type of a JSON value.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param kind set to the type; unchanged on failure.
 *
 * \return `MCPL_USAGE_ERROR` if the text is not valid JSON. Any thread.
 */
MCPL_API mcpl_status mcpl_json_kind_of(const char *json, size_t length, mcpl_json_kind *kind);

/**
 * Reads an integer.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param pointer JSON pointer to the number, as in `mcpl_json_find`.
 * \param number set to the number; unchanged on failure.
 *
 * Any notation of a whole number is accepted: `7`, `7.0` and `7e0`.
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it is not a 64-bit integer or
 * `mcpl_json_find` would. Any thread.
 */
MCPL_API mcpl_status mcpl_json_int64(const char *json, size_t length, const char *pointer, int64_t *number);

/**
 * Reads a number.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param pointer JSON pointer to the number, as in `mcpl_json_find`.
 * \param number set to the nearest double; unchanged on failure.
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it is not a number, is out of the
 * range of a double, or `mcpl_json_find` would. Any thread.
 */
MCPL_API
mcpl_status mcpl_json_double(const char *json,
                             size_t length,
                             const char *pointer,
                             double *number);

/**
 * Reads `true` or `false`.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param pointer JSON pointer to the value, as in `mcpl_json_find`.
 * \param value set to the value; unchanged on failure.
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
 * `mcpl_json_find` would. Any thread.
 */
MCPL_API mcpl_status mcpl_json_bool(const char *json, size_t length, const char *pointer, bool *value);

/**
 * Reads a string and decodes its escapes.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param pointer JSON pointer to the string, as in `mcpl_json_find`.
 * \param text set to a copy in UTF-8 that ends with a zero byte. Release it with `mcpl_string_free`. `NULL` on failure.
 * \param text_length set to its length in bytes, without the zero byte; 0 on failure. May be `NULL`, but the string can
 *   contain zero bytes (`\u0000`).
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
 * `mcpl_json_find` would. Any thread.
 */
MCPL_API
mcpl_status mcpl_json_string(const char *json,
                             size_t length,
                             const char *pointer,
                             char **text,
                             size_t *text_length);

/**
 * Counts the members of an object or the elements of an array.
 *
 * \param json,length the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param pointer JSON pointer to the object or array, as in `mcpl_json_find`.
 * \param count set to the number; unchanged on failure.
 *
 * \return `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
 * `mcpl_json_find` would. Any thread.
 */
MCPL_API mcpl_status mcpl_json_count(const char *json, size_t length, const char *pointer, size_t *count);

/**
 * Returns a member of an object or an element of an array by its position in the text.
 *
 * To iterate, count up from 0 until the function returns `MCPL_NOT_FOUND`. Each call skips the items before from the
 * start.
 *
 * \param json,length the object or array and its length in bytes, or `MCPL_AUTO_LENGTH`.
 * \param index position, from 0.
 * \param name set to the name of the member, which ends with a zero byte. Release it with `mcpl_string_free`. `NULL` for
 *   an element, and on failure. May be `NULL`.
 * \param value,value_length set to the position of the value within `json`, as in `mcpl_json_find`.
 *
 * \return `MCPL_NOT_FOUND` if there are not so many items, and `MCPL_USAGE_ERROR` if the text is not valid JSON, or is
 * neither an object nor an array. Any thread.
 */
MCPL_API
mcpl_status mcpl_json_item(const char *json,
                           size_t length,
                           size_t index,
                           char **name,
                           const char **value,
                           size_t *value_length);

/**
 * Creates an empty writer. Release it with `mcpl_json_free`.
 *
 * \return `NULL` only if the library has a bug. Any thread.
 */
MCPL_API MCPL_NODISCARD mcpl_json *mcpl_json_new(void);

/**
 * Begins an object. Members follow, each with a name (`mcpl_json_name`) and a value, then `mcpl_json_end_object`.
 *
 * \param json the writer.
 *
 * It is an error where no value is allowed, and at more than 127 levels.
 *
 * One thread at a time.
 */
MCPL_API
void mcpl_json_begin_object(mcpl_json *json);

/**
 * Ends the innermost object. It is an error if an array is innermost, or a name has no value yet.
 *
 * \param json the writer.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_end_object(mcpl_json *json);

/**
 * Begins an array. Values follow, then `mcpl_json_end_array`.
 *
 * \param json the writer.
 *
 * It is an error where no value is allowed, and at more than 127 levels.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_begin_array(mcpl_json *json);

/**
 * Ends the innermost array. It is an error if an object is innermost.
 *
 * \param json the writer.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_end_array(mcpl_json *json);

/**
 * Writes the name of the next member of an object.
 *
 * \param json the writer.
 * \param name UTF-8 text that ends with a zero byte. Copied.
 *
 * It is an error outside an object, if the name before has no value yet, and if `name` is `NULL` or not UTF-8.
 * Duplicate names are reported by `mcpl_json_text`.
 *
 * One thread at a time.
 */
MCPL_API
void mcpl_json_name(mcpl_json *json,
                    const char *name);

/**
 * Writes a string.
 *
 * \param json the writer.
 * \param text,length UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied, and escaped where needed.
 *
 * It is an error where no value is allowed, and if `text` is `NULL` or not UTF-8.
 *
 * One thread at a time.
 */
MCPL_API
void mcpl_json_put_string(mcpl_json *json,
                          const char *text,
                          size_t length);

/**
 * Writes an integer. It is an error where no value is allowed.
 *
 * \param json the writer.
 * \param number the number.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_put_int64(mcpl_json *json, int64_t number);

/**
 * Writes a number, with enough digits to read back the same double. It is an error where no value is allowed, and if
 * the number is not finite.
 *
 * \param json the writer.
 * \param number the number.
 *
 * One thread at a time.
 */
MCPL_API
void mcpl_json_put_double(mcpl_json *json,
                          double number);

/**
 * Writes `true` or `false`. It is an error where no value is allowed.
 *
 * \param json the writer.
 * \param value the value.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_put_bool(mcpl_json *json, bool value);

/**
 * Writes `null`. It is an error where no value is allowed.
 *
 * \param json the writer.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_put_null(mcpl_json *json);

/**
 * Writes a value that is already JSON.
 *
 * \param json the writer.
 * \param value,length JSON text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
 *
 * It is an error where no value is allowed, and if the text is not valid JSON.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_put_json(mcpl_json *json, const char *value, size_t length);

/**
 * Writes binary data as a base64 string (RFC 4648, section 4), such as `data` of images and audio, and `blob` of
 * resources.
 *
 * \param json the writer.
 * \param data,length the data and its length in bytes. Copied. `NULL` is allowed for length 0.
 *
 * It is an error where no value is allowed, and if `length` is `MCPL_AUTO_LENGTH`.
 *
 * One thread at a time.
 */
MCPL_API
void mcpl_json_put_base64(mcpl_json *json,
                          const void *data,
                          size_t length);

/**
 * Returns the JSON text that was written.
 *
 * \param json the writer.
 * \param text set to the text, which ends with a zero byte. The writer owns it; it is valid until the writer is used
 *   again or released. `NULL` on failure. May be `NULL`.
 * \param length set to its length in bytes; 0 on failure. May be `NULL`.
 *
 * \return `MCPL_USAGE_ERROR` if the text is not one complete value, or with the first error of an earlier function;
 * see `mcpl_last_error`.
 *
 * One thread at a time.
 */
MCPL_API
mcpl_status mcpl_json_text(mcpl_json *json,
                           const char **text,
                           size_t *length);

/**
 * Resets a writer to its initial state, including its error.
 *
 * \param json the writer.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_clear(mcpl_json *json);

/**
 * Releases a writer and its text. `NULL` is ignored.
 *
 * \param json the writer.
 *
 * One thread at a time.
 */
MCPL_API void mcpl_json_free(mcpl_json *json);

/** @} */

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCPLINE_H */

/* mcpline.h - Model Context Protocol servers and clients.
 *
 * Made by tools/c-header from bindings-c/src: don't edit. A guide is in docs/guides/c.md.
 *
 * RULES FOR ALL FUNCTIONS
 *
 * Threads. Every function may be called from any thread at any time, unless it says otherwise.
 *
 * Handles. mcpl_server, mcpl_client, mcpl_call, mcpl_loop, mcpl_request, mcpl_question and mcpl_channel are tokens: none
 * is ever followed as a pointer. One whose object has ended is answered with MCPL_STALE_HANDLE, NULL with MCPL_USAGE_ERROR.
 *
 * Strings given. Names, URIs, paths and messages end with a zero byte. What may be long, as text and JSON, is a pointer
 * and a length in bytes; the length MCPL_AUTO_LENGTH says that it ends with a zero byte. All are checked to be UTF-8, and
 * JSON to be JSON. Whatever is given is copied before the function returns.
 *
 * Strings received. Those that callbacks get are valid until the callback returns (a call's arguments: until its handler
 * has returned and the call has ended), and a zero byte follows them that the length doesn't count. Those that functions
 * give back by a char ** are released with mcpl_string_free; on failure they are NULL, and their length is 0. Where the
 * length goes may be NULL.
 *
 * Failures. Functions return a status, those that make something NULL on failure. mcpl_last_error tells the details of the
 * last failure on the thread.
 *
 * Data. What is given along with a callback as `user` is handed to it, on whichever thread it runs. Its finalizer, which
 * may be NULL, is called exactly once: see mcpl_finalizer.
 *
 * Callbacks run on worker threads; or, if the server or client uses an mcpl_loop, on the thread that dispatches it; or, of
 * handlers with MCPL_HANDLER_INLINE, on the I/O thread. They run side by side, but for the notifications of one client and
 * the messages of one channel, which come in order, one at a time. Callbacks may call every function, but those that wait
 * only where that can end; else these return MCPL_WOULD_DEADLOCK. No callback may throw a C++ exception or be left by longjmp.
 *
 * Waiting. Functions that wait say so. They return MCPL_WOULD_DEADLOCK on the I/O thread and within mcpl_loop_dispatch. On the
 * thread of a loop that is not dispatching they dispatch that loop while they wait. A worker thread that waits is replaced
 * by another meanwhile.
 *
 * Features. A library can be built without some of its features: see mcpline/features.h. It exports nothing of those, and
 * this header declares nothing of them.
 *
 * Processes. The library has threads of its own from the first server, client or loop on until the last is freed. A process
 * that forks without exec must not use it in the child.
 */

#ifndef MCPLINE_H
#define MCPLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcpline/features.h"
/* The length of a text that ends with a zero byte, in place of counting it. */
#define MCPL_AUTO_LENGTH SIZE_MAX


/**
 * The handler runs on the I/O thread: at once, without waking another. Only for handlers that never wait: nothing else is
 * read or written meanwhile, and asking with `mcpl_call_ask_wait` is refused there.
 */
#define MCPL_HANDLER_INLINE 1

/**
 * The handler must never run twice for one request: a retry (2026-07-28) that reaches another process gets an error
 * instead. Of tools and custom requests.
 */
#define MCPL_HANDLER_RUN_ONCE 2

/**
 * What a function returns. Every status but `MCPL_OK` is an error; `mcpl_last_error` has its details.
 *
 * The statuses up to 100 are the kinds of errors that exist in every language. `docs/errors.md` describes each.
 */
enum mcpl_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
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
     * An input request was answered with an error: see `mcpl_error_rpc_code`.
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
     * A limit of this library is reached.
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
     * C only: the function waits, and waiting on this thread would be a deadlock. Nothing was done.
     */
    MCPL_WOULD_DEADLOCK = 102,
    /**
     * C only: the time that the function may wait is over. The operation that it waits for continues.
     */
    MCPL_WAIT_TIMED_OUT = 103,
    /**
     * C only: nothing has that name.
     */
    MCPL_NOT_FOUND = 104,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mcpl_status mcpl_status;
#else
typedef int32_t mcpl_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How severe a message is, from the least to the most (RFC 5424).
 */
enum mcpl_log_level
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * For developers.
     */
    MCPL_LOG_DEBUG = 0,
    /**
     * Something has happened.
     */
    MCPL_LOG_INFO = 1,
    /**
     * Something unusual has happened.
     */
    MCPL_LOG_NOTICE = 2,
    /**
     * Something may be wrong.
     */
    MCPL_LOG_WARNING = 3,
    /**
     * Something has failed.
     */
    MCPL_LOG_ERROR = 4,
    /**
     * Something that others depend on has failed.
     */
    MCPL_LOG_CRITICAL = 5,
    /**
     * Somebody must act at once.
     */
    MCPL_LOG_ALERT = 6,
    /**
     * Nothing works any more.
     */
    MCPL_LOG_EMERGENCY = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mcpl_log_level mcpl_log_level;
#else
typedef int32_t mcpl_log_level;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What kind of value JSON is.
 */
enum mcpl_json_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
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
#if __STDC_VERSION__ >= 202311L
typedef enum mcpl_json_kind mcpl_json_kind;
#else
typedef int32_t mcpl_json_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a client can be asked.
 */
enum mcpl_ask
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Input from the user, by a form or by a visit to a URL: `elicitation/create` (`client/elicitation`).
     */
    MCPL_ASK_ELICIT = 0,
    /**
     * A completion by the client's model: `sampling/createMessage` (`client/sampling`).
     * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
     */
    MCPL_ASK_SAMPLE = 1,
    /**
     * The client's root directories: `roots/list` (`client/roots`).
     * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
     */
    MCPL_ASK_LIST_ROOTS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mcpl_ask mcpl_ask;
#else
typedef int32_t mcpl_ask;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A call of a handler, until it is ended.
 *
 * A token that may be used from any thread at any time: once the call has ended, functions return `MCPL_STALE_HANDLE`.
 * It is not released by anybody; ending the call is enough. A call whose request was cancelled stays until the handler
 * ends it.
 */
typedef struct mcpl_call mcpl_call;

/**
 * A connection over a transport of the host's own: messages of JSON-RPC, one at a time, over whatever it is that the host
 * has.
 *
 * A token that may be used from any thread at any time: once the channel is closed, functions return
 * `MCPL_STALE_HANDLE`.
 */
typedef struct mcpl_channel mcpl_channel;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * A client: a connection to one server, which it opens anew where it was lost.
 *
 * Made by `mcpl_client_new`; told how and where to connect by the functions that say "before connecting"; connected by
 * `mcpl_client_open`, `mcpl_client_connect` or `mcpl_client_spawn`; ended by `mcpl_client_close`; released by
 * `mcpl_client_free`.
 *
 * A token that may be used from any thread at any time: once it was released, functions return `MCPL_STALE_HANDLE`.
 * Its callbacks run on worker threads, or on the thread that dispatches the loop that it uses
 * (`mcpl_client_use_loop`).
 */
typedef struct mcpl_client mcpl_client;
#endif

/**
 * What went wrong. Given by `mcpl_last_error` and to callbacks; never released by the caller.
 */
typedef struct mcpl_error mcpl_error;

/**
 * Writes JSON piece by piece, for programs that have no JSON library.
 *
 * Made by `mcpl_json_new`, released by `mcpl_json_free`. Unlike what the other types of this library point to, it is
 * nothing that the library keeps: to use one that was released is undefined, and only one thread may use it at a time.
 *
 * One value is written, as a rule an object:
 *
 * ```c
 * mcpl_json_begin_object(json);
 * mcpl_json_name(json, "sum");
 * mcpl_json_put_int64(json, 5);
 * mcpl_json_end_object(json);
 * mcpl_json_text(json, &text, &length);
 * ```
 *
 * The functions that write give no status: the first mistake is remembered, whatever follows is ignored, and
 * `mcpl_json_text` tells what it was.
 */
typedef struct mcpl_json mcpl_json;

/**
 * A queue of callbacks that run on the thread that dispatches it, for programs that have an event loop of their own.
 *
 * Servers and clients use it after `mcpl_server_use_loop` or `mcpl_client_use_loop`: all their callbacks run within
 * `mcpl_loop_dispatch`, and within functions that wait, when these are called on the thread that dispatches.
 */
typedef struct mcpl_loop mcpl_loop;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * A question of a server, until it is answered, refused, or withdrawn.
 *
 * A token that may be used from any thread at any time: once it has ended, functions return `MCPL_STALE_HANDLE`. It is
 * not released by anybody. Questions that are still open when the client, or the server, closes are withdrawn.
 */
typedef struct mcpl_question mcpl_question;
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * A request of a client that was made by a function `..._async` and has not ended.
 *
 * A token that may be used from any thread at any time: once the request has ended, functions return
 * `MCPL_STALE_HANDLE`. It is not released by anybody.
 */
typedef struct mcpl_request mcpl_request;
#endif

/**
 * A server: tools, resources, prompts and completions with handlers in C, served over any number of transports.
 *
 * A token that may be used from any thread at any time: after `mcpl_server_free` functions return `MCPL_STALE_HANDLE`.
 */
typedef struct mcpl_server mcpl_server;

/**
 * Is given the answer to a question, exactly once: `error` is `NULL` and `result` the client's result, JSON of `length`
 * bytes which a zero byte follows (`ElicitResult`, `CreateMessageResult` or `ListRootsResult`); or `error` says why there
 * is none, and `result` is `NULL`. Both are valid until it returns. A user who declines is no error.
 */
typedef void (*mcpl_answer)(mcpl_call *call,
                            const mcpl_error *error,
                            const char *result,
                            size_t length,
                            void *user);

/**
 * Releases what was given along with a callback. Called exactly once, when no callback that was given it runs or will
 * run any more: also when the function that was to register the callback fails. It runs where callbacks run, or on the
 * thread of the function that ended the registration.
 */
typedef void (*mcpl_finalizer)(void *user);

/**
 * Is told that the request of a call was cancelled. The call is still to be ended.
 */
typedef void (*mcpl_cancelled)(mcpl_call *call, void *user);

/**
 * What a channel does. Set `size` to `sizeof(mcpl_channel_functions)`. All run where callbacks run, one at a time, in
 * order.
 */
typedef struct {
    /**
     * `sizeof(mcpl_channel_functions)`.
     */
    size_t size;
    /**
     * Opens the channel, of a client; answered by `mcpl_channel_opened`, now or later. `NULL` if it is open already. Called
     * again, with another handle, when a client connects again.
     */
    void (*open)(mcpl_channel *channel, void *user);
    /**
     * Sends one message to the other side: `length` bytes, without a line break, which a zero byte follows.
     */
    void (*send)(mcpl_channel *channel, const char *message, size_t length, void *user);
    /**
     * The channel is needed no more: the last that is called of it. May be `NULL`.
     */
    void (*close)(mcpl_channel *channel, void *user);
} mcpl_channel_functions;

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Hears of the progress of a request (every revision, `basic/utilities/progress`), where callbacks run; of one request
 * one at a time and in order, and not any more once the end of the request is told.
 *
 * - `request`: which; `NULL` for a request that its function waits for.
 * - `progress`: how far it is; increases from one to the next.
 * - `total`: how far it will be in the end; `NAN` if that is not known.
 * - `message`: what is going on, or `NULL`. Valid until the callback returns.
 * - `user`: what the options hold.
 */
typedef void (*mcpl_progress)(mcpl_request *request,
                              double progress,
                              double total,
                              const char *message,
                              void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * How one request is sent. Set all to zero but `size`, then what is to be otherwise: in C
 * `mcpl_request_options options = {sizeof options};`. It is read, with what it points to, before the function that it is
 * given to returns.
 */
typedef struct {
    /**
     * `sizeof(mcpl_request_options)`.
     */
    size_t size;
    /**
     * How many milliseconds to wait without a sign of life, such as progress: 0 for what the client has been set to (a
     * minute by default), less than 0 for no limit.
     */
    int64_t timeout_ms;
    /**
     * How many milliseconds to wait in all, whatever the progress: 0 for what the client has been set to (an hour by
     * default), less than 0 for no limit.
     */
    int64_t total_timeout_ms;
    /**
     * More, as a JSON object that ends with a zero byte, or `NULL`. Its members, of which all may be left out:
     *
     * - `meta`: an object, whose members the request's `_meta` gets.
     * - `log_level`: the least severe level of log messages wanted in its course, since 2026-07-28: `"debug"` ...
     *   `"emergency"`.
     * - `reissue`: whether it is sent again, at most twice, if the connection is lost before the answer came: `"if-safe"`
     *   (the default: what only reads, and, if the server is `trusted`, tools that say of themselves that twice does no
     *   harm), `"always"` or `"never"`.
     * - `fresh`: `true` if a result that the client has kept won't do.
     * - `by_hand`: `true` if a result that asks for input is to be returned as it is, since 2026-07-28.
     * - `timeout`, `total_timeout`: as the members above, in seconds.
     */
    const char *json;
    /**
     * Hears of progress, which the server is asked for only if this is not `NULL`.
     */
    mcpl_progress progress;
    /**
     * Given to `progress`. It has to live until the function that waits returns, or until the request's `mcpl_done` is
     * called.
     */
    void *user;
} mcpl_request_options;
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Is told the end of a request, exactly once, where callbacks run.
 *
 * - `request`: which; it has ended.
 * - `error`: `NULL` if there is a result, else why there is none: `MCPL_REQUEST_CANCELLED` after `mcpl_request_cancel`,
 *   `MCPL_CLOSED` if the client was closed. Valid until the callback returns.
 * - `result`, `length`: the result as JSON, of `length` bytes which a zero byte follows; `""` where the function says that
 *   there is no result. `NULL` and 0 if there is an error. Valid until the callback returns.
 * - `user`: what was given to the function that made the request. Nothing of this library uses it after this.
 *
 * It is called after the last callback that told of the request's progress has returned, and possibly before the
 * function that made the request returns. It is not called if that function has failed. It may call any function but
 * those that wait for its own end: `mcpl_client_close` of its client returns `MCPL_WOULD_DEADLOCK`.
 */
typedef void (*mcpl_done)(mcpl_request *request,
                          const mcpl_error *error,
                          const char *result,
                          size_t length,
                          void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Answers a question of the server, where callbacks run; any number of them at the same time.
 *
 * - `question`: what to answer, by `mcpl_question_answer` or `mcpl_question_refuse`, from any thread, now or later; the
 *   callback may return before.
 * - `params`, `length`: the parameters as JSON, of `length` bytes which a zero byte follows; `"{}"` if there are none. Valid
 *   until the callback returns.
 * - `user`: what was given along with the callback.
 */
typedef void (*mcpl_question_handler)(mcpl_question *question, const char *params, size_t length, void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Hears of a notification, where callbacks run: all of one client one at a time, in the order of their arrival.
 *
 * - `client`: whose server it is.
 * - `method`: such as `"notifications/tools/list_changed"`. Valid until the callback returns.
 * - `params`, `length`: its parameters as JSON, of `length` bytes which a zero byte follows; `"{}"` if there are none. Valid
 *   until the callback returns.
 * - `user`: what was given along with the callback.
 */
typedef void (*mcpl_notification_listener)(mcpl_client *client,
                                           const char *method,
                                           const char *params,
                                           size_t length,
                                           void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Hears of a log message (`server/utilities/logging`), where callbacks run: one at a time, in order, also with
 * notifications.
 *
 * - `client`: whose server it is.
 * - `level`: how severe it is.
 * - `logger`: who logs, or `NULL`. Valid until the callback returns.
 * - `data`, `length`: what is logged, any JSON, of `length` bytes which a zero byte follows. Valid until the callback
 *   returns.
 * - `user`: what was given along with the callback.
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
 * Hears of a line that a server's process wrote to its stderr, where callbacks run: one at a time, in order.
 *
 * - `client`: whose server it is.
 * - `line`, `length`: the line in UTF-8 without its end, of `length` bytes which a zero byte follows. Valid until the
 *   callback returns.
 * - `user`: what was given along with the callback.
 */
typedef void (*mcpl_line_listener)(mcpl_client *client, const char *line, size_t length, void *user);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Is told that nobody waits for the answer to a question any more.
 */
typedef void (*mcpl_withdrawn)(mcpl_question *question, void *user);
#endif

/**
 * Is given a message of the library. `target` names the part that it is from. Both are valid until it returns.
 */
typedef void (*mcpl_diagnostics)(mcpl_log_level level, const char *target, const char *message, void *user);

/**
 * Handles one call: of a tool, a resource, a prompt or a completion.
 *
 * `arguments` is a JSON object of `length` bytes, which a zero byte follows; it is valid until the handler has returned
 * and the call has ended. The call is ended by one of the functions `mcpl_call_reply_...` and `mcpl_call_fail...`, exactly
 * once, from any thread, now or later; a handler that returns without it keeps the call open.
 */
typedef void (*mcpl_handler)(mcpl_call *call, const char *arguments, size_t length, void *user);

/**
 * How a handler is to be treated. Set `size` to `sizeof(mcpl_handler_options)`, and all else that isn't used to 0.
 */
typedef struct {
    /**
     * `sizeof(mcpl_handler_options)`.
     */
    size_t size;
    /**
     * `MCPL_HANDLER_INLINE`, `MCPL_HANDLER_RUN_ONCE`, or both.
     */
    uint32_t flags;
    /**
     * How often a tool may be called per second, server-wide; 0 for the server's `tool_rate`.
     */
    uint32_t calls_per_second;
    /**
     * How many calls may come at once within that rate; 0 for as many as come per second.
     */
    uint32_t burst;
    /**
     * What a caller over HTTP must be allowed, all of it: scopes with a space between each; `NULL` for nothing. Lists leave
     * out what a caller may not use, and asking for it all the same is refused with what it takes. Of tools, resources,
     * templates, prompts and custom methods, where the server has `auth` among its options of HTTP.
     */
    const char *scopes;
    /**
     * The identifier of the extension that a custom method belongs to, which the server declares (`extensions` of
     * `mcpl_server_new_with`): a request of a client that does not declare it is answered with -32021, a notification of one is
     * dropped with a warning in the log. `NULL` for none, and of tools, resources,
     * templates and prompts, which clients are shown whatever they declare.
     */
    const char *extension;
} mcpl_handler_options;

/**
 * Is told that the last transport of a server has ended: in order if `error` is `NULL`, which is valid until it returns.
 */
typedef void (*mcpl_server_ended)(mcpl_server *server, const mcpl_error *error, void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Asks the client in the middle of a call, on every revision, and has `answer` called with the answer, where callbacks
 * run. The call stays open meanwhile, and the handler may return.
 *
 * `ask` is an `mcpl_ask`. `params` is a JSON object of `length` bytes, the parameters of the request by that name, or
 * `NULL` for none. `key` names the answer, `NULL` numbers it.
 *
 * Toward clients of revisions with a handshake the question is a request. On 2026-07-28 the call is answered with
 * `input_required` and goes on with the client's retry; if that reaches another process, the handler is run again there
 * and gets the recorded answers, so what it asks must depend on its arguments and earlier answers alone. Questions that
 * are asked at the same time share one round.
 *
 * Returns `MCPL_STALE_HANDLE` if the call has ended; `answer` is not called then.
 */
mcpl_status mcpl_call_ask(mcpl_call *call,
                          const char *key,
                          int32_t ask,
                          const char *params,
                          size_t length,
                          mcpl_answer answer,
                          void *user,
                          mcpl_finalizer finalize);

/**
 * Sends the client a request of a method that no revision of the protocol defines, such as `"acme/pick"`, and has `answer`
 * called with its result, a JSON object, as `mcpl_call_ask` does. `params` is a JSON object of `length` bytes, or `NULL`.
 *
 * No capability says that a client serves the method. Toward a client of 2026-07-28 the request is one of the result's
 * `inputRequests`, and a client that does not know it fails the whole call: so send it only to clients that declare an
 * extension which has it.
 *
 * Returns `MCPL_USAGE_ERROR` if the protocol defines the method or `params` is no JSON, `MCPL_STALE_HANDLE` if the
 * call has ended; `answer` is not called then.
 */
mcpl_status mcpl_call_send_request(mcpl_call *call,
                                   const char *key,
                                   const char *method,
                                   const char *params,
                                   size_t length,
                                   mcpl_answer answer,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * As `mcpl_call_ask`, and waits for the answer, which is to be released with `mcpl_string_free`.
 *
 * Allowed on worker threads, of which another then takes the place of this one, and on threads of the host's. Returns
 * `MCPL_WOULD_DEADLOCK` on the I/O thread (in handlers that run inline) and within `mcpl_loop_dispatch`. The wait is
 * bounded by the server's options `ask_idle_timeout` and `ask_timeout`, and ends when the request is cancelled
 * (`MCPL_REQUEST_CANCELLED`). Returns `MCPL_LIMIT_EXCEEDED` where 1,024 workers wait already, or as many of this
 * client as are left for all others.
 */
mcpl_status mcpl_call_ask_wait(mcpl_call *call,
                               const char *key,
                               int32_t ask,
                               const char *params,
                               size_t length,
                               char **result,
                               size_t *result_length);

/**
 * As `mcpl_call_send_request`, and waits for the result, as `mcpl_call_ask_wait` does.
 */
mcpl_status mcpl_call_send_request_wait(mcpl_call *call,
                                        const char *key,
                                        const char *method,
                                        const char *params,
                                        size_t length,
                                        char **result,
                                        size_t *result_length);

/**
 * Ends a call with a text of `length` bytes: a tool's result of one text, a prompt of one message of the user's, or a
 * resource's text, whose type is that of its definition (`text/plain` if that says nothing).
 *
 * Returns `MCPL_STALE_HANDLE` if the call has ended already. A request that was cancelled meanwhile is no failure.
 */
mcpl_status mcpl_call_reply_text(mcpl_call *call,
                                 const char *text,
                                 size_t length);

/**
 * Ends a call with bytes, which travel as base64: a resource's, or a tool's image or sound (`image/...`, `audio/...`).
 *
 * `mime_type` may be `NULL` for that of the resource's definition. Returns `MCPL_USAGE_ERROR` for a tool's bytes of
 * another type, and for prompts and completions; the call stays open then.
 */
mcpl_status mcpl_call_reply_bytes(mcpl_call *call,
                                  const void *bytes,
                                  size_t length,
                                  const char *mime_type);

/**
 * Ends a call with the array that its result consists of, as JSON: of a tool its `content`, of a prompt its `messages`,
 * of a resource its `contents`.
 *
 * `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is no JSON array; the call stays open then.
 */
mcpl_status mcpl_call_reply_content(mcpl_call *call,
                                    const char *json,
                                    size_t length);

/**
 * Ends a tool's call with structured content: any JSON value, which should fit the tool's `outputSchema`. Clients of
 * revisions that don't have it get it as text.
 *
 * `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is no JSON; the call stays open then.
 */
mcpl_status mcpl_call_reply_structured(mcpl_call *call,
                                       const char *json,
                                       size_t length);

/**
 * Ends a call with a whole result, as JSON: `CallToolResult`, `ReadResourceResult`, `GetPromptResult` or
 * `CompleteResult` of the specification, by what is called; of a custom request any JSON object.
 *
 * `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is none; the call stays open then.
 */
mcpl_status mcpl_call_reply_result(mcpl_call *call, const char *json, size_t length);

/**
 * Ends the call of a completion with `count` candidates, best first. More than 100 are cut, as the protocol demands.
 */
mcpl_status mcpl_call_reply_values(mcpl_call *call,
                                   const char *const *values,
                                   size_t count);

/**
 * Ends this run of a handler with questions to the client, after whose answers the handler is called again, from its
 * start: the other way than `mcpl_call_ask`, for handlers that keep nothing between. Works toward clients of every
 * revision.
 *
 * `json` is `{"requests": [[key, method, params], ...], "state": "..."}`, of `length` bytes: the methods are
 * `elicitation/create`, `sampling/createMessage` and `roots/list`, `params` and `state` may be left out (`null`). The
 * next run finds `inputResponses`, the answers by key, and `requestState`, the state, in `mcpl_call_info`.
 */
mcpl_status mcpl_call_reply_questions(mcpl_call *call,
                                      const char *json,
                                      size_t length);

/**
 * Ends a call with a failure that the model should read: a tool's result with `isError`. Resources, prompts, completions
 * and custom requests have no such results; there it is an internal error with this text.
 */
mcpl_status mcpl_call_fail(mcpl_call *call,
                           const char *message,
                           size_t length);

/**
 * Ends a call with a JSON-RPC error of this code and message, and `data` as JSON of `data_length` bytes, or `NULL`.
 */
mcpl_status mcpl_call_fail_rpc(mcpl_call *call,
                               int64_t code,
                               const char *message,
                               const char *data,
                               size_t data_length);

/**
 * Ends a call with a failure that the client must not learn about: it is told that the handler failed, and the message
 * goes to the diagnostics (`mcpl_set_diagnostics`).
 */
mcpl_status mcpl_call_fail_internal(mcpl_call *call,
                                    const char *message);

/**
 * Ends a call with the failure of a question or of anything else, as the client should be told of it: an error that
 * names the capability that the client lacks (-32021 on 2026-07-28), else the message for the model to read.
 *
 * `error` is what a callback was given, or `mcpl_last_error()`.
 */
mcpl_status mcpl_call_fail_with(mcpl_call *call,
                                const mcpl_error *error);

/**
 * Ends a call because the user has to visit URLs first: on 2025-11-25 the error -32042 (`client/elicitation`, URL
 * elicitation required), on 2026-07-28 questions, else the URLs in words. The client tries again when
 * `mcpl_server_notify_elicitation_complete` has told it so.
 *
 * `json` is an array of parameters of `elicitation/create` in URL mode, of `length` bytes.
 */
mcpl_status mcpl_call_fail_visits(mcpl_call *call,
                                  const char *json,
                                  size_t length);

/**
 * The arguments of a call: a JSON object. Of a resource template, its variables; of a completion, `ref`, `argument` and
 * `context`; of a custom request or notification, its parameters without `_meta`. Valid until the call ends; a zero byte follows.
 */
mcpl_status mcpl_call_arguments(mcpl_call *call,
                                const char **arguments,
                                size_t *length);

/**
 * The name of the tool or prompt that is called, the URI of the resource, or the method of a custom request or notification; `""` for a
 * completion. Release it with `mcpl_string_free`.
 */
mcpl_status mcpl_call_name(mcpl_call *call,
                           char **name);

/**
 * What is known of the request that a call serves, as a JSON object. Release it with `mcpl_string_free`.
 *
 * Its members: `revision`; `client`, the client's `Implementation`; `clientCapabilities`; `requestId`; `sessionId` of
 * HTTP; `headers` of HTTP, an array of pairs; `auth`, the caller where a token was checked: `issuer`, `subject`, `clientId`,
 * `audience`, `scopes`, `expiresAt` and `claims`, never the token; `meta`, the request's `_meta`; `inputResponses` and
 * `requestState`, after `mcpl_call_reply_questions`. What there is not is `null`. After a question on 2026-07-28 all of it is
 * that of the client's retry.
 */
mcpl_status mcpl_call_info(mcpl_call *call,
                           char **json,
                           size_t *length);

/**
 * Whether the request was cancelled: the client has lost interest, or is gone. Also if the call has ended.
 */
bool mcpl_call_is_cancelled(mcpl_call *call);

/**
 * Has `cancelled` called when the request is cancelled, at most once, where callbacks run; at once if it was already.
 * It is not called after the call has ended.
 */
mcpl_status mcpl_call_on_cancel(mcpl_call *call,
                                mcpl_cancelled cancelled,
                                void *user,
                                mcpl_finalizer finalize);

/**
 * Reports progress, which must increase with each report, of `total`, or `NAN` if that is not known, with a message, or
 * `NULL` (every revision, `basic/utilities/progress`).
 *
 * Does nothing if the client didn't ask for progress. Floods are thinned; the last report is always delivered.
 */
mcpl_status mcpl_call_progress(mcpl_call *call,
                               double progress,
                               double total,
                               const char *message);

/**
 * Sends a log message to the client, if it wants messages of this level (`server/utilities/logging`).
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * `level` is an `mcpl_log_level`. `logger` may be `NULL`. `data` is any JSON, of `length` bytes.
 */
mcpl_status mcpl_call_log(mcpl_call *call,
                          int32_t level,
                          const char *logger,
                          const char *data,
                          size_t length);

/**
 * As `mcpl_call_log`, with a text of `length` bytes.
 */
mcpl_status mcpl_call_log_text(mcpl_call *call,
                               int32_t level,
                               const char *logger,
                               const char *text,
                               size_t length);

/**
 * Sends a notification that no revision of the protocol defines, on the stream of the call. `params` is a JSON object of
 * `length` bytes, or `NULL`.
 *
 * Does nothing if the request was cancelled, or in the handler of a notification on 2026-07-28. A client that does not read may lose notifications. Returns
 * `MCPL_USAGE_ERROR` if the protocol defines the method, or `params` is not a JSON object.
 */
mcpl_status mcpl_call_notify(mcpl_call *call,
                             const char *method,
                             const char *params,
                             size_t length);

/**
 * Closes the response stream of HTTP while the call goes on; the client comes back for the rest (2025-11-25,
 * `basic/transports`, polling). Does nothing on other revisions and transports.
 */
mcpl_status mcpl_call_close_stream(mcpl_call *call);

/**
 * Serves one client over a transport of the host's own, in the background, until either side closes it.
 *
 * `send` is called for every message to the client; what comes from the client is handed over by
 * `mcpl_channel_receive`, its end by `mcpl_channel_hang_up`.
 *
 * - `principal`: who the client is, as the transport has authenticated it: `length` bytes of JSON, an object with any of
 *   `issuer`, `subject`, `client_id`, `scopes` (an array), `expires_at` (seconds since 1970), `claims` (an object). It is
 *   fixed until the channel is closed. Handlers find it as `auth` in `mcpl_call_info`. Scopes of tools, resources,
 *   prompts and custom methods hold for it as over HTTP: what it may not use is left out of lists, and refused with the
 *   error -31001. Its channels count as one client. Of `NULL` nothing is known: such a client may do everything, which is
 *   right for the process that started this one.
 * - `user`, `finalize`: given to the functions, and what releases it after `close`, the last callback, or if this fails.
 *
 * Any thread. Returns `NULL` on failure; see `mcpl_last_error`.
 */
mcpl_channel *mcpl_server_serve_channel(mcpl_server *server,
                                        const mcpl_channel_functions *functions,
                                        const char *principal,
                                        size_t length,
                                        void *user,
                                        mcpl_finalizer finalize);

/**
 * A channel that was to be opened is open; or, with a reason, could not be opened.
 */
mcpl_status mcpl_channel_opened(mcpl_channel *channel, const char *failure);

/**
 * Hands over a message that has come from the other side: JSON-RPC, `length` bytes, copied. It is not checked here: what
 * is no message is answered or ignored as the protocol says.
 *
 * Returns `MCPL_LIMIT_EXCEEDED` while more than 32 MiB wait, because the library is busy or the other side takes none of what is for
 * it: the message was not taken, stop reading and hand it over later. Returns `MCPL_CLOSED` after `mcpl_channel_hang_up`,
 * `MCPL_STALE_HANDLE` once the channel is closed.
 */
mcpl_status mcpl_channel_receive(mcpl_channel *channel,
                                 const char *message,
                                 size_t length);

/**
 * The other side is gone. What it has sent is still read; then the channel is closed. A `reason` says that the transport
 * failed: what is in flight at a client fails with it. `NULL` if the end is in order.
 */
mcpl_status mcpl_channel_hang_up(mcpl_channel *channel,
                                 const char *reason);

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sends any request, and waits for its result.
 *
 * - `method`: such as `"tools/call"`, ended with a zero byte.
 * - `params`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for none. It may have a `_meta`;
 *   what the protocol demands in it is added.
 * - `options`: how it is sent, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is JSON, as the server sent it.
 *
 * Any thread but those that must not wait. It waits as long as the client's `timeout` and `total_timeout` say, or the
 * options; a function `..._async` doesn't. Returns
 *
 * - `MCPL_RPC_ERROR` if the server returned an error: see `mcpl_error_rpc_code` and `mcpl_error_details`;
 * - `MCPL_REQUEST_TIMED_OUT`, `MCPL_HTTP_ERROR`, `MCPL_CONNECTION_LOST` or `MCPL_SERVER_EXITED` if no response arrived:
 *   `mcpl_error_details` tells whether asking again is safe;
 * - `MCPL_INVALID_RESPONSE` if the answer is not what the protocol demands;
 * - `MCPL_INPUT_REQUEST_FAILED` if the server asked for input that the host has not given (2026-07-28);
 * - `MCPL_NOT_SUPPORTED` if the server or the revision doesn't have it;
 * - `MCPL_HANDSHAKE_FAILED` or `MCPL_HANDSHAKE_TIMED_OUT` if the connection was lost and can't be opened anew;
 * - `MCPL_USAGE_ERROR` if an argument can't be or the client is not connected, `MCPL_CLOSED` if it is closed, also
 *   meanwhile;
 * - `MCPL_WOULD_DEADLOCK` on the I/O thread and within a dispatch, where nothing is asked.
 */
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
 * As `mcpl_client_request`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_request_async(mcpl_client *client,
                                      const char *method,
                                      const char *params,
                                      size_t length,
                                      const mcpl_request_options *options,
                                      mcpl_done done,
                                      void *user,
                                      mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Calls a tool (`tools/call`; `server/tools`), and waits for its result.
 *
 * - `name`: the tool's, ended with a zero byte.
 * - `arguments`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for none.
 * - `options`: how it is sent, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is a `CallToolResult`, as JSON. One with `isError` is a result: it is for the model to read.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 * `MCPL_INVALID_RESPONSE` is also told if the structured content doesn't fit the output schema that the tool was listed with.
 */
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
 * As `mcpl_client_call_tool`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_call_tool_async(mcpl_client *client,
                                        const char *name,
                                        const char *arguments,
                                        size_t length,
                                        const mcpl_request_options *options,
                                        mcpl_done done,
                                        void *user,
                                        mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Reads a resource (`resources/read`; `server/resources`), and waits for its contents.
 *
 * - `uri`: the resource's, ended with a zero byte.
 * - `options`: how it is sent, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is a `ReadResourceResult`, as JSON.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_read_resource(mcpl_client *client,
                                      const char *uri,
                                      const mcpl_request_options *options,
                                      char **result,
                                      size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_read_resource`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_read_resource_async(mcpl_client *client,
                                            const char *uri,
                                            const mcpl_request_options *options,
                                            mcpl_done done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Gets a prompt, filled in with arguments (`prompts/get`; `server/prompts`), and waits for it.
 *
 * - `name`: the prompt's, ended with a zero byte.
 * - `arguments`, `length`: a JSON object whose members are strings, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for
 *   none.
 * - `options`: how it is sent, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is a `GetPromptResult`, as JSON.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
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
 * As `mcpl_client_get_prompt`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_get_prompt_async(mcpl_client *client,
                                         const char *name,
                                         const char *arguments,
                                         size_t length,
                                         const mcpl_request_options *options,
                                         mcpl_done done,
                                         void *user,
                                         mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Asks for candidates for an argument of a prompt or of a resource template (`completion/complete`;
 * `server/utilities/completion`), and waits for them.
 *
 * - `params`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`): `ref`, what to complete an argument of,
 *   `argument`, its `name` and the `value` so far, and maybe `context`.
 * - `options`: how it is sent, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is a `CompleteResult`, as JSON.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_complete(mcpl_client *client,
                                 const char *params,
                                 size_t length,
                                 const mcpl_request_options *options,
                                 char **result,
                                 size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_complete`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_complete_async(mcpl_client *client,
                                       const char *params,
                                       size_t length,
                                       const mcpl_request_options *options,
                                       mcpl_done done,
                                       void *user,
                                       mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * The server is reached over a transport of the host's own, written in C. Before connecting; replaces what was set before.
 *
 * - `functions`: what the transport does; copied. `open` is called for each conversation, with a channel of its own, and
 *   answered by `mcpl_channel_opened`; `send` with each message to the server; `close` when the conversation is over, as
 *   the last. Messages from the server are handed over by `mcpl_channel_receive`, its end by `mcpl_channel_hang_up`.
 * - `user`, `finalize`: given to all of them, and what releases it once none is called any more: when the client closes,
 *   another target is set, or this function fails.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the functions or `send` are `NULL`, their size is not set or the client
 * connects already.
 */
mcpl_status mcpl_client_set_channel(mcpl_client *client,
                                    const mcpl_channel_functions *functions,
                                    void *user,
                                    mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Makes a client, which is not connected yet.
 *
 * - `name`, `version`: the host's, as servers get to see them. `mcpl_client_set_options` says more.
 *
 * Any thread. Release it with `mcpl_client_free`. Returns `NULL` if a text is `NULL` or not UTF-8, or the system has no
 * threads left; see `mcpl_last_error`.
 */
mcpl_client *mcpl_client_new(const char *name,
                             const char *version);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Ends a client: its connection as the page of its transport says (a process gets time to leave, then it is killed),
 * then whatever is in flight, which fails with `MCPL_CLOSED`. Waits until nothing of the connection is left and no
 * callback runs, and calls the finalizers of all that callbacks were given: nothing is called after it.
 *
 * Any thread but those that must not wait, any number of times; the handle stays until `mcpl_client_free`. On the thread
 * of the client's loop it dispatches the loop meanwhile; elsewhere that thread has to, for as long as this waits.
 *
 * Returns `MCPL_WOULD_DEADLOCK`, and does nothing, within one of the client's own callbacks, on the I/O thread and
 * within a dispatch.
 */
mcpl_status mcpl_client_close(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Releases a client, and closes it before if that was not done. `NULL` is nothing.
 *
 * Where `mcpl_client_close` would return `MCPL_WOULD_DEADLOCK`, within one of its own callbacks for example, it is
 * closed in the background: callbacks that are about to run may still, then finalizers are called.
 */
void mcpl_client_free(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` answer the server's questions to the user, and declares that capability: forms, and visits to URLs
 * (`elicitation/create`; `client/elicitation`). Before connecting.
 *
 * On every revision the handler is the same, whether the question comes as a request or in a result (since 2026-07-28).
 *
 * - `handler`: is called with each question; see `mcpl_question_handler`.
 * - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the client closes, a further
 *   call of this function replaces the handler, or this one fails.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the handler is `NULL` or the client connects already.
 */
mcpl_status mcpl_client_on_elicit(mcpl_client *client,
                                  mcpl_question_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` answer the server's requests for a completion by the host's model, and declares that capability
 * (`sampling/createMessage`; `client/sampling`). A user's refusal is code -1. Before connecting.
 * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
 *
 * For the parameters, and what it returns, see `mcpl_client_on_elicit`.
 */
mcpl_status mcpl_client_on_sample(mcpl_client *client,
                                  mcpl_question_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` tell the server the host's root directories, and declares that capability (`roots/list`;
 * `client/roots`). `mcpl_client_roots_changed` tells that they have changed. Before connecting.
 * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
 *
 * Its answer's `uri`s are absolute paths, which are sent as `file://` URIs, or such URIs; see `mcpl_question_answer`.
 *
 * For the parameters, and what it returns, see `mcpl_client_on_elicit`.
 */
mcpl_status mcpl_client_on_list_roots(mcpl_client *client,
                                      mcpl_question_handler handler,
                                      void *user,
                                      mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` serve requests of the server of a method that no revision of the protocol defines, such as `"acme/pick"`. It
 * answers with a JSON object. Nothing is declared for it: declare the extension that has the method among the client's
 * `capabilities` (`mcpl_client_set_options`). Before connecting.
 *
 * For the other parameters see `mcpl_client_on_elicit`. A further call for the same method replaces its handler.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the protocol defines the method, it begins with `notifications/`, `rpc.`,
 * `auth/` or `host/` (which this library asks with), the handler is `NULL` or the client connects already.
 */
mcpl_status mcpl_client_on_request(mcpl_client *client,
                                   const char *method,
                                   mcpl_question_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` take results whose `resultType` is `result_type`, a name that an extension defines (2026-07-28). Declare the
 * extension among the client's `capabilities` (`mcpl_client_set_options`). Before connecting.
 *
 * Its parameters are the `method` and the `params` of the request, and the `result` as it came. It answers with the ordinary
 * result of the method, and may send requests for that; the caller of the method gets that result alone. A refusal fails the
 * call with `MCPL_INPUT_REQUEST_FAILED`. Requests with `by_hand` among their options are given the result as it came.
 *
 * For the other parameters see `mcpl_client_on_elicit`. A further call for the same type replaces its handler.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the type is the protocol's own (`complete`, `input_required`), the handler is
 * `NULL` or the client connects already.
 */
mcpl_status mcpl_client_on_result_type(mcpl_client *client,
                                       const char *result_type,
                                       mcpl_question_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` be asked about each tool call before anything of it is sent, whichever function begins it: for the user's
 * consent (`server/tools`, security considerations). Before connecting.
 *
 * Its parameters are `id`, which tells the calls of this process apart, the `name` of the tool, the `arguments`, and the
 * `annotations` that the tool was listed with, if it was listed: they are not to be trusted unless the server is. Any answer
 * lets the call pass. `mcpl_question_refuse` refuses it with the message as the reason: the call fails with
 * `MCPL_TOOL_CALL_REFUSED`. The call's timeouts begin when it is sent.
 *
 * For the parameters of this function, and what it returns, see `mcpl_client_on_elicit`.
 */
mcpl_status mcpl_client_on_tool_call(mcpl_client *client,
                                     mcpl_question_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `handler` be told how each tool call ended, for an audit log. Before connecting.
 *
 * Its parameters are the `call`, as `mcpl_client_on_tool_call` has it, and the `result` as the server sent it, or the
 * `error`: its `kind`, such as `"request_timed_out"`, `"request_cancelled"` if the caller cancelled the call, and its
 * `message`. The call's caller gets the outcome once this is answered, with whatever.
 *
 * For the parameters of this function, and what it returns, see `mcpl_client_on_elicit`.
 */
mcpl_status mcpl_client_on_tool_outcome(mcpl_client *client,
                                        mcpl_question_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_AUTH))
/**
 * Has `handler` take the host's part in the client's authorization, as far as the `auth` among the options of
 * `mcpl_client_set_url` says that the host is asked (`basic/authorization`). Before connecting.
 *
 * The `method` among the parameters says what is asked. What is refused fails the requests that need it, with
 * `MCPL_AUTHORIZATION_FAILED`.
 *
 * - `auth/token`: a token for `server`; `refused` says whether it refused the one before, `scopes` what it demands. Answered
 *   with `token`, and `expires_in` in seconds if it lapses.
 * - `auth/open`: send the user to `url`. Answered with `url`: where the user was redirected to, with its query.
 * - `auth/browser`: open `url` in a browser. `auth/unopened`: tell the user the `url`, which no browser was opened for, and
 *   the `reason`. Answered with `{}`.
 * - `auth/assertion`, `auth/id_token`: the workload's or the user's signed word for `audience`. Answered with that name.
 * - `auth/store/load`: answered with the `value` that was saved under `key`, or without one. `auth/store/save`: keep `value`,
 *   in base64. `auth/store/remove`: forget it. `auth/store/lock`: exclude others until `auth/store/unlock`; answered with
 *   `lock`, which that one gets.
 *
 * For the parameters, and what it returns, see `mcpl_client_on_elicit`.
 */
mcpl_status mcpl_client_on_authorize(mcpl_client *client,
                                     mcpl_question_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `heard` hear every notification of the server: changes of lists and resources, log messages, and whatever else
 * comes (but progress, which the request's options say who hears of). On 2026-07-28 changes are asked for
 * (`subscriptions/listen`) because somebody hears them. Before connecting.
 *
 * - `heard`: is called with each notification, one at a time, in order; see `mcpl_notification_listener`.
 * - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the client closes, a further
 *   call of this function replaces the callback, or this one fails.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the callback is `NULL` or the client connects already.
 */
mcpl_status mcpl_client_on_notification(mcpl_client *client,
                                        mcpl_notification_listener heard,
                                        void *user,
                                        mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `heard` hear the server's log messages (`notifications/message`; `server/utilities/logging`).
 * `mcpl_client_set_log_level` says how severe they have to be. Before connecting.
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * For the parameters, and what it returns, see `mcpl_client_on_notification`, which hears them too.
 */
mcpl_status mcpl_client_on_log(mcpl_client *client,
                               mcpl_log_listener heard,
                               void *user,
                               mcpl_finalizer finalize);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Has `heard` hear each line that the server's process writes to its stderr. Only of a server that is started
 * (`mcpl_client_set_command`, `mcpl_client_spawn`), unless its options send its stderr elsewhere. Before connecting.
 *
 * For the parameters, and what it returns, see `mcpl_client_on_notification`.
 */
mcpl_status mcpl_client_on_stderr(mcpl_client *client,
                                  mcpl_line_listener heard,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all tools of a server (`tools/list`; `server/tools`), and waits for the list.
 *
 * - `options`: how each page is asked for, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is an array of `Tool`, as JSON: all pages put together. It waits, and fails, as `mcpl_client_request` does;
 * with `MCPL_INVALID_RESPONSE` also if the pages never end. A list that the client has kept, as its server allowed it (since
 * 2026-07-28), is not asked for again unless the options say `fresh`.
 */
mcpl_status mcpl_client_list_tools(mcpl_client *client,
                                   const mcpl_request_options *options,
                                   char **result,
                                   size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_list_tools`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_list_tools_async(mcpl_client *client,
                                         const mcpl_request_options *options,
                                         mcpl_done done,
                                         void *user,
                                         mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all resources of a server (`resources/list`; `server/resources`), and waits for the list.
 *
 * - `options`: how each page is asked for, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is an array of `Resource`, as JSON: all pages put together. It waits, and fails, as `mcpl_client_request` does;
 * with `MCPL_INVALID_RESPONSE` also if the pages never end. A list that the client has kept, as its server allowed it (since
 * 2026-07-28), is not asked for again unless the options say `fresh`.
 */
mcpl_status mcpl_client_list_resources(mcpl_client *client,
                                       const mcpl_request_options *options,
                                       char **result,
                                       size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_list_resources`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_list_resources_async(mcpl_client *client,
                                             const mcpl_request_options *options,
                                             mcpl_done done,
                                             void *user,
                                             mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all resource templates of a server (`resources/templates/list`; `server/resources`), and waits for the list.
 *
 * - `options`: how each page is asked for, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is an array of `ResourceTemplate`, as JSON: all pages put together. It waits, and fails, as `mcpl_client_request` does;
 * with `MCPL_INVALID_RESPONSE` also if the pages never end. A list that the client has kept, as its server allowed it (since
 * 2026-07-28), is not asked for again unless the options say `fresh`.
 */
mcpl_status mcpl_client_list_resource_templates(mcpl_client *client,
                                                const mcpl_request_options *options,
                                                char **result,
                                                size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_list_resource_templates`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_list_resource_templates_async(mcpl_client *client,
                                                      const mcpl_request_options *options,
                                                      mcpl_done done,
                                                      void *user,
                                                      mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Lists all prompts of a server (`prompts/list`; `server/prompts`), and waits for the list.
 *
 * - `options`: how each page is asked for, or `NULL` for the client's settings.
 * - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
 *   `mcpl_string_free`. On failure `NULL` and 0. Either may be `NULL`.
 *
 * The result is an array of `Prompt`, as JSON: all pages put together. It waits, and fails, as `mcpl_client_request` does;
 * with `MCPL_INVALID_RESPONSE` also if the pages never end. A list that the client has kept, as its server allowed it (since
 * 2026-07-28), is not asked for again unless the options say `fresh`.
 */
mcpl_status mcpl_client_list_prompts(mcpl_client *client,
                                     const mcpl_request_options *options,
                                     char **result,
                                     size_t *result_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_list_prompts`, without waiting.
 *
 * - `done`, `user`: what is called with the result, or with why there is none, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_list_prompts_async(mcpl_client *client,
                                           const mcpl_request_options *options,
                                           mcpl_done done,
                                           void *user,
                                           mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Connects to what was set (`mcpl_client_set_url` and others), and waits until that is done: a server is found out to
 * speak with a handshake or without (2026-07-28), whatever its revision.
 *
 * Waits as long as the options `probe_timeout` and `open_timeout` say. Any thread but those that must not wait. A client
 * that could not connect can be told to do so again. Once it is connected it connects anew by itself where the connection
 * is lost.
 *
 * Returns `MCPL_USAGE_ERROR` if nothing was set or it is connected already, `MCPL_SERVER_UNREACHABLE` if the server
 * can't be reached, `MCPL_SERVER_EXITED`, `MCPL_HTTP_ERROR`, `MCPL_HANDSHAKE_FAILED` if it speaks nothing that the
 * client may speak, `MCPL_HANDSHAKE_TIMED_OUT`, `MCPL_CLOSED` if the client is closed, also meanwhile, and
 * `MCPL_WOULD_DEADLOCK` where it must not wait.
 */
mcpl_status mcpl_client_open(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_open`, without waiting: `done` is called when it is connected, with no result, or with why not.
 *
 * - `user`: given to `done`.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is not called if this function fails: `MCPL_USAGE_ERROR` if it is `NULL`, nothing was set, or the
 * client connects already or has; `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_open_async(mcpl_client *client,
                                   mcpl_done done,
                                   void *user,
                                   mcpl_request **request);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_HTTP))
/**
 * Connects to a server behind a URL: `mcpl_client_set_url` without options, and `mcpl_client_open`. It waits, and fails, as
 * they do.
 */
mcpl_status mcpl_client_connect(mcpl_client *client,
                                const char *url);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * Starts a server and connects to it: `mcpl_client_set_command` without options, and `mcpl_client_open`. It waits, and
 * fails, as they do.
 */
mcpl_status mcpl_client_spawn(mcpl_client *client,
                              const char *const *argv,
                              size_t count);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * What a client is connected to, as it was when it connected first.
 *
 * - `json`, `length`: set to a JSON object and its length in bytes; release it with `mcpl_string_free`. On failure `NULL` and
 *   0. Its members: `protocolVersion`, the revision that is spoken; `serverInfo`, the server's `Implementation`, or `null`;
 *   `serverCapabilities`; `instructions`, how to use it, for the model, or `null`.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_info(mcpl_client *client,
                             char **json,
                             size_t *length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Answers a question.
 *
 * - `result`, `length`: the result as a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`): `ElicitResult`,
 *   `CreateMessageResult` or `ListRootsResult` of the specification (`client/elicitation`, `client/sampling`,
 *   `client/roots`). It is copied. A user who declines or cancels is an `ElicitResult` too. Fields that an accepted form
 *   leaves out get the defaults that the server gave. Absolute paths among the URIs of roots are sent as `file://` URIs.
 *
 * Any thread, callbacks too; it doesn't wait. Returns `MCPL_STALE_HANDLE` if the question was answered, refused or
 * withdrawn, and `MCPL_USAGE_ERROR` if the result is no JSON object, the content of an accepted form does not match
 * the schema in the question, what the model said is no message, or a root is neither an absolute path nor a `file://`
 * URI; the question stays open then. Content is sent for accepted forms alone.
 */
mcpl_status mcpl_question_answer(mcpl_question *question,
                                 const char *result,
                                 size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Refuses a question with a JSON-RPC error.
 *
 * - `code`: the error's, such as -1 for a user's refusal of sampling (`client/sampling`), -32603 for a failure.
 * - `message`: what to tell the server.
 * - `data`, `data_length`: more, as JSON, or `NULL`. Everything is copied.
 *
 * Any thread, callbacks too; it doesn't wait. Returns `MCPL_STALE_HANDLE` if the question was answered, refused or
 * withdrawn, and `MCPL_USAGE_ERROR` if a text is not what it has to be; the question stays open then.
 */
mcpl_status mcpl_question_refuse(mcpl_question *question,
                                 int64_t code,
                                 const char *message,
                                 const char *data,
                                 size_t data_length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Whether nobody waits for the answer to a question any more: the server has withdrawn it, or (since 2026-07-28) the
 * request was given up in whose course it was asked, or the client is closed. Also if it was answered.
 *
 * Any thread; never fails.
 */
bool mcpl_question_is_withdrawn(mcpl_question *question);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has `withdrawn` called when nobody waits for the answer to a question any more, so that a dialog can be closed: at most
 * once, where callbacks run. It is not called if the question is answered or refused.
 *
 * - `user`, `finalize`: given to the callback, and what releases it once the question has ended. A further call of this
 *   function replaces the callback, and releases what the one before was given.
 *
 * Any thread. Returns `MCPL_STALE_HANDLE` if the question has ended already; the callback is not called then.
 */
mcpl_status mcpl_question_on_withdrawn(mcpl_question *question,
                                       mcpl_withdrawn withdrawn,
                                       void *user,
                                       mcpl_finalizer finalize);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Gives up a request: the server hears of it (every revision, `basic/utilities/cancellation`), and the request's callback
 * is called with `MCPL_REQUEST_CANCELLED`.
 *
 * Any thread, callbacks too; it doesn't wait. Returns `MCPL_STALE_HANDLE` if the request has ended: then its callback
 * was or will be called with how that was.
 */
mcpl_status mcpl_request_cancel(mcpl_request *request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sets options. Before connecting.
 *
 * - `json`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), which is copied. All members may be left
 *   out, and have their defaults then; times are in seconds:
 *   - `info`: more that the host says of itself, an `Implementation`: `title`, `icons`, `websiteUrl` and so on. Its members
 *     are added to name and version, or replace them.
 *   - `capabilities`: more that the host can do, beyond what callbacks declare, in its place member by member; `null` takes
 *     one away.
 *   - `revisions`: an array of the revisions that may be spoken, such as `["2025-11-25"]`; all five by default.
 *   - `era`: the era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as the
 *     revisions up to 2025-11-25 demand; `"modern"` expects 2026-07-28. By default `server/discover` probes.
 *   - `probe_timeout` (3), `open_timeout` (30): how long opening waits for the answer to a probe, and to what follows.
 *   - `timeout` (60), `total_timeout` (3600): how long requests wait without a sign of life, and in all.
 *   - `ping_interval` (never), `ping_timeout` (30): after how much silence the server is pinged (2024-11-05 to 2025-11-25;
 *     there is no `ping` on 2026-07-28), and how long the answer may take. Without one the connection ends as if it had been
 *     lost, which is logged: requests in flight fail with `MCPL_CONNECTION_LOST`.
 *   - `max_rounds` (10): how often a server may ask for input in the course of one request.
 *   - `max_list_bytes` (33554432): how many bytes the pages of one list may have together.
 *   - `check_output` (`true`): whether structured content is held against the output schema of its tool.
 *   - `trusted` (`false`): whether what the server's tools say of themselves is believed (their annotations): then a call
 *     that was lost is sent again where the tool says that it changes nothing, or nothing more the second time.
 *   - `allow_undeclared_capabilities` (`false`): whether requests are sent that need a capability which the server has not
 *     declared, in place of `MCPL_NOT_SUPPORTED`. Known to declare less than they have: servers of the official Python
 *     SDK before version 2, which say `"subscribe": false` though they may have a handler of `resources/subscribe`.
 *   - `cache` (`true`): whether lists and reads are kept for as long as their server says (2026-07-28).
 *   - `reconnect_attempts` (5), `reconnect_delay` (0.2), `reconnect_max_delay` (10): what happens when the connection is
 *     lost; with 0 attempts it stays lost.
 *   - `listen` (`true`): whether to listen for changes on 2026-07-28 while there is a callback for notifications.
 *
 * A further call replaces all of them but `info`, whose members stay until they are replaced.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR`, and changes nothing, if the options are not these or the client connects
 * already.
 */
mcpl_status mcpl_client_set_options(mcpl_client *client,
                                    const char *json,
                                    size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has all callbacks of a client run on the thread that dispatches this loop. Before connecting, once.
 *
 * Any thread. The loop should outlive the client: once it is freed, callbacks run on worker threads. Returns
 * `MCPL_USAGE_ERROR` if the client uses a loop already or connects already.
 */
mcpl_status mcpl_client_use_loop(mcpl_client *client, mcpl_loop *loop_);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_HTTP))
/**
 * The server is behind a URL, over HTTP: Streamable HTTP of every revision, or HTTP+SSE where nothing else is served
 * (every revision, `basic/transports`). Before connecting; replaces what was set before.
 *
 * - `url`: such as `"https://example.org/mcp"`.
 * - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults; times are in seconds:
 *   - `headers`: an array of pairs that each request gets, `[["authorization", "Bearer ..."]]`.
 *   - `proxy`: a URL, or `"direct"` for none; by default what the environment says.
 *   - `tls_roots`: more certificates to trust, as PEM; `only_these_roots` (`false`): whether to trust no others.
 *   - `connect_timeout` (10), `max_redirects` (5), `body_limit` (16 MiB): limits.
 *   - `resume_attempts` (5), `resume_delay` (0.5), `resume_max_delay` (30): how streams that broke are resumed.
 *   - `auth`: how the client is authorized (`basic/authorization`): `{"bearer": token}`, `{"source": {}}` for tokens that the
 *     host is asked for, or `{"oauth": {...}}` with
 *     - `client_name`, which has to be given: what users are shown; `scopes` beside those that the server demands.
 *     - `user_agent`: `{"loopback": {}}` (the system's browser; `redirect_uri`, `timeout` (300), `browser`: `"system"`, `"none"`
 *       or `"host"`, `unopened` (`false`): whether the host is told of a URL that no browser was opened for),
 *       `{"terminal": {}}` (`redirect_uri`, `timeout`) or `{"host": {"redirect_uri": ...}}`. Without one nobody is asked.
 *     - `store`: `"memory"` (the default), `{"file": directory}`, `{"keyring": name}` where the build has it (`FEATURES=keyring`), or
 *       `{"host": {}}` (`locks` (`false`)).
 *     - `credentials`: an array of what the client is known by already: `client_id`, `issuer`, `secret`, `private_key` (PEM),
 *       `algorithm`, `key_id`, `auth`; or `client_id_metadata_url`.
 *     - `grant`: `"user"` (the default), `"client_credentials"`, `"workload_identity"`, or `{"enterprise": {...}}` with
 *       `token_endpoint`, `client_id`, `secret`.
 *     - `client_uri`, `logo_uri`, `software_id`, `software_version`, `account`, `dpop` (`false`), `require_pkce` (`true`),
 *       `allow_private_addresses` (`false`).
 *
 *     What the host is asked is answered by what `mcpl_client_on_authorize` was given.
 *
 * Both are copied. Any thread. Returns `MCPL_USAGE_ERROR` if the options are not these or the client connects already;
 * a URL that is none is told when it connects.
 */
mcpl_status mcpl_client_set_url(mcpl_client *client,
                                const char *url,
                                const char *options);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * The server is a program that is started, and spoken to over its stdin and stdout (every revision,
 * `basic/transports`, stdio). It ends with the connection: first its stdin is closed, after a while it is told to end,
 * then killed, with its children; also when this process ends in whatever way. Before connecting; replaces what was set
 * before.
 *
 * - `argv`, `count`: the program, by path or by a name to be found in `PATH`, and its arguments, each ended with a zero
 *   byte.
 * - `options`: a JSON object that ends with a zero byte, or `NULL` for defaults:
 *   - `env`: an object of environment variables. Of this process's own it gets only what is not secret by custom (`PATH`,
 *     `HOME`, `LANG` and the like), or with `inherit_env` all.
 *   - `cwd`: its working directory.
 *   - `stderr`: `"capture"` (the default: its last lines are part of the error when it ends, and `mcpl_client_on_stderr`
 *     hears them), `"inherit"` or `"null"`.
 *   - `grace` (2): how many seconds it has to leave.
 *
 * All is copied. Any thread. Returns `MCPL_USAGE_ERROR` if there is no program, the options are not these or the
 * client connects already; that a program can't be started is told when the client connects.
 */
mcpl_status mcpl_client_set_command(mcpl_client *client,
                                    const char *const *argv,
                                    size_t count,
                                    const char *options);
#endif

#if (defined(MCPLINE_HAS_CLIENT) && defined(MCPLINE_HAS_STDIO))
/**
 * The server listens on a Unix socket, for messages that end with a line break. Before connecting; replaces what was set
 * before.
 *
 * - `path`: the socket's, which is copied.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the path is `NULL` or not UTF-8, or the client connects already.
 */
mcpl_status mcpl_client_set_socket(mcpl_client *client,
                                   const char *path);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * The server is one in this process, which needn't be served otherwise. Before connecting; replaces what was set before.
 *
 * Any thread. The server should outlive the client: once it is closed its handlers don't run any more, and what is asked
 * of it fails. Returns `MCPL_STALE_HANDLE` if it was freed, and `MCPL_USAGE_ERROR` if the client connects already.
 */
mcpl_status mcpl_client_set_server(mcpl_client *client,
                                   mcpl_server *server);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Asks the server for a sign of life, and waits for it: `ping` (`basic/utilities/ping`), or since 2026-07-28, which has
 * none, `server/discover`.
 *
 * - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_ping(mcpl_client *client,
                             const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_ping`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_ping_async(mcpl_client *client,
                                   const mcpl_request_options *options,
                                   mcpl_done done,
                                   void *user,
                                   mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Says how severe log messages have to be for the server to send them (`server/utilities/logging`): for the session, or
 * since 2026-07-28 with each further request. It holds on new connections too.
 * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
 *
 * - `level`: the least severe, an `mcpl_log_level`.
 * - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_set_log_level(mcpl_client *client,
                                      int32_t level,
                                      const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_set_log_level`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_set_log_level_async(mcpl_client *client,
                                            int32_t level,
                                            const mcpl_request_options *options,
                                            mcpl_done done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has the server tell of changes of a resource from now on, on new connections too (`server/resources`, subscriptions):
 * `notifications/resources/updated`, which `mcpl_client_on_notification` hears.
 *
 * - `uri`: the resource's, ended with a zero byte.
 * - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_subscribe(mcpl_client *client,
                                  const char *uri,
                                  const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_subscribe`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_subscribe_async(mcpl_client *client,
                                        const char *uri,
                                        const mcpl_request_options *options,
                                        mcpl_done done,
                                        void *user,
                                        mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Has the server tell of changes of a resource no more.
 *
 * - `uri`: the resource's, ended with a zero byte.
 * - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_unsubscribe(mcpl_client *client,
                                    const char *uri,
                                    const mcpl_request_options *options);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_unsubscribe`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_unsubscribe_async(mcpl_client *client,
                                          const char *uri,
                                          const mcpl_request_options *options,
                                          mcpl_done done,
                                          void *user,
                                          mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Tells the server that the host's root directories have changed (`client/roots`). Since 2026-07-28 there is no such
 * message, and nothing is sent.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_roots_changed(mcpl_client *client);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_roots_changed`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_roots_changed_async(mcpl_client *client,
                                            mcpl_done done,
                                            void *user,
                                            mcpl_request **request);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * Sends any notification, and waits until it is on its way.
 *
 * - `method`: such as `"notifications/x-mine"`, ended with a zero byte.
 * - `params`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for none.
 *
 * It waits, and fails, as `mcpl_client_request` does.
 */
mcpl_status mcpl_client_notify(mcpl_client *client, const char *method, const char *params, size_t length);
#endif

#if defined(MCPLINE_HAS_CLIENT)
/**
 * As `mcpl_client_notify`, without waiting.
 *
 * - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
 * - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
 *
 * Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
 * be or the client is not connected, `MCPL_CLOSED` if it is closed.
 */
mcpl_status mcpl_client_notify_async(mcpl_client *client,
                                     const char *method,
                                     const char *params,
                                     size_t length,
                                     mcpl_done done,
                                     void *user,
                                     mcpl_request **request);
#endif

/**
 * Has `write` told what the library has to say to developers: refused messages, handlers that failed, transports that
 * broke. Replaces what was told before; `NULL` for nobody, as at first.
 *
 * `least` is an `mcpl_log_level`. `write` is called from any thread, also while functions of this library run, and must
 * call none of them. Messages to clients are another thing: `mcpl_call_log`.
 */
mcpl_status mcpl_set_diagnostics(int32_t least,
                                 mcpl_diagnostics write,
                                 void *user,
                                 mcpl_finalizer finalize);

/**
 * Sets how many worker threads take callbacks, before the first server, client or loop is made; 0 is the default: one
 * per processor, at least four, and up to 32 more for clients of whose callbacks none runs while others hold all of these.
 *
 * Callbacks that wait in `mcpl_call_ask_wait` and in functions of a client are not counted: others take their places. One
 * that goes on after that ends beside those others, so that for so long more callbacks run than are set: they need locks
 * of their own, even where one is set.
 */
mcpl_status mcpl_set_worker_threads(uint32_t most);

/**
 * The version of the library, such as `"1.2.3"`. The string lives as long as the library.
 */
const char *mcpl_version(void);

/**
 * Makes a loop. Release it with `mcpl_loop_free`.
 *
 * Returns `NULL` if the system has no descriptors or threads left; see `mcpl_last_error`.
 */
mcpl_loop *mcpl_loop_new(void);

/**
 * A descriptor that is readable while callbacks wait for `mcpl_loop_dispatch`. For `poll`, `select`, `epoll` and the
 * like; it is only to be polled, neither read nor closed, and lives as long as the loop.
 *
 * Returns -1 if the loop is `NULL` or was freed.
 */
int mcpl_loop_fd(mcpl_loop *events);

/**
 * Runs the callbacks that wait, on this thread: at most `most` of them, or with 0 all that wait at the moment. Never
 * waits for more. `count`, which may be `NULL`, is told how many there were.
 *
 * One thread at a time dispatches a loop. Within a callback, functions that wait return `MCPL_WOULD_DEADLOCK`, as does
 * this one.
 */
mcpl_status mcpl_loop_dispatch(mcpl_loop *events,
                               uint32_t most,
                               uint32_t *count);

/**
 * Waits until callbacks wait for `mcpl_loop_dispatch`, at most `timeout_ms` milliseconds, or without limit if that is
 * negative. For programs that have nothing else to poll.
 *
 * Returns `MCPL_WAIT_TIMED_OUT` when the time is over, `MCPL_WOULD_DEADLOCK` within a callback that the loop
 * dispatches.
 */
mcpl_status mcpl_loop_wait(mcpl_loop *events,
                           int64_t timeout_ms);

/**
 * Releases a loop, on the thread that dispatches it and not within a callback. Callbacks that still wait, and those of
 * servers and clients that still use it, run on worker threads from then on. `NULL` is nothing.
 */
void mcpl_loop_free(mcpl_loop *events);

/**
 * Adds a tool, while it is served too. `description` may be `NULL`. `input_schema` is the JSON Schema of its arguments,
 * an object's; `NULL` for none. Arguments are checked against it before the handler is called.
 *
 * Returns `MCPL_USAGE_ERROR` if there is a tool of that name, or the schema is none.
 */
mcpl_status mcpl_server_add_tool(mcpl_server *server,
                                 const char *name,
                                 const char *description,
                                 const char *input_schema,
                                 mcpl_handler handler,
                                 void *user,
                                 mcpl_finalizer finalize);

/**
 * Adds a tool by its whole definition: a `Tool` of the specification as JSON of `length` bytes. `options` may be `NULL`.
 */
mcpl_status mcpl_server_add_tool_with(mcpl_server *server,
                                      const char *definition,
                                      size_t length,
                                      const mcpl_handler_options *options,
                                      mcpl_handler handler,
                                      void *user,
                                      mcpl_finalizer finalize);

/**
 * Adds a resource. `mime_type` may be `NULL`. Its handler's arguments are `{}`.
 *
 * Returns `MCPL_USAGE_ERROR` if there is a resource of that URI.
 */
mcpl_status mcpl_server_add_resource(mcpl_server *server,
                                     const char *uri,
                                     const char *name,
                                     const char *mime_type,
                                     mcpl_handler handler,
                                     void *user,
                                     mcpl_finalizer finalize);

/**
 * Adds a resource by its whole definition: a `Resource` of the specification as JSON of `length` bytes. `options` may be
 * `NULL`.
 */
mcpl_status mcpl_server_add_resource_with(mcpl_server *server,
                                          const char *definition,
                                          size_t length,
                                          const mcpl_handler_options *options,
                                          mcpl_handler handler,
                                          void *user,
                                          mcpl_finalizer finalize);

/**
 * Adds a resource template (RFC 6570), such as `"users://{id}"`. `mime_type` may be `NULL`. Its handler's arguments are
 * the variables, as texts; `mcpl_call_name` tells the whole URI.
 *
 * Returns `MCPL_USAGE_ERROR` if it is no template, or there is one like it.
 */
mcpl_status mcpl_server_add_resource_template(mcpl_server *server,
                                              const char *uri_template,
                                              const char *name,
                                              const char *mime_type,
                                              mcpl_handler handler,
                                              void *user,
                                              mcpl_finalizer finalize);

/**
 * Adds a resource template by its whole definition: a `ResourceTemplate` of the specification as JSON of `length` bytes.
 * `options` may be `NULL`.
 */
mcpl_status mcpl_server_add_resource_template_with(mcpl_server *server,
                                                   const char *definition,
                                                   size_t length,
                                                   const mcpl_handler_options *options,
                                                   mcpl_handler handler,
                                                   void *user,
                                                   mcpl_finalizer finalize);

/**
 * Adds a prompt. `description` may be `NULL`. `arguments` is a JSON array of `PromptArgument` (`name`, `description`,
 * `required`), or `NULL` for none; the handler gets them as texts.
 *
 * Returns `MCPL_USAGE_ERROR` if there is a prompt of that name.
 */
mcpl_status mcpl_server_add_prompt(mcpl_server *server,
                                   const char *name,
                                   const char *description,
                                   const char *arguments,
                                   mcpl_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * Adds a prompt by its whole definition: a `Prompt` of the specification as JSON of `length` bytes. `options` may be
 * `NULL`.
 */
mcpl_status mcpl_server_add_prompt_with(mcpl_server *server,
                                        const char *definition,
                                        size_t length,
                                        const mcpl_handler_options *options,
                                        mcpl_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);

/**
 * Serves requests of a method that no revision of the protocol defines, such as `"acme/search"`. `params_schema` is the JSON
 * Schema of their parameters, `NULL` for any; requests that don't match it are refused with -32602. `options` may be `NULL`.
 *
 * The handler's arguments are the parameters, without `_meta`. It ends its call with `mcpl_call_reply_result`: any JSON object.
 *
 * Returns `MCPL_USAGE_ERROR` if the method has a handler, the protocol defines it, or the schema is unusable.
 */
mcpl_status mcpl_server_on_request(mcpl_server *server,
                                   const char *method,
                                   const char *params_schema,
                                   const mcpl_handler_options *options,
                                   mcpl_handler handler,
                                   void *user,
                                   mcpl_finalizer finalize);

/**
 * Handles notifications of a method that no revision of the protocol defines, such as `"acme/note"`. `params_schema` is the
 * JSON Schema of their parameters, `NULL` for any. `options` may be `NULL`.
 *
 * The handler's arguments are the parameters, without `_meta`. It ends its call with `mcpl_call_reply_text` and any text,
 * which is ignored, because a notification has no answer. Handlers are started in the order of arrival, but for parameters
 * that take long to check, and run side by side; the end of the session cancels them. In a session with a handshake they ask the client and log, as those of
 * `mcpl_server_on_initialized` do; on 2026-07-28 asking fails. A notification whose parameters don't match the schema, or
 * whose client lacks a scope or has too many calls in flight, is dropped with a warning in the log.
 *
 * Returns `MCPL_USAGE_ERROR` if the method has a handler, the protocol defines it, or the schema is unusable.
 */
mcpl_status mcpl_server_on_notification(mcpl_server *server,
                                        const char *method,
                                        const char *params_schema,
                                        const mcpl_handler_options *options,
                                        mcpl_handler handler,
                                        void *user,
                                        mcpl_finalizer finalize);

/**
 * Completes an argument of a prompt, or a variable of a resource template, from a list of `count` candidates; those that
 * fit what was typed are sent, best first. `reference` is the prompt's name or the URI template.
 */
mcpl_status mcpl_server_add_candidates(mcpl_server *server,
                                       const char *reference,
                                       const char *argument,
                                       const char *const *candidates,
                                       size_t count);

/**
 * Completes an argument of a prompt, or a variable of a resource template, by a handler, which is given `ref`, `argument`
 * and `context` and ends its call with `mcpl_call_reply_values` or `mcpl_call_reply_result`.
 */
mcpl_status mcpl_server_add_completion(mcpl_server *server,
                                       const char *reference,
                                       const char *argument,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Completes whatever has no completion of its own. Replaces what did so before.
 */
mcpl_status mcpl_server_set_completion(mcpl_server *server,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Has `handler` called for each session whose handshake is complete (`basic/lifecycle`, revisions up to 2025-11-25;
 * 2026-07-28 has no sessions). Its call is outside of any request: `mcpl_call_ask` and `mcpl_call_ask_wait` ask the client
 * until it is ended, by `mcpl_call_reply_text` with any text, or cancelled with its session. Over HTTP the client has to
 * have a GET stream open. Replaces the handler before.
 */
mcpl_status mcpl_server_on_initialized(mcpl_server *server,
                                       mcpl_handler handler,
                                       void *user,
                                       mcpl_finalizer finalize);

/**
 * Has `handler` called when a client that declared roots tells that they changed (`client/roots`, root list changes,
 * revisions up to 2025-11-25), as `mcpl_server_on_initialized` does: ask with `MCPL_ASK_LIST_ROOTS`. While it runs for a
 * session, further changes there call it once more when it has ended. Replaces the handler before.
 */
mcpl_status mcpl_server_on_roots_changed(mcpl_server *server,
                                         mcpl_handler handler,
                                         void *user,
                                         mcpl_finalizer finalize);

/**
 * Removes a tool. Calls that are under way end as if it were there. Returns `MCPL_NOT_FOUND` if there is none.
 */
mcpl_status mcpl_server_remove_tool(mcpl_server *server,
                                    const char *name);

/**
 * Removes a resource, or a resource template. Returns `MCPL_NOT_FOUND` if there is none.
 */
mcpl_status mcpl_server_remove_resource(mcpl_server *server, const char *uri);

/**
 * Removes a prompt. Returns `MCPL_NOT_FOUND` if there is none.
 */
mcpl_status mcpl_server_remove_prompt(mcpl_server *server, const char *name);

/**
 * Removes the handler of a custom request. Calls that are under way end as if it were there. Returns `MCPL_NOT_FOUND` if
 * there is none.
 */
mcpl_status mcpl_server_remove_request_handler(mcpl_server *server,
                                               const char *method);

/**
 * Removes the handler of a custom notification. Those that run go on. Returns `MCPL_NOT_FOUND` if there is none.
 */
mcpl_status mcpl_server_remove_notification_handler(mcpl_server *server,
                                                    const char *method);

/**
 * Finds a value in a JSON text.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is checked as a whole.
 * - `pointer`: a JSON pointer (RFC 6901), such as `"/content/0/text"`. `""` is the whole text; `~1` stands for a
 *   slash and `~0` for a tilde in the name of a member.
 * - `value`, `value_length`: set to where the value lies in `json` itself, without white space around it, and to its
 *   length in bytes. Nothing is copied, nothing has to be released, and no zero byte follows: what is found lives as
 *   long as the text. Either may be `NULL`. On failure they are set to `NULL` and 0.
 *
 * What was found can be given to the other functions of this kind. Any thread.
 *
 * Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if the text is not JSON (two
 * members of one name in an object are not) or the pointer is none.
 */
mcpl_status mcpl_json_find(const char *json,
                           size_t length,
                           const char *pointer,
                           const char **value,
                           size_t *value_length);

/**
 * Tells what kind of value a JSON text is.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `kind`: set to its kind; left as it is on failure.
 *
 * Any thread. Fails with `MCPL_USAGE_ERROR` if the text is not JSON.
 */
mcpl_status mcpl_json_kind_of(const char *json, size_t length, mcpl_json_kind *kind);

/**
 * Reads an integer.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `pointer`: where the number is in it, as for `mcpl_json_find`.
 * - `number`: set to the number; left as it is on failure.
 *
 * A number that is whole is an integer however it is written: `7`, `7.0` and `7e0` are the same. Any thread.
 *
 * Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is not an integer of 64
 * bits, or as `mcpl_json_find` does.
 */
mcpl_status mcpl_json_int64(const char *json,
                            size_t length,
                            const char *pointer,
                            int64_t *number);

/**
 * Reads a number.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `pointer`: where the number is in it, as for `mcpl_json_find`.
 * - `number`: set to the nearest double; left as it is on failure.
 *
 * Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is no number or
 * beyond what a double holds, or as `mcpl_json_find` does.
 */
mcpl_status mcpl_json_double(const char *json,
                             size_t length,
                             const char *pointer,
                             double *number);

/**
 * Reads `true` or `false`.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `pointer`: where the value is in it, as for `mcpl_json_find`.
 * - `value`: set to it; left as it is on failure.
 *
 * Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
 * kind, or as `mcpl_json_find` does.
 */
mcpl_status mcpl_json_bool(const char *json,
                           size_t length,
                           const char *pointer,
                           bool *value);

/**
 * Reads a string, its escapes resolved.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `pointer`: where the string is in it, as for `mcpl_json_find`.
 * - `text`: set to a copy in UTF-8, followed by a zero byte; release it with `mcpl_string_free`. On failure `NULL`.
 * - `text_length`: set to its length in bytes, without the zero byte; on failure 0. May be `NULL`, but a string may hold
 *   zero bytes of its own (`\u0000`), where C functions take it to end.
 *
 * Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
 * kind, or as `mcpl_json_find` does.
 */
mcpl_status mcpl_json_string(const char *json,
                             size_t length,
                             const char *pointer,
                             char **text,
                             size_t *text_length);

/**
 * Counts the members of an object, or the elements of an array.
 *
 * - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `pointer`: where the object or array is in it, as for `mcpl_json_find`.
 * - `count`: set to how many it has; left as it is on failure.
 *
 * Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
 * kind, or as `mcpl_json_find` does.
 */
mcpl_status mcpl_json_count(const char *json,
                            size_t length,
                            const char *pointer,
                            size_t *count);

/**
 * Gives one member of an object, or one element of an array, by its place in the order in which they are written.
 *
 * To visit all, count up from 0 until it fails with `MCPL_NOT_FOUND`. Each call passes over what comes before.
 *
 * - `json`, `length`: the object or array, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
 * - `index`: which one, from 0.
 * - `name`: set to the member's name, followed by a zero byte; release it with `mcpl_string_free`. `NULL` for an element,
 *   and on failure. May be `NULL`.
 * - `value`, `value_length`: set to where the value lies in `json`, as `mcpl_json_find` does.
 *
 * Any thread. Fails with `MCPL_NOT_FOUND` if there are not so many, and with `MCPL_USAGE_ERROR` if the text is not
 * JSON, or neither an object nor an array.
 */
mcpl_status mcpl_json_item(const char *json,
                           size_t length,
                           size_t index,
                           char **name,
                           const char **value,
                           size_t *value_length);

/**
 * Makes a writer, of which nothing is written yet. Release it with `mcpl_json_free`. Any thread.
 *
 * `NULL` only for a defect of the library.
 */
mcpl_json *mcpl_json_new(void);

/**
 * Begins an object: members follow, each a name (`mcpl_json_name`) and a value, then `mcpl_json_end_object`.
 *
 * It is a mistake where no value can be, or more than 127 levels deep. One thread at a time.
 */
void mcpl_json_begin_object(mcpl_json *json);

/**
 * Ends the object that was begun last. It is a mistake if that was an array, or if a name has no value yet. One thread
 * at a time.
 */
void mcpl_json_end_object(mcpl_json *json);

/**
 * Begins an array: values follow, then `mcpl_json_end_array`.
 *
 * It is a mistake where no value can be, or more than 127 levels deep. One thread at a time.
 */
void mcpl_json_begin_array(mcpl_json *json);

/**
 * Ends the array that was begun last. It is a mistake if that was an object. One thread at a time.
 */
void mcpl_json_end_array(mcpl_json *json);

/**
 * Names the next value of an object. The name is copied. One thread at a time.
 *
 * It is a mistake outside of an object, where another name has no value yet, and if it is `NULL` or not UTF-8. That an
 * object has a name twice is told by `mcpl_json_text`.
 */
void mcpl_json_name(mcpl_json *json,
                    const char *name);

/**
 * Writes a string.
 *
 * - `text`, `length`: the text in UTF-8, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is copied, and what
 *   has to be escaped is.
 *
 * It is a mistake where no value can be, and if the text is `NULL` or not UTF-8. One thread at a time.
 */
void mcpl_json_put_string(mcpl_json *json,
                          const char *text,
                          size_t length);

/**
 * Writes an integer. It is a mistake where no value can be. One thread at a time.
 */
void mcpl_json_put_int64(mcpl_json *json, int64_t number);

/**
 * Writes a number, so that the same double is read back. It is a mistake where no value can be, and if it is not finite:
 * JSON has no such numbers. One thread at a time.
 */
void mcpl_json_put_double(mcpl_json *json,
                          double number);

/**
 * Writes `true` or `false`. It is a mistake where no value can be. One thread at a time.
 */
void mcpl_json_put_bool(mcpl_json *json, bool value);

/**
 * Writes `null`. It is a mistake where no value can be. One thread at a time.
 */
void mcpl_json_put_null(mcpl_json *json);

/**
 * Writes a value that is JSON already.
 *
 * - `value`, `length`: the JSON text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is copied.
 *
 * It is a mistake where no value can be, and if the text is not JSON. One thread at a time.
 */
void mcpl_json_put_json(mcpl_json *json, const char *value, size_t length);

/**
 * Writes bytes as a string in base64 (RFC 4648, section 4): what `data` of images and sounds, and `blob` of resources,
 * have to be.
 *
 * - `data`, `length`: the bytes, which are copied. `NULL` is fine for none.
 *
 * It is a mistake where no value can be, and if the length is `MCPL_AUTO_LENGTH`: bytes don't end by themselves. One
 * thread at a time.
 */
void mcpl_json_put_base64(mcpl_json *json,
                          const void *data,
                          size_t length);

/**
 * Gives what was written.
 *
 * - `text`: set to the JSON text, followed by a zero byte. It belongs to the writer and lives until the writer is used
 *   again or released. On failure `NULL`. May be `NULL`.
 * - `length`: set to its length in bytes; on failure 0. May be `NULL`.
 *
 * One thread at a time. Fails with `MCPL_USAGE_ERROR` if what was written is not one whole value, or something went
 * wrong before: `mcpl_last_error` then tells the first mistake.
 */
mcpl_status mcpl_json_text(mcpl_json *json,
                           const char **text,
                           size_t *length);

/**
 * Forgets what was written, mistakes too: the writer is as new. One thread at a time.
 */
void mcpl_json_clear(mcpl_json *json);

/**
 * Releases a writer, and what it gave. `NULL` is nothing.
 */
void mcpl_json_free(mcpl_json *json);

/**
 * Makes a server with this name and version. Release it with `mcpl_server_free`.
 *
 * Returns `NULL` on failure; see `mcpl_last_error`.
 */
mcpl_server *mcpl_server_new(const char *name, const char *version);

/**
 * Makes a server with all that it says of itself, and with options. Release it with `mcpl_server_free`.
 *
 * `info` is an `Implementation` of the specification as JSON: `name`, `version`, and what else it has (`title`,
 * `description`, `icons`, `websiteUrl`). `options` is a JSON object, or `NULL` for the defaults; its members, all
 * optional (times in seconds, rates as `[per second, at once]`, sizes in bytes):
 *
 * - `instructions`: how to use the server, for the model.
 * - `declare`: features to declare though nothing of them is registered yet, of `tools`, `resources`, `prompts`,
 *   `completions`. `extensions`, `experimental`: objects of settings by name.
 * - `revisions`: those to serve. `page_size` of lists (1000). `list_cache`, `resource_cache`: `[milliseconds, public]`
 *   (2026-07-28).
 * - `ask_idle_timeout`, `ask_timeout`: how long a question to the client waits without a sign of life (600), in all
 *   (3600). `rounds` of questions per request (16); toward clients of the handshake era `call_asks` questions per
 *   call (1000). `state_size` (65536), `state_lifetime` (600), `state_keys`: of what the client carries between rounds;
 *   `suspended`: how many handlers may wait so (10000); past it the oldest one of the client that has most is cancelled,
 *   and its client's retry runs it again.
 * - `max_peer_bytes`: bytes held on behalf of all peers together (536870912). `max_calls` in flight in all sessions together
 *   (10000). `client_share`: the largest part of each of these limits, of `suspended`, and over HTTP of connections and
 *   sessions, that one client may use (0.25): a principal where requests are authenticated, else an address. What exceeds
 *   a limit is refused as busy.
 * - `max_client_info_bytes` (65536), `max_subscription_bytes` (262144): what a session keeps of its client.
 * - `in_flight`, `open_asks`, `subscriptions`: how many of these a session may have. `tool_rate`,
 *   `completion_rate`, `progress_rate`, `log_rate`. `ping_interval`, `ping_misses`. `line_limit`, `batch_limit`,
 *   `depth_limit` of messages.
 * - `check_output`: whether results are checked against `outputSchema` (true). `shutdown_grace`: how long stopping waits
 *   for calls in flight (5).
 *
 * Returns `NULL` on failure; see `mcpl_last_error`.
 */
mcpl_server *mcpl_server_new_with(const char *info,
                                  size_t info_length,
                                  const char *options,
                                  size_t options_length);

/**
 * Has all callbacks of the server run on the thread that dispatches this loop. Before anything is served; once.
 */
mcpl_status mcpl_server_use_loop(mcpl_server *server,
                                 mcpl_loop *events);

/**
 * Tells the subscribers of a resource that it has changed.
 */
mcpl_status mcpl_server_notify_resource_updated(mcpl_server *server, const char *uri);

/**
 * Tells the client that was sent to a URL under this id that the visit is over.
 */
mcpl_status mcpl_server_notify_elicitation_complete(mcpl_server *server, const char *elicitation_id);

/**
 * Closes a server: stops what is served, gives calls in flight the grace period (option `shutdown_grace`), ends what is
 * still open then, waits until no callback runs any more, and releases all data that callbacks were given.
 *
 * Returns `MCPL_WOULD_DEADLOCK` within one of its own callbacks, on the I/O thread and within `mcpl_loop_dispatch`.
 * With a loop, call it on the thread that dispatches, or while that goes on dispatching.
 */
mcpl_status mcpl_server_close(mcpl_server *server);

/**
 * Closes a server, unless that is done, and releases it. `NULL` is nothing.
 *
 * Where closing can't wait (within one of its own callbacks and the like) it goes on by itself: no further callback
 * begins, and data is released with the last that holds it.
 */
void mcpl_server_free(mcpl_server *server);

#if defined(MCPLINE_HAS_STDIO)
/**
 * Serves over this process's standard input and output until the client is gone or `mcpl_server_stop`, and waits for the
 * end (`basic/transports`, stdio). SIGINT and SIGTERM end the process with its calls cut: see
 * `mcpl_server_stop_on_signals`.
 *
 * Meanwhile the process's own standard input is empty and its standard output is its standard error, so that nothing
 * that is printed gets between the messages. With a loop, callbacks are dispatched here if this is the loop's thread.
 * Returns `MCPL_WOULD_DEADLOCK` where it must not wait.
 */
mcpl_status mcpl_server_run_stdio(mcpl_server *server);
#endif

#if defined(MCPLINE_HAS_STDIO)
/**
 * As `mcpl_server_run_stdio`, without waiting for the end.
 */
mcpl_status mcpl_server_start_stdio(mcpl_server *server);
#endif

/**
 * From now on SIGINT and SIGTERM stop the server, as `mcpl_server_stop` does, so that `mcpl_server_run_stdio`,
 * `mcpl_server_run_http` and `mcpl_server_wait` return. For programs that are nothing but the server: these signals end
 * the process in no other way any more, even after the server is freed. Other programs have a thread that waits for
 * signals call `mcpl_server_stop`.
 */
mcpl_status mcpl_server_stop_on_signals(mcpl_server *server);

/**
 * Has whatever is served now come to an end, without waiting for it: calls in flight get the grace period (option
 * `shutdown_grace`), then they are cancelled and answered with an error that says that the server is shutting down. The
 * server can be served again.
 *
 * Any thread, but not from a signal handler: it takes locks. Have a thread wait for signals by `sigwait`, or use
 * `mcpl_server_stop_on_signals`.
 */
mcpl_status mcpl_server_stop(mcpl_server *server);

/**
 * Waits until nothing is served any more, at most `timeout_ms` milliseconds, or without limit if that is negative.
 *
 * Returns `MCPL_WAIT_TIMED_OUT` when the time is over, `MCPL_TRANSPORT_ERROR` if a transport has failed,
 * `MCPL_WOULD_DEADLOCK` where it must not wait.
 */
mcpl_status mcpl_server_wait(mcpl_server *server,
                             int64_t timeout_ms);

/**
 * Has `ended` called each time that the last transport of the server has ended, where callbacks run. Replaces what was
 * called before.
 */
mcpl_status mcpl_server_on_end(mcpl_server *server,
                               mcpl_server_ended ended,
                               void *user,
                               mcpl_finalizer finalize);

#if defined(MCPLINE_HAS_HTTP)
/**
 * Serves over HTTP until `mcpl_server_stop`, and waits for the end: every revision at once, Streamable HTTP at `/mcp`,
 * HTTP+SSE at `/sse` with `/messages`, and `/health` (`basic/transports`). SIGINT and SIGTERM end the process with its
 * calls cut: see `mcpl_server_stop_on_signals`.
 *
 * `host` is a name or an address to listen at, such as `"127.0.0.1"`. `options` is a JSON object that ends with a zero
 * byte, or `NULL` for the defaults; its members, all optional (times in seconds, sizes in bytes): `path`, `sse_paths`
 * (an array of two), `serve_sse`, `health_path`, `serve_health`, `proxy_prefix`; `allowed_hosts`, `allowed_origins`;
 * `body_limit`, `read_timeout`, `write_timeout`, `connections`; `sessions`, `session_idle`, `silence`; `keep_alive`,
 * `retry`, `kept_events`, `kept_bytes`, `max_unread_bytes` of event streams; `client_address_header`, in which a proxy in
 * front names the client's address; `auth`, whose tokens are accepted, an object:
 * `resource` (the URL that clients know the server by), `issuers`, `jwks_url`, `jwks`, `introspection`, `authorization_servers`,
 * `audiences`, `required_scopes`, `implied_scopes`, `algorithms`, `clock_skew` and more, as `ResourceServer` has them in other
 * languages; `verifies`, for a callback that checks tokens instead (`mcpl_server_on_verify`).
 *
 * Returns `MCPL_TRANSPORT_ERROR` if it can't listen there, `MCPL_WOULD_DEADLOCK` where it must not wait.
 */
mcpl_status mcpl_server_run_http(mcpl_server *server,
                                 const char *host,
                                 uint16_t port,
                                 const char *options);
#endif

#if defined(MCPLINE_HAS_HTTP)
/**
 * As `mcpl_server_run_http`, but returns as soon as it listens. `bound_port`, which may be `NULL`, is told the port: the
 * system chooses one if `port` is 0.
 */
mcpl_status mcpl_server_start_http(mcpl_server *server,
                                   const char *host,
                                   uint16_t port,
                                   const char *options,
                                   uint16_t *bound_port);
#endif

/**
 * The name of a status, such as `"MCPL_REQUEST_TIMED_OUT"`; `"unknown"` for any other number.
 *
 * The string lives as long as the library. Never fails.
 */
const char *mcpl_status_name(int32_t status);

/**
 * The details of the last failure of a function on this thread; of status `MCPL_OK` if none has failed yet.
 *
 * Valid until the next failure on this thread, or the thread's end. A function that succeeds leaves it as it is.
 * Never `NULL`.
 */
const mcpl_error *mcpl_last_error(void);

/**
 * The status of a failure; `MCPL_USAGE_ERROR` for `NULL`.
 */
mcpl_status mcpl_error_status(const mcpl_error *error);

/**
 * A sentence that says what went wrong, for people; `""` for `NULL`. Lives as long as the error.
 */
const char *mcpl_error_message(const mcpl_error *error);

/**
 * The code of the JSON-RPC error that the other side gave, such as -32602; 0 if there is none.
 */
int64_t mcpl_error_rpc_code(const mcpl_error *error);

/**
 * Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice; `false` for
 * `NULL`.
 */
bool mcpl_error_is_retry_safe(const mcpl_error *error);

/**
 * Whether it is unknown if the peer performed the request; `false` for `NULL`.
 */
bool mcpl_error_is_outcome_unknown(const mcpl_error *error);

/**
 * The method or action that failed, such as `"tools/call"` or `"connect"`; `""` if it is not known, and for `NULL`. Lives
 * as long as the error.
 */
const char *mcpl_error_operation(const mcpl_error *error);

/**
 * Everything else that is known, as a JSON object; `"{}"` for `NULL`. Lives as long as the error.
 *
 * Members of every error of a request:
 *
 * - `retry_safe`: whether the peer certainly did not perform the request, so that sending it again cannot perform it twice;
 * - `outcome_unknown`: whether it is unknown if the peer performed the request;
 * - `operation`: the method or action that failed, where it is known, such as `"tools/call"` or `"connect"`;
 * - `source`: the cause, where there is one: the JSON-RPC error as an object with `code`, `message` and `data`, or a string.
 *
 * Members by status: `status`, `body` and `challenge` of `MCPL_HTTP_ERROR`; `exit` and `stderr`, the last lines, of
 * `MCPL_SERVER_EXITED`; `waited`, in seconds, and `in_all`, whether the total timeout elapsed, of timeouts; `reason`, a
 * stable name, of `MCPL_AUTHORIZATION_FAILED`; `required`, the capabilities that a client lacks, of `MCPL_NOT_SUPPORTED`.
 */
const char *mcpl_error_details(const mcpl_error *error);

/**
 * Releases a string that a function has given back. `NULL` is nothing.
 */
void mcpl_string_free(char *text);

#if (defined(MCPLINE_HAS_AUTH) && defined(MCPLINE_HAS_CLIENT))
/**
 * Has `handler` check every token, in place of the server, where the `auth` among the options of HTTP has
 * `"verifies": true` (`basic/authorization`). Before serving.
 *
 * Its parameters have the `token`. It is answered with what the token says, all of it optional: `issuer`, `subject`,
 * `client_id`, `scopes` (an array), `expires_at` (seconds since 1970), `claims` (an object). It is refused with the code -1 if
 * it isn't good; with any other code if nobody can tell now, and the request is answered 503. So it is if no answer comes
 * within 30 seconds.
 *
 * - `handler`: is called with each token; see `mcpl_question_handler`. The token is valid until it returns, and secret.
 * - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the server closes, a further
 *   call of this function replaces the handler, or this one fails.
 *
 * Any thread. Returns `MCPL_USAGE_ERROR` if the handler is `NULL`.
 */
mcpl_status mcpl_server_on_verify(mcpl_server *server,
                                  mcpl_question_handler handler,
                                  void *user,
                                  mcpl_finalizer finalize);
#endif

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCPLINE_H */

/* mcpline.h - Model Context Protocol servers and clients.
 *
 * Made by tools/c-header from bindings-c/src: don't edit. A guide is in docs/c.md.
 *
 * RULES FOR ALL FUNCTIONS
 *
 * Threads. Every function may be called from any thread at any time, unless it says otherwise.
 *
 * Handles. mcpl_server, mcpl_client, mcpl_call, mcpl_loop, mcpl_request, mcpl_question and mcpl_channel are tokens: none
 * is ever followed as a pointer. One whose object has ended is answered with MCPL_ENDED, NULL with MCPL_INVALID_ARGUMENT.
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
 * only where that can end; else these return MCPL_WOULD_BLOCK. No callback may throw a C++ exception or be left by longjmp.
 *
 * Waiting. Functions that wait say so. They return MCPL_WOULD_BLOCK on the I/O thread and within mcpl_loop_dispatch. On the
 * thread of a loop that is not dispatching they dispatch that loop while they wait. A worker thread that waits is replaced
 * by another meanwhile.
 *
 * Processes. The library has threads of its own from the first server, client or loop on until the last is freed. A process
 * that forks without exec must not use it in the child.
 */

#ifndef MCPLINE_H
#define MCPLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* The length of a text that ends with a zero byte, in place of counting it. */
#define MCPL_AUTO_LENGTH SIZE_MAX


/**
 * The handler runs on the I/O thread: at once, without waking another. Only for handlers that never wait: nothing else is
 * read or written meanwhile, and asking with `mcpl_call_ask_wait` is refused there.
 */
#define MCPL_HANDLER_INLINE 1

/**
 * The handler must never run twice for one request: a retry (2026-07-28) that reaches another process gets an error
 * instead. Of tools.
 */
#define MCPL_HANDLER_RUN_ONCE 2

/**
 * What a function has come to. Anything but `MCPL_OK` is a failure, of which `mcpl_last_error` tells the details.
 */
enum mcpl_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It is done.
     */
    MCPL_OK = 0,
    /**
     * An argument can't be: `NULL`, not UTF-8, not JSON, a name that is taken; or the function was used wrongly.
     */
    MCPL_INVALID_ARGUMENT = 1,
    /**
     * What the handle stood for has ended, or was freed.
     */
    MCPL_ENDED = 2,
    /**
     * The server, the client or the connection is closed.
     */
    MCPL_CLOSED = 3,
    /**
     * The function waits, and on this thread that would be for ever.
     */
    MCPL_WOULD_BLOCK = 4,
    /**
     * It took longer than it was given.
     */
    MCPL_TIMED_OUT = 5,
    /**
     * It was cancelled.
     */
    MCPL_CANCELLED = 6,
    /**
     * A socket, pipe or process failed.
     */
    MCPL_TRANSPORT = 7,
    /**
     * The server answered with a JSON-RPC error: see `mcpl_error_rpc_code`.
     */
    MCPL_SERVER_ERROR = 8,
    /**
     * The server answered with an HTTP status.
     */
    MCPL_HTTP_ERROR = 9,
    /**
     * The server can't be reached, or the connection was lost.
     */
    MCPL_CONNECTION_FAILED = 10,
    /**
     * The server's process has ended.
     */
    MCPL_SERVER_EXITED = 11,
    /**
     * What the other side said can't be.
     */
    MCPL_INVALID_ANSWER = 12,
    /**
     * No conversation could be opened.
     */
    MCPL_OPEN_FAILED = 13,
    /**
     * The server was reached, but opened no conversation in time.
     */
    MCPL_OPEN_TIMED_OUT = 14,
    /**
     * A question of the server, which it asked in the course of a request, had no answer.
     */
    MCPL_QUESTION_UNANSWERED = 15,
    /**
     * The other side, or the revision, does not have it.
     */
    MCPL_NOT_SUPPORTED = 16,
    /**
     * The client refused to answer.
     */
    MCPL_REFUSED = 17,
    /**
     * There is none of that name.
     */
    MCPL_NOT_FOUND = 18,
    /**
     * A limit is reached.
     */
    MCPL_BUSY = 19,
    /**
     * A defect of this library.
     */
    MCPL_INTERNAL = 20,
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
     */
    MCPL_ASK_SAMPLE = 1,
    /**
     * The client's root directories: `roots/list` (`client/roots`).
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
 * A token that may be used from any thread at any time: once the call has ended, functions return `MCPL_ENDED`. It is
 * not released by anybody; ending the call is enough. A call whose request was cancelled stays until the handler ends
 * it.
 */
typedef struct mcpl_call mcpl_call;

/**
 * A connection over a transport of the host's own: messages of JSON-RPC, one at a time, over whatever it is that the host
 * has.
 *
 * A token that may be used from any thread at any time: once the channel is closed, functions return `MCPL_ENDED`.
 */
typedef struct mcpl_channel mcpl_channel;

/**
 * What went wrong. Given by `mcpl_last_error` and to callbacks; never released by the caller.
 */
typedef struct mcpl_error mcpl_error;

/**
 * A queue of callbacks that run on the thread that dispatches it, for programs that have an event loop of their own.
 *
 * Servers and clients use it after `mcpl_server_use_loop` or `mcpl_client_use_loop`: all their callbacks run within
 * `mcpl_loop_dispatch`, and within functions that wait, when these are called on the thread that dispatches.
 */
typedef struct mcpl_loop mcpl_loop;

/**
 * A server: tools, resources, prompts and completions with handlers in C, served over any number of transports.
 *
 * A token that may be used from any thread at any time: after `mcpl_server_free` functions return `MCPL_ENDED`.
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

/**
 * Is given a message of the library. `target` names the part that it is from. Both are valid until it returns.
 */
typedef void (*mcpl_diagnostics)(mcpl_log_level level, const char *target, const char *message, void *user);

/**
 * Handles one call: of a tool, a resource, a prompt or a completion.
 *
 * `arguments` is a JSON object of `length` bytes, which a zero byte follows; it is valid until the handler has returned
 * and the call has ended. The call is ended by one of the functions `mcpl_call_reply_…` and `mcpl_call_fail…`, exactly
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
 * Returns `MCPL_ENDED` if the call has ended; `answer` is not called then.
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
 * As `mcpl_call_ask`, and waits for the answer, which is to be released with `mcpl_string_free`.
 *
 * Allowed on worker threads, of which another then takes the place of this one, and on threads of the host's. Returns
 * `MCPL_WOULD_BLOCK` on the I/O thread (in handlers that run inline) and within `mcpl_loop_dispatch`. The wait is bounded
 * by the server's options `ask_idle_timeout` and `ask_timeout`, and ends when the request is cancelled
 * (`MCPL_CANCELLED`).
 */
mcpl_status mcpl_call_ask_wait(mcpl_call *call,
                               const char *key,
                               int32_t ask,
                               const char *params,
                               size_t length,
                               char **result,
                               size_t *result_length);

/**
 * Ends a call with a text of `length` bytes: a tool's result of one text, a prompt of one message of the user's, or a
 * resource's text, whose type is that of its definition (`text/plain` if that says nothing).
 *
 * Returns `MCPL_ENDED` if the call has ended already. A request that was cancelled meanwhile is no failure.
 */
mcpl_status mcpl_call_reply_text(mcpl_call *call,
                                 const char *text,
                                 size_t length);

/**
 * Ends a call with bytes, which travel as base64: a resource's, or a tool's image or sound (`image/…`, `audio/…`).
 *
 * `mime_type` may be `NULL` for that of the resource's definition. Returns `MCPL_INVALID_ARGUMENT` for a tool's bytes of
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
 * `json` is `length` bytes. Returns `MCPL_INVALID_ARGUMENT` if it is no JSON array; the call stays open then.
 */
mcpl_status mcpl_call_reply_content(mcpl_call *call,
                                    const char *json,
                                    size_t length);

/**
 * Ends a tool's call with structured content: any JSON value, which should fit the tool's `outputSchema`. Clients of
 * revisions that don't have it get it as text.
 *
 * `json` is `length` bytes. Returns `MCPL_INVALID_ARGUMENT` if it is no JSON; the call stays open then.
 */
mcpl_status mcpl_call_reply_structured(mcpl_call *call,
                                       const char *json,
                                       size_t length);

/**
 * Ends a call with a whole result, as JSON: `CallToolResult`, `ReadResourceResult`, `GetPromptResult` or
 * `CompleteResult` of the specification, by what is called.
 *
 * `json` is `length` bytes. Returns `MCPL_INVALID_ARGUMENT` if it is none; the call stays open then.
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
 * `json` is `{"requests": [[key, method, params], …], "state": "…"}`, of `length` bytes: the methods are
 * `elicitation/create`, `sampling/createMessage` and `roots/list`, `params` and `state` may be left out (`null`). The
 * next run finds `inputResponses`, the answers by key, and `requestState`, the state, in `mcpl_call_info`.
 */
mcpl_status mcpl_call_reply_questions(mcpl_call *call,
                                      const char *json,
                                      size_t length);

/**
 * Ends a call with a failure that the model should read: a tool's result with `isError`. Resources, prompts and
 * completions have no such results; there it is an internal error with this text.
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
 * `context`. Valid until the call ends; a zero byte follows.
 */
mcpl_status mcpl_call_arguments(mcpl_call *call,
                                const char **arguments,
                                size_t *length);

/**
 * The name of the tool or prompt that is called, or the URI of the resource; `""` for a completion. Release it with
 * `mcpl_string_free`.
 */
mcpl_status mcpl_call_name(mcpl_call *call,
                           char **name);

/**
 * What is known of the request that a call serves, as a JSON object. Release it with `mcpl_string_free`.
 *
 * Its members: `revision`; `client`, the client's `Implementation`; `clientCapabilities`; `requestId`; `sessionId` of
 * HTTP; `headers` of HTTP, an array of pairs; `meta`, the request's `_meta`; `inputResponses` and `requestState`, after
 * `mcpl_call_reply_questions`. What there is not is `null`. After a question on 2026-07-28 all of it is that of the
 * client's retry.
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
 * Closes the response stream of HTTP while the call goes on; the client comes back for the rest (2025-11-25,
 * `basic/transports`, polling). Does nothing on other revisions and transports.
 */
mcpl_status mcpl_call_close_stream(mcpl_call *call);

/**
 * Serves one client over a transport of the host's own, in the background, until either side closes it.
 *
 * `send` is called for every message to the client; what comes from the client is handed over by
 * `mcpl_channel_receive`, its end by `mcpl_channel_hang_up`. `user` is released after `close`, the last callback.
 *
 * Returns `NULL` on failure; see `mcpl_last_error`.
 */
mcpl_channel *mcpl_server_serve_channel(mcpl_server *server,
                                        const mcpl_channel_functions *functions,
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
 * Returns `MCPL_BUSY` if the I/O thread has not taken up a thousand messages before it, `MCPL_CLOSED` after
 * `mcpl_channel_hang_up`, `MCPL_ENDED` once the channel is closed.
 */
mcpl_status mcpl_channel_receive(mcpl_channel *channel,
                                 const char *message,
                                 size_t length);

/**
 * The other side is gone. What it has sent is still read; then the channel is closed. `reason` may be `NULL`.
 */
mcpl_status mcpl_channel_hang_up(mcpl_channel *channel, const char *reason);

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
 * Sets how many callbacks run on worker threads at once, before the first server, client or loop is made; 0 is the
 * default: one per processor, at least four. Callbacks that wait in `mcpl_call_ask_wait` and in functions of a client are
 * not counted.
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
 * One thread at a time dispatches a loop. Within a callback, functions that wait return `MCPL_WOULD_BLOCK`, as does
 * this one.
 */
mcpl_status mcpl_loop_dispatch(mcpl_loop *events,
                               uint32_t most,
                               uint32_t *count);

/**
 * Waits until callbacks wait for `mcpl_loop_dispatch`, at most `timeout_ms` milliseconds, or without limit if that is
 * negative. For programs that have nothing else to poll.
 *
 * Returns `MCPL_TIMED_OUT` when the time is over, `MCPL_WOULD_BLOCK` within a callback that the loop dispatches.
 */
mcpl_status mcpl_loop_wait(mcpl_loop *events,
                           int64_t timeout_ms);

/**
 * Releases a loop, on the thread that dispatches it and not within a callback. Callbacks that still wait, and those of
 * servers and clients that still use it, run on worker threads from then on. `NULL` is nothing.
 */
void mcpl_loop_free(mcpl_loop *events);

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
 *   (3600). `rounds` of questions per request (16). `state_size` (65536), `state_lifetime` (600), `state_keys`: of what
 *   the client carries between rounds; `suspended`: how many handlers may wait so (10000).
 * - `in_flight`, `open_asks`, `subscriptions`: how many of these a session may have. `tool_rate`, `progress_rate`,
 *   `log_rate`. `ping_interval`, `ping_misses`. `line_limit`, `batch_limit`, `depth_limit` of messages.
 * - `check_output`: whether results are checked against `outputSchema` (false). `shutdown_grace`: how long stopping waits
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
 * Adds a tool, while it is served too. `description` may be `NULL`. `input_schema` is the JSON Schema of its arguments,
 * an object's; `NULL` for none. Arguments are checked against it before the handler is called.
 *
 * Returns `MCPL_INVALID_ARGUMENT` if there is a tool of that name, or the schema is none.
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
 * Returns `MCPL_INVALID_ARGUMENT` if there is a resource of that URI.
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
 * Returns `MCPL_INVALID_ARGUMENT` if it is no template, or there is one like it.
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
 * Returns `MCPL_INVALID_ARGUMENT` if there is a prompt of that name.
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
 * Returns `MCPL_WOULD_BLOCK` within one of its own callbacks, on the I/O thread and within `mcpl_loop_dispatch`. With a
 * loop, call it on the thread that dispatches, or while that goes on dispatching.
 */
mcpl_status mcpl_server_close(mcpl_server *server);

/**
 * Closes a server, unless that is done, and releases it. `NULL` is nothing.
 *
 * Where closing can't wait (within one of its own callbacks and the like) it goes on by itself: no further callback
 * begins, and data is released with the last that holds it.
 */
void mcpl_server_free(mcpl_server *server);

/**
 * Serves over this process's standard input and output until the client is gone or `mcpl_server_stop`, and waits for the
 * end (`basic/transports`, stdio).
 *
 * Meanwhile the process's own standard input is empty and its standard output is its standard error, so that nothing
 * that is printed gets between the messages. With a loop, callbacks are dispatched here if this is the loop's thread.
 * Returns `MCPL_WOULD_BLOCK` where it must not wait.
 */
mcpl_status mcpl_server_run_stdio(mcpl_server *server);

/**
 * Serves over HTTP until `mcpl_server_stop`, and waits for the end: every revision at once, Streamable HTTP at `/mcp`,
 * HTTP+SSE at `/sse` with `/messages`, and `/health` (`basic/transports`).
 *
 * `host` is a name or an address to listen at, such as `"127.0.0.1"`. `options` is a JSON object that ends with a zero
 * byte, or `NULL` for the defaults; its members, all optional (times in seconds, sizes in bytes): `path`, `sse_paths`
 * (an array of two), `serve_sse`, `health_path`, `serve_health`, `proxy_prefix`; `allowed_hosts`, `allowed_origins`;
 * `body_limit`, `read_timeout`, `write_timeout`, `connections`; `sessions`, `session_idle`, `silence`; `keep_alive`,
 * `retry`, `kept_events`, `kept_bytes` of event streams.
 *
 * Returns `MCPL_TRANSPORT` if it can't listen there, `MCPL_WOULD_BLOCK` where it must not wait.
 */
mcpl_status mcpl_server_run_http(mcpl_server *server,
                                 const char *host,
                                 uint16_t port,
                                 const char *options);

/**
 * As `mcpl_server_run_stdio`, without waiting for the end.
 */
mcpl_status mcpl_server_start_stdio(mcpl_server *server);

/**
 * As `mcpl_server_run_http`, but returns as soon as it listens. `bound_port`, which may be `NULL`, is told the port: the
 * system chooses one if `port` is 0.
 */
mcpl_status mcpl_server_start_http(mcpl_server *server,
                                   const char *host,
                                   uint16_t port,
                                   const char *options,
                                   uint16_t *bound_port);

/**
 * From now on SIGINT and SIGTERM stop the server, as `mcpl_server_stop` does. For programs that are nothing but the
 * server: these signals end the process in no other way any more, even after the server is freed.
 */
mcpl_status mcpl_server_stop_on_signals(mcpl_server *server);

/**
 * Has whatever is served now come to an end, without waiting for it: calls in flight get the grace period (option
 * `shutdown_grace`). The server can be served again.
 */
mcpl_status mcpl_server_stop(mcpl_server *server);

/**
 * Waits until nothing is served any more, at most `timeout_ms` milliseconds, or without limit if that is negative.
 *
 * Returns `MCPL_TIMED_OUT` when the time is over, `MCPL_TRANSPORT` if a transport has failed, `MCPL_WOULD_BLOCK` where it
 * must not wait.
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

/**
 * The name of a status, such as `"MCPL_TIMED_OUT"`; `"unknown"` for a number that is none.
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
 * The status of a failure; `MCPL_INVALID_ARGUMENT` for `NULL`.
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
 * Whatever else is known, as a JSON object; `"{}"` for `NULL`. Lives as long as the error.
 *
 * Members that may be there: `error`, the JSON-RPC error with `code`, `message` and `data`; `required`, the capability
 * that a client lacks. Of a client's requests: `retry_safe`, whether the server certainly did nothing of what was
 * asked; `outcome_unknown`, whether that is not known; `status`, `body` and `challenge` of an HTTP answer; `exit` and
 * `stderr`, the end and the last words of a process; `waited`, in seconds, and `in_all`, of what took too long.
 */
const char *mcpl_error_details(const mcpl_error *error);

/**
 * Releases a string that a function has given back. `NULL` is nothing.
 */
void mcpl_string_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCPLINE_H */

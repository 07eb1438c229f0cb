package mcpline

import kotlin.coroutines.ContinuationInterceptor
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.doubleOrNull
import kotlinx.serialization.json.intOrNull
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.longOrNull
import mcpline.ffi.Failure
import mcpline.ffi.FailureRecord

/** Details of an error besides its kind and its message. */
public class ErrorDetails internal constructor(
    internal val retrySafe: Boolean = false,
    internal val outcomeUnknown: Boolean = false,
    internal val operation: String? = null,
    internal val source: JsonElement? = null,
    internal val isForModel: Boolean = false,
    internal val members: JsonObject = JsonObject(emptyMap()),
) {
    internal fun text(name: String): String? = (members[name] as? JsonPrimitive)?.contentOrNull
}

/**
 * An error of mcpline. There is one subclass for each kind, so that a `when` covers all of them; the page "Errors" of the
 * documentation describes the kinds, which are the same in every language.
 */
public sealed class McplineException(
    message: String,
    /** Stable identifier of the kind, the same in every language: `request_timed_out`. */
    public val kind: String,
    internal val facts: ErrorDetails,
) : RuntimeException(message, (facts.source as? JsonObject)?.let { RpcException(it, ErrorDetails()) }) {
    /** Whether the peer certainly did not perform the request, so that it can be sent again. */
    public val retrySafe: Boolean get() = facts.retrySafe

    /** Whether it is unknown if the peer performed the request. */
    public val outcomeUnknown: Boolean get() = facts.outcomeUnknown

    /** The method or action that failed, if known: `tools/call`, `connect`, `listen`. */
    public val operation: String? get() = facts.operation

    /** The message of the operating system, or another cause in words. A JSON-RPC error that is the cause is the `cause`. */
    public val source: String? get() = (facts.source as? JsonPrimitive)?.contentOrNull

    internal companion object {
        fun of(failure: Failure): McplineException =
            (failure as Failure.Failed).let { of(it.kind, it.text, it.facts) }

        fun of(failure: FailureRecord): McplineException = of(failure.kind, failure.text, failure.facts)

        fun of(kind: String, text: String, factsJson: String): McplineException {
            val members = json.parseToJsonElement(factsJson).jsonObject
            val flag = { name: String -> (members[name] as? JsonPrimitive)?.booleanOrNull ?: false }
            val facts = ErrorDetails(
                retrySafe = flag("retry_safe"),
                outcomeUnknown = flag("outcome_unknown"),
                operation = (members["operation"] as? JsonPrimitive)?.contentOrNull,
                source = members["source"],
                isForModel = flag("is_for_model"),
                members = members,
            )
            return when (kind) {
                "rpc_error" -> RpcException(facts.source as? JsonObject ?: JsonObject(emptyMap()), facts, text)
                "request_timed_out" -> RequestTimedOutException(text, facts)
                "request_cancelled" -> RequestCancelledException(text, facts)
                "http_error" -> HttpException(text, facts)
                "server_unreachable" -> ServerUnreachableException(text, facts)
                "handshake_failed" -> HandshakeFailedException(text, facts)
                "handshake_timed_out" -> HandshakeTimedOutException(text, facts)
                "connection_lost" -> ConnectionLostException(text, facts)
                "session_expired" -> SessionExpiredException(text, facts)
                "server_exited" -> ServerExitedException(text, facts)
                "authorization_failed" -> AuthorizationFailedException(text, facts)
                "invalid_response" -> InvalidResponseException(text, facts)
                "input_request_failed" -> InputRequestFailedException(text, facts)
                "tool_call_refused" -> ToolCallRefusedException(text, facts)
                "not_supported" -> NotSupportedException(text, facts)
                "limit_exceeded" -> LimitExceededException(text, facts)
                "closed" -> ClosedException(text, facts)
                "usage_error" -> UsageException(text, facts)
                "transport_error" -> TransportException(text, facts)
                else -> InternalException(text, facts)
            }
        }
    }
}

/**
 * A JSON-RPC error (JSON-RPC 2.0, section 5.1).
 *
 * A client throws it if the server returns an error. Throw it in a handler to return this error to the client. Use codes
 * outside of -32768 to -32000, which JSON-RPC and the protocol reserve.
 */
public class RpcException internal constructor(error: JsonObject, facts: ErrorDetails, text: String) :
    McplineException(
        text,
        "rpc_error",
        ErrorDetails(facts.retrySafe, facts.outcomeUnknown, facts.operation, null, facts.isForModel),
    ) {
    internal constructor(error: JsonObject, facts: ErrorDetails) :
        this(error, facts, (error["message"] as? JsonPrimitive)?.contentOrNull ?: "")

    /** Creates an error with this [code], [rpcMessage] and optional [data]. */
    @JvmOverloads
    public constructor(code: Long, rpcMessage: String, data: JsonElement? = null) : this(
        JsonObject(
            buildMap {
                put("code", JsonPrimitive(code))
                put("message", JsonPrimitive(rpcMessage))
                data?.let { put("data", it) }
            },
        ),
        ErrorDetails(),
    )

    /** The error code. */
    public val code: Long = (error["code"] as? JsonPrimitive)?.longOrNull ?: 0

    /** The message as the peer sent it. In `message`, control characters are removed or replaced. */
    public val rpcMessage: String = (error["message"] as? JsonPrimitive)?.contentOrNull ?: ""

    /** Further data: any JSON value. */
    public val data: JsonElement? = error["data"]
}

/** No response arrived in time. The request was cancelled; whether the peer performed it is unknown. */
public class RequestTimedOutException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "request_timed_out", facts) {
    /** The timeout that elapsed. */
    public val waited: Duration = facts.seconds("waited")

    /** Whether it was the total timeout, which progress does not restart. */
    public val inAll: Boolean = (facts.members["in_all"] as? JsonPrimitive)?.booleanOrNull ?: false
}

/** The request was cancelled by its sender. */
public class RequestCancelledException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "request_cancelled", facts)

/** The server responded with an HTTP error status instead of a JSON-RPC message. */
public class HttpException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "http_error", facts) {
    /** The HTTP status. */
    public val status: Int = (facts.members["status"] as? JsonPrimitive)?.intOrNull ?: 0

    /** The first 4 KiB of the body. */
    public val body: String = facts.text("body") ?: ""

    /** The `WWW-Authenticate` header. */
    public val challenge: String? = facts.text("challenge")
}

/** The server could not be reached: the connection failed, or its process did not start. Nothing was sent. */
public class ServerUnreachableException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "server_unreachable", facts)

/** The handshake failed: the server refused it, or both sides have no protocol revision in common. */
public class HandshakeFailedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "handshake_failed", facts)

/** The server did not respond to `initialize` or `server/discover` in time. */
public class HandshakeTimedOutException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "handshake_timed_out", facts) {
    /** The timeout that elapsed. */
    public val waited: Duration = facts.seconds("waited")
}

/** The connection ended before the response arrived. Whether the peer performed the request is unknown. */
public class ConnectionLostException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "connection_lost", facts)

/** The server no longer knows the session, or the cursor of a list belongs to an earlier session. Nothing was performed. */
public class SessionExpiredException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "session_expired", facts)

/** The server's process exited. See [retrySafe] and [outcomeUnknown] for whether the request was sent. */
public class ServerExitedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "server_exited", facts) {
    /** Exit status or signal: `exit status: 1`, `signal: 9 (SIGKILL)`. */
    public val exit: String? = facts.text("exit")

    /** The last lines of its stderr, if captured. */
    public val stderr: List<String> =
        facts.members["stderr"]?.jsonArray?.map { it.jsonPrimitive.content } ?: emptyList()
}

/** The server requires authorization, and the client could not obtain an access token that it accepts. */
public class AuthorizationFailedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "authorization_failed", facts) {
    /** Stable identifier of the reason, such as `unattended` or `insufficient_scope`. */
    public val reason: String = facts.text("reason") ?: ""
}

/** A response violates the protocol or a schema. */
public class InvalidResponseException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "invalid_response", facts) {
    internal constructor(text: String) : this(text, ErrorDetails())
}

/** An input request was answered with an error, which is the `cause`. */
public class InputRequestFailedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "input_request_failed", facts)

/** The host refused the tool call; nothing was sent. Throw it in [ClientBuilder.onToolCall], with the reason. */
public class ToolCallRefusedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "tool_call_refused", facts) {
    /** Creates an error with the reason. */
    public constructor(reason: String) : this(reason, ErrorDetails())
}

/** The peer or the protocol revision does not support the operation. Nothing was sent. */
public class NotSupportedException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "not_supported", facts) {
    /** The capabilities that the client lacks, as it would declare them; `null` for other operations. */
    public val required: JsonObject? = facts.members["required"] as? JsonObject
}

/** A limit of this library is reached. The message names the limit. */
public class LimitExceededException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "limit_exceeded", facts)

/** The client, the server or the connection was closed by this program, or the request has ended. */
public class ClosedException internal constructor(text: String, facts: ErrorDetails) : McplineException(text, "closed", facts) {
    internal constructor(text: String) : this(text, ErrorDetails())
}

/** The library was used incorrectly: an invalid argument, a name that is taken, or a call in the wrong order. */
public class UsageException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "usage_error", facts) {
    internal constructor(text: String) : this(text, ErrorDetails())
}

/** The operating system reported an error of a socket, a pipe or a process; its message is the [source]. */
public class TransportException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "transport_error", facts)

/** A bug in mcpline. */
public class InternalException internal constructor(text: String, facts: ErrorDetails) :
    McplineException(text, "internal_error", facts)

/** A tool failed. Throw it in a tool: its message is returned to the model as the result, marked as an error. */
public class ToolException(message: String) : McplineException(message, "tool_error", ErrorDetails())

/**
 * The resource does not exist. Throw it in a handler, usually that of a resource template.
 *
 * The client receives the same JSON-RPC error as for a URI that no resource has.
 *
 * @property uri URI of the resource; `null` stands for the URI that the client reads.
 */
public class ResourceNotFoundException(public val uri: String? = null) :
    McplineException(if (uri == null) "resource not found" else "resource not found: $uri", "resource_not_found", ErrorDetails())

/**
 * The user must open these URLs first. The client tries again after [Server.notifyElicitationComplete] (2025-11-25) or the
 * user's answer (2026-07-28).
 *
 * @property elicitations The URLs, with their messages.
 */
public class UrlElicitationRequiredException(public val elicitations: List<UrlElicitation>) :
    McplineException("the user must open a URL first", "url_elicitation_required", ErrorDetails())

private fun ErrorDetails.seconds(name: String): Duration = ((members[name] as? JsonPrimitive)?.doubleOrNull ?: 0.0).seconds

/**
 * Runs a function of the native library that suspends, with its errors as [McplineException].
 *
 * A coroutine without a dispatcher, such as `suspend fun main`, would continue on the library's I/O thread, and what it does next
 * would hold everything up.
 */
internal suspend fun <T> awaitNative(call: suspend () -> T): T {
    val hasDispatcher = currentCoroutineContext()[ContinuationInterceptor] != null
    return native { if (hasDispatcher) call() else withContext(Dispatchers.Default) { call() } }
}

/** Runs a call of the native library, with its errors as [McplineException]. */
internal inline fun <T> native(call: () -> T): T =
    try {
        call()
    } catch (failure: Failure) {
        throw McplineException.of(failure)
    } catch (ended: IllegalStateException) {
        // What the generated code throws when an object is used after it was closed.
        if (ended.message?.endsWith("object has already been destroyed") == true) throw ClosedException("it is closed")
        throw ended
    } catch (panic: mcpline.ffi.InternalException) {
        throw InternalException(panic.message ?: "bug in mcpline", ErrorDetails())
    }

package mcpline

import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.async
import kotlinx.coroutines.ensureActive
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import mcpline.ffi.RequestListener

/** How a request ended. */
@Serializable
public enum class RequestOutcome {
    /** With a result. */
    @SerialName("ok")
    Ok,

    /** With the result of a tool that reports an error. */
    @SerialName("tool_error")
    ToolError,

    /** With input requests to the client, whose next request continues it (2026-07-28). */
    @SerialName("input_required")
    InputRequired,

    /** With an error. */
    @SerialName("error")
    Error,

    /** Without an outcome: it was cancelled or given up, or the other side is gone. */
    @SerialName("cancelled")
    Cancelled,
}

/** Who has sent a request of a client. */
@Serializable
public enum class RequestDirection {
    /** The client has sent it to the server. */
    @SerialName("sent")
    Sent,

    /** The server has sent it to the client: sampling, elicitation, roots or a custom request. */
    @SerialName("received")
    Received,
}

/**
 * One request that a server has answered. See [Server.onRequestEnd]. Texts that clients choose contain no control characters.
 *
 * @property method The method, such as `tools/call`; at most 200 characters.
 * @property name Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods.
 * @property outcome How it ended.
 * @property code Code of the JSON-RPC error, if the outcome is [RequestOutcome.Error].
 * @property duration Time from the arrival of the request to its response.
 * @property client Name of the client, if it has identified itself; at most 200 characters.
 * @property session The first eight characters of the session's id, over HTTP on revisions with sessions.
 * @property issuer Issuer of the authenticated caller's token; at most 200 characters.
 * @property subject Subject of the authenticated caller's token; at most 200 characters.
 * @property clientId Client that acts for the subject, as the token says; at most 200 characters.
 * @property traceId Id of the trace that the message or the headers of its HTTP request name: 32 hexadecimal digits.
 */
@Serializable
public class RequestRecord internal constructor(
    public val method: String,
    public val name: String,
    public val outcome: RequestOutcome,
    public val code: Long? = null,
    public val duration: @Serializable(with = Seconds::class) Duration,
    public val client: String? = null,
    public val session: String? = null,
    public val issuer: String? = null,
    public val subject: String? = null,
    public val clientId: String? = null,
    public val traceId: String? = null,
) {
    /** [duration] for programs in Java. */
    public val javaDuration: java.time.Duration get() = duration.toJavaDuration()
}

/**
 * One request of a client that has ended. See [ClientBuilder.onRequestEnd]. Texts that servers choose contain no control characters.
 *
 * @property direction Whether the client has sent the request, or received it from the server.
 * @property method The method, such as `tools/call`; at most 200 characters.
 * @property name Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods.
 * @property outcome How it ended.
 * @property errorKind Kind of the error, as [McplineException.kind], if the outcome is [RequestOutcome.Error]; `rpc_error` for a
 *   request that the client has received.
 * @property code Code of the JSON-RPC error, if there was one.
 * @property duration Time from the beginning of the request to its outcome, with middleware, input requests and repetitions.
 * @property server Name of the server, if the client was connected and the server has identified itself; at most 200 characters.
 * @property address Host and port of the server's URL, or the path of its socket; at most 200 characters.
 * @property session The first eight characters of the session's id, over HTTP on revisions with sessions.
 * @property traceId Id of the trace that `_meta` of the request names: 32 hexadecimal digits.
 */
@Serializable
public class ClientRequestRecord internal constructor(
    public val direction: RequestDirection,
    public val method: String,
    public val name: String,
    public val outcome: RequestOutcome,
    public val errorKind: String? = null,
    public val code: Long? = null,
    public val duration: @Serializable(with = Seconds::class) Duration,
    public val server: String? = null,
    public val address: String? = null,
    public val session: String? = null,
    public val traceId: String? = null,
) {
    /** [duration] for programs in Java. */
    public val javaDuration: java.time.Duration get() = duration.toJavaDuration()
}

/** Passes records to a function of the program, in its scope. */
internal class RequestRecords<R>(
    private val serializer: KSerializer<R>,
    private val scope: CoroutineScope,
    private val listener: suspend (R) -> Unit,
) : RequestListener {
    override suspend fun ended(records: List<String>): Unit = inScope(scope) {
        for (record in records) {
            try {
                listener(json.decodeFromString(serializer, record))
            } catch (error: Throwable) {
                if (error is CancellationException) ensureActive()
                reportUncaught(error)
            }
        }
    }
}

/** Runs a function of the program in its scope: the I/O thread cancels this coroutine, and must not run it. */
internal suspend fun <T> inScope(scope: CoroutineScope, run: suspend CoroutineScope.() -> T): T {
    val running = scope.async(block = run)
    try {
        return running.await()
    } catch (cancelled: CancellationException) {
        running.cancel()
        throw cancelled
    }
}

/** Reports what a listener of the program has thrown. */
internal fun reportUncaught(error: Throwable) {
    val thread = Thread.currentThread()
    thread.uncaughtExceptionHandler.uncaughtException(thread, error)
}

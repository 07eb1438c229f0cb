package mcpline.java

import java.util.concurrent.CompletionException
import java.util.concurrent.CompletionStage
import java.util.concurrent.ExecutionException
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.cancelChildren
import kotlinx.coroutines.future.await
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.supervisorScope
import mcpline.McplineException
import mcpline.UriVariables

/** Handles a request without arguments. */
public fun interface CallHandler {
    /**
     * Returns the result, or a `CompletionStage` of it. May block. If the request is cancelled, the thread is interrupted,
     * or the stage cancelled.
     */
    @Throws(Exception::class)
    public fun handle(call: CallContext): Any?
}

/** Handles a request with arguments of type [A]. */
public fun interface ArgumentsHandler<A> {
    /**
     * Returns the result, or a `CompletionStage` of it. May block. If the request is cancelled, the thread is interrupted,
     * or the stage cancelled.
     */
    @Throws(Exception::class)
    public fun handle(call: CallContext, arguments: A): Any?
}

/** Reads a resource. */
public fun interface ResourceHandler {
    /** Returns a text, bytes, `ResourceContents` or a list of them, or data; or a `CompletionStage` of it. May block. */
    @Throws(Exception::class)
    public fun handle(call: CallContext, variables: UriVariables): Any?
}

/** Completes an argument of a prompt, or a variable of a resource template. */
public fun interface CompletionHandler {
    /**
     * Returns the candidates, best first. May block.
     *
     * @param value What the user typed.
     * @param others The other arguments given so far.
     */
    @Throws(Exception::class)
    public fun complete(call: CallContext, value: String, others: Map<String, String>): List<String>
}

/** Answers a request of the server, or of the library. */
public fun interface ClientHandler<P, R> {
    /** Returns the answer. May block; the thread is interrupted if the request is withdrawn. */
    @Throws(Exception::class)
    public fun handle(params: P): R
}

/** Answers a request of the server with a `CompletionStage`. */
public fun interface AsyncClientHandler<P, R> {
    /** Returns the stage, which is cancelled if the request is withdrawn. */
    @Throws(Exception::class)
    public fun handle(params: P): CompletionStage<out R>
}

/** Receives events. */
public fun interface Listener<E> {
    /** Called for each event, one after another. May block. */
    @Throws(Exception::class)
    public fun accept(event: E)
}

/** How many handlers of servers, and of clients, run at the same time where there are no virtual threads; others wait. */
private const val MAX_HANDLER_THREADS = 256

/** Virtual threads where the JVM has them (21 or later). Versions 19 and 20 have the function, but refuse to run it. */
private val virtualThreads: CoroutineDispatcher? by lazy {
    try {
        val create = Executors::class.java.getMethod("newVirtualThreadPerTaskExecutor")
        (create.invoke(null) as ExecutorService).asCoroutineDispatcher()
    } catch (_: ReflectiveOperationException) {
        null
    }
}

/** Threads of handlers of servers, which may block. */
internal val handlerThreads: CoroutineDispatcher by lazy { virtualThreads ?: limitedThreads() }

/** Threads of handlers of clients, which those of a server in the same process may wait for. */
internal val clientThreads: CoroutineDispatcher by lazy { virtualThreads ?: limitedThreads() }

/** A pool of threads for handlers. */
private fun limitedThreads(): CoroutineDispatcher = Dispatchers.IO.limitedParallelism(MAX_HANDLER_THREADS)

/**
 * Threads that futures are completed on, and on which functions that are chained to them may block. Not those of handlers: when
 * all of these wait for futures, there has to be a thread that completes one. The program decides how many futures there are.
 */
internal val futureThreads: CoroutineDispatcher by lazy { virtualThreads ?: growingThreads() }

/** A pool of threads that grows when all of its threads are blocked. */
private fun growingThreads(): CoroutineDispatcher = Executors.newCachedThreadPool { task ->
    Thread(task, "mcpline-future").apply { isDaemon = true }
}.asCoroutineDispatcher()

/** Runs code of the program that may block, and waits for the stage that it may return. Cancellation cancels the stage. */
internal suspend fun runBlockingCode(code: () -> Any?): Any? {
    var returned: Any? = null
    try {
        runInterruptible { returned = code() }
        return (returned as? CompletionStage<*>)?.await() ?: returned.takeIf { it !is CompletionStage<*> }
    } catch (error: CancellationException) {
        // The code may have returned a stage after the cancellation.
        (returned as? CompletionStage<*>)?.toCompletableFuture()?.cancel(true)
        throw error
    } catch (error: CompletionException) {
        throw ownError(error)
    } catch (error: ExecutionException) {
        throw ownError(error)
    }
}

/** The error of a future that the program has waited for: coroutines may have wrapped it once more. */
private fun ownError(error: Exception): Throwable {
    var cause: Throwable? = error
    while (cause is CompletionException || cause is ExecutionException) cause = cause.cause
    return cause as? McplineException ?: error
}

/** Runs a handler with the context of its call, whose futures end with it. */
internal suspend fun mcpline.CallContext.handled(handler: (CallContext) -> Any?): Any? = supervisorScope {
    try {
        runBlockingCode { handler(CallContext(this@handled, this)) }
    } finally {
        coroutineContext.cancelChildren()
    }
}

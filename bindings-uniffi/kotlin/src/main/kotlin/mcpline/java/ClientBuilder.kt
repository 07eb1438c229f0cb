package mcpline.java

import java.nio.file.Path
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonObject
import mcpline.Auth
import mcpline.ClientRequestRecord
import mcpline.ClientSettings
import mcpline.ConnectionEvent
import mcpline.CreateMessageParams
import mcpline.CreateMessageResult
import mcpline.ElicitResult
import mcpline.Elicitation
import mcpline.HttpClientOptions
import mcpline.LogMessage
import mcpline.Notification
import mcpline.OAuth
import mcpline.ProgramOptions
import mcpline.Root
import mcpline.Token
import mcpline.TokenRequest
import mcpline.ToolCall
import mcpline.ToolCallOutcome

/**
 * Handlers and settings of clients, for programs in Java. Setting a handler declares its capability to the server.
 *
 * Handlers run on threads that may block: virtual threads on Java 21 or later, otherwise a pool.
 */
public class ClientBuilder internal constructor() {
    private val configuration = mutableListOf<mcpline.ClientBuilder.() -> Unit>()
    private var threads: CoroutineDispatcher? = null

    /** Name and version of the host, as sent to servers. */
    public fun info(name: String, version: String): ClientBuilder = with {
        this.name = name
        this.version = version
    }

    /** Settings by the names that [ClientSettings] has: `Map.of("timeout", Duration.ofSeconds(20))`. */
    public fun settings(settings: Map<String, *>): ClientBuilder {
        val read = settingsOf(ClientSettings.serializer(), settings)
        return with { this.settings = read }
    }

    /** The threads on which handlers run. Default: virtual threads on Java 21 or later, otherwise at most 256 threads. */
    public fun executor(executor: Executor): ClientBuilder = apply { threads = executor.asCoroutineDispatcher() }

    /** Source of access tokens for an HTTP server, such as an [OAuth]. */
    public fun auth(auth: Auth): ClientBuilder = with { this.auth = auth }

    /** Sends a fixed access token to an HTTP server. */
    public fun bearer(token: String): ClientBuilder = auth(Auth.Bearer(token))

    /** Sends access tokens that a function returns. It is called for the first request, and when the server rejects a token. */
    public fun tokens(source: ClientHandler<TokenRequest, String>): ClientBuilder =
        auth(Auth.Tokens { wanted -> Token(blocking { source.handle(wanted) }) })

    /** Signs in with OAuth and the system's browser, and keeps tokens in a directory that only its owner can access. */
    public fun oauth(clientName: String, store: Path): ClientBuilder = auth(OAuth(clientName, storeFile = store.toString()))

    /** Asks the user what the server asks. The answers are in [ElicitResults]. */
    public fun onElicit(handler: ClientHandler<Elicitation, ElicitResult<*>>): ClientBuilder =
        with { onElicit { asked -> json(blocking { handler.handle(asked) }) } }

    /** Asks the user what the server asks, without blocking a thread. */
    public fun onElicitAsync(handler: AsyncClientHandler<Elicitation, ElicitResult<*>>): ClientBuilder =
        with { onElicit { asked -> json(awaited { handler.handle(asked) }) } }

    /** Asks the model what the server asks. */
    public fun onSample(handler: ClientHandler<CreateMessageParams, CreateMessageResult>): ClientBuilder =
        with { onSample { asked -> blocking { handler.handle(asked) } } }

    /** Asks the model what the server asks, without blocking a thread. */
    public fun onSampleAsync(handler: AsyncClientHandler<CreateMessageParams, CreateMessageResult>): ClientBuilder =
        with { onSample { asked -> awaited { handler.handle(asked) } } }

    /** Offers these root directories to the server. */
    public fun roots(vararg uris: String): ClientBuilder = with { onListRoots { uris.map { Root(it) } } }

    /** Answers custom requests of the server; the answer is a record, a map or a `JsonObject`. */
    public fun onRequest(method: String, handler: ClientHandler<JsonObject, Any>): ClientBuilder =
        with { onRequest(method) { params -> Json.objectOf(runBlockingCode { handler.handle(params) }) } }

    /** Called with the log messages of the server. */
    public fun onLog(listener: Listener<LogMessage>): ClientBuilder = with { onLog { deliver(listener, it) } }

    /** Called with all notifications of the server. */
    public fun onNotification(listener: Listener<Notification>): ClientBuilder =
        with { onNotification { deliver(listener, it) } }

    /** Called with changes of the connection. */
    public fun onConnection(listener: Listener<ConnectionEvent>): ClientBuilder =
        with { onConnection { deliver(listener, it) } }

    /** Called with the lines that the server's process writes to stderr. */
    public fun onStderr(listener: Listener<String>): ClientBuilder = with { onStderr { deliver(listener, it) } }

    /**
     * Called before each tool call is sent, to get the user's consent. Return to allow the call; throw a `ToolCallRefusedException`
     * to refuse it.
     */
    public fun onToolCall(listener: Listener<ToolCall>): ClientBuilder = with { onToolCall { deliver(listener, it) } }

    /** Called with the outcome of each tool call, also of refused and cancelled ones. */
    public fun onToolOutcome(listener: Listener<ToolCallOutcome>): ClientBuilder =
        with { onToolOutcome { deliver(listener, it) } }

    /** Called at the end of each request of the client, for a log of requests. */
    public fun onRequestEnd(listener: Listener<ClientRequestRecord>): ClientBuilder =
        with { onRequestEnd { deliver(listener, it) } }

    /** Connects to an HTTP server, of any revision. */
    public fun connect(url: String): CompletableFuture<Client> = connect(url, emptyMap<String, Any>())

    /** Connects to an HTTP server, with options by the names that [HttpClientOptions] has. */
    public fun connect(url: String, http: Map<String, *>): CompletableFuture<Client> {
        val read = settingsOf(HttpClientOptions.serializer(), http)
        return open { threads, configure -> mcpline.Client.connect(url, read, threads, configure) }
    }

    /** Starts a program and connects to it over its standard input and output. It ends when the client is closed. */
    public fun spawn(vararg command: String): CompletableFuture<Client> = spawn(command.toList(), emptyMap<String, Any>())

    /**
     * Starts a program, with options by the names that [ProgramOptions] has: `Map.of("cwd", "/srv/files")`.
     *
     * @param command The program and its arguments.
     */
    public fun spawn(command: List<String>, options: Map<String, *>): CompletableFuture<Client> {
        val read = settingsOf(ProgramOptions.serializer(), options)
        val arguments = command.drop(1).toTypedArray()
        val program = command.first()
        return open { threads, configure ->
            mcpline.Client.spawn(program, *arguments, options = read, context = threads, configure = configure)
        }
    }

    /** Connects to a server at a Unix socket. */
    public fun socket(path: String): CompletableFuture<Client> =
        open { threads, configure -> mcpline.Client.socket(path, threads, configure) }

    /** Connects to a server in the same process, without sockets: for tests. The whole protocol runs. */
    public fun memory(server: Server): CompletableFuture<Client> =
        open { threads, configure -> mcpline.Client.memory(server.delegate, threads, configure) }

    /** Connects over a custom transport, which opens a channel for each connection. */
    public fun over(transport: ClientTransport): CompletableFuture<Client> =
        open { threads, configure -> mcpline.Client.over(BlockingTransport(transport), threads, configure) }

    /** Opens a client with the settings so far. */
    private fun open(
        open: suspend (CoroutineDispatcher, mcpline.ClientBuilder.() -> Unit) -> mcpline.Client,
    ): CompletableFuture<Client> {
        val chosen = configuration.toList()
        val handlers = threads ?: clientThreads
        val future = CompletableFuture<Client>()
        val opening = CoroutineScope(futureThreads).launch {
            try {
                val client = open(handlers) { chosen.forEach { it() } }
                // The program cannot close it if the future was cancelled or timed out meanwhile.
                if (!future.complete(Client(client))) withContext(NonCancellable) { client.close() }
            } catch (error: Throwable) {
                future.completeExceptionally(error)
            }
        }
        future.whenComplete { _, error -> if (error != null) opening.cancel() }
        return future
    }

    private fun with(configure: mcpline.ClientBuilder.() -> Unit): ClientBuilder = apply { configuration += configure }
}

@Suppress("UNCHECKED_CAST")
private suspend fun <R> blocking(code: () -> R): R = runBlockingCode(code) as R

@Suppress("UNCHECKED_CAST")
private suspend fun <R> awaited(code: () -> java.util.concurrent.CompletionStage<out R>): R = runBlockingCode(code) as R

internal suspend fun <E> deliver(listener: Listener<E>, event: E) {
    runBlockingCode {
        listener.accept(event)
        null
    }
}

private fun json(result: ElicitResult<*>): ElicitResult<JsonObject> = when (result) {
    is ElicitResult.Accepted -> ElicitResult.Accepted(Json.objectOf(result.content))
    ElicitResult.Declined -> ElicitResult.Declined
    ElicitResult.Cancelled -> ElicitResult.Cancelled
}

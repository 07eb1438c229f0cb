// The driver in Kotlin: a client that reads one job per line and writes one report per line. ../../../../README.md has the
// format of both.

import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.selects.select
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.double
import kotlinx.serialization.json.encodeToJsonElement
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.put
import mcpline.Client
import mcpline.ClientBuilder
import mcpline.ClientSettings
import mcpline.CreateMessageResult
import mcpline.ElicitResult
import mcpline.Era
import mcpline.HttpClientOptions
import mcpline.HttpException
import mcpline.LogLevel
import mcpline.McplineException
import mcpline.Progress
import mcpline.Reissue
import mcpline.RequestOptions
import mcpline.Role
import mcpline.RpcException
import mcpline.ServerSettings
import mcpline.TextContent

/** Writes results with the protocol's names, and without members that are absent. */
private val plain = Json { explicitNulls = false }

private val QUICKLY = 20.milliseconds

private fun JsonObject.string(name: String): String = getValue(name).jsonPrimitive.content

private fun JsonObject.time(name: String): Duration? = get(name)?.jsonPrimitive?.double?.seconds

private fun JsonObject.flag(name: String): Boolean? = get(name)?.jsonPrimitive?.boolean

private fun JsonObject.number(name: String): Long? = get(name)?.jsonPrimitive?.long

private fun JsonObject.members(name: String): JsonObject = get(name)?.jsonObject ?: JsonObject(emptyMap())

private fun JsonElement.strings(): List<String> = jsonArray.map { it.jsonPrimitive.content }

private fun errorReport(error: Throwable): JsonObject = buildJsonObject {
    val known = error as? McplineException
    put("kind", known?.kind ?: error.javaClass.name)
    put("text", error.message ?: "")
    put("status", (error as? HttpException)?.status)
    put("code", (error as? RpcException)?.code)
    put("retry_safe", known?.retrySafe ?: false)
    put("outcome_unknown", known?.outcomeUnknown ?: false)
}

/** Notifications that a client has received. */
private class Received {
    private val notifications = CopyOnWriteArrayList<Pair<String, JsonObject>>()
    private val arrived = Channel<Unit>(Channel.CONFLATED)

    fun add(method: String, params: JsonObject) {
        notifications += method to params
        arrived.trySend(Unit)
    }

    /** Waits for the first `count` notifications of a method and returns their params. */
    suspend fun first(method: String, count: Int): List<JsonObject> {
        while (true) {
            val found = notifications.filter { it.first == method }.map { it.second }
            if (found.size >= count) return found.take(count)
            arrived.receive()
        }
    }
}

/** One connection, with the steps of its job. */
private class Play(private val job: JsonObject) {
    private val given = job.members("settings")
    private val received = Received()
    private val connected = CompletableDeferred<Client>()

    suspend fun report(): JsonObject {
        val client = try {
            connect()
        } catch (error: Throwable) {
            return report(null, error, emptyList())
        }
        connected.complete(client)
        val outcomes = client.use {
            job["steps"]?.jsonArray.orEmpty().map { step ->
                try {
                    take(client, step.jsonObject)
                } catch (error: Throwable) {
                    JsonObject(mapOf("error" to errorReport(error)))
                }
            }
        }
        return report(client, null, outcomes)
    }

    private fun report(client: Client?, error: Throwable?, steps: List<JsonObject>) = buildJsonObject {
        put("job", job.getValue("job"))
        put("revision", client?.revision)
        put("server", client?.serverInfo?.name)
        put("error", error?.let(::errorReport) ?: JsonNull)
        put("steps", JsonArray(steps))
    }

    private suspend fun connect(): Client {
        val (kind, where) = job.members("address").entries.single()
        val configure: ClientBuilder.() -> Unit = { configure() }
        return when (kind) {
            "url" -> Client.connect(
                where.jsonPrimitive.content,
                HttpClientOptions(resumeDelay = QUICKLY, maxBodyBytes = given.number("max_body_bytes")),
                configure = configure,
            )
            "command" -> where.strings().let {
                Client.spawn(it.first(), *it.drop(1).toTypedArray(), configure = configure)
            }
            "socket" -> Client.socket(where.jsonPrimitive.content, configure = configure)
            "memory" -> Client.memory(everything(ServerSettings(), setOf("extensions")), configure = configure)
            else -> throw IllegalArgumentException("the Kotlin package has no address of kind $kind")
        }
    }

    private fun ClientBuilder.configure() {
        name = "driver"
        settings = ClientSettings(
            revisions = given["revisions"]?.strings(),
            era = given["era"]?.let { if (it.jsonPrimitive.content == "legacy") Era.Legacy else Era.Modern },
            probeTimeout = given.time("probe"),
            openTimeout = given.time("answer"),
            reconnectAttempts = given.number("attempts"),
            reconnectDelay = QUICKLY,
            trustToolAnnotations = given.flag("trust_tool_annotations"),
            pingInterval = given.time("ping_interval"),
            pingTimeout = given.time("ping_timeout"),
        )
        var pause = given.time("listener_pause")
        if (pause != null) {
            onNotification {
                val first = pause
                pause = null
                first?.let { delay(it) }
            }
        }
        if (given.flag("answers") == true) {
            roots("file:///")
            onElicit { ElicitResult.Declined }
            onSample { CreateMessageResult(Role.Assistant, listOf(TextContent("sampled")), model = "none") }
        }
        if (given.flag("listens") == true) onNotification { received.add(it.method, it.params) }
        given.members("serves").forEach { (method, members) -> onRequest(method) { serve(members.jsonObject, it) } }
        given.members("extensions").forEach { (identifier, declared) -> declare(identifier, declared.jsonObject) }
    }

    /** Answers a custom request: for each member of the result, the member of the params to copy. */
    private fun serve(members: JsonObject, params: JsonObject): JsonObject = JsonObject(
        members.mapValues { (_, source) ->
            val name = source.jsonPrimitive.content
            params[name] ?: throw RpcException(-32602, "params have no $name")
        },
    )

    private fun ClientBuilder.declare(identifier: String, declared: JsonObject) {
        extension(identifier, declared.members("settings")) {
            declared.members("resolves").forEach { (type, method) ->
                onResultType(type) {
                    val token = it.result["token"] ?: JsonNull
                    connected.await().request(method.jsonPrimitive.content, JsonObject(mapOf("token" to token)))
                }
            }
        }
    }

    private suspend fun take(client: Client, step: JsonObject): JsonObject {
        val options = RequestOptions(timeout = step.time("timeout"), reissue = reissue(step))
        val uri = { step.string("uri") }
        return when (val verb = step.string("do")) {
            "list_tools" -> result(client.listTools(options))
            "list_resources" -> result(client.listResources(options))
            "list_resource_templates" -> result(client.listResourceTemplates(options))
            "list_prompts" -> result(client.listPrompts(options))
            "ping" -> result(client.ping(options))
            "call_tool" -> call(client, step, options)
            "cancel_tool" -> cancel(client, step, options)
            "read_resource" -> result(client.readResource(uri(), options))
            "get_prompt" -> {
                val arguments = step.members("arguments").mapValues { it.value.jsonPrimitive.content }
                result(client.getPrompt(step.string("name"), arguments, options))
            }
            "complete" -> complete(client, step.members("params"), options)
            "subscribe" -> result(client.subscribe(uri(), options))
            "unsubscribe" -> result(client.unsubscribe(uri(), options))
            "set_log_level" -> result(client.setLogLevel(plain.decodeFromJsonElement(LogLevel.serializer(), step.getValue("level")), options))
            "request" -> {
                var reports = 0
                val result = client.request(step.string("method"), step["params"]?.jsonObject, options) { reports++ }
                result(result, reports)
            }
            "notify" -> result(client.notify(step.string("method"), step["params"]?.jsonObject))
            "await_notifications" ->
                result(received.first(step.string("method"), step.getValue("count").jsonPrimitive.int))
            else -> throw IllegalArgumentException("no step is named $verb")
        }
    }

    private suspend fun call(client: Client, step: JsonObject, options: RequestOptions): JsonObject {
        var reports = 0
        val pause = step.time("listener_pause")
        val result = client.callTool(step.string("name"), step.members("arguments"), options) {
            reports++
            if (reports == 1 && pause != null) delay(pause)
        }
        return result(result, reports)
    }

    /** Cancels a call while it runs. */
    private suspend fun cancel(client: Client, step: JsonObject, options: RequestOptions): JsonObject = coroutineScope {
        val begun = CompletableDeferred<Unit>()
        val calling = async { call(client, step, options, begun) }
        val after = step.time("after")
        val early = when {
            after != null -> withTimeoutOrNull(after) { calling.await() }
            else -> select {
                calling.onAwait { it }
                begun.onAwait { null }
            }
        }
        calling.cancel()
        early ?: result("cancelled")
    }

    private suspend fun call(
        client: Client,
        step: JsonObject,
        options: RequestOptions,
        begun: CompletableDeferred<Unit>,
    ): JsonObject {
        val onProgress: suspend (Progress) -> Unit = { begun.complete(Unit) }
        return result(client.callTool(step.string("name"), step.members("arguments"), options, onProgress))
    }

    private suspend fun complete(client: Client, params: JsonObject, options: RequestOptions): JsonObject {
        val reference = params.members("ref")
        val argument = params.members("argument")
        val known = params.members("context").members("arguments").mapValues { it.value.jsonPrimitive.content }
        val name = argument.string("name")
        val value = argument.string("value")
        return result(
            if ("name" in reference) {
                client.completePrompt(reference.string("name"), name, value, known, options)
            } else {
                client.completeResource(reference.string("uri"), name, value, known, options)
            },
        )
    }

    private fun reissue(step: JsonObject): Reissue? = when (step["reissue"]?.jsonPrimitive?.content) {
        null -> null
        "always" -> Reissue.Always
        else -> Reissue.Never
    }

    private inline fun <reified T> result(value: T, progress: Int? = null): JsonObject = buildJsonObject {
        put("result", if (value is Unit) JsonNull else plain.encodeToJsonElement(value))
        progress?.let { put("progress", it) }
    }
}

/** Runs a job as often as it says, until something fails, and returns the report of the last run. */
private suspend fun run(job: JsonObject): JsonObject {
    val times = job["times"]?.jsonPrimitive?.int ?: 1
    var report = JsonObject(emptyMap())
    for (time in 1..times) {
        report = Play(job).report()
        val hasFailed = report["error"] != JsonNull || report.getValue("steps").jsonArray.any { "error" in it.jsonObject }
        if (hasFailed) break
    }
    // What is left is measured after jobs that run often (tests/misbehaving/leaks.py), so garbage must not be.
    if (times > 1) System.gc()
    return report
}

fun main(): Unit = runBlocking(Dispatchers.Default) {
    while (true) {
        val line = withContext(Dispatchers.IO) { readlnOrNull() } ?: break
        launch {
            val report = run(Json.parseToJsonElement(line).jsonObject).toString()
            synchronized(System.out) { println(report) }
        }
    }
}

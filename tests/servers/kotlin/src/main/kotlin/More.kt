// Features of `--more 1`, which most tests do not need, and of `--extras 1`, for tests/hostile and some vectors.

import kotlinx.coroutines.yield
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonPrimitive
import mcpline.Annotations
import mcpline.AudioContent
import mcpline.CreateMessageParams
import mcpline.ImageContent
import mcpline.LogLevel
import mcpline.ModelPreferences
import mcpline.Prompt
import mcpline.PromptArgument
import mcpline.Resource
import mcpline.Role
import mcpline.RpcException
import mcpline.SamplingMessage
import mcpline.Server
import mcpline.TextContent
import mcpline.ToolChoice
import mcpline.ToolResultContent
import mcpline.ToolUseContent
import mcpline.UrlElicitation
import mcpline.inputRequired

@Serializable
class Version(val version: String)

@Serializable
class Reason(val reason: String)

@Serializable
class Flood(val count: Int, val size: Int)

@Serializable
class Mistake(val kind: String)

fun Server.addMore() {
    addMoreTools()
    addMorePrompts()
    addMoreResources()
}

private fun Server.addMoreTools() {
    tool("test_sampling_with_media", "Asks the client's model with an image and a recording") {
        val messages = listOf(ImageContent(PNG, "image/png"), AudioContent(WAV, "audio/wav"))
        val params = CreateMessageParams(messages.map { SamplingMessage(Role.User, listOf(it)) }, 100)
        val answer = sample(params, "sample")
        val shown = when (val block = answer.content.first()) {
            is TextContent -> "text ${block.text}"
            is ImageContent -> "image ${block.data}"
            is AudioContent -> "audio ${block.data}"
            is ToolUseContent -> "tool_use ${block.name}"
            is ToolResultContent -> "tool_result ${block.toolUseId}"
        }
        "$shown, stopped by ${answer.stopReason ?: "none"}"
    }
    tool("test_sampling_in_rounds", "Asks the client's model until it uses no tool") {
        val messages = mutableListOf(user("What is the weather in Oslo and Rome?"))
        var round = 1
        while (true) {
            val params =
                CreateMessageParams(messages.toList(), 100, tools = listOf(GET_WEATHER), toolChoice = ToolChoice("auto"))
            val answer = sample(params, "sample$round")
            val uses = answer.content.filterIsInstance<ToolUseContent>()
            if (uses.isEmpty()) return@tool "LLM response: ${answer.text}"
            messages += SamplingMessage(Role.Assistant, answer.content)
            messages += SamplingMessage(Role.User, uses.map(::weatherResult))
            round++
        }
    }
}

/** The result of a use of `get_weather`, with the metadata of the use. */
private fun weatherResult(use: ToolUseContent): ToolResultContent {
    val city = use.input["city"]?.text()
    return ToolResultContent(use.id, listOf(TextContent("$city is sunny")), meta = use.meta)
}

private fun Server.addMorePrompts() {
    val arguments = listOf(
        PromptArgument("many", "Has many candidates", false),
        PromptArgument("broken", "Fails to complete", false),
    )
    val prompt = Prompt(
        "test_described_prompt",
        "Described prompt",
        "A prompt with everything a definition can have",
        arguments,
        ICONS,
    )
    addPrompt(prompt) {
        listOf(TextContent("described", Annotations(listOf(Role.Assistant), 0.5)), LINK)
    }
    completion("test_described_prompt", "many") { _, _ -> (1..150).map { "c$it" } }
    completion("test_described_prompt", "broken") { _, _ -> error(SECRET) }
    prompt("test_failing_prompt", "Fails unexpectedly") { error(SECRET) }
}

private fun Server.addMoreResources() {
    resource(
        "test://described-resource",
        "described-resource",
        "A text with its size and an icon",
        "text/plain",
        title = "Described resource",
        size = 9,
        icons = ICONS,
    ) { "described" }
    resource("test://asking-resource", "asking-resource", "Asks the user in mid-call", "text/plain") {
        "Version ${elicit<Version>("Which version?", "user").contentOrNull?.version ?: "none"}"
    }
    resource("test://failing-resource", "failing-resource", "Fails unexpectedly", "text/plain") { error(SECRET) }
    resource(
        "test://asking/{id}",
        "asking-template",
        "Returns a question to the user",
        "text/plain",
        title = "Asking template",
        icons = ICONS,
    ) { variables ->
        val id = variables.getValue("id")
        accepted("user", "reason")?.let { "$id: $it" } ?: inputRequired { elicit<Reason>("user", "Why $id?") }
    }
}

private fun hi(preferences: ModelPreferences? = null, context: String? = null) =
    CreateMessageParams(listOf(user("hi")), 1, modelPreferences = preferences, includeContext = context)

fun Server.addExtras() {
    tool<Flood>("test_flood", "Logs a number of messages of a size") {
        val text = JsonPrimitive("x".repeat(it.size))
        repeat(it.count) {
            log(LogLevel.Info, text)
            yield()
        }
        "flooded"
    }
    tool<Mistake>("test_mistake", "Does what its author must not") {
        when (it.kind) {
            "reserved code" -> throw RpcException(-32050, SECRET)
            "nested form" -> elicit(
                "Where?",
                obj("""{"type":"object","properties":{"address":{"type":"object","properties":{}}}}"""),
                "wrong",
            )
            "bad url" -> elicitUrl(UrlElicitation("Go", "not a url"), "wrong")
            "lonely result" -> sample(
                CreateMessageParams(listOf(SamplingMessage(Role.User, listOf(ToolResultContent("a", emptyList())))), 1),
                "wrong",
            )
            "priority" -> sample(hi(ModelPreferences(costPriority = 2.0)), "wrong")
            "context" -> sample(hi(context = "thisServer"), "wrong")
        }
        "answered"
    }
    val two = Resource("file:///extras/two", "two", description = "The second file")
    resource(
        "file:///extras/{name}",
        "extras",
        "Files by their names",
        "application/json",
        list = { listOf("file:///extras/one", two, "file:///other/three") },
    ) { it.json }
    resource("log://{host}-{day}-{name}", "logs", "Logs of a host", "application/json") { it.json }
}

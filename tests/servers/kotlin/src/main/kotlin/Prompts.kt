// Prompts, resources, and the completion of their arguments and variables.

import java.util.Base64
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import mcpline.Description
import mcpline.ImageContent
import mcpline.PromptMessage
import mcpline.Role
import mcpline.Server
import mcpline.TextContent
import mcpline.inputRequired

@Serializable
class TwoArguments(
    @Description("First test argument") val arg1: String,
    @Description("Second test argument") val arg2: String,
)

@Serializable
class ResourceToEmbed(@Description("URI of the resource to embed") val resourceUri: String)

@Serializable
class PromptContext(val context: String)

private val IDS = listOf("1", "12", "123", "2")

fun Server.addSimplePrompt(): Unit =
    prompt("test_simple_prompt", "A prompt without arguments") { "This is a simple prompt for testing." }

fun Server.addPrompts() {
    addSimplePrompt()
    prompt<TwoArguments>("test_prompt_with_arguments", "A prompt with arguments") {
        "Prompt with arguments: arg1='${it.arg1}', arg2='${it.arg2}'"
    }
    completion("test_prompt_with_arguments", "arg1", listOf("test alpha", "test beta", "paris"))
    completion("test_prompt_with_arguments", "arg2") { value, others ->
        val first = others["arg1"]
        if (first == null) emptyList() else listOf("$first one", "$first two").filter { it.startsWith(value) }
    }
    prompt<ResourceToEmbed>("test_prompt_with_embedded_resource", "A prompt that embeds a resource") {
        listOf(
            embedded(it.resourceUri, "text/plain", "Embedded resource content for testing."),
            "Please process the embedded resource above.",
        )
    }
    prompt("test_prompt_with_image", "A prompt with an image") {
        listOf(ImageContent(PNG, "image/png"), "Please analyze the image above.")
    }
    prompt("test_prompt_conversation", "A prompt with messages of both sides") {
        listOf(PromptMessage(Role.User, TextContent("What is 2 + 2?")), PromptMessage(Role.Assistant, TextContent("4")))
    }
    prompt("test_input_required_result_prompt", "A prompt that returns a question") {
        accepted("user_context", "context")?.let { "Use this context: $it" }
            ?: inputRequired { elicit<PromptContext>("user_context", "What context should the prompt use?") }
    }
}

fun Server.addResources() {
    resource(
        "test://static-text",
        "static-text",
        "A text that never changes",
        "text/plain",
        title = "Static text",
    ) { "This is the content of the static text resource." }
    resource("test://static-binary", "static-binary", "An image", "image/png") { Base64.getDecoder().decode(PNG) }
    addWatchedResource()
    resource("test://template/{id}/data", "template-data", "Data for any id", "application/json") {
        val id = it.getValue("id")
        buildJsonObject {
            put("id", id)
            put("templateTest", JsonPrimitive(true))
            put("data", "Data for ID: $id")
        }
    }
    completion("test://template/{id}/data", "id") { value, _ -> IDS.filter { it.startsWith(value) } }
}

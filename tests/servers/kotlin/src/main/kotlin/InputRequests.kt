// Tools that send input requests from within the handler.

import java.util.concurrent.ConcurrentHashMap
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import mcpline.CreateMessageParams
import mcpline.ElicitResult
import mcpline.LogLevel
import mcpline.Role
import mcpline.Root
import mcpline.SamplingMessage
import mcpline.Server
import mcpline.Tool
import mcpline.ToolChoice
import mcpline.ToolUseContent
import mcpline.UrlElicitation
import mcpline.UrlElicitationRequiredException
import mcpline.jsonSchema

@Serializable
class City(val city: String)

@Serializable
class Address(val username: String, val email: String)

@Serializable
class Age(val age: Int)

@Serializable
class Answer(val answer: String)

@Serializable
class Prompted(val prompt: String)

@Serializable
class Message(val message: String)

val GET_WEATHER = Tool("get_weather", description = "Weather of a city", inputSchema = jsonSchema<City>())

private val DEFAULTS = obj(
    """
    {"type":"object","properties":{"name":{"type":"string","default":"John Doe"},
     "age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
     "status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
     "verified":{"type":"boolean","default":true}}}
    """,
)

private val ENUMS = obj(
    """
    {"type":"object","properties":{
     "untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
     "titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
      {"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
     "legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
     "untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
     "titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},
      {"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}
    """,
)

fun user(text: String) = SamplingMessage(Role.User, text)

/** A request to the model with one message of the user. */
fun samplingRequest(text: String, maxTokens: Long, tools: List<Tool>? = null) =
    CreateMessageParams(listOf(user(text)), maxTokens, tools = tools, toolChoice = tools?.let { ToolChoice("auto") })

private fun shown(answer: ElicitResult<JsonObject>): String =
    "action=${answer.action}, content=${answer.contentOrNull ?: "{}"}"

private fun shown(roots: List<Root>): String = roots.joinToString("\n") { it.uri }.ifEmpty { "none" }

fun Server.addInputRequestTools() {
    tool<Prompted>("test_sampling", "Asks the client's model") {
        "LLM response: ${sample(samplingRequest(it.prompt, 100), "sample").text}"
    }
    tool("test_sampling_with_tools", "Asks the client's model, which may use a tool") {
        val answer = sample(samplingRequest("What is the weather in Oslo?", 100, listOf(GET_WEATHER)), "sample")
        val use = answer.content.filterIsInstance<ToolUseContent>().firstOrNull()
        if (use == null) "text ${answer.text}" else "tool_use ${use.name} ${use.input}"
    }
    tool<Message>("test_elicitation", "Asks the user for a name and an address") {
        "User response: ${shown(elicit(it.message, jsonSchema<Address>(), "user"))}"
    }
    tool("test_elicitation_sep1034_defaults", "Asks the user with a form that has defaults") {
        "Elicitation result: ${shown(elicit("Please provide user information", DEFAULTS, "user"))}"
    }
    tool("test_elicitation_sep1330_enums", "Asks the user with a form that has choices") {
        "Elicitation completed: ${shown(elicit("Please select options", ENUMS, "user"))}"
    }
    tool("test_url_elicitation", "Asks the user to visit a page") {
        val elicitation = UrlElicitation("Please authorise access", "https://example.com/authorise", "fixture-1")
        "URL elicitation: action=${elicitUrl(elicitation, "user").action}"
    }
    tool("test_roots", "Lists the client's root directories") { shown(listRoots("roots")) }
    onRootsChanged { log(LogLevel.Info, shown(listRoots()), "roots") }
    tool("test_two_questions", "Asks the user twice") {
        when (val first = elicit<Name>("What is your name?", "first")) {
            is ElicitResult.Accepted -> {
                val name = first.content.name
                val second = elicit<Age>("How old are you, $name?", "second")
                if (second is ElicitResult.Accepted) "$name is ${second.content.age}" else "no age"
            }
            else -> "no name"
        }
    }
    tool("test_streaming_elicitation", "Asks the user while a stream is open") {
        "Streaming elicitation: action=${elicit<Answer>("Streaming elicitation", "user").action}"
    }
}

private val completed: MutableSet<String> = ConcurrentHashMap.newKeySet()

fun Server.addUrlElicitationTools() {
    tool<Id>("test_url_elicitation_required", "Needs a visit first") {
        val id = it.id
        if (id !in completed && inputResponse(id)?.get("action")?.text() != "accept") {
            val url = "https://example.com/authorise?visit=$id"
            throw UrlElicitationRequiredException(listOf(UrlElicitation("Please authorise access", url, id)))
        }
        "authorised $id"
    }
    tool<Id>("test_complete_url_elicitation", "Completes a visit") {
        completed += it.id
        this@addUrlElicitationTools.notifyElicitationComplete(it.id)
        "completed ${it.id}"
    }
}

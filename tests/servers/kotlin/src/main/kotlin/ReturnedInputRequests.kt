// Tools that return their input requests and are called again with the answers.

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import mcpline.CallContext
import mcpline.InputRequired
import mcpline.Server
import mcpline.inputRequired

@Serializable
class Confirmation(val ok: Boolean)

@Serializable
class Color(val color: String)

/** The text of a JSON string. */
fun JsonElement.text(): String? = (this as? JsonPrimitive)?.takeIf { it.isString }?.content

/** The client's answer to an input request. */
fun CallContext.inputResponse(key: String): JsonObject? = inputResponses?.get(key) as? JsonObject

/** The client's answer to a form. */
private fun CallContext.answered(key: String): JsonObject? = inputResponse(key)?.takeIf { it["action"]?.text() != null }

/** The user's text for a member of a form. */
fun CallContext.accepted(key: String, member: String): String? =
    answered(key)?.takeIf { it["action"]?.text() == "accept" }?.let { (it["content"] as? JsonObject)?.get(member)?.text() }

/** The model's answer. */
private fun CallContext.sampled(key: String): JsonObject? =
    inputResponse(key)?.takeIf { "content" in it && "role" in it }

/** The client's roots. */
private fun CallContext.listed(key: String): JsonArray? = inputResponse(key)?.get("roots") as? JsonArray

private fun said(answer: JsonObject): String {
    val content = answer.getValue("content")
    val blocks = content as? JsonArray ?: JsonArray(listOf(content))
    return blocks.joinToString("") { (it as JsonObject)["text"]?.text() ?: "" }
}

private fun InputRequired.Builder.requestName(key: String): Unit = elicit<Name>(key, "What is your name?")

private fun InputRequired.Builder.confirm(): Unit = elicit<Confirmation>("confirm", "Please confirm")

fun Server.addReturningTools() {
    tool("test_input_required_result_elicitation", "Returns a question to the user") {
        accepted("user_name", "name")?.let { "Hello, $it!" } ?: inputRequired { requestName("user_name") }
    }
    tool("test_input_required_result_sampling", "Returns a question to the client's model") {
        sampled("capital_question")?.let { "Model said: ${said(it)}" }
            ?: inputRequired { sample("capital_question", samplingRequest("What is the capital of France?", 100)) }
    }
    tool("test_input_required_result_list_roots", "Returns the question for root directories") {
        listed("client_roots")?.let { "Client exposed ${it.size} root(s)." }
            ?: inputRequired { listRoots("client_roots") }
    }
    tool("test_input_required_result_request_state", "Returns a question and a state") {
        if (answered("confirm") == null || requestState != "request-state-nonce") {
            inputRequired("request-state-nonce") { confirm() }
        } else {
            "state-ok: confirmation received"
        }
    }
    tool("test_input_required_result_multiple_inputs", "Returns one question of each kind") {
        if (null in listOf(answered("user_name"), sampled("greeting"), listed("client_roots"))) {
            inputRequired("multiple-inputs") {
                requestName("user_name")
                sample("greeting", samplingRequest("Generate a greeting", 50))
                listRoots("client_roots")
            }
        } else {
            "All inputs received."
        }
    }
    tool("test_input_required_result_multi_round", "Returns questions in two rounds") { inTwoRounds() }
    tool("test_input_required_result_tampered_state", "Returns a state that must come back as it was") {
        if (answered("confirm") == null || requestState == null) {
            inputRequired("round-1") { confirm() }
        } else {
            "state-ok: $requestState"
        }
    }
    tool("test_input_required_result_capabilities", "Returns the questions that the client can answer") {
        val samples = "sampling" in clientCapabilities && sampled("sample") == null
        val asks = "elicitation" in clientCapabilities && answered("ask") == null
        if (samples || asks) {
            inputRequired("capability-gated") {
                if (samples) sample("sample", samplingRequest("Say hello", 50))
                if (asks) requestName("ask")
            }
        } else {
            "capabilities respected: ${inputResponses.orEmpty().keys.sorted().joinToString(",")}"
        }
    }
}

private fun CallContext.inTwoRounds(): Any {
    val state = requestState
    val name = if (state?.startsWith("round-2:") == true) {
        val known = state.removePrefix("round-2:")
        accepted("step2", "color")?.let { return "$known likes $it." }
        known
    } else {
        accepted("step1", "name")
            ?: return inputRequired("round-1") { elicit<Name>("step1", "Step 1: What is your name?") }
    }
    return inputRequired("round-2:$name") { elicit<Color>("step2", "Step 2: What is your favorite color?") }
}

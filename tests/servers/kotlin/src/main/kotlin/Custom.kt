// Custom requests and notifications, which no revision of the protocol defines, and extensions.

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import mcpline.ElicitResult
import mcpline.ExtendedResult
import mcpline.Extension
import mcpline.FeatureOptions
import mcpline.Server

@Serializable
class StampColor(val color: String)

@Serializable
class Token(val token: String)

private val WRITERS = listOf("acme:write")
private const val STAMPS = "com.example/stamps"
private const val RECEIPTS = "com.example/receipts"

val EXTENSIONS = listOf(
    Extension(STAMPS, obj("""{"colors": 3}""")),
    Extension(RECEIPTS, resultTypes = listOf("acme/receipt")),
)

fun Server.addCustomRequests() {
    request<EchoedText>("acme/echo") {
        progress(1, 2)
        notify("acme/echoing", JsonObject(mapOf("text" to JsonPrimitive(it.text))))
        it
    }
    addRequest("acme/params") { mapOf("params" to it) }
    addRequest("acme/ask") {
        when (val answer = elicit<Name>("Who?", "user")) {
            is ElicitResult.Accepted -> answer.content
            else -> Unit
        }
    }
    request<Label>("acme/wait") { untilCancelled(it.label) }
    addRequest("acme/fail") { throw deliberate() }
    addRequest("acme/exception") { error(SECRET) }
    addRequest("acme/list") { listOf(1) }
    addRequest("acme/choose") { mapOf("picked" to request("acme/pick", obj("""{"from": [1, 2, 3]}"""), "pick")["picked"]) }
    notification<Name>("acme/note") { gates.open(it.name) }
    addRequest("acme/publish", options = FeatureOptions(WRITERS)) { mapOf("published" to true) }
    notification<Name>("acme/published", scopes = WRITERS) { gates.open(it.name) }
}

fun Server.addExtensions() {
    request<StampColor>("acme/issue", extension = STAMPS) { mapOf("stamp" to it.color, "for" to clientExtension(STAMPS)) }
    notification<Name>("acme/used", extension = STAMPS) { gates.open(it.name) }
    request<Token>("acme/redeem", extension = RECEIPTS) {
        if (it.token == "endless") receipt(it.token) else mapOf("content" to listOf(TypedText("redeemed ${it.token}")))
    }
    tool("test_extension", "Needs an extension that the client declares") {
        requireExtension(STAMPS)
        "stamps declared"
    }
    tool("test_receipt", "Returns a receipt") { receipt() }
    tool("test_stray_type", "Returns a result of a type that no extension has") { receipt(type = "acme/none") }
    prompt("test_receipt_prompt", "Returns a receipt") { receipt() }
    resource("test://receipt", "receipt", "Returns a receipt") { receipt() }
}

@Serializable
private class TypedText(val text: String, val type: String = "text")

private fun receipt(token: String = "t-1", type: String = "acme/receipt") =
    ExtendedResult(type, JsonObject(mapOf("token" to JsonPrimitive(token))))

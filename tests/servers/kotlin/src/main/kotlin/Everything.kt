// The features of the everything-server; each family has a file.

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import mcpline.Icon
import mcpline.Server
import mcpline.ServerSettings
import mcpline.server

const val PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
const val WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
val ICONS = listOf(Icon("https://example.com/icon.png", "image/png", listOf("48x48")))

/** JSON, as a literal. */
fun obj(text: String): JsonObject = Json.parseToJsonElement(text) as JsonObject

@Serializable
class Name(val name: String)

@Serializable
class Label(val label: String)

@Serializable
class Id(val id: String)

/** Creates the server with these settings and the parts of its command line. */
fun everything(settings: ServerSettings, parts: Set<String>): Server = server(
    "mcpline-everything",
    "1.0.0",
    title = "mcpline everything server",
    instructions = "Fixture server of the mcpline tests.",
    settings = settings,
    extensions = if ("extensions" in parts) EXTENSIONS else emptyList(),
) {
    when {
        "declared" in parts -> return@server
        "tools-only" in parts -> return@server addSimpleText()
        "prompts-only" in parts -> return@server addSimplePrompt()
    }
    addContentTools()
    addFailureTools()
    addRunningTools()
    addInputRequestTools()
    addUrlElicitationTools()
    addReturningTools()
    addCallerTools()
    addChangingTools()
    addPrompts()
    addResources()
    addCustomRequests()
    if ("more" in parts) addMore()
    if ("extensions" in parts) addExtensions()
    if ("extras" in parts) addExtras()
}

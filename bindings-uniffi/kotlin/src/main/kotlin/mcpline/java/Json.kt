package mcpline.java

import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import mcpline.InvalidResponseException
import mcpline.UsageException
import mcpline.dataOf
import mcpline.jsonSchema
import mcpline.json

/** Converts between JSON and Java: text, maps, and records. */
public object Json {
    /**
     * Parses a JSON object.
     *
     * @throws UsageException The text is not a JSON object.
     */
    @JvmStatic
    public fun parse(text: String): JsonObject = try {
        json.parseToJsonElement(text) as? JsonObject ?: throw UsageException("the text is not a JSON object")
    } catch (error: IllegalArgumentException) {
        throw UsageException("the text is not a JSON object: ${error.message?.lineSequence()?.first()}")
    }

    /**
     * Converts a value to JSON: a record, a map, a collection, an enum, a text, a number, a boolean, or JSON itself.
     *
     * @throws UsageException It contains a value of another type.
     */
    @JvmStatic
    public fun of(value: Any?): JsonElement = try {
        dataOf(value)
    } catch (error: IllegalArgumentException) {
        throw UsageException("the value has no JSON form: ${error.message}")
    }

    /** Converts a value to a JSON object: a record, a map, or JSON itself. */
    internal fun objectOf(value: Any?): JsonObject =
        of(value) as? JsonObject ?: throw UsageException("a record, a map or a JsonObject is needed, not ${value?.javaClass?.name}")

    /**
     * Converts JSON to a value of a class, such as a record.
     *
     * @throws InvalidResponseException The JSON does not match the class.
     * @throws UsageException The class has no JSON form.
     */
    @JvmStatic
    public fun <T : Any> read(value: JsonElement, type: Class<T>): T = try {
        json.decodeFromJsonElement(serializerOf(type), value)
    } catch (error: IllegalArgumentException) {
        throw InvalidResponseException("the JSON is not a ${type.simpleName}: ${error.message?.lineSequence()?.first()}")
    }

    /** Returns the JSON Schema (2020-12) of a class, such as a record. */
    @JvmStatic
    public fun schemaOf(type: Class<*>): JsonObject = jsonSchema(serializerOf(type).descriptor)
}

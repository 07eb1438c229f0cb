package mcpline

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerialInfo
import kotlinx.serialization.descriptors.PolymorphicKind
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.descriptors.SerialKind
import kotlinx.serialization.descriptors.StructureKind
import kotlinx.serialization.descriptors.getContextualDescriptor
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonClassDiscriminator
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.serializer

/**
 * Describes a class or a property in the JSON Schema that is derived from its serializer, or a record or its component in Java.
 *
 * @property value The description, for the model or the user.
 */
@OptIn(ExperimentalSerializationApi::class)
@SerialInfo
@Target(AnnotationTarget.PROPERTY, AnnotationTarget.FIELD, AnnotationTarget.CLASS)
public annotation class Description(val value: String)

/**
 * Returns the JSON Schema (2020-12) of a serializable type.
 *
 * A property is required unless it has a default or may be `null`. Enums, lists, sets, maps, value classes, sealed classes
 * and recursive types are described; [Description] adds descriptions.
 */
public inline fun <reified T> jsonSchema(): JsonObject = jsonSchema(serializer<T>().descriptor)

/** Returns the JSON Schema (2020-12) of what a serializer with this descriptor reads and writes. */
public fun jsonSchema(descriptor: SerialDescriptor): JsonObject = SchemaWriter().root(descriptor)

@OptIn(ExperimentalSerializationApi::class)
private class SchemaWriter {
    /** Classes that are being described, so that one within itself becomes a reference. */
    private val open = mutableListOf<String>()
    private val definitions = linkedMapOf<String, JsonElement>()
    private val recursive = mutableSetOf<String>()

    fun root(descriptor: SerialDescriptor): JsonObject {
        val schema = schema(descriptor)
        if (definitions.isEmpty()) return schema
        // The root itself is described in place, because the schema of a tool must be an object.
        val root = (schema["\$ref"] as? JsonPrimitive)?.let { definitions[it.content.substringAfterLast('/')] }
        return JsonObject((root as? JsonObject ?: schema) + ("\$defs" to JsonObject(definitions)))
    }

    fun schema(descriptor: SerialDescriptor): JsonObject {
        val plain = when {
            descriptor.isInline -> schema(descriptor.getElementDescriptor(0))
            else -> described(descriptor, ofKind(descriptor))
        }
        return if (descriptor.isNullable) nullable(plain) else plain
    }

    private fun ofKind(descriptor: SerialDescriptor): JsonObject = when (val kind = descriptor.kind) {
        is PrimitiveKind -> primitive(kind)
        SerialKind.ENUM -> enum(descriptor)
        SerialKind.CONTEXTUAL -> json.serializersModule.getContextualDescriptor(descriptor)?.let(::schema)
            ?: JsonObject(emptyMap())
        StructureKind.LIST -> list(descriptor)
        StructureKind.MAP -> map(descriptor)
        StructureKind.CLASS, StructureKind.OBJECT -> named(descriptor) { members(descriptor) }
        PolymorphicKind.SEALED -> jsonType(descriptor) ?: named(descriptor) { alternatives(descriptor) }
        PolymorphicKind.OPEN -> JsonObject(emptyMap())
    }

    private fun primitive(kind: PrimitiveKind): JsonObject = when (kind) {
        PrimitiveKind.BOOLEAN -> type("boolean")
        PrimitiveKind.BYTE, PrimitiveKind.SHORT, PrimitiveKind.INT, PrimitiveKind.LONG -> type("integer")
        PrimitiveKind.FLOAT, PrimitiveKind.DOUBLE -> type("number")
        PrimitiveKind.CHAR ->
            type("string") + mapOf("minLength" to JsonPrimitive(1), "maxLength" to JsonPrimitive(1))
        PrimitiveKind.STRING -> type("string")
    }

    private fun enum(descriptor: SerialDescriptor): JsonObject {
        val names = (0 until descriptor.elementsCount).map { JsonPrimitive(descriptor.getElementName(it)) }
        return type("string") + mapOf("enum" to JsonArray(names))
    }

    private fun list(descriptor: SerialDescriptor): JsonObject {
        val base = type("array") + mapOf("items" to schema(descriptor.getElementDescriptor(0)))
        val isSet = descriptor.serialName.removeSuffix("?").endsWith("HashSet")
        return if (isSet) base + mapOf("uniqueItems" to JsonPrimitive(true)) else base
    }

    private fun map(descriptor: SerialDescriptor): JsonObject {
        if (descriptor.serialName.removeSuffix("?") == "kotlinx.serialization.json.JsonObject") return type("object")
        return type("object") + mapOf("additionalProperties" to schema(descriptor.getElementDescriptor(1)))
    }

    private fun members(descriptor: SerialDescriptor): JsonObject {
        val properties = linkedMapOf<String, JsonElement>()
        val required = mutableListOf<JsonPrimitive>()
        for (index in 0 until descriptor.elementsCount) {
            val member = descriptor.getElementDescriptor(index)
            val name = descriptor.getElementName(index)
            properties[name] = described(descriptor.getElementAnnotations(index), schema(member))
            if (!descriptor.isElementOptional(index) && !member.isNullable) required += JsonPrimitive(name)
        }
        val base = type("object") + mapOf("properties" to JsonObject(properties))
        return if (required.isEmpty()) base else base + mapOf("required" to JsonArray(required))
    }

    /** A sealed class: the member that names the subclass, and the members of the subclass. */
    private fun alternatives(descriptor: SerialDescriptor): JsonObject {
        val discriminator = descriptor.annotations.filterIsInstance<JsonClassDiscriminator>().firstOrNull()
        val member = discriminator?.discriminator ?: json.configuration.classDiscriminator
        val subclasses = descriptor.getElementDescriptor(1)
        val schemas = (0 until subclasses.elementsCount).map { index ->
            val subclass = subclasses.getElementDescriptor(index)
            val schema = described(subclass, members(subclass))
            val const = JsonObject(mapOf("const" to JsonPrimitive(subclasses.getElementName(index))))
            val properties = mapOf(member to const) + (schema["properties"] as JsonObject)
            val required = listOf(JsonPrimitive(member)) + (schema["required"] as? JsonArray ?: emptyList())
            schema + mapOf("properties" to JsonObject(properties), "required" to JsonArray(required))
        }
        return type("object") + mapOf("anyOf" to JsonArray(schemas))
    }

    /** Types of JSON itself are sealed classes. */
    private fun jsonType(descriptor: SerialDescriptor): JsonObject? =
        if (descriptor.serialName.removeSuffix("?") in JSON_TYPES) JsonObject(emptyMap()) else null

    private fun named(descriptor: SerialDescriptor, describe: () -> JsonObject): JsonObject {
        val name = descriptor.serialName.removeSuffix("?").substringAfterLast('.')
        val reference = JsonObject(mapOf("\$ref" to JsonPrimitive("#/\$defs/$name")))
        if (name in open) {
            recursive += name
            return reference
        }
        open += name
        val schema = described(descriptor, describe())
        open -= name
        if (name !in recursive) return schema
        definitions[name] = schema
        return reference
    }

    private fun nullable(schema: JsonObject): JsonObject {
        val type = schema["type"] as? JsonPrimitive
        if (schema.isEmpty()) return schema
        if (type == null || "enum" in schema || "anyOf" in schema) {
            return JsonObject(mapOf("anyOf" to JsonArray(listOf(schema, type("null")))))
        }
        return schema + mapOf("type" to JsonArray(listOf(type, JsonPrimitive("null"))))
    }

    private fun described(descriptor: SerialDescriptor, schema: JsonObject): JsonObject =
        described(descriptor.annotations, schema)

    private fun described(annotations: List<Annotation>, schema: JsonObject): JsonObject {
        val description = annotations.filterIsInstance<Description>().firstOrNull() ?: return schema
        return schema + mapOf("description" to JsonPrimitive(description.value))
    }

    private fun type(name: String): JsonObject = JsonObject(mapOf("type" to JsonPrimitive(name)))

    private operator fun JsonObject.plus(members: Map<String, JsonElement>): JsonObject =
        JsonObject((this as Map<String, JsonElement>) + members)
}

private val JSON_TYPES = setOf(
    "kotlinx.serialization.json.JsonElement",
    "kotlinx.serialization.json.JsonPrimitive",
)

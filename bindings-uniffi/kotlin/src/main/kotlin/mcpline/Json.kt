package mcpline

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.builtins.nullable
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNamingStrategy
import kotlinx.serialization.json.JsonNull

/** The JSON of the protocol, of arguments and of results. Members that are not known are ignored. */
@OptIn(ExperimentalSerializationApi::class)
internal val json: Json = Json {
    ignoreUnknownKeys = true
    explicitNulls = false
    encodeDefaults = true
    allowSpecialFloatingPointValues = false
}

/** The arguments of prompts, which are strings: numbers and booleans are read from them. */
@OptIn(ExperimentalSerializationApi::class)
internal val lenientJson: Json = Json(json) {
    isLenient = true
}

/** Options of the core: names in snake case, and only what is set. */
@OptIn(ExperimentalSerializationApi::class)
internal val optionsJson: Json = Json {
    explicitNulls = false
    encodeDefaults = false
    namingStrategy = JsonNamingStrategy.SnakeCase
}

/** A member that may be any JSON value: `null` if it is absent, [JsonNull] if it is JSON's null. */
internal object JsonOrAbsent : KSerializer<JsonElement?> {
    override val descriptor: SerialDescriptor = JsonElement.serializer().nullable.descriptor

    override fun serialize(encoder: Encoder, value: JsonElement?) =
        encoder.encodeSerializableValue(JsonElement.serializer(), value ?: JsonNull)

    // The serializer of a nullable element would take JSON's null for an absent member.
    override fun deserialize(decoder: Decoder): JsonElement = decoder.decodeSerializableValue(JsonElement.serializer())
}

/** Encodes a value as text for the core, which accepts only well-formed Unicode. */
internal fun <T> Json.text(serializer: KSerializer<T>, value: T): String = encodeToString(serializer, value).wellFormed()

/** As text for the core; `null` for JSON's null. */
internal fun JsonElement.text(): String = toString().wellFormed()

internal fun JsonElement?.textOrNull(): String? = this?.takeUnless { it is JsonNull }?.text()

/** Replaces lone surrogates, which UTF-8 cannot have, by U+FFFD. */
internal fun String.wellFormed(): String {
    var index = 0
    while (index < length) {
        val char = this[index]
        if (char.isSurrogate()) {
            val isPair = char.isHighSurrogate() && index + 1 < length && this[index + 1].isLowSurrogate()
            if (!isPair) return withoutLoneSurrogates()
            index++
        }
        index++
    }
    return this
}

private fun String.withoutLoneSurrogates(): String = buildString(length) {
    var index = 0
    val text = this@withoutLoneSurrogates
    while (index < text.length) {
        val char = text[index]
        if (char.isHighSurrogate() && index + 1 < text.length && text[index + 1].isLowSurrogate()) {
            append(char).append(text[++index])
        } else {
            append(if (char.isSurrogate()) '\uFFFD' else char)
        }
        index++
    }
}

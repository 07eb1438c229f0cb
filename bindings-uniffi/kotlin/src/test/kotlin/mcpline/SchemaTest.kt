package mcpline

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

class SchemaTest {
    @Serializable
    enum class Unit {
        @SerialName("celsius")
        Celsius,
        Fahrenheit,
    }

    @JvmInline
    @Serializable
    value class City(val name: String)

    @Serializable
    class Everything(
        @Description("The name of a city") val city: City,
        val days: Int = 1,
        val unit: Unit? = null,
        val note: String?,
        val tags: List<String>,
        val unique: Set<Long> = emptySet(),
        val weights: Map<String, Double> = emptyMap(),
        val letter: Char = 'a',
        val flag: Boolean = false,
        val any: JsonElement? = null,
        val data: JsonObject? = null,
    )

    @Test
    fun `properties are required unless they have a default or may be null`() {
        val expected = """
            {"type": "object", "properties": {
              "city": {"type": "string", "description": "The name of a city"},
              "days": {"type": "integer"},
              "unit": {"anyOf": [{"type": "string", "enum": ["celsius", "Fahrenheit"]}, {"type": "null"}]},
              "note": {"type": ["string", "null"]},
              "tags": {"type": "array", "items": {"type": "string"}},
              "unique": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
              "weights": {"type": "object", "additionalProperties": {"type": "number"}},
              "letter": {"type": "string", "minLength": 1, "maxLength": 1},
              "flag": {"type": "boolean"},
              "any": {},
              "data": {"type": ["object", "null"]}},
             "required": ["city", "tags"]}
        """
        assertEquals(parsed(expected), jsonSchema<Everything>())
    }

    @Serializable
    @Description("A shape")
    sealed class Shape

    @Serializable
    @SerialName("circle")
    class Circle(val radius: Double) : Shape()

    @Serializable
    @SerialName("point")
    data object Point : Shape()

    @Test
    fun `sealed classes are alternatives with the name of the subclass`() {
        val expected = """
            {"type": "object", "anyOf": [
              {"type": "object", "properties": {"type": {"const": "circle"}, "radius": {"type": "number"}},
               "required": ["type", "radius"]},
              {"type": "object", "properties": {"type": {"const": "point"}}, "required": ["type"]}],
             "description": "A shape"}
        """
        assertEquals(parsed(expected), jsonSchema<Shape>())
    }

    @Serializable
    class Tree(val name: String, val children: List<Tree> = emptyList())

    @Serializable
    class Forest(val tree: Tree)

    @Test
    fun `recursive types are references`() {
        val tree = """
            {"type": "object", "properties": {"name": {"type": "string"},
              "children": {"type": "array", "items": {"${'$'}ref": "#/${'$'}defs/Tree"}}}, "required": ["name"]}
        """
        val defs = JsonObject(mapOf("\$defs" to obj("""{"Tree": $tree}""")))
        assertEquals(JsonObject(obj(tree) + defs), jsonSchema<Tree>())
        val reference = """{"${'$'}ref": "#/${'$'}defs/Tree"}"""
        val forest = obj("""{"type": "object", "properties": {"tree": $reference}, "required": ["tree"]}""")
        assertEquals(JsonObject(forest + defs), jsonSchema<Forest>())
    }
}

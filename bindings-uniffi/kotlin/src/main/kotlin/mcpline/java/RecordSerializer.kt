package mcpline.java

import java.lang.reflect.InvocationTargetException
import java.lang.reflect.ParameterizedType
import java.lang.reflect.RecordComponent
import java.lang.reflect.Type
import java.lang.reflect.WildcardType
import java.util.Optional
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.InternalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.PolymorphicSerializer
import kotlinx.serialization.SealedSerializationApi
import kotlinx.serialization.SerializationException
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.MapSerializer
import kotlinx.serialization.builtins.SetSerializer
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.descriptors.SerialKind
import kotlinx.serialization.descriptors.StructureKind
import kotlinx.serialization.encoding.CompositeDecoder
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.encoding.decodeStructure
import kotlinx.serialization.encoding.encodeStructure
import kotlinx.serialization.serializerOrNull
import mcpline.Description
import mcpline.UsageException

/** Returns the serializer of a class: a record, or what `kotlinx.serialization` knows. */
@Suppress("UNCHECKED_CAST")
internal fun <T : Any> serializerOf(type: Class<T>): KSerializer<T> = serializerOf(type as Type) as KSerializer<T>

/** Returns whether this is the class of a record. Asks for its superclass, because old Android has no records. */
internal fun isRecord(type: Class<*>): Boolean = type.superclass?.name == "java.lang.Record"

private fun serializerOf(type: Type): KSerializer<Any> = when (type) {
    is ParameterizedType -> generic(type)
    is WildcardType -> serializerOf(type.upperBounds.first())
    is Class<*> -> if (isRecord(type)) records.get(type) else known(type)
    else -> known(type)
}

@Suppress("UNCHECKED_CAST")
private fun generic(type: ParameterizedType): KSerializer<Any> {
    val arguments = type.actualTypeArguments
    return when (type.rawType) {
        List::class.java, Collection::class.java -> ListSerializer(serializerOf(arguments[0]))
        Set::class.java -> SetSerializer(serializerOf(arguments[0]))
        Map::class.java -> MapSerializer(serializerOf(arguments[0]), serializerOf(arguments[1]))
        else -> known(type)
    } as KSerializer<Any>
}

private fun known(type: Type): KSerializer<Any> {
    val serializer = serializerOrNull(type)
    if (serializer != null && serializer !is PolymorphicSerializer) return serializer
    throw UsageException(
        "${type.typeName} has no JSON form: use a record, an enum, a text, a number, a boolean, or a List, Set or Map of these",
    )
}

/** One serializer per class, so that records may contain themselves. */
private val records by lazy {
    object : ClassValue<RecordSerializer>() {
        override fun computeValue(type: Class<*>): RecordSerializer = RecordSerializer(type)
    }
}

/** Reads and writes a record. Components are required, except those of type [Optional]. */
private class RecordSerializer(private val type: Class<*>) : KSerializer<Any> {
    private val members: List<Member> = type.recordComponents.map { Member(type, it) }
    override val descriptor: SerialDescriptor = RecordDescriptor(type, members)

    private val constructor by lazy {
        type.getDeclaredConstructor(*type.recordComponents.map { it.type }.toTypedArray()).apply { isAccessible = true }
    }

    override fun serialize(encoder: Encoder, value: Any): Unit = encoder.encodeStructure(descriptor) {
        members.forEachIndexed { index, member ->
            val part = member.of(value)
            if (part != null) encodeSerializableElement(descriptor, index, member.serializer, part)
        }
    }

    override fun deserialize(decoder: Decoder): Any {
        val values = arrayOfNulls<Any>(members.size)
        decoder.decodeStructure(descriptor) {
            while (true) {
                val index = decodeElementIndex(descriptor)
                if (index == CompositeDecoder.DECODE_DONE) break
                values[index] = read(index)
            }
        }
        members.forEachIndexed { index, member ->
            when {
                member.isOptional -> values[index] = Optional.ofNullable(values[index])
                values[index] == null -> throw SerializationException("`${member.name}` is missing")
            }
        }
        try {
            return constructor.newInstance(*values)
        } catch (error: InvocationTargetException) {
            throw error.cause ?: error
        }
    }

    @OptIn(ExperimentalSerializationApi::class)
    private fun CompositeDecoder.read(index: Int): Any? {
        val member = members[index]
        return if (member.isOptional) {
            decodeNullableSerializableElement(descriptor, index, member.serializer)
        } else {
            decodeSerializableElement(descriptor, index, member.serializer)
        }
    }
}

private class Member(record: Class<*>, private val component: RecordComponent) {
    val name: String = component.name
    val isOptional: Boolean = component.type == Optional::class.java

    /** Annotations of a component are those of its field, if they may be there. */
    val annotations: List<Annotation> =
        listOfNotNull(record.getDeclaredField(name).getAnnotation(Description::class.java))

    val serializer: KSerializer<Any> by lazy {
        val declared = component.genericType
        serializerOf(if (isOptional) (declared as ParameterizedType).actualTypeArguments[0] else declared)
    }

    private val accessor by lazy { component.accessor.apply { isAccessible = true } }

    /** The component of a record; `null` if it is empty. */
    fun of(record: Any): Any? {
        val value = accessor.invoke(record)
        if (isOptional) return (value as Optional<*>?)?.orElse(null)
        return value ?: throw SerializationException("`$name` is null: use an Optional for what may be absent")
    }
}

/** Describes its elements when they are asked for, because a record may contain itself. */
@OptIn(ExperimentalSerializationApi::class, SealedSerializationApi::class, InternalSerializationApi::class)
private class RecordDescriptor(type: Class<*>, private val members: List<Member>) : SerialDescriptor {
    override val serialName: String = type.name.replace('$', '.')
    override val kind: SerialKind get() = StructureKind.CLASS
    override val elementsCount: Int get() = members.size
    override val annotations: List<Annotation> = listOfNotNull(type.getAnnotation(Description::class.java))

    override fun getElementName(index: Int): String = members[index].name
    override fun getElementIndex(name: String): Int =
        members.indexOfFirst { it.name == name }.let { if (it < 0) CompositeDecoder.UNKNOWN_NAME else it }
    override fun getElementAnnotations(index: Int): List<Annotation> = members[index].annotations
    override fun isElementOptional(index: Int): Boolean = members[index].isOptional

    // Not nullable where it is optional: the fields of forms (elicitations) can't be.
    override fun getElementDescriptor(index: Int): SerialDescriptor = members[index].serializer.descriptor
}

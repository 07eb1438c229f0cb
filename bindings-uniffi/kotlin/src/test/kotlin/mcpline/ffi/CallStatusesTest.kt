package mcpline.ffi

import com.sun.jna.Pointer
import java.util.Collections
import java.util.IdentityHashMap
import kotlin.concurrent.thread
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue
import mcpline.Library

class CallStatusesTest {
    private fun server(): Server {
        Library.load()
        return Server("""{"name":"statuses","version":"1"}""", null, null)
    }

    @Test
    fun `nested calls have statuses of their own, also more than are kept`() {
        val statuses = CallStatuses.current
        val taken = List(20) { statuses.begin() }
        try {
            assertEquals(20, taken.toSet().size)
            taken.forEach { assertFalse(CallStatuses.hasFailed(it)) }
        } finally {
            taken.forEach { _ -> statuses.end() }
        }
        assertEquals(0, statuses.depth)
        assertEquals(taken.first(), statuses.begin())
        statuses.end()
    }

    @Test
    fun `a call that fails leaves a clear status`() {
        server().use { server ->
            repeat(50) {
                val failure = assertFailsWith<Failure.Failed> { server.removeFeature("no such kind", "a") }
                assertTrue("no such kind" in failure.text, failure.text)
                assertFalse(server.removeFeature("tool", "a"))
            }
        }
        assertEquals(0, CallStatuses.current.depth)
    }

    @Test
    fun `an exception between the calls of one call is no failure of later ones`() {
        server().use { server ->
            // Not well-formed: it is refused while the status of the call is in use.
            assertFailsWith<CharacterCodingException> { server.removeFeature("tool", "\uD800") }
            assertEquals(0, CallStatuses.current.depth)
            assertFalse(server.removeFeature("tool", "a"))
        }
    }

    @Test
    fun `each thread has statuses of its own, which end with it`() {
        val used = Collections.synchronizedList(mutableListOf<Pointer>())
        val failures = Collections.newSetFromMap(Collections.synchronizedMap(IdentityHashMap<Throwable, Boolean>()))
        server().use { server ->
            List(16) {
                thread {
                    try {
                        repeat(200) {
                            assertFailsWith<Failure.Failed> { server.removeFeature("no such kind", "a") }
                            assertFalse(server.removeFeature("tool", "a"))
                        }
                        used += CallStatuses.current.begin()
                    } catch (failure: Throwable) {
                        failures += failure
                    }
                }
            }.forEach { it.join() }
        }
        assertEquals(emptySet(), failures.toSet())
        assertEquals(16, used.size)
        assertNotEquals(used[0], CallStatuses.current.begin())
        CallStatuses.current.end()
    }
}

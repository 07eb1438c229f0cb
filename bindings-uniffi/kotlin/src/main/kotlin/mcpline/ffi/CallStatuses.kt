package mcpline.ffi

import com.sun.jna.Memory
import com.sun.jna.Pointer

/** How many statuses a thread keeps: calls nest, because their arguments are converted within them. */
private const val KEPT = 8

/**
 * The statuses into which the library writes how a call has ended. Each thread reuses its own: JNA registers all memory that it
 * allocates, which costs more than the call.
 *
 * All bytes of a status are zero, which means success, unless a call has failed.
 */
internal class CallStatuses private constructor() {
    private val size = UniffiRustCallStatus().size().toLong()
    private val kept = Memory(size * KEPT).apply { clear() }
    private val statuses = Array(KEPT) { kept.share(it * size, size) }

    /** How many calls are being made. */
    var depth: Int = 0
        private set

    /** Begins a call. [end] must follow on the same thread. */
    fun begin(): Pointer {
        val status = if (depth < KEPT) statuses[depth] else Memory(size).apply { clear() }
        depth++
        return status
    }

    /** Ends the call that began last. */
    fun end() {
        depth--
    }

    /** Takes the status of a call that has failed, and clears it. */
    fun take(status: Pointer): UniffiRustCallStatus {
        val taken = UniffiRustCallStatus()
        taken.pointer.write(0, status.getByteArray(0, size.toInt()), 0, size.toInt())
        status.clear(size)
        taken.read()
        return taken
    }

    companion object {
        private val ofThread = ThreadLocal.withInitial { CallStatuses() }

        /** Those of the current thread. */
        val current: CallStatuses get() = ofThread.get()

        /** Whether a call has failed. */
        fun hasFailed(status: Pointer): Boolean = status.getByte(0) != UNIFFI_CALL_SUCCESS
    }
}

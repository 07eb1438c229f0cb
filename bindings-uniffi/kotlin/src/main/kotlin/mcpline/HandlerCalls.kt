package mcpline

import com.sun.jna.Native
import com.sun.jna.Pointer
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.LockSupport
import kotlin.concurrent.thread
import kotlinx.coroutines.CoroutineScope
import mcpline.ffi.Call
import mcpline.ffi.Outcome
import mcpline.ffi.UniffiWithHandle

/** A handler that the library calls by its number. */
internal interface NumberedHandler {
    /** Handles a call. */
    suspend fun handle(arguments: String, call: HandlerCall): Outcome

    /** The outcome of a call that has failed outside of [handle]. */
    fun failure(error: Throwable): Outcome
}

/** This many calls of a handler in a row do not occupy their threads before the next one is expected not to. */
private const val QUICK_CALLS = 16

/** A handler that has a number. */
internal class RegisteredHandler(val handler: NumberedHandler) {
    /** How many calls have to be quick. Several threads may count at once; a miscount changes the expectation only. */
    @Volatile
    private var quickCallsNeeded = QUICK_CALLS

    /** Whether its next call is expected to occupy the thread until it suspends or returns. */
    val isExpectedToOccupy: Boolean get() = quickCallsNeeded > 0

    /** A call occupies its thread. */
    fun occupies() {
        quickCallsNeeded = QUICK_CALLS
    }

    /** A call has run until it suspended or returned. */
    fun ran(nanos: Long) {
        if (nanos > OCCUPIED_NANOS) {
            occupies()
        } else if (quickCallsNeeded > 0) {
            quickCallsNeeded--
        }
    }
}

/** Kinds of events, by the numbers of the library. */
private const val ARRIVED = 0
private const val CANCELLED = 1
private const val HANDLER_RELEASED = 2

/** How long replies that were kept back wait at most, and calls behind a handler that occupies its thread unexpectedly. */
private const val TICK_MICROS = 1_000L
private const val TICK_NANOS = TICK_MICROS * 1_000

/** How long the thread of events waits at most while the leader of a queue waits for a thread. */
private const val SLOW_TICK_MICROS = THREAD_WAIT_NANOS / 1_000

/** Waits without limit. */
private const val UNLIMITED = -1L

/** How many [TakenCall]s are kept for later runners: as many as run at the same time in most programs. */
private const val MAX_KEPT_MEMORIES = 32

/**
 * The calls of handlers (`bindings-uniffi/src/handler_calls.rs`).
 *
 * The library calls no function of Kotlin: a thread waits for its events, and starts the runners of a [HandlerQueue] when calls
 * have arrived. The thread runs no code of the program. Replies of handlers that end immediately are sent together, when their
 * runner has no more calls or after a tick.
 *
 * Each call that a runner has taken ends, even if the JVM is out of memory: [Functions.mcpline_fail_handler_call] needs none.
 */
internal object HandlerCalls {
    private val handlers = ConcurrentHashMap<Long, RegisteredHandler>()
    private val lastHandler = AtomicLong()
    private val queues = ConcurrentHashMap<Long, HandlerQueue>()

    /** Calls that have not ended, and those that runners have prepared. */
    private val calls = ConcurrentHashMap<Long, HandlerCall>()
    private val lastCall = AtomicLong()
    private val memories = ConcurrentLinkedQueue<TakenCall>()
    private val keptMemories = AtomicInteger()

    /** Whether the thread of events looks at queues from time to time. */
    @Volatile
    private var isTicking = false

    /** How many calls were taken and have not ended. */
    val runningCount: Int get() = calls.values.count { it.queue != null }

    /** Starts the thread, once. */
    fun start() {
        Native.register(Functions::class.java, "mcpline_uniffi")
        thread(isDaemon = true, name = "mcpline-calls") { takeEvents() }
    }

    /** Opens the queue that has this number in the library, until the library releases it. */
    fun openQueue(number: Long, scope: CoroutineScope) {
        queues[number] = HandlerQueue(number, scope)
    }

    /** The queue with this number; `null` if the library has released it. */
    fun queue(number: Long): HandlerQueue? = queues[number]

    /** Gives a handler a number until the library releases it. */
    fun pass(handler: NumberedHandler, add: (number: Long) -> Unit) {
        val number = lastHandler.incrementAndGet()
        handlers[number] = RegisteredHandler(handler)
        try {
            add(number)
        } catch (refused: Throwable) {
            handlers.remove(number)
            throw refused
        }
    }

    /** Whether the library may call a handler. */
    fun isRegistered(handler: NumberedHandler): Boolean = handlers.values.any { it.handler === handler }

    /** Whether a call of this queue was taken and has no coroutine yet. */
    fun isBeginningIn(queue: HandlerQueue): Boolean = calls.values.any { it.isBeginningIn(queue) }

    /** Makes sure that the thread of events looks at queues. Called after something has changed that it has to look at. */
    fun ensureTicks() {
        if (!isTicking) Functions.mcpline_wake_handler_events()
    }

    private fun takeEvents() {
        val length = ByteBuffer.allocateDirect(Long.SIZE_BYTES).order(ByteOrder.nativeOrder())
        val lengthAddress = Pointer.nativeValue(Native.getDirectBufferPointer(length))
        var lastTick = 0L
        var mostMicros = UNLIMITED
        while (true) {
            val batch = Functions.mcpline_next_handler_events(mostMicros, lengthAddress)
            val now = System.nanoTime()
            if (!isTicking) {
                isTicking = true
                lastTick = now
            }
            val size = length.getLong(0)
            if (size > 0) takeBatch(view(batch, size), now)
            if (now - lastTick >= TICK_NANOS) {
                lastTick = now
                isTicking = tick(now)
                // What has become busy before the last line found that there are ticks.
                if (!isTicking) isTicking = isAny { it.isBusy }
            }
            mostMicros = when {
                isTicking -> TICK_MICROS
                isAny { it.isWaitingForThread } -> SLOW_TICK_MICROS
                else -> UNLIMITED
            }
        }
    }

    /** Returns whether further ticks are needed. */
    private fun tick(now: Long): Boolean =
        try {
            queues.values.forEach { it.tick(now) }
            isAny { it.isBusy }
        } catch (_: OutOfMemoryError) {
            true
        } finally {
            // Those of runners that are not leaders any more, too.
            sendReplies()
        }

    /** Whether this holds for any queue, or there is no memory to look. */
    private inline fun isAny(holds: (HandlerQueue) -> Boolean): Boolean =
        try {
            queues.values.any(holds)
        } catch (_: OutOfMemoryError) {
            true
        }

    /** Takes the events of a batch. */
    private fun takeBatch(events: ByteBuffer, now: Long) {
        while (events.hasRemaining()) {
            val kind = events.get().toInt()
            val number = events.getLong()
            if (kind == ARRIVED) {
                withMemory { queues[number] }?.arrived(now)
                continue
            }
            try {
                when (kind) {
                    CANCELLED -> calls[number]?.cancel()
                    HANDLER_RELEASED -> handlers.remove(number)
                    else -> queues.remove(number)
                }
            } catch (_: OutOfMemoryError) {
                // The handler is not interrupted, or an object is kept.
            }
        }
    }

    /** Returns the bytes of a batch in the memory of the library. */
    private fun view(address: Long, size: Long): ByteBuffer =
        withMemory { Pointer(address).getByteBuffer(0, size).order(ByteOrder.BIG_ENDIAN) }

    /** Repeats what needs little memory until there is some: without it, no call can be begun. */
    private inline fun <T> withMemory(get: () -> T): T {
        while (true) {
            try {
                return get()
            } catch (_: OutOfMemoryError) {
                LockSupport.parkNanos(TICK_NANOS)
            }
        }
    }

    /** Runs a function with memory for calls that are taken. */
    inline fun withTakenCall(take: (TakenCall) -> Unit) {
        val memory = takeMemory()
        try {
            take(memory)
        } finally {
            keepMemory(memory)
        }
    }

    private fun takeMemory(): TakenCall = memories.poll()?.also { keptMemories.decrementAndGet() } ?: TakenCall()

    private fun keepMemory(memory: TakenCall) {
        try {
            if (keptMemories.get() < MAX_KEPT_MEMORIES) {
                memories += memory
                keptMemories.incrementAndGet()
                return
            }
        } catch (_: OutOfMemoryError) {
            // It is not kept.
        }
        memory.close()
    }

    /** A call that can be taken. */
    fun newCall(): HandlerCall {
        val call = HandlerCall(lastCall.incrementAndGet())
        calls[call.number] = call
        return call
    }

    /** Forgets a call that has ended, or that was not taken. */
    fun forget(number: Long) {
        try {
            calls.remove(number)
        } catch (_: OutOfMemoryError) {
            // It stays in memory.
        }
    }

    /** Takes a call for [TakenCall], and returns the number of its handler; 0 if none waits. */
    fun take(queue: Long, call: Long, memory: Long): Long = Functions.mcpline_take_handler_call(queue, call, memory)

    /** The handler with this number; `null` if it was released, or if there is no memory to find it. */
    fun handler(number: Long): RegisteredHandler? =
        try {
            handlers[number]
        } catch (_: OutOfMemoryError) {
            null
        }

    /** Ends a call. If it is [kept][isKept], the reply may wait until [sendReplies], which must follow. */
    fun end(number: Long, outcome: ByteBuffer, isKept: Boolean) {
        Functions.mcpline_end_handler_call(number, outcome.array(), outcome.position().toLong(), if (isKept) 1 else 0)
        forget(number)
    }

    /** Ends a call without an outcome, unless it has ended. */
    fun fail(number: Long) {
        Functions.mcpline_fail_handler_call(number)
        forget(number)
    }

    /** Sends the replies that were kept back. */
    fun sendReplies(): Unit = Functions.mcpline_send_handler_replies()

    /** Opens the context of a call; `null` if it has ended. */
    fun context(number: Long): Call? =
        Functions.mcpline_handler_call_context(number).takeIf { it != 0L }?.let { Call(UniffiWithHandle, it) }

    /** The functions of the library, by JNA's direct mapping. */
    @Suppress("FunctionName")
    private object Functions {
        @JvmStatic
        external fun mcpline_next_handler_events(mostMicroseconds: Long, length: Long): Long

        @JvmStatic
        external fun mcpline_wake_handler_events()

        @JvmStatic
        external fun mcpline_take_handler_call(queue: Long, call: Long, taken: Long): Long

        @JvmStatic
        external fun mcpline_end_handler_call(call: Long, outcome: ByteArray, length: Long, isKept: Byte)

        @JvmStatic
        external fun mcpline_fail_handler_call(call: Long)

        @JvmStatic
        external fun mcpline_send_handler_replies()

        @JvmStatic
        external fun mcpline_handler_call_context(call: Long): Long
    }
}

/** Memory into which the library writes what it knows of a call that a runner takes. Reused, because the JVM allocates it slowly. */
internal class TakenCall {
    private val memory = ByteBuffer.allocateDirect(3 * Long.SIZE_BYTES).order(ByteOrder.nativeOrder())
    private val address = Pointer.nativeValue(Native.getDirectBufferPointer(memory))
    private var next: HandlerCall? = null

    /** How many calls were left when the last one was taken. */
    val left: Long get() = memory.getLong(2 * Long.SIZE_BYTES)

    /** Prepares a call of a queue. It is known before it is taken, because it may be cancelled immediately. */
    fun prepare(queue: HandlerQueue): HandlerCall {
        val call = next ?: HandlerCalls.newCall().also { next = it }
        call.queue = queue
        return call
    }

    /** Takes the call that was [prepared][prepare] from the queue with this number; returns whether one waits there. */
    fun take(queue: Long): Boolean {
        val call = checkNotNull(next)
        val handler = HandlerCalls.take(queue, call.number, address)
        if (handler == 0L) {
            call.queue = null
            return false
        }
        next = null
        call.taken(HandlerCalls.handler(handler), memory.getLong(0), memory.getLong(Long.SIZE_BYTES).toInt())
        return true
    }

    /** Forgets the call that was prepared. */
    fun close() {
        next?.let { HandlerCalls.forget(it.number) }
    }
}

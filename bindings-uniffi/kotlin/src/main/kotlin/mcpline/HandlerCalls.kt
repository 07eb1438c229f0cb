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
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.yield
import mcpline.ffi.Call
import mcpline.ffi.FfiConverterTypeOutcome
import mcpline.ffi.Outcome
import mcpline.ffi.UniffiWithHandle

/** A handler that the library calls by its number. */
internal interface NumberedHandler {
    /** The scope of the coroutines of its calls. */
    val scope: CoroutineScope

    /** Whether a coroutine of [scope] runs on [Dispatchers.Default], and the program cannot cancel the scope. */
    val runsOnDefault: Boolean

    /** Handles a call. */
    suspend fun handle(arguments: String, call: HandlerCall): Outcome

    /** The outcome of a call that has failed outside of [handle]. */
    fun failure(error: Throwable): Outcome
}

/** Kinds of events, by the numbers of the library. */
private const val CALL = 0
private const val CANCELLED = 1
private const val RELEASED = 2

/** How long replies that were kept back, and calls behind a slow handler, wait at most. */
private const val TICK_MILLIS = 1L
private const val TICK_NANOS = TICK_MILLIS * 1_000_000

/** Waits without limit. */
private const val UNLIMITED = -1L

/** After this many calls a runner lets other coroutines of its thread run. */
private const val CALLS_PER_TURN = 64

/**
 * How many calls, and bytes of their arguments, may wait for a runner. Others stay in the library, where clients take turns: enough
 * for what runners begin in a tick.
 */
private const val MAX_WAITING_CALLS = 512L
private const val MAX_WAITING_BYTES = 1L shl 20

/**
 * The calls of handlers (`bindings-uniffi/src/handler_calls.rs`).
 *
 * A thread takes events from the library in batches, so that the library calls no function of Kotlin, and only one thread is woken
 * for many calls. The thread runs no code of the program. A *runner*, a task of [Dispatchers.Default], begins the calls one after
 * another; if calls have waited for a tick, another runner joins. Replies of handlers that end immediately are sent together, when
 * the runner has no more calls or after a tick.
 *
 * Each call that the library has passed on ends, even if the JVM is out of memory: [Functions.mcpline_fail_handler_call] needs none.
 */
@OptIn(DelicateCoroutinesApi::class)
internal object HandlerCalls {
    private val handlers = ConcurrentHashMap<Long, NumberedHandler>()
    private val lastHandler = AtomicLong()
    private val running = ConcurrentHashMap<Long, HandlerCall>()

    /** Calls that no runner has begun. */
    private val waiting = ConcurrentLinkedQueue<HandlerCall>()
    private val waitingBytes = AtomicLong()
    private val runners = AtomicInteger()

    /** Runners that wait for a thread. While there are any, another one would wait too. */
    private val queuedRunners = AtomicInteger()

    /** How many calls have arrived: of the thread that takes them. */
    private var arrived = 0L

    /** How many calls a runner has begun. */
    private val begunCount = AtomicLong()

    /** How many calls have arrived and not ended. */
    val runningCount: Int get() = running.size

    /** Starts the thread, once. */
    fun start() {
        Native.register(Functions::class.java, "mcpline_uniffi")
        thread(isDaemon = true, name = "mcpline-calls") { takeEvents() }
    }

    /** Gives a handler a number until the library releases it. */
    fun pass(handler: NumberedHandler, add: (number: Long) -> Unit) {
        val number = lastHandler.incrementAndGet()
        handlers[number] = handler
        try {
            add(number)
        } catch (refused: Throwable) {
            handlers.remove(number)
            throw refused
        }
    }

    /** Whether the library may call a handler. */
    fun isRegistered(handler: NumberedHandler): Boolean = handlers.containsValue(handler)

    /** Waits until no call of this scope waits for a runner. */
    suspend fun awaitBegun(scope: CoroutineScope) {
        while (running.values.any { it.isWaitingIn(scope) }) delay(TICK_MILLIS)
    }

    private fun takeEvents() {
        val length = ByteBuffer.allocateDirect(Long.SIZE_BYTES).order(ByteOrder.nativeOrder())
        val lengthAddress = Pointer.nativeValue(Native.getDirectBufferPointer(length))
        // Whether replies may have been kept back, or calls wait, since the last tick.
        var isBusy = false
        var lastTick = 0L
        var arrivedAtLastTick = 0L
        while (true) {
            val room = room()
            val batch = Functions.mcpline_next_handler_events(if (isBusy) TICK_MILLIS else UNLIMITED, room, lengthAddress)
            val size = length.getLong(0)
            val now = System.nanoTime()
            if (size > 0 && takeBatch(batch, size) && !isBusy) {
                isBusy = true
                lastTick = now
                arrivedAtLastTick = arrived
            }
            if (isBusy && now - lastTick >= TICK_NANOS) {
                // Read first: replies that were kept back before the last call began are sent.
                val begun = begunCount.get()
                Functions.mcpline_send_handler_replies()
                if (begun < arrivedAtLastTick) addRunner()
                // Without room, calls may be left for which the library does not wake this thread again.
                isBusy = begun < arrived || room == 0L
                lastTick = now
                arrivedAtLastTick = arrived
            }
        }
    }

    private fun room(): Long =
        if (waitingBytes.get() >= MAX_WAITING_BYTES) 0 else (MAX_WAITING_CALLS - (arrived - begunCount.get())).coerceAtLeast(0)

    /** Takes the events of a batch; returns whether calls are among them. */
    private fun takeBatch(address: Long, size: Long): Boolean {
        val events = view(address, size)
        val arrivedBefore = arrived
        while (events.hasRemaining()) {
            val kind = events.get().toInt()
            val number = events.getLong()
            if (kind == CALL) {
                val handler = events.getLong()
                val end = events.getInt() + events.position()
                arrive(number, handler, events, end)
                events.position(end)
            } else {
                try {
                    if (kind == CANCELLED) running[number]?.cancel() else handlers.remove(number)
                } catch (_: OutOfMemoryError) {
                    // The handler is not interrupted, or its object is kept.
                }
            }
        }
        if (arrived == arrivedBefore) return false
        if (runners.compareAndSet(0, 1)) dispatch()
        return true
    }

    /** Returns the bytes of a batch in the memory of the library. */
    private fun view(address: Long, size: Long): ByteBuffer {
        while (true) {
            try {
                return Pointer(address).getByteBuffer(0, size).order(ByteOrder.BIG_ENDIAN)
            } catch (_: OutOfMemoryError) {
                // It is a small object, which the program may soon have memory for. Without it, nothing can be begun.
                LockSupport.parkNanos(TICK_NANOS)
            }
        }
    }

    private fun arrive(number: Long, handler: Long, events: ByteBuffer, end: Int) {
        try {
            val arguments = ByteArray(end - events.position())
            events.get(arguments)
            val call = HandlerCall(number, handlers[handler], arguments)
            running[number] = call
            waiting += call
            waitingBytes.addAndGet(arguments.size.toLong())
            arrived++
        } catch (_: OutOfMemoryError) {
            fail(number)
        }
    }

    private fun addRunner() {
        if (queuedRunners.get() > 0) return
        runners.incrementAndGet()
        dispatch()
    }

    private fun dispatch() {
        queuedRunners.incrementAndGet()
        try {
            Dispatchers.Default.dispatch(EmptyCoroutineContext, Runner)
        } catch (_: Throwable) {
            // The next tick adds another one.
            queuedRunners.decrementAndGet()
            runners.decrementAndGet()
        }
    }

    private object Runner : Runnable {
        override fun run() {
            // Without memory for another thread, dispatching fails after the runner was queued: then it is not counted.
            if (queuedRunners.getAndUpdate { if (it > 0) it - 1 else 0 } == 0) return
            var left = CALLS_PER_TURN
            while (true) {
                val call = waiting.poll()
                if (call == null) {
                    runners.decrementAndGet()
                    Functions.mcpline_send_handler_replies()
                    // Calls that have arrived before it was uncounted found a runner.
                    if (waiting.isEmpty() || !runners.compareAndSet(0, 1)) return
                    continue
                }
                waitingBytes.addAndGet(-call.size.toLong())
                begunCount.incrementAndGet()
                call.begin()
                left--
                if (left == 0) {
                    Functions.mcpline_send_handler_replies()
                    if (dispatchLast()) return
                    left = CALLS_PER_TURN
                }
            }
        }

        /** Runs it again, behind the tasks that wait for a thread; returns whether that is possible. */
        private fun dispatchLast(): Boolean {
            queuedRunners.incrementAndGet()
            try {
                GlobalScope.launch {
                    yield()
                    run()
                }
                return true
            } catch (_: Throwable) {
                queuedRunners.decrementAndGet()
                return false
            }
        }
    }

    /** Ends a call. If it is [kept][isKept], the reply may wait until this thread sends those of its runner. */
    fun end(number: Long, outcome: ByteBuffer, isKept: Boolean) {
        Functions.mcpline_end_handler_call(number, outcome.array(), outcome.position().toLong(), if (isKept) 1 else 0)
        running.remove(number)
    }

    /** Ends a call without an outcome, unless it has ended. */
    fun fail(number: Long) {
        Functions.mcpline_fail_handler_call(number)
        try {
            running.remove(number)
        } catch (_: OutOfMemoryError) {
            // A call that has ended stays in memory.
        }
    }

    /** Opens the context of a call; `null` if it has ended. */
    fun context(number: Long): Call? =
        Functions.mcpline_handler_call_context(number).takeIf { it != 0L }?.let { Call(UniffiWithHandle, it) }

    /** The functions of the library, by JNA's direct mapping. */
    @Suppress("FunctionName")
    private object Functions {
        @JvmStatic
        external fun mcpline_next_handler_events(mostMilliseconds: Long, mostCalls: Long, length: Long): Long

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

/** A call of a handler. */
@OptIn(DelicateCoroutinesApi::class)
internal class HandlerCall(
    private val number: Long,
    private val handler: NumberedHandler?,
    private var arguments: ByteArray?,
) {
    /** Bytes of the arguments. */
    val size: Int = arguments?.size ?: 0

    @Volatile
    private var job: Job? = null

    @Volatile
    private var isCancelled = false

    /** The thread that begins the call, while it does: it sends the reply later. */
    private var beginning: Thread? = null
    private var opened: Call? = null

    @Volatile
    private var hasEnded = false

    /**
     * The context, which is opened when it is first used.
     *
     * @throws ClosedException The handler has ended.
     */
    val context: Call
        get() = synchronized(this) {
            opened ?: (if (hasEnded) null else HandlerCalls.context(number)?.also { opened = it })
                ?: throw ClosedException("it is closed")
        }

    /** Whether it is a call of this scope that has no coroutine yet. */
    fun isWaitingIn(scope: CoroutineScope): Boolean = job == null && !hasEnded && handler?.scope === scope

    /** Begins the call on a thread that may run code of the program. Throws nothing, because the call would not end. */
    fun begin() {
        try {
            checkNotNull(handler) { "the handler was released" }
            if (isCancelled) return end(Outcome.Text(""))
            beginning = Thread.currentThread()
            if (handler.runsOnDefault) {
                handler.scope.launch(start = CoroutineStart.UNDISPATCHED) {
                    begun(coroutineContext.job)
                    val outcome = try {
                        handler.handle(text(), this@HandlerCall)
                    } catch (error: Throwable) {
                        return@launch fail(error)
                    }
                    end(outcome)
                }
            } else {
                val job = handler.scope.launch(start = CoroutineStart.LAZY) { end(handler.handle(text(), this@HandlerCall)) }
                job.invokeOnCompletion { error -> if (error != null) fail(error) }
                begun(job)
                job.start()
            }
        } catch (error: Throwable) {
            fail(error)
        } finally {
            beginning = null
        }
    }

    private fun begun(job: Job) {
        this.job = job
        // Otherwise `cancel` has found the job.
        if (isCancelled) job.cancel()
    }

    /** Cancels the coroutine, on another thread, because its cancellation may run code of the program. */
    fun cancel() {
        isCancelled = true
        val job = job ?: return
        GlobalScope.launch { job.cancel() }
    }

    private fun text(): String {
        val text = String(checkNotNull(arguments), Charsets.UTF_8)
        arguments = null
        return text
    }

    /** Ends the call with an exception. Throws nothing, even if the exception cannot be described. */
    private fun fail(error: Throwable) {
        val outcome = try {
            handler?.failure(error) ?: Outcome.Exception(error.toString(), error.stackTraceToString())
        } catch (_: Throwable) {
            null
        }
        end(outcome)
    }

    /** Ends the call, unless it has ended; `null` is a failure that is not known. Throws nothing. */
    private fun end(outcome: Outcome?) {
        val isFirst = synchronized(this) { !hasEnded.also { hasEnded = true } }
        if (!isFirst) return
        try {
            opened?.close()
            val encoded = encoded(checkNotNull(outcome))
            // A context of the program may run other code on this thread before the runner goes on.
            val isKept = handler?.runsOnDefault == true && beginning === Thread.currentThread()
            HandlerCalls.end(number, encoded, isKept)
        } catch (_: Throwable) {
            HandlerCalls.fail(number)
        }
    }

    private fun encoded(outcome: Outcome): ByteBuffer {
        val buffer = ByteBuffer.allocate(FfiConverterTypeOutcome.allocationSize(outcome).toInt())
        FfiConverterTypeOutcome.write(outcome, buffer)
        return buffer
    }
}

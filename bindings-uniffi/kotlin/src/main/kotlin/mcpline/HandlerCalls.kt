package mcpline

import com.sun.jna.Native
import com.sun.jna.Pointer
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import kotlin.concurrent.thread
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
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

/** As many as there are threads of [Dispatchers.Default]. */
private val MAX_RUNNERS = Runtime.getRuntime().availableProcessors().coerceAtLeast(2)

/**
 * The calls of handlers (`bindings-uniffi/src/handler_calls.rs`).
 *
 * A thread takes events from the library in batches, so that the library calls no function of Kotlin, and only one thread is woken
 * for many calls. The thread runs no code of the program. A *runner*, a task of [Dispatchers.Default], begins the calls one after another;
 * if calls have waited for a tick, another runner joins. Replies of handlers that end immediately are sent together, when the runner
 * has no more calls or after a tick.
 */
@OptIn(DelicateCoroutinesApi::class)
internal object HandlerCalls {
    private val handlers = ConcurrentHashMap<Long, NumberedHandler>()
    private val lastHandler = AtomicLong()
    private val running = ConcurrentHashMap<Long, HandlerCall>()

    /** Calls that no runner has begun. */
    private val waiting = ConcurrentLinkedQueue<HandlerCall>()
    private val runners = AtomicInteger()

    /** How many calls have arrived: of the thread that takes them. */
    private var arrived = 0L

    /** How many calls a runner has begun. */
    private val begunCount = AtomicLong()

    /** How many calls have begun and not ended. */
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

    private fun takeEvents() {
        val length = ByteBuffer.allocateDirect(Long.SIZE_BYTES).order(ByteOrder.nativeOrder())
        val lengthAddress = Pointer.nativeValue(Native.getDirectBufferPointer(length))
        // Whether replies may have been kept back, or calls wait, since the last tick.
        var isBusy = false
        var lastTick = 0L
        var arrivedAtLastTick = 0L
        while (true) {
            val batch = Functions.mcpline_next_handler_events(if (isBusy) TICK_MILLIS else UNLIMITED, lengthAddress)
            val size = length.getLong(0).toInt()
            val now = System.nanoTime()
            if (size > 0 && takeBatch(Pointer(batch).getByteArray(0, size)) && !isBusy) {
                isBusy = true
                lastTick = now
                arrivedAtLastTick = arrived
            }
            if (isBusy && now - lastTick >= TICK_NANOS) {
                Functions.mcpline_send_handler_replies()
                val begun = begunCount.get()
                if (begun < arrivedAtLastTick) addRunner()
                isBusy = begun < arrived
                lastTick = now
                arrivedAtLastTick = arrived
            }
        }
    }

    /** Takes the events of a batch; returns whether calls are among them. */
    private fun takeBatch(bytes: ByteArray): Boolean {
        val events = ByteBuffer.wrap(bytes)
        var hasCalls = false
        while (events.hasRemaining()) {
            val kind = events.get().toInt()
            val number = events.getLong()
            when (kind) {
                CALL -> {
                    val handler = handlers[events.getLong()]
                    val size = events.getInt()
                    val call = HandlerCall(number, handler, bytes, events.position(), size)
                    events.position(events.position() + size)
                    running[number] = call
                    waiting += call
                    arrived++
                    hasCalls = true
                }
                CANCELLED -> running[number]?.cancel()
                RELEASED -> handlers.remove(number)
            }
        }
        if (hasCalls && runners.compareAndSet(0, 1)) dispatch()
        return hasCalls
    }

    private fun addRunner() {
        val now = runners.get()
        if (now < MAX_RUNNERS && runners.compareAndSet(now, now + 1)) dispatch()
    }

    private fun dispatch() {
        Dispatchers.Default.dispatch(EmptyCoroutineContext, Runner)
    }

    private object Runner : Runnable {
        override fun run() {
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
                begunCount.incrementAndGet()
                call.begin()
                left--
                if (left == 0) {
                    Functions.mcpline_send_handler_replies()
                    // Behind the tasks that wait for a thread.
                    GlobalScope.launch {
                        yield()
                        run()
                    }
                    return
                }
            }
        }
    }

    /** Ends a call. If it is [kept][isKept], the reply may wait until this thread sends those of its runner. */
    fun end(number: Long, outcome: ByteBuffer, isKept: Boolean) {
        running.remove(number)
        Functions.mcpline_end_handler_call(number, outcome.array(), outcome.position().toLong(), if (isKept) 1 else 0)
    }

    /** Opens the context of a call; `null` if it has ended. */
    fun context(number: Long): Call? =
        Functions.mcpline_handler_call_context(number).takeIf { it != 0L }?.let { Call(UniffiWithHandle, it) }

    /** The functions of the library, by JNA's direct mapping. */
    @Suppress("FunctionName")
    private object Functions {
        @JvmStatic
        external fun mcpline_next_handler_events(mostMilliseconds: Long, length: Long): Long

        @JvmStatic
        external fun mcpline_end_handler_call(call: Long, outcome: ByteArray, length: Long, isKept: Byte)

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
    private var batch: ByteArray?,
    private val offset: Int,
    private val length: Int,
) {
    @Volatile
    private var job: Job? = null

    @Volatile
    private var isCancelled = false

    /** The thread that begins the call, while it does: it sends the reply later. */
    private var beginning: Thread? = null
    private var opened: Call? = null
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

    /** Begins the call on a thread that may run code of the program. Throws nothing, because the call would not end. */
    fun begin() {
        try {
            checkNotNull(handler) { "the handler was released" }
            if (isCancelled) return end(Outcome.Text(""))
            beginning = Thread.currentThread()
            if (handler.runsOnDefault) {
                handler.scope.launch(start = CoroutineStart.UNDISPATCHED) {
                    begun(coroutineContext.job)
                    end(
                        try {
                            handler.handle(arguments(), this@HandlerCall)
                        } catch (error: Throwable) {
                            handler.failure(error)
                        },
                    )
                }
            } else {
                val job = handler.scope.launch(start = CoroutineStart.LAZY) {
                    end(handler.handle(arguments(), this@HandlerCall))
                }
                job.invokeOnCompletion { error -> if (error != null) end(handler.failure(error)) }
                begun(job)
                job.start()
            }
        } catch (error: Throwable) {
            end(failure(error))
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

    private fun arguments(): String {
        val text = String(checkNotNull(batch), offset, length, Charsets.UTF_8)
        // Other calls need it no longer than this one.
        batch = null
        return text
    }

    private fun end(outcome: Outcome) {
        val isFirst = synchronized(this) { !hasEnded.also { hasEnded = true } }
        if (!isFirst) return
        opened?.close()
        val encoded = try {
            encoded(outcome)
        } catch (error: Throwable) {
            encoded(failure(error))
        }
        HandlerCalls.end(number, encoded, isKept = beginning === Thread.currentThread())
    }

    private fun failure(error: Throwable): Outcome =
        handler?.failure(error) ?: Outcome.Exception(error.toString(), error.stackTraceToString())

    private fun encoded(outcome: Outcome): ByteBuffer {
        val buffer = ByteBuffer.allocate(FfiConverterTypeOutcome.allocationSize(outcome).toInt())
        FfiConverterTypeOutcome.write(outcome, buffer)
        return buffer
    }
}

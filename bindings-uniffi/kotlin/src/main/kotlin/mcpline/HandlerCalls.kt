package mcpline

import com.sun.jna.Callback
import com.sun.jna.Native
import com.sun.jna.Pointer
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import mcpline.ffi.Call
import mcpline.ffi.FfiConverterTypeOutcome
import mcpline.ffi.Handler
import mcpline.ffi.HandlerImpl
import mcpline.ffi.Outcome
import mcpline.ffi.UniffiWithHandle

/** A handler that the library calls by its number. */
internal interface NumberedHandler {
    /** Where the coroutine of a call begins. Launching it must run no code of the program. */
    val launchScope: CoroutineScope

    /** Handles a call, and closes it. */
    suspend fun handle(arguments: String, call: Call): Outcome

    /** The outcome of a call that has failed outside of [handle]. */
    fun failure(error: Throwable): Outcome
}

/**
 * The calls of handlers, by functions whose parameters are numbers and addresses (`bindings-uniffi/src/function_handler.rs`): JNA
 * passes these without an object for each.
 */
@OptIn(DelicateCoroutinesApi::class)
internal object HandlerCalls {
    private val handlers = ConcurrentHashMap<Long, NumberedHandler>()
    private val lastHandler = AtomicLong()
    private val running = ConcurrentHashMap<Long, Job>()

    /** How many calls have begun and not ended. */
    val runningCount: Int get() = running.size

    /** Gives the library its functions; returns those that it calls. */
    fun register(): List<Callback> {
        Native.register(Functions::class.java, "mcpline_uniffi")
        Functions.mcpline_set_handler_functions(CallFunction, CancelFunction, ReleaseFunction)
        return listOf(CallFunction, CancelFunction, ReleaseFunction)
    }

    /** Gives a handler a number until the library releases it, and passes it on as one of the library. */
    fun pass(handler: NumberedHandler, add: (Handler) -> Unit) {
        val number = lastHandler.incrementAndGet()
        handlers[number] = handler
        HandlerImpl(UniffiWithHandle, Functions.mcpline_function_handler(number)).use(add)
    }

    /** Whether the library may call a handler. */
    fun isRegistered(handler: NumberedHandler): Boolean = handlers.containsValue(handler)

    /** On the I/O thread. Nothing may be thrown, because the call would not end. */
    private fun begin(number: Long, context: Long, arguments: Pointer, length: Long, handlerNumber: Long) {
        val call = Call(UniffiWithHandle, context)
        val handler = handlers[handlerNumber]
        try {
            checkNotNull(handler) { "the handler was released" }
            val text = String(arguments.getByteArray(0, length.toInt()), Charsets.UTF_8)
            val job = handler.launchScope.launch(start = CoroutineStart.LAZY) { end(number, handler.handle(text, call)) }
            running[number] = job
            job.invokeOnCompletion { error ->
                // Removed before: it was cancelled, and nothing waits for the outcome.
                if (running.remove(number) != null && error != null) end(number, handler.failure(error))
                call.close()
            }
            job.start()
        } catch (error: Throwable) {
            running.remove(number)
            call.close()
            end(number, handler?.failure(error) ?: Outcome.Exception(error.toString(), error.stackTraceToString()))
        }
    }

    /** On the I/O thread, which must not run code of the program, as the cancellation of its coroutine would. */
    private fun cancel(number: Long) {
        val job = running.remove(number) ?: return
        GlobalScope.launch { job.cancel() }
    }

    private fun end(number: Long, outcome: Outcome) {
        val buffer = ByteBuffer.allocate(FfiConverterTypeOutcome.allocationSize(outcome).toInt())
        FfiConverterTypeOutcome.write(outcome, buffer)
        Functions.mcpline_end_handler_call(number, buffer.array(), buffer.position().toLong())
    }

    internal interface CallCallback : Callback {
        fun callback(handler: Long, call: Long, context: Long, arguments: Pointer, length: Long)
    }

    internal interface NumberCallback : Callback {
        fun callback(number: Long)
    }

    private object CallFunction : CallCallback {
        override fun callback(handler: Long, call: Long, context: Long, arguments: Pointer, length: Long): Unit =
            begin(call, context, arguments, length, handler)
    }

    private object CancelFunction : NumberCallback {
        override fun callback(number: Long): Unit = cancel(number)
    }

    private object ReleaseFunction : NumberCallback {
        override fun callback(number: Long) {
            handlers.remove(number)
        }
    }

    /** The functions of the library, by JNA's direct mapping. */
    @Suppress("FunctionName")
    private object Functions {
        @JvmStatic
        external fun mcpline_set_handler_functions(call: CallCallback, cancel: NumberCallback, release: NumberCallback)

        @JvmStatic
        external fun mcpline_function_handler(number: Long): Long

        @JvmStatic
        external fun mcpline_end_handler_call(call: Long, outcome: ByteArray, length: Long)
    }
}

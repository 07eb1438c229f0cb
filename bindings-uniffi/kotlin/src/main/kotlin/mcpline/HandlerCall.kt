package mcpline

import com.sun.jna.Pointer
import java.nio.ByteBuffer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import mcpline.ffi.Call
import mcpline.ffi.FfiConverterTypeOutcome
import mcpline.ffi.Outcome

/** A call of a handler. */
@OptIn(DelicateCoroutinesApi::class)
internal class HandlerCall(val number: Long) {
    /** The queue that it is taken from; `null` if no call was taken. */
    @Volatile
    var queue: HandlerQueue? = null

    /** Its handler; `null` if it has been released. */
    var handler: RegisteredHandler? = null
        private set

    /** Where the library has the arguments until the call ends. */
    private var address = 0L
    private var length = 0

    @Volatile
    private var job: Job? = null

    @Volatile
    private var isCancelled = false

    /** The runner that begins the call, and its thread, while it does: it sends the reply later. */
    private var runner: HandlerQueue.Runner? = null
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

    /** Whether it is a call of this queue that has no coroutine yet. */
    fun isBeginningIn(queue: HandlerQueue): Boolean = this.queue === queue && job == null && !hasEnded

    /** Sets what the library knows of the call. */
    fun taken(handler: RegisteredHandler?, address: Long, length: Int) {
        this.handler = handler
        this.address = address
        this.length = length
    }

    /** Begins the call on a thread of its coroutine. Throws nothing, because the call would not end. */
    fun begin(runner: HandlerQueue.Runner) {
        try {
            val handler = checkNotNull(handler) { "the handler was released" }.handler
            if (isCancelled) return end(Outcome.Text(""))
            this.runner = runner
            beginning = Thread.currentThread()
            checkNotNull(queue).scope.launch(start = CoroutineStart.UNDISPATCHED) {
                begun(coroutineContext.job)
                val outcome = try {
                    // The program may have cancelled the scope.
                    ensureActive()
                    handler.handle(text(), this@HandlerCall)
                } catch (error: Throwable) {
                    return@launch fail(error)
                }
                end(outcome)
            }
            if (job == null) fail(CancellationException("the coroutines of the server are cancelled"))
        } catch (error: Throwable) {
            fail(error)
        } finally {
            beginning = null
            this.runner = null
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

    private fun text(): String = String(Pointer(address).getByteArray(0, length), Charsets.UTF_8)

    /** Ends the call with an exception. Throws nothing, even if the exception cannot be described. */
    fun fail(error: Throwable) {
        val outcome = try {
            handler?.handler?.failure(error) ?: Outcome.Exception(error.toString(), error.stackTraceToString())
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
            val isKept = beginning === Thread.currentThread() && runner?.keepsReply() == true
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

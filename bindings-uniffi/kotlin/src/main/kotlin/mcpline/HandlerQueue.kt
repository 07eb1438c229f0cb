package mcpline

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.atomic.AtomicReference
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.yield

/** A handler that has had its thread for longer than this occupies it: other runners take the calls that wait. */
internal const val OCCUPIED_NANOS = 50_000L

/** After this many calls a runner lets other tasks of its thread run. */
private const val CALLS_PER_TURN = 64

/**
 * How many runners of a queue may wait for threads of the program's context. Each takes a call when it gets a thread, so that more
 * of them would not change the order of calls, and make the program's own tasks wait.
 */
private const val MAX_QUEUED_RUNNERS = 16

/** [HandlerQueue.Runner.entered] of a runner that is in no handler. */
private const val OUTSIDE = Long.MIN_VALUE

/**
 * The calls of a server's handlers that have not begun. They are in the library, where clients take turns.
 *
 * A *runner*, a task of the server's context, takes one call after another, and runs each handler up to its first suspension. The
 * *leader* is the runner that is responsible for the calls that wait: there is one while there are any. Before a handler that is
 * expected to occupy its thread, and when a handler is seen to do so, another runner becomes the leader. A runner that is not the
 * leader ends with its turn.
 */
@OptIn(DelicateCoroutinesApi::class)
internal class HandlerQueue(
    private val number: Long,
    /** The scope of the coroutines of calls. */
    val scope: CoroutineScope,
) {
    private val runnerContext = scope.coroutineContext.minusKey(Job)

    /** Whether coroutines of [scope] may begin on a thread of [Dispatchers.Default]. */
    private val runsOnDefault =
        scope.coroutineContext[ContinuationInterceptor].let { it === Dispatchers.Default || it === Dispatchers.Unconfined }
    private val leader = AtomicReference<Runner?>()

    /** How many runners wait for a thread of the program's context. */
    private val queuedRunners = AtomicInteger()

    /** False if no call waits: cleared before a runner takes a call, set when one arrives and when others are left. */
    @Volatile
    private var mayHaveCalls = false

    /** How many calls were left when the last one was taken. */
    @Volatile
    private var left = 0L

    /** How many calls were taken. */
    private val taken = AtomicLong()
    private var takenAtTick = 0L
    private var leftAtTick = 0L

    /** Whether it needs [ticks][tick]: not while the leader waits for a thread. */
    val isBusy: Boolean get() = leader.get()?.isRunning ?: mayHaveCalls

    /** Whether calls wait, or one was taken and has no coroutine yet. */
    fun isWaiting(): Boolean = mayHaveCalls || HandlerCalls.isBeginningIn(this)

    /** Calls have arrived. For the thread of events. */
    fun arrived(now: Long) {
        mayHaveCalls = true
        val runner = leader.get()
        if (runner == null || runner.isOccupied(now)) replace(runner)
    }

    /** Looks whether the leader makes calls wait. For the thread of events. */
    fun tick(now: Long) {
        val runner = leader.get()
        val takenNow = taken.get()
        val isSlow = leftAtTick > 0 && takenNow - takenAtTick < leftAtTick
        if (runner == null || runner.isOccupied(now) || (isSlow && runner.isRunning)) replace(runner)
        takenAtTick = takenNow
        leftAtTick = if (mayHaveCalls) left else 0
    }

    /** Makes another runner the leader, if calls wait. */
    private fun replace(runner: Runner?) {
        if (runner == null || leader.compareAndSet(runner, null)) lead()
    }

    /** Starts a leader, if calls wait and there is none. */
    private fun lead(isAfterOccupied: Boolean = false) {
        try {
            if (!mayHaveCalls || leader.get() != null) return
            val runner = Runner(isAfterOccupied)
            if (leader.compareAndSet(null, runner)) start(runner)
        } catch (_: OutOfMemoryError) {
            // The next tick tries it again.
            HandlerCalls.ensureTicks()
        }
    }

    private fun start(runner: Runner) {
        try {
            // A dispatcher of the program may run its tasks immediately, which would be a recursion on the thread of a runner.
            Dispatchers.Default.dispatch(EmptyCoroutineContext, if (runsOnDefault) runner else Runnable { launchRunners(runner) })
        } catch (_: Throwable) {
            // Without memory for another thread the runner is queued nevertheless: then it is not the leader.
            leader.compareAndSet(runner, null)
            HandlerCalls.ensureTicks()
        }
    }

    /** Launches a runner in the program's context, and others for the calls that wait if handlers occupy their threads. */
    private fun launchRunners(runner: Runner) {
        if (!launch(runner) || !runner.isAfterOccupied) return
        var more = left - 1
        while (more-- > 0 && mayHaveCalls && queuedRunners.get() < MAX_QUEUED_RUNNERS) {
            val next = try {
                Runner(true)
            } catch (_: OutOfMemoryError) {
                return
            }
            if (!launch(next)) return
        }
    }

    /** Launches a runner in the program's context. If that fails, a call fails instead. Returns whether it was launched. */
    private fun launch(runner: Runner): Boolean {
        queuedRunners.incrementAndGet()
        try {
            // If an executor rejects it, it is cancelled and runs elsewhere.
            GlobalScope.async(runnerContext, CoroutineStart.ATOMIC) {
                runner.hasThread()
                try {
                    coroutineContext.ensureActive()
                } catch (error: Throwable) {
                    return@async refuse(runner, error)
                }
                runner.run()
            }
            return true
        } catch (error: Throwable) {
            runner.hasThread()
            refuse(runner, error)
            return false
        }
    }

    /** Fails a call, because a runner has no thread of the program's context. */
    private fun refuse(runner: Runner, error: Throwable) {
        try {
            HandlerCalls.withTakenCall { taken -> take(taken)?.fail(error) }
        } catch (_: Throwable) {
            mayHaveCalls = true
        }
        leader.compareAndSet(runner, null)
        lead()
    }

    /** Takes a call; `null` if none waits. */
    private fun take(memory: TakenCall): HandlerCall? {
        // It is counted as beginning before it does not wait any more.
        val call = memory.prepare(this)
        mayHaveCalls = false
        val isTaken = memory.take(number)
        left = memory.left
        if (left > 0) mayHaveCalls = true
        if (!isTaken) return null
        taken.incrementAndGet()
        return call
    }

    /** Takes calls and runs their handlers. */
    internal inner class Runner(
        /** Whether a handler occupies the thread of the leader before it. */
        val isAfterOccupied: Boolean,
    ) : Runnable {
        private val waitsForThread = AtomicBoolean(true)

        /** Whether it has a thread. */
        @Volatile
        var isRunning = false
            private set

        /** When it entered the handler that it is in. */
        @Volatile
        private var entered = OUTSIDE

        /** Whether replies wait until it sends them. */
        private var hasReplies = false

        /** No longer counts it among those that wait for a thread of the program's context. */
        fun hasThread() {
            if (waitsForThread.compareAndSet(true, false)) queuedRunners.decrementAndGet()
        }

        /** Whether it is in a handler that occupies its thread. */
        fun isOccupied(now: Long): Boolean {
            val entered = entered
            return entered != OUTSIDE && now - entered > OCCUPIED_NANOS
        }

        /** Whether the reply of the handler that it is in may wait until it sends it. If it does not, a tick does. */
        fun keepsReply(): Boolean = (leader.get() === this).also { if (it) hasReplies = true }

        override fun run() {
            isRunning = true
            HandlerCalls.ensureTicks()
            try {
                HandlerCalls.withTakenCall { memory ->
                    do {
                        val goesOn = takeTurn(memory)
                    } while (goesOn)
                }
            } catch (_: Throwable) {
                // Without memory, calls may be left.
                mayHaveCalls = true
                leader.compareAndSet(this, null)
                HandlerCalls.ensureTicks()
            }
            isRunning = false
        }

        /** Runs handlers; returns whether another turn follows immediately. */
        private fun takeTurn(memory: TakenCall): Boolean {
            var calls = 0
            do {
                val call = take(memory) ?: return leadsAgain()
                val handler = call.handler
                if (handler == null || !handler.isExpectedToOccupy) becomeLeader() else handOver()
                val begin = System.nanoTime()
                entered = begin
                call.begin(this)
                entered = OUTSIDE
                // Executors clear it between tasks: a handler may leave its thread interrupted.
                Thread.interrupted()
                val nanos = System.nanoTime() - begin
                handler?.ran(nanos)
                if (leader.get() !== this) sendReplies()
                calls++
            } while (calls < CALLS_PER_TURN && nanos <= OCCUPIED_NANOS)
            sendReplies()
            return !endTurn()
        }

        /** Makes it the leader if there is none. */
        private fun becomeLeader(): Boolean {
            if (leader.get() != null || !leader.compareAndSet(null, this)) return false
            HandlerCalls.ensureTicks()
            return true
        }

        /** Makes another runner responsible for the calls that wait. */
        private fun handOver() {
            sendReplies()
            leader.compareAndSet(this, null)
            lead(isAfterOccupied = true)
        }

        /** Gives up, because it found no call; returns whether calls have arrived meanwhile and it is the leader again. */
        private fun leadsAgain(): Boolean {
            sendReplies()
            leader.compareAndSet(this, null)
            return mayHaveCalls && becomeLeader()
        }

        /** Lets a runner behind the tasks that wait for a thread go on, unless another one does; returns whether this one ends. */
        private fun endTurn(): Boolean {
            val current = leader.get()
            if (current != null && current !== this) return true
            if (!mayHaveCalls || current == null) return false
            val next = Runner(false)
            if (!leader.compareAndSet(this, next)) return true
            if (!runsOnDefault) {
                start(next)
                return true
            }
            try {
                GlobalScope.launch {
                    yield()
                    next.run()
                }
            } catch (_: Throwable) {
                // The next tick starts one.
                leader.compareAndSet(next, null)
                HandlerCalls.ensureTicks()
            }
            return true
        }

        private fun sendReplies() {
            if (!hasReplies) return
            hasReplies = false
            HandlerCalls.sendReplies()
        }
    }
}

package mcpline

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.RejectedExecutionException
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.atomic.AtomicReference
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineExceptionHandler
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

/**
 * A leader that waits for a thread for longer is replaced, because its task may be lost: executors drop tasks when they are shut
 * down or full. The next one may wait for twice as long, because a context that is busy keeps the tasks of all of them.
 */
internal const val THREAD_WAIT_NANOS = 1_000_000_000L

/** After this many leaders in a row that got no thread, the calls that wait fail: after a minute. */
internal const val MAX_LATE_LEADERS = 6

/** Ticks until a leader is started again after a context had no thread for a runner, while other runners take calls. */
private const val REFUSED_TICKS = 10

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

    /** Runners that wait for a thread of the program's context. */
    private val queuedRunners = ConcurrentHashMap.newKeySet<Runner>()

    /** When the last of the runners was created that had a thread of the program's context. */
    @Volatile
    private var lastStarted = System.nanoTime()

    /** The class of the threads of [Dispatchers.Default]. */
    @Volatile
    private var threadsOfCoroutines: Class<out Thread>? = null

    /** How many runners have a thread. */
    private val runningRunners = AtomicInteger()

    /** How many leaders were replaced since a runner had a thread. A miscount changes how long the next one may wait. */
    @Volatile
    private var lateLeaders = 0

    /** How many ticks pass until a leader is started, if runners have threads. A miscount changes the time only. */
    @Volatile
    private var pausedTicks = 0

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

    /** Whether the leader waits for a thread: a tick is needed when it has waited for too long. */
    val isWaitingForThread: Boolean get() = leader.get()?.isRunning == false

    /** Whether calls wait, or one was taken and has no coroutine yet. */
    fun isWaiting(): Boolean = mayHaveCalls || HandlerCalls.isBeginningIn(this)

    /** Calls have arrived. For the thread of events. */
    fun arrived(now: Long) {
        mayHaveCalls = true
        val runner = leader.get()
        if (runner == null) lead() else if (runner.isOccupied(now)) replaceOccupied(runner)
    }

    /** Looks whether the leader makes calls wait. For the thread of events. */
    fun tick(now: Long) {
        if (pausedTicks > 0) pausedTicks--
        forgetLost()
        val runner = leader.get()
        val takenNow = taken.get()
        val isSlow = leftAtTick > 0 && takenNow - takenAtTick < leftAtTick
        when {
            runner == null -> lead()
            runner.isOccupied(now) -> replaceOccupied(runner)
            runner.isRunning -> if (isSlow) replace(runner)
            now - runner.created > THREAD_WAIT_NANOS shl lateLeaders.coerceAtMost(MAX_LATE_LEADERS - 1) -> replaceLate(runner)
        }
        takenAtTick = takenNow
        leftAtTick = if (mayHaveCalls) left else 0
    }

    /** Makes another runner the leader, if calls wait. */
    private fun replace(runner: Runner, isAfterOccupied: Boolean = false) {
        if (leader.compareAndSet(runner, null)) lead(isAfterOccupied)
    }

    /** Replaces a leader that is in a handler that occupies its thread unexpectedly. */
    private fun replaceOccupied(runner: Runner) {
        runner.handler?.occupies()
        replace(runner, isAfterOccupied = true)
    }

    /** Replaces a leader that has waited for a thread for too long. If it gets one later, it runs without being the leader. */
    private fun replaceLate(runner: Runner) {
        if (lateLeaders < MAX_LATE_LEADERS) lateLeaders++
        val isLast = lateLeaders == MAX_LATE_LEADERS && runner in queuedRunners && runningRunners.get() == 0
        if (!isLast) return replace(runner)
        if (!leader.compareAndSet(runner, null)) return
        try {
            Dispatchers.Default.dispatch(EmptyCoroutineContext, Runnable { failWaiting() })
        } catch (_: Throwable) {
            // Without memory for another thread it is queued nevertheless. Otherwise another leader is late later.
        }
    }

    /** Fails the calls that wait, because the program's context runs no tasks. */
    private fun failWaiting() {
        val error = RejectedExecutionException("the coroutine context of the server runs no tasks: no call can begin")
        try {
            HandlerCalls.withTakenCall { memory ->
                while (true) (take(memory) ?: break).fail(error)
            }
        } catch (_: Throwable) {
            mayHaveCalls = true
            HandlerCalls.ensureTicks()
        }
    }

    /** Forgets runners that the program's context has lost: those that were created long after them had threads. */
    private fun forgetLost() {
        if (!queuedRunners.isEmpty()) queuedRunners.removeIf { lastStarted - it.created > THREAD_WAIT_NANOS }
    }

    /** Starts a leader, if calls wait and there is none. */
    private fun lead(isAfterOccupied: Boolean = false) {
        try {
            if (!mayHaveCalls || leader.get() != null) return
            if (pausedTicks > 0 && runningRunners.get() > 0) return HandlerCalls.ensureTicks()
            val runner = Runner(isAfterOccupied)
            if (!leader.compareAndSet(null, runner)) return
            // One that gets no thread has to be replaced.
            HandlerCalls.ensureTicks()
            start(runner)
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
        threadsOfCoroutines = Thread.currentThread().javaClass
        var more = left - 1 - queuedRunners.size
        if (!launch(runner) || !runner.isAfterOccupied) return
        while (more-- > 0 && mayHaveCalls && queuedRunners.size < left.coerceAtMost(MAX_QUEUED_RUNNERS.toLong())) {
            val next = try {
                Runner(true)
            } catch (_: OutOfMemoryError) {
                return
            }
            if (!launch(next)) return
        }
    }

    /** Launches a runner in the program's context. Returns whether the context has not refused it immediately. */
    private fun launch(runner: Runner): Boolean {
        try {
            queuedRunners += runner
            // If an executor rejects it, it is cancelled and runs elsewhere.
            GlobalScope.async(runnerContext + runner, CoroutineStart.ATOMIC) {
                runner.leaveQueue()
                try {
                    coroutineContext.ensureActive()
                } catch (error: Throwable) {
                    return@async refuse(runner, error)
                }
                runner.hasThread()
                runner.run()
            }
            return true
        } catch (error: Throwable) {
            if (runner.leaveQueue()) refuse(runner, error)
            return false
        }
    }

    /** Drops a runner for which the program's context has no thread. If there is no other one, a call fails. */
    private fun refuse(runner: Runner, error: Throwable) {
        if (hasRunners()) {
            pausedTicks = REFUSED_TICKS
            leader.compareAndSet(runner, null)
            HandlerCalls.ensureTicks()
            return
        }
        try {
            HandlerCalls.withTakenCall { taken -> take(taken)?.fail(error) }
        } catch (_: Throwable) {
            // Without memory, the next tick tries it again.
            mayHaveCalls = true
            leader.compareAndSet(runner, null)
            return HandlerCalls.ensureTicks()
        }
        leader.compareAndSet(runner, null)
        lead()
    }

    /** Whether a runner has a thread, or waits for one and is not lost. */
    private fun hasRunners(): Boolean {
        if (runningRunners.get() > 0) return true
        val now = System.nanoTime()
        return queuedRunners.any { now - it.created <= THREAD_WAIT_NANOS }
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
    ) : Runnable, CoroutineExceptionHandler {
        override val key: CoroutineContext.Key<*> get() = CoroutineExceptionHandler

        /** When it was created, in the nanoseconds of the JVM. */
        val created = System.nanoTime()

        /** Whether it was neither refused nor has a thread. */
        private val isInQueue = AtomicBoolean(true)

        /** Whether it has a thread. */
        @Volatile
        var isRunning = false
            private set

        /** The handler that it is in, or was in. Other threads read it after [entered], which is written later. */
        var handler: RegisteredHandler? = null
            private set

        /** When it entered the handler that it is in. */
        @Volatile
        private var entered = OUTSIDE

        /** Whether replies wait until it sends them. */
        private var hasReplies = false

        /** No longer counts it among those that wait for a thread of the program's context; returns whether it did. */
        fun leaveQueue(): Boolean {
            if (!isInQueue.compareAndSet(true, false)) return false
            queuedRunners -= this
            return true
        }

        /** It has a thread of the program's context. */
        fun hasThread() {
            if (created > lastStarted) lastStarted = created
        }

        /** The program's context cannot run coroutines on the thread that it has: a `ThreadContextElement` may have thrown. */
        override fun handleException(context: CoroutineContext, exception: Throwable) {
            if (leaveQueue()) return refuse(this, exception)
            // After its end.
            val handler = runnerContext[CoroutineExceptionHandler]
            if (handler != null) return handler.handleException(context, exception)
            val thread = Thread.currentThread()
            thread.uncaughtExceptionHandler.uncaughtException(thread, exception)
        }

        /** Whether it is in a handler that occupies its thread. */
        fun isOccupied(now: Long): Boolean {
            val entered = entered
            return entered != OUTSIDE && now - entered > OCCUPIED_NANOS
        }

        /** Whether the reply of the handler that it is in may wait until it sends it. If it does not, a tick does. */
        fun keepsReply(): Boolean = (leader.get() === this).also { if (it) hasReplies = true }

        override fun run() {
            runningRunners.incrementAndGet()
            isRunning = true
            if (lateLeaders != 0) lateLeaders = 0
            try {
                HandlerCalls.ensureTicks()
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
            runningRunners.decrementAndGet()
        }

        /** Runs handlers; returns whether another turn follows immediately. */
        private fun takeTurn(memory: TakenCall): Boolean {
            var calls = 0
            var isInterrupted: Boolean
            do {
                val call = take(memory) ?: return leadsAgain()
                val handler = call.handler
                if (handler == null || !handler.isExpectedToOccupy) becomeLeader() else handOver()
                this.handler = handler
                val begin = System.nanoTime()
                entered = begin
                call.begin(this)
                entered = OUTSIDE
                val nanos = System.nanoTime() - begin
                isInterrupted = Thread.currentThread().isInterrupted && !clearInterrupt()
                handler?.ran(nanos)
                if (leader.get() !== this) sendReplies()
                calls++
            } while (calls < CALLS_PER_TURN && nanos <= OCCUPIED_NANOS && !isInterrupted)
            sendReplies()
            if (!isInterrupted) return !endTurn()
            replaceInterrupted()
            return false
        }

        /**
         * Clears the interrupt that a handler left behind, except on threads of the program, for which it may be meant. Returns
         * whether it was cleared.
         */
        private fun clearInterrupt(): Boolean {
            // Threads of Dispatchers.IO and of its views are of the same class.
            val kind = Thread.currentThread().javaClass
            val isOfCoroutines = runsOnDefault || (kind !== Thread::class.java && kind === threadsOfCoroutines)
            if (isOfCoroutines) Thread.interrupted()
            return isOfCoroutines
        }

        /** Leaves its thread to the executor, which clears the interrupt or ends. Another runner takes the calls that wait. */
        private fun replaceInterrupted() {
            leader.compareAndSet(this, null)
            lead()
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
                    try {
                        yield()
                    } catch (_: Throwable) {
                        return@launch next.giveUp()
                    }
                    next.run()
                }
            } catch (_: Throwable) {
                next.giveUp()
            }
            return true
        }

        /** The next tick starts another leader. */
        private fun giveUp() {
            leader.compareAndSet(this, null)
            HandlerCalls.ensureTicks()
        }

        private fun sendReplies() {
            if (!hasReplies) return
            hasReplies = false
            HandlerCalls.sendReplies()
        }
    }
}

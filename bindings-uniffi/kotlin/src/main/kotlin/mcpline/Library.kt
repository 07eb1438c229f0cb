package mcpline

import com.sun.jna.Callback
import com.sun.jna.CallbackThreadInitializer
import com.sun.jna.Native
import mcpline.ffi.Log
import mcpline.ffi.closeClients
import mcpline.ffi.libraryVersion
import mcpline.ffi.setLog
import mcpline.ffi.uniffiCallbackInterfaceChannel
import mcpline.ffi.uniffiCallbackInterfaceClientTransport
import mcpline.ffi.uniffiCallbackInterfaceHost
import mcpline.ffi.uniffiCallbackInterfaceLog
import mcpline.ffi.uniffiForeignFutureDroppedCallbackImpl
import mcpline.ffi.uniffiRustFutureContinuationCallbackImpl

/** The native library. */
internal object Library {
    /** Its version. */
    val version: String

    init {
        // Otherwise JNA attaches the I/O thread to the JVM for each call, and detaches it after.
        val keepAttached = { name: String, callbacks: List<Callback> ->
            callbacks.forEach { Native.setCallbackThreadInitializer(it, CallbackThreadInitializer(true, false, name)) }
        }
        keepAttached(
            "mcpline-io",
            listOf(
                uniffiRustFutureContinuationCallbackImpl,
                uniffiForeignFutureDroppedCallbackImpl,
                uniffiCallbackInterfaceHost.inputRequest,
                uniffiCallbackInterfaceHost.events,
                uniffiCallbackInterfaceHost.uniffiFree,
                uniffiCallbackInterfaceChannel.send,
                uniffiCallbackInterfaceChannel.receive,
                uniffiCallbackInterfaceChannel.end,
                uniffiCallbackInterfaceChannel.uniffiFree,
                uniffiCallbackInterfaceClientTransport.openChannel,
            ),
        )
        keepAttached("mcpline-log", listOf(uniffiCallbackInterfaceLog.warn))
        version = libraryVersion()
        HandlerCalls.start()
        setLog(SystemLog)
        Runtime.getRuntime().addShutdownHook(Thread(::close, "mcpline-close"))
    }

    private fun close() {
        try {
            // Before the clients, which handlers may use.
            RunningServers.close()
        } finally {
            // No program that a client has started outlives this one.
            closeClients()
        }
    }

    /** Loads the library, unless it is loaded. */
    fun load(): Unit = Unit
}

/** Writes warnings to the log of the platform, as logger `mcpline`: by default to stderr. */
private object SystemLog : Log {
    private val warn: (String) -> Unit = try {
        val logger = System.getLogger("mcpline")
        ({ text -> logger.log(System.Logger.Level.WARNING, text) })
    } catch (_: LinkageError) {
        // Android has no `System.Logger`.
        val logger = java.util.logging.Logger.getLogger("mcpline")
        ({ text -> logger.warning(text) })
    }

    override fun warn(text: String): Unit = warn.invoke(text)
}

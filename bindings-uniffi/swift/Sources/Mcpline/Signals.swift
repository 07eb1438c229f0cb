import Dispatch
import Foundation

extension Server {
    /// Closes the server on SIGINT or SIGTERM, so that ``run()``, ``runHTTP(port:host:settings:onReady:)`` and
    /// ``runUnix(_:settings:onReady:)`` return. If the signal comes earlier, such as while the program opens its database, they
    /// return at once when they are called. A second signal ends the program immediately.
    ///
    /// Use it in programs whose only task is to serve: the signals stay handled until the program ends. One signal closes all
    /// servers for which this was called, and other `DispatchSource`s for it still get it. On Linux, Dispatch replaces a handler that
    /// was set with `signal` or `sigaction`.
    public func closeOnSignals() {
        _ = isHandlingSignals
        let isLate = signalState.withLock { state in
            state.servers = state.servers.filter { $0.server != nil && $0.server !== self }
            state.servers.append(WeakServer(server: self))
            return state.hasReceived
        }
        if isLate { closeForGood() }
    }
}

private struct WeakServer {
    weak var server: Server?
}

/// What signals close, in this process.
private struct SignalState {
    var servers: [WeakServer] = []
    /// Whether one of the signals has come.
    var hasReceived = false
}

private let signalState = Locked(SignalState())

/// Handles the signals in this process, from its first use on.
private let isHandlingSignals: Void = {
    // A queue of its own: a program may wait for this in a task.
    let queue = DispatchQueue(label: "mcpline.signals")
    for number in [SIGINT, SIGTERM] {
        #if canImport(Darwin)
            keepRunning(on: number)
        #endif
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler {
            // Keeps the source.
            withExtendedLifetime(source) {}
            closeServers(on: number)
        }
        // Until then, nothing handles the signal.
        let isRegistered = DispatchSemaphore(value: 0)
        source.setRegistrationHandler { isRegistered.signal() }
        source.resume()
        isRegistered.wait()
    }
}()

#if canImport(Darwin)
    /// Replaces the default action of a signal, which ends the program. Dispatch does so itself on Linux, with a handler that it needs.
    private func keepRunning(on number: Int32) {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0, action.__sigaction_u.__sa_handler == nil else { return }
        // Programs that this one starts do not inherit a function.
        signal(number) { _ in }
    }
#endif

private func closeServers(on number: Int32) {
    let (isFirst, servers) = signalState.withLock { state in
        defer { state.hasReceived = true }
        return (!state.hasReceived, state.servers.compactMap(\.server))
    }
    // The status that shells give to programs that a signal has ended.
    guard isFirst else { exit(128 + number) }
    for server in servers { server.closeForGood() }
}

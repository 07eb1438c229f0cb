import Dispatch
import Foundation

extension Server {
    /// Closes the server on SIGINT or SIGTERM, so that ``run()``, ``runHTTP(port:host:settings:onReady:)`` and
    /// ``runUnix(_:settings:onReady:)`` return. A second signal ends the program immediately.
    ///
    /// Use it in programs whose only task is to serve: it keeps the server alive, and the signals handled, until the program ends.
    public func closeOnSignals() {
        let isFirst = Locked(true)
        for number in [SIGINT, SIGTERM] {
            // Otherwise the signal ends the program. Programs that it starts do not inherit a function.
            signal(number) { _ in }
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                // Keeps the source.
                withExtendedLifetime(source) {}
                let closes = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                // The status that shells give to programs that a signal has ended.
                if closes { self.close() } else { exit(128 + number) }
            }
            source.resume()
        }
    }
}

import Dispatch
import Foundation

extension Server {
    /// On SIGINT or SIGTERM, closes the server, so that ``run()`` and the like return. For programs that only serve: the server
    /// lives as long as the program. A second signal ends the program immediately.
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

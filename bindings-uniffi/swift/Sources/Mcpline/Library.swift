import Foundation
internal import McplineNative

#if canImport(os)
    import os
#endif

/// The native library.
enum Library {
    /// Its version.
    static let version: String = {
        setLog(log: SystemLog())
        // No program that a client has started outlives this one.
        atexit { closeClients() }
        return libraryVersion()
    }()

    /// Prepares the library, unless that is done.
    static func load() { _ = version }
}

/// Writes warnings to the log of the platform: the unified log of Apple platforms, as subsystem `mcpline`; stderr elsewhere.
private final class SystemLog: Log {
    func warn(text: String) {
        #if canImport(os)
            Logger(subsystem: "mcpline", category: "core").warning("\(text, privacy: .public)")
        #else
            writeToStandardError("mcpline: \(text)")
        #endif
    }
}

func writeToStandardError(_ line: String) {
    // Other functions end the program if stderr is closed.
    try? FileHandle.standardError.write(contentsOf: Data("\(line)\n".utf8))
}

/// A value behind a lock.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    func withLock<Result>(_ use: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try use(&value)
    }
}

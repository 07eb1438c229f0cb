// Tools that report progress, wait and are cancelled.

import Mcpline

/// Named doors, each of which opens once and stays open. Calls can wait for a door before or after it opens.
actor Doors {
    private var opened: Set<String> = []
    private var waiting: [String: [AsyncStream<Never>.Continuation]] = [:]

    func open(_ name: String) {
        opened.insert(name)
        for continuation in waiting.removeValue(forKey: name) ?? [] { continuation.finish() }
    }

    /// Returns when the door is open, or throws when the task is cancelled.
    nonisolated func pass(_ name: String) async throws {
        for await _ in await door(name) {}
        try Task.checkCancellation()
    }

    /// Returns a stream that ends when the door opens.
    private func door(_ name: String) -> AsyncStream<Never> {
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        if opened.contains(name) { continuation.finish() } else { waiting[name, default: []].append(continuation) }
        return stream
    }
}

let gates = Doors()
private let cancellations = Doors()

/// Waits until the call is cancelled, and records its label.
func untilCancelled(_ label: String, _ call: CallContext) async throws {
    call.progress(0, total: 1, message: "waiting")
    do {
        while true { try await Task.sleep(for: .seconds(3600)) }
    } catch {
        await cancellations.open(label)
        throw error
    }
}

extension Server {
    func addRunningTools() throws {
        try tool("test_tool_with_logging", description: "Logs while it runs") { call in
            call.log(.info, "Tool execution started")
            try await Task.sleep(for: .milliseconds(50))
            call.log(.info, "Tool processing data")
            try await Task.sleep(for: .milliseconds(50))
            call.log(.info, "Tool execution completed")
            return "Tool with logging executed successfully"
        }
        try tool("test_log_levels", description: "Logs once at each level") { call in
            for level in LogLevel.allCases { call.log(level, "message at \(level.rawValue)", logger: "fixture") }
            return "logged"
        }
        try tool("test_logging_tool", description: "Logs once") { call in
            call.log(.info, "Logging tool called")
            return "logged"
        }
        try tool("test_tool_with_progress", description: "Reports progress") { call in
            for step in [0, 50, 100] {
                call.progress(Double(step), total: 100, message: "Completed step \(step) of 100")
                try await Task.sleep(for: .milliseconds(50))
            }
            return "progress done"
        }
        try tool("test_reconnection", description: "Closes its stream and goes on") { call in
            call.closeStream()
            try await Task.sleep(for: .milliseconds(100))
            return "reconnected"
        }
        try tool("test_gate", description: "Waits until a gate is open") { (gate: Name, call) in
            call.progress(0, total: 1, message: "waiting")
            try await gates.pass(gate.name)
            return "gate \(gate.name) passed"
        }
        try tool("test_open_gate", description: "Opens a gate for good") { (gate: Name, _) in
            await gates.open(gate.name)
            return "gate \(gate.name) opened"
        }
        try tool("test_cancellation", description: "Waits until it is cancelled") { (waiting: Label, call) -> String? in
            try await untilCancelled(waiting.label, call)
            return nil
        }
        try tool("test_cancellation_status", description: "Waits until another tool was cancelled") { (other: Label, _) in
            try await cancellations.pass(other.label)
            return "\(other.label) was cancelled"
        }
    }
}

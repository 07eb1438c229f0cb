import Foundation
import XCTest

@testable import Mcpline

/// A value that is set once, and waited for.
final class Promise<Value: Sendable>: Sendable {
    private let state = Locked<(value: Value?, waiting: [CheckedContinuation<Value, Never>])>((nil, []))

    func fulfil(_ value: Value) {
        let waiting = state.withLock { state in
            guard state.value == nil else { return [CheckedContinuation<Value, Never>]() }
            state.value = value
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    var isFulfilled: Bool { state.withLock { $0.value != nil } }

    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state in
                    if state.value == nil { state.waiting.append(continuation) }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}

extension Promise where Value == Bool {
    func fulfil() { fulfil(true) }
}

/// Waits until the task is cancelled.
func cancellation() async throws {
    let cancelled = Promise<Bool>()
    await withTaskCancellationHandler {
        _ = await cancelled.value
    } onCancel: {
        cancelled.fulfil()
    }
    try Task.checkCancellation()
}

/// Returns the error that an operation throws, and fails the test if it throws none.
func failure<T>(
    of operation: () async throws -> T, file: StaticString = #filePath, line: UInt = #line
) async -> any Error {
    do {
        _ = try await operation()
    } catch {
        return error
    }
    XCTFail("nothing was thrown", file: file, line: line)
    return CancellationError()
}

/// Returns the JSON-RPC error that an operation throws, and fails the test if it throws none.
func rpcError<T>(
    of operation: () async throws -> T, file: StaticString = #filePath, line: UInt = #line
) async -> RPCError? {
    let error = await failure(of: operation, file: file, line: line)
    if case McplineError.rpc(let rpc, _) = error { return rpc }
    XCTFail("\(error)", file: file, line: line)
    return nil
}

/// Returns a program that was built beside the tests.
func program(_ name: String) -> String {
    #if os(macOS)
        let folder = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }!.bundleURL.deletingLastPathComponent()
    #else
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    #endif
    return folder.appendingPathComponent(name).path
}

/// Settings of servers in tests.
let quiet = ServerSettings(startupMessage: false)

// A server over stdio, for the tests of clients. Its argument is how it uses signals, for the tests of signals.

import Foundation
import Mcpline

struct Words: Codable {
    var text: String
    var times: Int?
}

let server = try Server("test-server", version: "1.0.0", settings: ServerSettings(shutdownTimeout: .zero))
try server.tool("repeat", description: "Repeats a text") { (words: Words, _) in
    Array(repeating: words.text, count: words.times ?? 2).joined(separator: " ")
}
try server.tool("print") { _ in
    print("to standard output")
    return "printed"
}
try server.tool("wait") { call -> String in
    call.progress(0)
    while true { try await Task.sleep(for: .seconds(3600)) }
}

func reportReady() { FileHandle.standardOutput.write(Data("ready\n".utf8)) }

/// Serves with two servers, until a signal has closed both.
func runTwo() async throws {
    let quiet = ServerSettings(startupMessage: false)
    let first = try Server("first", version: "1.0.0", settings: quiet)
    let second = try Server("second", version: "1.0.0", settings: quiet)
    first.closeOnSignals()
    let listening = AsyncStream<Void>.makeStream()
    async let serving: Void = first.runHTTP(port: 0) { _ in listening.continuation.finish() }
    for await _ in listening.stream {}
    second.closeOnSignals()
    try await second.runHTTP(port: 0) { _ in reportReady() }
    try await serving
}

/// Serves with a server after a signal, whose arrival another one shows.
func runLate() async throws {
    let other = try Server("other", version: "1.0.0", settings: ServerSettings(startupMessage: false))
    server.closeOnSignals()
    other.closeOnSignals()
    try await other.runHTTP(port: 0) { _ in reportReady() }
    try await server.run()
}

switch CommandLine.arguments.dropFirst().first {
case "two": try await runTwo()
case "late": try await runLate()
case "never":
    server.closeOnSignals()
    reportReady()
    while true { try await Task.sleep(for: .seconds(3600)) }
default:
    server.closeOnSignals()
    try await server.run()
}

// A server over stdio, for the tests of clients.

import Mcpline

struct Words: Codable {
    var text: String
    var times: Int?
}

let server = try Server("test-server", version: "1.0.0", settings: ServerSettings(shutdownGrace: .zero))
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
server.closeOnSignals()
try await server.run()

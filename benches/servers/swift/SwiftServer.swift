import Mcpline

/// What is echoed.
struct Echo: Codable {
    var text: String
}

/// mcpline for Swift serving an echo tool over stdio, or over HTTP with `--http PORT`.
@main
enum SwiftServer {
    static func main() async throws {
        let server = try Server("bench", version: "1.0.0")
        try server.tool("echo", description: "Echo") { (echo: Echo, _) in echo.text }
        try server.tool("echo_stream", description: "Echo after a progress notification") { (echo: Echo, call) in
            call.progress(1)
            return echo.text
        }
        let arguments = CommandLine.arguments
        if let option = arguments.firstIndex(of: "--http") {
            try await server.runHTTP(port: UInt16(arguments[option + 1]) ?? 0)
        } else {
            try await server.run()
        }
    }
}

// The everything-server in Swift. Its specification is ../README.md.

import EverythingFeatures
import Mcpline

@main
enum EverythingServer {
    static func main() async throws {
        var options: [String: String] = [:]
        let arguments = Array(CommandLine.arguments.dropFirst())
        for index in stride(from: 0, to: arguments.count - 1, by: 2) {
            options[String(arguments[index].dropFirst(2))] = arguments[index + 1]
        }
        let number = { (name: String) in options[name].flatMap { Int($0) } }
        let settings = ServerSettings(
            pageSize: number("page-size"),
            maxSuspendedHandlers: number("max-suspended-handlers"),
            maxTotalClientBytes: number("max-total-client-bytes"),
            declare: number("declared") == 1 ? ["tools", "prompts", "resources"] : nil
        )
        let server = try everything(settings, parts: Set(options.filter { $0.value == "1" }.keys))

        server.closeOnSignals()
        if let port = number("http") {
            let http = HTTPSettings(
                readTimeout: number("read-timeout").map { .seconds($0) },
                writeTimeout: number("write-timeout").map { .seconds($0) },
                maxSessions: number("max-sessions")
            )
            try await server.runHTTP(port: UInt16(port), settings: http)
        } else {
            try await server.run()
        }
    }
}

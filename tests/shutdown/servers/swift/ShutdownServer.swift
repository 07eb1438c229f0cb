// A server whose calls never end by themselves, over stdio, a Unix socket or HTTP.

import Foundation
import Mcpline

struct Label: Codable {
    var label: String
}

func report(_ line: String) {
    FileHandle.standardError.write(Data("\(line)\n".utf8))
}

@main
enum ShutdownServer {
    static func main() async throws {
        let server = try Server("shutdown", version: "1", settings: ServerSettings(shutdownTimeout: .seconds(1)))
        try server.tool("waits", description: "Waits until it is cancelled") { (label: Label, call) -> String? in
            call.progress(0, total: 1)
            report("waiting \(label.label)")
            do {
                while true { try await Task.sleep(for: .seconds(600)) }
            } catch {
                report("cancelled \(label.label)")
                throw error
            }
        }
        try server.tool(
            "ignores", description: "Waits, and doesn't look whether it is cancelled"
        ) { (label: Label, call) -> String? in
            call.progress(0, total: 1)
            report("waiting \(label.label)")
            await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
                DispatchQueue.global().asyncAfter(deadline: .now() + 600) { done.resume() }
            }
            return nil
        }
        server.closeOnSignals()
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "http": try await server.runHTTP(port: UInt16(arguments.last ?? "") ?? 0)
        case "unix": try await server.runUnix(arguments.last ?? "")
        default: try await server.run()
        }
    }
}

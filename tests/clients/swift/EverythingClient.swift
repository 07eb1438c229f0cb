// The everything-client in Swift. Its specification is ../README.md.

import Foundation
import Mcpline

private let legacy = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
private let modern = ["2026-07-28"]

private let environment = ProcessInfo.processInfo.environment

/// What the suite passes to a scenario.
let context: JSONObject = {
    do {
        return try JSONObject(parsing: environment["MCP_CONFORMANCE_CONTEXT"] ?? "{}")
    } catch {
        fail("MCP_CONFORMANCE_CONTEXT: \(error)", code: 2)
    }
}()

typealias Scenario = @Sendable (_ url: String) async throws -> Void

/// Runs a scenario with a client that speaks its era.
func connected(
    _ url: String,
    configure: (inout ClientBuilder) throws -> Void = { _ in },
    play: @Sendable (Client) async throws -> Void
) async throws {
    let revision = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] ?? ""
    let client = try await Client.connect(url) { host in
        host.name = "everything-client"
        host.version = "1.0.0"
        host.settings = ClientSettings(
            revisions: [modern, legacy].first { $0.contains(revision) } ?? legacy + modern,
            // The suite starts everything at once: a busy machine must not look like a server of another era.
            probeTimeout: .seconds(25),
            // Servers of the suite answer `tools/list` without declaring tools.
            allowUndeclaredCapabilities: true
        )
        try configure(&host)
    }
    try await client.use(play)
}

private let listTools: Scenario = { url in
    try await connected(url) { client in _ = try await client.listTools() }
}

private let scenarios: [String: Scenario] = [
    "initialize": listTools,
    "json-schema-ref-no-deref": listTools,
    "tools_call": { url in
        try await connected(url) { client in
            _ = try await client.listTools()
            _ = try await client.callTool("add_numbers", ["a": 5, "b": 3])
        }
    },
    // Accepts without content, so that the form's defaults are used.
    "elicitation-sep1034-client-defaults": { url in
        try await connected(url, configure: { host in host.onElicit { $0.accept() } }) { client in
            _ = try await client.listTools()
            _ = try await client.callTool("test_client_elicitation_defaults")
        }
    },
    "sse-retry": { url in
        try await connected(url) { client in
            _ = try await client.listTools()
            _ = try await client.callTool("test_reconnection")
        }
    },
    "request-metadata": { url in
        try await connected(url, configure: { host in host.onElicit { _ in .declined } }) { client in
            _ = try await client.listTools()
        }
    },
    "sep-2322-client-request-state": { url in
        try await connected(url, configure: { host in host.onElicit { try $0.accept(["confirmed": true]) } }) { client in
            _ = try await client.listTools()
            for kind in ["echo_state", "no_state", "unrelated", "no_result_type"] {
                _ = try await client.callTool("test_mrtr_\(kind)")
            }
        }
    },
    "http-standard-headers": { url in
        try await connected(url) { client in
            for tool in try await client.listTools() { _ = try await client.callTool(tool.name) }
            for resource in try await client.listResources() { _ = try await client.readResource(resource.uri) }
            for prompt in try await client.listPrompts() { _ = try await client.getPrompt(prompt.name) }
        }
    },
    "http-custom-headers": { url in
        try await connected(url) { client in
            _ = try await client.listTools()
            for call in context["toolCalls"]?.arrayValue ?? [] {
                let arguments = call["arguments"]?.objectValue ?? [:]
                _ = try await client.callTool(call["name"]?.stringValue ?? "", arguments)
            }
        }
    },
    // Calls all tools that are left in the list.
    "http-invalid-tool-headers": { url in
        try await connected(url) { client in
            for tool in try await client.listTools() { _ = try await client.callTool(tool.name, ["region": "eu"]) }
        }
    },
    "json-schema-2020-12-preservation": { url in
        try await connected(url) { client in
            let tool = try await client.listTools().first { $0.name == "json_schema_2020_12_tool" }
            _ = try await client.callTool("json_schema_echo", ["schema": .object(tool?.inputSchema ?? [:])])
        }
    },
]

func fail(_ message: String, code: Int32) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("\(message)\n".utf8))
    exit(code)
}

@main
enum EverythingClient {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 1, let url = arguments.first else { fail("usage: everything-client URL", code: 2) }
        let name = environment["MCP_CONFORMANCE_SCENARIO"] ?? ""
        guard let scenario = scenarios[name] ?? authorization[name] else {
            fail("no scenario is named \(name)", code: 2)
        }
        do {
            try await scenario(url)
        } catch {
            fail("\(error)", code: 1)
        }
    }
}

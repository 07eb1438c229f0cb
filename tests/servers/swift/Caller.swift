// Tools about the caller, and tools that change the server's features.

import Mcpline

struct RequestInfo: Codable {
    var revision: String
    var client: String
    var capabilities: String
    var header: String
}

private let watched = "test://watched-resource"

private actor Version {
    private(set) var number = 1

    func increment() -> Int {
        number += 1
        return number
    }
}

private let version = Version()

extension Server {
    func addCallerTools() throws {
        try structuredTool(
            "test_request_info", description: "Tells what it knows of the request"
        ) { (_: JSONObject, call) in
            RequestInfo(
                revision: call.revision,
                client: call.client.map { "\($0.name) \($0.version)" } ?? "none",
                capabilities: call.clientCapabilities.names.sorted().joined(separator: ","),
                header: call.headers?["x-fixture"]?.first ?? "none"
            )
        }
    }

    func addChangingTools() throws {
        try tool("test_update_resource", description: "Changes the watched resource") { _ in
            let changed = await version.increment()
            self.notifyResourceUpdated(watched)
            return "version \(changed)"
        }
        try tool("test_trigger_tool_change", description: "Adds a tool, or removes it") { _ in
            if try self.removeTool("test_dynamic_tool") { return "removed" }
            try self.tool("test_dynamic_tool", description: "A tool that comes and goes") { _ in "dynamic" }
            return "added"
        }
        try tool("test_trigger_prompt_change", description: "Adds a prompt, or removes it") { _ in
            if try self.removePrompt("test_dynamic_prompt") { return "removed" }
            try self.prompt("test_dynamic_prompt", description: "A prompt that comes and goes") { _ in "dynamic" }
            return "added"
        }
        try tool("test_trigger_resource_change", description: "Adds a resource, or removes it") { _ in
            let uri = "test://dynamic-resource"
            if try self.removeResource(uri) { return "removed" }
            try self.resource(uri, name: "dynamic-resource", description: "A resource that comes and goes") { _, _ in
                "dynamic"
            }
            return "added"
        }
    }

    func addWatchedResource() throws {
        try resource(
            watched, name: "watched-resource", description: "A text that changes", mimeType: "text/plain"
        ) { _, _ in "Watched resource, version \(await version.number)" }
    }
}

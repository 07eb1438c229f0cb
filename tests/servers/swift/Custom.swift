// Custom requests and notifications, which no revision of the protocol defines, and extensions.

import Mcpline

struct StampColor: Codable {
    var color: String
}

struct ReceiptToken: Codable {
    var token: String
}

private let writers = ["acme:write"]
private let stamps = "com.example/stamps"
private let receipts = "com.example/receipts"

let extensions = [
    Extension(stamps, settings: ["colors": 3]),
    Extension(receipts, resultTypes: ["acme/receipt"]),
]

private func receipt(_ token: String = "t-1", type: String = "acme/receipt") -> ExtendedResult {
    ExtendedResult(type, members: ["token": .string(token)])
}

extension Server {
    func addCustomRequests() throws {
        try request("acme/echo") { (echoed: EchoedText, call) -> JSONObject in
            call.progress(1, total: 2)
            try call.notify("acme/echoing", params: ["text": .string(echoed.text)])
            return try JSONObject(encoding: echoed)
        }
        try addRequest("acme/params") { params, _ -> JSONObject in ["params": .object(params)] }
        try addRequest("acme/ask") { _, call -> JSONObject in
            let answer = try await call.elicit("Who?", as: Name.self, key: "user")
            return try answer.content.map { try JSONObject(encoding: $0) } ?? [:]
        }
        try request("acme/wait") { (waiting: Label, call) -> JSONObject in
            try await untilCancelled(waiting.label, call)
            return [:]
        }
        try addRequest("acme/fail") { _, _ -> JSONObject in throw deliberate }
        try addRequest("acme/exception") { _, _ -> JSONObject in throw UnexpectedError() }
        try addRequest("acme/list") { _, _ -> JSON in [1] }
        try addRequest("acme/choose") { _, call -> JSONObject in
            let picked = try await call.request("acme/pick", params: ["from": [1, 2, 3]], key: "pick")
            return ["picked": picked["picked"] ?? .null]
        }
        try notification("acme/note") { (note: Name, _) in await gates.open(note.name) }
        try addRequest("acme/publish", options: FeatureOptions(scopes: writers)) { _, _ -> JSONObject in
            ["published": true]
        }
        try notification("acme/published", scopes: writers) { (published: Name, _) in await gates.open(published.name) }
    }

    func addExtensions() throws {
        try request("acme/issue", extension: stamps) { (stamp: StampColor, call) -> JSONObject in
            let settings = try call.clientExtension(stamps)
            return ["stamp": .string(stamp.color), "for": settings.map(JSON.object) ?? .null]
        }
        try notification("acme/used", extension: stamps) { (used: Name, _) in await gates.open(used.name) }
        try request("acme/redeem", extension: receipts) { (given: ReceiptToken, _) in
            if given.token == "endless" { return AnyRequestOutput(receipt(given.token)) }
            let content: JSONObject = ["content": [["type": "text", "text": "redeemed \(given.token)"]]]
            return AnyRequestOutput(content)
        }
        try tool("test_extension", description: "Needs an extension that the client declares") { call in
            try call.requireExtension(stamps)
            return "stamps declared"
        }
        try tool("test_receipt", description: "Returns a receipt") { _ in receipt() }
        try tool("test_stray_type", description: "Returns a result of a type that no extension has") { _ in
            receipt(type: "acme/none")
        }
        try prompt("test_receipt_prompt", description: "Returns a receipt") { _ in receipt() }
        try resource("test://receipt", name: "receipt", description: "Returns a receipt") { _, _ in receipt() }
    }
}

import XCTest

@testable import Mcpline

final class ClientExtensionTests: XCTestCase {
    private let receipts = "com.example/receipts"

    private func shop() throws -> Server {
        let receipts = self.receipts
        let server = try Server(
            "shop", version: "1.0.0", extensions: [Extension(receipts, resultTypes: ["acme/receipt"])])
        try server.tool("declared") { call in try call.clientExtension(receipts) }
        try server.tool("buy") { call in
            try call.requireExtension(receipts)
            return ExtendedResult("acme/receipt", members: ["token": "t-1"])
        }
        try server.tool("pick") { call in
            try await call.request("acme/pick", params: ["from": [1, 2]])["picked"]
        }
        return server
    }

    func testExtensionsAreDeclaredWithHandlersOfTheirRequestsAndResultTypes() async throws {
        let client = try await Client.memory(try shop()) { host in
            host.extension(receipts, settings: ["album": "blue"]) { receipts in
                receipts.onRequest("acme/pick") { params in ["picked": params["from"] ?? .null] }
                receipts.onResultType("acme/receipt") { received in
                    var params = received.params
                    params["_meta"] = nil
                    XCTAssertEqual(received.method, "tools/call")
                    XCTAssertEqual(params, ["name": "buy", "arguments": [:]])
                    return ["content": [["type": "text", "text": received.result["token"] ?? .null]]]
                }
            }
        }
        let declared = try await client.callTool("declared")
        XCTAssertEqual(declared.text, #"{"album":"blue"}"#)
        let bought = try await client.callTool("buy")
        XCTAssertEqual(bought.text, "t-1")
        let picked = try await client.callTool("pick")
        XCTAssertEqual(picked.text, "[1,2]")
        await client.close()
    }

    func testExtensionsThatAreNotDeclaredAreRefused() async throws {
        let server = try shop()
        let client = try await Client.memory(server)
        let error = await rpcError { try await client.callTool("buy") }
        XCTAssertEqual(error?.code, -32021)
        await client.close()
        let declaring = try await Client.memory(server) { $0.extension(receipts) }
        let unresolved = await failure { try await declaring.callTool("buy") }
        guard case McplineError.invalidResponse = unresolved else { return XCTFail("\(unresolved)") }
        await declaring.close()
    }
}

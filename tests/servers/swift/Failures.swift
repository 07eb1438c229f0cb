// Tools that fail.

import Foundation
import Mcpline

let secret = "secret-detail-7c1f"

let deliberate = RPCError(code: -31050, message: "deliberate protocol error", data: ["reason": "fixture"])

/// An error that clients must not see.
struct UnexpectedError: Error {
    let detail = secret
}

extension Server {
    func addFailureTools() throws {
        try tool("test_error_handling", description: "Fails in a way that the model should read") { _ -> String in
            throw ToolError("This tool intentionally returns an error for testing")
        }
        try tool("test_exception", description: "Fails unexpectedly") { _ -> String in throw UnexpectedError() }
        try tool("test_protocol_error", description: "Answers with a JSON-RPC error") { _ -> String in throw deliberate }
        try tool("test_missing_capability", description: "Needs a client that can sample") { call in
            if call.clientCapabilities["sampling"] == nil {
                let required: JSON = ["requiredCapabilities": ["sampling": [:]]]
                throw RPCError(code: -32021, message: "the client must support sampling", data: required)
            }
            return "sampling is available"
        }
        try tool("test_stray_output", description: "Prints to stdout and reads stdin") { _ in
            print("stray output")
            fflush(nil)
            return "read \(FileHandle.standardInput.readDataToEndOfFile().count) bytes"
        }
    }
}

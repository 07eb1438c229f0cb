// Tools that fail.

import mcpline.CallContext
import mcpline.RpcException
import mcpline.Server
import mcpline.ToolException

const val SECRET = "secret-detail-7c1f"

fun deliberate() = RpcException(-31050, "deliberate protocol error", obj("""{"reason":"fixture"}"""))

fun Server.addFailureTools() {
    tool("test_error_handling", "Fails in a way that the model should read") {
        throw ToolException("This tool intentionally returns an error for testing")
    }
    tool("test_exception", "Fails unexpectedly") { error(SECRET) }
    tool("test_protocol_error", "Answers with a JSON-RPC error") { throw deliberate() }
    tool("test_missing_capability", "Needs a client that can sample") {
        requireSampling()
        "sampling is available"
    }
    tool("test_stray_output", "Prints to stdout and reads stdin") {
        println("stray output")
        System.out.flush()
        "read ${System.`in`.readBytes().size} bytes"
    }
}

private fun CallContext.requireSampling() {
    if ("sampling" !in clientCapabilities) {
        val required = obj("""{"requiredCapabilities":{"sampling":{}}}""")
        throw RpcException(-32021, "the client must support sampling", required)
    }
}

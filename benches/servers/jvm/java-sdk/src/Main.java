import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.HttpServletStatelessServerTransport;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import jakarta.servlet.Servlet;
import java.util.List;
import java.util.Map;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * The official Java server with an echo tool, over stdio, or over HTTP with {@code --http PORT}: without sessions, its fastest mode,
 * or with sessions with {@code --sessions}.
 */
final class Main {
    private static final Tool ECHO = Tool.builder()
        .name("echo")
        .description("Echo")
        .inputSchema(Map.of("type", "object", "properties", Map.of("text", Map.of("type", "string")), "required", List.of("text")))
        .build();

    private Main() {}

    private static CallToolResult echo(CallToolRequest request) {
        return CallToolResult.builder().addTextContent((String) request.arguments().get("text")).build();
    }

    public static void main(String[] arguments) throws Exception {
        var given = List.of(arguments);
        var http = given.indexOf("--http");
        if (http < 0) {
            var transport = new StdioServerTransportProvider(McpJsonDefaults.getMapper());
            McpServer.sync(transport).serverInfo("bench", "1.0.0").toolCall(ECHO, (exchange, request) -> echo(request)).build();
            return;
        }
        Servlet servlet;
        if (given.contains("--sessions")) {
            var transport = new HttpServletStreamableServerTransportProvider.Builder().mcpEndpoint("/mcp").build();
            McpServer.sync(transport).serverInfo("bench", "1.0.0").toolCall(ECHO, (exchange, request) -> echo(request)).build();
            servlet = transport;
        } else {
            var transport = HttpServletStatelessServerTransport.builder().messageEndpoint("/mcp").build();
            McpServer.sync(transport).serverInfo("bench", "1.0.0").toolCall(ECHO, (context, request) -> echo(request)).build();
            servlet = transport;
        }
        var server = new Server();
        var connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[http + 1]));
        server.addConnector(connector);
        var context = new ServletContextHandler();
        var holder = new ServletHolder(servlet);
        holder.setAsyncSupported(true);
        context.addServlet(holder, "/mcp/*");
        server.setHandler(context);
        server.start();
        server.join();
    }
}

import java.util.List;
import mcpline.java.Server;

/** mcpline for Java serving an echo tool over stdio, or over HTTP with {@code --http PORT}. */
final class JavaServer {
    record Echo(String text) {}

    private JavaServer() {}

    public static void main(String[] arguments) throws InterruptedException {
        var server = Server.builder("bench", "1.0.0").build();
        server.tool("echo", "Echo", Echo.class, (call, echo) -> echo.text());
        server.tool("echo_stream", "Echo after a progress notification", Echo.class, (call, echo) -> {
            call.progress(1);
            return echo.text();
        });
        var http = List.of(arguments).indexOf("--http");
        if (http < 0) {
            server.run();
        } else {
            server.runHttp(Integer.parseInt(arguments[http + 1]));
        }
    }
}

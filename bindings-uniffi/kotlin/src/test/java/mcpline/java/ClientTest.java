package mcpline.java;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import mcpline.ClosedException;
import mcpline.ConnectionEvent;
import mcpline.CreateMessageParams;
import mcpline.CreateMessageResult;
import mcpline.LogLevel;
import mcpline.RequestTimedOutException;
import mcpline.Role;
import mcpline.SamplingMessage;
import mcpline.ServerUnreachableException;
import mcpline.TextContent;
import mcpline.ToolCallRefusedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ClientTest {
    private static Server server() {
        return Server.builder("test", "1.0.0").instructions("Be brief.").build();
    }

    @Test
    void reportsProgressInOrder() throws Exception {
        var server = server();
        server.tool("report", null, call -> {
            call.progress(1);
            call.progress(2, 2.0, "done");
            return "ok";
        });
        try (server; var client = Client.builder().memory(server).get()) {
            var reports = new ArrayList<Double>();
            var options = new RequestOptions().onProgress(report -> reports.add(report.getProgress()));
            assertEquals("ok", client.callTool("report", Map.of(), options).get().getText());
            assertEquals(List.of(1.0, 2.0), reports);
            assertEquals("Be brief.", client.getInstructions());
            assertEquals("test", client.getServerInfo().getName());
        }
    }

    @Test
    void answersSampling() throws Exception {
        var server = server();
        var params = new CreateMessageParams(List.of(new SamplingMessage(Role.User, "Hello")), 10);
        server.tool("sample", null, call -> call.sample(params).join().getText());
        var answer = new CreateMessageResult(Role.Assistant, List.of(new TextContent("Hi")), "model");
        for (var builder : List.of(
            Client.builder().onSample(asked -> answer),
            Client.builder().onSampleAsync(asked -> CompletableFuture.completedFuture(answer)))) {
            try (var client = builder.memory(server).get()) {
                assertEquals("Hi", client.callTool("sample").get().getText());
            }
        }
        server.close();
    }

    @Test
    void receivesLogMessagesAndEvents() throws Exception {
        var server = server();
        server.tool("log", null, call -> {
            call.log(LogLevel.Warning, "careful", "fixture");
            return null;
        });
        var logged = new CompletableFuture<String>();
        var noted = new CompletableFuture<String>();
        var events = new ArrayList<ConnectionEvent>();
        var builder = Client.builder()
            .onLog(message -> logged.complete(message.getData().toString()))
            .onNotification(notification -> {
                if (notification.getMethod().startsWith("notifications/m")) noted.complete(notification.getMethod());
            })
            .onConnection(events::add);
        try (server; var client = builder.memory(server).get()) {
            client.callTool("log", Map.of(), new RequestOptions().logLevel(LogLevel.Debug)).get();
            assertEquals("\"careful\"", logged.get());
            assertEquals("notifications/message", noted.get());
        }
        assertEquals(ConnectionEvent.Connected.INSTANCE, events.get(0));
    }

    @Test
    void asksForConsentToToolCalls() throws Exception {
        var server = server();
        server.tool("delete", null, call -> "deleted");
        var outcomes = new ArrayList<String>();
        var builder = Client.builder()
            .onToolCall(call -> { throw new ToolCallRefusedException("the user refused " + call.getName()); })
            .onToolOutcome(outcome -> outcomes.add(outcome.getError().getKind()));
        try (server; var client = builder.memory(server).get()) {
            var refused = assertThrows(CompletionException.class, () -> client.callTool("delete").join());
            assertInstanceOf(ToolCallRefusedException.class, refused.getCause());
            assertEquals(List.of("tool_call_refused"), outcomes);
        }
    }

    @Test
    void answersCustomRequests() throws Exception {
        var server = server();
        server.tool("ask", null, call -> call.request("acme/time", Map.of("zone", "UTC")).join().toString());
        var builder = Client.builder().onRequest("acme/time", params -> Map.of("at", params.get("zone")));
        try (server; var client = builder.memory(server).get()) {
            assertEquals("{\"at\":\"UTC\"}", client.callTool("ask").get().getText());
        }
    }

    @Test
    void timesOutAndCancels() throws Exception {
        var server = server();
        server.tool("hang", null, call -> new CompletableFuture<String>());
        try (server; var client = Client.builder().memory(server).get()) {
            var options = new RequestOptions().timeout(Duration.ofMillis(50));
            var late = assertThrows(CompletionException.class, () -> client.callTool("hang", Map.of(), options).join());
            assertInstanceOf(RequestTimedOutException.class, late.getCause());
            var cancelled = client.callTool("hang");
            assertTrue(cancelled.cancel(true));
            assertThrows(CancellationException.class, cancelled::join);
            // The connection still works.
            client.listTools().get();
        }
    }

    @Test
    void failsAfterClose() throws Exception {
        var server = server();
        server.tool("none", null, call -> null);
        var client = Client.builder().memory(server).get();
        client.close();
        var error = assertThrows(CompletionException.class, () -> client.callTool("none").join());
        assertInstanceOf(ClosedException.class, error.getCause());
        client.closeAsync().get();
        server.close();
    }

    @Test
    void sendsTokens() throws Exception {
        var server = server();
        server.tool("token", null, call -> call.getHeaders().get("authorization").get(0));
        var url = server.startHttp(0).get();
        try (server; var fixed = Client.builder().bearer("abc").connect(url).get();
            var given = Client.builder().tokens(wanted -> "def").connect(url).get()) {
            assertEquals("Bearer abc", fixed.callTool("token").get().getText());
            assertEquals("Bearer def", given.callTool("token").get().getText());
        }
    }

    @Test
    void spawnsAProgram() throws Exception {
        var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        var classpath = System.getProperty("java.class.path");
        var lines = new CompletableFuture<String>();
        var builder = Client.builder().onStderr(lines::complete);
        try (var client = builder.spawn(java, "-cp", classpath, "mcpline.java.StdioProgram").get()) {
            assertEquals("Hello, Ada", client.callTool("greet", Map.of("name", "Ada")).get().getText());
            assertTrue(client.getPid() > 0);
            assertEquals("printed", lines.get());
        }
        var missing = assertThrows(CompletionException.class, () -> builder.spawn("/does/not/exist").join());
        assertInstanceOf(ServerUnreachableException.class, missing.getCause());
        assertFalse(missing.getCause().getMessage().isEmpty());
    }
}

package mcpline.java;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import mcpline.CallToolResult;
import mcpline.Description;
import mcpline.ElicitResult;
import mcpline.PromptMessage;
import mcpline.RequestRecord;
import mcpline.ResourceNotFoundException;
import mcpline.Role;
import mcpline.RpcException;
import mcpline.TextContent;
import mcpline.ToolAnnotations;
import mcpline.ToolException;
import mcpline.UsageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ServerTest {
    enum Unit { celsius, fahrenheit }

    record Place(@Description("The name of a city") String city, Optional<String> country) {}

    record Query(List<Place> places, Set<Unit> units, Map<String, Double> weights, int days, Optional<Query> next) {
        Query {
            if (days > 7) throw new IllegalArgumentException("forecasts end after 7 days");
        }
    }

    record Summary(String text, long days) {}

    private static Client clientOf(Server server) {
        return Client.builder().memory(server).join();
    }

    private static Server server() {
        return Server.builder("test", "1.0.0").build();
    }

    @Test
    void reportsRequestsAndStatistics() throws Exception {
        var server = server();
        server.tool("forecast", "Forecast", Place.class, (call, place) -> place.city() + ": sunny");
        var records = new LinkedBlockingQueue<RequestRecord>();
        server.onRequestEnd(records::add);
        try (var client = clientOf(server)) {
            client.callTool("forecast", Map.of("city", "Oslo")).join();
            RequestRecord record;
            do {
                record = records.poll(30, TimeUnit.SECONDS);
                assertNotNull(record);
            } while (!record.getMethod().equals("tools/call"));
            assertEquals("forecast", record.getName());
            assertTrue(record.getJavaDuration().compareTo(Duration.ofSeconds(60)) < 0);
            assertTrue(server.getStats().containsKey("sessions"), server.getStats().toString());
            assertTrue(client.getStats().size() > 1, client.getStats().toString());
            assertEquals("", server.getMetrics());
            assertEquals("", client.getMetrics());
        }
    }

    @Test
    void derivesSchemasFromRecords() {
        var schema = Json.schemaOf(Query.class);
        var place = """
            {"type":"object","properties":{"city":{"type":"string","description":"The name of a city"},\
            "country":{"type":"string"}},"required":["city"]}""";
        var members = """
            {"places":{"type":"array","items":%s},\
            "units":{"type":"array","items":{"type":"string","enum":["celsius","fahrenheit"]},"uniqueItems":true},\
            "weights":{"type":"object","additionalProperties":{"type":"number"}},"days":{"type":"integer"},\
            "next":{"$ref":"#/$defs/Query"}}""".formatted(place);
        assertEquals(Json.parse(members), schema.get("properties"));
        assertEquals(
            Json.parse("{\"r\":[\"places\",\"units\",\"weights\",\"days\"]}").get("r"),
            schema.get("required"));
    }

    @Test
    void readsAndWritesRecords() {
        var inner = new Query(List.of(), Set.of(), Map.of(), 1, Optional.empty());
        var query = new Query(
            List.of(new Place("Oslo", Optional.of("Norway")), new Place("Rome", Optional.empty())),
            Set.of(Unit.celsius), Map.of("rain", 0.5), 2, Optional.of(inner));
        assertEquals(query, Json.read(Json.of(query), Query.class));
        assertEquals("{\"city\":\"Rome\"}", Json.of(new Place("Rome", Optional.empty())).toString());
        var nulled = Json.parse("{\"city\": \"Rome\", \"country\": null, \"other\": 1}");
        assertEquals(new Place("Rome", Optional.empty()), Json.read(nulled, Place.class));
    }

    @Test
    void refusesTypesWithoutJson() {
        record Odd(Thread thread) {}
        var error = assertThrows(UsageException.class, () -> Json.schemaOf(Odd.class));
        assertTrue(error.getMessage().startsWith("java.lang.Thread has no JSON form"), error.getMessage());
        assertThrows(UsageException.class, () -> Json.of(new Place(null, Optional.empty())));
        assertThrows(UsageException.class, () -> Json.parse("[]"));
    }

    @Test
    void answersToolCalls() throws Exception {
        var server = server();
        server.tool("typed", "Typed", Place.class, (call, place) -> place.city() + place.country().orElse(""));
        server.tool("staged", "Later", Place.class, (call, place) -> CompletableFuture.supplyAsync(place::city));
        server.tool("raw", null, Json.parse("{\"type\":\"object\",\"required\":[\"n\"]}"), (call, json) -> json);
        server.tool("nothing", null, call -> null);
        server.tool("blocks", null, call -> List.of(new TextContent("one"), "two"));
        server.tool("data", null, call -> Map.of("place", new Place("Oslo", Optional.empty())));
        server.structuredTool("summary", null, Query.class, Summary.class, (call, query) -> new Summary("sunny", query.days()));
        var options = new FeatureOptions().title("Titled").annotations(new ToolAnnotations(null, true));
        server.tool("titled", null, options, call -> call.getToolName());
        try (server; var client = clientOf(server)) {
            assertEquals("Oslo", client.callTool("typed", Map.of("city", "Oslo")).get().getText());
            assertEquals("Oslo!", client.callTool("typed", new Place("Oslo", Optional.of("!"))).get().getText());
            assertEquals("Oslo", client.callTool("staged", Map.of("city", "Oslo")).get().getText());
            assertEquals("{\"n\":1}", client.callTool("raw", Json.parse("{\"n\":1}")).get().getText());
            assertEquals(List.of(), client.callTool("nothing").get().getContent());
            assertEquals("one\ntwo", client.callTool("blocks").get().getText());
            assertEquals("{\"place\":{\"city\":\"Oslo\"}}", client.callTool("data").get().getText());
            assertEquals("titled", client.callTool("titled").get().getText());
            var query = new Query(List.of(), Set.of(), Map.of(), 3, Optional.empty());
            assertEquals(new Summary("sunny", 3), client.callTool("summary", query, Summary.class).get());
            var titled = client.listTools().get().stream().filter(tool -> tool.getName().equals("titled")).findFirst();
            assertEquals("Titled", titled.orElseThrow().getTitle());
            assertEquals(true, titled.orElseThrow().getAnnotations().getReadOnlyHint());
            assertTrue(client.callTool("raw", Map.of("m", 1)).get().isError());
            assertTrue(server.removeTool("titled"));
        }
    }

    @Test
    void returnsErrorsOfHandlers() throws Exception {
        var server = server();
        server.tool("tool", null, call -> { throw new ToolException("no forecast"); });
        server.tool("rpc", null, call -> { throw new RpcException(7, "seven"); });
        server.tool("stage", null, call -> CompletableFuture.failedFuture(new ToolException("later")));
        server.tool("checked", null, Query.class, (call, query) -> "never");
        server.tool("asks", null, call -> call.elicit("Where to?", Place.class).join());
        try (server; var client = clientOf(server)) {
            assertEquals("no forecast", client.callTool("tool").get().getText());
            assertEquals("later", client.callTool("stage").get().getText());
            var rpc = assertThrows(CompletionException.class, () -> client.callTool("rpc").join());
            assertEquals(7, assertInstanceOf(RpcException.class, rpc.getCause()).getCode());
            var late = Map.of("places", List.of(), "units", List.of(), "weights", Map.of(), "days", 8);
            assertEquals("forecasts end after 7 days", client.callTool("checked", late).get().getText());
            // The client has no handler of elicitations, and gets the error that the specification defines for this.
            var lacking = assertThrows(CompletionException.class, () -> client.callTool("asks").join());
            assertEquals(-32021, assertInstanceOf(RpcException.class, lacking.getCause()).getCode());
        }
    }

    @Test
    void serializesFailureOfWrongResultType() throws Exception {
        var server = server();
        server.structuredTool("wrong", null, Place.class, Summary.class, (call, place) -> "text");
        try (server; var client = clientOf(server)) {
            assertTrue(client.callTool("wrong", Map.of("city", "Oslo")).get().isError());
        }
    }

    @Test
    void servesResourcesAndPrompts() throws Exception {
        var server = server();
        server.resource("config://units", "units", "Units", new FeatureOptions().mimeType("text/plain"), (call, none) -> "Celsius");
        server.resource("image://dot", "dot", null, (call, none) -> new byte[] {1, 2});
        server.resource("city://{name}", "city", null, (call, variables) -> {
            if (!"Oslo".equals(variables.get("name"))) throw new ResourceNotFoundException(call.getUri());
            return CompletableFuture.completedFuture(Map.of("name", "Oslo"));
        });
        record Trip(String city, Optional<Integer> days) {}
        server.prompt("trip", "Plan a trip", Trip.class, (call, trip) -> trip.days().orElse(1) + " day(s) in " + trip.city());
        server.prompt("example", null, call -> List.of(new PromptMessage(Role.User, new TextContent("Where to?"))));
        server.completion("city://{name}", "name", List.of("Bergen", "Oslo"));
        server.completion("trip", "city", (call, value, others) -> List.of(value + others.get("days")));
        try (server; var client = clientOf(server)) {
            assertEquals("Celsius", client.readResource("config://units").get().getText());
            assertEquals("text/plain", client.listResources().get().get(0).getMimeType());
            assertArrayEquals(new byte[] {1, 2}, client.readResource("image://dot").get().getContents().get(0).bytes());
            assertEquals("{\"name\":\"Oslo\"}", client.readResource("city://Oslo").get().getText());
            var missing = assertThrows(CompletionException.class, () -> client.readResource("city://Rome").join());
            assertInstanceOf(RpcException.class, missing.getCause());
            assertEquals("city://{name}", client.listResourceTemplates().get().get(0).getUriTemplate());
            var trip = client.getPrompt("trip", Map.of("city", "Oslo", "days", "2")).get().getMessages().get(0);
            assertEquals(new TextContent("2 day(s) in Oslo"), trip.getContent());
            assertEquals("Where to?", ((TextContent) client.getPrompt("example").get().getMessages().get(0).getContent()).getText());
            assertEquals(List.of("Oslo"), client.completeResource("city://{name}", "name", "Os").get().getValues());
            assertEquals(List.of("B3"), client.completePrompt("trip", "city", "B", Map.of("days", "3")).get().getValues());
            assertEquals(2, client.listPrompts().get().size());
        }
    }

    @Test
    void asksTheUserWithinACall() throws Exception {
        record Booking(String city, int nights, Optional<String> note) {}
        var server = server();
        server.tool("book", null, call -> {
            var answer = call.elicit("Where to?", Booking.class).join();
            if (answer instanceof ElicitResult.Accepted<Booking> accepted) return accepted.getContent().city();
            return answer.getAction();
        });
        server.tool("later", null, call -> call.elicit("Where to?", Booking.class).thenApply(ElicitResult::getAction));
        server.tool("roots", null, call -> call.listRoots().join().get(0).getUri());
        try (server) {
            var accepting = Client.builder()
                .onElicit(asked -> ElicitResults.accept(new Booking("Oslo", 2, Optional.empty())))
                .roots("file:///srv");
            try (var client = accepting.memory(server).join()) {
                assertEquals("Oslo", client.callTool("book").get().getText());
                assertEquals("accept", client.callTool("later").get().getText());
                assertEquals("file:///srv", client.callTool("roots").get().getText());
            }
            var declining = Client.builder()
                .onElicitAsync(asked -> CompletableFuture.completedFuture(ElicitResults.decline()));
            try (var client = declining.memory(server).join()) {
                assertEquals("decline", client.callTool("book").get().getText());
            }
        }
    }

    /** More handlers than the pool of JVMs without virtual threads has, each of which waits for a future. */
    @Test
    void answersWhileAllThreadsOfHandlersWait() throws Exception {
        record Booking(String city) {}
        var server = server();
        server.tool("book", null, call -> call.elicit("Where to?", Booking.class).join().getAction());
        var accepting = Client.builder().onElicit(asked -> ElicitResults.accept(new Booking("Oslo")));
        try (server; var client = accepting.memory(server).join()) {
            var calls = new ArrayList<CompletableFuture<CallToolResult>>();
            for (var number = 0; number < 300; number++) calls.add(client.callTool("book"));
            for (var call : calls) assertEquals("accept", call.get().getText());
        }
    }

    @Test
    void readsArgumentsBeforeItReturns() throws Exception {
        var server = server();
        server.tool("city", null, Place.class, (call, place) -> place.city());
        try (server; var client = clientOf(server)) {
            var arguments = new HashMap<String, Object>(Map.of("city", "Oslo"));
            var call = client.callTool("city", arguments);
            arguments.put("city", "Rome");
            assertEquals("Oslo", call.get().getText());
        }
    }

    @Test
    void interruptsHandlersOfCancelledCalls() throws Exception {
        var started = new CompletableFuture<Void>();
        var interrupted = new CompletableFuture<Boolean>();
        var stage = new CompletableFuture<String>();
        var server = server();
        server.tool("sleep", null, call -> {
            started.complete(null);
            try {
                Thread.sleep(Duration.ofMinutes(10).toMillis());
            } catch (InterruptedException error) {
                interrupted.complete(true);
                throw error;
            }
            return interrupted.complete(false);
        });
        var waiting = new CompletableFuture<Void>();
        server.tool("stage", null, call -> {
            waiting.complete(null);
            return stage;
        });
        try (server; var client = clientOf(server)) {
            var sleeping = client.callTool("sleep");
            started.get();
            assertTrue(sleeping.cancel(true));
            assertTrue(interrupted.get());
            var staged = client.callTool("stage");
            waiting.get();
            staged.cancel(true);
            assertThrows(java.util.concurrent.CancellationException.class, stage::get);
        }
    }

    @Test
    void cancelsAStageThatIsReturnedAfterTheCancellation() throws Exception {
        var started = new CompletableFuture<Void>();
        var stage = new CompletableFuture<String>();
        var server = server();
        server.tool("late", null, call -> {
            started.complete(null);
            try {
                Thread.sleep(Duration.ofMinutes(10).toMillis());
            } catch (InterruptedException error) {
                // It is cancelled, and returns nevertheless.
            }
            return stage;
        });
        try (server; var client = clientOf(server)) {
            var called = client.callTool("late");
            started.get();
            called.cancel(true);
            assertThrows(java.util.concurrent.CancellationException.class, stage::get);
        }
    }

    @Test
    void handlesCustomMethodsAndEvents() throws Exception {
        var server = server();
        server.request("acme/greet", Place.class, (call, place) -> Map.of("greeting", "Hello, " + place.city()));
        var name = new CompletableFuture<String>();
        server.onInitialized(call -> name.complete(call.getClient().getName()));
        var builder = Client.builder().info("host", "2.0").settings(Map.of("revisions", List.of("2025-11-25")));
        try (server; var client = builder.memory(server).join()) {
            assertEquals("2025-11-25", client.getRevision());
            assertEquals("host", name.get());
            var result = client.request("acme/greet", new Place("Oslo", Optional.empty())).get();
            assertEquals("{\"greeting\":\"Hello, Oslo\"}", result.toString());
        }
    }

    @Test
    void runsHandlersOnTheGivenExecutor() throws Exception {
        var executor = Executors.newSingleThreadExecutor(task -> new Thread(task, "mine"));
        try (var server = Server.builder("test", "1.0.0").executor(executor).build()) {
            server.tool("thread", null, call -> Thread.currentThread().getName() + call.listRoots().join().size());
            try (var client = Client.builder().roots("file:///a").memory(server).join()) {
                assertTrue(client.callTool("thread").get().getText().startsWith("mine"));
            }
        } finally {
            executor.shutdown();
        }
    }

    @Test
    void clientsTakeTurnsWhenTheThreadBecomesFree() throws Exception {
        var threads = Executors.newSingleThreadExecutor();
        var blocked = new CountDownLatch(1);
        var release = new CountDownLatch(1);
        var started = new ConcurrentLinkedQueue<String>();
        var server = Server.builder("test", "1.0.0").executor(threads).build();
        server.tool("start", null, Place.class, (call, place) -> {
            started.add(place.city());
            return place.city();
        });
        try (server; var busy = clientOf(server); var other = clientOf(server)) {
            threads.execute(() -> {
                blocked.countDown();
                try {
                    release.await();
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            });
            blocked.await();
            var calls = new ArrayList<CompletableFuture<CallToolResult>>();
            for (var number = 0; number < 1000; number++) calls.add(busy.callTool("start", Map.of("city", "busy")));
            awaitInFlight(server, 1000);
            var call = other.callTool("start", Map.of("city", "other"));
            awaitInFlight(server, 1001);
            release.countDown();
            assertEquals("other", call.join().getText());
            for (var result : calls) assertEquals("busy", result.join().getText());
            assertEquals(1, new ArrayList<>(started).indexOf("other"));
        } finally {
            release.countDown();
            threads.shutdown();
        }
    }

    private static void awaitInFlight(Server server, int count) throws InterruptedException {
        while (!server.getStats().get("requests_in_flight").toString().equals(Integer.toString(count))) Thread.sleep(1);
    }

    @Test
    void readsSettingsByName() {
        var settings = Map.of("pageSize", 5, "shutdownTimeout", Duration.ofMillis(1500), "toolRate", List.of(3, 4));
        assertNotNull(Server.builder("test", "1.0.0").settings(settings).build());
        var wrong = Server.builder("test", "1.0.0").settings(Map.of("pagesize", 5));
        var error = assertThrows(UsageException.class, wrong::build);
        assertTrue(error.getMessage().contains("pagesize"), error.getMessage());
    }

    @Test
    void servesOverHttp() throws Exception {
        var server = server();
        server.tool("headers", null, call -> call.getHeaders().get("x-test").get(0));
        var url = server.startHttp(0, "127.0.0.1", Map.of("path", "/here")).get();
        assertTrue(url.endsWith("/here"), url);
        try (server; var client = Client.builder().connect(url, Map.of("headers", Map.of("X-Test", "yes"))).get()) {
            assertEquals("yes", client.callTool("headers").get().getText());
        }
    }

    @Test
    void failsToListenOnAPortInUse() throws Exception {
        try (var server = server(); var other = server()) {
            var port = java.net.URI.create(server.startHttp(0).get()).getPort();
            var error = assertThrows(CompletionException.class, () -> other.startHttp(port).join());
            assertInstanceOf(mcpline.TransportException.class, error.getCause());
        }
    }
}

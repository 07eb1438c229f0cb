package mcpline.java;

/** A server that {@link ClientTest} starts. */
final class StdioProgram {
    record Name(String name) {}

    private StdioProgram() {}

    public static void main(String[] arguments) throws InterruptedException {
        var server = Server.builder("greeter", "1.0.0").build();
        server.tool("greet", "Greets", Name.class, (call, name) -> {
            System.out.println("printed");
            return "Hello, " + name.name();
        });
        server.run();
    }
}

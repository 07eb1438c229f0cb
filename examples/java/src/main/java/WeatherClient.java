import java.util.List;
import java.util.Map;
import mcpline.java.Client;
import mcpline.java.ElicitResults;
import mcpline.java.RequestOptions;

/** A client of the weather server: the arguments are its URL, or the command that starts it. */
public final class WeatherClient {
    private WeatherClient() {}

    public static void main(String[] arguments) {
        var builder = Client.builder()
            .onElicit(asked -> {
                System.out.println("The server asks: " + asked.getMessage());
                return ElicitResults.accept(Map.of("city", "Oslo", "nights", 2));
            })
            .onLog(message -> System.out.println(message.getLevel() + ": " + message.getData()));
        var opening = arguments.length == 1 ? builder.connect(arguments[0]) : builder.spawn(List.of(arguments), Map.of());
        try (var client = opening.join()) {
            System.out.println("Connected to " + client.getServerInfo().getName() + " with " + client.getRevision());
            for (var tool : client.listTools().join()) System.out.println(tool.getName() + ": " + tool.getDescription());
            var options = new RequestOptions().onProgress(report -> System.out.println(report.getMessage()));
            var forecast = client.callTool("forecast", Map.of("city", "Oslo", "days", 2), options).join();
            System.out.println(forecast.getStructuredContent());
            System.out.println(client.callTool("book").join().getText());
            System.out.println(client.readResource("city://Rome").join().getText());
            System.out.println(client.getPrompt("trip", Map.of("city", "Oslo")).join().getMessages().get(0).getContent());
        }
    }
}

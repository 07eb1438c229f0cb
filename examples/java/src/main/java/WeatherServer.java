import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import mcpline.Description;
import mcpline.ElicitResult;
import mcpline.ResourceNotFoundException;
import mcpline.ToolException;
import mcpline.java.FeatureOptions;
import mcpline.java.Server;

/** A server over stdio, or over HTTP with a port as argument. */
public final class WeatherServer {
    enum Unit { celsius, fahrenheit }

    record Forecast(@Description("The name of a city") String city, Optional<Integer> days, Optional<Unit> unit) {}

    record Day(int number, String weather) {}

    record Days(String city, List<Day> days) {}

    record City(String name, String country) {}

    record Trip(@Description("Where to") String city) {}

    record Booking(String city, int nights) {}

    private static final Map<String, String> COUNTRIES = Map.of("Bergen", "Norway", "Oslo", "Norway", "Rome", "Italy");

    private WeatherServer() {}

    static Server create() {
        var server = Server.builder("weather", "1.0.0").instructions("Ask for forecasts by city.").build();
        server.structuredTool("forecast", "Forecast for a city", Forecast.class, Days.class, (call, forecast) -> {
            if (!COUNTRIES.containsKey(forecast.city())) throw new ToolException("no forecast for " + forecast.city());
            var days = forecast.days().orElse(1);
            var found = new ArrayList<Day>();
            for (var day = 1; day <= days; day++) {
                call.progress(day, (double) days, "day " + day);
                found.add(new Day(day, "sunny"));
            }
            return new Days(forecast.city(), found);
        });
        server.tool("book", "Book a trip", call -> {
            var answer = call.elicit("Where to, and for how many nights?", Booking.class).join();
            if (answer instanceof ElicitResult.Accepted<Booking> accepted) {
                return "booked " + accepted.getContent().nights() + " night(s) in " + accepted.getContent().city();
            }
            return "nothing booked";
        });
        var options = new FeatureOptions().mimeType("application/json");
        server.resource("city://{name}", "city", "A city", options, (call, variables) -> {
            var country = COUNTRIES.get(variables.getValue("name"));
            if (country == null) throw new ResourceNotFoundException(call.getUri());
            return new City(variables.getValue("name"), country);
        });
        server.completion("city://{name}", "name", List.copyOf(COUNTRIES.keySet()));
        server.prompt("trip", "Plan a trip", Trip.class, (call, trip) -> "Plan a trip to " + trip.city() + ".");
        return server;
    }

    public static void main(String[] arguments) throws InterruptedException {
        var server = create();
        if (arguments.length == 0) {
            server.run();
        } else {
            server.runHttp(Integer.parseInt(arguments[0]));
        }
    }
}

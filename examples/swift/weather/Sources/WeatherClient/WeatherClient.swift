// Calls the weather server: `weather-client PROGRAM` starts it, `weather-client URL` connects to it.

import Mcpline

struct Place: Codable {
    var city: String?
    var days: Int?
}

struct Forecast: Codable {
    var city: String
    var days: Int
    var summary: String
}

struct Where: Codable {
    var city: String
}

func host(_ builder: inout ClientBuilder) {
    builder.name = "weather-client"
    builder.onElicit { question in
        print("the server asks: \(question.message)")
        return try question.accept(Where(city: "Bergen"))
    }
    builder.onToolCall { call in
        // A host would ask its user here.
        if (call.arguments["days"]?.integerValue ?? 0) > 100 {
            throw McplineError.toolCallRefused(ErrorDetails("that is not a forecast"))
        }
    }
    builder.middleware = [Retry()]
}

func talk(_ client: Client) async throws {
    print("connected to \(client.serverInfo?.name ?? "a server"), revision \(client.revision)")
    let tools = try await client.listTools().map(\.name)
    print("tools: \(tools.joined(separator: ", "))")
    let units = try await client.readResource("weather://units")
    print("units: \(units.text)")
    let cities = try await client.completePrompt("trip", argument: "city", value: "b")
    print("cities: \(cities.values.joined(separator: ", "))")
    for place in [Place(city: "Oslo", days: 3), Place()] {
        let result = try await client.callTool("forecast", place) { report in
            print("progress: \(report.progress)")
        }
        let forecast = try result.data(as: Forecast.self)
        print("forecast: \(forecast.summary) for \(forecast.days) day(s)")
    }
    let failed = try await client.callTool("forecast", Place(city: "Oslo", days: 9))
    print("refused by the server: \(failed.text)")
    do {
        _ = try await client.callTool("forecast", Place(city: "Oslo", days: 1000))
    } catch McplineError.toolCallRefused {
        print("refused by the host")
    }
}

@main
enum WeatherClient {
    static func main() async throws {
        guard let address = CommandLine.arguments.dropFirst().first else {
            print("usage: weather-client PROGRAM|URL")
            return
        }
        let client =
            if address.hasPrefix("http") {
                try await Client.connect(address, configure: host)
            } else {
                try await Client.spawn(address, configure: host)
            }
        try await client.use { client in try await talk(client) }
    }
}

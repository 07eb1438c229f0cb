// A weather server. Without arguments it serves stdio, with `--http PORT` it serves HTTP.

import Foundation
import Mcpline

struct Place: Codable, SchemaDescriptionProviding {
    var city: String?
    var days: Int?

    static let descriptions = [
        "city": "The city; the user is asked when it is left out",
        "days": "How many days ahead, 1 to 7",
    ]
}

struct Forecast: Codable {
    var city: String
    var days: Int
    var summary: String
}

struct Where: Codable {
    var city: String
}

struct Trip: Codable {
    var city: String
}

let cities = ["Bergen", "Oslo", "Tromsø"]

func weather() throws -> Server {
    let server = try Server("weather", version: "1.0.0", instructions: "Ask for forecasts by city.")
    try server.structuredTool("forecast", description: "Forecast for a city") { (place: Place, call) in
        let days = place.days ?? 1
        guard (1...7).contains(days) else { throw ToolError("I can see one to seven days ahead") }
        call.progress(0, total: 1, message: "looking at the sky")
        let city = if let given = place.city { given } else { try await asked(call) }
        call.progress(1, total: 1)
        return Forecast(city: city, days: days, summary: "sunny in \(city)")
    }
    try server.resource("weather://units", name: "units", mimeType: "text/plain") { _, _ in "Celsius" }
    try server.prompt("trip", description: "Plan a trip") { (trip: Trip, _) in "Plan a day in \(trip.city)." }
    try server.completion("trip", argument: "city", candidates: cities)

    // Each call on a line of stderr.
    try server.middleware(MiddlewareScope(methods: ["tools/call"])) { request, next, _ in
        let start = ContinuousClock.now
        let result = try await next(request)
        let line = "\(request.name ?? ""): \(ContinuousClock.now - start)\(result.isError ? ", failed" : "")\n"
        FileHandle.standardError.write(Data(line.utf8))
        return result
    }
    try server.addMiddleware(RateLimit(60, period: .seconds(60), per: [.client]))
    return server
}

/// Asks the user for the city.
func asked(_ call: CallContext) async throws -> String {
    guard let answer = try await call.elicit("Which city?", as: Where.self).content else {
        throw ToolError("no city was given")
    }
    return answer.city
}

@main
enum WeatherServer {
    static func main() async throws {
        let server = try weather()
        server.closeOnSignals()
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "--http", let port = arguments.last.flatMap({ UInt16($0) }) {
            try await server.runHTTP(port: port) { url in
                print(url)
                // What is printed to a pipe waits in a buffer.
                fflush(nil)
            }
        } else {
            try await server.run()
        }
    }
}

import kotlinx.serialization.Serializable
import mcpline.Description
import mcpline.ElicitResult
import mcpline.ResourceNotFoundException
import mcpline.Server
import mcpline.ToolException
import mcpline.server

enum class Unit { celsius, fahrenheit }

@Serializable
class Forecast(@Description("The name of a city") val city: String, val days: Int = 1, val unit: Unit = Unit.celsius)

@Serializable
class Day(val number: Int, val weather: String)

@Serializable
class Days(val city: String, val days: List<Day>)

@Serializable
class Trip(@Description("Where to") val city: String)

@Serializable
class Booking(val city: String, val nights: Int)

private val countries = mapOf("Bergen" to "Norway", "Oslo" to "Norway", "Rome" to "Italy")

fun weather(): Server = server("weather", "1.0.0", instructions = "Ask for forecasts by city.") {
    structuredTool<Forecast, Days>("forecast", "Forecast for a city") { forecast ->
        if (forecast.city !in countries) throw ToolException("no forecast for ${forecast.city}")
        val days = (1..forecast.days).map { day ->
            progress(day, forecast.days, "day $day")
            Day(day, "sunny")
        }
        Days(forecast.city, days)
    }
    tool("book", "Book a trip") {
        when (val answer = elicit<Booking>("Where to, and for how many nights?")) {
            is ElicitResult.Accepted -> "booked ${answer.content.nights} night(s) in ${answer.content.city}"
            ElicitResult.Declined, ElicitResult.Cancelled -> "nothing booked"
        }
    }
    resource("city://{name}", "city", "A city", mimeType = "application/json") { variables ->
        val country = countries[variables.getValue("name")] ?: throw ResourceNotFoundException()
        mapOf("name" to variables["name"], "country" to country)
    }
    completion("city://{name}", "name", countries.keys.toList())
    prompt<Trip>("trip", "Plan a trip") { "Plan a trip to ${it.city}." }
}

/** A server over stdio, or over HTTP with a port as argument. */
suspend fun main(arguments: Array<String>) {
    val server = weather()
    if (arguments.isEmpty()) server.run() else server.runHttp(arguments[0].toInt())
}

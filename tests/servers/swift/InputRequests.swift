// Tools that send input requests from within the handler.

import Mcpline

struct City: Codable {
    var city: String
}

struct Address: Codable {
    var username: String
    var email: String
}

struct Age: Codable {
    var age: Int
}

struct Answer: Codable {
    var answer: String
}

struct Prompted: Codable {
    var prompt: String
}

struct Message: Codable {
    var message: String
}

func getWeather() throws -> Tool {
    Tool(name: "get_weather", description: "Weather of a city", inputSchema: try jsonSchema(of: City.self))
}

private let defaults: JSONObject = [
    "type": "object",
    "properties": [
        "name": ["type": "string", "default": "John Doe"],
        "age": ["type": "integer", "default": 30],
        "score": ["type": "number", "default": 95.5],
        "status": ["type": "string", "enum": ["active", "inactive", "pending"], "default": "active"],
        "verified": ["type": "boolean", "default": true],
    ],
]

private let enums = """
    {"type":"object","properties":{
     "untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
     "titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
      {"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
     "legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
     "untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
     "titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},
      {"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}
    """

/// Returns a request to the model with one message of the user.
func samplingRequest(_ text: String, maxTokens: Int, tools: [Tool]? = nil) -> CreateMessageParams {
    CreateMessageParams(
        messages: [SamplingMessage(.user, text)], maxTokens: maxTokens, tools: tools,
        toolChoice: tools.map { _ in ToolChoice(mode: "auto") })
}

private func shown(_ answer: ElicitResult<JSONObject>) -> String {
    "action=\(answer.action), content=\(answer.content ?? [:])"
}

private func shown(_ roots: [Root]) -> String {
    roots.isEmpty ? "none" : roots.map(\.uri).joined(separator: "\n")
}

extension Server {
    func addInputRequestTools() throws {
        try tool("test_sampling", description: "Asks the client's model") { (prompted: Prompted, call) in
            "LLM response: \(try await call.sample(samplingRequest(prompted.prompt, maxTokens: 100), key: "sample").text)"
        }
        try tool("test_sampling_with_tools", description: "Asks the client's model, which may use a tool") { call in
            let question = samplingRequest("What is the weather in Oslo?", maxTokens: 100, tools: [try getWeather()])
            let answer = try await call.sample(question, key: "sample")
            for case .toolUse(let use) in answer.content { return "tool_use \(use.name) \(use.input)" }
            return "text \(answer.text)"
        }
        try tool("test_elicitation", description: "Asks the user for a name and an address") { (asked: Message, call) in
            let form = try formSchema(of: Address.self)
            return "User response: \(shown(try await call.elicit(asked.message, schema: form, key: "user")))"
        }
        try tool("test_elicitation_sep1034_defaults", description: "Asks the user with a form that has defaults") { call in
            let answer = try await call.elicit("Please provide user information", schema: defaults, key: "user")
            return "Elicitation result: \(shown(answer))"
        }
        let enums = try JSONObject(parsing: enums)
        try tool("test_elicitation_sep1330_enums", description: "Asks the user with a form that has choices") { call in
            let answer = try await call.elicit("Please select options", schema: enums, key: "user")
            return "Elicitation completed: \(shown(answer))"
        }
        try tool("test_url_elicitation", description: "Asks the user to visit a page") { call in
            let elicitation = URLElicitation(
                message: "Please authorise access", url: "https://example.com/authorise", elicitationId: "fixture-1")
            return "URL elicitation: action=\(try await call.elicitURL(elicitation, key: "user").action)"
        }
        try tool("test_roots", description: "Lists the client's root directories") { call in
            shown(try await call.listRoots(key: "roots"))
        }
        try onRootsChanged { call in call.log(.info, .string(shown(try await call.listRoots())), logger: "roots") }
        try tool("test_two_questions", description: "Asks the user twice") { call in
            guard let name = try await call.elicit("What is your name?", as: Name.self, key: "first").content?.name else {
                return "no name"
            }
            let second = try await call.elicit("How old are you, \(name)?", as: Age.self, key: "second")
            return second.content.map { "\(name) is \($0.age)" } ?? "no age"
        }
        try tool("test_streaming_elicitation", description: "Asks the user while a stream is open") { call in
            let answer = try await call.elicit("Streaming elicitation", as: Answer.self, key: "user")
            return "Streaming elicitation: action=\(answer.action)"
        }
    }
}

private actor Visits {
    private var completed: Set<String> = []

    func complete(_ id: String) { completed.insert(id) }

    func isComplete(_ id: String) -> Bool { completed.contains(id) }
}

private let visits = Visits()

extension Server {
    func addURLElicitationTools() throws {
        try tool("test_url_elicitation_required", description: "Needs a visit first") { (visit: Identifier, call) in
            let id = visit.id
            let isAccepted = call.inputResponses?[id]?["action"] == "accept"
            if await !visits.isComplete(id), !isAccepted {
                let url = "https://example.com/authorise?visit=\(id)"
                throw URLElicitationRequiredError([
                    URLElicitation(message: "Please authorise access", url: url, elicitationId: id)
                ])
            }
            return "authorised \(id)"
        }
        try tool("test_complete_url_elicitation", description: "Completes a visit") { (visit: Identifier, _) in
            await visits.complete(visit.id)
            self.notifyElicitationComplete(visit.id)
            return "completed \(visit.id)"
        }
    }
}

// Features of `--more 1`, which most tests do not need, and of `--extras 1`, for tests/hostile and some vectors.

import Mcpline

struct WantedVersion: Codable {
    var version: String
}

struct Reason: Codable {
    var reason: String
}

struct Flood: Codable {
    var count: Int
    var size: Int
}

struct Mistake: Codable {
    var kind: String
}

extension Server {
    func addMore() throws {
        try addMoreTools()
        try addMorePrompts()
        try addMoreResources()
    }

    private func addMoreTools() throws {
        try tool(
            "test_sampling_with_media", description: "Asks the client's model with an image and a recording"
        ) { call in
            let image = SamplingContent.image(ImageContent(data: png, mimeType: "image/png"))
            let audio = SamplingContent.audio(AudioContent(data: wav, mimeType: "audio/wav"))
            let messages = [image, audio].map { SamplingMessage(role: .user, content: [$0]) }
            let answer = try await call.sample(CreateMessageParams(messages: messages, maxTokens: 100), key: "sample")
            return "\(shown(answer.content.first)), stopped by \(answer.stopReason ?? "none")"
        }
        try tool("test_sampling_in_rounds", description: "Asks the client's model until it uses no tool") { call in
            var question = samplingRequest("What is the weather in Oslo and Rome?", maxTokens: 100, tools: [try getWeather()])
            var round = 1
            while true {
                let answer = try await call.sample(question, key: "sample\(round)")
                let uses = answer.content.compactMap { if case .toolUse(let use) = $0 { use } else { nil } }
                if uses.isEmpty { return "LLM response: \(answer.text)" }
                question.messages.append(SamplingMessage(role: .assistant, content: answer.content))
                question.messages.append(SamplingMessage(role: .user, content: uses.map(weatherResult)))
                round += 1
            }
        }
    }

    private func addMorePrompts() throws {
        let definition = Prompt(
            name: "test_described_prompt",
            title: "Described prompt",
            description: "A prompt with everything a definition can have",
            arguments: [
                PromptArgument(name: "many", description: "Has many candidates", required: false),
                PromptArgument(name: "broken", description: "Fails to complete", required: false),
            ],
            icons: icons
        )
        try addPrompt(definition) { _, _ -> [ContentBlock] in
            let annotations = Annotations(audience: [.assistant], priority: 0.5)
            return [.text(TextContent(text: "described", annotations: annotations)), link]
        }
        try completion("test_described_prompt", argument: "many") { _, _, _ in (1...150).map { "c\($0)" } }
        try completion("test_described_prompt", argument: "broken") { _, _, _ in throw UnexpectedError() }
        try prompt("test_failing_prompt", description: "Fails unexpectedly") { _ -> String in throw UnexpectedError() }
    }

    private func addMoreResources() throws {
        try resource(
            "test://described-resource", name: "described-resource", description: "A text with its size and an icon",
            mimeType: "text/plain", title: "Described resource", size: 9, icons: icons
        ) { _, _ in "described" }
        try resource(
            "test://asking-resource", name: "asking-resource", description: "Asks the user in mid-call",
            mimeType: "text/plain"
        ) { _, call in
            let answer = try await call.elicit("Which version?", as: WantedVersion.self, key: "user")
            return "Version \(answer.content?.version ?? "none")"
        }
        try resource(
            "test://failing-resource", name: "failing-resource", description: "Fails unexpectedly", mimeType: "text/plain"
        ) { _, _ -> String in throw UnexpectedError() }
        try resource(
            "test://asking/{id}", name: "asking-template", description: "Returns a question to the user",
            mimeType: "text/plain", title: "Asking template", icons: icons
        ) { variables, call in
            let id = variables["id"] ?? ""
            if let reason = call.accepted("user", "reason") { return AnyResourceOutput("\(id): \(reason)") }
            var questions = InputRequired()
            try questions.elicit("user", message: "Why \(id)?", as: Reason.self)
            return AnyResourceOutput(questions)
        }
    }

    func addExtras() throws {
        try tool("test_flood", description: "Logs a number of messages of a size") { (flood: Flood, call) in
            let text = JSON.string(String(repeating: "x", count: flood.size))
            for _ in 0..<flood.count {
                call.log(.info, text)
                await Task.yield()
            }
            return "flooded"
        }
        try tool("test_mistake", description: "Does what its author must not") { (mistake: Mistake, call) in
            switch mistake.kind {
            case "reserved code": throw RPCError(code: -32050, message: secret)
            case "nested form":
                let address: JSON = ["type": "object", "properties": [:]]
                let form: JSONObject = ["type": "object", "properties": ["address": address]]
                _ = try await call.elicit("Where?", schema: form, key: "wrong")
            case "bad url":
                _ = try await call.elicitURL(URLElicitation(message: "Go", url: "not a url"), key: "wrong")
            case "lonely result":
                let result = SamplingContent.toolResult(ToolResultContent(toolUseId: "a", content: []))
                let message = SamplingMessage(role: .user, content: [result])
                _ = try await call.sample(CreateMessageParams(messages: [message], maxTokens: 1), key: "wrong")
            case "priority":
                var hi = samplingRequest("hi", maxTokens: 1)
                hi.modelPreferences = ModelPreferences(costPriority: 2)
                _ = try await call.sample(hi, key: "wrong")
            case "context":
                var hi = samplingRequest("hi", maxTokens: 1)
                hi.includeContext = "thisServer"
                _ = try await call.sample(hi, key: "wrong")
            default: break
            }
            return "answered"
        }
        let two = Resource(uri: "file:///extras/two", name: "two", description: "The second file")
        try resource(
            "file:///extras/{name}", name: "extras", description: "Files by their names", mimeType: "application/json",
            list: { _ in ["file:///extras/one", two, "file:///other/three"] }
        ) { variables, _ in variables.json }
        try resource(
            "log://{host}-{day}-{name}", name: "logs", description: "Logs of a host", mimeType: "application/json"
        ) { variables, _ in variables.json }
    }
}

private func shown(_ block: SamplingContent?) -> String {
    switch block {
    case .text(let text): "text \(text.text)"
    case .image(let image): "image \(image.data)"
    case .audio(let audio): "audio \(audio.data)"
    case .toolUse(let use): "tool_use \(use.name)"
    case .toolResult(let result): "tool_result \(result.toolUseId)"
    case nil: "none"
    }
}

/// Returns the result of a use of `get_weather`, with the metadata of the use.
private func weatherResult(_ use: ToolUseContent) -> SamplingContent {
    let text = "\(use.input["city"]?.stringValue ?? "") is sunny"
    return .toolResult(ToolResultContent(toolUseId: use.id, content: [.text(TextContent(text))], meta: use.meta))
}

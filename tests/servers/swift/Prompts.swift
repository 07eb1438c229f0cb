// Prompts, resources, and the completion of their arguments and variables.

import Foundation
import Mcpline

struct TwoArguments: Codable, SchemaDescriptionProviding {
    var arg1: String
    var arg2: String

    static let descriptions = ["arg1": "First test argument", "arg2": "Second test argument"]
}

struct ResourceToEmbed: Codable, SchemaDescriptionProviding {
    var resourceUri: String

    static let descriptions = ["resourceUri": "URI of the resource to embed"]
}

struct PromptContext: Codable {
    var context: String
}

private let ids = ["1", "12", "123", "2"]

extension Server {
    func addSimplePrompt() throws {
        try prompt("test_simple_prompt", description: "A prompt without arguments") { _ in
            "This is a simple prompt for testing."
        }
    }

    func addPrompts() throws {
        try addSimplePrompt()
        try prompt("test_prompt_with_arguments", description: "A prompt with arguments") { (given: TwoArguments, _) in
            "Prompt with arguments: arg1='\(given.arg1)', arg2='\(given.arg2)'"
        }
        try completion(
            "test_prompt_with_arguments", argument: "arg1", candidates: ["test alpha", "test beta", "paris"])
        try completion("test_prompt_with_arguments", argument: "arg2") { value, others, _ in
            guard let first = others["arg1"] else { return [] }
            return ["\(first) one", "\(first) two"].filter { $0.hasPrefix(value) }
        }
        try prompt(
            "test_prompt_with_embedded_resource", description: "A prompt that embeds a resource"
        ) { (given: ResourceToEmbed, _) -> [ContentBlock] in
            [
                embedded(given.resourceUri, "text/plain", "Embedded resource content for testing."),
                .text("Please process the embedded resource above."),
            ]
        }
        try prompt("test_prompt_with_image", description: "A prompt with an image") { _ -> [ContentBlock] in
            [image, .text("Please analyze the image above.")]
        }
        try prompt("test_prompt_conversation", description: "A prompt with messages of both sides") { _ in
            [PromptMessage(.user, "What is 2 + 2?"), PromptMessage(.assistant, "4")]
        }
        try prompt("test_input_required_result_prompt", description: "A prompt that returns a question") { call in
            if let context = call.accepted("user_context", "context") {
                return AnyPromptOutput("Use this context: \(context)")
            }
            var questions = InputRequired()
            try questions.elicit(
                "user_context", message: "What context should the prompt use?", as: PromptContext.self)
            return AnyPromptOutput(questions)
        }
    }

    func addResources() throws {
        try resource(
            "test://static-text", name: "static-text", description: "A text that never changes", mimeType: "text/plain",
            title: "Static text"
        ) { _, _ in "This is the content of the static text resource." }
        try resource(
            "test://static-binary", name: "static-binary", description: "An image", mimeType: "image/png"
        ) { _, _ in Data(base64Encoded: png) ?? Data() }
        try addWatchedResource()
        try resource(
            "test://template/{id}/data", name: "template-data", description: "Data for any id",
            mimeType: "application/json"
        ) { variables, _ -> JSON in
            let id = variables["id"] ?? ""
            return ["id": .string(id), "templateTest": true, "data": "Data for ID: \(id)"]
        }
        try completion("test://template/{id}/data", argument: "id") { value, _, _ in
            ids.filter { $0.hasPrefix(value) }
        }
    }
}

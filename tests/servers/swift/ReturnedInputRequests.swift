// Tools that return their input requests and are called again with the answers.

import Mcpline

struct Confirmation: Codable {
    var ok: Bool
}

struct Color: Codable {
    var color: String
}

extension CallContext {
    /// The client's answer to a form.
    fileprivate func answered(_ key: String) -> JSONObject? {
        let answer = inputResponses?[key]?.objectValue
        return answer?["action"]?.stringValue == nil ? nil : answer
    }

    /// The user's text for a member of a form.
    func accepted(_ key: String, _ member: String) -> String? {
        guard let answer = answered(key), answer["action"] == "accept" else { return nil }
        return answer["content"]?[member]?.stringValue
    }

    /// The text of the model's answer.
    fileprivate func sampled(_ key: String) -> String? {
        guard let answer = inputResponses?[key], answer["role"] != nil, let content = answer["content"] else { return nil }
        return (content.arrayValue ?? [content]).compactMap { $0["text"]?.stringValue }.joined()
    }

    /// The client's roots.
    fileprivate func listed(_ key: String) -> [JSON]? { inputResponses?[key]?["roots"]?.arrayValue }
}

/// Returns input requests for a tool.
private func questions(
    state: String? = nil, _ add: (inout InputRequired) throws -> Void
) rethrows -> AnyToolOutput {
    var questions = InputRequired(state: state)
    try add(&questions)
    return AnyToolOutput(questions)
}

extension InputRequired {
    fileprivate mutating func requestName(_ key: String) throws {
        try elicit(key, message: "What is your name?", as: Name.self)
    }

    fileprivate mutating func confirm() throws {
        try elicit("confirm", message: "Please confirm", as: Confirmation.self)
    }
}

extension Server {
    func addReturningTools() throws {
        try tool("test_input_required_result_elicitation", description: "Returns a question to the user") { call in
            if let name = call.accepted("user_name", "name") { return AnyToolOutput("Hello, \(name)!") }
            return try questions { try $0.requestName("user_name") }
        }
        try tool("test_input_required_result_sampling", description: "Returns a question to the client's model") { call in
            if let text = call.sampled("capital_question") { return AnyToolOutput("Model said: \(text)") }
            return try questions {
                try $0.sample("capital_question", samplingRequest("What is the capital of France?", maxTokens: 100))
            }
        }
        try tool(
            "test_input_required_result_list_roots", description: "Returns the question for root directories"
        ) { call in
            if let roots = call.listed("client_roots") { return AnyToolOutput("Client exposed \(roots.count) root(s).") }
            return questions { $0.listRoots("client_roots") }
        }
        try tool("test_input_required_result_request_state", description: "Returns a question and a state") { call in
            if call.answered("confirm") != nil, call.requestState == "request-state-nonce" {
                return AnyToolOutput("state-ok: confirmation received")
            }
            return try questions(state: "request-state-nonce") { try $0.confirm() }
        }
        try tool(
            "test_input_required_result_multiple_inputs", description: "Returns one question of each kind"
        ) { call in
            if call.answered("user_name") != nil, call.sampled("greeting") != nil, call.listed("client_roots") != nil {
                return AnyToolOutput("All inputs received.")
            }
            return try questions(state: "multiple-inputs") {
                try $0.requestName("user_name")
                try $0.sample("greeting", samplingRequest("Generate a greeting", maxTokens: 50))
                $0.listRoots("client_roots")
            }
        }
        try tool("test_input_required_result_multi_round", description: "Returns questions in two rounds") { call in
            try inTwoRounds(call)
        }
        try tool(
            "test_input_required_result_tampered_state", description: "Returns a state that must come back as it was"
        ) { call in
            if call.answered("confirm") != nil, let state = call.requestState {
                return AnyToolOutput("state-ok: \(state)")
            }
            return try questions(state: "round-1") { try $0.confirm() }
        }
        try tool(
            "test_input_required_result_capabilities", description: "Returns the questions that the client can answer"
        ) { call in
            let samples = call.clientCapabilities["sampling"] != nil && call.sampled("sample") == nil
            let asks = call.clientCapabilities["elicitation"] != nil && call.answered("ask") == nil
            if !samples, !asks {
                let keys = (call.inputResponses ?? [:]).names.sorted().joined(separator: ",")
                return AnyToolOutput("capabilities respected: \(keys)")
            }
            return try questions(state: "capability-gated") {
                if samples { try $0.sample("sample", samplingRequest("Say hello", maxTokens: 50)) }
                if asks { try $0.requestName("ask") }
            }
        }
    }
}

private func inTwoRounds(_ call: CallContext) throws -> AnyToolOutput {
    let prefix = "round-2:"
    let name: String
    if let state = call.requestState, state.hasPrefix(prefix) {
        name = String(state.dropFirst(prefix.count))
        if let color = call.accepted("step2", "color") { return AnyToolOutput("\(name) likes \(color).") }
    } else if let given = call.accepted("step1", "name") {
        name = given
    } else {
        return try questions(state: "round-1") {
            try $0.elicit("step1", message: "Step 1: What is your name?", as: Name.self)
        }
    }
    return try questions(state: prefix + name) {
        try $0.elicit("step2", message: "Step 2: What is your favorite color?", as: Color.self)
    }
}

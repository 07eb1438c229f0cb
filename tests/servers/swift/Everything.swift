// The features of the everything-server; each family has a file.

import Mcpline

let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
let wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
let icons = [Icon(src: "https://example.com/icon.png", mimeType: "image/png", sizes: ["48x48"])]

struct Name: Codable {
    var name: String
}

struct Label: Codable {
    var label: String
}

struct Identifier: Codable {
    var id: String
}

/// Creates the server with these settings and the parts of its command line.
package func everything(_ settings: ServerSettings, parts: Set<String>) throws -> Server {
    let server = try Server(
        "mcpline-everything",
        version: "1.0.0",
        title: "mcpline everything server",
        instructions: "Fixture server of the mcpline tests.",
        settings: settings,
        extensions: parts.contains("extensions") ? extensions : []
    )
    if parts.contains("declared") { return server }
    if parts.contains("tools-only") {
        try server.addSimpleText()
        return server
    }
    if parts.contains("prompts-only") {
        try server.addSimplePrompt()
        return server
    }
    try server.addContentTools()
    try server.addFailureTools()
    try server.addRunningTools()
    try server.addInputRequestTools()
    try server.addURLElicitationTools()
    try server.addReturningTools()
    try server.addCallerTools()
    try server.addChangingTools()
    try server.addPrompts()
    try server.addResources()
    try server.addCustomRequests()
    if parts.contains("more") { try server.addMore() }
    if parts.contains("extensions") { try server.addExtensions() }
    if parts.contains("extras") { try server.addExtras() }
    return server
}

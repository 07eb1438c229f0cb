// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "mcpline",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [.library(name: "Mcpline", targets: ["Mcpline"])],
    targets: [
        // The C declarations of the native library, which the linker has to find: `tools/swift` passes its folder with -L.
        .target(name: "McplineFFI", linkerSettings: [.linkedLibrary("mcpline_uniffi")]),
        // What uniffi generates, which is not written for the concurrency checks of Swift 6.
        .target(name: "McplineNative", dependencies: ["McplineFFI"], swiftSettings: [.swiftLanguageMode(.v5)]),
        .target(name: "Mcpline", dependencies: ["McplineNative"]),
        // A server over stdio for the tests.
        .executableTarget(name: "TestServer", dependencies: ["Mcpline"], path: "Tests/TestServer"),
        .testTarget(name: "McplineTests", dependencies: ["Mcpline", "TestServer"]),
    ]
)

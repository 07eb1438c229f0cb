// swift-tools-version: 6.0

// The programs of the tests in Swift. It is here because SwiftPM knows a package by the name of its folder: one in a folder named
// "swift" can't depend on the package in ./bindings-uniffi/swift.

import PackageDescription

let package = Package(
    name: "mcpline-tests",
    platforms: [.macOS(.v14)],
    dependencies: [.package(path: "../bindings-uniffi/swift")],
    targets: [
        // The driver of clients serves it too.
        .target(
            name: "EverythingFeatures", dependencies: [.product(name: "Mcpline", package: "swift")], path: "servers/swift",
            exclude: ["EverythingServer.swift"]),
        .executableTarget(
            name: "everything-server",
            dependencies: ["EverythingFeatures", .product(name: "Mcpline", package: "swift")],
            path: "servers/swift", sources: ["EverythingServer.swift"]),
        .executableTarget(
            name: "everything-client", dependencies: [.product(name: "Mcpline", package: "swift")], path: "clients/swift",
            exclude: ["Driver.swift"]),
        .executableTarget(
            name: "client-driver",
            dependencies: ["EverythingFeatures", .product(name: "Mcpline", package: "swift")], path: "clients/swift",
            exclude: ["EverythingClient.swift", "Authorization.swift"]),
        .executableTarget(
            name: "shutdown-server", dependencies: [.product(name: "Mcpline", package: "swift")],
            path: "shutdown/servers/swift"),
    ]
)

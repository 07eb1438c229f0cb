// swift-tools-version: 6.0

// The server of the benchmarks in Swift. It is here because SwiftPM knows a package by the name of its folder: one in a folder named
// "swift" can't depend on the package in ./bindings-uniffi/swift.

import PackageDescription

let package = Package(
    name: "mcpline-benches",
    platforms: [.macOS(.v14)],
    dependencies: [.package(path: "../bindings-uniffi/swift")],
    targets: [
        .executableTarget(
            name: "bench-server-swift", dependencies: [.product(name: "Mcpline", package: "swift")], path: "servers/swift")
    ]
)

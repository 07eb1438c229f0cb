// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "weather",
    platforms: [.macOS(.v13)],
    dependencies: [.package(path: "../../../bindings-uniffi/swift")],
    targets: [
        .executableTarget(
            name: "weather-server", dependencies: [.product(name: "Mcpline", package: "swift")],
            path: "Sources/WeatherServer"),
        .executableTarget(
            name: "weather-client", dependencies: [.product(name: "Mcpline", package: "swift")],
            path: "Sources/WeatherClient"),
    ]
)

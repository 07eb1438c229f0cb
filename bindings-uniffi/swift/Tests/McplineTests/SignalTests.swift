import Foundation
import XCTest

final class SignalTests: XCTestCase {
    /// Runs the test server, sends it signals when it is ready, and returns its status. It is negative if a signal ended it.
    private func status(of use: String, after signals: Int32...) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program("TestServer"))
        process.arguments = [use]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let pid = process.processIdentifier
        // An upper bound, so that a program that ignores signals fails the test.
        let deadline = DispatchWorkItem { kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: deadline)
        XCTAssertEqual(output.fileHandleForReading.availableData, Data("ready\n".utf8))
        for number in signals { kill(pid, number) }
        process.waitUntilExit()
        deadline.cancel()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    func testASignalClosesAllServers() throws {
        for number in [SIGTERM, SIGINT] {
            XCTAssertEqual(try status(of: "two", after: number), 0)
        }
    }

    func testServersThatASignalHasClosedDoNotServe() throws {
        XCTAssertEqual(try status(of: "late", after: SIGTERM), 0)
    }

    func testASecondSignalEndsTheProgram() throws {
        // The signals may come in either order.
        let status = try status(of: "never", after: SIGTERM, SIGINT)
        XCTAssertTrue([128 + SIGTERM, 128 + SIGINT].contains(status), "\(status)")
    }
}

internal import McplineNative

/// An open channel of a custom transport: MCP over anything that carries messages.
///
/// Messages are JSON, without line breaks. Calls of ``send(_:)`` do not overlap, nor do calls of ``receive()``, so both apply
/// backpressure: a slow ``send(_:)`` slows down the sender, and ``receive()`` is not called while more than 32 MiB of received
/// messages wait to be processed. If one of them throws, the channel ends: requests in flight fail with
/// ``McplineError/connectionLost(_:)``, and ``Server/serveChannel(_:principal:)`` throws ``McplineError/transport(_:)``.
public protocol Channel: Sendable {
    /// Sends one message, or a batch, to the peer.
    func send(_ message: String) async throws

    /// Returns the next message, or batch, from the peer; `nil` if the peer has closed the channel. Cancelled when this side
    /// closes the channel.
    func receive() async throws -> String?

    /// Closes the channel. Called last, regardless of which side closed it, except that a cancelled ``send(_:)`` or ``receive()``
    /// may not have returned yet. Cancelled if it takes more than 5 seconds.
    func close() async
}

/// A way to open channels to a server, for ``Client/over(_:configure:)``.
public protocol ClientTransport: Sendable {
    /// Opens a channel. Called for each connection, again after a connection was lost.
    ///
    /// If it throws, the connection fails with ``McplineError/serverUnreachable(_:)``. It is cancelled when the client is closed,
    /// or ``ClientSettings/openTimeout`` elapses.
    func open() async throws -> any Channel
}

/// Carries the messages of a channel.
final class ChannelAdapter: McplineNative.Channel {
    private let channel: any Channel

    init(_ channel: any Channel) {
        self.channel = channel
    }

    func send(messages: [String]) async throws {
        try await reported {
            for message in messages { try await channel.send(message) }
        }
    }

    func receive() async throws -> String? {
        try await reported { try await channel.receive() }
    }

    func end() async {
        await channel.close()
    }
}

/// Opens channels.
final class ChannelOpener: McplineNative.ClientTransport {
    private let transport: any ClientTransport

    init(_ transport: any ClientTransport) {
        self.transport = transport
    }

    func openChannel() async throws -> OpenedChannel {
        let opened = try await reported { try await transport.open() }
        if Task.isCancelled {
            // The library does not get it any more.
            await opened.close()
            throw CancellationError()
        }
        return OpenedChannel(channel: ChannelAdapter(opened))
    }
}

/// Runs a function of the program. The core gets what it throws as the reason for which the channel ends.
private func reported<Result>(_ run: () async throws -> Result) async throws -> Result {
    do {
        return try await run()
    } catch {
        throw ForeignFailure.Unexpected(reason: describe(error))
    }
}

internal import McplineNative

/// The notifications of a server: see ``Client/notifications``.
public struct Notifications: AsyncSequence, Sendable {
    let channel: NotificationChannel
    let native: McplineNative.Client

    /// Returns an iterator, which gets the notifications that arrive from now on.
    public func makeAsyncIterator() -> Iterator {
        let subscription = channel.subscribe()
        // Fails only if the client is closed: then the sequence ends.
        do { try native.listen() } catch { subscription.end() }
        return Iterator(subscription: subscription, native: native)
    }

    /// Iterates over notifications.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription
        /// Keeps the connection open.
        let native: McplineNative.Client

        /// Returns the next notification; `nil` when the client is closed or the task is cancelled.
        ///
        /// If several tasks call it, each notification goes to one of them. Cancelling one of these tasks does not end the others'
        /// iteration.
        public mutating func next() async -> ServerNotification? {
            await subscription.next()
        }
    }
}

/// Passes the notifications of one client on to its subscriptions.
final class NotificationChannel: Sendable {
    private let state = Locked(State())

    private struct State {
        var subscriptions: [ObjectIdentifier: Weak] = [:]
        var isFinished = false
    }

    private struct Weak {
        weak var queue: Subscription.Queue?
    }

    deinit { finish() }

    func subscribe() -> Subscription {
        let queue = Subscription.Queue()
        let isFinished = state.withLock { state in
            state.subscriptions = state.subscriptions.filter { $0.value.queue != nil }
            if !state.isFinished { state.subscriptions[ObjectIdentifier(queue)] = Weak(queue: queue) }
            return state.isFinished
        }
        if isFinished { queue.end() }
        return Subscription(queue: queue)
    }

    /// Returns when all subscriptions have taken the notification, so that a slow one holds the library's queue back.
    func send(_ notification: ServerNotification) async {
        let queues = state.withLock { $0.subscriptions.values.compactMap(\.queue) }
        for queue in queues { await queue.put(notification) }
    }

    func finish() {
        let queues = state.withLock { state in
            state.isFinished = true
            defer { state.subscriptions = [:] }
            return state.subscriptions.values.compactMap(\.queue)
        }
        for queue in queues { queue.end() }
    }
}

/// The notifications of one iterator. They end when it goes away.
final class Subscription: Sendable {
    private let queue: Queue

    init(queue: Queue) {
        self.queue = queue
    }

    deinit { queue.end() }

    func next() async -> ServerNotification? { await queue.take() }

    func end() { queue.end() }

    /// Holds one notification at a time. Several tasks may take from it.
    final class Queue: Sendable {
        private typealias Taker = CheckedContinuation<ServerNotification?, Never>

        private struct State {
            var waiting: ServerNotification?
            /// With the number of the call, in the order in which they came. Empty while a notification waits.
            var takers: [(call: Int, taker: Taker)] = []
            var calls = 0
            var putter: CheckedContinuation<Void, Never>?
            var hasEnded = false
        }

        private let state = Locked(State())

        /// Returns when the notification is taken, or the subscription has ended. One call at a time.
        func put(_ notification: ServerNotification) async {
            await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
                let (taker, isDone) = state.withLock { state in
                    if state.hasEnded { return (nil as Taker?, true) }
                    if !state.takers.isEmpty { return (state.takers.removeFirst().taker, true) }
                    state.waiting = notification
                    state.putter = done
                    return (nil, false)
                }
                taker?.resume(returning: notification)
                if isDone { done.resume() }
            }
        }

        /// Returns `nil` if the subscription has ended or the task is cancelled.
        func take() async -> ServerNotification? {
            let call = state.withLock { state in
                state.calls += 1
                return state.calls
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { (taker: Taker) in
                    let (taken, putter, isDone) = state.withLock { state in
                        // `cancel` came before, and did not find this call.
                        if Task.isCancelled { return (nil as ServerNotification?, nil as CheckedContinuation<Void, Never>?, true) }
                        if let waiting = state.waiting {
                            defer {
                                state.waiting = nil
                                state.putter = nil
                            }
                            return (waiting, state.putter, true)
                        }
                        if state.hasEnded { return (nil, nil, true) }
                        state.takers.append((call, taker))
                        return (nil, nil, false)
                    }
                    putter?.resume()
                    if isDone { taker.resume(returning: taken) }
                }
            } onCancel: {
                cancel(call)
            }
        }

        /// Ends one call of `take`, if it waits.
        private func cancel(_ call: Int) {
            let taker = state.withLock { state in
                state.takers.firstIndex { $0.call == call }.map { state.takers.remove(at: $0).taker }
            }
            taker?.resume(returning: nil)
        }

        func end() {
            let (takers, putter) = state.withLock { state in
                defer {
                    state.hasEnded = true
                    state.waiting = nil
                    state.takers = []
                    state.putter = nil
                }
                return (state.takers.map(\.taker), state.putter)
            }
            for taker in takers { taker.resume(returning: nil) }
            putter?.resume()
        }
    }
}

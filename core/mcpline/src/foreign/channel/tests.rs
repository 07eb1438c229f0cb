//! Messages, backpressure and ends of channels.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};

use bytes::Bytes;

use super::*;

fn is_ready(future: impl Future) -> bool {
    let mut context = TaskContext::from_waker(Waker::noop());
    pin!(future).poll(&mut context).is_ready()
}

#[runtimes::test]
async fn applies_backpressure_to_a_sender_that_is_not_read() {
    let channel = Channel::new();
    let half = Bytes::from(vec![b' '; MAX_WAITING_CHANNEL_BYTES / 2]);
    assert_eq!(channel.receive(half.clone()), Ok(true));
    assert!(channel.has_room());
    assert_eq!(channel.receive(half.clone()), Ok(false));
    assert!(!channel.has_room());
    assert!(!is_ready(channel.ready()));
    channel.incoming.take().await.expect("a message");
    assert!(is_ready(channel.ready()));
}

#[runtimes::test]
async fn ends_a_channel_whose_sender_does_not_wait() {
    let channel = Channel::new();
    let message = Bytes::from(vec![b' '; MAX_WAITING_CHANNEL_BYTES]);
    let taken = (0..20).take_while(|_| channel.receive(message.clone()).is_ok());
    assert_eq!(taken.count(), 7);
    let end = channel.incoming.take().await.expect_err("it has ended");
    assert!(end.expect_err("a failure").contains("without waiting"));
    assert!(is_ready(channel.ready()));
}

#[runtimes::test]
async fn returns_messages_in_bounded_batches() {
    let channel = Channel::new();
    for _ in 0..4 {
        channel
            .outgoing
            .push(Bytes::from(vec![b' '; MAX_BATCH_BYTES / 3]));
    }
    channel
        .outgoing
        .push(Bytes::from(vec![b' '; 2 * MAX_BATCH_BYTES]));
    channel.outgoing.end(Ok(()));
    let mut batches = Vec::new();
    while let Some(batch) = channel.next().await {
        assert!(!is_ready(channel.outgoing.sent()), "it is being sent");
        batches.push(batch.len());
    }
    assert_eq!(batches, [2, 2, 1]);
    assert!(is_ready(channel.outgoing.sent()));
    channel.hang_up(None);
    assert!(
        !is_ready(channel.failed()),
        "it has ended without a failure"
    );
}

#[runtimes::test]
async fn a_failure_discards_unsent_messages_and_is_the_reason_of_the_end() {
    let channel = Channel::new();
    channel.outgoing.push(Bytes::from_static(b"{}"));
    assert_eq!(channel.receive("1"), Ok(true));
    channel.hang_up(Some("the cable broke".into()));
    channel.hang_up(None);
    assert!(!is_ready(channel.next()), "nothing waits");
    assert!(is_ready(channel.failed()));
    assert_eq!(channel.incoming.take().await, Ok(Bytes::from_static(b"1")));
    assert_eq!(
        channel.incoming.take().await,
        Err(Err("the cable broke".into()))
    );
    assert_eq!(channel.receive("2"), Err(ChannelClosed));
    channel.close();
    assert_eq!(channel.next().await, None);
}

#[cfg(feature = "client")]
mod clients {
    use tokio::sync::mpsc;

    use super::*;
    use crate::client::{Channel as ClientChannel, ClientTransport};

    /// Passes on the channels to open.
    struct Opening(mpsc::UnboundedSender<Arc<Channel>>);

    impl OpenChannel for Opening {
        fn open(&self, channel: Arc<Channel>) {
            self.0.send(channel).expect("the test waits");
        }
    }

    async fn dialled() -> (Arc<Channel>, ClientChannel) {
        let (opening, mut opens) = mpsc::unbounded_channel();
        let address = ChannelAddress::new(Arc::new(Opening(opening)));
        let dialling = address.dial();
        let opened = async {
            let channel = opens.recv().await.expect("it is opened");
            assert!(channel.opened(Ok(())));
            assert!(!channel.opened(Ok(())), "it is open");
            channel
        };
        let (dialled, channel) = tokio::join!(dialling, opened);
        (channel, dialled.expect("it is open"))
    }

    #[runtimes::test]
    async fn messages_cross_in_both_directions_until_the_client_closes() {
        let (channel, mut client) = dialled().await;
        client.to_server.send("1".into()).expect("it is open");
        assert_eq!(channel.next().await, Some(vec![Bytes::from_static(b"1")]));
        channel.receive("2").expect("it is open");
        let received = client.from_server.recv().await.expect("a message");
        assert_eq!(received.expect("no failure"), "2");
        drop(client);
        assert_eq!(channel.next().await, None);
        assert_eq!(channel.incoming.ended().await, Ok(()));
        assert_eq!(channel.receive("3"), Err(ChannelClosed));
    }

    #[runtimes::test]
    async fn a_failure_reaches_the_client_with_its_reason() {
        let (channel, mut client) = dialled().await;
        channel.hang_up(Some("the cable broke".into()));
        let failure = client.from_server.recv().await.expect("a failure");
        assert_eq!(
            failure.expect_err("a failure").to_string(),
            "the cable broke"
        );
        assert!(client.from_server.recv().await.is_none());
        assert_eq!(channel.next().await, None);
    }

    #[runtimes::test]
    async fn an_opening_that_is_given_up_closes_the_channel() {
        let (opening, mut opens) = mpsc::unbounded_channel();
        let address = ChannelAddress::new(Arc::new(Opening(opening)));
        assert!(!is_ready(address.dial()));
        let channel = opens.recv().await.expect("it is opened");
        assert_eq!(channel.next().await, None);
        assert!(!channel.opened(Ok(())));
    }

    #[runtimes::test]
    async fn reads_nothing_while_too_much_is_unsent() {
        let (channel, mut client) = dialled().await;
        let large = Bytes::from(vec![b' '; MAX_WAITING_CHANNEL_BYTES]);
        client.to_server.send(large).expect("it is open");
        while channel.outgoing.has_room() {
            tokio::task::yield_now().await;
        }
        for message in ["1", "2", "3"] {
            channel.receive(message).expect("it is open");
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        // Reading may have begun before too much was waiting: one message passes.
        let mut received = 0;
        while client.from_server.try_recv().is_ok() {
            received += 1;
        }
        assert!(received <= 1, "{received}");
        channel.next().await.expect("what was not sent");
        while received < 3 {
            let message = client.from_server.recv().await.expect("a message");
            message.expect("no failure");
            received += 1;
        }
    }

    #[runtimes::test]
    async fn notices_the_end_of_a_channel_while_too_much_is_unsent() {
        let (channel, mut client) = dialled().await;
        let large = Bytes::from(vec![b' '; MAX_WAITING_CHANNEL_BYTES]);
        client.to_server.send(large).expect("it is open");
        while channel.outgoing.has_room() {
            tokio::task::yield_now().await;
        }
        // Reading may have begun before too much was waiting.
        channel.receive("1").expect("it is open");
        channel.receive("2").expect("it is open");
        channel.hang_up(None);
        let mut received = 0;
        while let Some(message) = client.from_server.recv().await {
            message.expect("no failure");
            received += 1;
        }
        assert_eq!(received, 2);
    }

    #[runtimes::test]
    async fn a_client_that_leaves_closes_a_channel_that_sends_nothing() {
        let (channel, client) = dialled().await;
        let large = Bytes::from(vec![b' '; MAX_WAITING_CHANNEL_BYTES]);
        client.to_server.send(large).expect("it is open");
        while channel.outgoing.has_room() {
            tokio::task::yield_now().await;
        }
        channel.receive("1").expect("it is open");
        drop(client);
        assert_eq!(channel.incoming.ended().await, Ok(()));
    }
}

#[cfg(feature = "server")]
mod servers {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use mcpline_protocol::vocabulary::Tool;
    use serde_json::{Value, json};
    use tokio::sync::Notify;

    use super::*;
    use crate::server::{Context, Server, Settings, ToolOptions};
    use crate::transport::{Stop, Transport};

    /// Lets the tool's calls end, or wait forever.
    #[derive(Default)]
    struct Calls {
        began: Notify,
        go_on: Notify,
        cancelled: AtomicBool,
    }

    struct Cancelled<'c>(&'c Calls, bool);

    impl Drop for Cancelled<'_> {
        fn drop(&mut self) {
            self.0.cancelled.store(!self.1, Ordering::SeqCst);
        }
    }

    fn server(calls: &Arc<Calls>) -> Server {
        let settings = Settings {
            shutdown_timeout: Duration::from_secs(600),
            ..Settings::default()
        };
        let server = Server::builder("test", "1").settings(settings).build();
        let server = server.expect("a server");
        let calls = calls.clone();
        let handler = move |_: Value, _: Context| {
            let calls = calls.clone();
            async move {
                let mut cancelled = Cancelled(&calls, false);
                calls.began.notify_one();
                calls.go_on.notified().await;
                cancelled.1 = true;
                "done"
            }
        };
        let tool = Tool::new("waits", json!({"type": "object"}));
        let added = server.add_tool_fn(tool, ToolOptions::default(), handler);
        added.expect("a tool");
        server
    }

    fn request(id: i64, method: &str, mut params: Value) -> String {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    }

    fn call() -> String {
        request(1, "tools/call", json!({"name": "waits", "arguments": {}}))
    }

    async fn next(channel: &Channel) -> Option<Value> {
        let batch = channel.next().await?;
        assert_eq!(batch.len(), 1);
        Some(serde_json::from_slice(&batch[0]).expect("JSON"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_stopped_sending_still_gets_its_responses() {
        let (calls, channel) = (Arc::<Calls>::default(), Channel::new());
        let serving = ServedChannel::new(channel.clone(), None);
        let serving = tokio::spawn(serving.serve(server(&calls), Stop::new()));
        channel.receive(call()).expect("it is open");
        channel.hang_up(None);
        calls.began.notified().await;
        calls.go_on.notify_one();
        let answer = next(&channel).await.expect("an answer");
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert_eq!(next(&channel).await, None);
        serving.await.expect("no panic").expect("no failure");
    }

    #[runtimes::test]
    async fn a_client_cancels_calls_and_is_refused_others_within_the_grace_period() {
        let (calls, channel, stop) = (Arc::<Calls>::default(), Channel::new(), Stop::new());
        let serving = ServedChannel::new(channel.clone(), None);
        let serving = tokio::spawn(serving.serve(server(&calls), stop.clone()));
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let listen = request(2, "subscriptions/listen", wanted);
        channel.receive(listen).expect("it is open");
        let acknowledged = next(&channel).await.expect("an acknowledgement");
        assert!(acknowledged.get("id").is_none(), "{acknowledged}");
        channel.receive(call()).expect("it is open");
        calls.began.notified().await;
        stop.stop();
        let ended = next(&channel).await.expect("a result");
        assert_eq!(ended["id"], 2);
        let list = request(3, "tools/list", json!({}));
        channel.receive(list).expect("it is open");
        let refused = next(&channel).await.expect("an error");
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(3), &json!(-31002))
        );
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        channel.receive(cancel.to_string()).expect("it is open");
        assert_eq!(next(&channel).await, None);
        serving.await.expect("no panic").expect("no failure");
        // The thread that polls a cancelled handler drops it.
        while !calls.cancelled.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    #[runtimes::test]
    async fn a_gone_client_does_not_delay_shutdown() {
        let (calls, channel, stop) = (Arc::<Calls>::default(), Channel::new(), Stop::new());
        let serving = ServedChannel::new(channel.clone(), None);
        let serving = tokio::spawn(serving.serve(server(&calls), stop.clone()));
        channel.receive(call()).expect("it is open");
        calls.began.notified().await;
        stop.stop();
        channel.hang_up(Some("the cable broke".into()));
        while channel.next().await.is_some() {}
        let _ = serving.await.expect("no panic");
        // The thread that polls a cancelled handler drops it.
        while !calls.cancelled.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

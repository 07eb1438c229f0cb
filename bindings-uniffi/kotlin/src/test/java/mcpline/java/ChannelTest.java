package mcpline.java;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import mcpline.Caller;
import mcpline.ServerUnreachableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ChannelTest {
    /** One end of a pair of queues, in which an empty message is the end. */
    private record End(BlockingQueue<String> outgoing, BlockingQueue<String> incoming) implements Channel {
        @Override
        public void send(String message) {
            outgoing.add(message);
        }

        @Override
        public String receive() throws InterruptedException {
            var message = incoming.take();
            return message.isEmpty() ? null : message;
        }

        @Override
        public void close() {
            outgoing.add("");
        }
    }

    @Test
    void clientAndServerSpeakOverAChannelThatBlocks() throws Exception {
        var server = Server.builder("channels", "1.0.0").build();
        server.tool("whoami", null, call -> Optional.ofNullable(call.getAuth()).map(Caller::getSubject).orElse("anonymous"));
        var there = new LinkedBlockingQueue<String>();
        var back = new LinkedBlockingQueue<String>();
        var alice = new Caller("alice", null, "https://auth.example.com", List.of("admin"));
        var serving = CompletableFuture.runAsync(() -> {
            try {
                server.serveChannel(new End(back, there), alice);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        });
        try (server; var client = Client.builder().over(() -> new End(there, back)).get()) {
            assertEquals("alice", client.callTool("whoami").get().getText());
        }
        serving.get();
    }

    @Test
    void aTransportThatCannotOpenIsUnreachable() {
        var opening = Client.builder().over(() -> {
            throw new IOException("no cable");
        });
        var failed = assertThrows(ExecutionException.class, opening::get);
        assertInstanceOf(ServerUnreachableException.class, failed.getCause());
    }
}

/* A data race: the handler and the caller write to the same number without order. If ThreadSanitizer does not find this
 * one, it would not find others either.
 *
 * The handler writes second, always: if it were first, what the library does on its way back to the caller could order
 * the two. It learns of the first write by a relaxed load, which orders nothing itself. */

#include <sched.h>
#include <stdatomic.h>

#include "check.h"

static int number;
static atomic_int is_written;

static void write_here(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  while (!atomic_load_explicit(&is_written, memory_order_relaxed)) {
    sched_yield();
  }
  number++;
  OK(mcpl_call_reply_text(call, "written", MCPL_AUTO_LENGTH));
}

int main(void) {
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "write", "Writes", NULL, write_here, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "write", NULL, 0, NULL, completed, &pending, NULL));
  number++;
  atomic_store_explicit(&is_written, 1, memory_order_relaxed);
  tally_wait(&pending.done, 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
  return EXIT_SUCCESS;
}

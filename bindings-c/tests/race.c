/* A race: the handler and the caller write to one number, in no order. ThreadSanitizer has to find it, or it would find
 * none. */

#include "check.h"

static int number;

static void write_here(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
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
  tally_wait(&pending.done, 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
  return EXIT_SUCCESS;
}

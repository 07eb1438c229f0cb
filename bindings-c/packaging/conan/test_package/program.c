#include <mcpline.h>
#include <stdio.h>

int main(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  printf("mcpline %s\n", mcpl_version());
  mcpl_server_free(server);
  return server == NULL;
}

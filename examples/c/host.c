/* A host: connects to servers and prints their tools.
 *
 *     host PROGRAM [ARGUMENT…] [-- PROGRAM-OR-URL [ARGUMENT…]]…
 */

#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void complain(const char *doing) {
  const mcpl_error *error = mcpl_last_error();
  fprintf(stderr, "host: %s: %s: %s\n", doing, mcpl_status_name(mcpl_error_status(error)), mcpl_error_message(error));
}

/* Shows what a server writes to its stderr. */
static void show_stderr(mcpl_client *client, const char *line, size_t length, void *user) {
  (void)client;
  fprintf(stderr, "[%s] %.*s\n", (const char *)user, (int)length, line);
}

static void print_tools(const char *tools, size_t length) {
  const char *tool = NULL;
  size_t tool_length = 0;
  for (size_t index = 0; mcpl_json_item(tools, length, index, NULL, &tool, &tool_length) == MCPL_OK; index++) {
    char *name = NULL;
    char *description = NULL;
    mcpl_json_string(tool, tool_length, "/name", &name, NULL);
    mcpl_json_string(tool, tool_length, "/description", &description, NULL);
    printf("  %s: %s\n", name, description == NULL ? "" : description);
    mcpl_string_free(name);
    mcpl_string_free(description);
  }
}

/* Connects to a server, prints its tools, and closes. */
static mcpl_status print_server(char **command, size_t count) {
  mcpl_client *client = mcpl_client_new("host", "1.0.0");
  char *info = NULL;
  char *tools = NULL;
  size_t info_length = 0;
  size_t length = 0;
  const int address = strncmp(command[0], "http://", 7) == 0 || strncmp(command[0], "https://", 8) == 0;
  mcpl_status status = mcpl_client_on_stderr(client, show_stderr, command[0], NULL);
  if (status == MCPL_OK) {
    status = address ? mcpl_client_connect(client, command[0])
                     : mcpl_client_spawn(client, (const char *const *)command, count);
  }
  if (status == MCPL_OK) {
    status = mcpl_client_info(client, &info, &info_length);
  }
  if (status == MCPL_OK) {
    status = mcpl_client_list_tools(client, NULL, &tools, &length);
  }
  if (status == MCPL_OK) {
    char *name = NULL;
    mcpl_json_string(info, info_length, "/serverInfo/name", &name, NULL);
    printf("%s\n", name == NULL ? "a server" : name);
    mcpl_string_free(name);
    print_tools(tools, length);
  } else {
    complain(command[0]);
  }
  mcpl_string_free(info);
  mcpl_string_free(tools);
  mcpl_client_free(client);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: host PROGRAM-OR-URL [ARGUMENT...] [-- PROGRAM-OR-URL [ARGUMENT...]]...\n");
    return EXIT_FAILURE;
  }
  int failed = 0;
  int begin = 1;
  for (int end = 1; end <= argc; end++) {
    if (end == argc || strcmp(argv[end], "--") == 0) {
      if (end > begin && print_server(argv + begin, (size_t)(end - begin)) != MCPL_OK) {
        failed = 1;
      }
      begin = end + 1;
    }
  }
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

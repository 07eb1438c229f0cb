/* Signing in: an authorization server, a server that requires its tokens, and a client that gets one.
 *
 *     signing-in
 *
 * Starts a small authorization server (tests/authorization), which needs the Rust toolchain, so run it within the
 * checkout. In your program, leave "browser" out: then the system's browser opens, and the user consents there.
 */

#include <mcpline.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *doing) {
  const mcpl_error *error = mcpl_last_error();
  fprintf(stderr, "signing-in: %s: %s: %s\n", doing, mcpl_status_name(mcpl_error_status(error)),
          mcpl_error_message(error));
  return EXIT_FAILURE;
}

/* The authorization server: a child process that prints its URLs on the first line, and ends when its input ends. */

static pid_t start_issuer(int *input, char *line, int size) {
  int in[2];
  int out[2];
  if (pipe(in) != 0 || pipe(out) != 0) {
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execlp("cargo", "cargo", "run", "--quiet", "--package", "authorization-server", (char *)NULL);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  *input = in[1];
  FILE *output = fdopen(out[0], "r");
  const int has_line = child > 0 && output != NULL && fgets(line, size, output) != NULL;
  if (output != NULL) {
    fclose(output);
  }
  return has_line ? child : -1;
}

/* Acts as the browser: requests a URL of this machine, and follows its redirects. */

static int go(const char *url, char *location, size_t size) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  char place[64];
  int port = 0;
  int path = 0;
  if (sscanf(url, "http://%63[^:]:%d%n", place, &port, &path) < 2 ||
      inet_pton(AF_INET, place, &address.sin_addr) != 1) {
    return -1;
  }
  address.sin_port = htons((uint16_t)port);
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  FILE *stream = NULL;
  if (socket_ < 0 || connect(socket_, (struct sockaddr *)&address, sizeof address) != 0 ||
      (stream = fdopen(socket_, "r+")) == NULL) {
    return -1;
  }
  fprintf(stream, "GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n", url + path, place, port);
  fflush(stream);
  char line[4096];
  location[0] = '\0';
  while (fgets(line, sizeof line, stream) != NULL) {
    if (strncasecmp(line, "location: ", 10) == 0) {
      line[strcspn(line, "\r\n")] = '\0';
      snprintf(location, size, "%s", line + 10);
    }
  }
  fclose(stream);
  return 0;
}

/* Called instead of a browser, because the client's options say so. */
static void browse(mcpl_input_request *request, const char *params, size_t length, void *user) {
  (void)user;
  char *url = NULL;
  char next[4096] = "";
  char last[4096] = "";
  if (mcpl_json_string(params, length, "/url", &url, NULL) == MCPL_OK && go(url, next, sizeof next) == 0 &&
      go(next, last, sizeof last) == 0) {
    mcpl_input_request_answer(request, "{}", MCPL_AUTO_LENGTH);
  } else {
    mcpl_input_request_refuse(request, -32603, "the browser got lost", NULL, 0);
  }
  mcpl_string_free(url);
}

/* The server. */

static void answer_caller(mcpl_call *call, const char *before, const char *after) {
  char *info = NULL;
  char *subject = NULL;
  size_t length = 0;
  char text[256];
  if (mcpl_call_info(call, &info, &length) == MCPL_OK) {
    mcpl_json_string(info, length, "/auth/subject", &subject, NULL);
  }
  snprintf(text, sizeof text, "%s%s%s", before, subject == NULL ? "nobody" : subject, after);
  mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
  mcpl_string_free(subject);
  mcpl_string_free(info);
}

static void whoami(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  answer_caller(call, "", "");
}

static void publish(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  answer_caller(call, "published, for ", " may");
}

static uint16_t free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  const int bound = bind(probe, (struct sockaddr *)&address, length) == 0 &&
                    getsockname(probe, (struct sockaddr *)&address, &length) == 0;
  close(probe);
  return bound ? ntohs(address.sin_port) : 8000;
}

static mcpl_status serve(mcpl_server *server, const char *resource, uint16_t port, const char *issuer) {
  mcpl_handler_options needs = {0};
  needs.size = sizeof needs;
  needs.scopes = "publish";
  mcpl_server_add_tool(server, "whoami", "Who calls", NULL, whoami, NULL, NULL);
  mcpl_server_add_tool_with(server, "{\"name\": \"publish\", \"inputSchema\": {\"type\": \"object\"}}",
                            MCPL_AUTO_LENGTH, &needs, publish, NULL, NULL);
  char options[512];
  snprintf(options, sizeof options,
           "{\"auth\": {\"resource\": \"%s\", \"issuers\": [\"%s\"], \"required_scopes\": [\"read\"]}}", resource,
           issuer);
  return mcpl_server_start_http(server, "127.0.0.1", port, options, NULL);
}

/* The client. */

static int print_call(mcpl_client *client, const char *tool, const char *before, const char *after) {
  char *result = NULL;
  char *text = NULL;
  size_t length = 0;
  if (mcpl_client_call_tool(client, tool, NULL, 0, NULL, &result, &length) != MCPL_OK) {
    return failed(tool);
  }
  mcpl_json_string(result, length, "/content/0/text", &text, NULL);
  printf("%s%s%s", before, text, after);
  mcpl_string_free(text);
  mcpl_string_free(result);
  return EXIT_SUCCESS;
}

static int print_tools(mcpl_client *client) {
  char *tools = NULL;
  size_t length = 0;
  if (mcpl_client_list_tools(client, NULL, &tools, &length) != MCPL_OK) {
    return failed("listing tools");
  }
  const char *tool = NULL;
  size_t tool_length = 0;
  printf("tools: ");
  for (size_t index = 0; mcpl_json_item(tools, length, index, NULL, &tool, &tool_length) == MCPL_OK; index++) {
    char *name = NULL;
    mcpl_json_string(tool, tool_length, "/name", &name, NULL);
    printf("%s%s", index == 0 ? "" : ", ", name);
    mcpl_string_free(name);
  }
  printf("\n");
  mcpl_string_free(tools);
  return EXIT_SUCCESS;
}

static int sign_in(mcpl_client *client, const char *resource) {
  const char *options = "{\"auth\": {\"oauth\": {\"client_name\": \"Example host\","
                        " \"user_agent\": {\"loopback\": {\"browser\": \"host\"}}}}}";
  if (mcpl_client_on_authorize(client, browse, NULL, NULL) != MCPL_OK ||
      mcpl_client_set_url(client, resource, options) != MCPL_OK || mcpl_client_open(client) != MCPL_OK) {
    return failed("signing in");
  }
  /* The token has the scope "read" only. The server's challenge names the scope that publishing needs, and the user
   * consents again. */
  return print_call(client, "whoami", "signed in as ", "; ") || print_tools(client) ||
         print_call(client, "publish", "", "\n") || print_tools(client);
}

int main(void) {
  char line[512];
  char *issuer = NULL;
  int input = -1;
  const pid_t issuing = start_issuer(&input, line, sizeof line);
  if (issuing < 0 || mcpl_json_string(line, strlen(line), "/issuer", &issuer, NULL) != MCPL_OK) {
    fprintf(stderr, "signing-in: the authorization server doesn't start\n");
    return EXIT_FAILURE;
  }
  const uint16_t port = free_port();
  char resource[64];
  snprintf(resource, sizeof resource, "http://127.0.0.1:%d/mcp", port);
  mcpl_server *server = mcpl_server_new("notes", "1.0.0");
  mcpl_client *client = mcpl_client_new("host", "1.0.0");
  const int ended = serve(server, resource, port, issuer) == MCPL_OK ? sign_in(client, resource) : failed("serving");
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_string_free(issuer);
  close(input);
  waitpid(issuing, NULL, 0);
  return ended;
}

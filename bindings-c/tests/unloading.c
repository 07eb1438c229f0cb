/* Loads and unloads the library like a plugin: none of its threads remains, and repeated rounds leak nothing.
 *
 *     unloading LIBRARY
 */

#include <mcpline.h>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* TEST_TIMEOUT is in hundredths of a second. */
enum { ROUNDS = 5, TEST_TIMEOUT = 6000 };

#define FUNCTIONS(each)                                                                                                \
  each(mcpl_server_new) each(mcpl_server_add_tool) each(mcpl_server_free) each(mcpl_server_start_http)                 \
      each(mcpl_call_reply_text) each(mcpl_client_new) each(mcpl_client_connect) each(mcpl_client_call_tool)           \
          each(mcpl_client_free) each(mcpl_string_free) each(mcpl_loop_new) each(mcpl_loop_fd) each(mcpl_loop_free)

struct library {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
};

static struct library library;

static void reply(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  library.mcpl_call_reply_text(call, "loaded", MCPL_AUTO_LENGTH);
}

static int entries(const char *folder) {
  DIR *opened = opendir(folder);
  int count = 0;
  while (opened != NULL && readdir(opened) != NULL) {
    count++;
  }
  if (opened != NULL) {
    closedir(opened);
  }
  return count;
}

static void require(int truth, const char *what) {
  if (!truth) {
    fprintf(stderr, "not so: %s\n", what);
    abort();
  }
}

/* Serves and calls over HTTP, so that there are sockets too. */
static void use(void) {
  uint16_t port = 0;
  char url[64];
  char *result = NULL;
  mcpl_server *server = library.mcpl_server_new("server", "1");
  mcpl_client *client = library.mcpl_client_new("client", "1");
  mcpl_loop *loop = library.mcpl_loop_new();
  require(library.mcpl_loop_fd(loop) >= 0, "a loop has a descriptor");
  require(library.mcpl_server_add_tool(server, "reply", "Replies", NULL, reply, NULL, NULL) == MCPL_OK, "a tool");
  require(library.mcpl_server_start_http(server, "127.0.0.1", 0, "{\"io_threads\":2}", &port) == MCPL_OK, "it serves");
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  require(library.mcpl_client_connect(client, url) == MCPL_OK, "a connection");
  require(library.mcpl_client_call_tool(client, "reply", NULL, 0, NULL, &result, NULL) == MCPL_OK, "a result");
  require(strstr(result, "loaded") != NULL, "the result says so");
  library.mcpl_string_free(result);
  library.mcpl_client_free(client);
  library.mcpl_server_free(server);
  library.mcpl_loop_free(loop);
}

static void load_and_use(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  require(handle != NULL, "the library loads");
#define FIND(name) *(void **)&library.name = dlsym(handle, #name);
  FUNCTIONS(FIND)
  use();
  require(dlclose(handle) == 0, "the library closes");
}

static void *load_elsewhere(void *path) {
  load_and_use(path);
  return NULL;
}

int main(int argc, char **argv) {
  require(argc == 2, "usage: unloading LIBRARY");
  const int threads = entries("/proc/self/task");
  int descriptors = 0;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t thread;
    if (round % 2 == 0) {
      load_and_use(argv[1]);
    } else {
      /* A thread that ends releases its thread-local storage of the library. */
      require(pthread_create(&thread, NULL, load_elsewhere, argv[1]) == 0, "a thread starts");
      require(pthread_join(thread, NULL) == 0, "it ends");
    }
    /* The system lists a thread a little longer than it takes to join it. */
    for (int wait = 0; entries("/proc/self/task") != threads && wait < TEST_TIMEOUT; wait++) {
      usleep(10000);
    }
    require(entries("/proc/self/task") == threads, "no thread stays");
    /* The loader may keep the library in memory, with two descriptors that are made once. */
    require(round == 0 || entries("/proc/self/fd") == descriptors, "no round leaves a descriptor");
    descriptors = entries("/proc/self/fd");
  }
  printf("1 passed, 0 failed\n");
  return EXIT_SUCCESS;
}

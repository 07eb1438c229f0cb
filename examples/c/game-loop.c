/* A game whose loop runs a fixed number of frames a second: a frame runs a few callbacks of the library, moves what is
 * in the world, and would draw it. A model plays along by tools.
 *
 *     game-loop [PORT]
 *
 * Serves over HTTP. Ends by SIGINT or SIGTERM.
 */

#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
  MOST_BALLS = 64,
  WIDTH = 320,
  /* A callback is one call: the rest of a burst waits for the next frame, so that no frame takes too long. */
  CALLBACKS_PER_FRAME = 8,
};

static const long FRAME_NANOSECONDS = 1000000000L / 60;

struct ball {
  int position;
  int speed;
};

struct world {
  struct ball balls[MOST_BALLS];
  int count;
  unsigned frame;
  int running;
};

static void spawn(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct world *world = user;
  int64_t speed = 0;
  mcpl_json_int64(arguments, length, "/speed", &speed);
  if (world->count == MOST_BALLS) {
    mcpl_call_fail(call, "the world is full", MCPL_AUTO_LENGTH);
    return;
  }
  world->balls[world->count++] = (struct ball){.position = 0, .speed = (int)speed};
  char text[48];
  snprintf(text, sizeof text, "ball %d, in frame %u", world->count, world->frame);
  mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
}

static void look(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  const struct world *world = user;
  mcpl_json *json = mcpl_json_new();
  mcpl_json_begin_array(json);
  for (int index = 0; index < world->count; index++) {
    mcpl_json_put_int64(json, world->balls[index].position);
  }
  mcpl_json_end_array(json);
  const char *text = NULL;
  size_t text_length = 0;
  if (mcpl_json_text(json, &text, &text_length) == MCPL_OK) {
    mcpl_call_reply_text(call, text, text_length);
  }
  mcpl_json_free(json);
}

static void ended(mcpl_server *server, const mcpl_error *error, void *user) {
  (void)server;
  if (error != NULL) {
    fprintf(stderr, "game-loop: %s\n", mcpl_error_message(error));
  }
  ((struct world *)user)->running = 0;
}

static void move(struct world *world) {
  world->frame++;
  for (int index = 0; index < world->count; index++) {
    struct ball *ball = &world->balls[index];
    ball->position += ball->speed;
    if (ball->position < 0 || ball->position > WIDTH) {
      ball->speed = -ball->speed;
      ball->position += 2 * ball->speed;
    }
  }
}

/* Returns when the next frame is due. */
static void wait_for(struct timespec *next) {
  next->tv_nsec += FRAME_NANOSECONDS;
  if (next->tv_nsec >= 1000000000L) {
    next->tv_nsec -= 1000000000L;
    next->tv_sec++;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) != 0) {
  }
}

int main(int argc, char **argv) {
  static struct world world = {.running = 1};
  uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("game", "1.0.0");
  int result = EXIT_FAILURE;
  if (mcpl_server_use_loop(server, loop) == MCPL_OK &&
      mcpl_server_add_tool(server, "spawn", "Throws a ball into the world",
                           "{\"type\": \"object\", \"properties\": {\"speed\": {\"type\": \"integer\","
                           " \"minimum\": -100, \"maximum\": 100}}, \"required\": [\"speed\"]}",
                           spawn, &world, NULL) == MCPL_OK &&
      mcpl_server_add_tool(server, "look", "The positions of all balls", NULL, look, &world, NULL) == MCPL_OK &&
      mcpl_server_on_end(server, ended, &world, NULL) == MCPL_OK && mcpl_server_stop_on_signals(server) == MCPL_OK &&
      mcpl_server_start_http(server, "127.0.0.1", port, NULL, &port) == MCPL_OK) {
    printf("listening on http://127.0.0.1:%u/mcp\n", (unsigned)port);
    fflush(stdout);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (world.running) {
      mcpl_loop_dispatch(loop, CALLBACKS_PER_FRAME, NULL);
      move(&world);
      wait_for(&next);
    }
    result = EXIT_SUCCESS;
  } else {
    fprintf(stderr, "game-loop: %s\n", mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(server);
  mcpl_loop_free(loop);
  return result;
}

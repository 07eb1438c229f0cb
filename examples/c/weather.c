/* A minimal stdio server: a tool, a resource and a prompt. */

#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arguments have been validated against the tool's schema. */
static void forecast(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)user;
  char *city = NULL;
  int64_t days = 1;
  mcpl_json_string(arguments, length, "/city", &city, NULL);
  mcpl_json_int64(arguments, length, "/days", &days);
  if (days > 7) {
    mcpl_call_fail(call, "I can see seven days ahead at most", MCPL_AUTO_LENGTH);
  } else {
    mcpl_json *json = mcpl_json_new();
    mcpl_json_begin_object(json);
    mcpl_json_name(json, "city");
    mcpl_json_put_string(json, city, MCPL_AUTO_LENGTH);
    mcpl_json_name(json, "days");
    mcpl_json_put_int64(json, days);
    mcpl_json_name(json, "summary");
    mcpl_json_put_string(json, "sunny", MCPL_AUTO_LENGTH);
    mcpl_json_end_object(json);
    const char *text = NULL;
    size_t text_length = 0;
    if (mcpl_json_text(json, &text, &text_length) == MCPL_OK) {
      mcpl_call_reply_structured(call, text, text_length);
    }
    mcpl_json_free(json);
  }
  mcpl_string_free(city);
}

static void units(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments;
  (void)length;
  (void)user;
  mcpl_call_reply_text(call, "Celsius", MCPL_AUTO_LENGTH);
}

static void plan(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)user;
  char *city = NULL;
  if (mcpl_json_string(arguments, length, "/city", &city, NULL) == MCPL_OK) {
    char words[256];
    snprintf(words, sizeof words, "Plan a quiet day in %.200s.", city);
    mcpl_call_reply_text(call, words, MCPL_AUTO_LENGTH);
    mcpl_string_free(city);
  }
}

int main(void) {
  mcpl_server *server = mcpl_server_new("weather", "1.0.0");
  mcpl_status status =
      mcpl_server_add_tool(server, "forecast", "Forecast for a city",
                           "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"},"
                           " \"days\": {\"type\": \"integer\", \"default\": 1}}, \"required\": [\"city\"]}",
                           forecast, NULL, NULL);
  if (status == MCPL_OK) {
    status = mcpl_server_add_resource(server, "config://units", "units", "text/plain", units, NULL, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_add_prompt(server, "plan", "Plan a day", "[{\"name\": \"city\", \"required\": true}]", plan,
                                    NULL, NULL);
  }
  if (status == MCPL_OK) {
    /* The library handles signals, as this program does nothing else: on SIGTERM calls in flight are still answered. */
    status = mcpl_server_stop_on_signals(server);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_run_stdio(server);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "weather: %s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(server);
  return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The authorization scenarios. */
#define _POSIX_C_SOURCE 200809L
#include "authorization.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* The redirect URI. Nothing listens there: the user agent reads the parameters from the redirect. */
#define REDIRECT "http://localhost:3000/callback"
/* The client's metadata document, which the suite's authorization server knows. */
#define DOCUMENT "https://conformance-test.local/client-metadata.json"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What a scenario needs besides a user. */
typedef enum {
    NOTHING,
    CIMD,
    CREDENTIALS,
    DPOP,
    ITSELF,
    ENTERPRISE,
    WORKLOAD,
} means;

typedef struct {
    const char *name;
    means means;
    const char *refused; /* the expected error code, if authorization must fail */
} scenario;

static const scenario SCENARIOS[] = {
    {"metadata-default", NOTHING, NULL},
    {"metadata-var1", NOTHING, NULL},
    {"metadata-var2", NOTHING, NULL},
    {"metadata-var3", NOTHING, NULL},
    {"scope-from-www-authenticate", NOTHING, NULL},
    {"scope-from-scopes-supported", NOTHING, NULL},
    {"scope-omitted-when-undefined", NOTHING, NULL},
    {"scope-step-up", NOTHING, NULL},
    {"token-endpoint-auth-basic", NOTHING, NULL},
    {"token-endpoint-auth-post", NOTHING, NULL},
    {"token-endpoint-auth-none", NOTHING, NULL},
    {"offline-access-scope", NOTHING, NULL},
    {"offline-access-not-supported", NOTHING, NULL},
    {"authorization-server-migration", NOTHING, NULL},
    {"iss-supported", NOTHING, NULL},
    {"iss-not-advertised", NOTHING, NULL},
    {"2025-03-26-oauth-metadata-backcompat", NOTHING, NULL},
    {"2025-03-26-oauth-endpoint-fallback", NOTHING, NULL},
    {"basic-cimd", CIMD, NULL},
    {"pre-registration", CREDENTIALS, NULL},
    {"dpop", DPOP, NULL},
    {"dpop-nonce", DPOP, NULL},
    {"client-credentials-basic", ITSELF, NULL},
    {"client-credentials-jwt", ITSELF, NULL},
    {"enterprise-managed-authorization", ENTERPRISE, NULL},
    {"wif-jwt-bearer", WORKLOAD, NULL},
    {"scope-retry-limit", NOTHING, "insufficient_scope"},
    {"resource-mismatch", NOTHING, "resource_mismatch"},
    {"metadata-issuer-mismatch", NOTHING, "metadata_issuer_mismatch"},
    {"iss-supported-missing", NOTHING, "authorization_response_mismatch"},
    {"iss-wrong-issuer", NOTHING, "authorization_response_mismatch"},
    {"iss-unexpected", NOTHING, "authorization_response_mismatch"},
    {"iss-normalized", NOTHING, "authorization_response_mismatch"},
};

static const char *context(void) {
    const char *given = getenv("MCP_CONFORMANCE_CONTEXT");
    return given == NULL ? "{}" : given;
}

/* Returns a string of the scenario's context, NULL if it is missing. Release with free. */
static char *said(const char *pointer) {
    char *text = NULL;
    mcpl_json_string(context(), strlen(context()), pointer, &text, NULL);
    return text;
}

static void put(mcpl_json *json, const char *name, const char *text) {
    if (text != NULL) {
        mcpl_json_name(json, name);
        mcpl_json_put_string(json, text, MCPL_AUTO_LENGTH);
    }
}

static void put_said(mcpl_json *json, const char *name, const char *pointer) {
    char *text = said(pointer);
    put(json, name, text);
    mcpl_string_free(text);
}

/* Writes the credentials in the scenario's context. */
static void put_credentials(mcpl_json *json) {
    mcpl_json_name(json, "credentials");
    mcpl_json_begin_array(json);
    mcpl_json_begin_object(json);
    put_said(json, "client_id", "/client_id");
    put_said(json, "issuer", "/issuer");
    put_said(json, "secret", "/client_secret");
    put_said(json, "private_key", "/private_key_pem");
    put_said(json, "algorithm", "/signing_algorithm");
    mcpl_json_end_object(json);
    mcpl_json_end_array(json);
}

static void put_means(mcpl_json *json, means means) {
    switch (means) {
    case CIMD: put(json, "client_id_metadata_url", DOCUMENT); break;
    case DPOP:
        mcpl_json_name(json, "dpop");
        mcpl_json_put_bool(json, true);
        break;
    case ITSELF: put(json, "grant", "client_credentials"); break;
    case WORKLOAD: put(json, "grant", "workload_identity"); break;
    case ENTERPRISE:
        mcpl_json_name(json, "grant");
        mcpl_json_begin_object(json);
        mcpl_json_name(json, "enterprise");
        mcpl_json_begin_object(json);
        put_said(json, "token_endpoint", "/idp_token_endpoint");
        put_said(json, "client_id", "/idp_client_id");
        mcpl_json_end_object(json);
        mcpl_json_end_object(json);
        break;
    case NOTHING:
    case CREDENTIALS: break;
    }
    if (means != NOTHING && means != CIMD && means != DPOP) {
        put_credentials(json);
    }
}

/* Sends a request to `http://PLACE/PATH`, and stores the beginning of the response. */
static bool fetch(const char *url, char *answer, size_t size) {
    char place[256], port[16] = "80";
    const char *rest = strncmp(url, "http://", 7) == 0 ? url + 7 : url;
    size_t length = strcspn(rest, "/");
    if (length >= sizeof place) {
        return false;
    }
    memcpy(place, rest, length);
    place[length] = '\0';
    char name[256];
    strcpy(name, place);
    char *colon = strrchr(name, ':');
    if (colon != NULL) {
        *colon = '\0';
        snprintf(port, sizeof port, "%s", colon + 1);
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(name, port, &hints, &found) != 0) {
        return false;
    }
    int stream = -1;
    for (struct addrinfo *at = found; at != NULL && stream < 0; at = at->ai_next) {
        stream = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (stream >= 0 && connect(stream, at->ai_addr, at->ai_addrlen) != 0) {
            close(stream);
            stream = -1;
        }
    }
    freeaddrinfo(found);
    if (stream < 0) {
        return false;
    }
    const char *parts[] = {"GET ", rest[length] == '\0' ? "/" : rest + length, " HTTP/1.1\r\nHost: ", place,
                           "\r\nConnection: close\r\n\r\n"};
    bool sent = true;
    for (size_t index = 0; index < COUNT(parts); index++) {
        sent = sent && send(stream, parts[index], strlen(parts[index]), 0) == (ssize_t)strlen(parts[index]);
    }
    size_t filled = 0;
    ssize_t count = 1;
    while (sent && count > 0 && filled + 1 < size) {
        count = recv(stream, answer + filled, size - 1 - filled, 0);
        filled += count > 0 ? (size_t)count : 0;
    }
    answer[filled] = '\0';
    close(stream);
    return filled > 0;
}

/* Returns the target of a redirect, NULL if the response is none. */
static const char *location(char *answer) {
    for (char *line = strtok(answer, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        if (strncasecmp(line, "location:", 9) == 0) {
            return line + 9 + strspn(line + 9, " ");
        }
    }
    return NULL;
}

static void answer_with(mcpl_input_request *input, const char *name, const char *text) {
    mcpl_json *result = mcpl_json_new();
    mcpl_json_begin_object(result);
    put(result, name, text);
    mcpl_json_end_object(result);
    const char *written = NULL;
    size_t length = 0;
    if (mcpl_json_text(result, &written, &length) == MCPL_OK) {
        mcpl_input_request_answer(input, written, length);
    }
    mcpl_json_free(result);
}

/* Requests the URL at the authorization server, which consents immediately, and answers with the target of its
 * redirect; or answers with the assertion of the scenario. */
static void authorize(mcpl_input_request *input, const char *params, size_t length, void *user) {
    (void)user;
    char *method = NULL, *url = NULL;
    mcpl_json_string(params, length, "/method", &method, NULL);
    if (method != NULL && strcmp(method, "auth/open") == 0) {
        char answer[16384];
        const char *found = NULL;
        if (mcpl_json_string(params, length, "/url", &url, NULL) == MCPL_OK && fetch(url, answer, sizeof answer)) {
            found = location(answer);
        }
        if (found != NULL) {
            answer_with(input, "url", found);
        } else {
            mcpl_input_request_refuse(input, -32603, "nobody was redirected", NULL, 0);
        }
    } else {
        bool of_workload = method != NULL && strcmp(method, "auth/assertion") == 0;
        char *word = said(of_workload ? "/valid_jwt" : "/idp_id_token");
        answer_with(input, of_workload ? "assertion" : "id_token", word);
        mcpl_string_free(word);
    }
    mcpl_string_free(url);
    mcpl_string_free(method);
}

static mcpl_status set_url(mcpl_client *client, const char *url, means means) {
    mcpl_json *options = mcpl_json_new();
    mcpl_json_begin_object(options);
    mcpl_json_name(options, "auth");
    mcpl_json_begin_object(options);
    mcpl_json_name(options, "oauth");
    mcpl_json_begin_object(options);
    put(options, "client_name", "everything-client");
    mcpl_json_name(options, "user_agent");
    mcpl_json_begin_object(options);
    mcpl_json_name(options, "host");
    mcpl_json_begin_object(options);
    put(options, "redirect_uri", REDIRECT);
    mcpl_json_end_object(options);
    mcpl_json_end_object(options);
    put_means(options, means);
    mcpl_json_end_object(options);
    mcpl_json_end_object(options);
    mcpl_json_end_object(options);
    const char *text = NULL;
    mcpl_status status = mcpl_json_text(options, &text, NULL);
    if (status == MCPL_OK) {
        status = mcpl_client_set_url(client, url, text);
    }
    mcpl_json_free(options);
    return status;
}

/* Lists tools, and calls one unless authorization must fail. */
static mcpl_status use(mcpl_client *client, bool whole) {
    char *tools = NULL, *result = NULL;
    mcpl_status status = mcpl_client_open(client);
    if (status == MCPL_OK) {
        status = mcpl_client_list_tools(client, NULL, &tools, NULL);
    }
    if (status == MCPL_OK && whole) {
        status = mcpl_client_call_tool(client, "test-tool", "{}", MCPL_AUTO_LENGTH, NULL, &result, NULL);
    }
    mcpl_string_free(result);
    mcpl_string_free(tools);
    return status;
}

/* Whether the last error is an authorization error with this code. */
static bool is_refused_for(mcpl_status status, const char *code) {
    const char *details = mcpl_error_details(mcpl_last_error());
    char *reason = NULL;
    bool is = status == MCPL_AUTHORIZATION_FAILED && details != NULL &&
              mcpl_json_string(details, strlen(details), "/reason", &reason, NULL) == MCPL_OK &&
              strcmp(reason, code) == 0;
    mcpl_string_free(reason);
    return is;
}

int authorization_play(mcpl_client *client, const char *wanted, const char *url) {
    const scenario *scenario = SCENARIOS, *end = SCENARIOS + COUNT(SCENARIOS);
    while (scenario < end && strcmp(scenario->name, wanted) != 0) {
        scenario++;
    }
    if (scenario == end) {
        fprintf(stderr, "no scenario is named \"auth/%s\"\n", wanted);
        return EXIT_FAILURE;
    }
    mcpl_status status = mcpl_client_on_authorize(client, authorize, NULL, NULL);
    if (status == MCPL_OK) {
        status = set_url(client, url, scenario->means);
    }
    if (status == MCPL_OK) {
        status = use(client, scenario->refused == NULL);
    }
    bool is_right = scenario->refused == NULL ? status == MCPL_OK : is_refused_for(status, scenario->refused);
    if (!is_right) {
        fprintf(stderr, "%s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
    }
    mcpl_client_close(client);
    mcpl_client_free(client);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

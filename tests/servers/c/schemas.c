/* Tools whose input schema has more than types. */
#include <inttypes.h>
#include <stdio.h>

#include "fixtures.h"

static void json_schema(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    reply_formatted(call, "JSON Schema 2020-12 tool called with: %.*s", (int)length, arguments);
}

static void custom_header(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *value = NULL;
    char count[24] = "none";
    const char *flag = "none";
    int64_t counted = 0;
    bool raised = false;
    mcpl_json_string(arguments, length, "/value", &value, NULL);
    if (mcpl_json_int64(arguments, length, "/count", &counted) == MCPL_OK) {
        snprintf(count, sizeof count, "%" PRId64, counted);
    }
    if (mcpl_json_bool(arguments, length, "/flag", &raised) == MCPL_OK) {
        flag = raised ? "true" : "false";
    }
    reply_formatted(call, "value=%s count=%s flag=%s", value == NULL ? "none" : value, count, flag);
    mcpl_string_free(value);
}

static const tool TOOLS[] = {
    {.name = "json_schema_2020_12_tool",
     .description = "Has an input schema with keywords of JSON Schema 2020-12",
     .input = JSON({
         "$schema": "https://json-schema.org/draft/2020-12/schema",
         "type": "object",
         "$defs": {"address": {
             "$anchor": "addressDef",
             "type": "object",
             "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
         }},
         "properties": {
             "name": {"type": "string"},
             "address": {"$ref": "#/$defs/address"},
             "contactMethod": {"type": "string", "enum": ["phone", "email"]},
             "phone": {"type": "string"},
             "email": {"type": "string"}
         },
         "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
         "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
         "then": {"required": ["phone"]},
         "else": {"required": ["email"]},
         "additionalProperties": false
     }),
     .handler = json_schema},
    {.name = "test_custom_header",
     .description = "Has arguments that clients repeat in HTTP headers",
     .input = JSON({
         "type": "object",
         "properties": {
             "value": {"type": "string", "x-mcp-header": "Value"},
             "count": {"type": "integer", "x-mcp-header": "Count"},
             "flag": {"type": "boolean", "x-mcp-header": "Flag"}
         }
     }),
     .handler = custom_header},
};

void add_schema_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}

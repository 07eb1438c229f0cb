// Tools whose input schema has more than types.
import { optional, string } from "./fixtures.mjs";

const JSON_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } },
  },
  properties: {
    name: string,
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

export function addSchemaTools(server) {
  server.tool(
    "json_schema_2020_12_tool",
    { description: "Has an input schema with keywords of JSON Schema 2020-12", input: JSON_SCHEMA },
    (args) => `JSON Schema 2020-12 tool called with: ${JSON.stringify(args)}`,
  );

  server.tool(
    "test_custom_header",
    {
      description: "Has arguments that clients repeat in HTTP headers",
      input: optional({
        value: { type: "string", "x-mcp-header": "Value" },
        count: { type: "integer", "x-mcp-header": "Count" },
        flag: { type: "boolean", "x-mcp-header": "Flag" },
      }),
    },
    ({ value = "none", count = "none", flag = "none" }) => `value=${value} count=${count} flag=${flag}`,
  );
}

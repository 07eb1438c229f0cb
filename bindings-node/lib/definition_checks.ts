/** Checks of the values in the options of a feature that its definition consists of. */

import {
  BOOLEAN,
  checkOptions,
  checkValues,
  type Expected,
  isObject,
  NUMBER,
  OBJECT,
  STRING,
  STRINGS,
} from "./option_checks.js";
import { optionNames } from "./option_names.js";
import type { Annotations, ToolAnnotations } from "./protocol.js";

const ICONS: Expected = [
  'an array of icons, such as [{ src: "https://example.com/icon.png" }]',
  (value) =>
    Array.isArray(value) &&
    value.every((each) => isObject(each) && typeof (each as { src?: unknown }).src === "string"),
];

const OPTIONS: Readonly<Record<string, Expected>> = {
  title: STRING,
  description: STRING,
  mimeType: STRING,
  size: NUMBER,
  icons: ICONS,
  meta: OBJECT,
  scopes: STRINGS,
  tags: STRINGS,
  annotations: OBJECT,
  runOnce: BOOLEAN,
  timeout: NUMBER,
  rate: OBJECT,
};

const TOOL: Record<keyof ToolAnnotations, Expected> = {
  title: STRING,
  readOnlyHint: BOOLEAN,
  destructiveHint: BOOLEAN,
  idempotentHint: BOOLEAN,
  openWorldHint: BOOLEAN,
};
const RESOURCE: Record<keyof Annotations, Expected> = {
  audience: STRINGS,
  priority: NUMBER,
  lastModified: STRING,
};
/** The members of annotations, by kind of feature. */
const ANNOTATIONS = {
  tool: { expected: TOOL, known: optionNames<ToolAnnotations>(TOOL) },
  resource: { expected: RESOURCE, known: optionNames<Annotations>(RESOURCE) },
};

/**
 * Checks the values that the definition of a feature consists of.
 *
 * @param where The feature, for the message: ``tool `forecast` ``.
 * @param kind Whose annotations it has.
 * @param isNullable Whether `null` removes a value.
 */
export function checkDefinition(
  where: string,
  options: object,
  kind: keyof typeof ANNOTATIONS,
  isNullable = false,
): void {
  checkValues(where, options, OPTIONS, isNullable);
  const { annotations } = options as { annotations?: object | null };
  if (annotations !== undefined && annotations !== null) {
    const { expected, known } = ANNOTATIONS[kind];
    const place = `${where}: \`annotations\``;
    checkOptions(place, annotations, known);
    checkValues(place, annotations, expected);
  }
}

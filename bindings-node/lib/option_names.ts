/** Names of options, as the core writes them and as this package does. */

/** The package's names of options, by the core's. */
const names = new Map<string, string>();

/** Converts a name to snake case. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

/** Returns the names of all options of a type. The compiler checks that none is missing. */
export function optionNames<T>(options: Record<keyof T, unknown>): readonly string[] {
  const list = Object.keys(options);
  registerNames(list);
  return list;
}

/** Registers names for {@link withOwnNames}. */
export function registerNames(list: readonly string[]): void {
  for (const name of list) {
    const core = snakeCase(name);
    if (core !== name) {
      names.set(core, name);
    }
  }
}

/** Replaces the core's names of options in one of its messages: at the start, and in backticks. */
export function withOwnNames(message: string): string {
  const own = (text: string, name: string) => text.replace(name, names.get(name) ?? name);
  return message.replace(/^([a-z]+(?:_[a-z]+)+)(?=:)/, own).replace(/`([a-z]+(?:_[a-z]+)+)`/g, own);
}

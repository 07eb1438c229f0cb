/** The features of a server by name: their definitions go to the core, their handlers to the table of handlers. */

import { attempt } from "./errors.js";
import { checkChanges, checkSelection, checkTransform } from "./feature_checks.js";
import type { DescriptionChanges, FeatureSelection, ToolTransform } from "./feature_options.js";
import type { HandlerTable, RegisteredHandler } from "./handlers.js";
import type { FeatureKind, NativeServer } from "./native.js";

/** A feature to register. */
export interface Feature extends RegisteredHandler {
  /** Its name in the core, if it is not the `name` that errors of the handler are reported with. */
  readonly key?: string;
  /** What clients see of it, as in the specification. */
  readonly definition: object | null;
  /** Settings of the library, in the core's case. */
  readonly options?: object;
}

/** Registers, changes and removes features. */
export class FeatureRegistry {
  /** Numbers of handlers by feature, to be removed with it. */
  readonly #numbers = new Map<string, number>();
  #keepsHandlers = false;

  constructor(
    private readonly native: NativeServer,
    private readonly handlers: HandlerTable,
  ) {}

  /** @throws UsageError if the core refuses the definition. */
  add(feature: Feature): void {
    const { kind, name, key = name, definition, options } = feature;
    const number = this.handlers.add(feature);
    const given = options === undefined ? undefined : JSON.stringify(options);
    try {
      attempt(() => {
        this.native.addFeature(kind, JSON.stringify(definition), given, number);
      });
    } catch (error) {
      this.handlers.delete(number);
      throw error;
    }
    this.#numbers.set(`${kind} ${key}`, number);
  }

  /** Adds handlers that belong to no feature, while `register` passes their numbers to the core. */
  withHandlers<T>(handlers: readonly RegisteredHandler[], register: (numbers: number[]) => T): T {
    const numbers = handlers.map((handler) => this.handlers.add(handler));
    try {
      return register(numbers);
    } catch (error) {
      for (const number of numbers) {
        this.handlers.delete(number);
      }
      throw error;
    }
  }

  /** Adds a middleware of the library; the definition is JSON. */
  addBuiltInMiddleware(definition: string, scope: object): void {
    attempt(() => {
      this.native.addBuiltInMiddleware(definition, JSON.stringify(scope));
    });
  }

  /** Adds fixed candidates for the completion of an argument. */
  addCandidates(reference: string, argument: string, candidates: readonly string[]): void {
    attempt(() => {
      this.native.addCandidates(reference, argument, [...candidates]);
    });
  }

  /** Returns whether the feature was registered. */
  remove(kind: FeatureKind, name: string): boolean {
    const wasRegistered = this.native.removeFeature(kind, name);
    if (wasRegistered) {
      this.#forget(kind, name);
      if (kind === "resource") {
        this.#forget("resource_list", name);
      }
    }
    return wasRegistered;
  }

  update(kind: "tool" | "resource" | "prompt", name: string, changes: object): void {
    checkChanges(kind, name, changes);
    const { meta, ...rest } = changes as DescriptionChanges;
    const members = meta === undefined ? rest : { ...rest, _meta: meta };
    attempt(() => {
      this.native.updateFeature(kind, name, JSON.stringify(members));
    });
    if (kind !== "resource") {
      this.#rename(kind, name, rest.name);
    }
  }

  transformTool(name: string, transform: ToolTransform): void {
    checkTransform(name, transform);
    attempt(() => {
      this.native.transformTool(name, JSON.stringify(transform));
    });
    this.#rename("tool", name, transform.name);
  }

  /** Returns how many features were changed. */
  setEnabled(enabled: boolean, selection: FeatureSelection): number {
    checkSelection(selection);
    const { kinds, names, tags } = selection;
    const copied = [kinds, names, tags].map((texts) => (texts === undefined ? undefined : [...texts]));
    return attempt(() => this.native.setEnabled(enabled, copied[0], copied[1], copied[2]));
  }

  /** Keeps handlers whose features are removed, because another server has copies of these features. */
  keepHandlers(): void {
    this.#keepsHandlers = true;
  }

  #rename(kind: "tool" | "prompt", name: string, newName: string | undefined): void {
    const number = this.#numbers.get(`${kind} ${name}`);
    if (newName !== undefined && number !== undefined) {
      this.#numbers.delete(`${kind} ${name}`);
      this.#numbers.set(`${kind} ${newName}`, number);
    }
  }

  /** Drops the handler of a feature that was removed. That of a replaced one stays: calls of it may be queued. */
  #forget(kind: FeatureKind, name: string): void {
    const key = `${kind} ${name}`;
    const number = this.#numbers.get(key);
    if (number !== undefined) {
      this.#numbers.delete(key);
      if (!this.#keepsHandlers) {
        this.handlers.delete(number);
      }
    }
  }
}

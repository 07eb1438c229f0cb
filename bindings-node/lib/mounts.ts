/** Servers that are mounted in each other, and what a server finds in those that it is mounted in. */

import type { AsyncContext } from "./async_context.js";
import { attempt } from "./errors.js";
import { checkMount } from "./feature_checks.js";
import type { MountOptions } from "./feature_options.js";
import type { FeatureRegistry } from "./feature_registry.js";
import type { HttpExchange } from "./http.js";
import type { NativeServer } from "./native.js";
import type { Serving } from "./serving.js";

/** The servers that are mounted in a server, and those that it is mounted in. */
export class Mounts {
  readonly #mounted = new Set<Mounts>();
  readonly #parents = new Set<WeakRef<Mounts>>();
  /** Servers that this one was mounted in: calls that began there may still run. */
  #formerParents: WeakRef<Mounts>[] = [];

  constructor(
    private readonly native: NativeServer,
    private readonly registry: FeatureRegistry,
    private readonly serving: Serving,
  ) {}

  /** Mounts another server in this one. */
  mount(other: Mounts, options: MountOptions): void {
    checkMount(options);
    const { prefix, snapshot = false, tools } = options;
    attempt(() => {
      this.native.mount(other.native, prefix, snapshot, tools && JSON.stringify(tools));
    });
    if (snapshot) {
      other.#keepHandlers();
    }
    if (!this.#mounted.has(other)) {
      this.#mounted.add(other);
      other.#forgetParents();
      other.#parents.add(new WeakRef(this));
    }
  }

  /** Reverts {@link mount}. Returns whether the server was mounted. */
  unmount(other: Mounts): boolean {
    const wasMounted = this.native.unmount(other.native);
    this.#mounted.delete(other);
    other.#forgetParents(this);
    const others = other.#formerParents.filter((reference) => {
      const parent = reference.deref();
      return parent !== undefined && parent !== this;
    });
    other.#formerParents = [...others, new WeakRef<Mounts>(this)];
    return wasMounted;
  }

  /** Forgets this parent, and those that do not exist any longer. */
  #forgetParents(forgotten?: Mounts): void {
    for (const reference of this.#parents) {
      const parent = reference.deref();
      if (parent === undefined || parent === forgotten) {
        this.#parents.delete(reference);
      }
    }
  }

  /** The context of calls without one of their own: that of this server, or of one that it is mounted in. */
  context(): AsyncContext | undefined {
    let { context } = this.serving;
    for (const reference of this.#parents) {
      context ??= reference.deref()?.context();
    }
    return context;
  }

  /**
   * Returns an exchange of an HTTP application of this server, or of one that it is or was mounted in.
   *
   * @param searched Those that need not be searched again: servers may have been mounted in each other in turn.
   */
  exchange(number: number, searched = new Set<Mounts>()): HttpExchange | undefined {
    searched.add(this);
    let exchange = this.serving.exchange(number);
    for (const reference of [...this.#parents, ...this.#formerParents]) {
      const parent = reference.deref();
      if (exchange === undefined && parent !== undefined && !searched.has(parent)) {
        exchange = parent.exchange(number, searched);
      }
    }
    return exchange;
  }

  /** Keeps handlers that are removed: another server has copies of the features, also of those that are mounted here. */
  #keepHandlers(): void {
    this.registry.keepHandlers();
    for (const mounted of this.#mounted) {
      mounted.#keepHandlers();
    }
  }
}

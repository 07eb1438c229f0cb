/** How a program is started again, for worker processes. */

import { isMainThread } from "node:worker_threads";

import { UsageError } from "./errors.js";
import { secondsFromMs } from "./settings.js";

/** No machine has as many processors for one program, so more are a mistake. */
const MAX_WORKERS = 1024;

/** Options of Node that contain the program, which then has no file. */
const PROGRAM_OPTIONS = ["-e", "--eval", "-p", "--print", "-pe"];

/** The directory in which this process was started, unless the program changes it before it imports this package. */
const START_DIRECTORY = currentDirectory();

function currentDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    // It was removed, or Deno may not read it.
    return undefined;
  }
}

/** Returns how to start this program again, how often, and how many milliseconds each may take to start, as JSON for the core. */
export function workerProgram(count: unknown, startTimeout: unknown): string {
  if (!Number.isInteger(count) || (count as number) < 1 || (count as number) > MAX_WORKERS) {
    throw new UsageError(`\`workers\` must be a whole number from 1 to ${String(MAX_WORKERS)}, not ${String(count)}`);
  }
  if (!isMainThread) {
    throw new UsageError("`workers`: a worker thread cannot be started again: call `listen` on the main thread");
  }
  // A debugger's port is that of the first process.
  const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
  if ("Deno" in globalThis) {
    throw new UsageError("`workers` is not available on Deno: start several processes behind a load balancer");
  }
  const [, ...file] = process.argv;
  if (file[0] === process.execPath || file[0]?.startsWith("/$bunfs/") === true) {
    // A program in one executable, which puts itself there.
    file.shift();
  } else if (file.length === 0 && !options.some((option) => PROGRAM_OPTIONS.includes(option))) {
    throw new UsageError("`workers`: a program that is typed or piped in cannot be started again: put it into a file");
  }
  return JSON.stringify({
    program: process.execPath,
    arguments: [...options, ...file],
    directory: START_DIRECTORY,
    count,
    start_timeout: startTimeout === undefined ? undefined : secondsFromMs("workerStartTimeout", startTimeout),
  });
}

/** What a program prints while it serves over stdio, on Windows. */

/**
 * Sends what the program prints to stderr, because stdout has the messages. On other systems the native code does this with the
 * descriptor. On Windows it replaces the standard handle, but Node holds the old one in descriptor 1 of its own C runtime, so
 * that only the streams can be redirected: what `fs.writeSync(1, …)` writes still reaches the client.
 */
export function printToStderr(): void {
  if (process.platform !== "win32") {
    return;
  }
  // The stream of stdout is created when it is first read, which has to be avoided: it would use the handle.
  const stream = { get: () => process.stderr, configurable: true, enumerable: true };
  Object.defineProperty(process, "stdout", stream);
  // The console keeps the stream that it has used.
  const writer = console as Console & { _stdout?: NodeJS.WriteStream };
  writer._stdout = process.stderr;
}

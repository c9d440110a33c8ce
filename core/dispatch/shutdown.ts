/**
 * The signals that end a service.
 *
 * @module
 */
import process from "node:process";

/** Names and numbers of the signals; a process that one ended exits with 128 + its number. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** Options of {@link shutdownSignal}. */
export interface ShutdownOptions {
  /** Which signals. Default SIGINT and SIGTERM. */
  readonly signals?: readonly (keyof typeof SIGNALS)[];
}

/**
 * An AbortSignal that aborts when the process is told to end, by SIGINT (Ctrl-C) or SIGTERM. A second one ends the process at
 * once, with exit code 130 or 143. Without this function the library handles no signals and never ends the process.
 *
 * Disposing it takes the handlers away; they do not keep the process alive.
 *
 * @example
 * ```ts ignore
 * const report = await app.run(["orders"], { signal: shutdownSignal() });
 * ```
 */
export function shutdownSignal(options: ShutdownOptions = {}): AbortSignal & Disposable {
  const names = options.signals ?? ["SIGINT", "SIGTERM"];
  const controller = new AbortController();
  const handlers = names.map((name) => {
    const handle = (): void => {
      if (controller.signal.aborted) process.exit(128 + SIGNALS[name]);
      controller.abort(new Error(`The process was told to end by ${name}`));
    };
    process.on(name, handle);
    return { name, handle };
  });
  const dispose = (): void => {
    for (const { name, handle } of handlers) process.off(name, handle);
  };
  return Object.assign(controller.signal, { [Symbol.dispose]: dispose });
}

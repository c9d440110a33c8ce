/**
 * An AbortSignal that knows how many listeners it has, on every runtime.
 *
 * @module
 */

/** What {@link countedSignal} makes. */
export interface CountedSignal {
  readonly signal: AbortSignal;
  /** Listeners added and not removed by their owners. */
  listeners(): number;
  abort(): void;
}

/** A fresh signal. */
export function countedSignal(): CountedSignal {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count--;
    remove(...args);
  };
  return { signal, listeners: () => count, abort: () => controller.abort() };
}

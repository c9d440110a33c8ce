/**
 * One port over Web Workers and `node:worker_threads`: the only place that knows how a runtime does threads. Chosen by
 * feature: a global `Worker` where there is one (Deno, Bun), else `node:worker_threads` (Node).
 *
 * @module
 */
import { systemClock, withDeadline } from "../core/clock.ts";
import { InvalidOptionError } from "../core/errors.ts";

/** What a port listens with. */
export interface PortEvents {
  message(data: unknown): void;
  /** An uncaught error, or data that could not be read. The thread may be gone. */
  error(error: Error): void;
  /** The thread ended. Not every runtime says so. */
  exit(): void;
}

/** A running worker. */
export interface Port {
  /** Sends. Never throws: a thread that is gone is reported by its events. */
  post(message: unknown): void;
  /** Ends the thread; settles within a second whatever the runtime does. */
  terminate(): Promise<void>;
}

/** The slice of a Web Worker used here. */
export interface WebWorkerLike {
  postMessage(message: unknown): void;
  addEventListener(type: string, listener: (event: never) => void): void;
  terminate(): unknown;
}

/** The slice of a `worker_threads` worker used here. */
export interface NodeWorkerLike {
  postMessage(message: unknown): void;
  on(type: string, listener: (value: never) => void): unknown;
  terminate(): unknown;
}

/** What a `worker` factory may return. */
export type WorkerLike = WebWorkerLike | NodeWorkerLike;

interface Built {
  getBuiltinModule?(name: string): unknown;
}

interface Threads {
  readonly Worker: new (url: URL) => NodeWorkerLike;
  readonly parentPort: ParentPort | null;
  readonly isMainThread: boolean;
}

interface ParentPort {
  on(type: string, listener: (value: never) => void): unknown;
  postMessage(message: unknown): void;
}

function threads(): Threads | undefined {
  const { process } = globalThis as { process?: Built };
  return process?.getBuiltinModule?.("node:worker_threads") as Threads | undefined;
}

/** Starts a worker and listens to it in the same turn: a listener one microtask later loses messages on Deno. */
export function spawn(source: URL | (() => unknown), events: PortEvents): Port {
  return wrap(typeof source === "function" ? source() as WorkerLike : start(source), events);
}

function start(url: URL): WorkerLike {
  const { Worker } = globalThis as { Worker?: new (url: string, options: { type: "module" }) => WebWorkerLike };
  if (typeof Worker === "function") return new Worker(url.href, { type: "module" });
  const node = threads();
  if (node === undefined) throw new Error("this runtime has neither a global Worker nor node:worker_threads");
  return new node.Worker(url);
}

/** Attaches to a worker that is already there. */
export function wrap(worker: WorkerLike, events: PortEvents): Port {
  if (typeof (worker as { postMessage?: unknown } | undefined)?.postMessage !== "function") {
    throw new InvalidOptionError("worker must be a URL, or a function that returns a worker at once (not a promise)");
  }
  if ("addEventListener" in worker) listenWeb(worker, events);
  else listenNode(worker, events);
  return {
    post(message) {
      try {
        worker.postMessage(message);
      } catch (error) {
        events.error(error as Error);
      }
    },
    async terminate(): Promise<void> {
      const late = (): Error => new Error("terminate did not settle");
      try {
        await withDeadline(systemClock, 1_000, Promise.resolve(worker.terminate()), late);
      } catch {
        // It was gone already, or its runtime never says.
      }
    },
  };
}

function listenWeb(worker: WebWorkerLike, events: PortEvents): void {
  worker.addEventListener("message", (event: { data: unknown }) => events.message(event.data));
  worker.addEventListener("error", (event: { message?: string; error?: unknown; preventDefault?(): void }) => {
    event.preventDefault?.();
    const cause = event.error;
    events.error(cause instanceof Error ? cause : new Error(event.message ?? "uncaught error in the worker"));
  });
  worker.addEventListener("messageerror", () => events.error(new Error("a message of the worker could not be read")));
  worker.addEventListener("close", () => events.exit());
}

function listenNode(worker: NodeWorkerLike, events: PortEvents): void {
  worker.on("message", (data: unknown) => events.message(data));
  worker.on("error", (error: unknown) => events.error(error instanceof Error ? error : new Error(String(error))));
  worker.on("messageerror", () => events.error(new Error("a message of the worker could not be read")));
  worker.on("exit", () => events.exit());
}

/** The worker's end: `parentPort` where this is a worker thread of Node's kind, else the global scope of a Web Worker. */
export interface Scope {
  listen(receive: (data: unknown) => void): void;
  post(message: unknown): void;
}

/** Finds out, once, which kind of worker this is. */
export function workerScope(): Scope {
  const node = threads();
  const port = node !== undefined && !node.isMainThread ? node.parentPort : null;
  const self = globalThis as unknown as {
    postMessage?(message: unknown): void;
    addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  };
  if (port !== null && typeof port?.on === "function") {
    return {
      listen: (receive) => void port.on("message", receive as (value: never) => void),
      post: (message) => port.postMessage(message),
    };
  }
  return {
    listen: (receive) => self.addEventListener("message", (event) => receive(event.data)),
    post: (message) => self.postMessage?.(message),
  };
}

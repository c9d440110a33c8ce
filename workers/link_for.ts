import type { WorkerOptions } from "../core/broker_options.ts";
import type { Clock } from "../core/clock.ts";
import { InvalidOptionError } from "../core/errors.ts";
import type { LinkFactory } from "../core/link.ts";
import { checkOneOf } from "../core/options.ts";
import type { SessionOptions } from "../core/session/session.ts";
import { InlineLink } from "./inline_link.ts";
import { type TransportModule, withClientModule } from "./serve.ts";
import { WorkerLink } from "./worker_link.ts";

/** What an adapter gives to have its link made. */
export interface LinkChoice {
  readonly options: WorkerOptions;
  /** The adapter's own options, as its transport takes them. */
  readonly adapter: object;
  readonly session: SessionOptions;
  readonly clock: Clock;
  /** The worker's file; called only when a worker is started, so that bundles without it work inline. */
  readonly workerUrl: () => URL;
  /** The transport's module, for inline use. */
  readonly load: () => Promise<TransportModule>;
}

/** What {@link linkFor} chose; a part of what `AsyncBroker` is set up with. */
export interface ChosenLink {
  readonly isolation: "worker" | "inline";
  readonly keepAlive: boolean;
  readonly link: LinkFactory;
}

/**
 * The isolation that the options ask for, and the link for it.
 *
 * @throws InvalidOptionError for an option of the wrong type, and for one that cannot be sent to a worker.
 */
export function linkFor(choice: LinkChoice): ChosenLink {
  const { options, adapter, session, clock } = choice;
  const isolation = checkOneOf("isolation", options.isolation ?? "worker", ["worker", "inline"]);
  const keepAlive = options.keepAlive ?? true;
  if (typeof keepAlive !== "boolean") throw wrong("keepAlive", "true or false");
  if (options.worker !== undefined && typeof options.worker !== "function" && !isUrl(options.worker)) {
    throw wrong("worker", "a URL object, or a function that returns a worker at once");
  }
  if (options.clientModule !== undefined && !isUrl(options.clientModule)) {
    throw wrong("clientModule", "a URL object");
  }
  const clientModule = options.clientModule?.href;
  if (isolation === "inline") {
    const create = async () => {
      const module = await choice.load();
      const full = clientModule === undefined ? adapter : await withClientModule(adapter, clientModule);
      return await module.createTransport(full as never, clock);
    };
    return { isolation, keepAlive, link: () => new InlineLink(create, clock, session) };
  }
  mustClone(adapter);
  const source = (): URL | (() => unknown) => options.worker ?? choice.workerUrl();
  return { isolation, keepAlive, link: () => new WorkerLink({ source, adapter, session, clientModule }, clock) };
}

/** A URL of any realm. */
function isUrl(value: unknown): value is URL {
  return typeof value === "object" && value !== null && typeof (value as { href?: unknown }).href === "string";
}

function wrong(option: string, what: string): InvalidOptionError {
  return new InvalidOptionError(`${option} must be ${what}`, { details: { option } });
}

/** Names the member that cannot cross to a worker. */
function mustClone(adapter: object): void {
  for (const [name, value] of Object.entries(adapter)) {
    if (isPlain(value)) continue;
    const inner = typeof value === "object" && value !== null ? Object.entries(value) : [];
    const bad = inner.find(([, member]) => !isPlain(member))?.[0];
    throw new InvalidOptionError(
      `${
        bad === undefined ? name : `${name}.${bad}`
      } cannot be sent to a worker (it is or holds a function or a live object); ` +
        'give it through clientModule, or choose isolation: "inline"',
    );
  }
}

/**
 * Whether a value is data through and through. Structured clone alone does not tell: an instance of a class passes it and
 * arrives without its methods.
 */
function isPlain(value: unknown, above: ReadonlySet<unknown> = new Set()): boolean {
  if (typeof value === "function" || typeof value === "symbol") return false;
  if (typeof value !== "object" || value === null || above.has(value)) return true;
  const within = new Set(above).add(value);
  const all = (members: Iterable<unknown>): boolean => [...members].every((member) => isPlain(member, within));
  if (Array.isArray(value)) return all(value);
  if (value instanceof Map) return all(value.keys()) && all(value.values());
  if (value instanceof Set) return all(value);
  if (value instanceof Date || value instanceof RegExp || value instanceof ArrayBuffer) return true;
  if (ArrayBuffer.isView(value)) return true;
  const prototype = Object.getPrototypeOf(value);
  const isObject = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isObject && all(Object.values(value));
}

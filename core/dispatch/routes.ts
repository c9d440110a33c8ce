/**
 * Which route takes an event type: an exact key first, then the longest pattern that matches.
 *
 * @module
 */
import { InvalidOptionError } from "../errors.ts";
import { ownText } from "../own_text.ts";
import { isPattern, matches, overlap } from "./pattern.ts";

/** Types come from outside, so what they resolved to is remembered only for so many. */
const REMEMBERED = 1_000;

/** An immutable table from event types to targets. */
export class RouteTable<Target> {
  readonly #exact = new Map<string, Target>();
  /** The longest first. */
  readonly #patterns: (readonly [pattern: string, target: Target])[] = [];
  readonly #remembered = new Map<string, Target | undefined>();

  /** @throws InvalidOptionError where two patterns of one length can match the same type. */
  constructor(routes: Readonly<Record<string, Target>>) {
    for (const [key, target] of Object.entries(routes)) {
      if (key === "") {
        throw new InvalidOptionError("routes has an empty key; use an event type or a pattern with * or ?");
      }
      if (isPattern(key)) this.#patterns.push([key, target]);
      else this.#exact.set(key, target);
    }
    this.#patterns.sort((a, b) => b[0].length - a[0].length);
    this.#refuseTies();
  }

  /** The target for a type, or undefined. */
  resolve(type: string): Target | undefined {
    const exact = this.#exact.get(type);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    if (this.#remembered.has(type)) return this.#remembered.get(type);
    const target = this.#patterns.find(([pattern]) => matches(pattern, type))?.[1];
    if (this.#remembered.size >= REMEMBERED) this.#remembered.clear();
    this.#remembered.set(ownText(type), target);
    return target;
  }

  /** All targets, each once. */
  targets(): Set<Target> {
    return new Set([...this.#exact.values(), ...this.#patterns.map(([, target]) => target)]);
  }

  #refuseTies(): void {
    for (const [at, [pattern, target]] of this.#patterns.entries()) {
      for (const [other, otherTarget] of this.#patterns.slice(at + 1)) {
        if (other.length !== pattern.length) break;
        if (target === otherTarget || !overlap(pattern, other)) continue;
        throw new InvalidOptionError(
          `routes "${pattern}" and "${other}" are equally long and can match the same type; make one of them longer or exact`,
        );
      }
    }
  }
}

/**
 * Dead letters of the memory store.
 *
 * @module
 */
import { InvalidOptionError } from "../errors.ts";
import type { DeadLetter, DeadLetters } from "./contract.ts";
import { fullKey, type Tables } from "./memory_tables.ts";

/** Dead letters in memory. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #tables: Tables;
  readonly #guard: () => void;

  /** @param guard Throws once the store is closed. */
  constructor(tables: Tables, guard: () => void) {
    this.#tables = tables;
    this.#guard = guard;
  }

  // deno-lint-ignore require-await
  async put(letter: DeadLetter): Promise<void> {
    this.#guard();
    this.#tables.deadLetters.put(letter);
  }

  // deno-lint-ignore require-await
  async get(id: string): Promise<DeadLetter | undefined> {
    this.#guard();
    return this.#tables.deadLetters.rows.get(id);
  }

  // deno-lint-ignore require-await
  async list(
    options: { readonly includeResolved?: boolean; readonly limit?: number; readonly after?: string } = {},
  ): Promise<readonly DeadLetter[]> {
    this.#guard();
    const { includeResolved = false, limit = 1_000, after = "" } = options;
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= 10_000)) {
      throw new InvalidOptionError("limit must be a whole number from 1 to 10,000");
    }
    const letters = [...this.#tables.deadLetters.rows.values()].filter((letter) =>
      letter.id > after && (includeResolved || letter.resolvedAt === undefined)
    );
    return letters.sort((a, b) => a.id < b.id ? -1 : 1).slice(0, limit);
  }

  // deno-lint-ignore require-await
  async beginReplay(
    id: string,
  ): Promise<{ readonly envelope: string; readonly topic: string; readonly replay: number }> {
    this.#guard();
    const letter = this.#tables.deadLetters.rows.get(id);
    if (letter === undefined) {
      throw new InvalidOptionError("No dead letter has the id given; list() shows those there are");
    }
    const { body, source, eventId, consumer, topic } = letter;
    if (body === undefined || source === undefined || eventId === undefined) {
      throw new InvalidOptionError(
        "This dead letter cannot be replayed: its envelope was not kept (a corrupt message, or keepBodies: false)",
      );
    }
    const replay = letter.replays + 1;
    const { deadLetters, receipts, failures } = this.#tables;
    deadLetters.put({ ...letter, replays: replay });
    const key = { consumer, source, id: eventId };
    failures.delete(fullKey(key));
    if (receipts.get(key)?.deadLetter === id) {
      receipts.delete(key);
      this.#tables.changes++;
    }
    return { envelope: body, topic, replay };
  }

  // deno-lint-ignore require-await
  async resolve(id: string, at: number): Promise<void> {
    this.#guard();
    const letter = this.#tables.deadLetters.rows.get(id);
    if (letter !== undefined) this.#tables.deadLetters.put({ ...letter, resolvedAt: at });
  }

  // deno-lint-ignore require-await
  async purge(before: number): Promise<number> {
    this.#guard();
    const { rows } = this.#tables.deadLetters;
    checkMoment(before);
    let removed = 0;
    for (const [id, letter] of rows) {
      if (letter.lastFailedAt >= before) continue;
      rows.delete(id);
      removed++;
    }
    return removed;
  }
}

/** Answers a cut-off; refuses one that would remove everything by mistake. */
export function checkMoment(before: number): number {
  if (Number.isFinite(before) && before >= 0) return before;
  throw new InvalidOptionError("before must be a moment in milliseconds since 1970: a finite number, not negative");
}

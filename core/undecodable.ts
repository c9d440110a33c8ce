import type { UndecodableRecord, UndecodableSink } from "./contract.ts";
import type { EdaError } from "./errors.ts";
import { errorName, guard } from "./guard.ts";
import type { Health } from "./health.ts";
import type { Logger } from "./logger.ts";

/** What the recorder needs of the broker's options. */
export interface RecorderOptions {
  readonly deadLetters?: UndecodableSink | undefined;
  readonly onUndecodable?: ((report: { readonly topic: string; readonly error: EdaError }) => void) | undefined;
}

/** Writes the record of undecodable messages: to the dead letters where there are any, and always one warning. */
export class UndecodableRecorder {
  readonly #logger: Logger;
  readonly #health: Health;
  readonly #options: RecorderOptions;
  #sink: UndecodableSink | undefined;

  constructor(logger: Logger, health: Health, options: RecorderOptions) {
    this.#logger = logger;
    this.#health = health;
    this.#options = options;
    this.#sink = options.deadLetters;
  }

  /** Uses `sink` unless the options named one. */
  use(sink: UndecodableSink): void {
    this.#sink ??= sink;
  }

  /** Answers whether it is recorded, so that the message may go. */
  async record(record: UndecodableRecord): Promise<boolean> {
    const { topic, group, bytes, sha256, error } = record;
    try {
      await this.#sink?.recordUndecodable(record);
    } catch (cause) {
      this.#health.count("undecodable-unrecorded");
      this.#logger.error("an undecodable message could not be recorded; it is held and tried again", {
        topic,
        error: errorName(cause),
      });
      return false;
    }
    this.#health.count("undecodable");
    this.#logger.warn("dropped an undecodable message", {
      topic,
      group,
      bytes,
      sha256,
      code: error.code,
      ...error.details,
    });
    guard(this.#logger, "onUndecodable", () => this.#options.onUndecodable?.({ topic, error }));
    return true;
  }
}

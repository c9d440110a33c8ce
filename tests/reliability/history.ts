/**
 * What members, publishers and the driver write down, and how it is brought into one order.
 *
 * Everything is appended to one list at the server under test. A member appends `handed` before it may settle, and `settling`
 * is in the list before the settle is sent. So the order of the list is the order of cause and effect between processes, with
 * no clock in it, and what a killed process wrote stays.
 *
 * @module
 */
import type { SettleOutcome } from "../../core/contract.ts";

/** Something done to a member: `stop` and `cont` are SIGSTOP and SIGCONT, `close` is an orderly end. */
export type Fault = "kill" | "stop" | "cont" | "close";

/** A delivery: the `d`th that the member was handed, of message `n` of a subject, which count up from 0. */
export interface Hand {
  readonly member: string;
  readonly d: number;
  readonly subject: string;
  readonly n: number;
}

/** A history being written. */
export interface Journal {
  /** Appends a line; resolves when it stands. Lines of one journal keep their order without waiting for each. */
  write(line: Line): Promise<void>;
  /** All lines so far. */
  read(): Promise<Line[]>;
  /** Resolves when everything stands and the connection is closed. */
  close(): Promise<void>;
}

/** One line of a history. */
export type Line =
  | (Hand & { readonly k: "handed" })
  /** A settle is about to be sent; `confirm` = its outcome will be known. */
  | (Hand & { readonly k: "settling"; readonly confirm: boolean })
  | (Hand & { readonly k: "settled"; readonly outcome: SettleOutcome })
  /** Held back by `retry`. */
  | (Hand & { readonly k: "held" })
  /** Its signal aborted. */
  | (Hand & { readonly k: "lost" })
  | { readonly k: "fault"; readonly member: string; readonly what: Fault };

/**
 * Settles on the wire. Each goes to the subject that came with the delivery; the server answers those that name a subject for
 * the answer.
 *
 * @module
 */
import type { EdaError } from "../../core/errors.ts";
import type { NativeOutcome } from "../../core/transport.ts";
import { nanos } from "./api.ts";
import type { NatsNative } from "./context.ts";
import type { Connection } from "./connection.ts";

export const ACK = "+ACK";
export const TERM = "+TERM";
export const WORKING = "+WPI";

/** Gives a message back for redelivery after `delayMs`. */
export function nak(delayMs: number): string {
  return delayMs > 0 ? `-NAK {"delay":${nanos(delayMs)}}` : "-NAK";
}

/**
 * Sends one settle a native in one write and resolves when the server has them: `stale` where the durable is gone.
 *
 * A single server takes what one connection sends to one durable in order, so the answer to the last of them is one for all
 * before it. In a cluster a durable may move to another server in between, so there each is answered.
 */
export function settle(
  connection: Connection,
  natives: readonly NatsNative[],
  what: string,
): Promise<readonly NativeOutcome[]> {
  const each = connection.info?.cluster !== undefined;
  const outcomes = new Array<NativeOutcome>(natives.length).fill("settled");
  const answers = new Promise<readonly NativeOutcome[]>((resolve, reject) => {
    let left = 1;
    let failure: EdaError | undefined;
    const done = (): void => {
      if (--left > 0) return;
      if (failure === undefined) resolve(outcomes);
      else reject(failure);
    };
    let from = 0;
    natives.forEach((native, at) => {
      const next = natives[at + 1];
      if (!each && next !== undefined && sameDurable(native, next)) return connection.tell(native.reply, what);
      const first = from;
      from = at + 1;
      left++;
      connection.post("a settle", native.reply, what, (reply, error) => {
        if (error !== undefined) failure = error;
        else if (reply!.status === 503) outcomes.fill("stale", first, at + 1);
        done();
      });
    });
    done();
  });
  return connection.within(answers);
}

/** Whether two deliveries come from one durable: their reply subjects are alike up to the numbers. */
function sameDurable(a: NatsNative, b: NatsNative): boolean {
  return a.partition === b.partition && durableOf(a.reply) === durableOf(b.reply);
}

function durableOf(reply: string): string {
  const parts = reply.split(".");
  return parts.slice(0, parts.length === 9 ? 4 : 6).join(".");
}

import type { Timer } from "../../core/clock.ts";
import { type EdaError, InvalidOptionError } from "../../core/errors.ts";
import { nanos } from "./api.ts";
import type { MessageSlice } from "./client.ts";
import type { NatsContext } from "./context.ts";
import { refusal } from "./errors.ts";

/** How long a server may be silent that has been asked for an answer or for signs of life. */
const SILENCE_MS = 1_500;
/** How much one pull may bring, unless a single message may be larger. */
const PULL_BYTES = 16 * 1024 * 1024;

/**
 * How a pull ended.
 * `done`: as asked · `gone`: there is no such durable, or it moved · `silent`: no sign of life came · `broken`: the connection
 * ended. After `silent` and `broken`, deliveries may have gone astray.
 */
export type PullEnd = "done" | "gone" | "silent" | "broken";

/** What to pull. */
export interface PullRequest {
  readonly stream: string;
  readonly durable: string;
  /** At most this many messages. */
  readonly batch: number;
  /** How long to wait for the first; 0 = answer at once. What is there by then is brought, and the pull ends. */
  readonly waitMs: number;
  /** Called for each message as it comes. */
  readonly take: (message: MessageSlice) => void;
  /** Ends the wait; what the server sent by then is still taken. */
  readonly signal: AbortSignal;
}

/**
 * One pull. The server is asked for heartbeats while it has nothing, so that one that forgot about the pull, or lost the
 * durable with a part of the cluster, is noticed.
 *
 * @throws What the connection failed with before anything came.
 */
export function pull(context: NatsContext, request: PullRequest): Promise<PullEnd> {
  const { clock, main, api } = context;
  const { stream, durable, batch, waitMs, take, signal } = request;
  const beatMs = waitMs >= 400 ? Math.min(waitMs / 4, 5_000) : 0;
  const silenceMs = Math.max(SILENCE_MS, 3 * beatMs) + (beatMs === 0 ? waitMs : 0);
  const next = api.subject(`CONSUMER.MSG.NEXT.${stream}.${durable}`);
  const inbox = main.inbox();
  return new Promise((resolve, reject) => {
    let taken = 0;
    let over = false;
    let heardAt = clock.monotonic();
    const end = (how: PullEnd): void => {
      if (over) return;
      over = true;
      timer.cancel();
      signal.removeEventListener("abort", cancel);
      resolve(how);
    };
    const fail = (error: EdaError): void => {
      if (taken > 0 || over) return end("broken");
      over = true;
      timer.cancel();
      signal.removeEventListener("abort", cancel);
      reject(error);
    };
    const closing = (how: PullEnd): void => {
      listening.end();
      end(how);
    };
    const status = (code: number, text: string): void => {
      if (code === 404 || code === 408) return closing("done");
      if (code === 503) return closing("gone");
      if (code === 409 && /deleted|leadership|shutdown/i.test(text)) return closing("gone");
      if (code === 409) return closing("done");
      if (code >= 400) {
        listening.end();
        fail(
          new InvalidOptionError(
            "NATS does not accept how messages are asked for: prefetch is too large for the durable",
          ),
        );
      }
    };
    const listening = main.listen(
      inbox,
      (message) => {
        heardAt = clock.monotonic();
        if (message.subject === inbox) return status(message.headers?.code ?? 0, message.headers?.description ?? "");
        taken++;
        take(message);
        if (taken >= batch) closing("done");
      },
      fail,
      next,
    );
    /** Ends the pull at the server, and waits for what it had sent. */
    const leave = (how: PullEnd): void => {
      if (over) return;
      timer.cancel();
      listening.drain().then(() => end(how), (error) => fail(refusal("reading", error)));
    };
    const cancel = (): void => leave("done");
    const look = (): void => {
      const left = heardAt + silenceMs - clock.monotonic();
      if (left <= 0) leave("silent");
      else timer = clock.timer(left, look);
    };
    let timer: Timer = clock.timer(silenceMs, look);
    signal.addEventListener("abort", cancel, { once: true });
    main.tell(
      next,
      JSON.stringify({
        batch,
        no_wait: true,
        max_bytes: Math.max(PULL_BYTES, 2 * (main.info?.max_payload ?? 0)),
        ...(waitMs > 0 ? { expires: nanos(waitMs) } : {}),
        ...(beatMs > 0 ? { idle_heartbeat: nanos(beatMs) } : {}),
      }),
      inbox,
    );
    if (signal.aborted) cancel();
  });
}

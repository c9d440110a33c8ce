import { Backoff, type Clock, type Timer } from "../core/clock.ts";
import { WorkerCrashedError, WorkerStartError } from "../core/errors.ts";
import type { Link, LinkSink } from "../core/link.ts";
import type { SessionOptions } from "../core/session/session.ts";
import type { ToHost, ToSession } from "../core/session/messages.ts";
import { type Port, spawn } from "./port.ts";
import { type HostFrame, PROTOCOL_VERSION, unpack, type WorkerFrame } from "./protocol.ts";
import { fromWireError } from "./wire_error.ts";

/** Beats without any sign of the worker before it is taken for dead. */
const MISSES = 3;
/** How long a worker may take to load and to build its transport. */
const START_MS = 20_000;

/** What a {@link WorkerLink} starts. */
export interface WorkerLinkOptions {
  /** The worker's entry file, or a factory that returns a worker at once. */
  readonly source: () => URL | (() => unknown);
  /** The adapter's options, cloneable. */
  readonly adapter: unknown;
  readonly session: SessionOptions;
  readonly clientModule?: string | undefined;
}

/** One life of a worker: from spawn to its end. */
interface Life {
  readonly port: Port;
  dead: boolean;
  bye?: () => void;
}

/**
 * A link over a worker.
 *
 * `starting` -(ready, init, started)-> `up` -(crash, silence)-> `down` -(backoff)-> `starting` …; any -(end)-> `ended`.
 * The first start may fail, and then says so; later ones are tried again with backoff for as long as the broker is open.
 */
export class WorkerLink implements Link {
  readonly #options: WorkerLinkOptions;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #sink: LinkSink | undefined;
  #life: Life | undefined;
  #beat: Timer | undefined;
  #restart: Timer | undefined;
  #silent = 0;
  #ended = false;

  constructor(options: WorkerLinkOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#backoff = new Backoff(clock, 200, 10_000);
  }

  start(sink: LinkSink): Promise<void> {
    this.#sink = sink;
    return this.#spawn();
  }

  #spawn(): Promise<void> {
    return new Promise((resolve, reject) => {
      let up = false;
      let life: Life | undefined = undefined as Life | undefined;
      const limit = this.#clock.timer(START_MS, () => fail(new Error(`it did not start within ${START_MS / 1_000} s`)));
      const fail = (error: Error): void => {
        limit.cancel();
        if (life !== undefined && !life.dead) {
          life.dead = true;
          void life.port.terminate();
          life.bye?.();
        }
        if (up) this.#crashed(error);
        else reject(startError(error));
      };
      const receive = (frame: WorkerFrame): void => {
        this.#silent = 0;
        switch (frame.k) {
          case "ready":
            if (frame.version !== PROTOCOL_VERSION) return fail(new Error("it speaks another protocol version"));
            return this.#post(this.#init());
          case "started":
            limit.cancel();
            up = true;
            this.#backoff.reset();
            this.#armBeat();
            return resolve();
          case "failed":
            return fail(fromWireError(frame.error));
          case "bye":
            return life?.bye?.();
          default:
            return this.#sink?.receive(unpack(frame as ToHost));
        }
      };
      const alive = (): boolean => life === undefined || !life.dead;
      try {
        const port = spawn(this.#options.source(), {
          message: (data) => alive() ? receive(data as WorkerFrame) : undefined,
          error: (error) => alive() ? fail(error) : undefined,
          exit: () => alive() ? fail(new Error("it ended by itself")) : undefined,
        });
        this.#life = life = { port, dead: false };
      } catch (error) {
        fail(error as Error);
      }
    });
  }

  #init(): HostFrame {
    const { adapter, session, clientModule } = this.#options;
    return {
      k: "init",
      version: PROTOCOL_VERSION,
      adapter,
      session,
      ...(clientModule === undefined ? {} : { clientModule }),
    };
  }

  #crashed(cause: Error): void {
    this.#beat?.cancel();
    if (this.#ended) return;
    this.#sink?.down(new WorkerCrashedError("the worker died; a new one is being started", { cause }));
    this.#again();
  }

  #again(): void {
    this.#restart = this.#clock.timer(this.#backoff.next(), () => {
      this.#spawn().then(() => {
        if (!this.#ended) this.#sink?.up();
      }, () => {
        if (!this.#ended) this.#again();
      });
    });
  }

  /** Beats keep the session sure of us, and their echo keeps us sure of the worker: some runtimes never say that one died. */
  #armBeat(): void {
    this.#beat?.cancel();
    this.#silent = 0;
    this.#beat = this.#clock.timer(this.#options.session.beatMs, () => {
      if (this.#silent++ >= MISSES) return this.#silence();
      const silent = this.#silent;
      this.#post({ k: "beat" });
      this.#armBeat();
      this.#silent = silent;
    });
  }

  #silence(): void {
    const life = this.#life;
    if (life === undefined || life.dead) return;
    life.dead = true;
    void life.port.terminate();
    this.#crashed(new Error(`it gave no sign for ${MISSES} beats`));
  }

  #post(frame: HostFrame): void {
    if (this.#life?.dead === false) this.#life.port.post(frame);
  }

  post(message: ToSession): void {
    this.#post(message);
  }

  async end(deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    this.#ended = true;
    this.#beat?.cancel();
    this.#restart?.cancel();
    const life = this.#life;
    if (life === undefined || life.dead) return { terminated: false };
    const polite = await new Promise<boolean>((resolve) => {
      const timer = this.#clock.timer(deadlineMs, () => resolve(false));
      life.bye = () => {
        timer.cancel();
        resolve(true);
      };
      this.#post({ k: "exit" });
    });
    life.dead = true;
    await life.port.terminate();
    return { terminated: !polite };
  }
}

function startError(cause: Error): Error {
  const known = (cause as { code?: unknown; retriable?: unknown }).retriable;
  if (typeof known === "boolean") return cause;
  return new WorkerStartError(
    "the worker could not be started. In a bundle, give its file with the worker option; on Deno allow reading (and " +
      'importing) it; or choose isolation: "inline". See cause',
    { cause },
  );
}

import type { Clock, Timer } from "../core/clock.ts";
import { ClosedError, WorkerStartError } from "../core/errors.ts";
import type { SessionOptions } from "../core/session/session.ts";
import type { ToHost } from "../core/session/messages.ts";
import { type Port, spawn } from "./port.ts";
import { type HostFrame, PROTOCOL_VERSION, unpack, type WorkerFrame } from "./protocol.ts";
import { TurnBudget } from "./turn_budget.ts";
import { fromWireError } from "./wire_error.ts";

/** Beats without any sign of the worker before it is taken for dead. */
const MISSES = 3;
/** How long a worker may take to load and to build its transport. */
const START_MS = 20_000;

/** What a worker is started with. */
export interface WorkerLifeOptions {
  /** The worker's entry file, or a factory that returns a worker at once. */
  readonly source: () => URL | (() => unknown);
  /** The adapter's options, cloneable. */
  readonly adapter: unknown;
  readonly session: SessionOptions;
  readonly clientModule?: string | undefined;
}

/** What a life tells its owner. */
export interface WorkerLifeEvents {
  /** A message of the session. */
  receive(message: ToHost): void;
  /** It had started, and died. */
  died(cause: Error): void;
}

/**
 * One life of a worker.
 *
 * ```text
 * starting -(ready, init, started)-> up
 * starting -(failed, error, exit, time is up, end)-> dead   `start` rejects
 * up       -(error, exit, no sign for 3 beats)->     dead   told `died`
 * up       -(end: exit, bye; or time is up)->        dead
 * ```
 */
export class WorkerLife {
  readonly #options: WorkerLifeOptions;
  readonly #clock: Clock;
  readonly #events: WorkerLifeEvents;
  readonly #frames: TurnBudget<WorkerFrame>;
  #state: "starting" | "up" | "dead" = "starting";
  #port: Port | undefined;
  #limit: Timer | undefined;
  #beat: Timer | undefined;
  /** Beats since the worker's last sign. */
  #silent = 0;
  #started: () => void = () => {};
  #refused: (error: Error) => void = () => {};
  #bye: (polite: boolean) => void = () => {};

  constructor(options: WorkerLifeOptions, clock: Clock, events: WorkerLifeEvents) {
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#frames = new TurnBudget(clock, (frame) => this.#receive(frame));
  }

  /** Spawns it; resolves when it takes messages. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#started = resolve;
      this.#refused = reject;
      const late = (): void => this.#die(new Error(`it did not start within ${START_MS / 1_000} s`));
      this.#limit = this.#clock.timer(START_MS, late);
      try {
        this.#port = spawn(this.#options.source(), {
          message: (data) => {
            this.#silent = 0;
            this.#frames.push(data as WorkerFrame);
          },
          error: (error) => this.#gone(error),
          exit: () => this.#gone(new Error("it ended by itself")),
        });
      } catch (error) {
        this.#die(error as Error);
      }
    });
  }

  /** What it said before it died still counts. */
  #gone(cause: Error): void {
    this.#frames.drain();
    this.#die(cause);
  }

  #receive(frame: WorkerFrame): void {
    if (this.#state === "dead") return;
    switch (frame.k) {
      case "ready":
        if (frame.version !== PROTOCOL_VERSION) return this.#die(new Error("it speaks another protocol version"));
        return this.post(this.#init());
      case "started":
        this.#sayBeat();
        return this.#stands();
      case "not-started":
        return this.#die(fromWireError(frame.error));
      case "bye":
        return this.#bye(true);
      default:
        return this.#events.receive(unpack(frame as ToHost));
    }
  }

  /** Unless posting its first beat showed that it had died meanwhile. */
  #stands(): void {
    if (this.#state !== "starting") return;
    this.#limit?.cancel();
    this.#state = "up";
    this.#armBeat();
    this.#started();
  }

  #init(): HostFrame {
    const { adapter, session, clientModule } = this.#options;
    const init = { k: "init", version: PROTOCOL_VERSION, adapter, session } as const;
    return clientModule === undefined ? init : { ...init, clientModule };
  }

  /** Beats keep the session sure of us, and their echo keeps us sure of the worker: some runtimes never say that one died. */
  #armBeat(): void {
    this.#beat = this.#clock.timer(this.#options.session.beatMs, () => {
      if (++this.#silent >= MISSES) return this.#die(new Error(`it gave no sign for ${MISSES} beats`));
      this.#sayBeat();
      // Posting to one that died may be how that shows.
      if (this.#state === "up") this.#armBeat();
    });
  }

  #sayBeat(): void {
    this.post({ k: "beat", at: this.#clock.monotonic() });
  }

  /** Sends. Never throws; nothing reaches a dead worker. */
  post(frame: HostFrame): void {
    if (this.#state !== "dead") this.#port?.post(frame);
  }

  #die(cause: Error): void {
    if (this.#state === "dead") return;
    const was = this.#stop();
    void this.#port?.terminate();
    this.#bye(true);
    if (was === "up") this.#events.died(cause);
    else this.#refused(startError(cause));
  }

  #stop(): "starting" | "up" | "dead" {
    const was = this.#state;
    this.#state = "dead";
    this.#limit?.cancel();
    this.#beat?.cancel();
    return was;
  }

  /** Ends it for good: asks, and after `deadlineMs` terminates. Answers whether force was needed. */
  async end(deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    if (this.#state !== "up") {
      this.#die(new ClosedError("the broker was closed while its worker started; make a new one"));
      await this.#port?.terminate();
      return { terminated: false };
    }
    const polite = await new Promise<boolean>((resolve) => {
      const timer = this.#clock.timer(deadlineMs, () => resolve(false));
      this.#bye = (polite) => {
        timer.cancel();
        resolve(polite);
      };
      this.post({ k: "exit" });
    });
    this.#stop();
    await this.#port?.terminate();
    return { terminated: !polite };
  }
}

function startError(cause: Error): Error {
  if (typeof (cause as { retriable?: unknown }).retriable === "boolean") return cause;
  return new WorkerStartError(
    "the worker could not be started. In a bundle, give its file with the worker option; on Deno allow reading (and " +
      'importing) it; or choose isolation: "inline". See cause',
    { cause },
  );
}

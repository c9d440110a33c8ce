/**
 * The line to a session on a thread of its own: messages take a while, keep their order, and the thread can die.
 *
 * @module
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { WorkerCrashedError } from "../../core/errors.ts";
import type { Link, LinkSink } from "../../core/link.ts";
import type { ToHost, ToSession } from "../../core/session/messages.ts";
import { Session, type SessionOptions } from "../../core/session/session.ts";
import type { Transport } from "../../core/transport.ts";
import type { Dice } from "./dice.ts";
import { type Actor, Lane, type World } from "./world.ts";

/** One thread with what runs on it. */
export interface Thread {
  readonly actor: Actor;
  readonly clock: Clock;
  readonly transport: Transport;
  /** Its connection is gone, as when the thread dies. */
  cut(): void;
}

/** What a broken line does to messages; each answers what arrives. */
export interface LinkDefect {
  toHost?(message: ToHost): readonly ToHost[];
  toSession?(message: ToSession): readonly ToSession[];
}

const BEAT_MS = 1_000;

/** A link whose session runs on another simulated thread. */
export class QueuedLink implements Link {
  readonly #world: World;
  readonly #host: Actor;
  readonly #hostClock: Clock;
  readonly #spawn: () => Thread;
  readonly #options: SessionOptions;
  readonly #dice: Dice;
  readonly #defect: LinkDefect;
  #sink: LinkSink | undefined;
  #thread: Thread | undefined;
  #session: Session | undefined;
  #beat: Timer | undefined;
  #restart: Timer | undefined;
  readonly #toHost = new Lane();
  #toSession = new Lane();
  /** Losses that the session told and the host has not heard. */
  #untold = 0;
  #ended = false;

  constructor(
    world: World,
    host: Actor,
    hostClock: Clock,
    spawn: () => Thread,
    options: SessionOptions,
    dice: Dice,
    defect: LinkDefect,
  ) {
    this.#world = world;
    this.#host = host;
    this.#hostClock = hostClock;
    this.#spawn = spawn;
    this.#options = options;
    this.#dice = dice;
    this.#defect = defect;
  }

  /** Whether the host knows of every loss that its session knows of. */
  get inStep(): boolean {
    return this.#untold === 0 && this.#session !== undefined;
  }

  async start(sink: LinkSink): Promise<void> {
    this.#sink = sink;
    await this.#begin();
  }

  #begin(): Promise<void> {
    return new Promise((resolve) => {
      const thread = this.#thread = this.#spawn();
      this.#toSession = new Lane();
      this.#world.enqueue(this.#toHost, 1 + this.#dice.below(20), this.#host, () => {
        if (thread !== this.#thread) return;
        this.#session = new Session(
          thread.transport,
          thread.clock,
          this.#options,
          (message) => this.#tell(thread, message),
        );
        this.#beats();
        resolve();
      });
    });
  }

  #beats(): void {
    this.#beat = this.#hostClock.timer(BEAT_MS, () => {
      this.post({ k: "beat" });
      this.#beats();
    });
  }

  #delay(): number {
    return this.#dice.hit(0.7) ? 0 : this.#dice.below(4);
  }

  #tell(thread: Thread, original: ToHost): void {
    for (const message of this.#defect.toHost?.(original) ?? [original]) {
      if (message.k === "lost") this.#untold++;
      this.#world.enqueue(this.#toHost, this.#delay(), this.#host, () => {
        if (message.k === "lost") this.#untold--;
        this.#world.note(() => `${this.#host.name} hears ${told(message)}`);
        if (thread === this.#thread) this.#sink!.receive(message);
      });
    }
  }

  post(original: ToSession): void {
    // Into the void, while the host has not heard yet that the thread died.
    if (this.#thread === undefined) return;
    const { actor } = this.#thread;
    const session = this.#session;
    for (const message of this.#defect.toSession?.(original) ?? [original]) {
      this.#world.enqueue(this.#toSession, this.#delay(), actor, () => {
        this.#world.note(() => `${actor.name} hears ${told(message)}`);
        session?.receive(message);
      });
    }
  }

  /** The thread dies. A new one is started after a while. */
  crash(): void {
    const thread = this.#thread;
    if (thread === undefined || this.#session === undefined || this.#ended) return;
    this.#stop();
    thread.cut();
    this.#world.enqueue(this.#toHost, this.#delay(), this.#host, () => {
      if (this.#ended) return;
      this.#untold = 0;
      this.#sink!.down(new WorkerCrashedError("the worker died"));
      this.#restart = this.#hostClock.timer(50, () => {
        void this.#begin().then(() => this.#sink!.up());
      });
    });
  }

  #stop(): void {
    if (this.#thread !== undefined) this.#thread.actor.dead = true;
    this.#thread = undefined;
    this.#session = undefined;
    this.#beat?.cancel();
  }

  end(_deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    this.#ended = true;
    this.#restart?.cancel();
    this.#stop();
    return Promise.resolve({ terminated: false });
  }
}

/** A message in short. */
function told(message: ToHost | ToSession): string {
  return message.k === "beat"
    ? "a beat"
    : JSON.stringify({ ...message, texts: undefined, bodies: undefined, dataAt: undefined });
}

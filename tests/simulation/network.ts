/**
 * The line between one transport and the server: slow, and at times cut, silent or refusing.
 *
 * @module
 */
import { BrokerUnavailableError, OutcomeUnknownError } from "../../core/errors.ts";
import type { Dice } from "./dice.ts";
import { type Actor, Lane, type World } from "./world.ts";

/** How a line behaves. */
export interface LineSettings {
  /** Longest way of a message, milliseconds. */
  readonly delayMs: number;
  /** How likely a call meets a fault of its own. */
  readonly faults: number;
}

/** What the world outside does to everybody's line. */
export interface Weather {
  /** Whether the server takes connections. */
  up: boolean;
  /** Faults of single calls happen. */
  stormy: boolean;
}

/** How long after a silent spell what the server wanted to say is said again. */
const SILENCE_MS = 50;

interface Waiting {
  readonly generation: number;
  reject(error: Error): void;
}

/** One connection, made anew when it is gone. What goes over one lane keeps its order, both ways. */
export class Line {
  readonly #world: World;
  readonly #weather: Weather;
  readonly #settings: LineSettings;
  readonly #dice: Dice;
  /** The thread that is told of replies. */
  readonly actor: Actor;
  /** Nothing passes, and nobody is told. */
  silent = false;
  readonly #waiting = new Set<Waiting>();
  readonly #listeners = new Set<() => void>();
  /** To the server and back: for commands, and for publishing. */
  readonly #lanes = { main: { out: new Lane(), in: new Lane() }, publish: { out: new Lane(), in: new Lane() } };
  #generation = 0;
  #connected = false;
  #connecting: Promise<void> | undefined;
  #closed = false;
  /** The last connection that the server ended. */
  #severed = -1;
  /** Requests that were under way at a cut and arrive after this moment are lost. */
  #lostFrom = Infinity;

  constructor(world: World, weather: Weather, settings: LineSettings, dice: Dice, actor: Actor) {
    this.#world = world;
    this.#weather = weather;
    this.#settings = settings;
    this.#dice = dice;
    this.actor = actor;
  }

  get connected(): boolean {
    return this.#connected;
  }

  #delay(): number {
    // Many ties, and now and then something slow.
    const draw = this.#dice.next();
    const { delayMs } = this.#settings;
    return draw < 0.4 ? 0 : draw < 0.9 ? Math.round(draw * delayMs / 4) : Math.round(draw * delayMs);
  }

  /** Connects if need be; callers share one attempt. */
  ready(): Promise<void> {
    if (this.#connected) return Promise.resolve();
    this.#connecting ??= new Promise<void>((resolve, reject) => {
      this.#world.schedule(1 + 2 * this.#delay(), this.actor, () => {
        if (this.#closed) return reject(new BrokerUnavailableError("closed"));
        if (!this.#weather.up) return reject(new BrokerUnavailableError("connection refused"));
        this.#world.note(() => `${this.actor.name} is connected`);
        this.#connected = true;
        resolve();
        for (const heard of this.#listeners) heard();
      });
    }).finally(() => this.#connecting = undefined);
    return this.#connecting;
  }

  /** Runs `op` at the server and resolves to its answer. */
  call<T>(lane: "main" | "publish", op: () => T): Promise<T> {
    if (!this.#connected) return Promise.reject(new BrokerUnavailableError("not connected"));
    return new Promise((resolve, reject) => {
      const generation = this.#generation;
      const waiting: Waiting = { generation, reject };
      this.#waiting.add(waiting);
      const fate = this.#fate();
      this.#world.enqueue(this.#lanes[lane].out, this.#delay(), undefined, () => {
        if (this.silent || fate === "swallowed" || generation <= this.#severed) return;
        if (fate === "cut before") return this.#sever(generation);
        if (generation !== this.#generation && this.#world.now >= this.#lostFrom) return;
        const settle = fate === "refused"
          ? () => reject(new BrokerUnavailableError("the server is busy"))
          : run(op, resolve, reject);
        if (fate === "cut after") return this.#sever(generation);
        this.#world.enqueue(this.#lanes[lane].in, this.#delay(), this.actor, () => {
          if (this.silent || generation !== this.#generation) return;
          this.#waiting.delete(waiting);
          settle();
        });
      });
    });
  }

  #fate(): "fine" | "refused" | "swallowed" | "cut before" | "cut after" {
    if (!this.#weather.stormy || !this.#dice.hit(this.#settings.faults)) return "fine";
    return this.#dice.pick(["refused", "swallowed", "cut before", "cut after"]);
  }

  /** Calls `heard` a little after the server publishes something, and after each connect, since something may have been missed. */
  listen(server: { watch(wake: () => void): () => void }, heard: () => void): () => void {
    this.#listeners.add(heard);
    const tell = (): void => {
      const generation = this.#generation;
      this.#world.enqueue(this.#lanes.main.in, this.#delay(), this.actor, () => {
        if (generation !== this.#generation) return;
        if (this.silent) this.#world.schedule(SILENCE_MS, undefined, tell);
        else heard();
      });
    };
    const end = server.watch(() => this.#connected ? tell() : undefined);
    return () => {
      end();
      this.#listeners.delete(heard);
    };
  }

  /** The connection ends; the client hears of it a little later. Some of what was under way still arrives. */
  cut(): void {
    if (this.#connected) this.#cutNow();
  }

  /** The server ends a connection: nothing that was sent on it behind this moment is carried out. */
  #sever(generation: number): void {
    this.#severed = generation;
    this.#cutNow();
  }

  #cutNow(): void {
    const generation = this.#generation;
    this.#lostFrom = this.#world.now + this.#delay();
    this.#world.enqueue(this.#lanes.main.in, this.#delay(), this.actor, () => {
      if (this.#generation === generation) this.reset();
    });
  }

  /** The client gives the connection up. */
  reset(): void {
    this.#world.note(() => `${this.actor.name} has lost its connection`);
    this.#generation++;
    this.#connected = false;
    this.#lostFrom = Math.min(this.#lostFrom, this.#world.now + this.#delay());
    for (const waiting of this.#waiting) waiting.reject(new OutcomeUnknownError("the connection was lost"));
    this.#waiting.clear();
  }

  /** The client is done with it. */
  close(): void {
    this.#closed = true;
    this.reset();
  }
}

/** Runs an operation now, and answers what tells its caller. */
function run<T>(op: () => T, resolve: (value: T) => void, reject: (error: unknown) => void): () => void {
  try {
    const value = op();
    return () => resolve(value);
  } catch (error) {
    return () => reject(error);
  }
}

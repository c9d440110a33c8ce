/**
 * One process of a simulated run: its threads, its broker object and its consumer.
 *
 * @module
 */
import type { BrokerOptions } from "../../core/broker_options.ts";
import type { UndecodableSink } from "../../core/contract.ts";
import { InlineLink } from "../../workers/inline_link.ts";
import { QueuedLink, type Thread } from "./link.ts";
import { Consumer, SimBroker } from "./consumer.ts";
import type { Fault } from "../reliability/history.ts";
import type { Line } from "./network.ts";
import type { Style } from "./plan.ts";
import type { Watched } from "./rules.ts";
import { corruptId, type Scene, SESSION } from "./scene.ts";
import { SimTransport } from "./transport.ts";
import { Actor, type ActorClock } from "./world.ts";

/** How long after standing still a host needs to hear from its worker what both slept through. */
const AWAKE_MS = 20;

/** A lease is looked at every few milliseconds at most, and a message takes a few more to the host. */
const LAG_MS = 12;

/** A member of the group. */
export class Process implements Watched {
  readonly style: Style;
  readonly prefetch: number;
  readonly host: Actor;
  readonly broker: SimBroker;
  readonly consumer: Consumer;
  slept = false;
  closed = false;
  gone = false;
  readonly #scene: Scene;
  readonly #name: string;
  readonly #clock: ActorClock;
  /** Threads that ever ran a session of it, with their clocks and lines. */
  readonly #threads: { readonly actor: Actor; readonly clock: ActorClock; readonly line: Line }[] = [];
  #link: InlineLink | QueuedLink | undefined;
  #thawedAt = -Infinity;

  constructor(scene: Scene, name: string, style: Style) {
    this.#scene = scene;
    this.#name = name;
    this.style = style;
    this.prefetch = style.prefetch;
    this.host = new Actor(name);
    this.#clock = scene.clock(this.host);
    const isolation = style.link === "inline" ? "inline" : "worker";
    this.broker = new SimBroker(this.#options(), scene.plan.ordered, isolation, () => this.#link = this.#newLink());
    this.consumer = new Consumer({
      seed: scene.plan.seed,
      broker: this.broker,
      // Its own: what a handler still waits for is no business of the broker's.
      clock: scene.clock(this.host),
      style,
      watched: this,
      rules: scene.rules,
      history: scene.history,
      calm: () => scene.calm,
      haste: scene.defects.hastyRetries === true ? 2 : 1,
    });
  }

  get name(): string {
    return `${this.#name}#${this.#threads.length}`;
  }

  get inStep(): boolean {
    if (!(this.#link instanceof QueuedLink)) return true;
    return this.#link.inStep && this.#scene.world.now > this.#thawedAt + AWAKE_MS;
  }

  get lagMs(): number {
    return this.style.link === "inline" ? 0 : LAG_MS;
  }

  /** Its present line to the server. */
  get line(): Line | undefined {
    return this.#threads.at(-1)?.line;
  }

  /** Every timer that is armed on a thread that lives. */
  get armed(): number {
    const clocks = new Set([this.#clock]);
    for (const { actor, clock } of this.#threads) if (!actor.dead) clocks.add(clock);
    return [...clocks].reduce((sum, clock) => sum + clock.armed, 0);
  }

  #options(): BrokerOptions {
    const { rules } = this.#scene;
    const dice = this.#scene.dice();
    let connected = true;
    const turn = (up: boolean): void => {
      if (up === connected) {
        rules.broken("health", `${this.name} is told twice that the broker is ${up ? "up" : "down"}`);
      }
      connected = up;
    };
    const deadLetters: UndecodableSink = {
      recordUndecodable: ({ bytes }) => {
        if (!this.#scene.calm && dice.hit(0.5)) throw new Error("the record could not be written");
        rules.recorded(this.name, corruptId(bytes - 1));
      },
    };
    return {
      group: "billing",
      source: "/sim",
      clock: this.#clock,
      logger: false,
      prefetch: this.prefetch,
      callTimeoutMs: SESSION.callTimeoutMs,
      deadLetters,
      onDisconnect: () => turn(false),
      onReconnect: () => turn(true),
    };
  }

  #newLink(): InlineLink | QueuedLink {
    const { world, defects } = this.#scene;
    if (this.style.link === "inline") {
      return new InlineLink(() => this.#thread(this.host, this.#clock).transport, this.#clock, SESSION);
    }
    const spawn = (): Thread => {
      const actor = new Actor(`${this.name} worker`);
      actor.frozen = this.host.frozen;
      return this.#thread(actor, this.#scene.clock(actor));
    };
    return new QueuedLink(world, this.host, this.#clock, spawn, SESSION, this.#scene.dice(), defects.link ?? {});
  }

  #thread(actor: Actor, clock: ActorClock): Thread {
    const { rules, server, transport: settings } = this.#scene;
    const line = this.#scene.line(actor);
    this.#threads.push({ actor, clock, line });
    rules.join(this);
    const transport = new SimTransport(this.name, server, line, clock, settings, {
      settling: (natives) => rules.sending(this, natives),
      revoked: (partition, epoch) => {
        rules.revoked(this, partition, epoch);
        this.#scene.history?.revoked(this.name, partition);
      },
      left: () => rules.forget(this),
    });
    return { actor, clock, transport, cut: () => line.close() };
  }

  /** It stands still, all of it or only its host's thread; its clock with it where `missedMs` is above 0. Answers how it goes on. */
  freeze(hostOnly: boolean, missedMs: number): () => void {
    const { world } = this.#scene;
    const actors = hostOnly ? [this.host] : [this.host, ...this.#threads.map(({ actor }) => actor)];
    const standing = [...new Set(actors)].filter((actor) => !actor.dead);
    for (const actor of standing) world.freeze(actor);
    this.#fault("stop");
    if (missedMs > 0) this.slept = true;
    return () => {
      this.#thawedAt = world.now;
      this.#fault("cont");
      for (const actor of standing) {
        actor.missedMs += missedMs;
        world.thaw(actor);
      }
    };
  }

  #fault(what: Fault): void {
    this.#scene.history?.fault(this.name, what);
  }

  /** Its worker dies. */
  crash(): void {
    if (!(this.#link instanceof QueuedLink)) return;
    this.#fault("kill");
    this.#link.crash();
  }

  /** Ends it in good order. */
  async close(): Promise<void> {
    this.#fault("close");
    this.consumer.stop();
    await this.broker.close({ drainMs: 500 });
    await this.consumer.loop;
    this.closed = true;
  }

  /** It is gone without a word. */
  kill(): void {
    this.#fault("kill");
    this.gone = true;
    this.host.dead = true;
    for (const { actor, line } of this.#threads) {
      actor.dead = true;
      line.close();
    }
  }
}

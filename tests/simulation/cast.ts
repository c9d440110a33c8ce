/**
 * Who takes part in a run and what happens to them.
 *
 * @module
 */
import { InlineLink } from "../../workers/inline_link.ts";
import { chance } from "./dice.ts";
import { SimBroker } from "./consumer.ts";
import type { Action } from "./plan.ts";
import { Process } from "./process.ts";
import { Publisher } from "./publisher.ts";
import { corruptId, type Scene, SESSION } from "./scene.ts";
import { SimTransport } from "./transport.ts";
import { Actor } from "./world.ts";

/** Members, publisher and actions of one run. */
export class Cast {
  readonly processes: Process[] = [];
  readonly publisher: Publisher;
  readonly #scene: Scene;
  readonly #slots: (Process | undefined)[];
  #pending: number;

  constructor(scene: Scene) {
    this.#scene = scene;
    const { plan, world, server } = scene;
    this.#slots = plan.members.map(() => undefined);
    this.#pending = plan.actions.length;
    plan.members.forEach((style, slot) => world.schedule(style.joinsAt, undefined, () => this.#join(slot)));
    for (const action of plan.actions) world.schedule(action.at, undefined, () => this.#act(action));
    for (let n = 0; n < plan.corrupt; n++) {
      const partition = n % plan.partitions;
      const body = n % 2 === 1 ? null : `{${"x".repeat(n)}`;
      const publish = (): void => server.publish(partition, undefined, body, corruptId(n));
      world.schedule(Math.floor(chance(plan.seed, 99, n) * 500), undefined, publish);
    }
    this.publisher = this.#newPublisher();
  }

  #newPublisher(): Publisher {
    const { plan, server, rules, transport: settings } = this.#scene;
    const actor = new Actor("publisher");
    const clock = this.#scene.clock(actor);
    const transport = new SimTransport("publisher", server, this.#scene.line(actor), clock, settings, {
      settling: () => () => {},
      revoked: () => {},
      left: () => {},
    });
    const options = { source: "/sim", clock, logger: false, callTimeoutMs: SESSION.callTimeoutMs } as const;
    const broker = new SimBroker(
      options,
      plan.ordered,
      "inline",
      () => new InlineLink(() => transport, clock, SESSION),
    );
    return new Publisher(plan, broker, clock, rules);
  }

  /** Whether everybody came and everything that was planned has happened. */
  get over(): boolean {
    return this.#pending === 0 && this.processes.length >= this.#scene.plan.members.length;
  }

  /** Those that were not killed. */
  get alive(): Process[] {
    return this.processes.filter((process) => !process.gone);
  }

  #join(slot: number): void {
    const name = `m${slot}.${this.processes.length}`;
    const process = new Process(this.#scene, name, this.#scene.plan.members[slot]!);
    this.processes.push(process);
    this.#slots[slot] = process;
  }

  #act({ kind, member: slot, forMs }: Action): void {
    const { world } = this.#scene;
    world.note(() => `action: ${kind} of member ${slot} for ${forMs} ms`);
    const end = this.#begin(kind, slot, forMs);
    world.schedule(forMs, undefined, () => {
      end();
      this.#pending--;
    });
  }

  /** Begins an action; answers what ends it. */
  #begin(kind: Action["kind"], slot: number, forMs: number): () => void {
    const { weather } = this.#scene;
    const nothing = (): void => {};
    if (kind === "down") {
      weather.up = false;
      for (const { line } of this.processes) line?.cut();
      return () => weather.up = true;
    }
    const process = this.#slots[slot];
    if (process === undefined || process.gone || process.host.frozen) return nothing;
    const { line } = process;
    switch (kind) {
      case "cut":
        line?.cut();
        return nothing;
      case "silent":
        if (line === undefined) return nothing;
        line.silent = true;
        return () => line.silent = false;
      case "freeze":
        return process.freeze(false, 0);
      case "sleep":
        return process.freeze(false, forMs);
      case "busy":
        return process.freeze(true, 0);
      case "crash":
        process.crash();
        return nothing;
      case "close":
        this.#slots[slot] = undefined;
        void process.close();
        return () => this.#join(slot);
      case "kill":
        this.#slots[slot] = undefined;
        process.kill();
        return () => this.#join(slot);
    }
  }

  /** The weather clears, and every consumer behaves. */
  heal(): void {
    const { world, weather } = this.#scene;
    world.note(() => "all is well from now on");
    this.#scene.calm = true;
    weather.stormy = false;
    for (const { consumer } of this.alive) consumer.remember();
  }
}

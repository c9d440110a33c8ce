/**
 * One process of a simulated run: a broker object of this library with a consumer that behaves as its style says.
 *
 * @module
 */
import { AsyncBroker } from "../../core/broker.ts";
import type { BrokerOptions } from "../../core/broker_options.ts";
import { type Clock, pause } from "../../core/clock.ts";
import type { Delivery, SettleOutcome } from "../../core/contract.ts";
import type { Link } from "../../core/link.ts";
import { chance } from "./dice.ts";
import type { History } from "./history.ts";
import type { Style } from "./plan.ts";
import { capabilitiesOf } from "./transport.ts";
import type { Rules, Watched } from "./rules.ts";

/** The broker over whatever link it is given. */
export class SimBroker extends AsyncBroker {
  constructor(options: BrokerOptions, ordered: boolean, isolation: "worker" | "inline", link: () => Link) {
    super(options, { isolation, capabilities: capabilitiesOf(ordered), groupOptional: false, link });
  }
}

/** What a consumer needs. */
export interface ConsumerSetup {
  readonly seed: number;
  readonly broker: SimBroker;
  readonly clock: Clock;
  readonly style: Style;
  readonly watched: Watched;
  readonly rules: Rules;
  readonly history: History | undefined;
  /** Whether it behaves from now on: works fast, settles everything. */
  calm(): boolean;
  /** By how much retries come back sooner than they should; 1 = they do not. */
  readonly haste: number;
}

/** Consumes a topic until it is stopped. */
export class Consumer {
  readonly #setup: ConsumerSetup;
  readonly #forgotten: Delivery[] = [];
  readonly #stop = new AbortController();
  readonly loop: Promise<void>;
  /** Settles whose answer is out. */
  pending = 0;
  #handed = 0;

  constructor(setup: ConsumerSetup) {
    this.#setup = setup;
    this.loop = this.#run();
  }

  /** Ends its subscription. */
  stop(): void {
    this.#stop.abort();
  }

  /** Settles what it forgot. */
  remember(): void {
    for (const delivery of this.#forgotten.splice(0)) this.#settle(delivery, "ack", 0);
  }

  async #run(): Promise<void> {
    const { broker, clock, style } = this.#setup;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let left = style.stay;
      const idle = style.idleMs === undefined ? {} : { idleMs: style.idleMs };
      try {
        for await (const delivery of broker.subscribe("orders", { signal, ...idle })) {
          const work = this.#handle(delivery);
          if (!style.parallel) await work;
          if (--left <= 0 && !this.#setup.calm()) break;
        }
      } catch {
        // The broker could not be reached: it comes again.
      }
      if (!signal.aborted) await pause(clock, Math.max(20, this.#setup.calm() ? 20 : style.awayMs), signal);
    }
  }

  async #handle(delivery: Delivery): Promise<void> {
    const { seed, clock, style, rules, history, watched, calm } = this.#setup;
    rules.handedOut(watched, delivery);
    const entry = rules.entry(delivery.envelope.id);
    if (entry === undefined) return;
    history?.handed(watched.name, delivery, entry, watched.inStep && !watched.slept);
    // What becomes of it follows from the message and how often it came, so that a smaller run goes alike.
    const draw = (what: number): number =>
      chance(seed, entry.partition, entry.seq, delivery.attempt, this.#handed, what);
    this.#handed++;
    const workMs = calm() ? 0 : Math.floor(draw(0) * style.workMs);
    if (workMs > 0) await pause(clock, workMs);
    if (calm()) return this.#settle(delivery, "ack", 0);
    const fate = draw(1);
    if (fate < style.forgets) return void this.#forgotten.push(delivery);
    if (fate < style.forgets + style.retries) {
      return this.#settle(delivery, "retry", [0, 30, 400][Math.floor(draw(2) * 3)]!);
    }
    const kind = fate < style.forgets + style.retries + style.drops ? "drop" : "ack";
    this.#settle(delivery, kind, draw(3) < 0.2 ? 1 : 0, draw(4) < style.twice);
  }

  /** Settles, at times twice, and tells the rules what came of it; `option` is the delay of a retry, or 1 = wait for the broker. */
  #settle(delivery: Delivery, kind: "ack" | "drop" | "retry", option: number, twice = false): void {
    const { rules, history, watched } = this.#setup;
    if (delivery.lost !== true) rules.settling(watched, delivery, kind, option);
    const confirm = option === 1;
    if (kind !== "retry") history?.settling(delivery, confirm);
    const calls: Promise<SettleOutcome>[] = [
      kind === "ack"
        ? delivery.ack({ confirm })
        : kind === "drop"
        ? delivery.drop("as drawn", { confirm })
        : delivery.retry({ delayMs: option / this.#setup.haste }),
    ];
    if (kind === "retry" && delivery.lost !== true) history?.held(delivery);
    if (twice) calls.push(delivery.ack());
    this.pending++;
    Promise.allSettled(calls).then((results) => {
      this.pending--;
      const [first] = results;
      if (kind !== "retry" && first?.status === "fulfilled") history?.settled(delivery, first.value);
      rules.outcomes(watched, delivery, results.flatMap((one) => one.status === "fulfilled" ? [one.value] : []));
    });
  }
}

/**
 * What else runs on the machine. A round that shared the processors with something else measures that.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** The unit of `/proc/stat`. */
const TICK_MS = 10;
/** A round is disturbed where others used more than this share of one processor. */
const DISTURBED = 0.15;
const LOOK_MS = 500;

/** Time in which all processors worked, since the start of the machine, ms; NaN where the system does not tell. */
function busyMs(): number {
  try {
    const [user, nice, system, , , irq, softirq, steal] = readFileSync("/proc/stat", "utf8").split("\n")[0]!
      .split(/\s+/).slice(1).map(Number);
    return (user! + nice! + system! + irq! + softirq! + steal!) * TICK_MS;
  } catch {
    return NaN;
  }
}

/** Watches for neighbours; spends at most its patience on waiting for quiet and on repeating disturbed rounds. */
export class Neighbours {
  /** Rounds that stayed disturbed. */
  disturbed = 0;
  #patienceMs: number;
  #at = 0;
  #busy = 0;

  /** @param patienceMs How long it may wait in all; 0 = it takes what comes. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Waits until nobody else works, or patience ends. */
  async quiet(): Promise<void> {
    while (this.#patienceMs > 0) {
      this.start();
      await pause(LOOK_MS);
      this.#patienceMs -= LOOK_MS;
      if (!(this.#share(0) > DISTURBED)) return;
    }
  }

  /** A round begins. */
  start(): void {
    this.#at = performance.now();
    this.#busy = busyMs();
  }

  #share(ownMs: number): number {
    return (busyMs() - this.#busy - ownMs) / (performance.now() - this.#at);
  }

  /** The round ended, in which we and our server used `ownMs`. Answers whether it should be repeated. */
  wasDisturbed(ownMs: number): boolean {
    if (!(this.#share(ownMs) > DISTURBED)) return false;
    this.#patienceMs -= performance.now() - this.#at;
    if (this.#patienceMs > 0) return true;
    this.disturbed++;
    return false;
  }
}

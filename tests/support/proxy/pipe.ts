/**
 * One direction of one connection through the proxy.
 *
 * @module
 */
import type { Socket } from "node:net";

/** The faults of one direction, shared by all connections. */
export interface Fault {
  /** Bytes are taken in and kept, closing is not passed on; all of it follows when the hole is closed. */
  hole: boolean;
  /** Milliseconds from taking in a byte until passing it on. */
  delayMs: number;
  /** Bytes a second of each connection; Infinity is as fast as they come. */
  bytesPerSecond: number;
  /** How many more bytes may pass before every connection is cut. */
  cutAfter: number;
  /** Bytes passed on so far. */
  passed: number;
}

/** No fault. */
export function noFault(): Fault {
  return { hole: false, delayMs: 0, bytesPerSecond: Infinity, cutAfter: Infinity, passed: 0 };
}

/** A slow line moves this share of a second's bytes at a time. */
const STEPS_PER_SECOND = 50;

/**
 * Passes bytes from one socket to another as the fault allows. It always reads and keeps what it may not pass on yet:
 * pausing a socket that was just accepted does not work on every runtime.
 */
export class Pipe {
  readonly #to: Socket;
  readonly #fault: Fault;
  readonly #cut: () => void;
  readonly #queue: { bytes: Uint8Array; due: number }[] = [];
  #open = false;
  #ended = false;
  #closed = false;
  #stopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `cut` is called when the last byte that `cutAfter` allows has left. */
  constructor(from: Socket, to: Socket, fault: Fault, cut: () => void) {
    this.#to = to;
    this.#fault = fault;
    this.#cut = cut;
    from.on("data", (bytes: Uint8Array) => {
      this.#queue.push({ bytes, due: performance.now() + fault.delayMs });
      this.pump();
    });
    from.on("end", () => {
      this.#ended = true;
      this.pump();
    });
    from.on("close", () => {
      this.#closed = true;
      this.pump();
    });
  }

  /** The other side is connected. */
  open(): void {
    this.#open = true;
    this.pump();
  }

  /** Passes on what is due. Called again whenever a fault changes. */
  pump(): void {
    clearTimeout(this.#timer);
    if (!this.#open || this.#stopped || this.#to.destroyed) return;
    while (!this.#fault.hole && this.#queue.length > 0) {
      const waitMs = this.#queue[0]!.due - performance.now();
      if (waitMs > 0) return this.#later(waitMs);
      if (!this.#passOn()) return;
    }
    if (this.#fault.hole || this.#queue.length > 0) return;
    if (this.#closed) this.#to.end(() => this.#to.destroy());
    else if (this.#ended) this.#to.end();
  }

  /** Passes on no more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #later(ms: number): void {
    this.#timer = setTimeout(() => this.pump(), ms);
  }

  /** Passes on the first piece, or as much of it as the fault allows; false if the rest has to wait. */
  #passOn(): boolean {
    const fault = this.#fault;
    const head = this.#queue[0]!;
    const slow = fault.bytesPerSecond !== Infinity;
    const step = slow ? Math.max(1, Math.floor(fault.bytesPerSecond / STEPS_PER_SECOND)) : Infinity;
    const size = Math.min(head.bytes.length, step, fault.cutAfter);
    const part = head.bytes.subarray(0, size);
    if (size === head.bytes.length) this.#queue.shift();
    else head.bytes = head.bytes.subarray(size);
    fault.passed += size;
    fault.cutAfter -= size;
    if (fault.cutAfter <= 0) {
      fault.cutAfter = Infinity;
      this.stop();
      // What was allowed must arrive: the cut comes after it was handed to the system.
      this.#to.write(part, () => this.#cut());
      return false;
    }
    this.#to.write(part);
    if (!slow) return true;
    this.#later(Math.max(1, (size / fault.bytesPerSecond) * 1000));
    return false;
  }
}

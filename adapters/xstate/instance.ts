/**
 * One instance during one event: an actor that lives from the stored snapshot to the next one.
 *
 * @module
 */
import { type AnyStateMachine, createActor } from "xstate";
import { HandlerTimeoutError, SnapshotIncompatibleError } from "../../core/errors.ts";
import type { RouteScope } from "../../core/dispatch/route.ts";
import { childrenOf, DelayClock, type SystemLike, type TreeActor } from "./delays.ts";
import type { MachineEvent } from "./events.ts";
import { setCause } from "./keys.ts";
import { pendingPromises } from "./promises.ts";
import type { PersistedState, StoredDelay, StoredInstance } from "./stored.ts";

/** What an instance is made from. */
export interface InstanceInit {
  readonly machine: AnyStateMachine;
  /** Id of the root actor: the subject. */
  readonly id: string;
  readonly stored: StoredInstance | undefined;
  /** Only for a new one. */
  readonly input: unknown;
  readonly cause: { readonly source: string; readonly id: string };
}

/** The slice of an XState actor that is used. */
interface RootActor extends TreeActor {
  readonly system: object & SystemLike;
  start(): unknown;
  stop(): unknown;
  send(event: MachineEvent): void;
  getSnapshot(): MachineState;
  getPersistedSnapshot(): unknown;
  subscribe(observer: { error(error: unknown): void }): unknown;
  on(type: "*", listener: (event: MachineEvent) => void): unknown;
}

interface MachineState {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly error?: unknown;
  can(event: MachineEvent): boolean;
}

/** A running instance. {@link Instance.stop} must be called, whatever happens. */
export class Instance {
  /** What it emitted, in order. */
  readonly emitted: MachineEvent[] = [];
  readonly #actor: RootActor;
  readonly #delays: DelayClock;
  #failure: { readonly error: unknown } | undefined;

  /**
   * Restores or makes the instance and starts it.
   *
   * @throws SnapshotIncompatibleError where the snapshot does not fit the machine; what an entry action threw.
   */
  constructor(init: InstanceInit, scope: RouteScope) {
    const { machine, id, stored, input, cause } = init;
    this.#delays = new DelayClock(scope.clock);
    const options = {
      id,
      clock: this.#delays,
      logger: (...args: unknown[]) => scope.log.info("log action of a machine", { parts: args.length }),
      ...(stored === undefined ? { input } : { snapshot: stored.state }),
    };
    const actor = this.#actor = createActor(machine, options as object) as unknown as RootActor;
    setCause(actor.system, cause);
    this.#delays.attach(actor.system);
    if (stored !== undefined) checkRestored(actor, stored.state);
    // An error without an observer would be thrown into the void and end the process.
    actor.subscribe({ error: (error) => void (this.#failure ??= { error }) });
    actor.on("*", (event) => void this.emitted.push(event));
    try {
      actor.start();
      this.#throwFailure();
      if (stored !== undefined) this.#delays.restore(actor, stored.delays);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  get done(): boolean {
    return this.#actor.getSnapshot().status === "done";
  }

  /** Delays that are still to come. */
  get delays(): readonly StoredDelay[] {
    return this.#delays.pending();
  }

  /** Whether a promise is pending that an event started. */
  get pending(): boolean {
    return pendingPromises(this.#actor).length > 0;
  }

  /** Takes one event to the end of its macrostep. Answers whether the machine handles it. */
  send(event: MachineEvent): boolean {
    const before = this.#actor.getSnapshot();
    if (before.status !== "active") return true;
    this.#actor.send(event);
    this.#throwFailure();
    // A transition that only runs actions leaves the snapshot as it was, so the machine is asked.
    return this.#actor.getSnapshot() !== before || before.can(event);
  }

  /** Ends a delay. Answers whether it was still to come. */
  fire(timer: string): boolean {
    const fired = this.#delays.fire(timer);
    this.#throwFailure();
    return fired;
  }

  /**
   * Waits for all pending promises, and those that follow from them.
   *
   * @throws HandlerTimeoutError after `settleMs`; the reason of `signal`.
   */
  async settle(settleMs: number, scope: RouteScope): Promise<void> {
    let expired = false;
    let wake = () => {};
    const timer = scope.clock.timer(settleMs, () => {
      expired = true;
      wake();
    });
    const { signal } = scope;
    const stop = () => wake();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for (let pending = pendingPromises(this.#actor); pending.length > 0; pending = pendingPromises(this.#actor)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (signal.aborted) resolve();
          for (const actor of pending) subscribe(actor, resolve);
        });
        this.#throwFailure();
        signal.throwIfAborted();
        if (expired) {
          throw new HandlerTimeoutError("promises of the machine did not settle within settleMs; nothing was stored");
        }
      }
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  /** XState's snapshot to store; taken before {@link stop}, since a stopped actor would stay so. */
  persist(): PersistedState {
    return this.#actor.getPersistedSnapshot() as PersistedState;
  }

  /** Stops the actor and everything below it. */
  stop(): void {
    this.#actor.stop();
    // An actor that failed leaves its children running.
    if (this.#failure !== undefined) stopBelow(this.#actor);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    const { status, error } = this.#actor.getSnapshot();
    if (status === "error") throw error;
  }
}

function subscribe(actor: TreeActor, ended: () => void): void {
  const observable = actor as unknown as { subscribe(observer: object): unknown };
  observable.subscribe({ complete: ended, error: ended });
}

function stopBelow(actor: TreeActor): void {
  for (const child of Object.values(childrenOf(actor))) {
    (child as { _stop?: () => void })._stop?.();
    stopBelow(child);
  }
}

/** XState reports some misfits as an actor in error, and drops children it does not know without a word. */
function checkRestored(actor: RootActor, state: PersistedState): void {
  const { status, error } = actor.getSnapshot();
  if (status === "error" && state.status !== "error") {
    throw new SnapshotIncompatibleError("the stored snapshot does not fit the machine", { cause: error });
  }
  checkChildren(actor, state);
}

function checkChildren(actor: TreeActor, state: PersistedState): void {
  const children = childrenOf(actor);
  for (const [id, { snapshot }] of Object.entries(state.children ?? {})) {
    const child = children[id];
    if (child === undefined) {
      throw new SnapshotIncompatibleError("the stored snapshot has a child actor that the machine does not know");
    }
    checkChildren(child, snapshot as PersistedState);
  }
}

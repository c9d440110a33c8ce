/**
 * How an instance is stored: XState's own snapshot, and the delays that are still to come.
 *
 * @module
 */
import { SnapshotIncompatibleError } from "../../core/errors.ts";
import type { Snapshot } from "../../core/store/contract.ts";

/** A delayed event, as it stands in the snapshot; the timer row of the store only has its id. */
export interface StoredDelay {
  /** Id of its timer, unique in the instance. */
  readonly timer: string;
  /** Ids of the actors that scheduled it and will get it, from below the root. */
  readonly source: readonly string[];
  readonly target: readonly string[];
  /** XState's id of it, by which it is cancelled. */
  readonly id: string;
  readonly event: { readonly type: string };
  /** Wall clock ms. */
  readonly dueAt: number;
}

/** A persisted snapshot as XState makes it, as far as looked at here. */
export interface PersistedState {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly children?: Readonly<Record<string, { readonly snapshot: unknown }>>;
}

/** The stored text, parsed. */
export interface StoredInstance {
  readonly state: PersistedState;
  readonly delays: readonly StoredDelay[];
}

/** Brings a snapshot of an older machine into the form of this one. */
export type Migrate = (
  state: unknown,
  from: { readonly machine: string; readonly version: string },
) => unknown;

/** The text to store. */
export function writeStored(instance: StoredInstance): string {
  return JSON.stringify(instance);
}

/**
 * Reads what is stored, for a machine of this id and version.
 *
 * @throws SnapshotIncompatibleError where it was written by another machine or version and `migrate` is absent or fails, or
 * where it is no stored instance.
 */
export function readStored(
  snapshot: Snapshot,
  machine: string,
  version: string,
  migrate: Migrate | undefined,
): StoredInstance {
  const details = { machine, version, storedMachine: snapshot.machine, storedVersion: snapshot.machineVersion };
  let stored: StoredInstance;
  try {
    stored = JSON.parse(snapshot.value) as StoredInstance;
  } catch (cause) {
    throw new SnapshotIncompatibleError("the stored snapshot is no JSON", { cause, details });
  }
  if (typeof stored?.state?.status !== "string" || !Array.isArray(stored.delays)) {
    throw new SnapshotIncompatibleError("the stored snapshot is none of a machine", { details });
  }
  if (snapshot.machine === machine && snapshot.machineVersion === version) return stored;
  if (migrate === undefined) {
    throw new SnapshotIncompatibleError(
      "the stored snapshot was written by another machine or version; give machine(m, { migrate }) or its old version",
      { details },
    );
  }
  try {
    const from = { machine: snapshot.machine, version: snapshot.machineVersion };
    return { state: migrate(stored.state, from) as PersistedState, delays: stored.delays };
  } catch (cause) {
    throw new SnapshotIncompatibleError("migrate threw for the stored snapshot", { cause, details });
  }
}

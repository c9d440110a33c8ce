import { BrokerUnavailableError, ServerUnsupportedError } from "../../core/errors.ts";
import type { ClientSlice } from "./client.ts";
import { replies } from "./errors.ts";
import type { Script } from "./scripts/parts.ts";

/** XPENDING with IDLE, XAUTOCLAIM and exclusive ranges came with it. */
const NEEDED: readonly [number, number] = [6, 2];

/**
 * What is said first on a new connection, in one round trip: is the server new enough and ready, what is our number there,
 * end the predecessor, load the scripts. Answers our number. What the server's access rules forbid is done without.
 */
export async function greet(
  client: ClientSlice,
  previous: string | undefined,
  scripts: readonly Script[],
): Promise<string | undefined> {
  const without = (reply: Promise<unknown>): Promise<unknown> => reply.catch(() => undefined);
  const [info, id] = await Promise.all([
    client.call("INFO").catch((error) => {
      if (replies(error, "NOPERM")) return undefined;
      throw error;
    }),
    without(client.call("CLIENT", "ID")),
    previous === undefined ? undefined : without(client.call("CLIENT", "KILL", "ID", previous)),
    ...scripts.map((script) => without(client.call("SCRIPT", "LOAD", script.text))),
  ]);
  if (typeof info === "string") checkServer(info);
  return typeof id === "number" || typeof id === "string" ? String(id) : undefined;
}

/** Refuses a server that is too old or has not loaded its data. */
export function checkServer(info: string): void {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  const version = field("redis_version");
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  if (version !== undefined && (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1]))) {
    throw new ServerUnsupportedError(`the server is Redis ${version}; ${NEEDED.join(".")} or later is needed`, {
      details: { found: version, needed: NEEDED.join(".") },
    });
  }
  if (field("loading") === "1") throw new BrokerUnavailableError("Redis is loading its data");
}

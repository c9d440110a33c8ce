/**
 * A fault proxy before Kafka. Its clients follow the addresses that the server advertises, so the proxy listens where one
 * of the server's listeners says that it is.
 *
 * @module
 */
import { type Proxy, type ProxyOptions, startProxy } from "./proxy/proxy.ts";
import { until } from "./wait.ts";

/** A proxy that clients of Kafka stay behind. */
export interface KafkaDoor {
  readonly proxy: Proxy;
  /** The list of brokers for clients. */
  readonly brokers: string;
}

/**
 * Starts a proxy before a Kafka, at the first of its doors that is free; waits for one while other tests have them all.
 * Every connection that a client makes because of what the server told it goes through the proxy too.
 *
 * @param server A leg `kafka` or a server of a test's own.
 * @param start `startProxyProcess` for a proxy that goes on while this thread is blocked.
 * @throws Error when the server has no doors: one that a user gives, without `XSM_KAFKA_DOORS`.
 */
export async function openKafkaDoor(
  server: { readonly ports: Readonly<Record<string, number>> },
  start: (options: ProxyOptions) => Promise<Proxy> = startProxy,
): Promise<KafkaDoor> {
  const doors = Object.entries(server.ports).flatMap(([name, port]) => {
    const door = name.match(/^inner(\d+)$/)?.[1];
    const listen = server.ports[`outer${door}`];
    return door === undefined || listen === undefined ? [] : [{ port, listen }];
  });
  if (doors.length === 0) throw new Error("This Kafka has no listener for a proxy: set XSM_KAFKA_DOORS");
  const open = async (): Promise<KafkaDoor | undefined> => {
    for (const door of doors) {
      try {
        return { proxy: await start(door), brokers: `127.0.0.1:${door.listen}` };
      } catch {
        // Another test has this one.
      }
    }
    return undefined;
  };
  return await until(open, { timeoutMs: 20_000, everyMs: 200, what: "a free door of this Kafka" });
}

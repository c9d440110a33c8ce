/**
 * The host is blocked for three times the lease, with deliveries handed out: the worker keeps them, and nobody else gets them.
 *
 * @module
 */
import { type CaseSettings, say } from "../support/case.ts";
import { atMost, type Figure, figure } from "../support/figure.ts";
import { redisBroker, streamOf } from "../support/ours.ts";
import { type Client, client, fill } from "../support/redis_raw.ts";

const MESSAGES = 400;
const HANDED_OUT = 100;

/** Runs the check. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const raw = await client(settings.redisUrl);
  const figures: Figure[] = [];
  for (const ordered of [true, false]) {
    const leaseMs = settings.quick ? 1_000 : 15_000;
    const lease = ordered ? { ownerLeaseMs: leaseMs } : { minIdleMs: leaseMs };
    const { redelivered, reconnects } = await block(settings, raw, leaseMs, { ordered, ...lease });
    const what = `host blocked for 3 x the lease, ${ordered ? "ordered" : "unordered"}`;
    figures.push(figure(`${what}: redeliveries`, "count", [redelivered], atMost(0)));
    figures.push(figure(`${what}: reconnects`, "count", [reconnects], atMost(0)));
  }
  raw.disconnect();
  return figures;
}

async function block(
  settings: CaseSettings,
  raw: Client,
  leaseMs: number,
  options: Parameters<typeof redisBroker>[1],
): Promise<{ readonly redelivered: number; readonly reconnects: number }> {
  const topic = `bench-blocked-${options?.ordered}`;
  await raw.del(streamOf(topic));
  await fill(raw, streamOf(topic), MESSAGES);
  let reconnects = 0;
  const told = { onDisconnect: () => void reconnects++, onReconnect: () => void reconnects++ };
  const broker = redisBroker(settings.redisUrl, { group: "g", prefetch: MESSAGES, ...options, ...told });
  // It would take over, or claim, whatever the first one's worker let go.
  const rival = redisBroker(settings.redisUrl, { group: "g", ...options });
  const seen = new Map<string, number>();
  const count = (id: string): void => void seen.set(id, (seen.get(id) ?? 0) + 1);
  const stop = new AbortController();

  const held = [];
  const stream = broker.subscribe(topic);
  while (held.length < HANDED_OUT) {
    const next = await stream.next();
    if (next.done) throw new Error("the stream ended early");
    count(next.value.envelope.id);
    held.push(next.value);
  }
  const others = (async () => {
    for await (const delivery of rival.subscribe(topic, { signal: stop.signal })) {
      count(delivery.envelope.id);
      await delivery.ack();
    }
  })();
  await rival.connect();
  await new Promise((resolve) => setTimeout(resolve, 300));

  const connections = await connectionsOf(raw);
  const end = performance.now() + 3 * leaseMs;
  while (performance.now() < end);
  // What happened meanwhile arrives now.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const opened = await connectionsOf(raw) - connections;

  for (const delivery of held) if (await delivery.ack() !== "accepted") reconnects++;
  const deadline = setTimeout(() => stop.abort(), 10_000);
  while (seen.size < MESSAGES) {
    const next = await stream.next();
    if (next.done) break;
    count(next.value.envelope.id);
    await next.value.ack();
  }
  clearTimeout(deadline);
  await stream.return?.();
  await broker.close();
  stop.abort();
  await others;
  await rival.close();
  const redelivered = [...seen.values()].reduce((sum, times) => sum + times - 1, 0);
  say(`${topic}: blocked ${3 * leaseMs} ms, ${seen.size} of ${MESSAGES} seen, ${opened} connections opened meanwhile`);
  return { redelivered: redelivered + MESSAGES - seen.size, reconnects: reconnects + opened };
}

/** Connections that the server has taken since its start. */
async function connectionsOf(raw: Client): Promise<number> {
  return Number((await raw.info("stats")).match(/total_connections_received:(\d+)/)?.[1]);
}

/**
 * The host is blocked for three times the lease, with deliveries handed out: the worker keeps them, and nobody else gets them.
 *
 * @module
 */
import { brokerOf } from "../brokers.ts";
import type { BenchServer } from "../support/broker.ts";
import { type CaseSettings, say } from "../support/case.ts";
import { atMost, type Figure, figure } from "../support/figure.ts";

const MESSAGES = 400;
const HANDED_OUT = 100;

/** Runs the check. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const broker = await brokerOf(settings.broker);
  const server = await broker.open(settings.url);
  const figures: Figure[] = [];
  for (const ordered of [true, false]) {
    const leaseMs = settings.quick ? 1_000 : broker.leaseMs;
    const { redelivered, reconnects } = await block(server, leaseMs, ordered);
    const what = `host blocked for 3 x ${broker.lease}, ${ordered ? "ordered" : "unordered"}`;
    figures.push(figure(`${what}: redeliveries`, "count", [redelivered], atMost(0)));
    figures.push(figure(`${what}: reconnects`, "count", [reconnects], atMost(0)));
  }
  await server.close();
  return figures;
}

async function block(
  server: BenchServer,
  leaseMs: number,
  ordered: boolean,
): Promise<{ readonly redelivered: number; readonly reconnects: number }> {
  const { topic, group } = await server.stock(MESSAGES, ordered ? "ordered" : "unordered");
  const options = { group, ordered, leaseMs };
  let reconnects = 0;
  const told = { onDisconnect: () => void reconnects++, onReconnect: () => void reconnects++ };
  const broker = server.ours({ ...options, prefetch: MESSAGES, ...told });
  // It would take over, or claim, whatever the first one's worker let go.
  const rival = server.ours(options);
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

  const connections = await server.connections();
  const end = performance.now() + 3 * leaseMs;
  while (performance.now() < end);
  // What happened meanwhile arrives now.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const opened = await server.connections() - connections;

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
  say(
    `${ordered ? "ordered" : "unordered"}: blocked ${
      3 * leaseMs
    } ms, ${seen.size} of ${MESSAGES} seen, ${opened} connections opened meanwhile`,
  );
  return { redelivered: redelivered + MESSAGES - seen.size, reconnects: reconnects + opened };
}

import assert from "node:assert/strict";
import type { Raw } from "../../core/transport.ts";
import { createTransport } from "../../adapters/redis/transport.ts";
import { onLegs, randomFrom, startProxy, until } from "../support/test.ts";
import { admin, FreezableClock, Listener, names, openTransport, pendingOf, Reader } from "./redis_support.ts";

const SUBJECTS = 8;
const EACH = 60;

onLegs(["redis"], (onRedis) => {
  for (const partitions of [1, 3]) {
    const title =
      `members that are cut off, frozen and replaced at random: nothing is lost, no subject out of order (${partitions} partitions)`;
    // Members are frozen and cut on purpose, and what a test does to them goes on a little after its end.
    onRedis(title, { timeoutMs: 90_000, sanitize: false }, async ({ url }, context) => {
      const n = names();
      const random = randomFrom(partitions * 7 + 1);
      const options = {
        prefix: n.prefix,
        partitions,
        ownerLeaseMs: 600,
        commandTimeoutMs: 250,
        connectTimeoutMs: 250,
        blockMs: 100,
      };
      const first = new Map<string, number[]>();
      let over = false;

      /** What a member was given counts as handled at once. */
      const handle = (raws: readonly Raw[]): void => {
        for (const { body } of raws) {
          const [subject, number] = String(body).split(":") as [string, string];
          const seen = first.get(subject) ?? [];
          first.set(subject, seen);
          if (!seen.includes(Number(number))) seen.push(Number(number));
        }
      };

      const member = async (): Promise<void> => {
        const proxy = await startProxy({ port: Number(new URL(url).port) });
        const clock = new FreezableClock();
        const transport = await createTransport({ ...options, url: proxy.url(url) }, clock);
        const listener = new Listener();
        const reader = new Reader(transport, n.topic, n.group);
        const life = performance.now() + 1_000 + random() * 3_000;
        const trouble = async (): Promise<void> => {
          while (!over && performance.now() < life) {
            await new Promise((resolve) => setTimeout(resolve, 50 + random() * 300));
            const dice = random();
            if (dice < 0.35) await proxy.cut();
            else if (dice < 0.45) await proxy.cutAfter(Math.floor(random() * 3_000), random() < 0.5 ? "up" : "down");
            else if (dice < 0.6) {
              await proxy.blackHole(random() < 0.5 ? "both" : "down");
              await new Promise((resolve) => setTimeout(resolve, random() * 1_200));
              await proxy.heal();
            } else if (dice < 0.7) {
              clock.frozen = true;
              await new Promise((resolve) => setTimeout(resolve, random() * 1_200));
              return; // A frozen clock does not go on: the member is replaced.
            }
          }
        };
        const work = async (): Promise<void> => {
          let unsettled: Raw[] = [];
          while (!over && performance.now() < life && !clock.frozen) {
            try {
              if (unsettled.length > 0) {
                await reader.ack(unsettled);
                unsettled = [];
              }
              const raws = await reader.fetch(200, 1 + Math.floor(random() * 20));
              handle(raws);
              // Some are given up unsettled, as by a process that dies.
              if (random() < 0.9) unsettled = [...raws];
            } catch {
              await new Promise((resolve) => setTimeout(resolve, 20));
              await transport.open(listener).catch(() => {});
            }
          }
        };
        const troubled = trouble();
        await Promise.race([
          work(),
          troubled.then(() => new Promise<void>((resolve) => setTimeout(resolve, clock.frozen ? 100 : 4_000))),
        ]);
        await troubled;
        // Half of them say goodbye, the others vanish.
        if (random() < 0.5) transport.reset("vanished");
        clock.frozen = false;
        await transport.close();
        await proxy.close();
      };

      const seats = Array.from({ length: 3 }, async () => {
        while (!over) await member();
      });
      const { transport: publisher } = await openTransport(context, { url, prefix: n.prefix, partitions });
      for (let number = 1; number <= EACH; number++) {
        const batch = Array.from({ length: SUBJECTS }, (_, s) => ({ body: `s${s}:${number}`, subject: `s${s}` }));
        const outcomes = await publisher.send(n.topic, batch);
        assert.ok(outcomes.every((outcome) => outcome === undefined));
        await new Promise((resolve) => setTimeout(resolve, random() * 100));
      }
      const client = await admin(context, url);
      const streams = partitions === 1
        ? [n.stream]
        : Array.from({ length: partitions }, (_, at) => `${n.stream}:${at}`);
      // The server is asked: the answer to an ack that it carried out may have been cut off with the member that sent it.
      const allSettled = async (): Promise<boolean> => {
        const seen = [...first.values()].reduce((sum, numbers) => sum + numbers.length, 0);
        if (seen < SUBJECTS * EACH) return false;
        const pending = await Promise.all(streams.map((stream) => pendingOf(client, stream, n.group)));
        return pending.every((count) => count === 0);
      };
      try {
        await until(allSettled, { timeoutMs: 60_000, everyMs: 50, what: "everything to be settled" });
      } finally {
        over = true;
        await Promise.all(seats);
      }
      for (const [subject, seen] of first) {
        assert.deepEqual(seen, Array.from({ length: EACH }, (_, at) => at + 1), subject);
      }
    });
  }
});

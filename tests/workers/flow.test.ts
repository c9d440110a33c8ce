import assert from "node:assert/strict";
import type { ToHost, ToSession } from "../../core/session/messages.ts";
import { fresh, test } from "../support/test.ts";
import { fixture } from "./fixtures/fixture_broker.ts";
import { TapLink } from "./fixtures/tap_link.ts";

/** Counts what the session sent and has not been given back; remembers the most. */
class Window {
  open = 0;
  most = 0;
  frames = 0;

  in(message: ToHost): void {
    if (message.k === "deliver") {
      this.frames++;
      this.open += message.texts.length;
      this.most = Math.max(this.most, this.open);
    } else if (message.k === "lost") this.open -= countOf(message.ids);
  }

  out(message: ToSession): void {
    if (message.k === "settle") this.open -= countOf(message.acks) + countOf(message.drops);
  }
}

function countOf(ranges: readonly number[] = []): number {
  let count = 0;
  for (let at = 0; at < ranges.length; at += 2) count += ranges[at + 1]! - ranges[at]! + 1;
  return count;
}

for (const isolation of ["worker", "inline"] as const) {
  for (const prefetch of [1, 2, 7, 64, 256]) {
    test(`${isolation}: what the session sends and has not got back never exceeds a prefetch of ${prefetch}`, async (context) => {
      const window = new Window();
      const broker = fixture(context, { isolation, prefetch, tap: (link) => new TapLink(link, window) });
      const topic = fresh("t");
      const total = 1_000;
      const messages = Array.from({ length: total }, (_, n) => ({ type: "n", subject: `s${n % 50}`, data: n }));
      await broker.publishAll(topic, messages);
      const seen = new Set<unknown>();
      let held: { ack(): unknown }[] = [];
      for await (const delivery of broker.subscribe(topic)) {
        // Some at once, some in batches the other way round, some held back first.
        if (delivery.attempt === 0 && seen.size % 97 === 3) {
          await delivery.retry({ delayMs: 5 });
          continue;
        }
        seen.add(delivery.envelope.data);
        held.push(delivery);
        if (held.length >= Math.min(prefetch, 5) || seen.size >= total - prefetch) {
          for (const one of held.reverse()) await one.ack();
          held = [];
        }
        if (seen.size === total) break;
      }
      assert.ok(window.most <= prefetch, `${window.most} at once`);
      assert.ok(window.most > prefetch / 2, `the window is used: ${window.most}`);
      assert.equal((await broker.close()).unconfirmed, 0);
    });
  }

  test(`${isolation}: frames carry many messages where there are many`, async (context) => {
    const window = new Window();
    const broker = fixture(context, { isolation, prefetch: 256, tap: (link) => new TapLink(link, window) });
    const topic = fresh("t");
    await broker.publishAll(topic, Array.from({ length: 5_000 }, () => ({ type: "n" })));
    let count = 0;
    for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
      count++;
      await delivery.ack();
    }
    assert.equal(count, 5_000);
    assert.ok(window.frames <= 5_000 / 50, `${window.frames} frames`);
    await broker.close();
  });
}

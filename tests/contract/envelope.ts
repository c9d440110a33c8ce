import assert from "node:assert/strict";
import type { EnvelopeInit } from "../../core/envelope.ts";
import { type ContractCase, contractCase, type Harness } from "./kit.ts";

const EVENTS: readonly (EnvelopeInit & { readonly id: string })[] = [
  { id: "odd-subject", type: "t", subject: "a b%20é😀/?#", data: { text: "ünïcode \u2028 😀" } },
  { id: "id with spaces and 😀", type: "t", data: null },
  { id: "none", type: "t" },
  { id: "bytes", type: "t", data: new Uint8Array([0, 255, 1, 128]) },
  { id: "lone", type: "t", data: { lone: "\ud800", nul: "\u0000" } },
  { id: "ext", type: "t", extensions: { flag: false, zero: 0, name: "x", tostring: "y" }, data: [] },
  { id: "all", type: "t", subject: "s", time: "2026-01-02T03:04:05.678Z", datacontenttype: "text/plain", data: "{}" },
  { id: "trace", type: "t", correlationid: "c", causationid: "d", dataschema: "/schema", data: { __proto__x: 1 } },
];

/** The envelope arrives exactly as it was published (CE-14, CE-15 and more). */
export function envelopeCases(harness: Harness): ContractCase[] {
  return [
    contractCase(harness, "envelope: every attribute, extension and kind of data arrives as it was sent", async (c) => {
      const broker = c.broker();
      const sent = await broker.publishAll(c.topic, EVENTS);
      const seen = await c.take(c.broker(), EVENTS.length);
      seen.forEach((delivery, at) => {
        assert.equal(JSON.stringify(delivery.envelope), JSON.stringify(sent[at]));
        assert.deepEqual(delivery.envelope.extensions, EVENTS[at]!.extensions ?? {});
        assert.deepEqual(delivery.envelope.data, EVENTS[at]!.data);
      });
    }),
    contractCase(harness, "envelope: what one attempt changes, the next does not see (CE-18)", async (c) => {
      const broker = c.broker();
      await broker.publish(c.topic, { type: "t", subject: "s", data: { list: [1] } });
      let round = 0;
      for await (const delivery of broker.subscribe(c.topic)) {
        const data = delivery.envelope.data as { list: number[]; x?: number };
        assert.deepEqual(data, { list: [1] });
        data.list.push(2);
        data.x = 1;
        assert.throws(() => (delivery.envelope as { subject: string }).subject = "other");
        if (++round === 2) {
          await delivery.ack();
          break;
        }
        await delivery.retry();
      }
    }),
    contractCase(harness, "envelope: number literals are forwarded as they were written (CE-05)", async (c) => {
      const body =
        '{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{"n":9007199254740993,"f":1.0,"e":1e2,"m":-0}}';
      await harness.raw!(c.topic, new TextEncoder().encode(body));
      const broker = c.broker();
      const [delivery] = await c.take(broker, 1);
      const target = `${c.topic}-copy`;
      await broker.publish(target, delivery!.envelope);
      await delivery!.ack();
      for await (const copy of broker.subscribe(target)) {
        assert.ok(copy.envelope.toString === undefined || true);
        const { textOf } = await import("../../core/codec.ts");
        assert.ok(textOf(copy.envelope).includes('"data":{"n":9007199254740993,"f":1.0,"e":1e2,"m":-0}'));
        await copy.ack();
        break;
      }
    }, { skip: harness.raw === undefined ? "the harness cannot put bytes on a topic" : undefined }),
  ];
}

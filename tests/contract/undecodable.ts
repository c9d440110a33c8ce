import assert from "node:assert/strict";
import type { UndecodableRecord } from "../../core/contract.ts";
import { type ContractCase, contractCase, eventually, type Harness } from "./kit.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Bodies that are no envelope (COR-05), by name. */
const BAD: readonly (readonly [string, Uint8Array])[] = [
  ["empty", new Uint8Array(0)],
  ["open brace", text("{")],
  ["array", text("[]")],
  ["null", text("null")],
  ["string", text('"x"')],
  ["invalid UTF-8", new Uint8Array([0xff, 0xfe, 0x7b])],
  ["NaN", text('{"specversion":"1.0","id":"1","source":"/a","type":"t","data":NaN}')],
  ["no id", text('{"specversion":"1.0","source":"/a","type":"t"}')],
  ["other version", text('{"specversion":"0.3","id":"1","source":"/a","type":"t"}')],
  ["deep", text("[".repeat(200_000))],
];

/** Promise 8, inbound. */
export function undecodableCases(harness: Harness): ContractCase[] {
  const skip = harness.raw === undefined ? "the harness cannot put bytes on a topic" : undefined;
  return [
    contractCase(
      harness,
      "8: undecodable messages are recorded with their exact bytes, dropped, and strand nobody (COR-05)",
      async (c) => {
        const records: UndecodableRecord[] = [];
        const broker = c.broker({
          maxBytes: 300_000,
          keepCorruptBodies: true,
          deadLetters: { recordUndecodable: (record) => void records.push(record) },
        });
        const bad = BAD.filter(([, body]) => harness.carries?.(body) !== false);
        for (const [, body] of bad) await harness.raw!(c.topic, body);
        await broker.publish(c.topic, { type: "good", subject: "s", data: 1 });
        const [good] = await c.take(broker, 1);
        assert.equal(good!.envelope.type, "good");
        await good!.ack({ confirm: true });
        await eventually("all are recorded", () => records.length === bad.length);
        const hex = (bytes: Uint8Array | undefined): string => Array.from(bytes ?? [], (b) => b.toString(16)).join("");
        assert.deepEqual(records.map((r) => hex(r.body)).sort(), bad.map(([, body]) => hex(body)).sort());
        assert.ok(records.every((r) => r.topic === c.topic && r.group === c.group && r.sha256.length === 64));
        await broker.close();
        assert.deepEqual(await c.drain(c.broker()), [], "they are gone for good");
      },
      { skip },
    ),
    contractCase(harness, "8: an oversized message is recorded without its body and never parsed", async (c) => {
      const records: UndecodableRecord[] = [];
      const broker = c.broker({
        maxBytes: 2_000,
        deadLetters: { recordUndecodable: (record) => void records.push(record) },
      });
      await harness.raw!(c.topic, text("{".repeat(5_000)));
      await broker.publish(c.topic, { type: "good", data: 1 });
      assert.deepEqual(await c.drain(broker), [1]);
      await eventually("it is recorded", () => records.length === 1);
      assert.equal(records[0]!.error.code, "envelope-too-large");
      assert.equal(records[0]!.bytes, 5_000);
      assert.equal(records[0]!.body, undefined);
      assert.equal(broker.healthy, true);
    }, { skip }),
    contractCase(
      harness,
      "8: while the record cannot be written the message is held, then recorded once",
      async (c) => {
        let failures = 3;
        const records: UndecodableRecord[] = [];
        const broker = c.broker({
          deadLetters: {
            recordUndecodable(record) {
              if (failures-- > 0) throw new Error("the record store is down");
              records.push(record);
            },
          },
        });
        await harness.raw!(c.topic, text("{broken"));
        await broker.publish(c.topic, { type: "good", data: 1 });
        const [good] = await c.take(broker, 1);
        await good!.ack({ confirm: true });
        await eventually("it is recorded at last", () => records.length === 1);
        await broker.close();
        assert.deepEqual(await c.drain(c.broker()), []);
        assert.equal(records.length, 1);
      },
      { skip },
    ),
  ];
}

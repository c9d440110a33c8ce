/** A subject of a `publishAll` ends at its first failure, also over a broker that accepts what follows a refused message. */
import assert from "node:assert/strict";
import { OutcomeUnknownError, type PublishBatchError, PublishRefusedError } from "../../core/errors.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import { FakeTransportBroker } from "./fake_transport.ts";
import { randomFrom, test, until } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

interface Message {
  readonly type: string;
  readonly subject?: string;
  readonly data: number;
}

const numberOf = ({ body }: Outgoing): number => (JSON.parse(body) as { data: number }).data;

/** A broker that answers each message by itself, over a transport that does not stop a subject. */
async function accepting(answer: (number: number) => SendOutcome) {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const sends: Outgoing[][] = [];
  broker.transport.stopsAtFailure = false;
  broker.transport.onSend = (_, messages) => {
    sends.push([...messages]);
    return Promise.resolve(messages.map((message) => answer(numberOf(message))));
  };
  await broker.connect();
  return { broker, sends };
}

const outcomesOf = (call: Promise<unknown>): Promise<PublishBatchError["outcomes"]> =>
  call.then(() => assert.fail("it fails"), (error: PublishBatchError) => error.outcomes);

function oneASubject(sends: readonly (readonly Outgoing[])[]): void {
  for (const send of sends) {
    const subjects = send.flatMap(({ subject }) => subject === undefined ? [] : [subject]);
    assert.equal(new Set(subjects).size, subjects.length, "two messages of a subject on their way together");
  }
}

test("one message a subject is on its way; a refused one ends its subject, others go on", async () => {
  const { broker, sends } = await accepting((n) => n === 3 ? new PublishRefusedError("full") : undefined);
  const messages: Message[] = [];
  for (let data = 1; data <= 9; data++) messages.push({ type: "n", subject: `s${data % 3}`, data });
  messages.push({ type: "n", data: 10 }, { type: "n", data: 11 });
  const outcomes = await outcomesOf(broker.publishAll("t", messages));
  oneASubject(sends);
  assert.deepEqual(sends.map((send) => send.map(numberOf)), [[1, 2, 3, 10, 11], [4, 5], [7, 8]]);
  const failed = outcomes.flatMap((outcome, at) => outcome.ok ? [] : [[at + 1, outcome.error.code]]);
  assert.deepEqual(failed, [[3, "publish-refused"], [6, "publish-refused"], [9, "publish-refused"]]);
  const last = outcomes[8]!;
  assert.ok(!last.ok && last.error.details["unsent"] === true);
  await broker.close();
});

test("an unknown outcome ends its subject, and what follows of it is told to be unsent", async () => {
  const { broker, sends } = await accepting((n) => n === 1 ? new OutcomeUnknownError("cut") : undefined);
  const messages = [1, 2, 3].map((data) => ({ type: "n", subject: "s", data }));
  const outcomes = await outcomesOf(broker.publishAll("t", messages));
  assert.deepEqual(sends.map((send) => send.map(numberOf)), [[1]]);
  assert.deepEqual(outcomes.map((outcome) => outcome.ok ? "ok" : outcome.error.code), [
    "outcome-unknown",
    "broker-unavailable",
    "broker-unavailable",
  ]);
  await broker.close();
});

test("a batch whose subjects differ goes out as a whole, a large one in parts", async () => {
  const { broker, sends } = await accepting(() => undefined);
  await broker.publishAll("t", [1, 2, 3].map((data) => ({ type: "n", subject: `s${data}`, data })));
  assert.deepEqual(sends.splice(0).map((send) => send.length), [3]);
  await broker.publishAll("t", Array.from({ length: 600 }, (_, data) => ({ type: "n", data })));
  assert.deepEqual(sends.map((send) => send.length), [256, 256, 88]);
  await broker.close();
});

test("whatever is refused: per subject exactly what came before its first refusal was accepted, in order", async () => {
  const random = randomFrom(1);
  for (let round = 0; round < 60; round++) {
    const total = 1 + Math.floor(random() * 700);
    const refused = new Set(
      Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() * total)),
    );
    const accepted = new Map<string, number[]>();
    const { broker, sends } = await accepting((n) => refused.has(n) ? new PublishRefusedError("no") : undefined);
    const subjects = 1 + Math.floor(random() * 40);
    const messages = Array.from({ length: total }, (_, data): Message => {
      const s = Math.floor(random() * (subjects + 1));
      return s === subjects ? { type: "n", data } : { type: "n", subject: `s${s}`, data };
    });
    const expected = new Map<string, number[]>();
    const ended = new Set<string>();
    for (const { subject, data } of messages) {
      const key = subject ?? `none ${data}`;
      if (refused.has(data)) ended.add(key);
      if (!ended.has(key)) expected.set(key, [...expected.get(key) ?? [], data]);
    }
    const errors = await broker.publishAll("t", messages).then(() => [], (error: PublishBatchError) => error.outcomes);
    oneASubject(sends);
    for (const message of sends.flat()) {
      const number = numberOf(message);
      const key = message.subject ?? `none ${number}`;
      if (!refused.has(number)) accepted.set(key, [...accepted.get(key) ?? [], number]);
    }
    assert.deepEqual(new Map([...accepted].sort()), new Map([...expected].sort()));
    const ok = errors.length === 0 ? total : errors.filter((outcome) => outcome.ok).length;
    assert.equal(ok, [...expected.values()].flat().length);
    await broker.close();
  }
});

test("a publish behind a paced batch of its topic is sent after the batch's last message", async () => {
  const { broker, sends } = await accepting(() => undefined);
  const batch = broker.publishAll("t", [1, 2, 3].map((data) => ({ type: "n", subject: "s", data })));
  const next = broker.publish("t", { type: "n", subject: "s", data: 4 });
  await until(() => sends.length === 4);
  await Promise.all([batch, next]);
  assert.deepEqual(sends.map((send) => send.map(numberOf)), [[1], [2], [3], [4]]);
  await broker.close();
});

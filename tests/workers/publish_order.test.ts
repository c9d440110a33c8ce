import assert from "node:assert/strict";
import { systemClock } from "../../core/clock.ts";
import { Session, type SessionOptions } from "../../core/session/session.ts";
import type { ToHost } from "../../core/session/messages.ts";
import type { Outgoing, SendOutcome, TransportEvents } from "../../core/transport.ts";
import { MemoryHub } from "../../adapters/memory/hub.ts";
import { MemoryTransport } from "../../adapters/memory/transport.ts";
import { fresh, test, until } from "../support/test.ts";
import { fixture } from "./fixtures/fixture_broker.ts";

const OPTIONS: SessionOptions = {
  maxBytes: 1_048_576,
  publishTimeoutMs: 5_000,
  connectTimeoutMs: 5_000,
  callTimeoutMs: 5_000,
  maxStallMs: 0,
  beatMs: 1_000,
  keepCorruptBodies: false,
};

/** Writes down what it is given to send, and lets a test act in the moment in which it opens. */
class Recorder extends MemoryTransport {
  readonly sent: string[] = [];
  readonly #opening: () => void;
  readonly #sendMs: number;

  constructor(opening: () => void, sendMs = 0) {
    super(new MemoryHub(), systemClock, true, 1_048_576);
    this.#opening = opening;
    this.#sendMs = sendMs;
  }

  override async open(events: TransportEvents): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 5));
    this.#opening();
    await super.open(events);
  }

  override async send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    this.sent.push(...messages.map((message) => message.body));
    if (this.#sendMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#sendMs));
    return await super.send(topic, messages);
  }
}

function frame(call: number, bodies: readonly string[], chained = false) {
  return { k: "publish", call, topic: "t", bodies, subjects: bodies.map(() => "s"), chained } as const;
}

test("Session: frames that arrive while it connects are sent in the order in which they arrived", async () => {
  const answers: ToHost[] = [];
  const numbers = Array.from({ length: 40 }, (_, n) => String(n));
  let session: Session | undefined = undefined as Session | undefined;
  const transport = new Recorder(() => {
    // One more frame in each of the next microtasks: some arrive just when the connection is there, and before those that
    // waited for it were told.
    let n = 1;
    const next = (): void => {
      session!.receive(frame(n, [String(n)]));
      if (++n < numbers.length) queueMicrotask(next);
    };
    next();
  });
  session = new Session(transport, systemClock, OPTIONS, (message) => void answers.push(message));
  session.receive(frame(0, ["0"]));
  await until(() => answers.filter((answer) => answer.k === "published").length === numbers.length);
  assert.deepEqual(transport.sent, numbers);
});

test("Session: a publish behind a long publishAll of its topic does not overtake its later parts", async () => {
  const answers: ToHost[] = [];
  const transport = new Recorder(() => {}, 3);
  const session = new Session(transport, systemClock, OPTIONS, (message) => void answers.push(message));
  session.receive({ k: "connect", call: 100 });
  await until(() => answers.length > 0);
  const many = Array.from({ length: 1_000 }, (_, n) => String(n));
  session.receive(frame(1, many, true));
  session.receive(frame(2, ["last"]));
  session.receive({ ...frame(3, ["other"]), topic: "other" });
  await until(() => answers.filter((answer) => answer.k === "published").length === 3);
  assert.deepEqual(transport.sent.filter((body) => body !== "other"), [...many, "last"]);
  assert.notEqual(transport.sent.at(-1), "other", "another topic does not wait for it");
});

test("Session: frames that wait for a connection that cannot be had share its failure", async () => {
  const answers: ToHost[] = [];
  let attempts = 0;
  const transport = new Recorder(() => {
    attempts++;
    throw new Error("nobody there");
  });
  const session = new Session(transport, systemClock, OPTIONS, (message) => void answers.push(message));
  for (let n = 0; n < 20; n++) session.receive(frame(n, ["x"]));
  await until(() => answers.filter((answer) => answer.k === "published").length === 20);
  assert.equal(attempts, 1);
  for (const answer of answers) {
    if (answer.k === "published") assert.match(String(answer.errors?.[0]?.[1]), /BrokerUnavailableError/);
  }
});

for (const isolation of ["worker", "inline"] as const) {
  test(`${isolation}: publishes called before the broker has started arrive in the order of the calls`, async (context) => {
    const broker = fixture(context, { isolation, slowStartMs: 5 });
    const topic = fresh("t");
    const calls: Promise<unknown>[] = [];
    const total = 600;
    for (let n = 0; n < total; n++) {
      calls.push(broker.publish(topic, { type: "n", subject: "s", data: n }));
      if (n % 2 === 0) await Promise.resolve();
      if (n % 40 === 0) await new Promise<void>((resolve) => systemClock.turn(resolve));
    }
    await Promise.all(calls);
    const seen: unknown[] = [];
    for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
      seen.push(delivery.envelope.data);
      await delivery.ack();
    }
    assert.deepEqual(seen, Array.from({ length: total }, (_, n) => n));
    await broker.close();
  });
}

import assert from "node:assert/strict";
import { Session, type SessionOptions } from "../../core/session/session.ts";
import type { ToHost, ToSession } from "../../core/session/messages.ts";
import { MemoryHub } from "../../adapters/memory/hub.ts";
import { MemoryTransport } from "../../adapters/memory/transport.ts";
import { assertExits, test, type TestContext } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const OPTIONS: SessionOptions = {
  maxBytes: 1_048_576,
  publishTimeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  callTimeoutMs: 10_000,
  maxStallMs: 10_000,
  beatMs: 1_000,
  keepCorruptBodies: false,
};

type Deliver = Extract<ToHost, { k: "deliver" }>;

/** A session under a virtual clock, as its host sees it. */
class Host {
  readonly got: ToHost[] = [];
  readonly session: Session;
  readonly #clock: VirtualClock;
  #calls = 1;

  constructor(clock: VirtualClock, hub: MemoryHub, context: TestContext) {
    this.#clock = clock;
    const transport = new MemoryTransport(hub, clock, true, 1_048_576);
    this.session = new Session(transport, clock, OPTIONS, (message) => void this.got.push(message));
    context.cleanup(async () => {
      this.session.receive({ k: "close", call: 0, drainMs: 0 });
      await clock.advance(5_000);
    });
  }

  async say(message: ToSession): Promise<void> {
    this.session.receive(message);
    await this.#clock.flush();
  }

  subscribe(prefetch = 10): Promise<void> {
    return this.say({ k: "subscribe", call: this.#calls++, sub: 1, topic: "t", group: "g", prefetch });
  }

  publish(...ids: string[]): Promise<void> {
    const bodies = ids.map((id) => JSON.stringify({ specversion: "1.0", id, source: "/s", type: "t" }));
    const call = this.#calls++;
    return this.say({ k: "publish", call, topic: "t", bodies, subjects: ids.map(() => undefined), chained: false });
  }

  /** Beats for so long. */
  async live(ms: number): Promise<void> {
    for (let past = 0; past < ms; past += OPTIONS.beatMs) {
      await this.#clock.advance(OPTIONS.beatMs);
      this.session.receive({ k: "beat" });
    }
    await this.#clock.flush();
  }

  /** Event id and delivery id of everything handed over so far. */
  get delivered(): (readonly [string, number])[] {
    const frames = this.got.filter((message): message is Deliver => message.k === "deliver");
    return frames.flatMap(({ base, texts }) =>
      texts.map((text, at) => [(JSON.parse(text) as { id: string }).id, base + at] as const)
    );
  }

  states(): string[] {
    return this.got.flatMap((message) => message.k === "topic" ? [message.state] : []);
  }
}

test("a host that does not beat for maxStallMs loses what it holds to another consumer, and consumes again when it beats", async (context) => {
  const clock = new VirtualClock();
  const hub = new MemoryHub();
  const host = new Host(clock, hub, context);
  await host.subscribe();
  await host.publish("a", "b");
  assert.deepEqual(host.delivered, [["a", 0], ["b", 1]]);
  const other = new Host(clock, hub, context);
  await other.subscribe();
  await other.live(9_000);
  assert.equal(other.delivered.length, 0, "not before its time");
  await other.live(3_000);
  assert.deepEqual(other.delivered.map(([id]) => id), ["a", "b"]);
  assert.ok(host.states().includes("stalled"));
  assert.ok(host.got.some((message) => message.k === "lost"), "the host is told that they are lost");

  await host.say({ k: "beat" });
  assert.equal(host.states().at(-1), "standby");
  await other.say({ k: "settle", sub: 1, acks: [0, 1] });
  await other.say({ k: "unsubscribe", call: 99, sub: 1 });
  assert.equal(host.states().at(-1), "active");
  await host.publish("c");
  assert.deepEqual(host.delivered.map(([id]) => id), ["a", "b", "c"]);
  await host.say({ k: "settle", sub: 1, acks: [2, 2] });
  assert.equal(hub.group("t", "g", true).unsettled, 0);
});

test("a settle from before a stall settles nothing of what was delivered after it", async (context) => {
  const clock = new VirtualClock();
  const hub = new MemoryHub();
  const host = new Host(clock, hub, context);
  await host.subscribe();
  await host.publish("a");
  await clock.advance(12_000);
  assert.ok(host.states().includes("stalled"));
  // The host wakes up and sends what it had decided, before it reads that it lost everything.
  await host.say({ k: "beat" });
  await clock.advance(100);
  const [, [again, id]] = host.delivered as [unknown, readonly [string, number]];
  assert.equal(again, "a");
  assert.notEqual(id, 0, "its number was never given before");
  await host.say({ k: "settle", sub: 1, acks: [0, 0] });
  assert.equal(hub.group("t", "g", true).unsettled, 1, "the new delivery is not settled");
  assert.ok(host.got.some((message) => message.k === "settle-failed"), "the host is told that its ack came to nothing");
  await host.say({ k: "settle", sub: 1, acks: [id, id] });
  assert.equal(hub.group("t", "g", true).unsettled, 0);
});

test("time asleep does not count as a stall: the machine or the whole process was suspended", async (context) => {
  const clock = new VirtualClock();
  const hub = new MemoryHub();
  const host = new Host(clock, hub, context);
  await host.subscribe();
  await host.publish("a");
  for (let n = 0; n < 4; n++) {
    await host.live(1_000);
    await clock.jump(3_600_000);
  }
  assert.ok(!host.states().includes("stalled"));
  assert.ok(!host.got.some((message) => message.k === "lost"));
  await host.say({ k: "settle", sub: 1, acks: [0, 0] });
  assert.equal(hub.group("t", "g", true).unsettled, 0);
});

test("a stalled host that leaves a subscription meanwhile does not get it back", async (context) => {
  const clock = new VirtualClock();
  const hub = new MemoryHub();
  const host = new Host(clock, hub, context);
  await host.subscribe();
  await clock.advance(12_000);
  await host.say({ k: "unsubscribe", call: 7, sub: 1 });
  await host.publish("a");
  await host.live(3_000);
  assert.equal(host.delivered.length, 0);
});

test("a host that computes for longer than maxStallMs resumes; one whose whole process was stopped lost nothing", {
  timeoutMs: 60_000,
}, async () => {
  for (const how of ["block", "stop"]) {
    await assertExits(new URL("./children/stall.ts", import.meta.url), [how]);
  }
});

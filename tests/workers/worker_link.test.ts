import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import type { ToHost } from "../../core/session/messages.ts";
import { PROTOCOL_VERSION } from "../../workers/protocol.ts";
import { WorkerLink } from "../../workers/worker_link.ts";
import { test, within } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

type Frame = { readonly k: string };
type Listener = (event: { data?: unknown; error?: unknown; message?: string; preventDefault?(): void }) => void;

/** A worker that does what a test says. */
class FakeWorker {
  readonly posted: string[] = [];
  terminated = 0;
  /** How it behaves. */
  readonly ways: { polite?: boolean; postThrows?: string; terminate?: "never" | "throws" };
  readonly #listeners = new Map<string, Listener[]>();

  constructor(ways: FakeWorker["ways"] = {}) {
    this.ways = ways;
    queueMicrotask(() => this.say({ k: "ready", version: PROTOCOL_VERSION }));
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...this.#listeners.get(type) ?? [], listener]);
  }

  fire(type: string, event: Parameters<Listener>[0]): void {
    for (const listener of this.#listeners.get(type) ?? []) listener(event);
  }

  say(frame: object): void {
    this.fire("message", { data: frame });
  }

  postMessage(frame: Frame): void {
    if (frame.k === this.ways.postThrows) throw new Error("InvalidStateError");
    this.posted.push(frame.k);
    if (frame.k === "init") queueMicrotask(() => this.say({ k: "started" }));
    if (frame.k === "exit" && this.ways.polite !== false) queueMicrotask(() => this.say({ k: "bye" }));
  }

  terminate(): unknown {
    this.terminated++;
    if (this.ways.terminate === "throws") throw new Error("it was gone");
    return this.ways.terminate === "never" ? new Promise(() => {}) : undefined;
  }
}

const SESSION = {
  maxBytes: 1_048_576,
  publishTimeoutMs: 1_000,
  connectTimeoutMs: 1_000,
  callTimeoutMs: 1_000,
  maxStallMs: 300_000,
  beatMs: 1_000,
  keepCorruptBodies: false,
};

interface Linked {
  readonly clock: VirtualClock;
  readonly link: WorkerLink;
  readonly workers: FakeWorker[];
  readonly told: string[];
  /** Of all its workers. */
  readonly ways: FakeWorker["ways"];
}

/** A link over fake workers, started. */
async function linked(ways: FakeWorker["ways"] = {}): Promise<Linked> {
  const clock = new VirtualClock();
  const workers: FakeWorker[] = [];
  const told: string[] = [];
  const make = (): FakeWorker => {
    const worker = new FakeWorker(ways);
    workers.push(worker);
    return worker;
  };
  const link = new WorkerLink({ source: () => make, adapter: {}, session: SESSION }, clock);
  await link.start({
    receive: (message: ToHost) => void told.push(message.k),
    down: (error) => void told.push(`down: ${String((error.cause as Error).message)}`),
    up: () => void told.push("up"),
  });
  return { clock, link, workers, told, ways };
}

test("WorkerLink: where posting shows that the worker died, no beat and no second replacement follows", async () => {
  const { clock, link, workers, told } = await linked();
  workers[0]!.ways.postThrows = "beat";
  await clock.advance(1_000);
  assert.deepEqual(told, ["down: InvalidStateError"]);
  assert.equal(clock.armed, 1, "the restart and nothing else");
  workers[0]!.fire("error", { message: "late" });
  workers[0]!.fire("close", {});
  workers[0]!.say({ k: "health", ok: true });
  assert.equal(told.length, 1, "what a dead one says is ignored");
  await link.end(100);
  assert.equal(clock.armed, 0);
});

test("WorkerLink: one that answers its beats stays; one that does not is replaced after three", async () => {
  const { clock, link, workers, told } = await linked();
  for (let beat = 1; beat <= 20; beat++) {
    await clock.advance(1_000);
    workers[0]!.say({ k: "beat" });
  }
  assert.equal(workers.length, 1);
  await clock.advance(2_999);
  assert.equal(told.filter((line) => line.startsWith("down")).length, 0);
  await clock.advance(2);
  assert.match(told.at(-1)!, /no sign for 3 beats/);
  await clock.advance(300);
  assert.equal(told.at(-1), "up");
  assert.equal(workers.length, 2);
  await link.end(100);
  assert.equal(clock.armed, 0);
});

test("WorkerLink: one that dies as soon as it has started is replaced later each time; after a sound life at once again", async () => {
  const { clock, link, workers, told } = await linked();
  const waits: number[] = [];
  for (let death = 0; death < 8; death++) {
    workers.at(-1)!.fire("error", { message: "died" });
    const diedAt = clock.monotonic();
    await clock.advanceUntil(() => told.at(-1) === "up");
    waits.push(clock.monotonic() - diedAt);
  }
  assert.deepEqual(waits, [150, 300, 600, 1_200, 2_400, 4_800, 7_500, 7_500]);
  for (let beat = 0; beat < 12; beat++) {
    await clock.advance(1_000);
    workers.at(-1)!.say({ k: "beat" });
  }
  workers.at(-1)!.fire("error", { message: "died" });
  const diedAt = clock.monotonic();
  await clock.advanceUntil(() => told.at(-1) === "up");
  assert.equal(clock.monotonic() - diedAt, 150);
  await link.end(100);
});

test("WorkerLink: ending is polite where the worker is; else it is terminated when its time is over", async () => {
  const polite = await linked();
  assert.deepEqual(await polite.link.end(2_000), { terminated: false });
  assert.deepEqual(polite.workers[0]!.posted, ["init", "beat", "exit"]);
  assert.equal(polite.workers[0]!.terminated, 1);

  const rude = await linked({ polite: false });
  const ending = rude.link.end(2_000);
  await rude.clock.advance(2_000);
  assert.deepEqual(await ending, { terminated: true });
  assert.equal(rude.workers[0]!.terminated, 1);
});

test("WorkerLink: ending has a bound, whatever terminate() does (WRK-07)", async () => {
  for (const terminate of ["never", "throws"] as const) {
    const { link, clock } = await linked({ terminate });
    const start = performance.now();
    assert.deepEqual(await within(3_000, "the end", link.end(2_000)), { terminated: false });
    assert.ok(performance.now() - start < 2_000, "within a second, and some");
    assert.deepEqual(await within(3_000, "the second end", link.end(2_000)), { terminated: false });
    assert.equal(clock.armed, 0);
  }
});

test("WorkerLink: one that dies in the moment in which it stands is a failed start, told once", async () => {
  await assert.rejects(linked({ postThrows: "beat" }), (error: EdaError) => error.code === "worker-start-failed");
  const { clock, link, workers, told, ways } = await linked();
  ways.postThrows = "beat";
  workers[0]!.fire("error", { message: "died" });
  await clock.advance(2_000);
  assert.ok(workers.length > 2, "it is tried again");
  assert.deepEqual(told, ["down: died"]);
  delete ways.postThrows;
  await clock.advanceUntil(() => told.length > 1);
  assert.deepEqual(told, ["down: died", "up"]);
  await link.end(100);
  assert.equal(clock.armed, 0);
});

test("WorkerLink: ended while a replacement waits, or starts, nothing comes up any more", async () => {
  const { link, clock, workers, told } = await linked();
  workers[0]!.fire("error", { message: "died" });
  await link.end(100);
  await clock.advance(60_000);
  assert.equal(workers.length, 1);
  assert.deepEqual(told, ["down: died"]);
  assert.equal(clock.armed, 0);
});

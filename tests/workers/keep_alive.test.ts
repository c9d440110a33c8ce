import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import type { Link } from "../../core/link.ts";
import { fresh, test, until, within } from "../support/test.ts";
import { fixture } from "./fixtures/fixture_broker.ts";
import { TapLink } from "./fixtures/tap_link.ts";

/** Knows how many links were made and how many of them ended. */
class Links {
  made = 0;
  ended = 0;

  readonly tap = (link: Link): Link => {
    this.made++;
    const tapped = new TapLink(link, {});
    const end = tapped.end.bind(tapped);
    tapped.end = async (deadlineMs) => {
      const report = await end(deadlineMs);
      this.ended++;
      return report;
    };
    return tapped;
  };
}

for (const isolation of ["worker", "inline"] as const) {
  test(`${isolation}: with keepAlive: false an idle session ends, and the next call starts another`, async (context) => {
    const links = new Links();
    const broker = fixture(context, { isolation, keepAlive: false, tap: links.tap });
    const topic = fresh("t");
    for (let round = 1; round <= 3; round++) {
      await broker.publish(topic, { type: "n", data: round });
      await until(() => links.ended === round, { timeoutMs: 5_000 });
      assert.equal(links.made, round);
      assert.equal(broker.healthy, true, "resting is no fault");
    }
    await broker.connect();
    assert.equal(links.made, 4);
  });

  test(`${isolation}: calls that meet a session on its way out wait for the next one; none is lost`, async (context) => {
    const links = new Links();
    const broker = fixture(context, { isolation, keepAlive: false, tap: links.tap });
    const topic = fresh("t");
    let answered = 0;
    // Pauses around the time after which it rests, so that some calls come just before, some while and some after it ends.
    for (let pauseMs = 197; pauseMs <= 211; pauseMs += 2) {
      await within(10_000, "a publish", broker.publish(topic, { type: "n" }));
      answered++;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    assert.equal(answered, 8);
    assert.ok(links.made > 1);
    assert.equal(broker.health().counters["worker-restarts"], undefined);
  });

  test(`${isolation}: a subscription keeps the session, for as long as it is open or something of it is unsettled`, async (context) => {
    const links = new Links();
    const broker = fixture(context, { isolation, keepAlive: false, tap: links.tap });
    const topic = fresh("t");
    await broker.publish(topic, { type: "n", data: 0 });
    const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
    const waiting = stream.next();
    await until(() => broker.health().topics[0]?.state === "active");
    const made = links.made;
    await new Promise((resolve) => setTimeout(resolve, 600));
    assert.equal(links.made - links.ended, 1, "one stands");
    await broker.publish(topic, { type: "n", data: 1 });
    const delivery = (await waiting).value!;
    await stream.return!();
    await new Promise((resolve) => setTimeout(resolve, 600));
    assert.equal(links.made, made);
    assert.equal(links.made - links.ended, 1, "what was handed out can still be settled");
    assert.equal(await delivery.ack({ confirm: true }), "settled");
    await until(() => links.ended === links.made, { timeoutMs: 10_000, what: "the session to end" });
  });

  test(`${isolation}: closing while the session rests, or is on its way out, is what closing always is`, async (context) => {
    const links = new Links();
    const broker = fixture(context, { isolation, keepAlive: false, tap: links.tap });
    await broker.publish(fresh("t"), { type: "n" });
    await until(() => links.ended === 1, { timeoutMs: 5_000 });
    assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
    await assert.rejects(broker.publish("t", { type: "n" }), (error: EdaError) => error.code === "closed");
  });
}

test("worker: with keepAlive: false a worker that dies with nothing to do is not replaced before it is needed", async (context) => {
  const links = new Links();
  const broker = fixture(context, { keepAlive: false, session: { beatMs: 100 }, tap: links.tap });
  await broker.publish("do-throw", { type: "n" }).catch(() => {});
  await until(() => links.ended === 1, { timeoutMs: 5_000 });
  await broker.publish(fresh("t"), { type: "n" });
  assert.equal(links.made, 2);
  assert.equal(broker.healthy, true);
});

test("by default an idle session stays", async (context) => {
  const links = new Links();
  const broker = fixture(context, { isolation: "inline", tap: links.tap });
  await broker.publish(fresh("t"), { type: "n" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.deepEqual([links.made, links.ended], [1, 0]);
});

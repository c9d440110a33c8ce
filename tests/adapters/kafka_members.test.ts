import assert from "node:assert/strict";
import process from "node:process";
import { KafkaBroker } from "../../adapters/kafka/mod.ts";
import { type Child, child, fresh, onLeg, randomFrom, type TestContext, until } from "../support/test.ts";
import { openHand } from "./kafka_support.ts";
import type { MemberLine, MemberPlan } from "./kafka_member.ts";

const onKafka = onLeg("kafka");
const SESSION_MS = 1_500;

class MemberProcess {
  readonly child: Child;
  #read = 0;
  readonly #lines: MemberLine[] = [];

  constructor(context: TestContext, plan: MemberPlan) {
    this.child = child(new URL("./kafka_member.ts", import.meta.url), [JSON.stringify(plan)], {}, {
      timeoutMs: 170_000,
    });
    context.cleanup(async () => {
      this.child.kill("SIGKILL");
      await this.child.done;
    });
  }

  get lines(): readonly MemberLine[] {
    const text = this.child.stdout;
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(this.#read, end).split("\n")) {
      if (line.startsWith("{")) this.#lines.push(JSON.parse(line) as MemberLine);
    }
    this.#read = end;
    return this.#lines;
  }

  get got(): readonly Extract<MemberLine, { what: "got" }>[] {
    return this.lines.flatMap((line) => line.what === "got" ? [line] : []);
  }

  get settled(): readonly Extract<MemberLine, { what: "settled" }>[] {
    return this.lines.flatMap((line) => line.what === "settled" ? [line] : []);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How often what happens in the test; `XSM_KAFKA_ROUNDS` for a long run. */
const ROUNDS = Number(process.env["XSM_KAFKA_ROUNDS"] ?? 8);

onKafka(
  "members join, leave, die and freeze under load: sets are whole, order per subject stands",
  { timeoutMs: 120_000 + ROUNDS * 8_000, sanitize: false },
  async ({ url }, context) => {
    const random = randomFrom(Number(process.env["XSM_KAFKA_SEED"] ?? 11));
    const topic = fresh("t");
    const hand = await openHand(url);
    context.cleanup(() => hand.close());
    await hand.make(topic, 6);
    const brokers = url.split(",");
    const group = fresh("g");
    const plan: MemberPlan = {
      broker: { brokers, group, sessionTimeoutMs: SESSION_MS, prefetch: 60 },
      topic,
      workMs: 8,
    };
    const all: MemberProcess[] = [];
    const live: MemberProcess[] = [];
    const killed = new Set<MemberProcess>();
    const join = (): void => {
      const member = new MemberProcess(context, plan);
      all.push(member);
      live.push(member);
    };
    join();
    join();
    const publisher = new KafkaBroker({ brokers, source: "/members", logger: false });
    context.cleanup(() => publisher.close());
    let published = 0;
    let loading = true;
    const load = (async () => {
      while (loading) {
        const messages = Array.from({ length: 10 }, () => {
          const n = published++;
          return { type: "n", subject: `s${n % 37}`, data: n };
        });
        await publisher.publishAll(topic, messages);
        await pause(30);
      }
    })();
    load.catch(() => {});
    const any = (): MemberProcess => live[Math.floor(random() * live.length)]!;
    const drop = (member: MemberProcess): void => void live.splice(live.indexOf(member), 1);
    const counts: Record<string, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      const before = new Map(all.map((member) => [member, member.got.length]));
      const choices = live.length < 3
        ? ["join"]
        : live.length > 3
        ? ["leave", "die", "freeze"]
        : ["freeze", "die", "join", "leave"];
      const what = choices[Math.floor(random() * choices.length)]!;
      counts[what] = (counts[what] ?? 0) + 1;
      const one = any();
      if (what === "join") join();
      else if (what === "freeze") {
        one.child.kill("SIGSTOP");
        await pause(SESSION_MS * 2);
        one.child.kill("SIGCONT");
      } else {
        drop(one);
        if (what === "die") killed.add(one);
        one.child.kill(what === "die" ? "SIGKILL" : "SIGTERM");
      }
      await until(() => live.filter((member) => member.got.length > (before.get(member) ?? 0) + 5).length >= 2, {
        timeoutMs: 60_000,
        everyMs: 50,
        what: `two members at work after ${what} in round ${round}`,
      });
    }
    loading = false;
    await load;
    // One that was killed may have had its settle confirmed, and not have said so.
    const done = (): Set<number> =>
      new Set(
        all.flatMap((member) =>
          member.lines.flatMap((line) =>
            line.what === "settled" && line.outcome === "settled" || line.what === "settling" && killed.has(member)
              ? [line.n]
              : []
          )
        ),
      );
    await until(() => done().size === published, { timeoutMs: 40_000, everyMs: 100, what: "all to be settled" }).catch(
      () => {},
    );
    const settled = done();
    const missing = Array.from({ length: published }, (_, n) => n).filter((n) => !settled.has(n));
    const about = all.map((member) => member.lines.filter((line) => "n" in line && missing.includes(line.n)));
    assert.deepEqual(missing, [], `nothing is lost: ${JSON.stringify(about)}`);
    const got = all.flatMap((member) => member.got).sort((a, b) => a.at - b.at);
    const highest = new Map<string, number>();
    const overtaken = got.filter(({ subject, n }) => {
      const before = highest.get(subject) ?? -1;
      // What came before may come again; what was never seen must not come late.
      const late = n < before &&
        !got.some((other) => other.n === n && other.at < (got.find((g) => g.n === before)!.at));
      if (n > before) highest.set(subject, n);
      return late;
    });
    assert.deepEqual(overtaken, [], "first deliveries of a subject are in order");
    const twice = got.length - new Set(got.map(({ n }) => n)).size;
    console.log(`${published} events, ${all.length} members, ${JSON.stringify(counts)}, ${twice} delivered again`);
    for (const member of live) member.child.kill("SIGTERM");
    for (const member of live) {
      const { code, stdout, stderr } = await member.child.done;
      // It had not begun to listen for the signal.
      if (stdout === "") continue;
      assert.equal(code, 0, stderr);
      assert.match(stdout, /"what":"end".*"unconfirmed":0/);
    }
    const ends = await hand.ends(topic);
    assert.deepEqual(await hand.committed(topic, group), ends);
  },
);

onKafka(
  "a host blocked for three sessions keeps its partitions, and what it settles then counts (KAF-08)",
  { timeoutMs: 90_000, sanitize: false },
  async ({ url }, context) => {
    const topic = fresh("t");
    const group = fresh("g");
    const brokers = url.split(",");
    const publisher = new KafkaBroker({
      brokers,
      source: "/busy",
      logger: false,
      isolation: "inline",
      group,
      sessionTimeoutMs: SESSION_MS,
    });
    context.cleanup(() => publisher.close());
    await publisher.publishAll(topic, Array.from({ length: 20 }, (_, n) => ({ type: "n", subject: "s", data: n })));
    const broker = { brokers, group, sessionTimeoutMs: SESSION_MS };
    const busy = new MemberProcess(context, { broker, topic, workMs: SESSION_MS * 3, burns: true, oneByOne: true });
    await until(() => busy.got.length > 0, { what: "the first delivery", timeoutMs: 20_000 });
    // Another member, which would get the partition.
    const seen: unknown[] = [];
    const stop = new AbortController();
    const reading = (async () => {
      for await (const delivery of publisher.subscribe(topic, { signal: stop.signal })) {
        seen.push(delivery.envelope.data);
        await delivery.ack();
      }
    })();
    await until(() => publisher.health().topics[0]?.state === "standby", {
      what: "the other one to stand by",
      timeoutMs: 15_000,
    });
    await until(() => busy.settled.length === 20, { what: "all to be settled", timeoutMs: 30_000 });
    assert.deepEqual(busy.got.map(({ n }) => n), Array.from({ length: 20 }, (_, n) => n), "each comes once");
    assert.ok(busy.settled.every(({ outcome, lost }) => outcome === "settled" && !lost));
    assert.deepEqual(seen, []);
    stop.abort();
    await reading;
  },
);

onKafka(
  "a member that is frozen past its session settles nothing when it wakes, and hands out nothing that is another's",
  { timeoutMs: 90_000, sanitize: false },
  async ({ url }, context) => {
    const topic = fresh("t");
    const group = fresh("g");
    const brokers = url.split(",");
    const settings = { brokers, group, sessionTimeoutMs: SESSION_MS, source: "/frozen", logger: false as const };
    const other = new KafkaBroker(settings);
    context.cleanup(() => other.close());
    await other.publishAll(topic, Array.from({ length: 60 }, (_, n) => ({ type: "n", subject: "s", data: n })));
    const frozen = new MemberProcess(context, {
      broker: { brokers, group, sessionTimeoutMs: SESSION_MS },
      topic,
      workMs: 40,
      oneByOne: true,
    });
    await until(() => frozen.settled.length > 5, { what: "it to work", timeoutMs: 20_000 });
    frozen.child.kill("SIGSTOP");
    const seen: number[] = [];
    const stop = new AbortController();
    const reading = (async () => {
      for await (const delivery of other.subscribe(topic, { signal: stop.signal })) {
        seen.push(delivery.envelope.data as number);
        await delivery.ack({ confirm: true });
      }
    })();
    await until(() => seen.includes(59), { what: "the other one to take over", timeoutMs: 20_000 });
    const before = frozen.got.length;
    frozen.child.kill("SIGCONT");
    await until(async () => {
      const hand = await openHand(url);
      const members = await hand.members(group);
      await hand.close();
      return members === 2;
    }, { what: "it to be let in again", timeoutMs: 20_000, everyMs: 200 });
    const late = frozen.got.slice(before);
    assert.deepEqual(late, [], "nothing was begun after it woke");
    const woken = frozen.settled.filter(({ lost, outcome }) => lost && outcome === "settled");
    assert.deepEqual(woken, [], "no settle of a lost delivery counts");
    const known = new Set([...frozen.settled.flatMap(({ n, outcome }) => outcome === "settled" ? [n] : []), ...seen]);
    assert.equal(known.size, 60);
    stop.abort();
    await reading;
  },
);

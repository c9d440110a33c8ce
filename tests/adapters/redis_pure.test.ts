import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { harmless, publishRefusal, refusal } from "../../adapters/redis/errors.ts";
import { checkServer } from "../../adapters/redis/greeting.ts";
import type { RedisNative } from "../../adapters/redis/context.ts";
import { Held } from "../../adapters/redis/held.ts";
import { besideOf, crc32, partitionOf, slotOf, TopicKeys } from "../../adapters/redis/keys.ts";
import { resolveOptions } from "../../adapters/redis/resolve.ts";
import { ReadSize } from "../../adapters/redis/read_size.ts";
import { bodyOf, type Bytes, isOlder, readClaimed, readEntries } from "../../adapters/redis/wire.ts";
import type { EdaError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

const bytes = (text: string | number[]): Bytes =>
  (typeof text === "string" ? Buffer.from(text) : Buffer.from(text)) as unknown as Bytes;

function reply(message: string, command?: unknown): Error {
  const error = new Error(message);
  error.name = "ReplyError";
  return Object.assign(error, command === undefined ? {} : { command });
}

test("crc32 is the checksum that zlib and the reference system compute", () => {
  assert.equal(crc32(""), 0);
  assert.equal(crc32("123456789"), 0xcbf43926);
  assert.equal(crc32("é"), crc32FromBytes([0xc3, 0xa9]));
  assert.equal(crc32("a€𝄞"), crc32FromBytes([0x61, 0xe2, 0x82, 0xac, 0xf0, 0x9d, 0x84, 0x9e]));
});

/** Bit by bit, as the standard writes it. */
function crc32FromBytes(input: number[]): number {
  let crc = 0xffffffff;
  for (const byte of input) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

test("partitionOf takes no subject for the empty one and is always 0 with one partition", () => {
  assert.equal(partitionOf(undefined, 8), 0);
  assert.equal(partitionOf("", 8), 0);
  assert.equal(partitionOf("123456789", 8), 0xcbf43926 % 8);
  assert.equal(partitionOf("anything", 1), 0);
});

test("slotOf computes the slots that Redis documents", () => {
  assert.equal(slotOf("123456789"), 12_739);
  assert.equal(slotOf("foo"), 12_182);
  assert.equal(slotOf("{user1000}.following"), slotOf("user1000"));
  assert.equal(slotOf("foo{}{bar}"), slotOf("foo{}{bar}"));
  assert.notEqual(slotOf("foo{}{bar}"), slotOf("bar"));
});

test("keys of streams are those of the reference system", () => {
  assert.deepEqual(new TopicKeys("shop", "orders", 1).streams, ["shop:stream:orders"]);
  assert.deepEqual(new TopicKeys("shop", "orders", 3).streams, [
    "shop:stream:orders:0",
    "shop:stream:orders:1",
    "shop:stream:orders:2",
  ]);
});

test("keys beside a stream share its slot, whatever braces the names have", () => {
  for (const name of ["orders", "a{b}c", "a{b", "a}b", "a{}b", "{}", "}{", "{a}{b}", "{{a}}", "日本"]) {
    for (const partitions of [1, 3]) {
      const topic = new TopicKeys("p", name, partitions);
      topic.streams.forEach((stream, partition) => {
        const keys = topic.partition(partition, "g{r}oup}");
        assert.equal(keys.stream, stream);
        const slots = new Set([keys.stream, keys.owner, keys.epoch, keys.owners, keys.floor].map(slotOf));
        assert.deepEqual([...slots], [slotOf(stream)], `${name} ${partitions}`);
      });
      assert.equal(slotOf(topic.record), slotOf(`p:stream:${name}`));
      assert.equal(slotOf(topic.members("g}")), slotOf(`p:stream:${name}`));
    }
  }
  assert.equal(besideOf("xsm:stream:orders"), "{xsm:stream:orders}");
});

test("bodyOf finds the field ce wherever it stands, and answers no bytes without one", () => {
  assert.deepEqual(bodyOf([bytes("ce"), bytes("{}"), bytes("subject"), bytes("a")]), bytes("{}"));
  assert.deepEqual(bodyOf([bytes("subject"), bytes("ce"), bytes("ce"), bytes("{1}")]), bytes("{1}"));
  const none = bodyOf([bytes("cf"), bytes("{}")]);
  assert.ok(none instanceof Uint8Array && none.length === 0);
  assert.ok(bodyOf([bytes("ce")]) instanceof Uint8Array);
});

test("replies of reads and claims are read into entries", () => {
  assert.deepEqual(readEntries(null), []);
  assert.deepEqual(readEntries([[bytes("s"), [[bytes("1-0"), [bytes("ce"), bytes("x")]], [bytes("2-0"), null]]]]), [{
    stream: "s",
    entries: [{ id: "1-0", body: bytes("x"), deliveries: 0 }, { id: "2-0", body: null, deliveries: 0 }],
  }]);
  assert.equal(readClaimed(-1), undefined);
  const claimed = readClaimed([3, bytes("3-0"), 1, 70, bytes("1-0"), 2, bytes("x"), bytes("2-0"), 1, null]);
  assert.deepEqual(claimed, {
    lookedAt: 3,
    lastId: "3-0",
    strangers: 1,
    dueInMs: 70,
    entries: [{ id: "1-0", body: bytes("x"), deliveries: 2 }, { id: "2-0", body: null, deliveries: 1 }],
  });
});

test("isOlder compares entry ids as numbers", () => {
  assert.ok(isOlder("9-0", "10-0"));
  assert.ok(isOlder("10-9", "10-10"));
  assert.ok(!isOlder("10-10", "10-9"));
  assert.ok(!isOlder("5-5", "5-5"));
  assert.ok(isOlder("1-18446744073709551614", "1-18446744073709551615"));
});

test("ReadSize asks for fewer messages where bodies are large, and for more again when they shrink", () => {
  const size = new ReadSize();
  const came = (count: number, length: number) => size.learn(Array(count).fill({ body: { length } }));
  assert.equal(size.limit(10_000), 256);
  for (let n = 0; n < 40; n++) came(100, 800);
  assert.equal(size.limit(1_000), 1_000);
  came(2, 1024 * 1024);
  assert.equal(size.limit(1_000), 16);
  came(1, 512 * 1024 * 1024);
  assert.equal(size.limit(1_000), 1);
});

test("Held counts what is out, names it in order, and lets go of each once", () => {
  const held = new Held();
  const entries = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => ({ id: `${from + at}-0`, body: bytes("x"), deliveries: 0 }));
  const natives = [...held.take(entries(1, 3), 0, 1, 0), ...held.take(entries(4, 5), 0, 1, 0)].map((raw) =>
    raw.native as RedisNative
  );
  assert.equal(held.size, 5);
  held.letGo(natives[1]!);
  held.letGo(natives[1]!);
  held.letGo(natives[4]!);
  assert.deepEqual(held.ids(), ["1-0", "3-0", "4-0"]);
  held.letGo(natives[0]!);
  held.letGo(natives[2]!);
  held.take(entries(6, 6), 0, 1, 0);
  assert.deepEqual(held.ids(), ["4-0", "6-0"]);
  held.clear();
  held.letGo(natives[3]!);
  assert.equal(held.size, 0);
  assert.deepEqual(held.ids(), []);
  assert.equal(held.take([{ id: "7-0", body: null, deliveries: 2 }], 3, 9, 5, 100)[0]!.leaseMs, 100);
});

test("checkServer names the version found and the version needed (RED-13)", () => {
  const old = "# Server\r\nredis_version:5.0.0\r\nloading:0\r\n";
  assert.throws(() => checkServer(old), (error: EdaError) => {
    assert.equal(error.code, "server-unsupported");
    assert.match(error.message, /5\.0\.0.*6\.2/);
    return true;
  });
  checkServer("redis_version:6.2.0\r\n");
  checkServer("redis_version:10.0.1\n");
  checkServer("no such field");
  assert.throws(() => checkServer("redis_version:7.0.0\r\nloading:1\r\n"), { code: "broker-unavailable" });
});

test("error replies become errors that say whether waiting helps", () => {
  const codes: [string, string][] = [
    ["WRONGPASS invalid username-password pair or user is disabled.", "authentication-failed"],
    ["NOAUTH Authentication required.", "authentication-failed"],
    ["NOPERM this user has no permissions to run the 'xadd' command", "authentication-failed"],
    ["ERR ACL failure in script: this user has no permissions to run the 'xadd' command", "authentication-failed"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "broker-unavailable"],
    ["ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed", "broker-unavailable"],
    ["READONLY You can't write against a read only replica.", "broker-unavailable"],
    ["MISCONF Redis is configured to save RDB snapshots", "broker-unavailable"],
    ["LOADING Redis is loading the dataset in memory", "broker-unavailable"],
    ["BUSY Redis is busy running a script.", "broker-unavailable"],
    ["MOVED 1234 10.0.0.1:6379", "server-unsupported"],
    ["CROSSSLOT Keys in request don't hash to the same slot", "server-unsupported"],
    ["ERR unknown command 'XAUTOCLAIM', with args beginning with: 'secret'", "server-unsupported"],
  ];
  for (const [text, code] of codes) {
    assert.equal(refusal("XADD", reply(text)).code, code, text);
    assert.equal(publishRefusal(reply(text)).code, code, text);
  }
  assert.equal(refusal("XREAD", reply("WRONGTYPE Operation against a key")).code, "invalid-option");
  assert.equal(publishRefusal(reply("WRONGTYPE Operation against a key")).code, "publish-refused");
  assert.equal(publishRefusal(reply("ERR something new")).code, "publish-refused");
});

test("no error carries what a command was given, or where the server is", () => {
  const command = { name: "auth", args: ["user", "s3cret"] };
  for (
    const error of [
      refusal("XADD", reply("ERR unknown command 'x', with args beginning with: 's3cret' ", command)),
      refusal("connecting", reply("WRONGPASS invalid username-password pair", command)),
      refusal("XADD", reply("ERR odd reply", command)),
    ]
  ) {
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      assert.doesNotMatch(JSON.stringify({ ...at, message: at.message, stack: at.stack }), /s3cret/);
    }
  }
  const refused = Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:6379"), {
    code: "ECONNREFUSED",
    syscall: "connect",
    address: "10.1.2.3",
  });
  assert.equal(harmless(refused).message, "connect ECONNREFUSED");
  assert.doesNotMatch(JSON.stringify({ ...harmless(refused) }), /10\.1\.2\.3/);
});

test("options are checked by name, and no value is shown", () => {
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ url: "http://user:s3cret@host" }, /^url /],
    [{ partitions: 0 }, /^partitions /],
    [{ partitions: 129 }, /^partitions /],
    [{ blockMs: 5_000 }, /^blockMs /],
    [{ minIdleMs: 1.5 }, /^minIdleMs /],
    [{ ownerLeaseMs: 10 }, /^ownerLeaseMs /],
    [{ prefix: "" }, /^prefix /],
    [{ retentionMs: 0 }, /^retentionMs /],
    [{ unsafeMaxLen: 0 }, /^unsafeMaxLen /],
    [{ ordered: "yes" }, /^ordered /],
    [{ client: { keyPrefix: "s3cret" } }, /^client\.keyPrefix /],
    [{ client: { enableOfflineQueue: true } }, /^client\.enableOfflineQueue /],
  ];
  for (const [options, message] of wrong) {
    assert.throws(() => resolveOptions(options), (error: EdaError) => {
      assert.equal(error.code, "invalid-option");
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  }
  const resolved = resolveOptions({});
  assert.equal(resolved.prefix, "xsm");
  assert.equal(resolved.ordered, true);
  assert.equal(resolved.partitions, 1);
  assert.equal(resolved.minIdleMs, 60_000);
  assert.equal(resolved.retentionMs, undefined);
  assert.equal(resolved.unsafeMaxLen, undefined);
});

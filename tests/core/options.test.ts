import assert from "node:assert/strict";
import { InvalidOptionError } from "../../core/errors.ts";
import { checkNumber, checkOneOf, checkOptions, checkRange, closestName, grouped } from "../../core/options.ts";
import { test } from "../support/test.ts";

const KNOWN = ["url", "maxBytes", "prefetch", "group"];

function message(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof InvalidOptionError, String(error));
    return error.message;
  }
  assert.fail("it was accepted");
}

test("checkOptions: known options and no options pass", () => {
  checkOptions("Broker", undefined, KNOWN);
  checkOptions("Broker", {}, KNOWN);
  checkOptions("Broker", { url: "x", prefetch: undefined, [Symbol("s")]: 1 }, KNOWN);
});

test("checkOptions: an unknown option is refused by its name, with a hint and never its value", () => {
  const text = message(() =>
    checkOptions("Broker", { urll: "redis://u:hush@h" }, KNOWN, "client options go into clientOptions")
  );
  assert.match(
    text,
    /^Broker: unknown option "urll"; did you mean "url"\?; client options go into clientOptions\. Known are group, /,
  );
  assert.ok(!text.includes("hush"));
  assert.match(message(() => checkOptions("Broker", { max_bytes: 1 }, KNOWN)), /did you mean "maxBytes"\?/);
  const several = message(() => checkOptions("Broker", { socket: 1, tls: 2 }, KNOWN));
  assert.match(several, /unknown options "socket", "tls"\./);
  assert.ok(!several.includes("did you mean"));
  for (const name of ["constructor", "toString", "__proto__"]) {
    assert.match(message(() => checkOptions("Broker", JSON.parse(`{"${name}":1}`), KNOWN)), new RegExp(name));
  }
});

test("checkOptions: runs no getter, and survives what cannot be listed", () => {
  let ran = false;
  const options = {
    get url(): string {
      ran = true;
      throw new Error("hush");
    },
  };
  checkOptions("Broker", options, KNOWN);
  assert.equal(ran, false);
  const proxy = new Proxy({}, {
    ownKeys() {
      throw new Error("hush");
    },
  });
  assert.ok(!message(() => checkOptions("Broker", proxy, KNOWN)).includes("hush"));
  for (const odd of [null, 5, "x", [], true, Symbol("x")]) {
    assert.match(message(() => checkOptions("Broker", odd as object, KNOWN)), /options must be an object/);
  }
});

test("checkRange: answers integers within bounds, and makes its text from the bounds", () => {
  assert.equal(checkRange("prefetch", 1, 1, 10_000), 1);
  assert.equal(checkRange("prefetch", 10_000, 1, 10_000), 10_000);
  for (const value of [0, 10_001, 1.5, NaN, Infinity, "77", 77n, null, undefined, {}, Symbol("x")]) {
    assert.equal(
      message(() => checkRange("prefetch", value, 1, 10_000)),
      "prefetch must be an integer from 1 to 10,000",
    );
  }
  assert.equal(
    message(() => checkRange("idleMs", -1, 0, Number.MAX_SAFE_INTEGER)),
    "idleMs must be an integer of at least 0",
  );
});

test("checkNumber: takes fractions too", () => {
  assert.equal(checkNumber("factor", 1.5, 1, 10), 1.5);
  assert.equal(message(() => checkNumber("factor", 0.5, 1, 10)), "factor must be a number from 1 to 10");
  assert.equal(message(() => checkNumber("factor", NaN, 1, 10)), "factor must be a number from 1 to 10");
});

test("checkOneOf: lists what is allowed", () => {
  assert.equal(checkOneOf("isolation", "inline", ["worker", "inline"]), "inline");
  assert.equal(
    message(() => checkOneOf("isolation", "hush", ["worker", "inline"])),
    'isolation must be "worker" or "inline"',
  );
});

test("closestName: finds slips, and nothing where nothing is near", () => {
  assert.equal(closestName("PreFetch", KNOWN), "prefetch");
  assert.equal(closestName("gruop", KNOWN), "group");
  assert.equal(closestName("retention", KNOWN), undefined);
  assert.equal(closestName("x".repeat(100_000), KNOWN), undefined);
});

test("grouped: puts digits in groups of three", () => {
  assert.deepEqual([0, 999, 1000, 1048576, 0.5, 1234.5678].map(grouped), [
    "0",
    "999",
    "1,000",
    "1,048,576",
    "0.5",
    "1,234.5678",
  ]);
});

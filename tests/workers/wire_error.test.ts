import assert from "node:assert/strict";
import * as errors from "../../core/errors.ts";
import { fromWireError, toWireError, type WireError } from "../../workers/wire_error.ts";
import { test } from "../support/test.ts";

/** As the other thread would have it. */
function across(value: unknown): Error {
  return fromWireError(structuredClone(toWireError(value)));
}

test("toWireError keeps class, code, text, stack, details and the chain of causes of every error of ours", () => {
  let seen = 0;
  for (const [name, Class] of Object.entries(errors)) {
    if (
      name === "EdaError" || name === "EventRejectedError" || typeof Class !== "function" ||
      !(Class.prototype instanceof errors.EdaError)
    ) continue;
    const cause = Object.assign(new TypeError("below"), { code: "E_BELOW" });
    const make = Class as new (...args: unknown[]) => errors.EdaError;
    const options = { cause, details: { n: 1, flag: true, text: "t" } };
    const error = name === "EnvelopeCorruptError"
      ? new make("not-json", "text", options)
      : name === "PublishBatchError"
      ? new make([], options)
      : new make("text", options);
    const back = across(error) as errors.EdaError;
    assert.equal(back.code, error.code, name);
    assert.equal(back.retriable, error.retriable, name);
    assert.equal(back.message, error.message, name);
    assert.equal(back.stack, error.stack, name);
    assert.deepEqual(back.details, error.details, name);
    assert.equal((back.cause as Error).name, "TypeError");
    assert.equal((back.cause as Error).message, "below");
    assert.equal((back.cause as { code?: string }).code, "E_BELOW");
    assert.ok(errors.isEdaError(back), name);
    seen++;
  }
  assert.ok(seen >= 15, `${seen} classes`);
});

test("errors that cross are of our classes where they travel at all, so that instanceof works on the host", () => {
  for (
    const Class of [
      errors.AuthenticationError,
      errors.BrokerUnavailableError,
      errors.ClientMissingError,
      errors.InvalidOptionError,
      errors.OutcomeUnknownError,
      errors.PartitionMismatchError,
      errors.PublishRefusedError,
      errors.ServerUnsupportedError,
    ]
  ) {
    assert.ok(across(new Class("text")) instanceof Class, Class.name);
  }
  assert.equal(
    (across(new errors.EnvelopeCorruptError("not-utf8", "x")) as errors.EnvelopeCorruptError).reason,
    "not-utf8",
  );
});

test("toWireError masks credentials that a client's own error quotes", () => {
  const cause = new Error("connect to amqp://shop:hunter2@broker:5672 failed");
  const wire = JSON.stringify(toWireError(new errors.BrokerUnavailableError("it is away", { cause })));
  assert.ok(!wire.includes("hunter2"), wire);
  assert.match(wire, /broker:5672/);
});

test("toWireError survives whatever is thrown: circular causes, BigInt, functions, getters that throw (WRK-11)", () => {
  const circular = new Error("round");
  circular.cause = circular;
  let depth = 0;
  for (let at: unknown = across(circular); at instanceof Error; at = at.cause) {
    assert.equal(at.message, "round");
    depth++;
  }
  assert.ok(depth > 1 && depth < 20, `${depth} causes`);

  const big = Object.assign(new errors.PublishRefusedError("big"), { big: 1n, run: () => {} });
  Object.defineProperty(big, "details", { value: { big: 1n, run: () => {}, n: 2 } });
  assert.deepEqual((across(big) as errors.EdaError).details, { n: 2 });
  assert.equal((across(new Error("c", { cause: 12n })).cause as Error).message, "12");

  const hostile = new errors.BrokerUnavailableError("kept");
  for (const name of ["cause", "stack", "details"]) {
    Object.defineProperty(hostile, name, {
      get() {
        throw new Error("no");
      },
    });
  }
  const back = across(hostile);
  assert.equal(back.message, "kept");
  assert.ok(back instanceof errors.BrokerUnavailableError);

  const values: unknown[] = [undefined, null, "text", 7, 1n, Symbol("s"), {}, () => {}, Object.create(null)];
  values.push({
    toString() {
      throw new Error("no");
    },
  });
  values.push(
    new Proxy({}, {
      get() {
        throw new Error("no");
      },
      getPrototypeOf() {
        throw new Error("no");
      },
    }),
  );
  for (const value of values) {
    const wire: WireError = structuredClone(toWireError(value));
    assert.equal(typeof wire.message, "string");
    assert.ok(fromWireError(wire) instanceof Error);
  }
});

import assert from "node:assert/strict";
import process from "node:process";
import { kinds, tools } from "./bed/kinds.ts";
import { openKafkaDoor } from "./kafka_door.ts";
import { legVariable } from "./legs.ts";
import { leg, test, type TestContext } from "./test.ts";

function setVariable(context: TestContext, name: string, value: string | undefined): void {
  const before = process.env[name];
  const set = (text: string | undefined) => {
    if (text === undefined) delete process.env[name];
    else process.env[name] = text;
  };
  context.cleanup(() => set(before));
  set(value);
}

test("a leg is given by the variable that its kind names", () => {
  for (const { name, env } of [...kinds, ...tools]) assert.equal(legVariable(name), env);
});

test("legs: a server of the user's has the ports that the user names, and no others", (context) => {
  setVariable(context, "XSM_KAFKA_BROKERS", "127.0.0.1:1,127.0.0.1:2");
  setVariable(context, "XSM_KAFKA_DOORS", "11:21,12:22");
  const ports = { inner1: 11, outer1: 21, inner2: 12, outer2: 22 };
  assert.deepEqual(leg("kafka"), { name: "kafka", url: "127.0.0.1:1,127.0.0.1:2", ports });
  setVariable(context, "XSM_KAFKA_DOORS", undefined);
  assert.deepEqual(leg("kafka")?.ports, {});
});

test("openKafkaDoor: a server without listeners for proxies is an error that names the variable", async () => {
  await assert.rejects(openKafkaDoor({ ports: { controller: 1 } }), /XSM_KAFKA_DOORS/);
});

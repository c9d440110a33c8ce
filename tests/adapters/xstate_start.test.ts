/** Instances that do not get past their start. */
import assert from "node:assert/strict";
import { fromCallback, setup } from "xstate";
import { machine } from "../../adapters/xstate/mod.ts";
import { Rig } from "../core/dispatch_rig.ts";
import { test } from "../support/test.ts";

test("an instance that fails while it starts leaves nothing running", async () => {
  let running = 0;
  const ticking = fromCallback(() => {
    running++;
    return () => void running--;
  });
  const m = setup({ actors: { ticking } }).createMachine({
    id: "starts-badly",
    initial: "a",
    states: {
      a: {
        invoke: { src: "ticking" },
        always: { target: "b" },
      },
      b: {
        invoke: { src: "ticking" },
        entry: () => {
          throw new Error("no");
        },
      },
    },
  });
  const parallel = setup({ actors: { ticking } }).createMachine({
    id: "starts-badly-too",
    type: "parallel",
    states: {
      one: { invoke: { src: "ticking" } },
      two: {
        entry: () => {
          throw new Error("no");
        },
      },
    },
  });
  const rig = new Rig({ maxAttempts: 3, routes: { one: machine(m), two: machine(parallel) } });
  rig.deliver("one", "s");
  rig.deliver("two", "s");
  await rig.settle(2);
  assert.equal(running, 0);
});

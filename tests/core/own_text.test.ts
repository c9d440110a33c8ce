import assert from "node:assert/strict";
import { child, test } from "../support/test.ts";
import { ownText } from "../../core/own_text.ts";

test("ownText answers the same text", () => {
  for (const text of ["", "a", "é😀\ud800", " padded ", "x".repeat(1_024), "0198dac5-b400-7854-9ca3-903cdf4c0001"]) {
    assert.equal(ownText(text), text);
  }
});

test("ownText keeps nothing else alive of the text that its argument was cut from", async () => {
  const { stdout, stderr, code } = await child(new URL("./scripts/own_text_memory.ts", import.meta.url)).done;
  assert.equal(code, 0, stderr);
  const { cut, own } = JSON.parse(stdout) as { cut: number; own: number };
  assert.ok(own < cut / 4, `${own} bytes a text, where a cut keeps ${cut}`);
});

test("a memory store keeps no message alive of which it keeps snapshot, timer and dead letter", async () => {
  const { stdout, stderr, code } = await child(new URL("./scripts/store_memory.ts", import.meta.url)).done;
  assert.equal(code, 0, stderr);
  const { cut, stored } = JSON.parse(stdout) as { cut: number; stored: number };
  assert.ok(stored < cut * 0.7, `${stored} bytes a message, where a part of its text keeps ${cut}`);
});

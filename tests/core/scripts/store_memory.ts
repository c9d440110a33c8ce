// Prints how much memory a message costs of which a memory store keeps snapshot, timer and dead letter, and a part of its text.
import { Buffer } from "node:buffer";
import process from "node:process";
import type { DeadLetter } from "../../../core/store/contract.ts";
import { MemoryStore } from "../../../core/store/memory_store.ts";

const COUNT = 1_500;
const LONG = "y".repeat(40_000);

function bytesKept(keep: (part: string) => void): number {
  const before = process.memoryUsage().rss;
  for (let n = 0; n < COUNT; n++) {
    // Decoded bytes, as messages are.
    const text = Buffer.from(`subject-${n}-${"x".repeat(30)}${LONG}`).toString();
    keep(text.slice(0, 36));
  }
  return Math.round((process.memoryUsage().rss - before) / COUNT);
}

const store = new MemoryStore({ maxDeadLetters: 2 * COUNT });
const stored = bytesKept((subject) => {
  const key = `machine/${subject}`;
  const letter = { id: crypto.randomUUID(), subject, type: subject, source: subject, eventId: subject };
  store.transactNow({ snapshot: key }, (unit) => {
    unit.saveSnapshot("{}", "m", "1");
    unit.setTimer({ id: "after", owner: key, dueAt: 1, envelope: "{}" });
    unit.addDeadLetter(letter as unknown as DeadLetter);
  });
});
// Garbage is counted with the first, which only makes its number larger.
const parts: string[] = [];
const cut = bytesKept((part) => void parts.push(part));
console.log(JSON.stringify({ cut, stored, parts: parts.length }));

// Prints how much memory a short part of a long text keeps alive, as it is and through ownText.
import { Buffer } from "node:buffer";
import process from "node:process";
import { ownText } from "../../../core/own_text.ts";

const COUNT = 50_000;

function bytesKept(take: (text: string) => string): number {
  const kept: string[] = [];
  const before = process.memoryUsage().rss;
  for (let n = 0; n < COUNT; n++) {
    // Decoded bytes, as messages are, and longer than what engines copy when they cut.
    const text = Buffer.from(`id-${n}-${"x".repeat(30)}${"y".repeat(4_000)}`).toString();
    kept.push(take(text.slice(0, 36)));
  }
  const bytes = (process.memoryUsage().rss - before) / kept.length;
  return Math.round(bytes);
}

// Garbage is counted with the first, which only makes its number larger; so the copies come first.
const own = bytesKept(ownText);
const cut = bytesKept((text) => text);
console.log(JSON.stringify({ cut, own }));

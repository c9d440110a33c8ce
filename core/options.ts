/**
 * Checks of option objects: an unknown option is refused by its name, a wrong one by its name and range. No value is ever
 * part of a message.
 *
 * @module
 */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Lower case, letters and digits only, so that `max_bytes` and `MaxBytes` are both near `maxBytes`. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** The name that was probably meant; `undefined` where none is near. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  const wanted = bare(name.slice(0, 64));
  let best: string | undefined;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const far = distance(wanted, bare(candidate));
    if (far < least) [best, least] = [candidate, far];
  }
  return best;
}

/** A number with its digits in groups of three: 10,000. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

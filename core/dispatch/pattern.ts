/**
 * The one pattern dialect: `*` stands for any characters, none included, dots and slashes too; `?` for exactly one. Everything
 * else stands for itself, the whole text must match, and case counts.
 *
 * @module
 */

/** Whether a route key is a pattern, not a plain type. */
export function isPattern(key: string): boolean {
  return key.includes("*") || key.includes("?");
}

/** Whether `text` matches. Takes at most pattern × text steps, whatever the pattern: types come from outside. */
export function matches(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let mark = 0;
  while (t < text.length) {
    const wanted = pattern[p];
    if (wanted === "*") {
      star = p++;
      mark = t;
    } else if (wanted === "?") {
      p++;
      t += widthAt(text, t);
    } else if (wanted === text[t]) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = mark += widthAt(text, mark);
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

/** One character may be two code units. */
function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

/** Whether some text matches both patterns. */
export function overlap(first: string, second: string): boolean {
  const a = [...first];
  const b = [...second];
  // Which places in b can be reached with the places in a so far, as in matching, with wildcards on both sides.
  let reach = new Array<boolean>(b.length + 1).fill(false);
  reach[0] = true;
  spreadStars(reach, b);
  for (const wanted of a) {
    const next = new Array<boolean>(b.length + 1).fill(false);
    for (let at = 0; at <= b.length; at++) {
      if (!reach[at]) continue;
      if (wanted === "*") {
        for (let to = at; to <= b.length; to++) next[to] = true;
        break;
      }
      if (at === b.length) continue;
      if (b[at] === "*") next[at] = true;
      if (b[at] !== "*" && (b[at] === "?" || wanted === "?" || b[at] === wanted)) next[at + 1] = true;
    }
    spreadStars(next, b);
    reach = next;
  }
  return reach[b.length]!;
}

/** A star may stand for nothing. */
function spreadStars(reach: boolean[], b: readonly string[]): void {
  for (let at = 0; at < b.length; at++) if (reach[at] && b[at] === "*") reach[at + 1] = true;
}

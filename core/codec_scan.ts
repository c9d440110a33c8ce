/**
 * Looks at JSON text without parsing it: how deep it nests, where its top-level members stand. Nothing here recurses, so
 * no input can overflow the stack.
 *
 * @module
 */

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** Deepest level of a value in `data`; its root is level 0. */
export const MAX_DATA_DEPTH = 64;

/** Index behind the string whose opening quote is at `start`; -1 where it never ends. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1;; at++) {
    at = text.indexOf('"', at);
    if (at === -1) return -1;
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at + 1;
  }
}

function skipSpace(text: string, at: number): number {
  for (;; at++) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at;
  }
}

/** Whether there are more than `most` opening brackets from `from` on, strings included: if not, it cannot be deep. */
function hasManyBrackets(text: string, from: number, most: number): boolean {
  let count = 0;
  for (let at = text.indexOf("{", from); at !== -1; at = text.indexOf("{", at + 1)) if (++count > most) return true;
  for (let at = text.indexOf("[", from); at !== -1; at = text.indexOf("[", at + 1)) if (++count > most) return true;
  return false;
}

/**
 * Whether a value stands deeper than `most` levels below the root of the JSON text from `from` on. The text need not be
 * valid.
 */
export function isDeeperThan(text: string, most: number, from = 0): boolean {
  if (!hasManyBrackets(text, from, most)) return false;
  let open = 0;
  for (let at = from; at < text.length;) {
    const code = text.charCodeAt(at++);
    if (code === QUOTE) {
      at = stringEnd(text, at - 1);
      if (at === -1) return false;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (open++ >= most) {
        // An empty container is one value at the last level; anything inside is one level too deep.
        if (open > most + 1) return true;
        const next = text.charCodeAt(skipSpace(text, at));
        if (next !== CLOSE_OBJECT && next !== CLOSE_ARRAY) return true;
      }
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) open--;
  }
  return false;
}

/** One member of the top-level object. */
export interface Member {
  readonly name: string;
  /** The value's literal is `text.slice(start, end)`. */
  readonly start: number;
  readonly end: number;
}

/** Index behind the value that starts at `start`, in valid JSON. */
function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    // A number, true, false or null: it ends at white space, a comma or the closing brace.
    for (let at = start;; at++) {
      const code = text.charCodeAt(at);
      if (code <= 32 || code === COMMA || code === CLOSE_OBJECT) return at;
    }
  }
  let open = 0;
  for (let at = start;;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at++;
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) open++;
    else if ((code === CLOSE_OBJECT || code === CLOSE_ARRAY) && --open === 0) return at;
  }
}

/** The top-level members, duplicates included, of a text that JSON.parse took for an object. */
export function topLevelMembers(text: string): readonly Member[] {
  const members: Member[] = [];
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = stringEnd(text, at);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    at = skipSpace(text, nameEnd);
    if (text.charCodeAt(at) === COLON) at = skipSpace(text, at + 1);
    const end = valueEnd(text, at);
    members.push({ name, start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return members;
}

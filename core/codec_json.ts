/**
 * Checks that a stretch of bytes is one JSON value (RFC 8259) without building it: in a worker nobody needs the value, and
 * checking allocates nothing. Accepts exactly what JSON.parse accepts, given that the bytes are UTF-8. It works on bytes and
 * not on text, because engines read an array of bytes in half the time of a string's characters.
 *
 * A zero must stand behind the last byte: it ends every loop, and reading past an array's end would slow engines down.
 *
 * @module
 */

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const SMALL_F = 102;
const SMALL_N = 110;
const SMALL_T = 116;
const SMALL_U = 117;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** Whether all strings of the present call are ASCII so far. */
let ascii = true;

function skipSpace(bytes: Uint8Array, at: number): number {
  for (;; at++) {
    const code = bytes[at]!;
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at;
  }
}

function isHex(code: number): boolean {
  return code >= ZERO && code <= NINE || code >= 65 && code <= 70 || code >= 97 && code <= 102;
}

/** The letters behind a backslash: " \ / b f n r t. */
function isEscape(code: number): boolean {
  return code === QUOTE || code === BACKSLASH || code === 47 || code === 98 || code === 102 || code === 110 ||
    code === 114 || code === 116;
}

/** 1 = a character that a string of ASCII holds as it stands. */
const PLAIN = new Uint8Array(256).fill(1, 32, 128);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** `at` is behind the opening quote; answers the index behind the closing one, -1 = no string. */
function skipString(bytes: Uint8Array, at: number): number {
  for (;; at++) {
    while (PLAIN[bytes[at]!] === 1) at++;
    const code = bytes[at]!;
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) {
      const escape = bytes[++at]!;
      if (escape === SMALL_U) {
        for (let digit = 0; digit < 4; digit++) if (!isHex(bytes[++at]!)) return -1;
      } else if (!isEscape(escape)) return -1;
    } else if (code < 32) return -1; // a control character, or the zero behind the last byte
    else ascii = false;
  }
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let code = bytes[at]!;
  if (!(code >= ZERO && code <= NINE)) return -1;
  do code = bytes[++at]!; while (code >= ZERO && code <= NINE);
  return at;
}

function skipNumber(bytes: Uint8Array, at: number): number {
  if (bytes[at] === MINUS) at++;
  at = bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at);
  if (at === -1) return -1;
  if (bytes[at] === DOT) {
    at = skipDigits(bytes, at + 1);
    if (at === -1) return -1;
  }
  const exponent = bytes[at];
  if (exponent === 69 || exponent === 101) {
    const sign = bytes[at + 1];
    at = skipDigits(bytes, sign === 43 || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
}

function skipWord(bytes: Uint8Array, at: number, word: string): number {
  for (let n = 0; n < word.length; n++) if (bytes[at++] !== word.charCodeAt(n)) return -1;
  return at;
}

function skipScalar(bytes: Uint8Array, at: number, code: number): number {
  if (code === QUOTE) return skipString(bytes, at + 1);
  if (code === MINUS || code >= ZERO && code <= NINE) return skipNumber(bytes, at);
  if (code === SMALL_T) return skipWord(bytes, at, "true");
  if (code === SMALL_F) return skipWord(bytes, at, "false");
  return code === SMALL_N ? skipWord(bytes, at, "null") : -1;
}

/** `at` is at a member's name; answers where its value starts, -1 = no member. */
function skipName(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return -1;
  at = skipString(bytes, at + 1);
  if (at === -1) return -1;
  if (bytes[at] !== COLON) at = skipSpace(bytes, at);
  return bytes[at] === COLON ? skipSpace(bytes, at + 1) : -1;
}

/** Per open container, whether it is an object. Used within one call only. */
const kinds: boolean[] = [];

/**
 * Index behind the JSON value that starts at `at`; -1 = there is none, or a value in it stands more than `most` levels below
 * it.
 */
export function skipJson(bytes: Uint8Array, at: number, most: number): number {
  ascii = true;
  let depth = 0;
  for (;;) {
    const code = bytes[at]!;
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const isObject = code === OPEN_OBJECT;
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        if (depth === most) return -1;
        kinds[depth++] = isObject;
        if (isObject) {
          at = skipName(bytes, at);
          if (at === -1) return -1;
        }
        continue;
      }
      at++;
    } else {
      at = skipScalar(bytes, at, code);
      if (at === -1) return -1;
    }
    // A value has ended at `at`: close what it closes, up to the next value.
    for (;;) {
      if (depth === 0) return at;
      const isObject = kinds[depth - 1];
      let next = bytes[at]!;
      if (next <= 32) next = bytes[at = skipSpace(bytes, at)]!;
      if (next === COMMA) {
        at = skipSpace(bytes, at + 1);
        if (isObject) {
          at = skipName(bytes, at);
          if (at === -1) return -1;
        }
        break;
      }
      if (next !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return -1;
      at++;
      depth--;
    }
  }
}

/** Whether the value that {@link skipJson} took last holds nothing but ASCII. */
export function wasAscii(): boolean {
  return ascii;
}

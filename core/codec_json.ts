/**
 * Checks that a stretch of text is one JSON value (RFC 8259) without building it: in a worker nobody needs the value, and
 * checking allocates nothing. Accepts exactly what JSON.parse accepts.
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
const SMALL_U = 117;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

function skipSpace(text: string, at: number): number {
  for (;; at++) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at;
  }
}

function isHex(code: number): boolean {
  return code >= ZERO && code <= NINE || code >= 65 && code <= 70 || code >= 97 && code <= 102;
}

/** `at` is behind the opening quote; answers the index behind the closing one, -1 = no string. */
function skipString(text: string, at: number): number {
  for (;; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) {
      const escape = text.charCodeAt(++at);
      if (escape === SMALL_U) {
        for (let digit = 0; digit < 4; digit++) if (!isHex(text.charCodeAt(++at))) return -1;
      } else if (!isEscape(escape)) return -1;
    } else if (!(code >= 32)) return -1; // a control character, or NaN: the text has ended
  }
}

/** The letters behind a backslash: " \ / b f n r t. */
function isEscape(code: number): boolean {
  return code === QUOTE || code === BACKSLASH || code === 47 || code === 98 || code === 102 || code === 110 ||
    code === 114 || code === 116;
}

function skipDigits(text: string, at: number): number {
  let code = text.charCodeAt(at);
  if (!(code >= ZERO && code <= NINE)) return -1;
  do code = text.charCodeAt(++at); while (code >= ZERO && code <= NINE);
  return at;
}

function skipNumber(text: string, at: number): number {
  if (text.charCodeAt(at) === MINUS) at++;
  at = text.charCodeAt(at) === ZERO ? at + 1 : skipDigits(text, at);
  if (at === -1) return -1;
  if (text.charCodeAt(at) === DOT) {
    at = skipDigits(text, at + 1);
    if (at === -1) return -1;
  }
  const exponent = text.charCodeAt(at);
  if (exponent === 69 || exponent === 101) {
    const sign = text.charCodeAt(at + 1);
    at = skipDigits(text, sign === 43 || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
}

function skipScalar(text: string, at: number, code: number): number {
  if (code === QUOTE) return skipString(text, at + 1);
  if (code === MINUS || code >= ZERO && code <= NINE) return skipNumber(text, at);
  if (text.startsWith("true", at) || text.startsWith("null", at)) return at + 4;
  return text.startsWith("false", at) ? at + 5 : -1;
}

/** `at` is at a member's name; answers where its value starts, -1 = no member. */
function skipName(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return -1;
  at = skipString(text, at + 1);
  if (at === -1) return -1;
  if (text.charCodeAt(at) !== COLON) at = skipSpace(text, at);
  return text.charCodeAt(at) === COLON ? skipSpace(text, at + 1) : -1;
}

/** Per open container, whether it is an object. Used within one call only. */
const kinds: boolean[] = [];

/**
 * Index behind the JSON value that starts at `at`; -1 = there is none, or a value in it stands more than `most` levels below
 * it.
 */
export function skipJson(text: string, at: number, most: number): number {
  let depth = 0;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const isObject = code === OPEN_OBJECT;
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        if (depth === most) return -1;
        kinds[depth++] = isObject;
        if (isObject) {
          at = skipName(text, at);
          if (at === -1) return -1;
        }
        continue;
      }
      at++;
    } else {
      at = skipScalar(text, at, code);
      if (at === -1) return -1;
    }
    // A value has ended at `at`: close what it closes, up to the next value.
    for (;;) {
      if (depth === 0) return at;
      const isObject = kinds[depth - 1];
      let next = text.charCodeAt(at);
      if (next <= 32) next = text.charCodeAt(at = skipSpace(text, at));
      at++;
      if (next === COMMA) {
        at = skipSpace(text, at);
        if (isObject) {
          at = skipName(text, at);
          if (at === -1) return -1;
        }
        break;
      }
      if (next !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return -1;
      depth--;
    }
  }
}

/**
 * Masks secrets in what people get to see: dead letters in a listing, error texts, log fields. A view for reading only; what
 * is sent on or replayed is never the masked copy.
 *
 * @module
 */

/** Stands for what was masked. */
export const MASK = "***";

/** Words that make a member a secret or a piece of personal data, alone or next to others, also in the plural. */
const SENSITIVE_WORDS: ReadonlySet<string> = new Set([
  ...[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "auth",
    "oauth",
    "bearer",
  ],
  ...["credential", "cookie", "session", "sessionid", "jwt", "signature", "otp", "totp", "pin", "card", "cardnumber"],
  ...["cvv", "cvc", "pan", "iban", "routing", "swift", "mnemonic", "seed", "ssn", "dob", "birthday", "birthdate"],
  ...["email", "phone", "passport", "privatekey", "accesskey", "dsn"],
]);

/** Runs of words that are sensitive only together. */
const SENSITIVE_PHRASE =
  / (?:(?:api|private|access) key|account (?:number|no)|seed phrase|date of birth|connection string)s? /;

/** Names in one case have no visible words: `authtoken`, `clientsecret`. These parts are in no harmless word. */
const SENSITIVE_PART = /passw(?:or)?d|apikey|credential|(?:secret|token|cookie|privatekey|accesskey)s?(?= )/;

/** A name as lower-case words between spaces: `clientApiKey2`, `client_api_key`, `CLIENT-API-KEY` are ` client api key `. */
function wordsOf(name: string): string {
  const spaced = name
    .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .replace(/[^\p{L}]+/gu, " ");
  return ` ${spaced.trim().toLowerCase()} `;
}

function isSensitiveWord(word: string): boolean {
  return SENSITIVE_WORDS.has(word) || word.endsWith("s") && SENSITIVE_WORDS.has(word.slice(0, -1));
}

/** Answers for names already looked at, since names repeat. Bounded, since they come from outside. */
const known = new Map<string, boolean>();
const MOST_KNOWN = 1000;

/**
 * Whether the value of a member of this name is masked. Matched by whole words, so `pin`, `userPin` and `PIN_CODE` are,
 * `shipping` is not.
 */
export function isSensitiveName(name: string): boolean {
  const before = known.get(name);
  if (before !== undefined) return before;
  const words = wordsOf(name.slice(0, 256));
  const sensitive = SENSITIVE_PART.test(words) || words.split(" ").some(isSensitiveWord) ||
    SENSITIVE_PHRASE.test(words);
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(name, sensitive);
  return sensitive;
}

/** Deepest copy. */
const MAX_DEPTH = 64;
/** Most values copied, so that shared branches cannot multiply without end. */
const MAX_VALUES = 100_000;

class Copier {
  readonly #open = new Set<object>();
  #left = MAX_VALUES;

  copy(value: unknown, depth: number): unknown {
    if (typeof value === "string") return redactText(value);
    if (typeof value === "bigint") return String(value);
    if (typeof value === "function" || typeof value === "symbol") return undefined;
    if (typeof value !== "object" || value === null) return value;
    // Bytes have no names to go by, so none are shown.
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (depth < 0 || --this.#left < 0 || this.#open.has(value)) return MASK;
    this.#open.add(value);
    try {
      return Array.isArray(value) ? value.map((item) => this.copy(item, depth - 1)) : this.#members(value, depth);
    } catch {
      return MASK;
    } finally {
      this.#open.delete(value);
    }
  }

  #members(value: object, depth: number): Record<string, unknown> {
    const copy: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const given = (value as Record<string, unknown>)[name];
      const member = given !== null && given !== undefined && isSensitiveName(name)
        ? MASK
        : this.copy(given, depth - 1);
      // Defined and not assigned: "__proto__" must stay a name like any other.
      Object.defineProperty(copy, name, { value: member, enumerable: true, configurable: true, writable: true });
    }
    return copy;
  }
}

/**
 * A copy with `***` for every value under a sensitive name, and {@link redactText} on every other text. Bytes become their
 * number; cycles, what throws when read, and what lies deeper than `depth` levels become `***`. Never throws.
 *
 * @param depth Levels below the root, 0 to 64, 64 by default.
 */
export function redact(value: unknown, depth: number = MAX_DEPTH): unknown {
  return new Copier().copy(value, Math.min(depth, MAX_DEPTH));
}

/** `scheme://user:password@`; the host stays. */
const URL_CREDENTIALS = /\b([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/?#"'<>]{1,512}@/gi;
/** Brokers' URLs are often written by hand, with unescaped slashes in the password. */
const BROKER_CREDENTIALS = /\b((?:rediss?|amqps?|nats|tls|kafka|postgres(?:ql)?):\/\/)[^\s"'<>]{1,512}@/gi;
const BEARER = /\b(bearer\s{1,4})(?=\S{0,512}\d)[\w.~+/=-]{8,}/gi;
/** Three dotted base64url parts, the first of a JSON object: a JSON Web Token. */
const JWT = /\beyJ[\w-]{4,}\.[\w-]{2,}\.[\w-]*/g;
/** `name=`, `name: `, `"name": `, `\"name\": `, `name "`; the name decides whether the value behind it is masked. */
const PAIR =
  /(?<![\p{L}\p{N}_-])([\p{L}\p{N}_-]{2,128})(?:(?:\\{0,32}["'])?\s{0,4}[=:]\s{0,4}|\s{1,4}(?=\\{0,32}["']))/gu;
const PAIR_VALUE = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|(?:(?:bearer|basic|digest|negotiate)\s+)?[^\s"',;&)}\]]+/isuy;
/** A value in JSON that stands in a text of JSON: its quotes have backslashes, those of quotes within it more of them. */
const ESCAPED_VALUE = /(\\{1,32}["'])(?:(?!(?<!\\)\1)[^])*(?:\1)?/uy;
/** Cookies of a header: all of the line. */
const COOKIES = /[^\r\n"']+/uy;

/** What stands behind `name=` at `start`. */
function valueAt(text: string, start: number, pair: string): string | undefined {
  const plain = pair.endsWith(":") && /cookie/i.test(pair) && !/["']/.test(text.charAt(start)) ? COOKIES : PAIR_VALUE;
  for (const pattern of [ESCAPED_VALUE, plain]) {
    pattern.lastIndex = start;
    const value = pattern.exec(text)?.[0];
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Whether a JSON parser speaks of a token of its own at `at`: what it quotes is a character. */
function isParserToken(text: string, at: number): boolean {
  return /unexpected $/i.test(text.slice(Math.max(0, at - 11), at));
}

function redactPairs(text: string): string {
  let out = "";
  let done = 0;
  PAIR.lastIndex = 0;
  for (let match = PAIR.exec(text); match !== null; match = PAIR.exec(text)) {
    if (!isSensitiveName(match[1] ?? "") || isParserToken(text, match.index)) continue;
    const start = PAIR.lastIndex;
    const value = valueAt(text, start, match[0].trimEnd());
    if (value === undefined || value.startsWith("//")) continue;
    const mark = /^\\*["']/.exec(value)?.[0] ?? "";
    out += `${text.slice(done, start)}${mark}${MASK}${mark}`;
    done = PAIR.lastIndex = start + value.length;
  }
  return done === 0 ? text : out + text.slice(done);
}

/**
 * A text with credentials masked: those in URLs, bearer tokens, JSON Web Tokens, and the value of pairs such as
 * `password=…` or `"apiKey": "…"`.
 */
export function redactText(text: string): string {
  // Each of the forms needs one of these; most texts have none.
  if (!/[=:"']|bearer|eyJ/i.test(text)) return text;
  const plain = text
    .replace(BROKER_CREDENTIALS, `$1${MASK}@`)
    .replace(URL_CREDENTIALS, `$1${MASK}@`)
    .replace(BEARER, `$1${MASK}`)
    .replace(JWT, MASK);
  return redactPairs(plain);
}

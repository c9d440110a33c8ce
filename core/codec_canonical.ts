/**
 * The fast way of reading: a text that is canonical already is checked where it stands, and only its data is parsed.
 *
 * @module
 */
import { extensionNameProblem, isJsonContentType, namedProblem, textProblem } from "./codec_attributes.ts";
import { isBase64 } from "./codec_base64.ts";
import { isDeeperThan, MAX_DATA_DEPTH } from "./codec_scan.ts";

/** A received envelope, checked. */
export interface Inspected {
  /** Canonical: attributes first, no space between tokens, `data` or `data_base64` last and as it came. */
  readonly text: string;
  /** Index of the first character of the data, so that `text.slice(dataAt, -1)` is its literal; -1 = no data. */
  readonly dataAt: number;
  readonly subject: string | undefined;
  /** Whether the data is base64 of bytes. */
  readonly binary: boolean;
}

const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;

/** Bits of the names seen; the first four must all be there. */
const SPECVERSION = 1;
const ID = 2;
const SOURCE = 4;
const TYPE = 8;
const REQUIRED = SPECVERSION | ID | SOURCE | TYPE;
const SUBJECT = 16;
const TIME = 32;
const DATACONTENTTYPE = 64;
const DATASCHEMA = 128;
const CORRELATIONID = 256;
const CAUSATIONID = 512;

function bitOf(name: string): number {
  switch (name) {
    case "specversion":
      return SPECVERSION;
    case "id":
      return ID;
    case "source":
      return SOURCE;
    case "type":
      return TYPE;
    case "subject":
      return SUBJECT;
    case "time":
      return TIME;
    case "datacontenttype":
      return DATACONTENTTYPE;
    case "dataschema":
      return DATASCHEMA;
    case "correlationid":
      return CORRELATIONID;
    case "causationid":
      return CAUSATIONID;
    default:
      return 0;
  }
}

function isDataSound(text: string, dataAt: number, end: number, binary: boolean, contentType: string): boolean {
  const first = text.charCodeAt(dataAt);
  if (first <= SPACE || text.charCodeAt(end - 1) <= SPACE) return false;
  if (binary) {
    // An escape in it makes it fail here; the careful way then decodes it.
    return first === QUOTE && dataAt < end - 1 && text.charCodeAt(end - 1) === QUOTE &&
      isBase64(text.slice(dataAt + 1, end - 1));
  }
  if (first !== QUOTE && !isJsonContentType(contentType)) return false;
  if (isDeeperThan(text, MAX_DATA_DEPTH, dataAt)) return false;
  try {
    JSON.parse(text.slice(dataAt, end));
    return true;
  } catch {
    return false;
  }
}

/** An extension that is no string: its literal up to the next comma or the end. Answers where it ends, -1 = not sound. */
function bareValueEnd(text: string, start: number, end: number): number {
  const comma = text.indexOf(",", start);
  const stop = comma === -1 || comma > end ? end : comma;
  const literal = text.slice(start, stop);
  if (literal === "true" || literal === "false") return stop;
  return /^(?:0|-?[1-9][0-9]{0,8})$/.test(literal) ? stop : -1;
}

/**
 * Takes a text that is canonical and valid; answers `undefined` to everything else, valid or not, without judging it.
 */
export function takeCanonical(text: string): Inspected | undefined {
  const end = text.length - 1;
  if (!text.startsWith('{"') || text.charCodeAt(end) !== 125) return undefined;
  const escape = text.indexOf("\\");
  const clean = escape === -1 ? end : escape;
  let seen = 0;
  let extensions: string[] | undefined;
  let subject: string | undefined;
  let contentType = "application/json";
  let dataAt = -1;
  let binary = false;
  for (let at = 2;;) {
    const nameEnd = text.indexOf('"', at);
    if (nameEnd === -1 || nameEnd > clean || text.charCodeAt(nameEnd + 1) !== COLON) return undefined;
    const name = text.slice(at, nameEnd);
    const start = nameEnd + 2;
    if (name === "data" || name === "data_base64") {
      dataAt = start;
      binary = name !== "data";
      break;
    }
    const bit = bitOf(name);
    let stop: number;
    let value = "";
    if (text.charCodeAt(start) === QUOTE) {
      stop = text.indexOf('"', start + 1);
      if (stop === -1 || stop > clean) return undefined;
      value = text.slice(start + 1, stop++);
    } else {
      if (bit !== 0) return undefined;
      stop = bareValueEnd(text, start, end);
      if (stop === -1) return undefined;
    }
    if (bit === 0) {
      if (name === "xsmattempt" || extensionNameProblem(name) !== undefined || textProblem(value) !== undefined) {
        return undefined;
      }
      if (extensions === undefined) extensions = [name];
      else if (extensions.includes(name)) return undefined;
      else extensions.push(name);
    } else {
      if ((seen & bit) !== 0) return undefined;
      seen |= bit;
      if (bit === SPECVERSION) {
        if (value !== "1.0") return undefined;
      } else if (namedProblem(name as "id", value) !== undefined) return undefined;
      if (bit === SUBJECT) subject = value;
      else if (bit === DATACONTENTTYPE) contentType = value;
    }
    if (stop === end) break;
    if (text.charCodeAt(stop) !== COMMA || text.charCodeAt(stop + 1) !== QUOTE) return undefined;
    at = stop + 2;
  }
  if ((seen & REQUIRED) !== REQUIRED) return undefined;
  if (dataAt !== -1 && !isDataSound(text, dataAt, end, binary, contentType)) return undefined;
  return { text, dataAt, subject, binary };
}

/**
 * Envelopes for both sides.
 *
 * @module
 */
import type { EnvelopeInit } from "../../core/envelope.ts";

export const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/** What may stand in an envelope on either side, in the names of both. */
export const SAMPLES: readonly (EnvelopeInit & { readonly type: string })[] = [
  { type: "shop.plain", subject: "o-1", data: { total: 42, lines: [{ sku: "a", count: 2 }], open: true, note: null } },
  {
    type: "shop.unicode",
    subject: "Größe 尺寸 🚀 e\u0301",
    data: { "ключ": '\u0000 \u2028 🚀 \\ " /', deep: [[[[]]]] },
  },
  { type: "shop.spaces", subject: " two  words ", data: " \t\n " },
  { type: "shop.subject.none", data: { a: 1 } },
  {
    type: "shop.extensions",
    subject: "o-1",
    extensions: { yes: true, no: false, zero: 0, least: -2147483648, text: "" },
  },
  { type: "shop.data.null", subject: "o-1", data: null },
  { type: "shop.data.none", subject: "o-1" },
  { type: "shop.data.number", subject: "o-1", data: 0.1 },
  { type: "shop.data.list", subject: "o-1", data: [1, "2", false, null, {}] },
  { type: "shop.chain", subject: "o-1", correlationid: "c-1", causationid: "e-1", data: {} },
  { type: "shop.trace", subject: "o-1", extensions: { traceparent: TRACE, tracestate: "a=1,b=2" }, data: {} },
  { type: "shop.machine", subject: "o-1", extensions: { machineid: "order", machineversion: "3" }, data: {} },
  { type: "shop.time", subject: "o-1", time: "2026-01-31T09:30:00.123456+01:00", data: {} },
  { type: "shop.large", subject: "o-1", data: { text: "x".repeat(500_000) } },
  // Its JSON writes six bytes for each of these, ours two.
  { type: "shop.large.unicode", subject: "o-1", data: { text: "é".repeat(80_000) } },
];

/** The same as arguments of the reference system's `Envelope.new`. */
export function asArguments({ extensions = {}, ...init }: EnvelopeInit): Record<string, unknown> {
  const { machineid, machineversion, ...rest } = extensions as Record<string, unknown>;
  const machine = machineid === undefined ? {} : { machineid, machineversion };
  return { ...init, ...machine, source: "/theirs", extensions: rest };
}

/**
 * An envelope of ours as the reference tells it: its model knows no difference between no data and null, and takes data
 * without a content type for JSON.
 */
export function asTold(envelope: unknown): Record<string, unknown> {
  const { data, ...rest } = JSON.parse(JSON.stringify(envelope)) as Record<string, unknown>;
  return { datacontenttype: "application/json", ...rest, ...(data === undefined || data === null ? {} : { data }) };
}

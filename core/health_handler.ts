/**
 * Health over HTTP, for readiness and liveness probes.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@xsm/eda";
 * import { healthHandler } from "@xsm/eda/health";
 *
 * const broker = new MemoryBroker();
 * await broker.connect();
 * const handler = healthHandler(broker);
 * const response = handler(new Request("http://localhost/health"));
 * console.log(response.status);
 * await broker.close();
 * ```
 *
 * @module
 */
import type { HealthReport } from "./contract.ts";

/** Anything that reports health: a broker, or an object that adds to it. */
export interface HealthSource {
  health(): HealthReport;
}

/**
 * Answers 200 while the source is `healthy` or not yet used (`idle`), else 503, with the report as JSON. Reports name, and never
 * hold an address or a secret. Works wherever `Request` and `Response` do.
 */
export function healthHandler(source: HealthSource): (request: Request) => Response {
  return (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response(null, { status: 405, headers: { allow: "GET, HEAD" } });
    }
    const report = source.health();
    const status = report.status === "healthy" || report.status === "idle" ? 200 : 503;
    const headers = { "content-type": "application/json", "cache-control": "no-store" };
    return new Response(request.method === "HEAD" ? null : JSON.stringify(report), { status, headers });
  };
}

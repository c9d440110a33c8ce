/**
 * Which part of the repository may import which: the layers of the architecture as data.
 *
 * @module
 */

/** The npm packages that an adapter may import, and nobody else. */
export const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  kafka: ["kafkajs"],
  memory: [],
  nats: ["@nats-io/transport-node", "@nats-io/jetstream", "@nats-io/kv", "@nats-io/nats-core"],
  postgres: ["postgres"],
  rabbitmq: ["amqplib"],
  redis: ["ioredis"],
  sqlite: [],
  sqs: ["@aws-sdk/client-sqs"],
  xstate: ["xstate"],
};

/** Adapters whose package is part of what their caller hands over, so that a static import of it costs nobody anything. */
export const STATIC_CLIENTS: ReadonlySet<string> = new Set(["xstate"]);

/** The name of the adapter that a path belongs to; undefined if to none. */
export function adapterOf(path: string): string | undefined {
  return path.match(/^adapters\/([^/]+)\//)?.[1];
}

/** The package that a bare specifier names; undefined for a file or a built-in module. */
export function packageOf(specifier: string): string | undefined {
  const bare = specifier.replace(/^npm:\/?/, "");
  if (/^(\.|\/|node:|bun:|https?:|file:)/.test(bare)) return undefined;
  return bare.match(/^(@[^/]+\/[^/@]+|[^/@]+)/)?.[1];
}

/** Why `from` may not import the file `to`; undefined if it may. */
export function forbidden(from: string, to: string): string | undefined {
  const layer = layerOf(from);
  const target = layerOf(to);
  if (target === "tests" && layer !== "tests" && layer !== "tools") return "the library imports no tests";
  if (target === "tools" && layer !== "tests" && layer !== "tools") {
    return "nothing imports scripts, examples or benches";
  }
  if (layer === "core" && target !== "core") return "core imports core only";
  if (layer === "workers" && target !== "core" && target !== "workers") return "workers import core and workers only";
  if (layer === "contract" && !["core", "workers", "contract"].includes(target)) {
    return "the contract suite is published: it imports core, workers and itself only";
  }
  if (layer === "adapter") {
    if (target === "adapter") return adapterOf(from) === adapterOf(to) ? undefined : "no adapter imports another";
    if (target !== "core" && target !== "workers") return "an adapter imports core, workers and itself only";
  }
  if (target === "contract" && !["tests", "contract", "tools"].includes(layer)) {
    return "nothing imports the contract suite";
  }
  return undefined;
}

type Layer = "core" | "workers" | "adapter" | "entry" | "contract" | "tests" | "tools";

function layerOf(path: string): Layer {
  if (path.startsWith("core/")) return "core";
  if (path.startsWith("workers/")) return "workers";
  if (adapterOf(path) !== undefined) return "adapter";
  if (path.startsWith("tests/contract/") && !path.endsWith(".test.ts")) return "contract";
  if (path.startsWith("tests/")) return "tests";
  if (/^(scripts|examples|bench|docs)\//.test(path)) return "tools";
  return "entry";
}

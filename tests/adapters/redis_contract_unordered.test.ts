import { redisContract } from "./redis_harness.ts";

redisContract("redis", "worker", { ordered: false, minIdleMs: 1_000 });

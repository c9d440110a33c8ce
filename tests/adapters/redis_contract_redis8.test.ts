import { redisContract } from "./redis_harness.ts";

redisContract("redis8", "worker");

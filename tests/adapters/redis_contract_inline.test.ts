import { redisContract } from "./redis_harness.ts";

redisContract("redis", "inline");

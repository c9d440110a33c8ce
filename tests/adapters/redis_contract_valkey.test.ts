import { redisContract } from "./redis_harness.ts";

redisContract("valkey", "worker");

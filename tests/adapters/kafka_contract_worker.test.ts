import { kafkaContract } from "./kafka_harness.ts";

kafkaContract("worker");

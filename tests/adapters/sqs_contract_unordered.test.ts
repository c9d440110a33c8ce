import { sqsContract } from "./sqs_harness.ts";

sqsContract("worker", { ordered: false });

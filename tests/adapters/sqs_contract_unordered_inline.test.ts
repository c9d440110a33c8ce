import { sqsContract } from "./sqs_harness.ts";

sqsContract("inline", { ordered: false });

import { sqsRulesContract } from "./sqs_harness.ts";

sqsRulesContract("inline");

/**
 * The contract suite: every promise of the contract as cases that any adapter can be held to, with any test runner.
 *
 * @example
 * ```ts ignore
 * import { contractCases } from "@xsm/eda/conformance";
 *
 * for (const { name, run, skip } of contractCases(harness)) test(name, { skip }, run);
 * ```
 *
 * @module
 */
import { envelopeCases } from "./envelope.ts";
import { faultCases } from "./faults.ts";
import { flowCases } from "./flow.ts";
import type { ContractCase, Harness } from "./kit.ts";
import { lifeCases } from "./life.ts";
import { orderCases } from "./order.ts";
import { publishCases } from "./publish.ts";
import { settleCases } from "./settle.ts";
import { undecodableCases } from "./undecodable.ts";

export type { CaseOptions, ContractCase, Faults, Harness } from "./kit.ts";

/** All cases of the contract for one adapter. */
export function contractCases(harness: Harness): readonly ContractCase[] {
  return [
    ...publishCases(harness),
    ...settleCases(harness),
    ...orderCases(harness),
    ...flowCases(harness),
    ...undecodableCases(harness),
    ...envelopeCases(harness),
    ...lifeCases(harness),
    ...faultCases(harness),
  ];
}

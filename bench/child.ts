/**
 * One benchmark in a process of its own: `child.ts <name> <settings as JSON>`. Its last line of output is the result.
 *
 * @module
 */
import process from "node:process";
import { CASES } from "./cases.ts";
import type { CaseSettings } from "./support/case.ts";

const [name = "", settings = "{}"] = process.argv.slice(2);
const load = CASES[name];
if (load === undefined) throw new TypeError("Unknown benchmark");
const { run } = await load();
const figures = await run(JSON.parse(settings) as CaseSettings);
process.stdout.write(`RESULT ${JSON.stringify(figures)}\n`);

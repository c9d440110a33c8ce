/**
 * `deno task build:npm`: builds the npm package into `.tmp/npm`, ready for `npm pack` or `npm publish`.
 *
 * @module
 */
import process from "node:process";
import { buildNpm, NPM_DIR } from "./packaging/npm_package.ts";

await buildNpm();
process.stdout.write(`${NPM_DIR}\n`);

/**
 * `deno task build:npm`: builds the npm package into `.tmp/npm`, ready for `npm pack` or `npm publish`.
 *
 * @module
 */
import process from "node:process";
import { buildNpm } from "./packaging/npm_package.ts";

process.stdout.write(`${await buildNpm()}\n`);

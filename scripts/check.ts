/**
 * `deno task check`: everything about the repository that needs no server. Every step runs, also after a failed one.
 *
 * @module
 */
import { existsSync, globSync, readdirSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { run } from "../tests/support/bed/run.ts";

interface Step {
  readonly name: string;
  readonly args: readonly string[];
}

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

/** What may not exist yet is left out. */
const present = (...paths: string[]): string[] => paths.filter((path) => existsSync(path));

const library = present("mod.ts", "core", "workers", "adapters", "cli");
const everything = [...library, ...present("tests", "scripts", "examples", "bench")];
const sources = globSync("{mod.ts,{core,workers,adapters,cli}/**/*.ts}").filter((file) => !file.endsWith(".d.ts"));
const documents = [...present("README.md", "ARCHITECTURE.md"), ...globSync("docs/**/*.md")];
// The test of the test runner starts three runtimes; it belongs to the suite.
const repoTests = readdirSync("tests/repo").filter((name) =>
  name.endsWith(".test.ts") && name !== "test_runner.test.ts"
);

const steps: Step[] = [
  { name: "packages are installed and locked", args: ["install", "--frozen", "--quiet"] },
  { name: "format", args: ["fmt", "--check"] },
  { name: "lint", args: ["lint", "--quiet"] },
  { name: "types", args: ["check", "--quiet", ...everything.filter((path) => path.endsWith(".ts") || hasCode(path))] },
  { name: "examples in comments", args: ["check", "--quiet", "--doc", ...sources] },
  ...(documents.length === 0
    ? []
    : [{ name: "examples in documents", args: ["check", "--quiet", "--doc-only", ...documents] }]),
  {
    name: "rules of the repository",
    args: ["test", "-A", "--quiet", ...repoTests.map((name) => `tests/repo/${name}`)],
  },
  { name: "publishing (dry run)", args: ["publish", "--dry-run", "--allow-dirty"] },
];

function hasCode(folder: string): boolean {
  return globSync(`${folder}/**/*.ts`).length > 0;
}

let passed = 0;
let failed = 0;
for (const { name, args } of steps) {
  const started = performance.now();
  const { code, stdout, stderr } = await run(process.execPath, args, { env: { NO_COLOR: "1" }, timeoutMs: 600_000 });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (code === 0) {
    passed++;
    console.log(`ok      ${name} (${seconds} s)`);
  } else {
    failed++;
    console.log(`FAILED  ${name} (${seconds} s): deno ${args.slice(0, 2).join(" ")} …`);
    console.log(`${stdout}\n${stderr}`.trim().split("\n").map((line) => `  | ${line}`).join("\n"));
  }
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

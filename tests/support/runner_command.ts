/**
 * Runs one test file with this runtime's own test command.
 *
 * @module
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { runtime } from "./runner.ts";

/** Runs `file` and resolves to its exit code and output. */
export function runtimeTest(file: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const args = { deno: ["test", "-A", "--no-check", file], bun: ["test", file], node: ["--test", file] }[runtime];
  // Without its own marker a nested `node --test` thinks it is a child of the outer one.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve, reject) => {
    const run = spawn(process.execPath, args, { env: { ...env, NO_COLOR: "1" }, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    run.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
    run.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
    run.once("error", reject);
    run.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

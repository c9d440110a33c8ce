/**
 * The reference system, a Python library, in an environment of its own: the leg `reference` talks to it over a broker.
 *
 * @module
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aptInstall } from "./debian.ts";
import type { ToolKind } from "./kind.ts";
import { debianCodename, isRoot, must, run, which } from "./run.ts";
import { bedDir } from "./state.ts";

const PACKAGES = ["xstate-statemachine[redis,nats,rabbitmq,kafka,sqs]==0.11.0"];

const folder = (): string => join(bedDir(), "reference");
const python = (): string => join(folder(), "bin", "python");
/** Names what is installed: an interrupted installation leaves the program without it, an earlier one had less. */
const complete = (): string => join(folder(), "complete");

function isComplete(): boolean {
  try {
    return readFileSync(complete(), "utf8") === PACKAGES.join("\n");
  } catch {
    return false;
  }
}

/** The Python program that can import the reference system. */
export const reference: ToolKind = {
  name: "reference",
  env: "XSM_REFERENCE_PYTHON",
  needs: `a Python with ${PACKAGES.join(" and ")}`,
  find: () => isComplete() ? python() : undefined,
  install: async () => {
    rmSync(folder(), { recursive: true, force: true });
    const create = ["-m", "venv", folder()];
    const program = which("python3");
    if (program === undefined || (await run(program, create)).code !== 0) {
      if (debianCodename() === undefined || !isRoot()) throw new Error("needs python3 with its venv module");
      rmSync(folder(), { recursive: true, force: true });
      await aptInstall("python3", "python3-venv");
      await must("/usr/bin/python3", create);
    }
    await must(python(), ["-m", "pip", "install", "--quiet", ...PACKAGES], { timeoutMs: 600_000, tries: 3 });
    writeFileSync(complete(), PACKAGES.join("\n"));
  },
};

/**
 * Installing servers on Debian as root: from this machine's own release, and from the next one in a folder of the bed.
 * Nothing here starts, stops or configures a service of the system.
 *
 * @module
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianCodename, isRoot, must, run } from "./run.ts";
import { bedDir } from "./state.ts";

/** Fetching packages over a slow mirror may take long. */
const FETCH = { timeoutMs: 600_000, tries: 3, env: { DEBIAN_FRONTEND: "noninteractive" } } as const;
const POLICY = "/usr/sbin/policy-rc.d";
const NO_SERVICES = "#!/bin/sh\nexit 101\n";

let updated: Promise<unknown> | undefined;
const update = (): Promise<unknown> => updated ??= must("apt-get", ["update", "-q"], FETCH);

/** Work of which one at a time runs: apt and debootstrap lock. */
function inTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let queue: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = queue.then(work, work);
    queue = result.catch(() => {});
    return result;
  };
}

const here = inTurns();
const next = inTurns();

interface Request {
  readonly packages: readonly string[];
  resolve(): void;
  reject(error: unknown): void;
}

const requests: { here: Request[]; next: Request[] } = { here: [], next: [] };

/** Joins what is asked for in one turn of the event loop. */
function request(system: "here" | "next", packages: readonly string[]): Promise<void> {
  if (debianCodename() === undefined || !isRoot()) return Promise.reject(new Error("it takes Debian and root"));
  return new Promise((resolve, reject) => {
    if (requests.here.length + requests.next.length === 0) {
      setTimeout(() => {
        // The newer system takes longer, and first a program from this one.
        void installAll(requests.next.splice(0), fillNext);
        void installAll(requests.here.splice(0), fillHere);
      });
    }
    requests[system].push({ packages, resolve, reject });
  });
}

/** One installation for all; when it fails, one for each, so that a package that cannot be had fails alone. */
async function installAll(
  all: readonly Request[],
  fill: (packages: readonly string[]) => Promise<void>,
): Promise<void> {
  if (all.length === 0) return;
  const packages = [...new Set(all.flatMap((one) => one.packages))];
  try {
    await fill(packages);
    for (const one of all) one.resolve();
  } catch (error) {
    if (all.length === 1) return all[0]!.reject(error);
    for (const one of all) await fill(one.packages).then(one.resolve, one.reject);
  }
}

/**
 * Installs packages of this machine's release without starting the services they bring. What is asked for in the same
 * turn is one installation.
 */
export const aptInstall = (...packages: readonly string[]): Promise<void> => request("here", packages);

/** Installs packages of the newer release in the bed's folder, for use through `chroot`; joined like {@link aptInstall}. */
export const installInNext = (...packages: readonly string[]): Promise<void> => request("next", packages);

function fillHere(packages: readonly string[]): Promise<void> {
  return here(async () => {
    await update();
    const ours = !existsSync(POLICY);
    if (ours) writeFileSync(POLICY, NO_SERVICES, { mode: 0o755 });
    try {
      await must("apt-get", ["install", "-q", "-y", "--no-install-recommends", ...packages], FETCH);
    } finally {
      if (ours) rmSync(POLICY, { force: true });
    }
  });
}

/** The release whose packages are newer than this machine's. */
const NEXT = "trixie";

/** The folder of the newer system. */
export const nextRoot = (): string => join(bedDir(), NEXT);

/** The path of a program inside the newer system, if it is installed there. */
export function findInNext(file: string): string | undefined {
  return existsSync(join(nextRoot(), file)) ? file : undefined;
}

function fillNext(packages: readonly string[]): Promise<void> {
  const debootstrap = existsSync("/usr/sbin/debootstrap") ? Promise.resolve() : fillHere(["debootstrap"]);
  debootstrap.catch(() => {});
  return next(async () => {
    await debootstrap;
    const root = nextRoot();
    if (existsSync(root)) {
      const env = { ...FETCH.env, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
      await must("chroot", [root, "apt-get", "update", "-q"], { ...FETCH, env });
      const install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", ...packages];
      await must("chroot", [root, ...install], { ...FETCH, env });
      return;
    }
    await update();
    const draft = `${root}.draft`;
    mkdirSync(bedDir(), { recursive: true, mode: 0o700 });
    for (let attempt = 1;; attempt++) {
      await removeDraft(draft);
      try {
        const args = ["--variant=minbase", `--include=${packages.join(",")}`, NEXT, draft, await mirror()];
        await must("debootstrap", args, { ...FETCH, tries: 1 });
        break;
      } catch (error) {
        if (attempt === 3) throw error;
      }
    }
    writeFileSync(join(draft, POLICY), NO_SERVICES, { mode: 0o755 });
    renameSync(draft, root);
  });
}

/** A debootstrap that was interrupted leaves file systems mounted, which must not be walked into. */
async function removeDraft(draft: string): Promise<void> {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n").map((line) => line.split(" ")[1] ?? "");
  for (const mount of mounts.filter((mount) => mount.startsWith(`${draft}/`)).reverse()) await must("umount", [mount]);
  rmSync(draft, { recursive: true, force: true });
}

/** The mirror that this machine itself installs from. */
async function mirror(): Promise<string> {
  const format = "$(REPO_URI)|$(ORIGIN)|$(LABEL)|$(CODENAME)";
  const { stdout } = await run("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]);
  for (const line of stdout.split("\n")) {
    const [uri, origin, label, codename] = line.split("|");
    if (uri && origin === "Debian" && label === "Debian" && codename === debianCodename()) return uri;
  }
  throw new Error("apt knows no Debian mirror on this machine");
}

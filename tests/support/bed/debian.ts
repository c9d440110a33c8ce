/**
 * Installing servers on Debian as root: from this machine's own release, and from the next one in a folder of the bed.
 * Nothing here starts, stops or configures a service of the system.
 *
 * @module
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianCodename, must, run } from "./run.ts";
import { bedDir } from "./state.ts";

/** Fetching packages over a slow mirror may take long. */
const FETCH = { timeoutMs: 600_000, tries: 3, env: { DEBIAN_FRONTEND: "noninteractive" } } as const;
const POLICY = "/usr/sbin/policy-rc.d";
const NO_SERVICES = "#!/bin/sh\nexit 101\n";

let updated: Promise<unknown> | undefined;
const update = (): Promise<unknown> => updated ??= must("apt-get", ["update", "-q"], FETCH);

let queue: Promise<unknown> = Promise.resolve();

/** One installation at a time: apt and debootstrap lock. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = queue.then(work, work);
  queue = result.catch(() => {});
  return result;
}

/** Installs packages of this machine's release without starting the services they bring. */
export function aptInstall(...packages: readonly string[]): Promise<void> {
  return inTurn(async () => {
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

/** Installs packages of the newer release in the bed's folder, for use through `chroot`. */
export function installInNext(...packages: readonly string[]): Promise<void> {
  return inTurn(async () => {
    const root = nextRoot();
    if (existsSync(root)) {
      const env = { ...FETCH.env, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
      await must("chroot", [root, "apt-get", "update", "-q"], { ...FETCH, env });
      const install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", ...packages];
      await must("chroot", [root, ...install], { ...FETCH, env });
      return;
    }
    await update();
    if (existsSync("/usr/sbin/debootstrap") === false) {
      await must("apt-get", ["install", "-q", "-y", "--no-install-recommends", "debootstrap"], FETCH);
    }
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

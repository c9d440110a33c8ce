/**
 * Where the time of a CPU profile goes: `deno run -A bench/profile.ts FILE.cpuprofile … [--top N]`. Shares are of the time in
 * which the thread was busy; a thread's wait for events (`(idle)`) is left out.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import process from "node:process";

interface Node {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly Node[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const WAITING = new Set(["(idle)", "(program)"]);

function nameOf({ callFrame: { functionName, url, lineNumber } }: Node): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  const file = url.replace(/^.*\/(node_modules\/|(?=(core|workers|adapters|bench)\/))/, "");
  return url === "" ? name : `${name}  ${file}:${lineNumber + 1}`;
}

function report(file: string, top: number): void {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8")) as Profile;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)));
  const self = new Map<string, number>();
  const total = new Map<string, number>();
  let busy = 0;
  let all = 0;
  samples.forEach((id, at) => {
    const took = timeDeltas[at] ?? 0;
    const node = byId.get(id)!;
    all += took;
    if (node.callFrame.functionName === "(idle)") return;
    busy += took;
    self.set(nameOf(node), (self.get(nameOf(node)) ?? 0) + took);
    const seen = new Set<string>();
    for (let up: number | undefined = id; up !== undefined; up = parents.get(up)) {
      const name = nameOf(byId.get(up)!);
      if (seen.has(name) || WAITING.has(name)) continue;
      seen.add(name);
      total.set(name, (total.get(name) ?? 0) + took);
    }
  });
  const share = (took: number): string => `${(took / busy * 100).toFixed(1).padStart(5)} %`;
  console.log(`\n${file}: busy ${(busy / 1_000).toFixed(0)} of ${(all / 1_000).toFixed(0)} ms\n\n  self    total`);
  for (const [name, took] of [...self].sort((a, b) => b[1] - a[1]).slice(0, top)) {
    console.log(`${share(took)}  ${share(total.get(name) ?? took)}  ${name}`);
  }
}

const args = process.argv.slice(2);
const flag = args.indexOf("--top");
const top = flag < 0 ? 40 : Number(args.splice(flag, 2)[1]);
for (const file of args) report(file, top);

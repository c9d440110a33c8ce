/**
 * The demo: two days at a small web shop. Orders come in, are paid, packed and shipped, some are cancelled, some things go wrong,
 * and a table at the end says what came of it all.
 *
 * ```sh
 * npx -y deno@2 task demo                                            # in memory
 * XSM_BROKER_URL=redis://127.0.0.1:6379 npx -y deno@2 task demo      # the same on Redis
 * ```
 *
 * Read `service.ts` first, then `order_machine.ts`; all else here stages the play and checks the ending.
 *
 * @module
 */
import process from "node:process";
import { shutdownSignal } from "@xsm/eda";
import { Audit } from "./audit.ts";
import { brokerName, onServer, OWNER_LEASE_MS, removeTraces } from "./brokers.ts";
import type { Facts } from "./checks.ts";
import { Observer } from "./observer.ts";
import { readOrders } from "./order.ts";
import { Progress } from "./progress.ts";
import { printReport } from "./report.ts";
import { createService, type FulfilmentService } from "./service.ts";
import { Standby } from "./standby.ts";

/** How long one handler keeps the CPU: in memory a moment, on a server far longer than the owner's lease. */
const ENGRAVING_MS = onServer ? 5_000 : 50;

/** Everything on the stage. */
interface Stage {
  readonly service: FulfilmentService;
  readonly observer: Observer;
  readonly progress: Progress;
  readonly audit: Audit;
  readonly standby: Standby;
  /** Aborts at Ctrl-C, which ends the run in order, as it would end a service. */
  readonly interrupted: AbortSignal;
}

async function main(): Promise<boolean> {
  const started = performance.now();
  const progress = new Progress();
  const observer = new Observer((report) => progress.show(report, observer));
  const service = createService({ engravingMs: ENGRAVING_MS, onOutcome: observer.see });
  const audit = new Audit(service.topics);
  const standby = new Standby();
  try {
    const facts = await play({ service, observer, progress, audit, standby, interrupted: shutdownSignal() });
    return printReport(facts, performance.now() - started, brokerName);
  } finally {
    await Promise.all([standby.close(), audit.close(), service.close()]);
    await removeTraces();
  }
}

async function play({ service, observer, progress, audit, standby, interrupted }: Stage): Promise<Facts> {
  const days = await readOrders();
  const [today = [], tomorrow = []] = days;
  await service.connect();
  // Both groups read once while nothing is there: in memory a group sees what is published after its first read.
  await service.catchUp();
  await audit.read();

  // The events of the first day wait on the topic when the service starts.
  await service.publish(today);
  progress.say(`First day: ${today.length} events of the web shop, on ${brokerName}`);
  observer.expect(today);
  const finished = new AbortController();
  const running = service.run(AbortSignal.any([finished.signal, interrupted]));
  await Promise.race([observer.allEnded(interrupted), running]);
  progress.end(observer);

  await standby.start("warehouse");
  progress.say(`Second day: ${tomorrow.length} events; a second instance of the service stands by`);
  if (onServer) progress.say(`  a handler computes for ${ENGRAVING_MS} ms, the owner's lease is ${OWNER_LEASE_MS} ms`);
  observer.expect(tomorrow);
  await service.publish(tomorrow);
  await Promise.race([observer.allEnded(interrupted), running]);
  progress.end(observer);

  finished.abort();
  return {
    days,
    observer,
    report: await running,
    published: await audit.read(),
    letters: await service.deadLetters(),
    payments: service.payments,
    mailer: service.mailer,
    standby: standby.received,
  };
}

// The process ends by itself once everything is closed; it does not have to be made to.
main().then((holds) => {
  process.exitCode = holds ? 0 : 1;
}, (error) => {
  console.error(`\nThe demo ended early: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
});

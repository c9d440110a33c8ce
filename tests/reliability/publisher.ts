/**
 * The publishers, each a broker of its own with subjects of its own, in one process: they publish until they are told to stop,
 * and say how many messages each subject got. The server is not disturbed, so nothing may fail.
 *
 * @module
 */
import process from "node:process";
import { listen, makeBroker, type PublisherSettings, say, told } from "./settings.ts";

const settings = told<PublisherSettings>();
const { publishers, subjects, perSecond, topic } = settings;
/** How often each publishes a batch. */
const EVERY_MS = 100;

const counts: Record<string, number> = {};
let over = false;

async function publish(index: number): Promise<void> {
  const broker = makeBroker(settings);
  const own = Array.from({ length: Math.ceil(subjects / publishers) }, (_, at) => `p${index}-s${at}`);
  const batch = Math.max(1, Math.round(perSecond * EVERY_MS / 1_000 / publishers));
  try {
    await broker.connect();
    if (index === 0) say({ k: "ready" });
    while (!over) {
      const messages = Array.from({ length: batch }, () => {
        const subject = own[Math.floor(Math.random() * own.length)]!;
        const n = counts[subject] ?? 0;
        counts[subject] = n + 1;
        return { type: "n", subject, data: n };
      });
      await broker.publishAll(topic, messages);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  } finally {
    await broker.close();
  }
}

const all = Promise.all(Array.from({ length: publishers }, (_, index) => publish(index)));

listen((word) => {
  if (word !== "stop") return;
  over = true;
  all.then(() => {
    say({ k: "published", counts });
    process.exit(0);
  }, () => {});
});

all.catch((error) => {
  say({ k: "failed", error: `${(error as Error).name}: ${(error as Error).message}` });
  process.exit(1);
});

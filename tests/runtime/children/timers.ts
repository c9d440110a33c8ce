// Arms timers with delays that runtimes warn about or get wrong, and prints the order in which they fire.
import { systemClock } from "../../../core/clock.ts";

const fired: string[] = [];
const long = [2 ** 31, 2 ** 31 + 5, 2 ** 40, Infinity].map((delayMs) =>
  systemClock.timer(delayMs, () => void fired.push(`long ${delayMs}`))
);
for (const delayMs of [-1, -(2 ** 40), -Infinity, NaN, 0]) {
  systemClock.timer(delayMs, () => void fired.push(`now ${delayMs}`));
}
systemClock.timer(200, () => {
  for (const timer of long) timer.cancel();
  for (const timer of long) timer.cancel();
  console.log(fired.join(", "));
  console.log("done");
});

/**
 * `deno task bed up [--install] [leg …] | down | status`: the servers of the test bed.
 *
 * @module
 */
import process from "node:process";
import { down, status, up } from "../tests/support/bed/bed.ts";

const [command, ...rest] = process.argv.slice(2);
const say = (line: string): void => console.log(line);

switch (command) {
  case "up": {
    const legs = rest.filter((word) => word !== "--install");
    try {
      await up({ install: rest.includes("--install"), log: say, ...(legs.length === 0 ? {} : { legs }) });
      status().forEach(say);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      console.error(error.message);
      process.exitCode = 2;
    }
    break;
  }
  case "down":
    await down(say);
    break;
  case "status":
    status().forEach(say);
    break;
  default:
    console.error("Use: deno task bed up [--install] [leg …] | down | status");
    process.exitCode = 2;
}

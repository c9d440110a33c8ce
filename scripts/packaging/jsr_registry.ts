/**
 * A JSR of one package on loopback: the files that a release would upload, as the real registry would serve them.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { BARE_IMPORT, readRelease, type Release, ROOT } from "./published.ts";

/** A running registry. */
export interface JsrRegistry {
  /** For the environment variable `JSR_URL`. */
  readonly url: string;
  readonly port: number;
  /** Paths that were asked for, in order. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

/** Serves the working tree's release at 127.0.0.1. */
export async function startJsrRegistry(): Promise<JsrRegistry> {
  const pages = pagesOf(readRelease());
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "/");
    requests.push(path);
    const page = pages.get(path);
    if (page === undefined) return void response.writeHead(404).end("not found");
    const type = path.endsWith(".json")
      ? "application/json"
      : path.endsWith(".js")
      ? "text/javascript"
      : "text/typescript";
    response.writeHead(200, { "content-type": type }).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function pagesOf(release: Release): Map<string, string> {
  const [scope, name] = release.name.slice(1).split("/");
  const base = `/${release.name}`;
  const pages = new Map<string, string>();
  const manifest: Record<string, { size: number; checksum: string }> = {};
  for (const file of release.files) {
    const text = published(release, file);
    const bytes = new TextEncoder().encode(text);
    const checksum = `sha256-${createHash("sha256").update(bytes).digest("hex")}`;
    manifest[`/${file}`] = { size: bytes.length, checksum };
    pages.set(`${base}/${release.version}/${file}`, text);
  }
  const versions = { [release.version]: {} };
  pages.set(`${base}/meta.json`, JSON.stringify({ scope, name, latest: release.version, versions }));
  pages.set(`${base}/${release.version}_meta.json`, JSON.stringify({ manifest, exports: release.exports }));
  return pages;
}

/** A file as it is uploaded: bare names become the `npm:` specifiers that the import map gives them. */
function published(release: Release, file: string): string {
  const text = readFileSync(join(ROOT, file), "utf8");
  if (!/\.(ts|js)$/.test(file)) return text;
  return text.replaceAll(BARE_IMPORT, (whole, before: string, name: string) => {
    const specifier = release.imports[name];
    return specifier === undefined ? whole : `${before}"${specifier}"`;
  });
}

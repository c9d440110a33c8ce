import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "../support/test.ts";
import { allFiles, ROOT, textOf } from "./sources.ts";

const files = allFiles().filter((file) => !/\.(png|ico|lock)$/.test(file));

/** Host names are put together here so that this file does not hold them. */
const host = (...labels: string[]): string => labels.join("\\.");

test("no file names a package registry's host or a path of somebody's machine", () => {
  const forbidden = [
    host("registry", "npmjs", "org"),
    host("files", "pythonhosted", "org"),
    host("pypi", "org"),
    host("deb", "debian", "org"),
    host("repo1?", "maven(?:", "apache)?", "org"),
    host("proxy", "golang", "org"),
    host("static", "crates", "io"),
    "(?<![\\w.])/root/(?!\\w*:)",
    "(?<![\\w.])/home/\\w+/",
    "(?<![\\w.])/work/(?:main|shared)",
    "/Users/\\w+/",
  ];
  const pattern = new RegExp(forbidden.join("|"));
  const found = files.flatMap((file) =>
    textOf(file).split("\n").flatMap((line, index) =>
      pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []
    )
  );
  assert.deepEqual(found.filter((line) => !line.startsWith("tests/repo/texts.test.ts:")), []);
});

test("links between the documents lead somewhere", () => {
  const broken = files.filter((file) => file.endsWith(".md")).flatMap((file) =>
    [...textOf(file).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].flatMap(([, target = ""]) => {
      if (/^[a-z]+:/.test(target)) return [];
      return existsSync(join(ROOT, dirname(file), target)) ? [] : [`${file}: ${target}`];
    })
  );
  assert.deepEqual(broken, []);
});

test("ARCHITECTURE.md names every folder of the library", () => {
  if (!existsSync(join(ROOT, "ARCHITECTURE.md"))) return;
  const text = textOf("ARCHITECTURE.md");
  const folders = new Set(
    files.filter((file) => /^(core|workers|adapters|cli|tests)\/./.test(file))
      .map((file) => dirname(file).split("/").slice(0, 2).join("/")),
  );
  const unnamed = [...folders].filter((folder) => !text.includes(folder.split("/").at(-1)!));
  assert.deepEqual(unnamed, []);
});

/**
 * Certificates for servers of the bed, made by the `openssl` program.
 *
 * @module
 */
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { must } from "./run.ts";

/**
 * Makes an authority and two certificates of it, for 127.0.0.1 and localhost, in `dir`: `ca.crt`, `server.crt` and
 * `server.key`, `client.crt` and `client.key`. Does nothing if they are there.
 */
export async function makeCertificates(dir: string): Promise<void> {
  const at = (name: string) => join(dir, name);
  if (existsSync(at("client.crt"))) return;
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await must("openssl", [
    ...["req", "-x509", ...key, "-days", "3", "-subj", "/CN=xsm test authority"],
    ...["-keyout", at("ca.key"), "-out", at("ca.crt")],
  ]);
  writeFileSync(at("names.cnf"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  for (const name of ["server", "client"]) {
    const request = at(`${name}.csr`);
    await must("openssl", [
      "req",
      ...key,
      "-subj",
      `/CN=xsm test ${name}`,
      "-keyout",
      at(`${name}.key`),
      "-out",
      request,
    ]);
    await must("openssl", [
      ...["x509", "-req", "-in", request, "-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial"],
      ...["-days", "3", "-extfile", at("names.cnf"), "-out", at(`${name}.crt`)],
    ]);
    chmodSync(at(`${name}.key`), 0o644);
  }
}

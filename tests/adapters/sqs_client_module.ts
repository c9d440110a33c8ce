/** A module as a user gives it in `clientModule`: credentials from a function, which cannot cross to a worker. */
export function clientOptions(): { readonly credentials: () => Promise<object> } {
  return { credentials: () => Promise.resolve({ accessKeyId: "from-a-provider", secretAccessKey: "hidden" }) };
}

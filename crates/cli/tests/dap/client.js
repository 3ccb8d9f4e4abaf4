// A session of `reconverge debug --dap` with VS Code's own test client. RECONVERGE names another binary than
// target/debug/reconverge.
import assert from "node:assert/strict";
import { dirname, join, resolve } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

import support from "@vscode/debugadapter-testsupport";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../../../..");
export const binary = resolve(process.env.RECONVERGE ?? join(root, "target/debug/reconverge"));
export const samples = join(root, "docs/samples");

const clients = [];
after(() => Promise.all(clients.map((client) => client.stop())));

export async function started() {
  const env = { ...process.env, RECONVERGE: binary };
  const client = new support.DebugClient("sh", join(here, "adapter"), "reconverge", { env });
  clients.push(client);
  await client.start();
  return client;
}

/** A session that has stopped at its first instruction. */
export async function stopped(launch, set = async () => {}) {
  const client = await started();
  const { body } = await client.initializeRequest();
  assert.equal(body.supportsConfigurationDoneRequest, true);
  await Promise.all([client.waitForEvent("initialized"), client.launchRequest(launch)]);
  await set(client);
  const [event] = await Promise.all([client.waitForEvent("stopped"), client.configurationDoneRequest()]);
  assert.equal(event.body.reason, "entry");
  return client;
}

/** Makes a movement; gives the body of the stop at its end. */
export async function go(client, request, more = {}) {
  const [event] = await Promise.all([
    client.waitForEvent("stopped"),
    client.customRequest(request, { threadId: 1, ...more }),
  ]);
  return event.body;
}

export async function top(client) {
  const { body } = await client.stackTraceRequest({ threadId: 1 });
  return body.stackFrames[0];
}

export async function scopes(client) {
  const { body } = await client.scopesRequest({ frameId: (await top(client)).id });
  return body.scopes;
}

export async function variables(client, scope, more = {}) {
  const { variablesReference } = (await scopes(client)).find(({ name }) => name.startsWith(scope));
  return (await client.variablesRequest({ variablesReference, ...more })).body.variables;
}

// The Node driver: a client that reads one job per line and prints one report per line.
//
// `../README.md` has the format of both.

import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import v8 from "node:v8";
import vm from "node:vm";

import * as mcpline from "mcpline";

import { programTransport } from "./channel.mjs";

function errorReport(error) {
  return {
    kind: error.kind ?? error.name,
    text: error.message,
    status: error.status ?? null,
    code: error.code ?? error.source?.code ?? null,
    retry_safe: error.retrySafe ?? false,
    outcome_unknown: error.outcomeUnknown ?? false,
  };
}

/** Removes undefined members. */
function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function ms(seconds) {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Notifications that a client has received. */
class Received {
  #notifications = [];
  #awaiting = [];

  add({ method, params }) {
    this.#notifications.push({ method, params });
    for (const look of this.#awaiting.splice(0)) {
      look();
    }
  }

  /** Waits for the first `count` notifications of a method and returns their params. */
  async first(method, count) {
    for (;;) {
      const found = this.#notifications.filter((notification) => notification.method === method);
      if (found.length >= count) {
        return found.slice(0, count).map(({ params }) => params ?? {});
      }
      await new Promise((look) => this.#awaiting.push(look));
    }
  }
}

/** Returns a handler of a custom request: for each member of the result, the member of the params to copy. */
function serving(members) {
  return (params) => {
    const found = Object.entries(members).map(([name, source]) => {
      if (!Object.hasOwn(params, source)) {
        throw new mcpline.RpcError(-32602, `params have no ${JSON.stringify(source)}`);
      }
      return [name, params[source]];
    });
    return Object.fromEntries(found);
  };
}

/** Maps the values of an object's members. */
function mapped(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

/** Returns the extensions that a client declares, with the requests that resolve results of their types. */
function extensionsOf(declared, job) {
  const resolving =
    (method) =>
    async ({ result }) =>
      (await job.client).request(method, { token: result.token });
  return Object.entries(declared).map(([identifier, { settings = {}, resolves = {} }]) => ({
    identifier,
    settings,
    onResultType: mapped(resolves, resolving),
  }));
}

async function connect(job) {
  const { address, settings = {}, received } = job;
  const { revisions, era, probe, answer, attempts, trust_tool_annotations, max_body_bytes, answers, listener_pause } =
    settings;
  const { ping_interval, ping_timeout, serves, extensions, listens } = settings;
  const options = given({
    name: "driver",
    reconnectDelay: 20,
    revisions,
    era,
    probeTimeout: ms(probe),
    openTimeout: ms(answer),
    reconnectAttempts: attempts,
    trustToolAnnotations: trust_tool_annotations,
    pingInterval: ms(ping_interval),
    pingTimeout: ms(ping_timeout),
    onRequest: serves && mapped(serves, serving),
    extensions: extensions && extensionsOf(extensions, job),
    onNotification: listens ? (notification) => received.add(notification) : undefined,
  });
  if (listener_pause !== undefined) {
    let pause = listener_pause * 1000;
    options.onNotification = () => {
      const paused = delay(pause);
      pause = 0;
      return paused;
    };
  }
  if (answers) {
    Object.assign(options, { roots: ["file:///"], elicit: () => "decline", sample: () => "sampled" });
  }
  if (address.url !== undefined) {
    return mcpline.Client.connect(address.url, {
      ...options,
      ...given({ maxBodyBytes: max_body_bytes }),
      resumeDelay: 20,
    });
  }
  if (address.socket !== undefined) {
    return mcpline.Client.socket(address.socket, options);
  }
  if (address.channel !== undefined) {
    return mcpline.Client.over(programTransport(address.channel), options);
  }
  if (address.memory) {
    const { everything } = await import("../../servers/node/everything.mjs");
    return mcpline.Client.memory(everything({}, ["extensions"]), options);
  }
  const [program, ...args] = address.command;
  return mcpline.Client.spawn(program, args, options);
}

function call(client, { name, arguments: args, timeout, reissue }, options) {
  const more = given({ timeout: ms(timeout), reissue });
  return client.callTool(name, args, { ...more, ...options });
}

/** Cancels a call while it runs. */
async function cancel(client, step) {
  const giving = new AbortController();
  const giveUp = () => giving.abort();
  if (step.after) {
    void delay(step.after * 1000).then(giveUp);
  }
  try {
    return await call(client, step, {
      signal: giving.signal,
      onProgress: step.after ? () => undefined : giveUp,
    });
  } catch (error) {
    if (giving.signal.aborted && error === giving.signal.reason) {
      return "cancelled";
    }
    throw error;
  }
}

/** Returns the timeout of a step's request. */
function patience({ timeout }) {
  return given({ timeout: ms(timeout) });
}

const steps = {
  list_tools: (client, step) => client.listTools(patience(step)),
  list_resources: (client, step) => client.listResources(patience(step)),
  list_resource_templates: (client, step) => client.listResourceTemplates(patience(step)),
  list_prompts: (client, step) => client.listPrompts(patience(step)),
  ping: (client, step) => client.ping(patience(step)),
  read_resource: (client, step) => client.readResource(step.uri, patience(step)),
  get_prompt: (client, step) => client.getPrompt(step.name, step.arguments, patience(step)),
  complete: (client, step) => {
    const { ref, argument, context } = step.params;
    const of = ref.type === "ref/prompt" ? { prompt: ref.name } : { template: ref.uri };
    return client.complete(of, argument, { ...given({ context: context?.arguments }), ...patience(step) });
  },
  subscribe: (client, step) => client.subscribe(step.uri, patience(step)),
  unsubscribe: (client, step) => client.unsubscribe(step.uri, patience(step)),
  set_log_level: (client, step) => client.setLogLevel(step.level, patience(step)),
  cancel_tool: cancel,
  notify: (client, { method, params }) => client.notify(method, params),
  await_notifications: (_, { method, count }, received) => received.first(method, count),
};

async function take(client, step, received) {
  try {
    if (step.do === "call_tool" || step.do === "request") {
      let progress = 0;
      const { listener_pause: pause } = step;
      const onProgress = () => (++progress === 1 && pause !== undefined ? delay(pause * 1000) : undefined);
      const result =
        step.do === "call_tool"
          ? await call(client, step, { onProgress })
          : await client.request(step.method, step.params, { ...patience(step), onProgress });
      return { result, progress };
    }
    return { result: (await steps[step.do](client, step, received)) ?? null };
  } catch (error) {
    return { error: errorReport(error) };
  }
}

async function play(job) {
  const report = { revision: null, server: null, error: null, steps: [] };
  const received = new Received();
  let client;
  try {
    // Resolvers of results send requests with this client.
    const playing = { ...job, received };
    playing.client = connect(playing);
    client = await playing.client;
  } catch (error) {
    return { ...report, error: errorReport(error) };
  }
  report.revision = client.protocolVersion;
  report.server = client.serverInfo?.name ?? null;
  for (const step of job.steps ?? []) {
    report.steps.push(await take(client, step, received));
  }
  await client.close();
  return report;
}

/** Runs a job as often as it says, until something fails, and reports the last run. */
async function run(job) {
  let report;
  for (let time = 0; time < (job.times ?? 1); time++) {
    report = await play(job);
    if (report.error !== null || report.steps.some(({ error }) => error !== undefined)) {
      break;
    }
  }
  if (job.times !== undefined) {
    // The suite looks for leaks, so garbage must not count.
    await collect();
  }
  process.stdout.write(`${JSON.stringify({ job: job.job, ...report })}\n`);
}

async function collect() {
  v8.setFlagsFromString("--expose-gc");
  const gc = vm.runInNewContext("gc");
  for (let round = 0; round < 4; round++) {
    // Finalizers run between the collections.
    gc();
    await delay(1);
  }
}

const running = [];
for await (const line of createInterface({ input: process.stdin })) {
  running.push(run(JSON.parse(line)));
}
await Promise.all(running);

// The Node driver: a client that does what it is told, one job a line, and says what came of it.
//
// `../README.md` has the format of both.

import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import v8 from "node:v8";
import vm from "node:vm";

import * as mcpline from "mcpline";

function told(error) {
  return {
    kind: error.kind ?? error.name,
    text: error.message,
    status: error.status ?? null,
    code: error.code ?? error.source?.code ?? null,
    retry_safe: error.retrySafe ?? false,
    outcome_unknown: error.outcomeUnknown ?? false,
  };
}

/** Without what is not there. */
function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function ms(seconds) {
  return seconds === undefined ? undefined : seconds * 1000;
}

function connect({ address, settings = {} }) {
  const { revisions, remembered, probe, answer, attempts, trusted, body_limit, answers, listener_pause } = settings;
  const { ping_interval, ping_timeout } = settings;
  const options = given({
    name: "driver",
    reconnectDelay: 20,
    revisions,
    era: remembered,
    probeTimeout: ms(probe),
    openTimeout: ms(answer),
    reconnectAttempts: attempts,
    trusted,
    pingInterval: ms(ping_interval),
    pingTimeout: ms(ping_timeout),
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
    return mcpline.Client.connect(address.url, { ...options, ...given({ bodyLimit: body_limit }), resumeDelay: 20 });
  }
  const [program, ...args] = address.command;
  return mcpline.Client.spawn(program, args, options);
}

function call(client, { name, arguments: args, timeout, reissue }, options) {
  const more = given({ timeout: ms(timeout), reissue });
  return client.callTool(name, args, { ...more, ...options });
}

/** Gives a call up while it runs. */
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

/** How long a step's request waits. */
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
};

async function take(client, step) {
  try {
    if (step.do === "call_tool") {
      let progress = 0;
      const { listener_pause: pause } = step;
      const onProgress = () => (++progress === 1 && pause !== undefined ? delay(pause * 1000) : undefined);
      const result = await call(client, step, { onProgress });
      return { result, progress };
    }
    return { result: (await steps[step.do](client, step)) ?? null };
  } catch (error) {
    return { error: told(error) };
  }
}

async function play(job) {
  const report = { revision: null, server: null, error: null, steps: [] };
  let client;
  try {
    client = await connect(job);
  } catch (error) {
    return { ...report, error: told(error) };
  }
  report.revision = client.protocolVersion;
  report.server = client.serverInfo?.name ?? null;
  for (const step of job.steps ?? []) {
    report.steps.push(await take(client, step));
  }
  await client.close();
  return report;
}

/** Plays a job as often as it says, until something fails; the report is the last play's. */
async function run(job) {
  let report;
  for (let time = 0; time < (job.times ?? 1); time++) {
    report = await play(job);
    if (report.error !== null || report.steps.some(({ error }) => error !== undefined)) {
      break;
    }
  }
  if (job.times !== undefined) {
    // Leaks are looked for: what is garbage is none.
    await collect();
  }
  process.stdout.write(`${JSON.stringify({ job: job.job, ...report })}\n`);
}

async function collect() {
  v8.setFlagsFromString("--expose-gc");
  const gc = vm.runInNewContext("gc");
  for (let round = 0; round < 4; round++) {
    // What was collected is finalized in between.
    gc();
    await delay(1);
  }
}

const running = [];
for await (const line of createInterface({ input: process.stdin })) {
  running.push(run(JSON.parse(line)));
}
await Promise.all(running);

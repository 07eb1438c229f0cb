// Shared by the client scripts: the client's answers, a record of messages, and waiting.

const WAIT = 60_000; // A message that takes longer counts as missing; no test depends on it.

/** The client's handlers, and a record of the messages that it received. */
export class Callbacks {
  elicitations = {};
  roots = [];
  inputRequests = [];
  logged = [];
  notified = [];

  sample(params) {
    this.inputRequests.push(['sampling/createMessage', params]);
    const { content } = params.messages.at(-1);
    const prompt = (Array.isArray(content) ? content[0] : content).text;
    if (params.tools?.length) {
      return {
        role: 'assistant', model: 'interop', stopReason: 'toolUse',
        content: { type: 'tool_use', id: 'call-1', name: 'get_weather', input: { city: 'Oslo' } },
      };
    }
    const text = prompt.includes('capital') ? 'Paris' : `answer to ${prompt}`;
    return { role: 'assistant', model: 'interop', stopReason: 'endTurn', content: { type: 'text', text } };
  }

  elicit(params) {
    this.inputRequests.push(['elicitation/create', params]);
    return this.elicitations[params.message] ?? { action: 'decline' };
  }

  listRoots() {
    this.inputRequests.push(['roots/list', {}]);
    return { roots: this.roots };
  }

  notices(method) {
    return this.notified.filter((notice) => notice.method === method).map((notice) => notice.params);
  }
}

/** Waits until the condition holds; fails after a timeout. */
export async function eventually(what, condition, wait = WAIT) {
  const deadline = Date.now() + wait;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A connected official client; subclasses define what differs between the two major versions. */
export class Peer {
  constructor(client, revision, transport, callbacks) {
    Object.assign(this, { client, revision, transport, callbacks });
  }

  get modern() {
    return this.revision >= '2026-07-28';
  }

  hello() {
    return {
      serverInfo: this.client.getServerVersion(),
      capabilities: this.client.getServerCapabilities(),
      instructions: this.client.getInstructions(),
    };
  }

  /** Returns all pages of `tools`, `prompts`, `resources` or `templates`. */
  async list(kind) {
    const [method, field] = {
      tools: ['listTools', 'tools'],
      prompts: ['listPrompts', 'prompts'],
      resources: ['listResources', 'resources'],
      templates: ['listResourceTemplates', 'resourceTemplates'],
    }[kind];
    const found = [];
    let cursor;
    do {
      const page = await this.client[method](cursor === undefined ? undefined : { cursor }, this.listOptions());
      found.push(...page[field]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
  }

  listOptions() {
    return {};
  }

  errorCode(error) {
    return error.code;
  }

  getPrompt(name, args) {
    return this.client.getPrompt({ name, arguments: args });
  }

  read(uri) {
    return this.client.readResource({ uri }, this.listOptions());
  }

  complete(ref, argument, context) {
    return this.client.complete({ ref, argument, ...(context ? { context: { arguments: context } } : {}) });
  }

  /** Calls the tool, cancels the call at its first progress, and checks that it was not answered. */
  async cancelledCall(name, args) {
    const controller = new AbortController();
    let started = false;
    let answered = false;
    const call = this.callTool(name, args, { signal: controller.signal, onProgress: () => { started = true; } })
      .then(() => { answered = true; }, () => {});
    await eventually('progress', () => started);
    controller.abort('interop');
    await call;
    if (answered) throw new Error('a cancelled call was answered');
  }
}

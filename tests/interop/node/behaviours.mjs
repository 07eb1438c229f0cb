// Every kind of request that an official TypeScript client can send, checked strictly against the everything-server.
// The behaviours are those of ../python/behaviours.py, with the same names.

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { applies, differences } from './matching.mjs';
import { eventually } from './peer.mjs';

const EXPECTED = JSON.parse(readFileSync(new URL('../expectations.json', import.meta.url), 'utf8'));

/** `{ name, run(peer), holds(peer) }` of every behaviour, in order. */
export const BEHAVIOURS = [];

/** Behaviours that end the server. */
export const ENDINGS = [];

function behaviour(name, run, { since = '', only = () => true, ends = false } = {}) {
  (ends ? ENDINGS : BEHAVIOURS).push({ name, run, holds: (peer) => peer.revision >= since && only(peer) });
}

const legacy = (peer) => !peer.modern;
const modern = (peer) => peer.modern;

function mustMatch(expected, seen) {
  const found = differences(expected, seen);
  assert.ok(found.length === 0, found.join('; '));
}

/** Returns the text of a result, which must be a single text item and no error. */
function textOf(result) {
  mustMatch({ content: [{ type: 'text' }], isError: { $falsy: true } }, result);
  return result.content[0].text;
}

/** Calls a tool that sends input requests; returns its text and the input requests. */
async function asking(peer, name, args) {
  peer.callbacks.inputRequests.length = 0;
  const result = await peer.callTool(name, args);
  // Servers also ask for roots when these have changed, outside of any call.
  return [textOf(result), peer.callbacks.inputRequests.filter(([method]) => method !== 'roots/list')];
}

const keyOf = (kind) => ({ resources: 'uri', templates: 'uriTemplate' })[kind] ?? 'name';

// --- Identity and lists ----------------------------------------------------------------------------------------

behaviour('the_server_introduces_itself', async (peer) => {
  const { name, version, title, instructions } = EXPECTED.server;
  const hello = peer.hello();
  mustMatch({ name, version, title }, hello.serverInfo);
  assert.equal(hello.instructions, instructions);
  mustMatch({ ...EXPECTED.capabilities, completions: {} }, hello.capabilities);
});

behaviour('lists_are_complete_and_in_order', async (peer) => {
  for (const [kind, expected] of Object.entries(EXPECTED.lists)) {
    assert.deepEqual((await peer.list(kind)).map((item) => item[keyOf(kind)]), expected);
  }
});

behaviour('everything_listed_is_described', async (peer) => {
  for (const kind of Object.keys(EXPECTED.lists)) {
    for (const item of await peer.list(kind)) {
      mustMatch({ description: { $string: true } }, item);
      if (kind === 'tools') mustMatch({ inputSchema: { type: 'object' } }, item);
    }
  }
});

behaviour('definitions_are_fit_for_the_revision', async (peer) => {
  for (const entry of EXPECTED.definitions.filter((candidate) => applies(candidate, peer.revision))) {
    const item = (await peer.list(entry.list)).find((candidate) => candidate[keyOf(entry.list)] === entry.item);
    const found = differences(entry.expect, item);
    assert.ok(found.length === 0, `${entry.item}: ${found.join('; ')}`);
  }
});

behaviour('ping_is_answered_empty', async (peer) => { mustMatch({}, await peer.client.ping()); }, { only: legacy });

// --- Plain requests, from the shared table ---------------------------------------------------------------------

for (const entry of EXPECTED.calls) {
  const subject = entry.name ?? entry.uri ?? `${entry.argument.name}=${JSON.stringify(entry.argument.value)}`;
  behaviour(`${entry.method} ${subject} ${JSON.stringify(entry.arguments ?? {}).slice(0, 60)}`, async (peer) => {
    let seen;
    try {
      if (entry.method === 'tools/call') seen = await peer.callTool(entry.name, entry.arguments);
      else if (entry.method === 'prompts/get') seen = await peer.getPrompt(entry.name, entry.arguments);
      else if (entry.method === 'resources/read') seen = await peer.read(entry.uri);
      else seen = await peer.complete(entry.ref, entry.argument, entry.context);
    } catch (error) {
      if (!entry.error || error.code === undefined) throw error;
      const { message, ...exact } = entry.error;
      // Both major versions put their own words before the server's message.
      mustMatch(exact, { code: peer.errorCode(error), data: error.data });
      if (message) mustMatch({ $contains: message }, error.message);
      return;
    }
    assert.ok(!entry.error, `an error was expected, saw ${JSON.stringify(seen)}`);
    mustMatch(entry.expect, seen);
  }, { only: (peer) => applies(entry, peer.revision) });
}

behaviour('large_payloads_pass_in_both_directions', async (peer) => {
  const text = 'Größe '.repeat(100_000);
  assert.ok(textOf(await peer.callTool('test_echo', { text })) === text);
  assert.ok(textOf(await peer.callTool('test_large_result', { size: 1_000_000 })) === 'x'.repeat(1_000_000));
});

behaviour('stray_output_of_a_handler_does_not_disturb_the_stream', async (peer) => {
  assert.equal(textOf(await peer.callTool('test_stray_output')), 'read 0 bytes');
  assert.equal(textOf(await peer.callTool('test_echo', { text: 'still here' })), 'still here');
}, { only: (peer) => peer.transport === 'stdio' });

behaviour('the_handler_sees_who_is_calling', async (peer) => {
  const info = JSON.parse(textOf(await peer.callTool('test_request_info')));
  mustMatch({ revision: peer.revision, client: 'interop 1.2.3', capabilities: 'elicitation,roots,sampling' }, info);
  assert.equal(info.header, peer.transport === 'stdio' ? 'none' : 'interop');
});

// --- While a handler runs --------------------------------------------------------------------------------------

behaviour('progress_arrives_in_order_before_the_result', async (peer) => {
  const seen = [];
  const onProgress = ({ progress, total, message }) => seen.push([progress, total, message]);
  assert.equal(textOf(await peer.callTool('test_tool_with_progress', {}, { onProgress })), 'progress done');
  assert.deepEqual(seen, [0, 50, 100].map((step) => [step, 100, `Completed step ${step} of 100`]));
});

behaviour('log_messages_arrive_from_the_chosen_level_up', async (peer) => {
  const { logged } = peer.callbacks;
  await peer.client.setLoggingLevel('info');
  logged.length = 0;
  await peer.callTool('test_tool_with_logging');
  await eventually('three log messages', () => logged.length >= 3);
  assert.deepEqual(logged.map(({ level, data }) => [level, data]), [
    ['info', 'Tool execution started'], ['info', 'Tool processing data'], ['info', 'Tool execution completed'],
  ]);
  await peer.client.setLoggingLevel('warning');
  logged.length = 0;
  await peer.callTool('test_log_levels');
  await eventually('the last log message', () => logged.length >= 5);
  await peer.client.ping();
  assert.deepEqual(logged, ['warning', 'error', 'critical', 'alert', 'emergency'].map(
    (level) => ({ level, logger: 'fixture', data: `message at ${level}` })));
  await peer.client.setLoggingLevel('debug');
}, { only: legacy });

behaviour('log_messages_arrive_only_for_requests_that_name_a_level', async (peer) => {
  const { logged } = peer.callbacks;
  logged.length = 0;
  await peer.callTool('test_log_levels');
  await peer.callTool('test_log_levels', {}, { logLevel: 'error' });
  await eventually('four log messages', () => logged.length >= 4);
  assert.deepEqual(logged.map(({ level }) => level), ['error', 'critical', 'alert', 'emergency']);
}, { only: modern });

behaviour('a_waiting_call_does_not_hold_up_others', async (peer) => {
  const name = `${peer.transport}-${peer.revision}-${process.pid}`;
  let passed = false;
  const waiting = peer.callTool('test_gate', { name }).then((result) => { passed = true; return result; });
  assert.equal(textOf(await peer.callTool('test_echo', { text: 'meanwhile' })), 'meanwhile');
  assert.equal(passed, false);
  assert.equal(textOf(await peer.callTool('test_open_gate', { name })), `gate ${name} opened`);
  assert.equal(textOf(await waiting), `gate ${name} passed`);
});

behaviour('fifty_calls_at_once_each_get_their_own_answer', async (peer) => {
  const numbers = Array.from({ length: 50 }, (_, number) => number);
  const answers = await Promise.all(numbers.map((number) => peer.callTool('test_echo', { text: `call ${number}` })));
  assert.deepEqual(answers.map(textOf), numbers.map((number) => `call ${number}`));
});

behaviour('a_cancelled_call_is_seen_by_its_handler_and_not_answered', async (peer) => {
  const label = `${peer.transport}-${peer.revision}-${process.pid}`;
  await peer.cancelledCall('test_cancellation', { label });
  assert.equal(textOf(await peer.callTool('test_cancellation_status', { label })), `${label} was cancelled`);
});

behaviour('a_result_is_fetched_after_the_server_closed_the_stream', async (peer) => {
  assert.equal(textOf(await peer.callTool('test_reconnection')), 'reconnected');
}, { only: (peer) => legacy(peer) && peer.transport === 'http' });

// --- Input requests ---------------------------------------------------------------------------------------------

behaviour('sampling_reaches_the_client', async (peer) => {
  const [text, [[method, params], ...others]] = await asking(peer, 'test_sampling', { prompt: 'Hello' });
  assert.equal(text, 'LLM response: answer to Hello');
  assert.equal(method, 'sampling/createMessage');
  assert.equal(others.length, 0);
  const { content } = params.messages[0];
  mustMatch({ maxTokens: 100 }, params);
  mustMatch({ type: 'text', text: 'Hello' }, Array.isArray(content) ? content[0] : content);
});

behaviour('sampling_with_tools_carries_tools_and_tool_use', async (peer) => {
  const [text, [[, params]]] = await asking(peer, 'test_sampling_with_tools');
  mustMatch({ $contains: 'tool_use get_weather ' }, text);
  assert.deepEqual(JSON.parse(text.replace('tool_use get_weather ', '')), { city: 'Oslo' });
  const inputSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const tool = { name: 'get_weather', description: 'Weather of a city', inputSchema };
  mustMatch({ tools: [tool], toolChoice: { mode: 'auto' } }, params);
});

behaviour('roots_are_listed_anew_for_each_question', async (peer) => {
  peer.callbacks.roots = [{ uri: 'file:///workspace/one' }, { uri: 'file:///workspace/two', name: 'Two' }];
  assert.equal((await asking(peer, 'test_roots'))[0], 'file:///workspace/one\nfile:///workspace/two');
  peer.callbacks.roots = [{ uri: 'file:///workspace/three' }];
  if (legacy(peer)) await peer.client.sendRootsListChanged();
  assert.equal((await asking(peer, 'test_roots'))[0], 'file:///workspace/three');
});

behaviour('elicitation_answers_reach_the_handler', async (peer) => {
  const content = { username: 'alice', email: 'alice@example.com' };
  for (const [answer, seen] of [
    [{ action: 'accept', content }, content], [{ action: 'decline' }, {}], [{ action: 'cancel' }, {}],
  ]) {
    peer.callbacks.elicitations = { 'Who are you?': answer };
    const [text, [[, params]]] = await asking(peer, 'test_elicitation', { message: 'Who are you?' });
    const prefix = `User response: action=${answer.action}, content=`;
    assert.ok(text.startsWith(prefix), text);
    assert.deepEqual(JSON.parse(text.slice(prefix.length)), seen);
    mustMatch({
      message: 'Who are you?',
      requestedSchema: {
        type: 'object',
        properties: { username: { type: 'string' }, email: { type: 'string' } },
        required: { $sorted: ['email', 'username'] },
      },
    }, params);
  }
});

behaviour('elicitation_schemas_keep_defaults_and_enums', async (peer) => {
  const content = { name: 'Jane', age: 31, score: 1.5, status: 'pending', verified: false };
  peer.callbacks.elicitations = {
    'Please provide user information': { action: 'accept', content },
    'Please select options': { action: 'cancel' },
  };
  let [text, [[, params]]] = await asking(peer, 'test_elicitation_sep1034_defaults');
  assert.deepEqual(JSON.parse(text.replace('Elicitation result: action=accept, content=', '')), content);
  mustMatch({
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  }, params.requestedSchema.properties);
  [text, [[, params]]] = await asking(peer, 'test_elicitation_sep1330_enums');
  assert.equal(text, 'Elicitation completed: action=cancel, content={}');
  const options = ['option1', 'option2', 'option3'];
  const titled = (word) => ['First', 'Second', 'Third'].map(
    (nth, index) => ({ const: `value${index + 1}`, title: `${nth} ${word}` }));
  mustMatch({
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: { enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  }, params.requestedSchema.properties);
});

behaviour('url_elicitation_reaches_the_client', async (peer) => {
  peer.callbacks.elicitations = { 'Please authorise access': { action: 'accept' } };
  const [text, [[, params]]] = await asking(peer, 'test_url_elicitation');
  assert.equal(text, 'URL elicitation: action=accept');
  mustMatch({ mode: 'url', url: 'https://example.com/authorise' }, params);
});

behaviour('a_required_visit_is_made_and_its_end_told', async (peer) => {
  const [tool, id] = ['test_url_elicitation_required', `visit-${randomUUID()}`];
  const url = `https://example.com/authorise?visit=${id}`;
  if (peer.modern) {
    peer.callbacks.elicitations = { 'Please authorise access': { action: 'accept' } };
    const [text, [[, params]]] = await asking(peer, tool, { id });
    assert.equal(text, `authorised ${id}`);
    mustMatch({ mode: 'url', url }, params);
    return;
  }
  await standaloneStream(peer);
  await assert.rejects(peer.callTool(tool, { id }), (error) => {
    assert.equal(peer.errorCode(error), -32042);
    mustMatch({ elicitations: [{ mode: 'url', url, elicitationId: id }] }, error.data);
    return true;
  });
  assert.equal(textOf(await peer.callTool('test_complete_url_elicitation', { id })), `completed ${id}`);
  const method = 'notifications/elicitation/complete';
  await eventually(method, () => peer.callbacks.notices(method).some(({ elicitationId }) => elicitationId === id));
  assert.equal(textOf(await peer.callTool(tool, { id })), `authorised ${id}`);
});

behaviour('one_handler_can_ask_twice', async (peer) => {
  peer.callbacks.elicitations = {
    'What is your name?': { action: 'accept', content: { name: 'Ada' } },
    'How old are you, Ada?': { action: 'accept', content: { age: 36 } },
  };
  assert.equal((await asking(peer, 'test_two_questions'))[0], 'Ada is 36');
  delete peer.callbacks.elicitations['How old are you, Ada?'];
  assert.equal((await asking(peer, 'test_two_questions'))[0], 'no age');
});

behaviour('returned_questions_are_asked_and_answered', async (peer) => {
  const accept = (content) => ({ action: 'accept', content });
  peer.callbacks.roots = [{ uri: 'file:///a' }, { uri: 'file:///b' }];
  peer.callbacks.elicitations = {
    'What is your name?': accept({ name: 'Ada' }),
    'Please confirm': accept({ ok: true }),
    'Step 1: What is your name?': accept({ name: 'Ada' }),
    'Step 2: What is your favorite color?': accept({ color: 'green' }),
    'What context should the prompt use?': accept({ context: 'tea' }),
  };
  const prefix = 'test_input_required_result_';
  for (const [name, expected] of Object.entries({
    elicitation: 'Hello, Ada!',
    sampling: 'Model said: Paris',
    list_roots: 'Client exposed 2 root(s).',
    request_state: 'state-ok: confirmation received',
    multiple_inputs: 'All inputs received.',
    multi_round: 'Ada likes green.',
    tampered_state: 'state-ok: round-1',
    capabilities: 'capabilities respected: ask,sample',
  })) {
    assert.equal((await asking(peer, prefix + name))[0], expected);
  }
  const { messages } = await peer.getPrompt(`${prefix}prompt`, {});
  mustMatch([{ role: 'user', content: { type: 'text', text: 'Use this context: tea' } }], messages);
});

// --- Notifications of changes -----------------------------------------------------------------------------------

const CHANGES = {
  tools: ['test_trigger_tool_change', 'test_dynamic_tool'],
  prompts: ['test_trigger_prompt_change', 'test_dynamic_prompt'],
  resources: ['test_trigger_resource_change', 'test://dynamic-resource'],
};

const forget = (peer) => { peer.callbacks.notified.length = 0; };

/** Changes a list twice; each change must be announced and must show in the list. */
async function announced(peer, kind) {
  const [trigger, item] = CHANGES[kind];
  const method = `notifications/${kind}/list_changed`;
  for (const expected of ['added', 'removed']) {
    forget(peer);
    assert.equal(textOf(await peer.callTool(trigger)), expected);
    await eventually(method, () => peer.callbacks.notices(method).length > 0);
    const names = (await peer.list(kind)).map((entry) => entry[keyOf(kind)]);
    assert.equal(names.includes(item), expected === 'added');
  }
}

/** Waits until the client's GET stream is open; the client opens it some time after the handshake. */
async function standaloneStream(peer) {
  if (peer.transport !== 'http') return;
  forget(peer);
  for (let attempt = 0; attempt < 60 && peer.callbacks.notified.length === 0; attempt += 1) {
    await peer.callTool('test_trigger_tool_change');
    await eventually('a notification', () => peer.callbacks.notified.length > 0, 200).catch(() => {});
  }
  assert.ok(peer.callbacks.notified.length > 0, 'no notification ever arrived on the GET stream');
  if ((await peer.list('tools')).some((tool) => tool.name === 'test_dynamic_tool')) {
    await peer.callTool('test_trigger_tool_change');
  }
  for (let count = -1; count !== peer.callbacks.notified.length;) {
    count = peer.callbacks.notified.length;
    await peer.client.ping();
  }
}

behaviour('list_changes_are_announced', async (peer) => {
  await standaloneStream(peer);
  for (const kind of Object.keys(CHANGES)) await announced(peer, kind);
}, { only: legacy });

behaviour('resource_updates_reach_subscribers_only', async (peer) => {
  await standaloneStream(peer);
  const uri = 'test://watched-resource';
  const method = 'notifications/resources/updated';
  forget(peer);
  mustMatch({}, await peer.client.subscribeResource({ uri }));
  const version = textOf(await peer.callTool('test_update_resource')).replace('version ', '');
  await eventually(method, () => peer.callbacks.notices(method).length > 0);
  mustMatch([{ uri }], peer.callbacks.notices(method));
  mustMatch({ contents: [{ text: `Watched resource, version ${version}` }] }, await peer.read(uri));
  mustMatch({}, await peer.client.unsubscribeResource({ uri }));
  forget(peer);
  await peer.callTool('test_update_resource');
  await peer.callTool('test_trigger_tool_change');
  const later = 'notifications/tools/list_changed';
  await eventually(later, () => peer.callbacks.notices(later).length > 0);
  await peer.callTool('test_trigger_tool_change');
  assert.deepEqual(peer.callbacks.notices(method), []);
}, { only: legacy });

behaviour('listening_streams_tell_what_they_asked_for_and_no_more', async (peer) => {
  const uri = 'test://watched-resource';
  const lists = await peer.client.listen({ toolsListChanged: true, resourcesListChanged: true });
  const updates = await peer.client.listen({ resourceSubscriptions: [uri] });
  mustMatch({ toolsListChanged: true, resourcesListChanged: true, promptsListChanged: { $falsy: true } }, lists.honoredFilter);
  mustMatch({ resourceSubscriptions: [uri], toolsListChanged: { $falsy: true } }, updates.honoredFilter);
  forget(peer);
  await peer.callTool('test_update_resource');
  const method = 'notifications/resources/updated';
  await eventually(method, () => peer.callbacks.notices(method).length > 0);
  mustMatch([{ uri }], peer.callbacks.notices(method));
  await peer.callTool('test_trigger_prompt_change');
  await peer.callTool('test_trigger_prompt_change');
  await announced(peer, 'tools');
  await announced(peer, 'resources');
  assert.deepEqual(peer.callbacks.notices('notifications/prompts/list_changed'), []);
  await lists.close();
  await updates.close();
  assert.equal(await lists.closed, 'local');
}, { only: modern });

behaviour('prompt_changes_are_told_to_who_listens_for_them', async (peer) => {
  const prompts = await peer.client.listen({ promptsListChanged: true });
  await announced(peer, 'prompts');
  await prompts.close();
}, { only: modern });

behaviour('a_stream_that_the_client_leaves_tells_nothing_more', async (peer) => {
  const left = await peer.client.listen({ toolsListChanged: true });
  await announced(peer, 'tools');
  await left.close();
  assert.equal(await left.closed, 'local');
  forget(peer);
  const prompts = await peer.client.listen({ promptsListChanged: true });
  await peer.callTool('test_trigger_tool_change');
  await peer.callTool('test_trigger_tool_change');
  await announced(peer, 'prompts');
  // Notifications to the closed stream would have arrived before these.
  assert.deepEqual(peer.callbacks.notices('notifications/tools/list_changed'), []);
  await prompts.close();
}, { only: modern });

behaviour('a_server_that_ends_ends_its_streams_gracefully', async (peer) => {
  const tools = await peer.client.listen({ toolsListChanged: true });
  const updates = await peer.client.listen({ resourceSubscriptions: ['test://watched-resource'] });
  const errors = [];
  peer.client.onerror = (error) => errors.push(error);
  execFileSync(peer.stop[0], peer.stop.slice(1));
  assert.equal(await tools.closed, 'graceful');
  assert.equal(await updates.closed, 'graceful');
  assert.deepEqual(errors, []);
}, { only: modern, ends: true });

#!/usr/bin/env node
// Agent that speaks ACP, without a model. The prompt selects what it does: [[write]], [[hello]], [[fail]], [[limit]],
// [[crash]], [[hang]], [[refuse]], [[read-file]] or [[json]].
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const sessions = new Map();
const answers = new Map();
let calls = 0;

const print = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (sessionId, given) =>
  print({ method: 'session/update', params: { sessionId, update: given } });

const ask = (method, params) =>
  new Promise((resolve, reject) => {
    const id = `a${++calls}`;
    answers.set(id, { resolve, reject });
    print({ id, method, params });
  });

const untilCancelled = session =>
  new Promise(resolve => {
    session.onCancel = () => resolve({ stopReason: 'cancelled' });
  });

async function prompt({ sessionId, prompt: blocks }) {
  const session = sessions.get(sessionId);
  const say = text =>
    update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  const marker = blocks[0].text.match(/\[\[([\w-]+)\]\]/)?.[1] ?? 'hello';
  switch (marker) {
    case 'crash':
      return process.exit(3);
    case 'fail':
      throw { code: -32603, message: 'Internal error', data: { details: 'the script says so' } };
    case 'limit':
      throw { code: 429, message: 'Too many requests, try again in 90 seconds' };
    case 'refuse':
      return { stopReason: 'refusal' };
    case 'hang':
      say('waiting');
      update(sessionId, { sessionUpdate: 'plan', entries: [] });
      return untilCancelled(session);
    case 'read-file':
      return ask('fs/read_text_file', { sessionId, path: join(session.cwd, 'x') }).then(
        () => ({ stopReason: 'end_turn' }),
        error => {
          say(error.message);
          return { stopReason: 'end_turn' };
        },
      );
    case 'json':
      say('Here it is:\n```json\n{"files":["a.txt"]}\n```\n');
      return { stopReason: 'end_turn', usage: { inputTokens: 5, outputTokens: 7, totalTokens: 12 } };
    case 'write':
      return write({ sessionId, session, say });
    default:
      say('Hel');
      say('lo.');
      return { stopReason: 'end_turn' };
  }
}

async function write({ sessionId, session, say }) {
  say('I will create the file.');
  const path = join(session.cwd, session.target ?? 'hello.txt');
  const toolCall = {
    toolCallId: `tool${++calls}`,
    title: 'Write hello.txt',
    kind: 'edit',
    status: 'pending',
    rawInput: { path, content: 'hello\n' },
    locations: [{ path }],
  };
  update(sessionId, { sessionUpdate: 'tool_call', ...toolCall });
  const options = [
    { optionId: 'never', name: 'Never', kind: 'reject_always' },
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ];
  const { outcome } = await ask('session/request_permission', { sessionId, toolCall, options });
  if (outcome.outcome === 'cancelled') return { stopReason: 'cancelled' };
  const isAllowed = outcome.optionId === 'yes';
  if (isAllowed) writeFileSync(path, 'hello\n');
  const status = isAllowed ? 'completed' : 'failed';
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: toolCall.toolCallId, status });
  say(isAllowed ? 'Done.' : 'Not allowed.');
  return { stopReason: 'end_turn' };
}

const methods = {
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: 'acp-agent', version: '0' },
    agentCapabilities: { loadSession: true, promptCapabilities: {} },
    authMethods: [],
  }),
  'session/new': ({ cwd }) => {
    const sessionId = `session-${++calls}`;
    sessions.set(sessionId, { cwd });
    return { sessionId };
  },
  'session/load': ({ cwd, sessionId }) => {
    sessions.set(sessionId, { cwd });
    update(sessionId, {
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: 'an old message' },
    });
    return {};
  },
  'session/prompt': prompt,
};

async function answer({ id, method, params }) {
  try {
    if (!methods[method]) throw { code: -32601, message: 'Method not found' };
    print({ id, result: await methods[method](params) });
  } catch ({ code = -32603, message, data }) {
    print({ id, error: { code, message, data } });
  }
}

createInterface({ input: process.stdin })
  .on('line', line => {
    const message = JSON.parse(line);
    if (message.method === 'session/cancel') sessions.get(message.params.sessionId)?.onCancel?.();
    else if (message.method !== undefined) void answer(message);
    else if (message.error) answers.get(message.id)?.reject(message.error);
    else answers.get(message.id)?.resolve(message.result);
  })
  .on('close', () => process.exit(0));

#!/usr/bin/env node
// Stand-in for Claude Code with streamed input, without a model. The prompt selects what it does: [[bash]], [[two]],
// [[hello]], [[limit]], [[hang]], [[json]], [[text]], [[error]], [[background]] or [[server]].
import { execSync } from 'node:child_process';
import { createInterface } from 'node:readline';

const argument = name => process.argv[process.argv.indexOf(name) + 1];
const sessionId = process.argv.includes('--session-id') ? argument('--session-id') : 'chosen-by-the-agent';
const print = message => process.stdout.write(`${JSON.stringify({ ...message, session_id: sessionId })}\n`);

const answers = new Map();
let turns = 0;
let onInterrupt = () => {};

const assistant = content =>
  print({ type: 'assistant', message: { content: [content] }, parent_tool_use_id: null });
const say = text => assistant({ type: 'text', text });

const result = fields =>
  print({
    type: 'result',
    subtype: 'success',
    is_error: false,
    usage: { input_tokens: 10, output_tokens: 2, cache_read_input_tokens: 30 },
    total_cost_usd: 0.5 * ++turns,
    ...fields,
  });

/** Asks for permission to run a command, and runs it if allowed. */
async function bash(id, command) {
  assistant({ type: 'tool_use', id, name: 'Bash', input: { command } });
  const response = await new Promise(resolve => {
    answers.set(id, resolve);
    const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command }, tool_use_id: id };
    print({ type: 'control_request', request_id: id, request });
  });
  const isAllowed = response.behavior === 'allow';
  const content = isAllowed ? execSync(response.updatedInput.command).toString() : response.message;
  const block = { type: 'tool_result', tool_use_id: id, content, is_error: !isAllowed };
  print({ type: 'user', message: { role: 'user', content: [block] } });
  return isAllowed;
}

async function turn(text) {
  print({ type: 'system', subtype: 'init', session_id: sessionId, model: 'none', cwd: process.cwd() });
  switch (text.match(/\[\[([\w-]+)\]\]/)?.[1]) {
    case 'bash':
      return result({ result: (await bash('t1', 'echo made > made.txt')) ? 'Made.' : 'Not made.' });
    case 'two': {
      const made = await Promise.all([bash('t1', 'echo a > a.txt'), bash('t2', 'echo b > b.txt')]);
      return result({ result: `${made.filter(Boolean).length} made.` });
    }
    case 'limit':
      print({ type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt: 1_800_000_000 } });
      return result({ is_error: true, api_error_status: 429, result: 'You have hit your limit' });
    case 'hang':
      say('waiting');
      onInterrupt = () =>
        result({ is_error: true, subtype: 'error_during_execution', terminal_reason: 'aborted_streaming' });
      return undefined;
    case 'background': {
      const tasks = running => print({ type: 'system', subtype: 'background_tasks_changed', tasks: running });
      tasks([{ task_id: 'a1', task_type: 'local_agent' }]);
      result({ result: 'A subagent works on it.' });
      const isMade = await bash('t1', 'echo made > made.txt');
      print({ type: 'system', subtype: 'task_notification', task_id: 'a1', status: 'completed' });
      tasks([]);
      print({ type: 'system', subtype: 'init', session_id: sessionId });
      return result({ result: isMade ? 'The subagent made it.' : 'The subagent did not make it.' });
    }
    case 'server':
      print({ type: 'system', subtype: 'background_tasks_changed', tasks: [{ task_id: 'b1' }] });
      return result({ result: 'A server is running.' });
    case 'json':
      return result({ result: '{"n":1}', structured_output: { n: 1 } });
    case 'text':
      return result({ result: 'I would rather talk.' });
    case 'error':
      return result({ is_error: true, api_error_status: 500, result: 'API Error: 500' });
    default:
      say('Hello.');
      return result({ result: 'Hello.' });
  }
}

createInterface({ input: process.stdin })
  .on('line', line => {
    const message = JSON.parse(line);
    if (message.type === 'user') void turn(message.message.content[0].text);
    else if (message.type === 'control_response')
      answers.get(message.response.request_id)(message.response.response);
    else if (message.request.subtype === 'interrupt') onInterrupt();
    else {
      const response = { subtype: 'success', request_id: message.request_id, response: {} };
      print({ type: 'control_response', response });
    }
  })
  .on('close', () => process.exit(0));

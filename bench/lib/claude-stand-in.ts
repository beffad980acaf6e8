#!/usr/bin/env node
/**
 * Stands in for the `claude` program: `<settings file>`. It prints a session line by line, waits for every
 * permission, makes the edits, and records the number of bytes that it printed.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { claudeSession, typeable } from './claude-session.ts';

const { calls, isPartial, files, printed } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const seed = Number(process.env.SEED ?? 1);
const cwd = process.cwd();

let bytes = 0;
const print = line => {
  bytes += Buffer.byteLength(line) + 1;
  process.stdout.write(`${line}\n`);
};

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const heard = async isWanted => {
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    const message = JSON.parse(next.value);
    if (isWanted(message)) return message;
  }
  throw new Error('the host closed the connection');
};

function act({ path, content, from, to }) {
  const file = join(cwd, path);
  if (content !== undefined) writeFileSync(file, content);
  else
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(from, () => to),
    );
}

const { request_id } = await heard(({ type }) => type === 'control_request');
const response = { subtype: 'success', request_id, response: { commands: typeable } };
print(JSON.stringify({ type: 'control_response', response }));
await heard(({ type }) => type === 'user');
for (const part of claudeSession({ calls, isPartial, cwd, files, seed })) {
  if (part.act) act(part.act);
  else print(part.line);
  if (part.isQuestion) {
    const answer = await heard(({ type }) => type === 'control_response');
    if (answer.response?.response?.behavior !== 'allow') throw new Error('a permission was denied');
  }
}
appendFileSync(printed, `${bytes}\n`);
for await (const _ of lines);

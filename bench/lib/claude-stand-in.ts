#!/usr/bin/env node
/**
 * Stands in for the `claude` program: `<settings file>`. It prints a session line by line, waits for every
 * permission, makes the edits, and records the number of bytes that it printed.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Act, claudeSession, type StandInSettings, typeable } from './claude-session.ts';

const settings: StandInSettings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const seed = Number(process.env.SEED ?? 1);
const cwd = process.cwd();

let bytes = 0;
const print = (line: string) => {
  bytes += Buffer.byteLength(line) + 1;
  process.stdout.write(`${line}\n`);
};

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

interface Message {
  readonly type: string;
  readonly request_id?: string;
  readonly response?: { readonly response?: { readonly behavior?: string } };
}

/** Waits for a message of this type. */
async function heard(type: string): Promise<Message> {
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    const message: Message = JSON.parse(next.value);
    if (message.type === type) return message;
  }
  throw new Error('the host closed the connection');
}

function perform(act: Act) {
  const file = join(cwd, act.path);
  const content = 'content' in act ? act.content : readFileSync(file, 'utf8').replace(act.from, () => act.to);
  writeFileSync(file, content);
}

const { request_id } = await heard('control_request');
const response = { subtype: 'success', request_id, response: { commands: typeable } };
print(JSON.stringify({ type: 'control_response', response }));
await heard('user');
for (const part of claudeSession({ ...settings, cwd, seed })) {
  if ('act' in part) {
    perform(part.act);
    continue;
  }
  print(part.line);
  if (part.isQuestion) {
    const answer = await heard('control_response');
    if (answer.response?.response?.behavior !== 'allow') throw new Error('a permission was denied');
  }
}
appendFileSync(settings.printed, `${bytes}\n`);
for await (const _ of lines);

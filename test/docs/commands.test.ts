import type { Command } from 'commander';
import { CommanderError } from 'commander';
import { beforeAll, describe, expect, it } from 'vitest';
import { codeSpansOf, isGenerated, pages } from './documents.ts';
import { shellWords } from './shell-words.ts';
import { shellBlocksOf } from './walkthrough.ts';

/** Code of the error with which the CLI refuses a command line; `undefined` if it accepts the line. */
let errorOf: (line: string) => Promise<string | undefined>;

beforeAll(async () => {
  const { declaredProgram } = await import('../../scripts/reference/program.ts');
  errorOf = line => parse(declaredProgram, line);
});

async function parse(declare: () => Promise<Command>, line: string): Promise<string | undefined> {
  const program = silent(await declare());
  for (const command of program.commands) silent(command).action(() => {});
  try {
    await program.parseAsync(shellWords(line).slice(1), { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return error.code;
    throw error;
  }
}

const silent = (command: Command): Command =>
  command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });

/** Finds commands at the start of a line and after a pipe, an operator, `$(`, `then` or `else`. */
const commandsIn = (line: string): readonly string[] =>
  [...line.matchAll(/(?:^|[|&;]\s*|\$\(|then |else )(reprise .*)$/g)].map(([, command = '']) => command);

const writtenByHand = pages().filter(page => !isGenerated(page));

const lines = writtenByHand.flatMap(page =>
  shellBlocksOf(page).flatMap(({ place, text }) =>
    text.split('\n').flatMap(line => commandsIn(line).map(command => ({ place, command }))),
  ),
);

const mentions = writtenByHand.flatMap(page =>
  codeSpansOf(page).filter(({ text }) => text.startsWith('reprise ')),
);

describe('commands in the documentation', () => {
  it('are found', () => {
    expect(lines.length).toBeGreaterThan(20);
    expect(mentions.length).toBeGreaterThan(10);
  });

  it.each(lines)('are accepted at $place: $command', async ({ command }) => {
    expect(await errorOf(command)).toBeUndefined();
  });

  it.each(mentions)('are accepted in the text at $place: $text', async ({ text }) => {
    expect([
      undefined,
      'commander.missingArgument',
      'commander.helpDisplayed',
      'commander.version',
    ]).toContain(await errorOf(text));
  });
});

describe('the check of commands', () => {
  it.each([
    ['reprise fly', 'commander.unknownCommand'],
    ['reprise run a.yaml --fast', 'commander.unknownOption'],
    ['reprise cancel', 'commander.missingArgument'],
    ['reprise list a b', 'commander.excessArguments'],
    ['reprise list --limit many', 'commander.invalidArgument'],
  ])('refuses %s', async (line, code) => {
    expect(await errorOf(line)).toBe(code);
  });

  it('splits words as a shell does', () => {
    expect(shellWords(`reprise signal <run> go '{ "a": 1 }' --x="b c" | head # why`)).toEqual([
      'reprise',
      'signal',
      '<run>',
      'go',
      '{ "a": 1 }',
      '--x=b c',
    ]);
  });
});

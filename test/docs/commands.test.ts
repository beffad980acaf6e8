import type { Command } from 'commander';
import { CommanderError } from 'commander';
import { beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, codeSpansOf, isGenerated, pages } from './documents.ts';
import { shellWords } from './shell-words.ts';

/** What the CLI says against a command line; `undefined` if it would carry it out. */
type Judge = (line: string) => Promise<string | undefined>;

let judge: Judge;

beforeAll(async () => {
  const { declaredProgram } = await import('../../scripts/reference/program.ts');
  judge = line => refusalOf(declaredProgram, line);
});

async function refusalOf(declare: () => Promise<Command>, line: string): Promise<string | undefined> {
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

/** Also behind a pipe, an operator, `$(` or a word of the shell. */
const commandsIn = (line: string): readonly string[] =>
  [...line.matchAll(/(?:^|[|&;]\s*|\$\(|then |else )(reprise .*)$/g)].map(([, command = '']) => command);

const written = pages().filter(page => !isGenerated(page));

const lines = written.flatMap(page =>
  blocksOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ place, text }) =>
      text.split('\n').flatMap(line => commandsIn(line).map(command => ({ place, command }))),
    ),
);

const mentions = written.flatMap(page => codeSpansOf(page).filter(({ text }) => text.startsWith('reprise ')));

describe('commands in the documentation', () => {
  it('are there', () => {
    expect(lines.length).toBeGreaterThan(20);
    expect(mentions.length).toBeGreaterThan(10);
  });

  it.each(lines)('$place: $command', async ({ command }) => {
    expect(await judge(command)).toBeUndefined();
  });

  it.each(mentions)('$place mentions $text', async ({ text }) => {
    expect([
      undefined,
      'commander.missingArgument',
      'commander.helpDisplayed',
      'commander.version',
    ]).toContain(await judge(text));
  });
});

describe('the check itself', () => {
  it.each([
    ['reprise fly', 'commander.unknownCommand'],
    ['reprise run a.yaml --fast', 'commander.unknownOption'],
    ['reprise cancel', 'commander.missingArgument'],
    ['reprise list a b', 'commander.excessArguments'],
    ['reprise list --limit many', 'commander.invalidArgument'],
  ])('refuses %s', async (line, code) => {
    expect(await judge(line)).toBe(code);
  });

  it('reads words as a shell does', () => {
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

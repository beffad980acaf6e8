import type { Landing } from '../git/landing/landing.ts';
import { hintLines } from '../terminal/errors.ts';
import { count } from '../terminal/text.ts';
import { shellWord } from '../terminal/words.ts';
import { safeLine, safeText } from '../view/safe-text.ts';

interface About {
  readonly run: string;
  /** The step or worker. */
  readonly unit: string;
  /** What is landed. */
  readonly branch: string;
  readonly onto: string;
}

/** What became of a landing, for programs. */
export function landingReport(landing: Landing, { run, unit, branch, onto }: About): object {
  const { kind, branch: _, ...rest } = landing;
  const {
    token: __,
    wasAlone: ___,
    ...facts
  } = rest as typeof rest & {
    readonly token?: number;
    readonly wasAlone?: boolean;
  };
  return { ...facts, run, step: unit, branch, onto, outcome: kind };
}

/** The same for people, with what to type next. */
export function landingText(landing: Landing, about: About & { readonly again: string }): string {
  const { unit } = about;
  const onto = safeLine(about.onto);
  switch (landing.kind) {
    case 'landed':
      return [
        `landed ${count(landing.commits.length, 'commit')} of ${unit} on ${onto}, which is at ${landing.commit.slice(0, 10)} now:`,
        ...landing.commits.map(({ commit, subject }) => `  ${commit.slice(0, 10)} ${safeLine(subject)}`),
        `see it: git log -p ${landing.from.slice(0, 10)}..${shellWord(about.onto)}`,
      ].join('\n');
    case 'nothing-to-land':
      return `nothing to land: all of ${unit} is on ${onto} already`;
    case 'verify-failed':
      return [...refusal(landing, about), ...quoted(landing.output)].join('\n');
    case 'conflict':
    case 'lost-the-race':
    case 'fenced':
    case 'main-checkout-in-the-way':
      return refusal(landing, about).join('\n');
  }
}

const refusal = (
  { why, hint }: { readonly why: string; readonly hint: string },
  { unit, onto, again }: About & { readonly again: string },
): readonly string[] => [
  `${unit} was not landed on ${safeLine(onto)}, and nothing was changed: ${safeLine(why)}`,
  ...hintLines(hint),
  `  again: ${again}`,
];

const quoted = (output: string): readonly string[] =>
  safeText(output.trimEnd())
    .split('\n')
    .map(line => `  | ${line}`);

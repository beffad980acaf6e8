import type { Judge, SelectRule } from '../model.ts';
import { compileCommand, compileCommands } from './command.ts';
import { compileText } from './compile/expressions.ts';
import type { StepDefinition } from './schema.ts';
import type { BodySite } from './site.ts';

type Select = NonNullable<StepDefinition['select']>;

/** How the best of several workers is picked. */
export function compileSelect(
  select: Select,
  { shell, workspace }: StepDefinition,
  site: BodySite,
): SelectRule {
  const { gates, rank, judge } = select;
  const path = [...site.path, 'select'];
  const object = (key: string, message: string, hint?: string): void =>
    site.problems.add(site.source, { path: [...path, key], atKey: true, message, hint });
  if (gates === undefined && rank === undefined && judge === undefined) {
    const hint =
      'add `gates` (commands that must pass), `rank` (a command that prints a number) or `judge` (an agent)';
    site.problems.add(site.source, { path, message: '`select` does not say how to pick', hint });
  }
  if (rank !== undefined && judge !== undefined)
    object('judge', '`rank` and `judge` both pick the best copy', 'keep one of them');
  if (workspace === 'none') {
    for (const key of ['gates', 'rank'] as const) {
      if (select[key] === undefined) continue;
      object(key, `\`${key}\` looks at the workspace of a copy, and with \`workspace: none\` there is none`);
    }
  }
  return {
    gates: compileCommands(gates, [...path, 'gates'], site, { shell }),
    ...(rank === undefined ? {} : { rank: compileCommand(rank, [...path, 'rank'], site, { shell }) }),
    ...(judge === undefined ? {} : { judge: compileJudge(judge, site) }),
  };
}

function compileJudge(judge: NonNullable<Select['judge']>, site: BodySite): Judge {
  const { source } = site;
  const path = [...site.path, 'select', 'judge'];
  const isName = typeof judge === 'string';
  const { agent, prompt } = isName ? { agent: judge, prompt: undefined } : judge;
  const text = prompt === undefined ? undefined : compileText(prompt, [...path, 'prompt'], site);
  return {
    agent,
    ...(text ? { prompt: scope => text(site.surroundings(scope)) } : {}),
    position: source.positionOf(source.rangeOf(isName ? path : [...path, 'agent']).start),
  };
}

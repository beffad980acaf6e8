import type { Unit } from '../../git/orders.ts';
import type { StepView } from '../../workflow/model.ts';
import { unitOf } from '../unit.ts';

const longestSubject = 72;

/** The message of the commit that keeps what a step did: `fix:1: Repaired the parser`. */
export function commitMessage({ step, worker }: Unit, summary: string): string {
  const unit = unitOf(step, worker);
  const subject = firstLine(summary) || 'work of the step';
  return `${unit}: ${shortened(subject, Math.max(20, longestSubject - unit.length - 2))}\n`;
}

/** The first line with something on it, without what a terminal or git would take for something else. */
export const firstLine = (text: string): string =>
  text
    .split(/\r?\n/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .map(line => line.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim())
    .find(line => line !== '') ?? '';

const shortened = (text: string, length: number): string => {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : text;
};

export interface VariablesOf {
  readonly runId: string;
  readonly unit: Unit;
  /** Absolute path of where the work is done. */
  readonly cwd: string;
  readonly ports?: { readonly first: number; readonly size: number } | undefined;
  readonly steps: Readonly<Record<string, StepView>>;
}

/** What every command and agent of a step finds in its environment. */
export function workVariables({ runId, unit, cwd, ports, steps }: VariablesOf): Record<string, string> {
  const variables: Record<string, string> = {
    REPRISE_RUN: runId,
    REPRISE_STEP: unit.step,
    REPRISE_WORKSPACE: cwd,
  };
  if (unit.worker !== undefined) variables['REPRISE_WORKER'] = String(unit.worker);
  if (ports) {
    variables['REPRISE_PORT'] = String(ports.first);
    variables['REPRISE_PORTS'] = String(ports.size);
  }
  for (const [id, { artifacts = {} }] of Object.entries(steps)) {
    for (const [name, path] of Object.entries(artifacts)) variables[artifactVariable(id, name)] = path;
  }
  return variables;
}

const artifactVariable = (step: string, name: string): string =>
  `REPRISE_ARTIFACT_${step}_${name}`.toUpperCase().replace(/[^A-Z0-9_]/g, '_');

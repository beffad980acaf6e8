import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { loadAgents } from '../project/agents.ts';
import { type Definition, loadFile } from '../project/definitions.ts';
import type { CommandIo } from '../project/host.ts';
import type { AdhocOptions } from '../project/journal/command-line.ts';
import { type Project, readConfig } from '../project/project.ts';
import { readAll } from './inputs.ts';

interface Place {
  readonly project: Project;
  readonly io: CommandIo;
}

/**
 * Writes a workflow with one agent step where a resume finds it again, and loads it. The prompt is an input of it, so
 * that nothing in the prompt means anything else. Throws USAGE.
 */
export async function adhocDefinition(
  agent: string,
  options: AdhocOptions,
  place: Place,
): Promise<{ readonly definition: Definition; readonly input: { readonly prompt: string } }> {
  const prompt = await promptOf(options, place.io);
  await requireAgent(agent, place);
  const text = workflowText(agent, options);
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const folder = join(place.project.stateDir, 'adhoc');
  const file = join(folder, `${name}.yaml`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  return { definition: await loadFile(file, place), input: { prompt } };
}

async function promptOf({ prompt, promptFile }: AdhocOptions, io: CommandIo): Promise<string> {
  if ((prompt === undefined) === (promptFile === undefined))
    throw new RepriseError('USAGE', '--agent needs either --prompt or --prompt-file', {
      hint: 'for example: reprise run --agent claude --prompt "Fix the failing test."',
    });
  const text = await (promptFile === undefined
    ? prompt === '-'
      ? readAll(io.stdin)
      : prompt
    : readPromptFile(promptFile, io));
  if (text === undefined || text.trim() === '') throw new RepriseError('USAGE', 'the prompt is empty');
  return text;
}

function readPromptFile(file: string, io: CommandIo): Promise<string> | string {
  if (file === '-') return readAll(io.stdin);
  try {
    return readFileSync(resolve(io.cwd, file), 'utf8');
  } catch (cause) {
    throw new RepriseError('USAGE', `--prompt-file ${file} cannot be read`, {
      cause,
      hint: 'check the path; it counts from the current folder',
    });
  }
}

async function requireAgent(agent: string, place: Place): Promise<void> {
  const agents = await loadAgents(place, await readConfig(place.project, place.io));
  if (agents.has(agent)) return;
  const guess = nearest(agent, agents.keys());
  throw new RepriseError('USAGE', `there is no agent ${agent}`, {
    hint: guess
      ? `did you mean ${guess}?`
      : `there are ${[...agents.keys()].join(', ')}; define others under \`agents\` in reprise.yaml`,
  });
}

/** JSON is YAML too, whatever stands in the values. */
function workflowText(agent: string, { concurrency = 1, check = [], permissions }: AdhocOptions): string {
  const step = {
    id: 'work',
    agent,
    prompt: `\${{ inputs.prompt }}`,
    ...(concurrency > 1 ? { concurrency } : {}),
    ...(check.length > 0 ? { checks: check } : {}),
    ...(permissions === undefined ? {} : { permissions }),
  };
  const workflow = { name: agent, inputs: { prompt: { type: 'string', required: true } }, steps: [step] };
  return `${JSON.stringify(workflow, null, 2)}\n`;
}

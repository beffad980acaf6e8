import type { JsonObject, Position } from '../../../core/index.ts';
import { toText } from '../../expression/evaluate.ts';
import type { AgentBody, AgentOutput, Selector, StepPermissions, WorkRules } from '../../model.ts';
import { compileOutputSchema } from '../../output-schema.ts';
import type { StepDefinition } from '../schema.ts';
import { LineIndex, type TextSource } from '../source/problem-list.ts';
import { type BodySite, compileTemplate, compileText } from './expressions.ts';

interface AgentParts {
  readonly agent: string;
  readonly definition: StepDefinition;
  /** Step as written, including keys that failed validation. */
  readonly written: JsonObject;
  readonly work: WorkRules;
  readonly readPrompt: PromptReader | undefined;
}

interface CompiledAgent {
  readonly body: AgentBody;
  /** Content of the prompt's file, if it has one. */
  readonly promptText?: string | undefined;
}

/** Compiles a step with an agent. Returns `undefined` without a valid prompt. */
export function compileAgent(parts: AgentParts, site: BodySite): CompiledAgent | undefined {
  const { agent, definition, written, work } = parts;
  const { source, problems } = site;
  const path = [...site.path, 'agent'];
  const rework = reworkOf(definition, written, site);
  const output = definition.output && compileAgentOutput(definition.output, site);
  const { prompt, max_turns: maxTurns } = definition;
  if (prompt === undefined) {
    if (!Object.hasOwn(written, 'prompt'))
      problems.add(source, { path, message: 'an agent requires a `prompt`', hint: 'describe its task' });
    return undefined;
  }
  const { select, fileText } = compilePrompt(prompt, site, parts.readPrompt);
  const permissions = permissionsOf(definition.permissions);
  return {
    promptText: fileText,
    body: {
      kind: 'agent',
      agent,
      position: source.positionOf(source.rangeOf(path).start),
      prompt: select,
      ...(output ? { output } : {}),
      env: site.environment,
      ...(permissions ? { permissions } : {}),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      rework,
      work,
    },
  };
}

function compileAgentOutput(schema: JsonObject, site: BodySite): AgentOutput | undefined {
  const parse = compileOutput(schema, site);
  return parse && { schema, parse };
}

function permissionsOf(permissions: StepDefinition['permissions']): StepPermissions | undefined {
  if (permissions === undefined) return undefined;
  if (typeof permissions === 'string') return { preset: permissions, allow: [], deny: [] };
  const { preset, allow = [], deny = [] } = permissions;
  return { ...(preset === undefined ? {} : { preset }), allow, deny };
}

const defaultRework = 2;

/** Number of times that the agent may fix failing checks or an invalid output. */
function reworkOf({ on_fail: onFail = 'fail' }: StepDefinition, written: JsonObject, site: BodySite): number {
  if (onFail === 'fail') return 0;
  if (!Object.hasOwn(written, 'checks') && !Object.hasOwn(written, 'output')) {
    site.problems.add(site.source, {
      path: [...site.path, 'on_fail'],
      atKey: true,
      message: '`on_fail` has no effect, because the step has neither `checks` nor `output`',
      hint: 'add `checks: [npm test]`, or remove `on_fail`',
    });
  }
  return onFail === 'rework' ? defaultRework : onFail.rework;
}

interface PromptFile {
  /** Path to show in messages. */
  readonly displayFile: string;
  readonly text: string;
}

/** Reads the file of a prompt, whose path is relative to the workflow file. */
export type PromptReader = (reference: string, fromFile: string) => PromptFile | undefined;

interface CompiledPrompt {
  readonly select: Selector<string>;
  /** Content of the prompt's file, if it has one, for the fingerprint. */
  readonly fileText?: string | undefined;
}

/** Compiles a prompt as a template, whether it is inline or in its own file. */
function compilePrompt(
  prompt: NonNullable<StepDefinition['prompt']>,
  site: BodySite,
  read: PromptReader | undefined,
): CompiledPrompt {
  const path = [...site.path, 'prompt'];
  if (typeof prompt === 'string') {
    const text = compileText(prompt, path, site);
    return { select: scope => text(site.evaluationContext(scope)) };
  }
  const file = read?.(prompt.file, site.source.file);
  const objection = !file
    ? {
        message: `cannot find file \`${prompt.file}\``,
        hint: 'the path is relative to the folder of this file',
      }
    : file.text.trim() === ''
      ? { message: `the file \`${prompt.file}\` is empty` }
      : undefined;
  if (objection) site.problems.add(site.source, { path: [...path, 'file'], ...objection });
  const { faults, value } = compileTemplate(file?.text ?? '', site.visible);
  if (file) site.problems.addText(new PromptSource(file), faults);
  return { select: scope => toText(value(site.evaluationContext(scope))), fileText: file?.text };
}

class PromptSource implements TextSource {
  readonly lines: LineIndex;
  readonly #file: string;

  constructor({ displayFile, text }: PromptFile) {
    this.lines = new LineIndex(text);
    this.#file = displayFile;
  }

  positionOf(offset: number): Position {
    return { file: this.#file, ...this.lines.at(offset) };
  }
}

/** Compiles an `output` into a parser. Reports an unsupported schema. */
export function compileOutput(
  schema: JsonObject,
  { source, problems, path }: BodySite,
): ((output: unknown) => unknown) | undefined {
  const compiled = compileOutputSchema(schema);
  if (compiled.kind === 'parser') return compiled.parse;
  const { reason, hint, path: inner = [], within } = compiled;
  problems.add(source, {
    path: [...path, 'output', ...inner],
    atKey: inner.length === 0 || inner.at(-2) === 'patternProperties',
    ...(within ? { within } : {}),
    message: `\`output\` is not a supported JSON Schema: ${reason}`,
    hint,
  });
  return undefined;
}

import type { JsonObject } from '../../../core/json.ts';
import type { AgentBody, AgentOutput, StepPermissions, WorkRules } from '../../model.ts';
import { compileOutput } from '../output.ts';
import { compilePrompt, type PromptReader } from '../prompt.ts';
import type { StepDefinition } from '../schema.ts';
import type { BodySite } from '../site.ts';

interface AgentParts {
  readonly agent: string;
  readonly definition: StepDefinition;
  /** As written: what was reported for its shape is there all the same. */
  readonly written: JsonObject;
  readonly work: WorkRules;
  readonly readPrompt: PromptReader | undefined;
}

interface CompiledAgent {
  readonly body: AgentBody;
  /** What the prompt's own file holds. */
  readonly promptText?: string | undefined;
}

/** A step that an agent does. */
export function compileAgent(parts: AgentParts, site: BodySite): CompiledAgent | undefined {
  const { agent, definition, written, work } = parts;
  const { source, problems } = site;
  const path = [...site.path, 'agent'];
  const rework = reworkOf(definition, written, site);
  const output = definition.output && compileAgentOutput(definition.output, site);
  const { prompt, max_turns: maxTurns } = definition;
  if (prompt === undefined) {
    if (!Object.hasOwn(written, 'prompt'))
      problems.add(source, { path, message: 'an agent needs a `prompt`', hint: 'say what it is to do' });
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

/** How often an agent is told what was wrong. */
function reworkOf({ on_fail: onFail = 'fail' }: StepDefinition, written: JsonObject, site: BodySite): number {
  if (onFail === 'fail') return 0;
  if (!Object.hasOwn(written, 'checks') && !Object.hasOwn(written, 'output')) {
    site.problems.add(site.source, {
      path: [...site.path, 'on_fail'],
      atKey: true,
      message:
        'there is nothing that the agent could be asked to mend: the step has neither `checks` nor `output`',
      hint: 'add `checks: [npm test]`, or take `on_fail` away',
    });
  }
  return onFail === 'rework' ? defaultRework : onFail.rework;
}

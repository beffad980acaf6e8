import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseAgents, splitFrontMatter } from '../../agents/definitions.ts';
import { decide } from '../../agents/permissions/permissions.ts';
import { loadConfig } from '../../workflow/yaml/config.ts';
import { defaultWorkerSettings } from '../../workflow/yaml/config-workers.ts';
import { loadWorkflow } from '../../workflow/yaml/load.ts';
import {
  configText,
  type InitAgent,
  initAgents,
  otherInitFiles,
  taskText,
  workflowText,
} from './templates.ts';

const agentsFor = (agent: InitAgent) =>
  parseAgents({
    config: null,
    files: otherInitFiles(agent, 'issues').flatMap(({ agent: name, text }) => (name ? [{ name, text }] : [])),
  });

describe.each(initAgents)('agents run by %s', program => {
  const agents = agentsFor(program);

  it('load, and have a description and a prompt', () => {
    expect([...agents.keys()]).toEqual(['dispatch', 'implement', 'review']);
    for (const { description, systemPrompt } of agents.values()) {
      expect(description).toMatch(/\.$/);
      expect(systemPrompt).toContain('## How to end');
    }
    expect(agents.get('dispatch')).toMatchObject({ permissions: 'read-only', maxConcurrency: 1 });
    expect(agents.get('implement')).toMatchObject({
      permissions: 'edit',
      inputs: { findings: { required: false } },
    });
    expect(agents.get('review')).toMatchObject({
      permissions: 'edit',
      inputs: { summary: { required: true } },
    });
  });

  it('hand over to existing agents with the inputs that those declare', () => {
    for (const { name, systemPrompt = '' } of agents.values()) {
      const endings = [...systemPrompt.matchAll(/^<next>([\s\S]*?)<\/next>$/gm)].map(([, next = '']) => next);
      expect(endings.length).toBeGreaterThan(1);
      for (const ending of endings) {
        const next: unknown = parse(ending);
        if (typeof next === 'string') expect(['land', 'sleep']).toContain(next);
        else if (typeof next === 'object' && next !== null && 'agent' in next) {
          const { agent, task, ...context } = next as Record<string, string>;
          const inputs = agents.get(agent ?? '')?.inputs ?? {};
          expect(task !== undefined, 'only the dispatcher names a task').toBe(name === 'dispatch');
          expect(Object.keys(inputs)).toEqual(expect.arrayContaining(Object.keys(context)));
          for (const [input, { required }] of Object.entries(inputs))
            if (required) expect(Object.keys(context)).toContain(input);
        } else expect(next).toEqual({ 'give-up': expect.any(String) });
      }
    }
  });
});

it('allows agents that ask before each command to run the commands in their prompts, and none that write', () => {
  for (const program of ['claude', 'gemini', 'opencode'] as const)
    for (const name of ['implement', 'review']) {
      const { permissions, allow = [], deny = [], systemPrompt = '' } = agentsFor(program).get(name) ?? {};
      const mayRun = (command: string) =>
        decide(
          { agent: name, preset: permissions ?? 'read-only', allow, deny },
          { tool: 'Bash', input: { command }, paths: [], workspace: '/w', resolve: path => path },
        ).kind === 'allow';
      const named = [...systemPrompt.matchAll(/`(git [^`]+)`/g)].map(([, command = '']) => command);
      expect(named).toContain('git diff HEAD');
      expect(named.filter(command => !mayRun(command))).toEqual([]);
      expect(mayRun('git diff HEAD -- src/a.ts')).toBe(true);
      for (const command of [
        'git diff HEAD --output=/tmp/x',
        'git diff --no-index /etc/passwd x',
        'git push',
      ])
        expect(mayRun(command), command).toBe(false);
    }
});

describe('the settings template', () => {
  it('sets only the defaults and the agent', () => {
    expect(loadConfig({ file: 'reprise.yaml', text: configText })).toEqual({
      tasks: { kind: 'folder', folder: 'issues' },
      workers: { ...defaultWorkerSettings, agent: 'implement' },
    });
  });

  it('has valid settings in its comments', () => {
    const text = configText.replace(/^( *)# ( *[a-z_]+:($| .*))$/gm, '$1$2');
    expect(loadConfig({ file: 'reprise.yaml', text })).toMatchObject({
      workers: {
        branch: 'main',
        prCommand: expect.any(String),
        verify: 'npm test',
        resolve: 2,
        remote: 'origin',
      },
      worktrees: { setup: ['npm ci'], include: ['.env'] },
      budget: { costUsd: 5 },
    });
  });
});

it('has an example workflow that loads and calls no agent', () => {
  const { steps } = loadWorkflow({ file: 'example.yaml', text: workflowText });
  expect(steps.map(({ body }) => body.kind)).toEqual(['run', 'run', 'run']);
});

it('has an example task in the state draft, so that no worker takes it', () => {
  const { yaml = '', body } = splitFrontMatter(taskText);
  expect(parse(yaml)).toEqual({ priority: 'P2', state: 'draft' });
  expect(parse(yaml.replace(/^# ([a-z]+: \S+)$/gm, '$1'))).toMatchObject({
    needs: ['another-task'],
    agent: 'implement',
  });
  expect(body).toMatch(/^# \S/);
});

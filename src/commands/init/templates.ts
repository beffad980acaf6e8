import { type AgentTemplate, agentTexts } from './agent-texts.ts';

/** Settings of the programs that can run the agents, by the value of `--agent`. */
const kinds = {
  claude: { settings: 'kind: claude', asksForCommands: true },
  // The sandbox of Codex allows commands that read the repository.
  codex: { settings: 'kind: codex', asksForCommands: false },
  gemini: { settings: 'kind: acp\ncommand: [gemini, --acp]', asksForCommands: true },
  opencode: { settings: 'kind: acp\ncommand: [opencode, acp]', asksForCommands: true },
} as const;

export type InitAgent = keyof typeof kinds;

export const initAgents = Object.keys(kinds) as readonly InitAgent[];

/** Commands that can neither write a file nor read one outside the repository. */
const readingCommands = [
  'git status',
  'git diff HEAD',
  'git diff HEAD -- *',
  'git log --oneline -20',
  'git show HEAD',
];

export const configText = `# yaml-language-server: $schema=./node_modules/reprise/schemas/config.schema.json

# Settings of Reprise for this repository. Lines that are commented out show further options.
# Check this file with: reprise validate

# Tasks for workers, one Markdown file each. Workers read them from the branch, so commit them first.
# Instead of a folder, you can set a command that prints tasks: command: scripts/tasks.sh
tasks:
  folder: issues

workers:
  # Branch to work on and land on. Defaults to main, or else to the branch that is checked out.
  # branch: main

  # Agent for tasks that name none: .reprise/agents/implement.md
  agent: implement

  # How the next task is picked. built-in: by priority. agent: by .reprise/agents/dispatch.md
  dispatch: built-in

  # Where finished work goes. main: it lands on the branch above. branch: it stays on reprise/task/<id>.
  # With pr, that branch is pushed to the remote, and pr_command opens a pull request.
  land: main
  # remote: origin
  # pr_command: gh pr view "$REPRISE_BRANCH" || gh pr create --fill --head "$REPRISE_BRANCH"

  # Command that must pass before work lands. Set it to the tests of this project.
  # verify: npm test

  # Number of times an agent may try to resolve conflicts or fix failed verification before the work is parked.
  # resolve: 2

# Every task is done in a fresh checkout. Set the commands that prepare it and the ignored files to copy into it.
# worktrees:
#   setup: [npm ci]
#   include: [.env]

# Limits for one task.
# runtime:
#   budget: { cost_usd: 5, minutes: 60 }
`;

export const workflowText = `# yaml-language-server: $schema=../../node_modules/reprise/schemas/workflow.schema.json

# A small workflow without an agent. Run it with: reprise run example
name: example
inputs:
  greeting: { default: Hello }
steps:
  # These two steps do not depend on each other, so they run in parallel.
  - id: files
    run: echo "count=$(git ls-files | wc -l | tr -d ' ')" >> "$REPRISE_OUTPUT"
  - id: branch
    run: echo "name=$(git symbolic-ref --short HEAD || echo detached)" >> "$REPRISE_OUTPUT"
  - id: report
    needs: [files, branch]
    env:
      SUMMARY: "\${{ inputs.greeting }}, \${{ steps.branch.outputs.name }} has \${{ steps.files.outputs.count }} files."
    run: echo "summary=$SUMMARY" >> "$REPRISE_OUTPUT"
outputs:
  summary: \${{ steps.report.outputs.summary }}
`;

export const taskText = `---
# P0 is the most urgent, P3 the least.
priority: P2
# draft: no worker takes it. ready: the next free worker takes it. Other values: review, blocked, done.
state: draft
# Tasks that must be done first, by file name without .md:
# needs: [another-task]
# Agent for this task, instead of the one in reprise.yaml:
# agent: implement
---

# Explain in the README how to run the tests

After cloning the repository, a new contributor should find out within a minute how to run the tests.

Done when:

- the README has a section "Tests" with the command and everything that has to be installed first;
- the command works exactly as written.
`;

/** Text of an agent file for the given program. */
function agentText({ settings, looksWithGit, prompt }: AgentTemplate, agent: InitAgent): string {
  const kind = kinds[agent];
  return [
    '---',
    kind.settings,
    settings,
    ...(looksWithGit ? [allowed(kind)] : []),
    '---',
    '',
    prompt,
    '',
  ].join('\n');
}

function allowed({ asksForCommands }: { readonly asksForCommands: boolean }): string {
  const example = '"Bash(npm test)", "Bash(npm run *)"';
  if (!asksForCommands) return `# Commands that it may run outside its sandbox:\n# allow: [${example}]`;
  return [
    `# Commands that it may run. Add those that build and test this project, such as ${example}.`,
    'allow:',
    ...readingCommands.map(command => `  - "Bash(${command})"`),
  ].join('\n');
}

/** A file that `reprise init` creates. */
export interface InitFile {
  /** Path relative to the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
  /** Name of the agent that the file defines. */
  readonly agent?: string | undefined;
  /** Whether the file is an example. An example is not created next to other files, and never overwritten. */
  readonly isExample?: boolean | undefined;
}

export const configInitFile: InitFile = { path: 'reprise.yaml', text: configText };

/** All files except reprise.yaml. Without a folder of tasks, there is no example task. */
export const otherInitFiles = (agent: InitAgent, taskFolder: string | undefined): readonly InitFile[] => [
  ...agentTexts.map(each => ({
    path: `.reprise/agents/${each.name}.md`,
    text: agentText(each, agent),
    agent: each.name,
  })),
  { path: '.reprise/workflows/example.yaml', text: workflowText, isExample: true },
  ...(taskFolder === undefined
    ? []
    : [{ path: `${taskFolder}/example.md`, text: taskText, isExample: true }]),
];

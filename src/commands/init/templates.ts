import { type AgentText, agentTexts } from './agent-texts.ts';

/** How the agents are started that `reprise init` can write, by the word for them on the command line. */
const kinds = {
  claude: { settings: 'kind: claude', asksForCommands: true },
  // Its sandbox lets it look at the repository.
  codex: { settings: 'kind: codex', asksForCommands: false },
  gemini: { settings: 'kind: acp\ncommand: [gemini, --acp]', asksForCommands: true },
  opencode: { settings: 'kind: acp\ncommand: [opencode, acp]', asksForCommands: true },
} as const;

export type InitAgent = keyof typeof kinds;

export const initAgents = Object.keys(kinds) as readonly InitAgent[];

/** Nothing that could be told to write a file, or to read one elsewhere. */
const looking = [
  'git status',
  'git diff HEAD',
  'git diff HEAD -- *',
  'git log --oneline -20',
  'git show HEAD',
];

export const configText = `# yaml-language-server: $schema=./node_modules/reprise/schemas/config.schema.json

# How Reprise works in this repository. What is commented out shows what else can be said here.
# Check it with: reprise validate

# Tasks for workers: one markdown file each. They are read from the branch, so they count once they are committed.
# Instead of a folder, a command may print them: command: scripts/tasks.sh
tasks:
  folder: issues

workers:
  # The branch that is worked on and landed on. Without it: main, or else the one that is checked out.
  # branch: main

  # Who takes tasks that name nobody: .reprise/agents/implement.md
  agent: implement

  # Who picks the next task. built-in: Reprise, by priority. agent: .reprise/agents/dispatch.md
  dispatch: built-in

  # What becomes of finished work. main: it lands on the branch above. branch: it is left on reprise/task/<id>.
  # With pr, that branch is pushed to the remote, and pr_command makes a pull request of it.
  land: main
  # remote: origin
  # pr_command: gh pr create --fill --head "$REPRISE_BRANCH"

  # Must pass on the result before anything lands. Set it to what tests this project.
  # verify: npm test

  # How often an agent is asked to solve the conflicts of one task, before its work is parked on a branch.
  # resolve: 2

# Every task is done in a fresh checkout: what makes it ready, and which ignored files are copied into it.
# worktrees:
#   setup: [npm ci]
#   include: [.env]

# What one task may use up.
# runtime:
#   budget: { cost_usd: 5, minutes: 60 }
`;

export const workflowText = `# yaml-language-server: $schema=../../node_modules/reprise/schemas/workflow.schema.json

# A small workflow that needs no agent. Run it with: reprise run example
name: example
inputs:
  greeting: { default: Hello }
steps:
  # These two do not need each other, so they run at the same time.
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
# draft: nobody takes it. ready: the next free worker does. Also: review, blocked, done.
state: draft
# Tasks that have to be done before, by the names of their files without .md:
# needs: [another-task]
# Who is to do it, instead of the agent that reprise.yaml names:
# agent: implement
---

# Say in the README how to run the tests

Somebody who has just cloned the repository should find out within a minute how to run its tests.

Done when:

- the README has a section "Tests" with the command, and what it needs to be installed;
- the command works as it is written there.
`;

/** The file of an agent, for the program that is to play it. */
function agentText({ settings, looksWithGit, prompt }: AgentText, agent: InitAgent): string {
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
  if (!asksForCommands) return `# What it may run outside of its sandbox:\n# allow: [${example}]`;
  return [
    `# What it may run. Add what builds and tests this project, such as ${example}.`,
    'allow:',
    ...looking.map(command => `  - "Bash(${command})"`),
  ].join('\n');
}

/** A file that `reprise init` makes. */
export interface InitFile {
  /** Relative to the top of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
  /** The agent that it defines. */
  readonly agent?: string | undefined;
  /** Only shows how it is done: not made beside others, and never put back as it was. */
  readonly isExample?: boolean | undefined;
}

export const configInitFile: InitFile = { path: 'reprise.yaml', text: configText };

/** All but the settings. Without a folder for tasks there is none for an example. */
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

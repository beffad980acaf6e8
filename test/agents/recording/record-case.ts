import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ModelScript } from '../../support/fake-model/script.ts';
import { startFakeModel } from '../../support/fake-model/server.ts';
import { claudeEnvironment } from '../support/environment.ts';
import type { InstalledAgents } from '../support/install.ts';
import { wordsOfWorkers } from './dialogues.ts';

const cli = resolve('dist/cli/main.js');

/** Value of `recorded_by` in the case files. */
const recorder = 'npm run record:agents';

export interface AgentRecording {
  /** Path of the project that contains the case. */
  readonly project: string;
  readonly name: string;
  readonly agents: InstalledAgents;
  /** Replies of the model. */
  readonly dialogue: ModelScript;
}

/** Records a case with Claude Code. Throws with the output if that fails. */
export async function recordCase({ project, name, agents, dialogue }: AgentRecording): Promise<void> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-recording-')));
  const model = await startFakeModel(dialogue, wordsOfWorkers);
  try {
    const env = {
      ...claudeEnvironment({ agents, model, home }),
      TMPDIR: home,
      REPRISE_RECORDED_BY: recorder,
    };
    const said = await runCli(['test', name, '--record'], { cwd: project, env });
    const unforeseen = model.requests.find(({ word, conversation: { tools } }) => !word && tools.length > 0);
    if (unforeseen)
      throw new Error(`${name} was recorded with a prompt that no dialogue answers:\n${unforeseen.told}`);
    if (model.outside.length > 0)
      throw new Error(`${name}: the agent tried to reach ${model.outside.join(', ')}`);
    if (said.code !== 0) throw new Error(`${name} was not recorded:\n${said.output}`);
  } finally {
    await model.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs the built CLI asynchronously, because the model runs in this process. */
async function runCli(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
) {
  const child = spawn(process.execPath, [cli, ...args], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      output += text;
    });
  const [code] = await once(child, 'close');
  return { code: code as number | null, output };
}

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

/** What the case files give as `recorded_by`. */
const recorder = 'npm run record:agents';

export interface AgentRecording {
  /** In which the case is. */
  readonly project: string;
  readonly name: string;
  readonly agents: InstalledAgents;
  /** What the model says. */
  readonly dialogue: ModelScript;
}

/** Records a case in which Claude Code works. Throws with what was said if that failed. */
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
      throw new Error(`${name} was recorded with a question that no dialogue has:\n${unforeseen.told}`);
    if (model.outside.length > 0)
      throw new Error(`${name}: the agent wanted to reach ${model.outside.join(', ')}`);
    if (said.code !== 0) throw new Error(`${name} was not recorded:\n${said.output}`);
  } finally {
    await model.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The built CLI, in the background: the model is in this process. */
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

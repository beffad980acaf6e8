import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import { startProcess } from '../process/start.ts';
import { pathInside } from './permissions/rules.ts';
import { realPathOf } from './resolve-path.ts';
import type { ScriptStep } from './scripted/script.ts';
import type { SessionHost, SessionRequest } from './session.ts';

type HandStep = Extract<
  ScriptStep,
  | { write: unknown }
  | { append: unknown }
  | { delete: unknown }
  | { replace: unknown }
  | { run: unknown }
  | { commit: unknown }
>;

/** Who commits where git knows nobody. */
const author = {
  GIT_AUTHOR_NAME: 'Scripted agent',
  GIT_AUTHOR_EMAIL: 'scripted@agent.invalid',
  GIT_COMMITTER_NAME: 'Scripted agent',
  GIT_COMMITTER_EMAIL: 'scripted@agent.invalid',
};

/** What a script changes in the workspace, and nowhere else. */
export class ScriptHands {
  readonly #request: SessionRequest;
  readonly #host: SessionHost;
  readonly #signal: AbortSignal;

  constructor(request: SessionRequest, host: SessionHost, signal: AbortSignal) {
    this.#request = request;
    this.#host = host;
    this.#signal = signal;
  }

  /** The step as a tool that an agent would have used. */
  describe(step: HandStep): { readonly name: string; readonly input: Json } {
    if ('write' in step) return { name: 'Write', input: { file_path: step.write.path } };
    if ('append' in step) return { name: 'Edit', input: { file_path: step.append.path } };
    if ('replace' in step) return { name: 'Edit', input: { file_path: step.replace.path } };
    if ('delete' in step) return { name: 'Bash', input: { command: `rm ${step.delete}` } };
    if ('run' in step) return { name: 'Bash', input: { command: step.run } };
    return { name: 'Bash', input: { command: `git commit -m ${JSON.stringify(step.commit)}` } };
  }

  /** Rejects if it fails; gives what it printed. */
  async use(step: HandStep): Promise<string> {
    if ('run' in step) return this.#run(['sh', '-c', step.run]);
    if ('commit' in step) {
      const git = ['git', '-c', 'gc.auto=0', '-c', 'maintenance.auto=false', '-c', 'commit.gpgsign=false'];
      await this.#run([...git, 'add', '-A']);
      return this.#run([...git, 'commit', '-q', '-m', step.commit]);
    }
    if ('write' in step) await this.#write(step.write.path, step.write.content);
    else if ('append' in step) await appendFile(await this.#folderFor(step.append.path), step.append.content);
    else if ('delete' in step) await rm(this.#inside(step.delete));
    else await this.#replace(step.replace);
    return '';
  }

  /** Ends early when the session is cancelled. */
  sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      if (this.#signal.aborted) return resolve();
      const timer = setTimeout(wake, ms);
      const signal = this.#signal;
      signal.addEventListener('abort', wake);
      function wake() {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  async #write(path: string, content: string): Promise<void> {
    await writeFile(await this.#folderFor(path), content);
  }

  async #replace({ path, from, to }: { path: string; from: string; to: string }): Promise<void> {
    const file = this.#inside(path);
    const before = await readFile(file, 'utf8');
    const at = before.indexOf(from);
    if (at < 0) {
      throw new RepriseError('AGENT_FAILED', `${path} does not contain ${JSON.stringify(from)}`, {
        hint: 'change the script, or the file that it expects',
      });
    }
    await writeFile(file, before.slice(0, at) + to + before.slice(at + from.length));
  }

  async #folderFor(path: string): Promise<string> {
    const file = this.#inside(path);
    await mkdir(dirname(file), { recursive: true });
    return file;
  }

  #inside(path: string): string {
    const { cwd } = this.#request;
    const file = realPathOf(path, cwd);
    if (pathInside(realPathOf(cwd, '/'), file)) return file;
    throw new RepriseError('PERMISSION_DENIED', `${path} is not inside the workspace`, {
      hint: 'a script may only touch files of its workspace: write a relative path',
    });
  }

  async #run(argv: readonly string[]): Promise<string> {
    const { inheritEnv, marker, graceMs, onProcess } = this.#host;
    const { agent, cwd } = this.#request;
    const env = { ...author, ...inheritEnv, ...agent.env, ...this.#request.env };
    const running = startProcess({ argv, cwd, env, marker, logFile: this.#host.logFile });
    let onAbort = () => {};
    const aborted = new Promise<void>(resolve => {
      onAbort = resolve;
    });
    this.#signal.addEventListener('abort', onAbort);
    try {
      if (running.identity) await onProcess?.call(this.#host, running.identity);
      if (!this.#signal.aborted) await Promise.race([running.ended, aborted]);
    } finally {
      this.#signal.removeEventListener('abort', onAbort);
      const { survived } = await running.stop({ graceMs });
      if (survived.length > 0) this.#host.onSurvived?.(survived);
    }
    const end = await running.ended;
    if (end.kind === 'exited' && end.exitCode === 0) return end.tail;
    const how = end.kind === 'exited' ? `exited with code ${end.exitCode}` : 'did not run to its end';
    throw new RepriseError('AGENT_FAILED', `\`${argv.slice(-1)[0]}\` ${how}\n${end.tail}`.trim(), {
      hint: 'change the script, or what the command expects',
    });
  }
}

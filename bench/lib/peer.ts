import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inChild } from './child.ts';

const folder = fileURLToPath(new URL('..', import.meta.url));

/** Installs LangGraph if it is missing, and tries it. Returns the reason if it cannot be compared. */
export function preparePeer(): { readonly missing?: string | undefined } {
  if (!existsSync(new URL('../node_modules/@langchain/langgraph', import.meta.url))) {
    const { status, stderr } = spawnSync('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund'], {
      encoding: 'utf8',
    });
    if (status !== 0) return { missing: `LangGraph could not be installed: ${lastLine(stderr)}` };
  }
  try {
    inChild('langgraph', 'sequence-tasks', 2);
    return {};
  } catch (thrown) {
    return { missing: `LangGraph could not be run: ${lastLine(String(thrown))}` };
  }
}

const lastLine = (text: string) => text.trim().split('\n').at(-1);

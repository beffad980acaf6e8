import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileInto } from '../mutations/copy.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Patch {
  readonly name: string;
  readonly file: string;
  readonly text: string;
}

/** Applies a patch to the source of a copy and compiles the changed files. Returns a function that reverts it. */
export function plant(copy: string, { name, file, text }: Patch): () => void {
  const tree = join(copy, 'source');
  if (!existsSync(tree)) {
    mkdirSync(tree);
    cpSync(join(root, 'src'), join(tree, 'src'), { recursive: true });
  }
  const apply = (options: readonly string[]) => {
    try {
      execFileSync('git', ['apply', '--whitespace=nowarn', ...options, file], { cwd: tree, stdio: 'pipe' });
    } catch (error) {
      const said = error instanceof Error && 'stderr' in error ? error.stderr : error;
      throw new Error(`the patch ${name} does not apply:\n${said}`);
    }
  };
  const changed = [...text.matchAll(/^\+\+\+ b\/src\/(\S+\.tsx?)$/gm)].map(([, path = '']) => path);
  const compileAll = () => {
    for (const path of changed)
      compileInto({
        text: readFileSync(join(tree, 'src', path), 'utf8'),
        file: path,
        dist: join(copy, 'dist'),
      });
  };
  apply([]);
  compileAll();
  return () => {
    apply(['--reverse']);
    compileAll();
  };
}

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileInto } from '../mutations/copy.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Applies a patch to the source of a copy, and compiles what it changes. Gives the function that mends it. */
export function plant(copy, { name, file, text }) {
  const tree = join(copy, 'source');
  if (!existsSync(tree)) {
    mkdirSync(tree);
    cpSync(join(root, 'src'), join(tree, 'src'), { recursive: true });
  }
  const apply = options => {
    try {
      execFileSync('git', ['apply', '--whitespace=nowarn', ...options, file], { cwd: tree, stdio: 'pipe' });
    } catch (error) {
      throw new Error(`the patch ${name} does not apply:\n${error.stderr}`);
    }
  };
  const changed = [...text.matchAll(/^\+\+\+ b\/src\/(\S+\.tsx?)$/gm)].map(([, path]) => path);
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

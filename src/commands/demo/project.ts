import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The workflow that the demo runs: three steps at once, one of which fails at first, then two after them. */
const release = `name: release
steps:
  - id: lint
    run: |
      echo lint >> "$DEMO_MARKS"
      sleep 1
      echo "2 files, no complaints"
  - id: test
    retry: { attempts: 3, backoff: 1s }
    run: |
      echo test >> "$DEMO_MARKS"
      if [ "$(grep -c '^test$' "$DEMO_MARKS")" -eq 1 ]; then
        echo "connection refused" >&2
        exit 1
      fi
      echo "3 tests passed"
  - id: notes
    run: |
      echo notes >> "$DEMO_MARKS"
      git log --format='- %s' > NOTES.md
      sleep 1
      echo "commits=$(git rev-list --count HEAD)" >> "$REPRISE_OUTPUT"
  - id: package
    needs: [lint, test, notes]
    run: |
      echo package >> "$DEMO_MARKS"
      sleep 2
      git archive --format=tar -o package.tar HEAD
      echo '{"file": "package.tar"}' > "$REPRISE_OUTPUT"
  - id: tag
    needs: [package, notes]
    env: { COMMITS: "\${{ steps.notes.outputs.commits }}" }
    run: |
      echo tag >> "$DEMO_MARKS"
      git tag -a v1.0.0 -m "$COMMITS commits"
outputs:
  package: \${{ steps.package.outputs.file }}
  commits: \${{ steps.notes.outputs.commits }}
`;

const files = {
  'README.md': '# A small project\n',
  'hello.txt': 'Hello, world!\n',
  '.gitignore': 'NOTES.md\npackage.tar\n',
  '.reprise/workflows/release.yaml': release,
};

/** Makes a real repository with two commits and the workflow in it. */
export function makeDemoProject(folder: string): void {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: folder, env: { ...process.env, ...identity }, stdio: 'pipe' });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', identity.GIT_AUTHOR_NAME);
  git('config', 'user.email', identity.GIT_AUTHOR_EMAIL);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  git('add', 'README.md', '.gitignore');
  git('commit', '--quiet', '-m', 'Begin');
  git('add', '.');
  git('commit', '--quiet', '-m', 'Say hello, and say how to release');
}

const identity = {
  GIT_AUTHOR_NAME: 'Demo',
  GIT_AUTHOR_EMAIL: 'demo@example.com',
  GIT_COMMITTER_NAME: 'Demo',
  GIT_COMMITTER_EMAIL: 'demo@example.com',
};

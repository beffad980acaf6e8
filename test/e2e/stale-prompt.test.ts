import { expect, it } from 'vitest';
import { createProject } from './run-inline.ts';

const caseWith = (prompt: string) => `
[run]
args = ["fix"]

[files]
"reprise.yaml" = '''
agents:
  fixer: { kind: scripted, script: [{ say: Fixed. }] }
'''
".reprise/workflows/fix.yaml" = '''
name: fix
steps:
  - id: fix
    agent: fixer
    prompt: |
      Fix the typo.
${prompt.replace(/^/gm, '      ')}
'''
`;

const file = 'cases/one/one.toml';

it('a case fails if the prompt differs from the recorded one, and shows the difference', async () => {
  const { run, write } = createProject({ files: { [file]: caseWith('Change nothing else.') } });
  expect((await run(['test', '--record'])).code).toBe(0);
  write({ [file]: caseWith('Change nothing else,\nand add a test.') });
  const { code, stdout } = await run(['test']);
  expect(code).toBe(5);
  expect(
    stdout.replaceAll(/\d+(\.\d+)?(ms|s)\b/g, '<time>').replaceAll(/ +(?=<time>)/g, ' '),
  ).toMatchInlineSnapshot(`
    "✗ one <time>  the prompt of fixer for run.fix has changed since it was record…

    ✗ one
      stale: the prompt of fixer for run.fix has changed since it was recorded
        at cases/one/sessions/fixer.run.fix.0.jsonl
        @@ -1,2 +1,3 @@
         Fix the typo.
        -Change nothing else.
        +Change nothing else,
        +and add a test.
        hint: record it again: reprise test one --record

    1 failed in <time>
    "
  `);
});

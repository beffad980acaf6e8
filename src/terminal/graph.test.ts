import { describe, expect, it } from 'vitest';
import { approve, maybe, shell, step, workflow } from '../workflow/builder/index.ts';
import { formatGraph } from './graph.ts';
import { formatMermaid } from './mermaid.ts';
import { displayWidth } from './text.ts';

const pack = shell('pack', { run: 'npm pack' });
const push = shell('push', { after: { pack }, run: 'npm publish', retry: 3 });
const release = workflow('publish', { steps: [pack, push] });

const plan = step('plan', { run: () => ['a'] });
const code = shell('code', { after: { plan }, run: 'make' });
const docs = shell('docs', { after: { plan }, run: 'make docs', optional: true });
const out = step('release', { after: { code }, uses: release });
const lint = step('lint', { after: { code }, if: () => true, run: () => 0 });
const ok = approve('ok', { after: { out, lint, docs: maybe(docs) }, message: 'Land it?' });
const end = shell('end', { after: { ok }, run: 'true' });
const fix = workflow('fix', {
  steps: [plan, code, docs, out, lint, ok, end],
  description: 'Fixes an issue.',
}).model;

const statuses = new Map([
  ['plan', 'completed'],
  ['code', 'failed'],
  ['release/pack', 'cancelled'],
  ['release', 'cancelled'],
  ['docs', 'running'],
  ['ok', 'waiting'],
]);

describe('the graph as text', () => {
  it('lists layers, with the steps of a child workflow below the step that uses it', () => {
    expect(formatGraph(fix, { color: false })).toMatchInlineSnapshot(`
      "fix: 7 steps
      Fixes an issue.
       1 ─── plan         function
       2 ─┬─ code         shell                     ← plan
          └─ docs         shell · optional          ← plan
       3 ─┬─ release      uses publish              ← code
          │   1 ─── pack  shell
          │   2 ─── push  shell · up to 3 attempts  ← pack
          └─ lint         function · conditional    ← code
       4 ─── ok           approval                  ⇇ release, lint, maybe docs
       5 ─── end          shell                     ← ok
      "
    `);
  });

  it('shows the status of steps', () => {
    expect(formatGraph(fix, { color: false, statuses })).toMatchInlineSnapshot(`
      "fix: 7 steps
      Fixes an issue.
       1 ─── ✓ plan         function
       2 ─┬─ ✗ code         shell                     ← plan
          └─ ● docs         shell · optional          ← plan
       3 ─┬─ ■ release      uses publish              ← code
          │   1 ─── ■ pack  shell
          │   2 ─── · push  shell · up to 3 attempts  ← pack
          └─ · lint         function · conditional    ← code
       4 ─── ◔ ok           approval                  ⇇ release, lint, maybe docs
       5 ─── · end          shell                     ← ok
      "
    `);
    expect(formatGraph(fix, { color: true, statuses })).toContain('\u001B[31m✗ code\u001B[39m');
  });

  it('can be drawn in ASCII and fits narrow terminals', () => {
    const text = formatGraph(fix, { color: false, statuses, unicode: false, columns: 50 });
    expect(text).toMatchInlineSnapshot(`
      "fix: 7 steps
      Fixes an issue.
       1 --- v plan         function
       2 -+- x code         shell           <- plan
          \`- * docs         shell - opt...  <- plan
       3 -+- # release      uses publish    <- code
          |   1 --- # pack  shell
          |   2 --- . push  shell - up...   <- pack
          \`- . lint         function -...   <- code
       4 --- ? ok           approval        <= releas...
       5 --- . end          shell           <- ok
      "
    `);
    expect(text).toMatch(/^[\n\u0020-\u007E]*$/);
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(50);
  });

  it('shortens a list of two hundred dependencies', () => {
    const many = Array.from({ length: 200 }, (_, index) => step(`s${index}`, { run: () => 0 }));
    const join = step('join', { after: Object.fromEntries(many.map(each => [each.id, each])), run: () => 0 });
    const lines = formatGraph(workflow('wide', { steps: [...many, join] }).model, { color: false }).split(
      '\n',
    );
    expect(lines).toHaveLength(203);
    expect(lines.slice(-4)).toMatchInlineSnapshot(`
      [
        "    ├─ s198  function",
        "    └─ s199  function",
        " 2 ─── join  function  ⇇ s0, s1, s2, s3, s4, s5 and 194 more",
        "",
      ]
    `);
  });
});

describe('the graph for Mermaid', () => {
  it('has a node for each step, a subgraph for each child workflow and a dotted arrow for a tolerant dependency', () => {
    expect(formatMermaid(fix)).toMatchInlineSnapshot(`
      "flowchart TD
        s0["plan"]
        s1["code"]
        s2["docs<br/>optional"]
        subgraph s3["release<br/>uses publish"]
          s4["pack"]
          s5["push<br/>up to 3 attempts"]
          s4 --> s5
        end
        s6["lint<br/>conditional"]
        s7{{"ok"}}
        s8["end"]
        s0 --> s1
        s0 --> s2
        s1 --> s3
        s1 --> s6
        s3 --> s7
        s6 --> s7
        s2 -.-> s7
        s7 --> s8
      "
    `);
  });

  it('has a class for each status', () => {
    expect(formatMermaid(workflow('w', { steps: [plan, code] }).model, { statuses })).toMatchInlineSnapshot(`
      "flowchart TD
        s0["plan"]
        s1["code"]
        s0 --> s1
        classDef completed fill:#dafbe1,stroke:#1a7f37,color:#24292f
        class s0 completed
        classDef failed fill:#ffebe9,stroke:#cf222e,color:#24292f
        class s1 failed
      "
    `);
  });

  it('escapes the syntax of Mermaid in names', () => {
    const [first] = fix.steps;
    const odd = { ...fix, steps: first ? [{ ...first, id: '"]; click x "javascript:<b>#\u001B[2J\n' }] : [] };
    expect(formatMermaid(odd)).toMatchInlineSnapshot(`
      "flowchart TD
        s0["#34;#93;; click x #34;javascript:#60;b#62;#35;"]
      "
    `);
  });
});

import { appendFileSync } from 'node:fs';
import { z } from 'zod';
import { parseAgents } from '../../src/agents/definitions.ts';
import {
  type After,
  approve,
  maybe,
  type Outputs,
  shell,
  step,
  workflow,
} from '../../src/workflow/builder/index.ts';
import type { StepContext, WorkflowModel } from '../../src/workflow/model.ts';
import { loadWorkflow } from '../../src/workflow/yaml/load.ts';

/** Resolves when the history of the run contains a failed step. */
let failureSeen = withResolvers();

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>(resolved => {
    resolve = resolved;
  });
  return { promise, resolve };
}

/** Reports that the history of the run contains a failed step. */
export const noteFailure = () => failureSeen.resolve();

/** Resets the failure for the next simulated process, which has not seen one. */
export const forgetFailure = () => {
  failureSeen = withResolvers();
};

const turn = () => new Promise(resolve => setImmediate(resolve));

/** Leaves a mark outside the store each time an attempt of the step starts. */
const mark = (ctx: Pick<StepContext, 'step' | 'attempt'>) =>
  appendFileSync(process.env['CRASH_MARKS'] ?? '', `${ctx.step}#${ctx.attempt}\n`);

const work = <A extends After, R>(id: string, after: A, result: (outputs: Outputs<A>) => R) =>
  step(id, {
    after,
    run: async (outputs, ctx) => {
      mark(ctx);
      await turn();
      return result(outputs);
    },
  });

const named = (id: string, after: After = {}) => work(id, after, () => id);

const failing = (id: string) =>
  step(id, {
    run: async (_, ctx) => {
      mark(ctx);
      await turn();
      throw new Error(`${id} fails`);
    },
  });

function diamond() {
  const a = work('a', {}, () => 1);
  const b = work('b', { a }, ({ a }) => a + 1);
  const c = work('c', { a }, ({ a }) => a + 2);
  const d = work('d', { b, c }, outputs => outputs);
  return workflow('diamond', { steps: [a, b, c, d] });
}

function retry() {
  const first = named('first');
  const flaky = step('flaky', {
    after: { first },
    retry: { attempts: 3, backoff: 2 },
    run: (_, ctx) => {
      mark(ctx);
      if (ctx.attempt < 3) throw new Error('not yet');
      return ctx.attempt;
    },
  });
  return workflow('retry', { steps: [first, flaky, named('last', { flaky })] });
}

function sleep() {
  const sleeper = step('sleeper', {
    run: async (_, ctx) => {
      mark(ctx);
      await ctx.sleep(3);
      await ctx.sleep('2ms');
      return 'slept';
    },
  });
  return workflow('sleep', {
    steps: [sleeper, named('beside'), work('last', { sleeper }, ({ sleeper }) => sleeper)],
  });
}

function approval() {
  const before = named('before');
  const gate = approve('gate', { after: { before }, message: 'continue?' });
  return workflow('approval', { steps: [before, gate, work('after', { gate }, ({ gate }) => gate.choice)] });
}

function signal() {
  const before = named('before');
  const waits = step('waits', {
    after: { before },
    run: async (_, ctx) => {
      mark(ctx);
      return [await ctx.waitForSignal('go'), await ctx.waitForSignal('go')];
    },
  });
  return workflow('signal', { steps: [before, waits, work('after', { waits }, ({ waits }) => waits)] });
}

function child() {
  const inner = workflow('inner', { steps: [named('x'), named('y')] });
  const grand = step('grand', { uses: inner });
  const middle = workflow('middle', { steps: [grand, work('z', { grand }, ({ grand }) => grand)] });
  const outer = step('outer', { uses: middle });
  return workflow('child', {
    steps: [named('before'), outer, work('after', { outer }, ({ outer }) => outer)],
  });
}

function fanOut() {
  const input = z.object({ n: z.number() });
  const square = step('square', {
    input,
    run: async (_, ctx) => {
      mark(ctx);
      await turn();
      return ctx.input.n ** 2;
    },
  });
  const next = step('next', {
    after: { square },
    input,
    run: ({ square }, ctx) => `${ctx.input.n}:${square}`,
  });
  const one = workflow('one', { input, steps: [square, next], output: { next } });
  const uses = [1, 2, 3, 4].map(n => step(`use${n}`, { uses: one, with: () => ({ n }) }));
  const after = Object.fromEntries(uses.map(use => [use.id, use]));
  return workflow('fan-out', { steps: [...uses, work('all', after, outputs => outputs)] });
}

/** Steps that end only after the failure is in the history, so that a crash cannot change which of them ended first. */
function failFast() {
  const quick = named('quick');
  const held = step('held', {
    after: { quick },
    run: (_, ctx) => {
      mark(ctx);
      return new Promise((_, reject) =>
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
      );
    },
  });
  const bad = step('bad', {
    after: { quick },
    run: async (_, ctx) => {
      mark(ctx);
      await turn();
      throw new Error('bad');
    },
  });
  return workflow('fail-fast', { steps: [quick, held, bad, named('later', { held })] });
}

function finishRunning() {
  const running = step('running', {
    run: async (_, ctx) => {
      mark(ctx);
      await failureSeen.promise;
      return 'finished';
    },
  });
  const later = named('later', { running });
  const tidy = work('tidy', { running: maybe(running) }, ({ running }) => running);
  return workflow('finish-running', {
    steps: [failing('bad'), running, later, tidy],
    onFailure: 'finish-running',
  });
}

function carryOn() {
  const bad = failing('bad');
  const good = named('good');
  const steps = [
    bad,
    good,
    named('skipped', { bad }),
    named('next', { good }),
    named('tidy', { bad: maybe(bad) }),
  ];
  return workflow('continue', { steps, onFailure: 'continue' });
}

/** Each script leaves a child running in another process group. */
const script = (id: string, rest = '') =>
  shell(id, {
    run: `echo "$REPRISE_STEP#$REPRISE_ATTEMPT" >> "$CRASH_MARKS"
setsid sleep 30 > /dev/null 2>&1 &
sleep 0.02
${rest}
echo "name=$REPRISE_STEP" >> "$REPRISE_OUTPUT"`,
  });

function scripts() {
  const a = script('a');
  const b = script('b');
  const last = shell('last', {
    after: { a, b },
    env: ({ a, b }) => ({ A: String(a['name']), B: String(b['name']) }),
    run: 'echo "both=$A$B" >> "$REPRISE_OUTPUT"',
  });
  return workflow('shell', { steps: [a, b, last] });
}

const markWorker = 'echo "$REPRISE_STEP:$REPRISE_WORKER#$REPRISE_ATTEMPT" >> "$CRASH_MARKS"';

const yaml = (name: string, text: string) => ({ model: loadWorkflow({ file: `/${name}.yaml`, text }) });

const workers = yaml(
  'workers',
  `name: workers
steps:
  - id: each
    strategy: { matrix: { n: [3, 1, 2] }, max-parallel: 2 }
    workspace: none
    run: |
      ${markWorker}
      echo "n=\${{ matrix.n }}" >> "$REPRISE_OUTPUT"
  - id: all
    needs: [each]
    run: echo "second=\${{ steps.each.outputs.worker_results[1].output.n }}" >> "$REPRISE_OUTPUT"
`,
);

/** Copies of an agent, each in its own workspace. The selected one lands. */
const agentSteps = yaml(
  'agents',
  `name: agents
steps:
  - id: fix
    agent: coder
    concurrency: 2
    prompt: Fix it.
    checks: ["test -s fixed.txt"]
    select: { gates: ['grep -q "worker 1" fixed.txt'] }
  - id: land
    needs: [fix]
    land: main
    verify: test -s fixed.txt
`,
);

const edit = `${markWorker}; echo "worker $REPRISE_WORKER" > fixed.txt`;

export const agents = parseAgents({
  config: {
    coder: { kind: 'scripted', permissions: 'full', script: [{ run: edit }, { say: 'Fixed.' }] },
  },
  files: [],
});

export const workflows: Readonly<Record<string, { readonly model: WorkflowModel }>> = {
  diamond: diamond(),
  retry: retry(),
  sleep: sleep(),
  approval: approval(),
  signal: signal(),
  child: child(),
  'fan-out': fanOut(),
  'fail-fast': failFast(),
  'finish-running': finishRunning(),
  continue: carryOn(),
  shell: scripts(),
  workers,
  agents: agentSteps,
};

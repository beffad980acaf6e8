import type { FailurePolicy, FunctionBody, StepModel, WorkflowModel } from '../../src/workflow/model.ts';

/**
 * The definitions behind the recorded histories. Fingerprints are written out, so that no change of how they are
 * computed, and no change of formatting, can make an old history look as if its workflow had changed.
 */

type Options = Partial<Pick<StepModel, 'condition' | 'optional' | 'retry' | 'timeout' | 'fanOut' | 'fingerprint'>> & {
  readonly needs?: readonly (string | { readonly id: string; readonly tolerant: boolean })[];
};

const define = (id: string, body: StepModel['body'], { needs = [], ...options }: Options = {}): StepModel => ({
  id,
  needs: needs.map(need => (typeof need === 'string' ? { id: need, tolerant: false } : need)),
  optional: false,
  timeout: {},
  fingerprint: `${id}-1`,
  ...options,
  body,
});

const call = (id: string, run: FunctionBody['run'], options?: Options): StepModel => define(id, { kind: 'function', run }, options);

const sh = (id: string, script: string, options?: Options): StepModel =>
  define(id, { kind: 'run', command: () => ({ script, shell: 'bash', env: {} }) }, options);

const gate = (id: string, message: string, options?: Options): StepModel =>
  define(id, { kind: 'approve', request: () => ({ message, choices: ['approve', 'later', 'reject'] }) }, options);

const uses = (id: string, workflow: WorkflowModel, options?: Options & { readonly n?: number }): StepModel =>
  define(id, { kind: 'uses', workflow, input: () => ({ n: options?.n ?? 0 }) }, options);

const command = (text: string) => ({ text, command: () => ({ script: text, shell: 'bash' as const, env: {} }) });

const agent = (id: string, name: string, options?: Options): StepModel =>
  define(
    id,
    {
      kind: 'agent',
      agent: name,
      prompt: () => 'Mend it.',
      env: () => ({}),
      rework: 0,
      work: {
        workspace: { kind: 'worktree', readonly: false, base: { kind: 'run' } },
        setup: [],
        teardown: [],
        checks: [command('test -s mended.txt')],
        artifacts: [{ name: 'mended', path: 'mended.txt' }],
      },
    },
    options,
  );

const land = (id: string, from: string): StepModel =>
  define(id, { kind: 'land', onto: () => 'main', from }, { needs: [from] });

const flow = (name: string, steps: readonly StepModel[], onFailure: FailurePolicy = 'fail-fast'): WorkflowModel => ({
  name,
  input: { parse: raw => (raw ?? {}) as never, fields: [] },
  steps,
  onFailure,
});

/** Without a stack: it would name the folders of whoever made the recording. */
function failure(message: string): Error {
  const error = new TypeError(message);
  Object.defineProperty(error, 'stack', { value: undefined });
  return error;
}

const fails = (message: string) => (): never => {
  throw failure(message);
};

const failsAtFirst: FunctionBody['run'] = (_, { attempt }) => {
  if (attempt === 1) throw failure('not yet');
  return attempt;
};

const untilCancelled: FunctionBody['run'] = (_, { signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

const twice = { attempts: 2, backoff: { initialMs: 1, factor: 2, maxMs: 10 } };
const maybe = (id: string) => ({ id, tolerant: true });
const value = (id: string) => call(id, () => id);

const inner = flow('inner', [call('twice', ({ inputs }) => (inputs as { n: number }).n * 2), call('next', ({ steps }) => steps['twice']?.outputs ?? null, { needs: ['twice'] })]);
const flakyInner = flow('flaky-inner', [value('first'), call('second', failsAtFirst, { needs: ['first'] })]);

/** By the name of the recording. */
export const workflows: Readonly<Record<string, WorkflowModel>> = {
  diamond: flow('diamond', [
    call('a', () => 1),
    call('b', () => ({ list: [1, 'two', null], ok: true }), { needs: ['a'] }),
    call('c', () => {}, { needs: ['a'] }),
    call('d', ({ steps }) => [steps['b']?.outputs ?? null, steps['c']?.outputs ?? null], { needs: ['b', 'c'] }),
  ]),
  retried: flow('retried', [call('flaky', failsAtFirst, { retry: twice })]),
  slept: flow('slept', [call('sleeper', async (_, ctx) => { await ctx.sleep(2); await ctx.sleep('1ms'); return 'slept'; })]),
  waiting: flow('waiting', [gate('gate', 'Go on?'), call('listens', (_, ctx) => ctx.waitForSignal('go'))]),
  approved: flow('approved', [value('before'), gate('gate', 'Ship it?', { needs: ['before'] }), call('ship', ({ steps }) => steps['gate']?.outputs ?? null, { needs: ['gate'] })]),
  rejected: flow('rejected', [gate('gate', 'Ship it?'), call('ship', () => 'shipped', { needs: ['gate'] })]),
  signalled: flow('signalled', [call('listens', async (_, ctx) => [await ctx.waitForSignal('go'), await ctx.waitForSignal('go')])]),
  'failed-fast': flow('failed-fast', [value('first'), call('held', untilCancelled, { needs: ['first'] }), call('bad', fails('boom'), { needs: ['first'] }), call('later', () => 0, { needs: ['held'] })]),
  'finished-running': flow('finished-running', [call('bad', fails('boom')), call('steady', async (_, ctx) => { await ctx.sleep(20); return 'done'; }), call('later', () => 0, { needs: ['steady'] })], 'finish-running'),
  continued: flow(
    'continued',
    [
      call('bad', fails('boom')),
      call('risky', fails('no matter'), { optional: true }),
      call('off', () => 0, { condition: () => false }),
      call('unclear', () => 0, { condition: fails('cannot say'), optional: true }),
      call('dependant', () => 0, { needs: ['bad'] }),
      call('tidy', ({ status }) => status, { needs: [maybe('bad'), maybe('risky'), maybe('off')] }),
    ],
    'continue',
  ),
  cancelled: flow('cancelled', [value('first'), call('held', untilCancelled, { needs: ['first'] }), call('later', () => 0, { needs: ['held'] })]),
  'over-budget': { ...flow('over-budget', [call('held', untilCancelled)]), budgetMs: 5 },
  'timed-out': flow('timed-out', [call('slow', untilCancelled, { timeout: { attemptMs: 3 }, retry: twice }), gate('gate', 'Anybody?', { timeout: { stepMs: 3 } })], 'continue'),
  child: flow('child', [uses('one', inner, { n: 1 }), uses('two', inner, { n: 2 }), call('sum', ({ steps }) => [steps['one']?.outputs ?? null, steps['two']?.outputs ?? null], { needs: ['one', 'two'] })]),
  'child-retried': flow('child-retried', [uses('outer', flakyInner, { retry: twice })]),
  'child-resumed': flow('child-resumed', [uses('outer', flakyInner), call('after', () => 'after', { needs: ['outer'] })]),
  interrupted: flow('interrupted', [value('first'), call('second', () => 'second', { needs: ['first'] }), call('beside', () => 'beside')]),
  changed: flow('changed', [value('kept'), call('changes', () => 'new', { needs: ['kept'], fingerprint: 'changes-2' }), call('added', () => 'added', { needs: ['changes'] })]),
  forked: flow('forked', [value('a'), call('b', () => 'b', { needs: ['a'] }), uses('outer', inner, { n: 3 })]),
  'fanned-out': flow(
    'fanned-out',
    [
      call('each', ({ matrix }, ctx) => (matrix?.['n'] === 2 ? fails('boom')() : [ctx.worker ?? null, matrix ?? null]), {
        fanOut: { kind: 'matrix', items: () => [{ n: 1 }, { n: 2 }, { n: 3 }], maxParallel: 2, onFailure: 'continue' },
        optional: true,
      }),
      call('all', ({ steps }) => steps['each']?.outputs ?? null, { needs: [maybe('each')] }),
    ],
    'continue',
  ),
  pipeline: flow('pipeline', [
    agent('fix', 'coder', {
      fanOut: { kind: 'concurrency', items: () => [{}, {}], onFailure: 'continue', select: { gates: [command('grep -q 1 mended.txt')] } },
    }),
    land('land', 'fix'),
  ]),
  paused: flow('paused', [agent('fix', 'tired')]),
  shell: flow('shell', [sh('good', 'echo "answer=42" >> "$REPRISE_OUTPUT"'), sh('bad', 'echo sorry >&2; exit 3', { needs: ['good'] })]),
};

/**
 * What a definition was when its run started, where that was something else. For whoever records.
 * @public
 */
export const earlier: Readonly<Record<string, WorkflowModel>> = {
  changed: flow('changed', [value('kept'), call('changes', () => 'old', { needs: ['kept'] }), call('removed', () => 'removed', { needs: ['changes'] })]),
};

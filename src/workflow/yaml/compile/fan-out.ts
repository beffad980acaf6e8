import type { JsonObject } from '../../../core/json.ts';
import type { FailurePolicy, FanOut } from '../../model.ts';
import { compileMatrix } from '../matrix.ts';
import type { StepDefinition, StepKind } from '../schema.ts';
import { compileSelect } from '../select.ts';
import { type BodySite, withoutMatrix } from '../site.ts';

interface FanOutParts {
  readonly kind: StepKind;
  readonly definition: StepDefinition;
  readonly written: JsonObject;
}

/** Every copy is in the history, and a mistyped number must not fill the memory. */
const mostCopies = 10_000;

/** What makes many workers of one step; `undefined` for an ordinary one. */
export function compileFanOut(parts: FanOutParts, whole: BodySite): FanOut | undefined {
  const { definition } = parts;
  const site = withoutMatrix(whole, 'this is decided once, for all copies of the step');
  const { concurrency, strategy, select: selection } = definition;
  checkKeys(parts, site);
  const select = selection && compileSelect(selection, definition, site);
  const shared = {
    ...(strategy?.['max-parallel'] === undefined ? {} : { maxParallel: strategy['max-parallel'] }),
    onFailure: policyOf(strategy, select ? 'continue' : 'fail-fast'),
    ...(select ? { select } : {}),
  };
  if (strategy?.matrix !== undefined) {
    const items = compileMatrix(strategy.matrix, [...site.path, 'strategy', 'matrix'], site);
    return { kind: 'matrix', items, ...shared };
  }
  if (concurrency === undefined || concurrency < 2) return undefined;
  const copies = (): readonly JsonObject[] => Array.from({ length: concurrency }, () => ({}));
  return { kind: 'concurrency', items: copies, ...shared };
}

function policyOf(strategy: StepDefinition['strategy'], otherwise: FailurePolicy): FailurePolicy {
  const { 'fail-fast': failFast, on_failure: policy } = strategy ?? {};
  if (policy !== undefined) return policy;
  return failFast === undefined ? otherwise : failFast ? 'fail-fast' : 'continue';
}

/** Looks at what was written, so that a key with the wrong shape is not missed as well. */
function checkKeys({ kind, definition, written }: FanOutParts, site: BodySite): void {
  const { concurrency, strategy } = definition;
  const { path, source, problems } = site;
  const has = (key: string): boolean => Object.hasOwn(written, key);
  if (strategy?.matrix !== undefined && has('concurrency')) {
    problems.add(source, {
      path: [...path, 'concurrency'],
      atKey: true,
      message:
        '`concurrency` makes identical copies and `strategy.matrix` different ones: a step has one of them',
      hint: 'to limit how many run at once, write `strategy: { max-parallel: N }`',
    });
  }
  if (concurrency !== undefined && concurrency > mostCopies) {
    problems.add(source, {
      path: [...path, 'concurrency'],
      message: `\`concurrency\` must be at most ${mostCopies}, not \`${concurrency}\``,
    });
  }
  if (strategy && strategy.matrix === undefined && !has('concurrency')) {
    problems.add(source, {
      path: [...path, 'strategy'],
      atKey: true,
      message: '`strategy` has nothing to multiply the step by',
      hint: 'add `strategy.matrix`, or `concurrency`',
    });
  }
  if (strategy?.['fail-fast'] !== undefined && strategy.on_failure !== undefined) {
    problems.add(source, {
      path: [...path, 'strategy', 'fail-fast'],
      atKey: true,
      message: '`fail-fast` and `on_failure` say the same thing',
      hint: 'keep one of them',
    });
  }
  const fansOut = strategy?.matrix !== undefined || (concurrency ?? 0) > 1;
  const isUnclear = (has('concurrency') && concurrency === undefined) || (has('strategy') && !strategy);
  // A child workflow has no workspace to pick from, which is reported with the other keys that it cannot have.
  if (has('select') && kind !== 'uses' && !fansOut && !isUnclear) {
    problems.add(source, {
      path: [...path, 'select'],
      atKey: true,
      message: '`select` picks from several copies, and this step has one',
      hint: 'add `concurrency: 3`, or a `strategy.matrix`',
    });
  }
}

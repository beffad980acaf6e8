import { type Failure, waitsOf } from '../../cases/explore/contract.ts';
import type { CaseExplorer } from '../../cases/explore/explorer.ts';
import type { PerformedCase } from '../../cases/explore/perform.ts';
import { switchesBetweenSteps } from '../../cases/explore/text.ts';
import { followLeniently, minimise } from '../../effects/explore/minimise.ts';
import type { Policy } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { Adversity } from './attempt.ts';
import { isAboutOrders } from './endings.ts';

/** How many schedules may be tried, and for how long: on git one takes a second. */
const limits = {
  memory: { most: 400, forMs: 8_000 },
  git: { most: 30, forMs: 10_000 },
} as const;

/** The same failure with less of everything: crashes and faults, time that passes, switches between steps. */
export async function shorten(explorer: CaseExplorer, failure: Failure): Promise<Failure> {
  const { most, forMs } = limits[explorer.kind];
  const ends = performance.now() + forMs;
  const adversity = await leastAdversity(explorer, failure);
  const calm = failure.isCalm ? undefined : await calmer(explorer, { ...failure, adversity });
  const isCalm = failure.isCalm || calm !== undefined;
  const found = calm ?? (await play(explorer, failure, { adversity, isCalm }));
  if (!isSame(found, failure)) return failure;
  const { performed, schedule } = await minimise(
    policy => retry(explorer, failure, { policy, adversity }),
    found,
    {
      isCalm,
      most,
      isOver: () => performance.now() >= ends,
      ofLane: topLane,
      switchesOf: (trace, { verdict, left }) => switchesBetweenSteps(trace, waitsOf(verdict, left)),
    },
  );
  const { message } = performed.verdict.kind === 'failed' ? performed.verdict : failure;
  const waits = waitsOf(performed.verdict, performed.left);
  return { ...failure, message, adversity, isCalm, trace: schedule, waits };
}

/** Whether the same schedule, as far as it goes, fails there in the same way. */
export async function failsToo(explorer: CaseExplorer, failure: Failure): Promise<boolean> {
  return isSame(await play(explorer, failure, failure), failure);
}

type Variation = Pick<Failure, 'adversity' | 'isCalm'>;

const play = (explorer: CaseExplorer, failure: Failure, { adversity, isCalm }: Variation) =>
  retry(explorer, failure, { policy: followLeniently(failure.trace, { isCalm }), adversity });

const retry = (
  explorer: CaseExplorer,
  { what }: Failure,
  attempt: { readonly policy: Policy; readonly adversity: Adversity },
): Promise<PerformedCase> => explorer.retry(attempt, { comparesOrders: isAboutOrders(what) });

const isSame = ({ verdict }: PerformedCase, { what }: Failure): boolean =>
  verdict.kind === 'failed' && verdict.what === what;

/** The same without time that passes while somebody could go on, if it fails as well. */
async function calmer(explorer: CaseExplorer, failure: Failure): Promise<PerformedCase | undefined> {
  const calm = await play(explorer, failure, { ...failure, isCalm: true });
  return isSame(calm, failure) ? calm : undefined;
}

/** Without those crashes and faults that it would fail without. */
async function leastAdversity(explorer: CaseExplorer, failure: Failure): Promise<Adversity> {
  let least = failure.adversity;
  const { isCalm } = failure;
  const { crashes, faults } = least;
  const tryWith = async (fewer: Adversity) => {
    if (isSame(await play(explorer, failure, { adversity: fewer, isCalm }), failure)) least = fewer;
  };
  for (const crash of crashes)
    await tryWith({ ...least, crashes: least.crashes.filter(each => each !== crash) });
  for (const fault of faults)
    await tryWith({ ...least, faults: least.faults.filter(each => each !== fault) });
  return least;
}

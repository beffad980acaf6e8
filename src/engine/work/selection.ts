import { resolve } from 'node:path';
import type { EventOf } from '../../core/events.ts';
import type { StepEnd } from '../run/messages.ts';
import type { FinishedWorker, Select, SelectionLane } from '../step/contract.ts';
import { askJudge } from '../step/selection.ts';
import { commandError, runAt, runInTurn } from './commands.ts';
import { endOfThrown, failedWith } from './ends.ts';
import { bestOf, type Candidate, scoreOf, whyNone } from './selection-words.ts';
import { firstLine, workVariables } from './words.ts';

type Choice = Omit<EventOf<'selection.made'>['data'], 'candidates'>;

/**
 * Picks the best of the workers that succeeded: those whose gates pass, ranked by a command or chosen by a judge, and
 * otherwise the first. The choice is in history, so that nobody makes it again.
 */
export const select: Select = async lane => {
  try {
    return await choose(lane);
  } catch (thrown) {
    const end = endOfThrown(thrown);
    if (end) return end;
    throw thrown;
  }
};

async function choose(lane: SelectionLane): Promise<StepEnd> {
  const candidates: Candidate[] = [];
  for (const worker of lane.candidates) candidates.push(await examine(lane, worker));
  const passed = lane.candidates.filter(({ worker }) =>
    candidates.some(each => each.worker === worker && each.passed),
  );
  const best = bestOf(candidates);
  if (!best) {
    return failedWith({
      code: 'NO_CANDIDATE',
      message: `none of ${candidates.length} candidates passes\n${whyNone(candidates)}`,
      hint: 'look at what they did in their workspaces, or change `select`',
    });
  }
  const { judge, rank } = lane.rule;
  let choice: Choice = { winner: best.worker, by: rank ? 'rank' : 'gates' };
  if (judge && passed.length > 1) {
    const judgement = await askJudge(lane, judge, passed);
    if (judgement.kind === 'ended') return judgement.end;
    choice = { winner: judgement.winner, by: 'judge', reason: judgement.reason };
  }
  await lane.record({ type: 'selection.made', data: { ...choice, candidates } });
  return { kind: 'completed', output: { winner: choice.winner } };
}

/** Gates first, then the score. */
async function examine(lane: SelectionLane, candidate: FinishedWorker): Promise<Candidate> {
  const { effects, runId, rule, scope } = lane;
  const { worker } = candidate;
  const unit = { ...lane.unit, worker };
  const folder = resolve(effects.projectRoot, candidate.workspace ?? '.');
  const place = { folder, env: workVariables({ runId, unit, cwd: folder, steps: scope.steps }) };
  const own = { ...lane, unit };
  const commands = rule.gates.map(({ text, command }) => ({ text, command: command(scope) }));
  const failed = await runInTurn(own, { place, what: 'gate', commands });
  if (failed)
    return {
      worker,
      passed: false,
      reason: firstLine(commandError('CHECK_FAILED', 'the gate', failed).message),
    };
  if (!rule.rank) return { worker, passed: true };
  const { text, command } = rule.rank;
  const { end, lastLine } = await runAt(own, { place, what: 'rank', command: command(scope) });
  if (end.kind === 'failed') {
    const { message } = commandError('CHECK_FAILED', 'the ranking', { text, error: end.error });
    return { worker, passed: false, reason: firstLine(message) };
  }
  const score = scoreOf(lastLine);
  return score === undefined
    ? {
        worker,
        passed: false,
        reason: `the ranking printed ${JSON.stringify(lastLine.slice(0, 80))} where a number should be`,
      }
    : { worker, passed: true, score };
}

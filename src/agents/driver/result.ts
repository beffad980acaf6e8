import { type ErrorData, toErrorData } from '../../core/errors.ts';
import type { ProcessEnd } from '../../process/start.ts';
import type { Progress } from '../progress.ts';
import type { SessionRequest, SessionResult } from '../session.ts';
import { structuredAnswer } from '../structured.ts';
import { failed, protocolError, reportedFailure, withDenials } from './failures.ts';
import type { Verdict } from './protocol.ts';

/** The result of a session: what the agent says of itself, and what we find. Never rejects. */
export async function judge(
  verdict: Verdict,
  { request, progress }: { readonly request: SessionRequest; readonly progress: Progress },
): Promise<SessionResult> {
  const soFar = () => progress.soFar();
  const fail = (error: ErrorData): SessionResult => ({
    kind: 'failed',
    error: withDenials(error, soFar().denials),
    ...soFar(),
  });
  switch (verdict.kind) {
    case 'failed':
      return fail(verdict.error);
    case 'stopped':
      return fail({
        code: 'AGENT_FAILED',
        message: 'the agent says that it was cancelled, but nobody cancelled it',
        hint: 'run the step again',
      });
    case 'limit':
      return { ...verdict, ...soFar() };
    case 'ok': {
      if (!request.outputSchema) return { kind: 'ok', text: verdict.text, ...soFar(), ...given(verdict) };
      const { structured, text } = verdict;
      const answer = await structuredAnswer({ schema: request.outputSchema, given: structured, text }).catch(
        error => ({ ok: false, error: toErrorData(error) }) as const,
      );
      return answer.ok ? { kind: 'ok', text, structured: answer.value, ...soFar() } : fail(answer.error);
    }
  }
}

const given = ({ structured }: Extract<Verdict, { kind: 'ok' }>) =>
  structured === undefined ? {} : { structured };

/** What is known of an agent that ended before it said how. */
export interface SilentEnd {
  readonly request: SessionRequest;
  readonly stderr: string;
  /** The last line of its output. */
  readonly lastLine: string | undefined;
  readonly cutLines: number;
  readonly now: number;
  readonly logFile: string | undefined;
}

/** The failure of an agent that ended without a result. */
export function silentEnd(end: ProcessEnd | 'closed its output', known: SilentEnd): Verdict {
  const { request, stderr, lastLine, cutLines, now, logFile } = known;
  const details = [
    cutLines > 0 && `${cutLines} of its lines were too long to be read.`,
    stderr || (lastLine !== undefined && `Its last words: ${lastLine}`),
  ].filter(Boolean);
  const tell = (what: string) => [`the agent ${what} without a result`, ...details].join('\n');
  const log = logFile ? `The whole output is in ${logFile}` : undefined;
  const byHand = `run \`${request.agent.command?.join(' ') ?? request.agent.kind}\` by hand to see what it says. ${log ?? ''}`;
  if (end === 'closed its output') return failed(protocolError(tell(end), byHand.trim()));
  switch (end.kind) {
    case 'couldNotStart':
      return failed(end.error);
    case 'signalled':
      return failed({
        code: 'KILLED',
        message: tell(`was ended by ${end.signal}`),
        hint: ['somebody killed it, or memory ran out; run the step again.', log].filter(Boolean).join(' '),
      });
    case 'exited': {
      if (end.exitCode === 0) return failed(protocolError(tell('ended'), byHand.trim()));
      const message = tell(`exited with code ${end.exitCode}`);
      const verdict = reportedFailure({ kind: request.agent.kind, message, now, hint: byHand.trim() });
      return verdict.kind === 'failed' ? failed({ ...verdict.error, exitCode: end.exitCode }) : verdict;
    }
  }
}

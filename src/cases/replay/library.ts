import { isDeepStrictEqual } from 'node:util';
import type { SessionRequest } from '../../agents/index.ts';
import type { Redactor } from '../../effects/redact/index.ts';
import type { WorkScript } from '../../engine/index.ts';
import {
  commandOf,
  promptOf,
  type RecordedActivity,
  type RecordedSession,
  type RecordedShell,
} from '../../engine/recording/index.ts';
import { compareSnapshot } from '../snapshot/diff.ts';

export interface WantedRecording {
  readonly kind: RecordedActivity['kind'];
  readonly role: string;
  readonly task: string;
}

/** Recordings with the same kind, role and task. */
interface RecordingSeries {
  readonly recordings: RecordedActivity[];
  opened: number;
  results: number;
}

interface ShelfOptions {
  /** Whether to serve recordings again once all are taken. Another order may request them more often. */
  readonly again?: boolean | undefined;
}

/** Recordings of a case. Each is taken once, unless `again` is set. */
export class Shelf {
  readonly #again: boolean;
  readonly #series = new Map<string, RecordingSeries>();
  readonly #taken = new Set<RecordedActivity>();
  readonly #bySubject = new Map<string, RecordedActivity>();

  constructor(recordings: readonly RecordedActivity[], { again = false }: ShelfOptions = {}) {
    this.#again = again;
    for (const recording of recordings) this.#of(recording).recordings.push(recording);
  }

  /**
   * Takes the next recording: by its position among opened ones, or by the number of results before it. Returns
   * `undefined` if none is left.
   */
  take(wanted: WantedRecording): RecordedActivity | undefined {
    const series = this.#of(wanted);
    const found = this.peek(wanted);
    series.opened++;
    if (!found) return undefined;
    this.#taken.add(found);
    if (found.cut === undefined) series.results++;
    return found;
  }

  /** Puts a recording back whose user was killed before it had any effect. */
  putBack(recording: RecordedActivity): void {
    const series = this.#of(recording);
    series.opened--;
    if (recording.cut === undefined) series.results--;
    this.#taken.delete(recording);
  }

  /** Takes the same recording again for the same subject, such as a verification of the same files. */
  takeAbout(wanted: WantedRecording, subject: string | undefined): RecordedActivity | undefined {
    if (!this.#again || subject === undefined) return this.take(wanted);
    const key = JSON.stringify([wanted.role, wanted.task, subject]);
    const found = this.#bySubject.get(key) ?? this.take(wanted);
    if (found) this.#bySubject.set(key, found);
    return found;
  }

  /** Returns the recording that `take` would return. */
  peek(wanted: WantedRecording): RecordedActivity | undefined {
    const { recordings, opened, results } = this.#of(wanted);
    const left = recordings.filter(each => !this.#taken.has(each));
    return (
      left.find(each => each.order === opened) ??
      left.find(each => each.cut === undefined && each.n === results) ??
      (this.#again ? recordings.findLast(each => each.cut === undefined) : undefined)
    );
  }

  get left(): readonly RecordedActivity[] {
    return [...this.#series.values()].flatMap(({ recordings }) =>
      recordings.filter(each => !this.#taken.has(each)),
    );
  }

  /** Returns the recorded roles of a task, for messages. */
  rolesOf(task: string): readonly string[] {
    const recordings = [...this.#series.values()].flatMap(series => series.recordings);
    return [...new Set(recordings.filter(each => each.task === task).map(each => each.role))];
  }

  #of({ kind, role, task }: WantedRecording): RecordingSeries {
    const key = JSON.stringify([kind, role, task]);
    const series = this.#series.get(key) ?? { recordings: [], opened: 0, results: 0 };
    this.#series.set(key, series);
    return series;
  }
}

/** Recording whose prompt or script has changed since. */
export interface StaleSession {
  readonly file: string;
  readonly role: string;
  readonly task: string;
  /** Changed part, such as `the prompt` or `the script`. */
  readonly what: string;
  readonly diff: string;
  /** Command that records it again. */
  readonly command: string;
}

type Staleness = Pick<StaleSession, 'what' | 'diff'>;

/** Returns the change of the prompt or schema since the recording, or `undefined` if there is none. */
export function stalenessOfSession(
  recorded: RecordedSession,
  request: SessionRequest,
  redactor: Redactor,
): Staleness | undefined {
  const { prompt, promptHash } = promptOf(request, redactor);
  if (prompt !== recorded.prompt) return { what: 'the prompt', diff: diffOf(recorded.prompt, prompt) };
  const schema = redactor.json(request.outputSchema);
  if (!isDeepStrictEqual(schema, redactor.json(recorded.outputSchema)))
    return { what: 'the output schema', diff: diffOf(pretty(recorded.outputSchema), pretty(schema)) };
  // The recording keeps only a hash of the system prompt.
  return promptHash === recorded.promptHash ? undefined : { what: 'the system prompt', diff: '' };
}

export function stalenessOfShell(
  recorded: RecordedShell,
  { command }: WorkScript,
  redactor: Redactor,
): Staleness | undefined {
  const { script, shell, working_directory } = commandOf(command, redactor);
  const was = recorded.command;
  if (script !== was.script) return { what: 'the script', diff: diffOf(was.script, script) };
  if (shell !== was.shell) return { what: 'the shell', diff: diffOf(was.shell, shell) };
  if (working_directory === was.working_directory) return undefined;
  return { what: 'the working directory', diff: diffOf(was.working_directory, working_directory) };
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2) ?? 'none';

const longestDiff = 40;

function diffOf(expected: string, actual: string): string {
  const compared = compareSnapshot({ expected, actual });
  if (compared.equal) return '';
  const lines = compared.diff.trimEnd().split('\n');
  const more = lines.length - longestDiff;
  return [...lines.slice(0, longestDiff), ...(more > 0 ? [`… ${more} more lines`] : [])].join('\n');
}

import type { WorkScript } from '../../engine/environment.ts';
import type { RecordedShell } from '../../engine/recording/session-file.ts';
import { type Log, type OpenLog, openLogFile } from '../../process/log.ts';
import type { ShellEnd } from '../../process/shell-step.ts';

export interface ServedShell {
  /** Does to the folder what the script did. */
  readonly applyDelta: () => Promise<void>;
  /** Files unless it is said. */
  readonly openLog?: OpenLog | undefined;
}

/**
 * A script that was recorded, run again without running it: the same output, to whoever listens and in the log, the same
 * changes in the folder, the same end. One that was interrupted goes on until it is interrupted again.
 */
export async function runRecordedShell(
  recording: RecordedShell,
  script: WorkScript,
  { applyDelta, openLog = openLogFile }: ServedShell,
): Promise<ShellEnd> {
  let log = '';
  for (const { stream, text } of recording.output) {
    log += `${text}\n`;
    for (const line of text.split('\n')) script.onLine?.(stream, line, false);
  }
  if (log !== '') keep(openLog(script.logFile), log);
  if (recording.cut !== undefined) await aborted(script.signal);
  await applyDelta();
  return recording.end ?? { kind: 'cancelled' };
}

function keep(log: Log, text: string): void {
  log.append(text);
  log.close();
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

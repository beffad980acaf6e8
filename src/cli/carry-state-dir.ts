import { RepriseError } from '../core/errors.ts';
import { commandSuffix } from '../project/project.ts';

const hintedCommand =
  /\breprise (?:approve|cancel|diff|gc|history|land|list|logs|replay|resume|run|show|signal)\b[^;]*/g;

/** The error with `--state-dir` in the commands of its hint, which those who write hints know nothing of. */
export function carryStateDir(error: unknown, stateDir: string | undefined): unknown {
  if (!stateDir || !(error instanceof RepriseError) || error.hint === undefined) return error;
  const { code, message, position } = error;
  const hint = error.hint.replace(hintedCommand, command =>
    command.includes('--state-dir') ? command : `${command}${commandSuffix(stateDir)}`,
  );
  return hint === error.hint ? error : new RepriseError(code, message, { hint, position, cause: error });
}

import { RepriseError } from '../core/index.ts';
import { commandSuffix } from '../project/index.ts';

const hintedCommand =
  /\breprise (?:approve|cancel|diff|gc|history|land|list|logs|replay|resume|run|show|signal)\b[^;]*/g;

/** Adds `--state-dir` to the commands in the hint of an error. The code that writes hints does not know the option. */
export function carryStateDir(error: unknown, stateDir: string | undefined): unknown {
  if (!stateDir || !(error instanceof RepriseError) || error.hint === undefined) return error;
  const { code, message, position } = error;
  const hint = error.hint.replace(hintedCommand, command =>
    command.includes('--state-dir') ? command : `${command}${commandSuffix(stateDir)}`,
  );
  return hint === error.hint ? error : new RepriseError(code, message, { hint, position, cause: error });
}

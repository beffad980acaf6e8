import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { jsonText } from '../terminal/text.ts';
import { safeText } from '../view/safe-text.ts';
import { inspectAgents } from './agent-checkups.ts';
import { checkups, type Finding } from './checkups.ts';

export interface DoctorCommandOptions extends ProjectOptions {
  readonly json?: boolean | undefined;
}

/** Looks at what runs depend on, and says what to do about what is missing. Fails if something cannot work. */
export async function doctorCommand(
  { io }: { readonly io: CommandIo },
  options: DoctorCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const findings: Finding[] = [];
  for (const checkup of checkups) findings.push(await checkup({ io, project }));
  findings.push(...(await inspectAgents({ io, project })));
  for (const finding of findings)
    writeLines(io.out, options.json ? jsonText(finding) : safeText(format(finding)));
  return findings.some(({ level }) => level === 'fail') ? exitCodes.failed : exitCodes.ok;
}

function format({ level, name, message, next }: Finding): string {
  const line = `${level.padEnd(4)} ${name}: ${message}`;
  return next === undefined ? line : `${line}\n     ${next}`;
}

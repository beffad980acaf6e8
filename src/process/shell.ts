import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export type Shell = 'bash' | 'sh';

export interface ShellInvocation {
  readonly argv: readonly string[];
  /** What runs the script: `sh` if `bash` was asked for and is not installed. */
  readonly shell: Shell;
}

/** How to run a script file so that the first failing command ends it, and no start-up file of the user is read. */
export function shellArgv(options: {
  readonly shell: Shell;
  readonly scriptFile: string;
  /** The `PATH` on which bash is looked for. */
  readonly path: string | undefined;
}): ShellInvocation {
  const shell = options.shell === 'bash' && isInstalled('bash', options.path) ? 'bash' : 'sh';
  switch (shell) {
    case 'bash':
      return { shell, argv: ['bash', '--noprofile', '--norc', '-eo', 'pipefail', options.scriptFile] };
    case 'sh':
      return { shell, argv: ['sh', '-e', options.scriptFile] };
  }
}

function isInstalled(program: string, path = '/usr/bin:/bin'): boolean {
  return path.split(delimiter).some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

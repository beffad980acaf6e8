import { installAgents, installedAgents } from './install.ts';

/** Installs the agents. If that fails, the tests are skipped, or fail if `REQUIRE_AGENTS` is `1`. */
export default function setup(): void {
  try {
    installAgents();
    if (!installedAgents()) throw new Error('npm installed the agents, but their programs are missing');
  } catch (error) {
    if (process.env['REQUIRE_AGENTS'] === '1') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The agents could not be installed, so their tests are skipped.\n${reason}\n`);
  }
}

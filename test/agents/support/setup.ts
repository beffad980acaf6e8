import { installAgents, installedAgents } from './install.ts';

/** Without the agents nothing can be tested: that is said and skipped, or a failure where they are required. */
export default function setup(): void {
  try {
    installAgents();
    if (!installedAgents()) throw new Error('npm installed them, but their programs are not there');
  } catch (error) {
    if (process.env['REQUIRE_AGENTS'] === '1') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The agents could not be installed, so that nothing is tested.\n${reason}\n`);
  }
}

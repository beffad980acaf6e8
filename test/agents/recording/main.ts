import { installAgents, installedAgents } from '../support/install.ts';
import { dialogues } from './dialogues.ts';
import { recordCase } from './record-case.ts';

const wanted = process.argv.slice(2);
installAgents();
const agents = installedAgents();
if (!agents) throw new Error('npm installed the agents, but their programs are missing');
for (const [name, dialogue] of Object.entries(dialogues)) {
  if (wanted.length > 0 && !wanted.some(part => name.includes(part))) continue;
  await recordCase({ project: process.cwd(), name, agents, dialogue: dialogue() });
  console.error(`recorded ${name}`);
}

/** What the programs share that play agents: marks of what was begun, and waiting that ends with the demo. */
export const stageText = `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const stage = process.env.DEMO_STAGE;

/** How often it was begun. */
export const times = name => (existsSync(\`\${stage}/\${name}\`) ? readFileSync(\`\${stage}/\${name}\`, 'utf8').length : 0);

/** The how manieth time it is. */
export function begin(name) {
  appendFileSync(\`\${stage}/\${name}\`, '.');
  return times(name);
}

export async function until(holds) {
  for (let left = 1200; !holds(); left--) {
    if (left === 0 || !existsSync(stage)) process.exit(1);
    await setTimeout(50);
  }
}
`;

// Plays the part of a model: each copy of the agent fixes the program in a different way.
// One of the fixes is wrong, so that the gate has something to reject.
import { readFileSync, writeFileSync } from 'node:fs';

const ways = [
  `{
  let result = '';
  for (const word of title.toLowerCase().split(' ')) {
    result = result === '' ? word : \`\${result}-\${word}\`;
  }
  return result;
}`,
  `title.toLowerCase().replaceAll(' ', '')`,
  `title.toLowerCase().replaceAll(' ', '-')`,
];
const way = ways[Number(process.env.REPRISE_WORKER)];
const text = readFileSync('slug.mjs', 'utf8');
writeFileSync('slug.mjs', text.replace(/title => .*;/, `title => ${way};`));

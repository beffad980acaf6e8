// @ts-check
import { readFileSync } from 'node:fs';

const dishes = readFileSync('menu.md', 'utf8')
  .split('\n')
  .filter(line => line.startsWith('- '));
const incomplete = dishes.filter(dish => !/, \d+\.\d\d$/.test(dish));
for (const dish of incomplete) console.error(`no price: ${dish.slice(2)}`);
process.exitCode = incomplete.length > 0 ? 1 : 0;

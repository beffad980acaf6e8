// Prints the score of a change. The highest score wins, so a smaller change has a higher score.
import { execFileSync } from 'node:child_process';

const numbers = execFileSync('git', ['diff', '--numstat', 'main'], { encoding: 'utf8' });
const lines = numbers.split('\n').flatMap(line => line.split('\t').slice(0, 2).map(Number));
console.log(-lines.reduce((sum, count) => sum + (count || 0), 0));

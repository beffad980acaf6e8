// Stands for a model: each copy of the agent mends the program in another way.
import { writeFileSync } from 'node:fs';

const ways = [
  `/** A title as a part of an address. */
export function slug(title) {
  const words = title.toLowerCase().split(' ');
  let result = '';
  for (const word of words) {
    result = result === '' ? word : \`\${result}-\${word}\`;
  }
  return result;
}
`,
  `/** A title as a part of an address. */
export const slug = title => title.toLowerCase().replaceAll(' ', '');
`,
  `/** A title as a part of an address. */
export const slug = title => title.toLowerCase().replaceAll(' ', '-');
`,
];
writeFileSync('slug.mjs', ways[Number(process.env.REPRISE_WORKER)]);

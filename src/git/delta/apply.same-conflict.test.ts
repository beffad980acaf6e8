import { expect, it } from 'vitest';
import { isSameConflict } from './apply.ts';

const laidOut = (id: string, theirs = 'Good morning!') =>
  `<<<<<<< main\nHi!\n=======\n${theirs}\n>>>>>>> ${id} (Make the greeting polite)\n`;

it('recognizes the same conflict regardless of commit ids', () => {
  expect(isSameConflict(laidOut('ea9d78d563'), laidOut('0123456789'))).toBe(true);
  expect(isSameConflict(laidOut('ea9d78d563'), laidOut('0123456789', 'Good evening!'))).toBe(false);
  expect(isSameConflict('Hi!\n', 'Hi!\n')).toBe(false);
});

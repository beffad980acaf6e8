/** Two texts in which the same conflict is laid out, of commits that differ in nothing but their ids. */
export const isSameConflict = (a: string, b: string): boolean =>
  isMarked.test(a) && unnamed(a) === unnamed(b);

/** As they are laid out for whoever solves them. */
const isMarked = /^>>>>>>> [0-9a-f]{10} \(/m;

const unnamed = (text: string): string => text.replaceAll(/^>>>>>>> [0-9a-f]{10} \(/gm, '>>>>>>> (');

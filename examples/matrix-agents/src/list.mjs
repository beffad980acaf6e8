/** @param {number[]} list */
export const first = list => list[0];
/** @param {number[]} list */
export const last = list => list.at(-1);
/** @param {number[]} list */
export const sum = list => list.reduce((total, each) => total + each, 0);

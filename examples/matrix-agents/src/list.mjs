export const first = list => list[0];
export const last = list => list.at(-1);
export const sum = list => list.reduce((total, each) => total + each, 0);

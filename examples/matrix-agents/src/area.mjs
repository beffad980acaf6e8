/** @param {number} side */
export const square = side => side * side;
/** @param {number} radius */
export const circle = radius => Math.PI * radius ** 2;

export const square = side => side * side;
export const circle = radius => Math.PI * radius ** 2;

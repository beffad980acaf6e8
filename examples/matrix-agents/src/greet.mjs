// later: other languages
/** @param {string} name */
export const greet = name => `Hello, ${name}!`;

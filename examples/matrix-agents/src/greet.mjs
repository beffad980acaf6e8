// later: other languages
export const greet = name => `Hello, ${name}!`;

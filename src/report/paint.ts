const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Colour = keyof typeof codes;

/** Colours text, or leaves it as it is. */
export type Paint = (colour: Colour | undefined, text: string) => string;

const colourful: Paint = (colour, text) => {
  if (colour === undefined || text === '') return text;
  const [on, off] = codes[colour];
  return `\u001B[${on}m${text}\u001B[${off}m`;
};

/** The one place that writes colours: without `color`, no escape sequence ever leaves it. */
export const painter = (color: boolean): Paint => (color ? colourful : (_, text) => text);

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (value: number): string => numbers.format(value);
export const rate = (items: number, ms: number): string => `${numbers.format((items / ms) * 1000)}/s`;
export const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : numbers.format(value)} ms`;
export const percent = (value: number): string => `${numbers.format(value * 100)} %`;
export const times = (value: number): string =>
  `${value < 10 ? value.toFixed(1) : numbers.format(value)} times`;
export const bytes = (value: number): string =>
  value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${numbers.format(value / (1 << 20))} MiB`;

/** A Markdown table. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

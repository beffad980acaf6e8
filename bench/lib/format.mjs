const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = value => numbers.format(value);
export const rate = (items, ms) => `${numbers.format((items / ms) * 1000)}/s`;
export const ms = value => `${value < 10 ? value.toFixed(1) : numbers.format(value)} ms`;
export const percent = value => `${numbers.format(value * 100)} %`;
export const times = value => `${value < 10 ? value.toFixed(1) : numbers.format(value)} times`;
export const bytes = value =>
  value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${numbers.format(value / (1 << 20))} MiB`;

/** A Markdown table. */
export function table(header, rows) {
  const line = cells => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { BenchCase } from '../lib/bench-case.ts';
import { wallMs } from '../lib/child.ts';
import { ms, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Fixed cost of every command. */
export const startUp: BenchCase = () => {
  if (!existsSync(cli)) return { title: 'Startup', body: '`dist/` has no CLI.', targets: [] };
  const { node, reprise } = alternate(
    {
      node: () => ({ ms: wallMs(['-e', '0']) }),
      reprise: () => ({ ms: wallMs([cli, '--version']) }),
    },
    15,
  );
  const ratio = reprise.ms / node.ms;
  const show = (value: number) => `${value.toFixed(2)} times`;
  return {
    title: 'Startup, from process start to process end',
    body: table(
      ['', 'median of 15', 'relative to bare node'],
      [
        ['`node -e 0`', ms(node.ms), ''],
        ['**`reprise --version`**', ms(reprise.ms), show(ratio)],
      ],
    ),
    targets: [
      {
        what: '`--version` takes at most 1.5 times as long as bare node',
        value: ratio,
        most: 1.5,
        tolerance: 1.3,
        show,
      },
    ],
  };
};

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { wallMs } from '../lib/child.mjs';
import { ms, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** What every command pays before it does anything. */
export function startUp() {
  if (!existsSync(cli))
    return { title: 'Start-up', body: 'There is no command line in `dist/`.', targets: [] };
  const { node, reprise } = alternate(
    {
      node: () => ({ ms: wallMs(['-e', '0']) }),
      reprise: () => ({ ms: wallMs([cli, '--version']) }),
    },
    15,
  );
  const ratio = reprise.ms / node.ms;
  const show = value => `${value.toFixed(2)} times`;
  return {
    title: 'Start-up, from process start to process end',
    body: table(
      ['', 'median of 15', 'of bare node'],
      [
        ['`node -e 0`', ms(node.ms), ''],
        ['**`reprise --version`**', ms(reprise.ms), show(ratio)],
      ],
    ),
    targets: [
      { what: '`--version` takes 1.5 times bare node', value: ratio, most: 1.5, tolerance: 1.3, show },
    ],
  };
}

import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { RepriseError } from '../core/index.ts';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface PortRequest {
  /** User of the ports, such as `<run>/<step>/<copy>`. The same key tries the same ports first. */
  readonly key: string;
  readonly size?: number | undefined;
  /** Ranges that are assigned to other keys, even if no process listens on them yet. */
  readonly taken?: readonly PortRange[] | undefined;
}

/** Range below the ephemeral ports of the system. */
const space: PortRange = { first: 20_000, last: 31_999 };

/** Finds consecutive ports that no process listens on. Throws WORKSPACE_FAILED if there are none. */
export async function findPortRange({ key, size = 10, taken = [] }: PortRequest): Promise<PortRange> {
  const slots = Math.floor((space.last - space.first + 1) / size);
  const begin = createHash('sha256').update(key).digest().readUInt32BE() % slots;
  for (let offset = 0; offset < slots; offset++) {
    const first = space.first + ((begin + offset) % slots) * size;
    const range = { first, last: first + size - 1 };
    if (!taken.some(other => other.first <= range.last && range.first <= other.last) && (await isFree(range)))
      return range;
  }
  throw new RepriseError(
    'WORKSPACE_FAILED',
    `there are no ${size} consecutive free ports between ${space.first} and ${space.last}`,
  );
}

async function isFree({ first, last }: PortRange): Promise<boolean> {
  for (let port = first; port <= last; port++) if (!(await canListen(port))) return false;
  return true;
}

/** Binds to all addresses, so that a listener on any of them is detected. */
const canListen = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });

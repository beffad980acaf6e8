import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { RepriseError } from '../core/index.ts';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface PortRequest {
  /** What the ports are for, such as `<run>/<step>/<worker>`: the same key tries the same ports first. */
  readonly key: string;
  readonly size?: number | undefined;
  /** Ranges that others were given and may not listen on yet. */
  readonly taken?: readonly PortRange[] | undefined;
}

/** Below the ports that the system hands out by itself. */
const space: PortRange = { first: 20_000, last: 31_999 };

/** Ports next to each other that nobody listens on. Throws WORKSPACE_FAILED if there are none. */
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
    `no ${size} free ports between ${space.first} and ${space.last}`,
  );
}

async function isFree({ first, last }: PortRange): Promise<boolean> {
  for (let port = first; port <= last; port++) if (!(await canListen(port))) return false;
  return true;
}

/** Without a host: on all addresses, so that a listener on any of them is noticed. */
const canListen = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });

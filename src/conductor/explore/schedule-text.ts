import { RepriseError } from '../../core/errors.ts';

/**
 * Which lane went on, one after another, as text: `worker_a*5 worker_b*6 worker_a`. What would be read as something else
 * in the name of a lane is written as in a URL.
 */
export function formatSchedule(moves: readonly { readonly lane: string }[]): string {
  const turns: { readonly lane: string; count: number }[] = [];
  for (const { lane } of moves) {
    const last = turns.at(-1);
    if (last?.lane === lane) last.count++;
    else turns.push({ lane, count: 1 });
  }
  return turns.map(({ lane, count }) => `${escaped(lane)}${count > 1 ? `*${count}` : ''}`).join(' ');
}

export function parseSchedule(text: string): readonly { readonly lane: string }[] {
  return text
    .split(/\s+/)
    .filter(turn => turn !== '')
    .flatMap(turn => {
      const [, name, count = '1'] = /^([^*]+)(?:\*([1-9]\d{0,8}))?$/.exec(turn) ?? [];
      if (name === undefined) throw notATurn(turn);
      return Array.from({ length: Number(count) }, () => ({ lane: unescaped(name, turn) }));
    });
}

const escaped = (lane: string): string =>
  lane === ''
    ? '%'
    : lane.replaceAll(/[%*\s]/g, character => encodeURIComponent(character).replace('*', '%2A'));

function unescaped(name: string, turn: string): string {
  if (name === '%') return '';
  try {
    return decodeURIComponent(name);
  } catch {
    throw notATurn(turn);
  }
}

const notATurn = (turn: string): RepriseError =>
  new RepriseError('TAPE_INVALID', `${turn} is not a turn of a schedule`, {
    hint: 'write the name of a lane, and how often it goes on: worker_a*5',
  });

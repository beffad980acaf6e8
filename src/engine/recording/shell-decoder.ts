import type { z } from 'zod';
import { fitting, invalid, type PlacedLine } from '../../effects/recording/json-lines.ts';
import type { ShellEnd } from '../../process/shell-step.ts';
import { takeStates } from './recorded-states.ts';
import { endSchema, type headerSchema } from './schemas.ts';
import type { OutputText, RecordedShell } from './session-file.ts';
import { linesOf, textOfTail } from './shell-encoder.ts';

type Header = Extract<z.infer<typeof headerSchema>, { kind: 'shell' }>;

export function decodeShell(file: string, header: Header, lines: readonly PlacedLine[]): RecordedShell {
  const { rest, ...states } = takeStates(lines);
  const output: OutputText[] = [];
  let end: ShellEnd | undefined;
  let isInterrupted = true;
  for (const line of rest) {
    const { out, err, end: ended } = line.value;
    if (end) throw invalid(line, 'comes after the end of the script');
    if (typeof out === 'string') add(output, { stream: 'stdout', text: out });
    else if (typeof err === 'string') add(output, { stream: 'stderr', text: err });
    else if (ended !== undefined) {
      end = endIn(ended, line, output);
      isInterrupted = line.value['interrupted'] === true;
    } else throw invalid(line, `is no line of a script: ${JSON.stringify(line.value).slice(0, 80)}`);
  }
  const { role, task, n, order, command, what } = header;
  return {
    kind: 'shell',
    file,
    role,
    task,
    n,
    ...(isInterrupted ? { cut: header.cut ?? 0 } : {}),
    order,
    command,
    ...(what === undefined ? {} : { what }),
    output,
    ...(end ? { end } : {}),
    ...states,
  };
}

/** What one stream printed is one text, in whatever pieces it came in. */
function add(output: OutputText[], next: OutputText): void {
  const last = output.at(-1);
  if (last?.stream !== next.stream) output.push(next);
  else output.splice(-1, 1, { stream: next.stream, text: `${last.text}\n${next.text}` });
}

function endIn(value: unknown, line: PlacedLine, output: readonly OutputText[]): ShellEnd {
  const end = fitting(endSchema, value, line);
  if (end.kind === 'cancelled') return end;
  const { tail = '', ...rest } = end;
  return { ...rest, tail: typeof tail === 'string' ? tail : textOfTail(tail, linesOf(output)) };
}

import { stripVTControlCharacters } from 'node:util';
import { Box, render, Static, Text } from 'ink';
import { createElement as element } from 'react';
import { displayWidth } from './text.ts';

/** The part of a terminal below the last line that was printed. */
export interface Screen {
  /** Replaces what is shown. */
  show(picture: Picture): void;
  /** Takes everything away but the notices, and gives the cursor back. */
  close(): Promise<void>;
}

export interface Picture {
  /** Coloured, none wider than the terminal, fewer than it has rows. */
  readonly lines: readonly string[];
  /** Lines that stay above for good; only ever added to. */
  readonly notices: readonly string[];
}

/** Keys are not read, so Ctrl-C arrives as the signal that it always is. */
export function openScreen(stdout: NodeJS.WriteStream): Screen {
  let lines: readonly string[] = [];
  // Before Ink's own listener, which takes away as many rows as it had drawn.
  const beforeResize = () => stdout.write(eraseRows(rowsFromReflow(lines, stdout.columns)));
  stdout.on('resize', beforeResize);
  const instance = render(element(Frame, { lines, notices: [] }), {
    stdout: withoutHeight(stdout),
    exitOnCtrlC: false,
    maxFps: 0,
  });
  return {
    show: picture => {
      lines = picture.lines;
      instance.rerender(element(Frame, picture));
    },
    close: async () => {
      stdout.off('resize', beforeResize);
      const exited = instance.waitUntilExit();
      instance.clear();
      instance.unmount();
      await exited;
    },
  };
}

function Frame({ lines, notices }: Picture) {
  const rows = lines.map((line, index) => element(Text, { key: index, wrap: 'truncate' }, line));
  return element(
    Box,
    { flexDirection: 'column' },
    element(Static<string>, {
      items: [...notices],
      // biome-ignore lint/correctness/noChildrenProp: the children of Static are a function, which createElement does not type
      children: (notice: string, index: number) => element(Text, { key: index }, notice),
    }),
    ...rows,
  );
}

/** Ink clears the terminal and its scrollback when a picture may be too high for it. Ours never is. */
function withoutHeight(stdout: NodeJS.WriteStream): NodeJS.WriteStream {
  return new Proxy(stdout, {
    get: (target, key) => {
      if (key === 'rows') return undefined;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** How many rows more the lines take since the terminal, made narrower, broke them. */
function rowsFromReflow(lines: readonly string[], columns: number): number {
  return lines.reduce((more, line) => more + Math.max(0, Math.ceil(visibleWidth(line) / columns) - 1), 0);
}

const visibleWidth = (line: string): number => displayWidth(stripVTControlCharacters(line));

const eraseRows = (rows: number): string =>
  '\u001B[2K\u001B[1A'.repeat(rows) + (rows > 0 ? '\u001B[2K\u001B[G' : '');

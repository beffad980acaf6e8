import { stripVTControlCharacters } from 'node:util';
import { Box, render, Static, Text } from 'ink';
import { createElement as element } from 'react';
import { displayWidth } from './text.ts';

/** The part of a terminal below the last printed line. */
export interface Screen {
  /** Replaces what is shown. */
  show(picture: Picture): void;
  /** Clears everything except the notices, and restores the cursor. */
  close(): Promise<void>;
}

export interface Picture {
  /** Lines of the view, none wider than the terminal, fewer than it has rows. */
  readonly lines: readonly string[];
  /** Lines that stay above the view. The list only grows. */
  readonly notices: readonly string[];
}

/** Opens a screen. It reads no keys, so that Ctrl-C still sends a signal. */
export function openScreen(stdout: NodeJS.WriteStream): Screen {
  let lines: readonly string[] = [];
  // Registered before Ink's own listener, which erases only as many rows as it has drawn.
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

/** Hides the height from Ink, which clears the terminal and its scrollback if a view might be too high. Ours never is. */
function withoutHeight(stdout: NodeJS.WriteStream): NodeJS.WriteStream {
  return new Proxy(stdout, {
    get: (target, key) => {
      if (key === 'rows') return undefined;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Number of additional rows that the lines take after a narrower terminal has wrapped them. */
function rowsFromReflow(lines: readonly string[], columns: number): number {
  return lines.reduce((more, line) => more + Math.max(0, Math.ceil(visibleWidth(line) / columns) - 1), 0);
}

const visibleWidth = (line: string): number => displayWidth(stripVTControlCharacters(line));

const eraseRows = (rows: number): string =>
  '\u001B[2K\u001B[1A'.repeat(rows) + (rows > 0 ? '\u001B[2K\u001B[G' : '');

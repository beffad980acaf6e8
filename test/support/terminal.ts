import { Console } from 'node:console';
import { EventEmitter } from 'node:events';
import xterm from '@xterm/headless';
import { vi } from 'vitest';

// Ink draws nothing in place if it believes that it runs in CI, and asks when it is loaded.
vi.stubEnv('CI', undefined);
vi.stubEnv('CONTINUOUS_INTEGRATION', undefined);

// Vitest's console lacks it, and Ink needs it to show what steps print above its picture.
console.Console ??= Console;

/** A real terminal emulator behind what looks like a TTY stream. */
export function terminal(columns: number, rows: number) {
  const screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, convertEol: true });
  const written: string[] = [];
  const stream = Object.assign(new EventEmitter(), {
    columns,
    rows,
    isTTY: true,
    writable: true,
    write: (text: string, callback?: () => void) => {
      written.push(text);
      screen.write(text, callback);
      return true;
    },
  });
  const settled = () => new Promise<void>(resolve => screen.write('', resolve));
  const { active } = screen.buffer;
  const line = (at: number) => screen.buffer.active.getLine(at)?.translateToString(true) ?? '';
  return {
    stdout: stream as unknown as NodeJS.WriteStream,
    written,
    /** What can be seen, without the blank lines at the end. */
    async text(): Promise<string> {
      await settled();
      return Array.from({ length: screen.rows }, (_, row) => line(active.baseY + row))
        .join('\n')
        .trimEnd();
    },
    async scrolledAway(): Promise<readonly string[]> {
      await settled();
      return Array.from({ length: active.baseY }, (_, row) => line(row));
    },
    resize(columnsNow: number, rowsNow: number): void {
      screen.resize(columnsNow, rowsNow);
      Object.assign(stream, { columns: columnsNow, rows: rowsNow });
      stream.emit('resize');
    },
    listeners: () => stream.listenerCount('resize'),
  };
}

import { Console } from 'node:console';
import { EventEmitter } from 'node:events';
import xterm from '@xterm/headless';
import { vi } from 'vitest';

// Ink does not redraw in CI, which it detects when it is loaded.
vi.stubEnv('CI', undefined);
vi.stubEnv('CONTINUOUS_INTEGRATION', undefined);

// Vitest's console lacks `Console`, which Ink needs to print log lines above its view.
console.Console ??= Console;

/** Terminal emulator behind a fake TTY stream. */
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
    /** Visible text, without trailing blank lines. */
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

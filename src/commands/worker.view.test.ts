import { describe, expect, it } from 'vitest';
import { terminal } from '../../test/support/terminal.ts';
import { testIo } from './test-support.ts';
import { openWorkersView } from './worker.ts';

describe('the view of running workers', () => {
  const tell = async (options: { readonly json?: boolean; readonly quiet?: boolean }, watched: boolean) => {
    const screen = terminal(80, 10);
    const io = testIo('/', watched ? { terminal: screen.stdout } : {});
    const view = await openWorkersView(io, { branch: 'main', workers: 1, ...options });
    view.report(0, { kind: 'enlisted', name: 'worker-1' });
    view.report(0, { kind: 'sleeps', why: 'there are no tasks' });
    await view.close();
    const text = `${io.printed.err}${await screen.text()}`.replace(/\d\d:\d\d:\d\d/g, '<time>');
    return { text, out: io.printed.out, isLive: screen.written.length > 0 };
  };

  it('redraws in place in a terminal and keeps its log lines', async () => {
    expect(await tell({}, true)).toEqual({
      text: '<time> worker-1  sleeping: there are no tasks',
      out: '',
      isLive: true,
    });
  });

  it('is a log without a terminal', async () => {
    expect(await tell({}, false)).toEqual({
      text: '<time> worker-1  started on branch main\n<time> worker-1  sleeping: there are no tasks\n',
      out: '',
      isLive: false,
    });
  });

  it('is never redrawn with --json or --quiet', async () => {
    expect(await tell({ quiet: true }, true)).toEqual({ text: '', out: '', isLive: false });
    const { out, isLive } = await tell({ json: true }, true);
    expect(isLive).toBe(false);
    expect(out.split('\n')[1]).toBe(
      '{"worker":"worker-1","type":"worker.sleeps","why":"there are no tasks"}',
    );
  });
});

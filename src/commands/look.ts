import { isUtf8Locale } from '../terminal/glyphs.ts';
import type { CommandIo } from './io.ts';

/** How text for one of the two streams may look. */
export const lookOf = (io: CommandIo, stream: 'out' | 'err') => ({
  color: io.color[stream],
  columns: io.columns,
  unicode: isUtf8Locale(io.env),
});

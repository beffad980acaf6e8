/** What JSON leaves as it is, although a terminal would obey it, or show other text than is there. */
const harmful = /[\u007F-\u009F\u061C\u200B\u200E\u200F\u2028-\u202E\u2060\u2066-\u2069\uFEFF]/g;

/** The value as JSON that can be shown in any terminal: every program that reads it gets the same value. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    harmful,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

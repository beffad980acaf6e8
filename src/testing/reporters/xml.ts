import { stripVTControlCharacters } from 'node:util';

const refused = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

/** Without what no XML document may hold, not even escaped. */
const allowed = (text: string): string => stripVTControlCharacters(text).replace(refused, '');

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Line feeds too: a parser would make blanks of them. */
const attribute = (text: string): string =>
  allowed(text).replace(/[&<>"'\t\n\r]/g, character => entities[character] ?? character);

/** Text as it is, whatever is in it. */
export const cdata = (text: string): string =>
  `<![CDATA[${allowed(text).replaceAll('\r\n', '\n').replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** An element; `content` is XML already. Attributes that are `undefined` are left out. */
export function element(name: string, attributes: Attributes, content: readonly string[] = []): string {
  const pairs = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${attribute(String(value))}"`],
  );
  const start = `<${name}${pairs.join('')}`;
  return content.length === 0 ? `${start}/>` : `${start}>${content.join('')}</${name}>`;
}
